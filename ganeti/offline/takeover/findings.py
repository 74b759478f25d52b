"""Findings of a takeover of a node, made from facts: all that it would meet. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ganeti import constants, errors
from ganeti.base.text import plural
from ganeti.config.upgrade import upgrade, versions
from ganeti.model.config import Config
from ganeti.offline.takeover.facts import Facts
from ganeti.offline.takeover.finding import Finding, Kind
from ganeti.offline.takeover.guest_findings import examine_guests

#: Versions of the configuration that are taken over.
OLDEST, NEWEST = 2_160_000, 3_010_000
_MASTER_DAEMONS = ("ganeti-wconfd", "ganeti-luxid")
_VARIANT = "+"


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
    found += examine_guests(facts, config)
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


def find_listeners(listeners: Mapping[int, str], ports: Mapping[str, int]) -> Iterator[Finding]:
    """Programs that hold a port which a daemon of ours needs."""
    for name, port in sorted(ports.items()):
        if port in listeners:
            yield Finding(
                Kind.STOPS,
                f"port {port}",
                f"{name} needs it, but {listeners[port]} listens there",
                "Stop that process",
            )
