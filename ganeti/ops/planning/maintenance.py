"""Record of a node in maintenance: whether it was drained, and which instances left it. Pure.

It is in the configuration, so that another master brings them back as well.
"""

from __future__ import annotations

from collections.abc import Iterable

from ganeti.base.json_types import JsonObject
from ganeti.config.changes import Draft
from ganeti.model.config import Config
from ganeti.model.node import Node
from ganeti.placement.agenda import Entry


def set_drained(config: Config, nodes: Iterable[Node], now: float, *, drained: bool) -> Config:
    """The configuration as it would be with these nodes drained, or not."""
    draft = Draft(config, now)
    for node in nodes:
        draft.update(node, drained=drained)
    return draft.result()


def make_record(config: Config, node: Node, entries: Iterable[Entry]) -> JsonObject:
    """Make the record of a node; entries that it has already stay."""
    before = node.maintenance or {"drained": node.drained, "instances": {}}
    known = dict(before["instances"])
    for entry in entries:
        if node.name not in entry.before:
            continue
        uuid = config.instance(entry.instance).uuid
        home = known.get(uuid, {}).get("home") or _uuids(config, entry.before)
        known[uuid] = {"home": home, "away": _uuids(config, entry.after)}
    return {"drained": before["drained"], "instances": known}


def _uuids(config: Config, names: Iterable[str]) -> list[str]:
    return [config.node(name).uuid for name in names]


def homes(config: Config, nodes: Iterable[Node]) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Old nodes of instances that come back, by instance; and those that stay, with the reason.

    An instance that was moved by somebody else since, or removed, does not come back.
    """
    found: dict[str, list[str]] = {}
    stay: dict[str, str] = {}
    for node in nodes:
        for uuid, record in (node.maintenance or {}).get("instances", {}).items():
            item = next((one for key, one in config.instances.items() if key == uuid), None)
            if item is None or item.handle in found:
                continue
            now = list(config.instance_nodes(item))
            if now == record["home"]:
                continue
            if now != record["away"]:
                stay[item.handle] = "it was moved by somebody else since"
            elif any(one not in config.nodes for one in record["home"]):
                stay[item.handle] = "a node that it came from was removed"
            else:
                found[item.handle] = [config.node(one).name for one in record["home"]]
    return found, stay
