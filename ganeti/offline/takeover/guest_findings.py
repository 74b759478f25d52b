"""Findings of a takeover about the instances of a node, their disks and guests. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ganeti import errors
from ganeti.base.text import plural
from ganeti.hypervisor.kvm import adoption
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.offline.takeover.facts import Facts, Guest
from ganeti.offline.takeover.finding import Finding, Kind
from ganeti.ops import annotate
from ganeti.storage.registry import TEMPLATES, traits_of

#: The hypervisor whose guests go on.
ADOPTS = "kvm"


def own_instances(config: Config, host: str) -> dict[str, Instance]:
    """Instances by name that belong on a node."""
    node = find_node(config, host)
    if node is None:
        return {}
    return {
        str(item.name): item for item in config.instances.values() if item.primary_node == node.uuid
    }


def find_node(config: Config, host: str) -> Node | None:
    return next((node for node in config.nodes.values() if node.name == host), None)


def examine_guests(facts: Facts, config: Config | None) -> Iterator[Finding]:
    own = {} if config is None else own_instances(config, facts.host)
    guests = {guest.name: guest for guest in facts.guests}
    if config is not None:
        if find_node(config, facts.host) is None:
            yield Finding(
                Kind.STOPS,
                f"node {facts.host}",
                "the configuration has no node of this name",
                "Is the host name right?",
            )
        for name, item in sorted(own.items()):
            yield from _instance(facts, config, item, guests.get(name))
    for name, guest in sorted(guests.items()):
        if guest.pid is None or name in own:
            continue
        if config is None:
            text = f"process {guest.pid} is adopted, with what the master knows of it"
            yield from _record(guest, f"instance {name}", text)
        else:
            yield Finding(
                Kind.STOPS,
                f"instance {name}",
                f"process {guest.pid} runs here, but the configuration has no such instance on"
                " this node",
                "Run gnt-cluster verify with the old software and settle it there",
            )


def _instance(
    facts: Facts, config: Config, item: Instance, guest: Guest | None
) -> Iterator[Finding]:
    subject = f"instance {item.name}"
    hypervisor = item.real_hypervisor
    if hypervisor not in HYPERVISORS:
        yield Finding(Kind.STOPS, subject, f"this software has no hypervisor {hypervisor}")
        return
    running = guest is not None and guest.pid is not None
    if hypervisor != ADOPTS and item.admin_state == "up":
        yield Finding(
            Kind.STOPS,
            subject,
            f"it runs under {hypervisor}, and only guests of {ADOPTS} are adopted while they run",
            f"Shut it down with gnt-instance shutdown {item.name}",
        )
    for index, disk in enumerate(config.disks_of(item)):
        yield from _disk(facts, config, subject, item, index, disk, running)
    if guest is not None and guest.pid is not None:
        yield from _running(facts, config, item, guest)
    elif item.admin_state == "up":
        yield Finding(
            Kind.WARNS,
            subject,
            "it is marked as running, but has no process here",
            "The watcher will start it after the takeover",
        )
    else:
        yield Finding(Kind.KEEPS, subject, "stays down")


def _disk(
    facts: Facts,
    config: Config,
    subject: str,
    item: Instance,
    index: int,
    disk: Disk,
    running: bool,
) -> Iterator[Finding]:
    template = disk.real_template
    if template not in TEMPLATES:
        yield Finding(
            Kind.STOPS, subject, f"disk/{index}: this software has no disk template {template}"
        )
        return
    path = device_path(config, disk, facts.host)
    if path is not None and path not in facts.devices:
        # A disk of an instance that is down may be inactive.
        needed = running or not traits_of(template).mirrored
        yield Finding(
            Kind.STOPS if needed else Kind.KEEPS,
            subject,
            f"disk/{index} ({template}) is missing: there is no {path}"
            if needed
            else f"disk/{index} ({template}) is inactive",
            "Bring it back, or remove the instance with the old software" * needed,
        )


def device_path(config: Config, disk: Disk, host: str) -> str | None:
    """Path of a disk on a node; None for one that needs no path."""
    identity = [str(part) for part in disk.logical_id]
    traits = traits_of(disk.real_template)
    if traits.is_volume:
        return f"/dev/{identity[0]}/{identity[1]}"
    if traits.mirrored:
        node = find_node(config, host)
        places = {} if node is None else annotate.places(config, disk)
        place = places.get(node.uuid) if node is not None else None
        return None if place is None else f"/dev/drbd{place['local-minor']}"
    named = traits.id_parts[-1:] == ("path",) and identity[-1].startswith("/")
    return identity[-1] if named else None


def _running(facts: Facts, config: Config, item: Instance, guest: Guest) -> Iterator[Finding]:
    subject = f"instance {item.name}"
    what = f"{plural(len(item.nics), 'NIC')}"
    text = f"process {guest.pid} is adopted with {plural(len(item.disks), 'disk')} and {what}"
    problem = explain_unfit(guest, config, item)
    if problem:
        yield Finding(Kind.STOPS, subject, problem)
        return
    yield from _record(guest, subject, text)
    for index, tap in sorted(guest.taps.items()):
        if tap not in facts.interfaces:
            yield Finding(
                Kind.WARNS, subject, f"NIC {index}: its network interface {tap} is missing"
            )


def explain_unfit(guest: Guest, config: Config, item: Instance) -> str:
    """Why a running guest does not fit its instance, a sentence; empty when it does."""
    if guest.record is None:
        return ""
    try:
        record = adoption.read(guest.record)
        adoption.adopt(
            record, guest.argv, annotate.instance(config, item), guest.taps, started=guest.started
        )
    except errors.ParseError:
        return ""
    except errors.GanetiError as err:
        return errors.text(err)
    return ""


def _record(guest: Guest, subject: str, text: str) -> Iterator[Finding]:
    restart = f"Restart it: gnt-instance reboot -t hard {guest.name}"
    if guest.record is None:
        yield Finding(Kind.STOPS, subject, "its runtime file is missing", restart)
        return
    try:
        adoption.read(guest.record)
    except errors.ParseError as err:
        yield Finding(Kind.STOPS, subject, f"its runtime file: {errors.text(err)}", restart)
        return
    if not guest.socket:
        yield Finding(Kind.STOPS, subject, "its control socket (.qmp) is missing", restart)
        return
    yield Finding(Kind.KEEPS, subject, text)
