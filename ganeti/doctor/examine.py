"""All checks of this server, or those that must hold before something is done."""

from __future__ import annotations

from collections.abc import Iterator

from ganeti import constants, errors
from ganeti.doctor.checks import kernel as kernel_checks
from ganeti.doctor.checks import membership as membership_checks
from ganeti.doctor.checks import network as network_checks
from ganeti.doctor.checks import software as software_checks
from ganeti.doctor.checks import storage as storage_checks
from ganeti.doctor.facts import Software, Stage, Wish
from ganeti.doctor.findings import Finding, failures
from ganeti.doctor.looks import kernel, membership, network, software, storage
from ganeti.paths import Paths


def examine_all(where: Paths, wish: Wish, programs: Software) -> Iterator[Finding]:
    """Findings as they are made; ``programs`` was checked before."""
    facts = membership.read(where)
    yield from software_checks.check(programs, wish, facts.stage)
    yield from kernel_checks.check(kernel.read(where, wish), wish)
    yield from network_checks.check(network.read(where, wish), wish)
    yield from storage_checks.check(storage.read(where, wish), wish)
    yield from membership_checks.check(facts)


def before_joining(where: Paths) -> list[Finding]:
    """Failures that would break ``gnt-cluster init`` and ``gnt-node add`` here."""
    programs = software.read(where, imports=False)
    net = network.read(where, Wish(), ask_others=False)
    found = [
        *software_checks.basics(programs),
        *software_checks.check_other_ganeti(programs, Stage.BARE),
        *network_checks.names(net),
        *network_checks.ports(net),
        *storage_checks.space(storage.read(where, Wish())),
    ]
    return failures(found)


def before_cluster(where: Paths, wish: Wish) -> list[Finding]:
    """Failures that would break a new cluster with these settings."""
    found = [
        *kernel_checks.drbd(kernel.read(where, Wish(templates=wish.templates)), wish),
        *storage_checks.volume_group(storage.read(where, wish), wish),
        *network_checks.device(network.read(where, wish, ask_others=False), wish),
    ]
    return failures(found)


def before_running(where: Paths, wish: Wish) -> list[Finding]:
    """Failures that instances of a cluster would have here."""
    machine = kernel.read(where, wish)
    found = [
        *kernel_checks.drbd(machine, wish),
        *kernel_checks.hypervisors(machine),
        *storage_checks.volume_group(storage.read(where, wish), wish),
        *network_checks.bridges(network.read(where, wish, ask_others=False), wish),
    ]
    return failures(found)


def refuse(found: list[Finding]) -> None:
    """Raise when a check has failed.

    Raises:
        OpPrereqError: the text has all that failed, with what to do.
    """
    if found:
        text = "; ".join(finding.line for finding in found)
        raise errors.make_environment_error(text)


def clock(other: str, ahead: float) -> list[Finding]:
    """The problem of the clock of this server, when that of another is so far ahead."""
    finding = network_checks.clock(other, ahead)
    return [] if finding is None or abs(ahead) <= constants.MAX_CLOCK_SKEW else [finding]
