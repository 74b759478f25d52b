"""Basics of each node: its version, clock, hypervisors and connections to other nodes."""

from __future__ import annotations

from collections.abc import Collection

from ganeti import constants
from ganeti.base import releases
from ganeti.base.json_types import JsonObject
from ganeti.model.node import Node
from ganeti.ops.verification.disk_parts import table_of
from ganeti.ops.verification.report import Report


def checks(hypervisors: list[str], nodes: list[Node]) -> JsonObject:
    """Return the checks for each node, with their arguments."""
    return {
        "version": None,
        "time": None,
        "hypervisor": hypervisors,
        "node-net-test": [
            [[n.name, n.primary_ip, n.secondary_ip] for n in nodes],
            [n.name for n in nodes],
        ],
    }


def node(
    report: Report,
    item: Node,
    answers: JsonObject,
    times: tuple[float, float],
    silent: Collection[str],
) -> None:
    """Judge what one node has answered.

    Args:
        times: when the nodes were asked and when all had answered, in seconds since 1970.
        silent: names of nodes that did not answer, which is reported elsewhere.
    """
    number, release = answers.get("version") or (None, "")
    _check_version(report, item.name, number, release)
    seconds, micros = answers.get("time") or (0, 0)
    _check_clock(report, item.name, seconds + micros / 1_000_000, times)
    for hypervisor, text in table_of(answers.get("hypervisor")).items():
        if text is not None:
            report.error("ENODEHV", "node", item.name, f"hypervisor {hypervisor}: {text}")
    for other, text in table_of(answers.get("node-net-test")).items():
        if other not in silent:
            report.error("ENODENET", "node", item.name, f"connection to node {other}: {text}")


def _check_version(report: Report, name: str, number: object, release: str) -> None:
    """A node of another version, and how it gets that of the master."""
    if number == constants.PROTOCOL_VERSION:
        if release != constants.RELEASE_VERSION:
            report.warning(
                "ENODEVERSION",
                "node",
                name,
                f"software {release}, the master has {constants.RELEASE_VERSION}",
            )
        return
    text = f"protocol {number}, the master has {constants.PROTOCOL_VERSION}"
    if isinstance(number, int) and releases.read_config_number(number).is_beside(releases.OWN):
        text += (
            f"; run 'gnt-cluster upgrade --to {releases.OWN}' on the master, when version"
            f" {releases.OWN} is installed there"
        )
    report.error("ENODEVERSION", "node", name, text)


def _check_clock(report: Report, name: str, clock: float, times: tuple[float, float]) -> None:
    (before, after), skew = times, constants.MAX_CLOCK_SKEW
    if not before - skew <= clock <= after + skew:
        text = f"its clock differs by {abs(clock - after):.0f} seconds"
        report.error("ENODETIME", "node", name, text)
