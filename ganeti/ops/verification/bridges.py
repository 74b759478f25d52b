"""Verify that nodes have the bridges of the instances that may run there. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.base.text import join_names
from ganeti.model.config import Config
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops.planning import disk_reach
from ganeti.ops.steps.running import bridges
from ganeti.ops.verification.report import Report

#: Names of instances by bridge that they need, by uuid of the node.
Users = Mapping[str, Mapping[str, list[str]]]


def checks(config: Config, nodes: Iterable[Node]) -> JsonObject:
    """Return the checks for the nodes of a group; none when no instance needs a bridge there."""
    users = _users(config)
    names = {name for node in nodes for name in users.get(node.uuid, ())}
    return {bridges.CHECK: sorted(names)} if names else {}


def judge(
    report: Report, config: Config, nodes: Iterable[Node], answers: Mapping[str, Mapping[str, Any]]
) -> None:
    """Report each bridge that is missing on a node once, with instances that need it."""
    users = _users(config)
    for node in nodes:
        missing = answers.get(node.uuid, {}).get(bridges.CHECK)
        if isinstance(missing, str):
            report.error("ENODENET", "node", node.name, f"bridges: {missing}")
            continue
        here = users.get(node.uuid, {})
        for name in missing or ():
            if name in here:
                text = (
                    f"bridge {name} is missing, but {join_names(here[name], 3)} may run here;"
                    f" {bridges.remedy(name)}"
                )
                report.error("ENODENET", "node", node.name, text)


def _users(config: Config) -> Users:
    users: dict[str, dict[str, list[str]]] = {}
    for instance in config.instances.values():
        if instance.forthcoming or not instance.nics:
            continue
        for node in _places(config, instance):
            for name in bridges.list_needed(config, instance, node):
                users.setdefault(node.uuid, {}).setdefault(name, []).append(instance.name)
    return users


def _places(config: Config, instance: Instance) -> list[Node]:
    """Nodes that an instance may run on: its own, and with shared disks those of its group."""
    primary = config.nodes.get(instance.primary_node)
    if primary is None:
        return []
    own = set(config.instance_nodes(instance))
    others = disk_reach.list_other_nodes(config, instance)
    return [primary, *(n for n in others if n.uuid in own or n.group == primary.group)]
