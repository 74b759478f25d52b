"""Verify that nodes have the same OS definitions, and that these can be used. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.base.text import join_names
from ganeti.model.config import Config
from ganeti.model.node import Node
from ganeti.ops.verification.report import Report

CHECK = "oslist"
#: Members of answers that must be alike: key, and name for people.
_ALIKE = (
    ("api_versions", "API versions"),
    ("variants", "variants"),
    ("parameters", "parameters"),
)


def judge(
    report: Report,
    config: Config,
    nodes: Iterable[Node],
    answers: Mapping[str, Mapping[str, object]],
) -> None:
    """Compare each node with the first one that has an OS; blacklisted ones do not count."""
    listed: dict[str, dict[str, JsonObject]] = {}
    for node in nodes:
        answer = answers.get(node.uuid, {}).get(CHECK)
        if not node.vm_capable or answer is None:
            continue
        if not isinstance(answer, list):
            report.error("ENODEOS", "node", node.name, f"OS definitions: {answer}")
            continue
        listed[node.name] = _select_first(answer, config.cluster.blacklisted_os)
    for name in sorted({name for found in listed.values() for name in found}):
        _compare(report, name, {node: found.get(name) for node, found in listed.items()})


def _select_first(answer: list[Any], without: Iterable[str]) -> dict[str, JsonObject]:
    """By name; a definition that comes later on the search path is not used."""
    skipped = set(without)
    found: dict[str, JsonObject] = {}
    for item in answer:
        if item["name"] not in skipped:
            found.setdefault(item["name"], item)
    return found


def _compare(report: Report, name: str, found: Mapping[str, JsonObject | None]) -> None:
    having = [node for node, item in found.items() if item is not None]
    good = {node: item for node, item in found.items() if item is not None and item["valid"]}
    for node, item in found.items():
        if item is None:
            text = f"OS {name} is missing, but {join_names(having, 3)} {_have(having)} it"
            report.error("ENODEOS", "node", node, text)
        elif not item["valid"]:
            text = f"OS {name} in {item['path']} cannot be used: {item['diagnose']}"
            report.error("ENODEOS", "node", node, text)
    if not good:
        return
    reference, first = next(iter(good.items()))
    for node, item in good.items():
        for key, what in _ALIKE:
            here, there = (sorted(_names(each[key])) for each in (item, first))
            if here != there:
                text = (
                    f"{what} of OS {name} are {_format(here)} here, but {_format(there)} on node"
                    f" {reference}"
                )
                report.error("ENODEOS", "node", node, text)


def _names(values: Iterable[object]) -> Iterable[str]:
    """A parameter is a name and a description, which may differ."""
    return (str(value[0] if isinstance(value, list | tuple) else value) for value in values)


def _format(values: list[str]) -> str:
    return join_names(values) or "none"


def _have(nodes: list[str]) -> str:
    return "has" if len(nodes) == 1 else "have"
