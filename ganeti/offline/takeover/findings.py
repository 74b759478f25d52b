"""What a takeover of a node would meet: a list of findings from facts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ganeti import constants, errors
from ganeti.base.text import plural
from ganeti.config.upgrade import upgrade, versions
from ganeti.hypervisor.kvm import adoption
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.offline.takeover.facts import Facts, Guest
from ganeti.ops import annotate
from ganeti.storage.registry import TEMPLATES, traits_of

#: Versions of the configuration that are taken over.
OLDEST, NEWEST = 2_160_000, 3_010_000
#: The hypervisor whose guests go on.
ADOPTS = "kvm"
_MASTER_DAEMONS = ("ganeti-wconfd", "ganeti-luxid")
_VARIANT = "+"


class Kind(StrEnum):
    """What a finding means."""

    #: keeps the takeover from beginning
    STOPS = "stop"
    #: somebody should know it before
    WARNS = "warning"
    #: becomes another
    CHANGES = "change"
    #: continues as it is
    KEEPS = "keep"


@dataclass(frozen=True, slots=True)
class Finding:
    kind: Kind
    #: ``instance web1``, ``cluster``, ...
    subject: str
    text: str
    #: what to do about it
    remedy: str = ""

    def __str__(self) -> str:
        remedy = f". {self.remedy}" if self.remedy else ""
        return f"{self.kind:7} {self.subject}: {self.text}{remedy}"


@dataclass(frozen=True)
class Examination:
    """All findings, and the configuration as it will be; None where there is none or it is bad."""

    findings: tuple[Finding, ...]
    config: Config | None = None
    version: int | None = None

    @property
    def stops(self) -> list[Finding]:
        return [found for found in self.findings if found.kind is Kind.STOPS]


def examine(facts: Facts) -> Examination:
    """Everything about a node on which the other software may run."""
    node = Finding(Kind.STOPS, f"node {facts.host}", "no cluster of Ganeti is here")
    if not facts.cluster:
        return Examination((node,))
    found = [*_cluster(facts), *_daemons(facts), *_files(facts)]
    config: Config | None = None
    version: int | None = None
    if facts.config is not None:
        try:
            version = versions.find_version(facts.config)
            if not OLDEST <= version < NEWEST + 10_000:
                raise errors.ConfigurationError(_explain_version(version))
            upgraded = upgrade.upgrade(facts.config)
            config = upgraded.config
        except errors.GanetiError as err:
            found.append(Finding(Kind.STOPS, "config.data", errors.text(err)))
        else:
            found += _configuration(upgraded, config)
            found += _cluster_wide(facts, config)
    found += _guests(facts, config)
    return Examination(tuple(found), config, version)


def _explain_version(version: int) -> str:
    if version == constants.CONFIG_VERSION:
        return "the cluster is one of this software already"
    return (
        f"it is of version {versions.text(version)}; clusters of {versions.text(OLDEST)} to"
        f" {versions.text(NEWEST)} are taken over while guests run. For others see"
        " ganeti-cfgupgrade, with guests shut down"
    )


# the node --------------------------------------------------------------------------------------


def _cluster(facts: Facts) -> Iterator[Finding]:
    if facts.config_error:
        yield Finding(Kind.STOPS, "config.data", facts.config_error)
    if facts.is_master and facts.config is None and not facts.config_error:
        yield Finding(
            Kind.STOPS,
            "config.data",
            f"it is missing on {facts.host}, which is the master",
            "Copy it from another master candidate",
        )
    if not facts.master:
        yield Finding(
            Kind.STOPS,
            f"node {facts.host}",
            "ssconf_master_node is missing, so nobody knows which node is the master",
            "Run gnt-cluster redist-conf on the master",
        )
    running = [str(job.id) for job in facts.jobs if not job.ended]
    if running and facts.is_master:
        yield Finding(
            Kind.STOPS,
            "jobs",
            f"{', '.join(running)} {'has' if len(running) == 1 else 'have'} not ended",
            "Keep new ones away with gnt-cluster queue drain, and wait for these or cancel them"
            " with gnt-job cancel",
        )
    ended = sum(job.ended for job in facts.jobs)
    if ended:
        yield Finding(Kind.KEEPS, "jobs", f"{plural(ended, 'job')} and the archive can be read on")


def _daemons(facts: Facts) -> Iterator[Finding]:
    for name, pid in sorted(facts.own_daemons.items()):
        yield Finding(
            Kind.STOPS,
            name,
            f"a daemon of this software runs already (process {pid})",
            "ganeti-takeover back goes back; ganeti-takeover run continues",
        )
    if facts.daemons and facts.is_master:
        for name in _MASTER_DAEMONS:
            if name not in facts.daemons:
                yield Finding(
                    Kind.WARNS,
                    name,
                    f"it does not run, although {', '.join(sorted(facts.daemons))} "
                    f"{'does' if len(facts.daemons) == 1 else 'do'}",
                    "Start it, or let prepare stop the rest",
                )
    if facts.daemons:
        names = ", ".join(sorted(facts.daemons))
        yield Finding(Kind.CHANGES, "daemons", f"{names} stop; guests run on")


def _files(facts: Facts) -> Iterator[Finding]:
    for owner in facts.strangers:
        yield Finding(
            Kind.STOPS,
            owner.path,
            f"it belongs to user id {owner.uid}, which this node does not know",
            "Was it copied from another machine? Give it to its owner with chown",
        )
    if facts.mounted:
        yield Finding(
            Kind.STOPS,
            "/var/lib/ganeti",
            "it is a file system of its own, so it cannot be set aside in one step",
            "Copy it to the file system of /var/lib, unmount it, and take it out of /etc/fstab",
        )
    for path in facts.exports:
        yield Finding(
            Kind.WARNS,
            path,
            "this software looks for exports in /srv/ganeti/export only",
            "Move it there when the takeover is done",
        )
    for path in facts.scripts:
        yield Finding(
            Kind.CHANGES,
            path,
            "it is set aside: with this software it would attach all NICs of guests that start,"
            " and it serves no NIC but the one for metadata",
        )
    for name, value in sorted(facts.options.items()):
        yield Finding(
            Kind.WARNS,
            "/etc/default/ganeti",
            f"{name} is set to {value!r}",
            "Keep that when the package asks about the file",
        )


# the configuration -----------------------------------------------------------------------------


def _configuration(upgraded: upgrade.Upgraded, config: Config) -> Iterator[Finding]:
    for change in upgraded.report.changes:
        yield Finding(Kind.CHANGES, "config.data", str(change))
    for path in upgraded.report.unknown:
        yield Finding(
            Kind.STOPS, "config.data", f"{path} is a key that no version knows", "Remove it"
        )
    for text in upgraded.report.warnings:
        yield Finding(Kind.WARNS, "config.data", text)
    for text in upgrade.problems(config):
        yield Finding(Kind.STOPS, "config.data", text, "Repair it with the old software")


def _cluster_wide(facts: Facts, config: Config) -> Iterator[Finding]:
    others = sorted(node.name for node in config.nodes.values() if node.name != facts.host)
    if facts.is_master:
        text = "new certificates for calls between nodes; those of the remote API are kept"
        yield Finding(Kind.CHANGES, "certificates", text)
        for name in others:
            text = f"its certificates are made on {facts.host} and sent to it by ssh"
            yield Finding(Kind.CHANGES, f"node {name}", text)
    missing = {item.os.partition(_VARIANT)[0] for item in config.instances.values() if item.os}
    for name in sorted(missing - set(facts.systems)):
        yield Finding(
            Kind.WARNS,
            f"OS definition {name}",
            "it is in none of the directories where this software looks",
            "Put it into /srv/ganeti/os before an instance is installed again",
        )
    for network in config.networks.values():
        yield Finding(Kind.KEEPS, f"network {network.name}", "continues with its addresses")


# guests ----------------------------------------------------------------------------------------


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


def _guests(facts: Facts, config: Config | None) -> Iterator[Finding]:
    mine = {} if config is None else own_instances(config, facts.host)
    guests = {guest.name: guest for guest in facts.guests}
    if config is not None:
        if find_node(config, facts.host) is None:
            yield Finding(
                Kind.STOPS,
                f"node {facts.host}",
                "the configuration has no node of this name",
                "Is the host name right?",
            )
        for name, item in sorted(mine.items()):
            yield from _instance(facts, config, item, guests.get(name))
    for name, guest in sorted(guests.items()):
        if guest.pid is None or name in mine:
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
    """Where a node has a disk; None for one that needs no path."""
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


def find_listeners(listeners: Mapping[int, str], ports: Mapping[str, int]) -> Iterator[Finding]:
    """Who holds a port that a daemon of ours needs."""
    for name, port in sorted(ports.items()):
        if port in listeners:
            yield Finding(
                Kind.STOPS,
                f"port {port}",
                f"{name} needs it, but {listeners[port]} listens there",
                "Stop that process",
            )
