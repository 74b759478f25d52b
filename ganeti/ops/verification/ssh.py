"""Verify who may log in to nodes as root, where the cluster manages SSH. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.model.config import Config
from ganeti.model.node import Node
from ganeti.net.ssh_files import identify
from ganeti.ops.planning import ssh_keys
from ganeti.ops.planning.ssh_keys import Keys
from ganeti.ops.verification.report import Report

SETUP, CLUTTER = "ssh-setup", "ssh-clutter"


def checks(config: Config, stored: Keys, *, clutter: bool) -> JsonObject:
    """Return the checks for nodes; ``stored`` are the keys that the master knows."""
    plan = ssh_keys.decide(config, stored, {})
    names = {
        identify(key): config.nodes[uuid].name for uuid, keys in plan.public.items() for key in keys
    }
    allowed = {names[identify(key)]: key for key in plan.allowed}
    refused = {names.get(identify(key), "a node"): key for key in plan.refused}
    asked: JsonObject = {SETUP: [allowed, refused]}
    if clutter:
        in_use = {config.nodes[uuid].name: keys[0] for uuid, keys in plan.public.items()}
        asked[CLUTTER] = in_use
    return asked


def node(report: Report, item: Node, answers: Mapping[str, Any]) -> None:
    for check in (SETUP, CLUTTER):
        answer = answers.get(check) or []
        for text in [answer] if isinstance(answer, str) else answer:
            report.error("ENODESSH", "node", item.name, text)
