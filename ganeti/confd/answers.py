"""The answer to each kind of request, from a configuration. Pure.

Secrets are replaced by ``<redacted>``, as packets are signed but not encrypted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from ganeti.base import json_pointer
from ganeti.base.json_types import JsonObject
from ganeti.confd.messages import PROTOCOL, Fault, Kind, Reply, Request, Status
from ganeti.config import drbd, redaction
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.instance import Instance
from ganeti.model.node import Node

#: Keys of a query that is an object.
_LINK, _IP, _IPS, _FIELDS = "0", "1", "2", "3"
#: Roles of nodes.
MASTER, CANDIDATE, OFFLINE, DRAINED, REGULAR = range(5)

_UNKNOWN = Reply(status=Status.ERROR, answer=Fault.UNKNOWN_ENTRY)
_WRONG = Reply(status=Status.ERROR, answer=Fault.ARGUMENT)
#: Of a node without configuration.
DISABLED = Reply(status=Status.ERROR, answer=Fault.INTERNAL)


def answer(view: View | None, request: Request) -> Reply:
    """The reply to a request; ``view`` is None on a node that has no configuration."""
    if request.protocol != PROTOCOL:
        return Reply(status=Status.ERROR, answer=f"only protocol {PROTOCOL} is known")
    if request.type not in _ANSWERS:
        text = f"there is no request of type {request.type}"
        return Reply(status=Status.NOT_IMPLEMENTED, answer=text)
    return DISABLED if view is None else _ANSWERS[request.type](view, request.query)


class View:
    """A configuration with the indices that answers need."""

    def __init__(self, config: Config) -> None:
        self.config = config

    @property
    def cluster_serial(self) -> int:
        return self.config.cluster.serial_no

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """By name."""
        return {node.name: node for node in self.config.nodes.values()}

    @cached_property
    def instances(self) -> dict[str, Instance]:
        """By name and by UUID."""
        found: dict[str, Instance] = {item.uuid: item for item in self.config.instances.values()}
        return found | {item.name: item for item in found.values() if item.name}

    @cached_property
    def links(self) -> dict[str, dict[str, Instance]]:
        """Link -> address -> the instance whose NIC has it."""
        config = self.config
        found: dict[str, dict[str, Instance]] = {}
        for item in config.instances.values():
            node = config.nodes.get(item.primary_node)
            for nic in item.nics:
                if nic.ip and node is not None:
                    params = config.nicparams_for(nic.nicparams, nic.network, node.group)
                    found.setdefault(str(params["link"]), {})[nic.ip] = item
        return found

    @property
    def default_link(self) -> str:
        return str(self.config.cluster.nicparams.get("default", {}).get("link", ""))

    @cached_property
    def wire(self) -> JsonObject:
        """The whole as JSON, without secrets."""
        found: JsonObject = redaction.redact(base.to_wire(self.config.data))
        return found

    def ok(self, answer: Any, serial: int | None = None) -> Reply:
        number = self.cluster_serial if serial is None else serial
        return Reply(status=Status.OK, answer=answer, serial=number)


def _ping(view: View, _query: object) -> Reply:
    return view.ok(view.config.data.version)


def _node_role(view: View, query: object) -> Reply:
    if not isinstance(query, str):
        return _WRONG
    node = view.nodes.get(query)
    return _UNKNOWN if node is None else view.ok(_role(view.config, node), node.serial_no)


def _role(config: Config, node: Node) -> int:
    if node.uuid == config.cluster.master_node:
        return MASTER
    if node.master_candidate:
        return CANDIDATE
    if node.drained:
        return DRAINED
    return OFFLINE if node.offline else REGULAR


def _node_ip(view: View, query: object) -> Reply:
    """One address: the node of its instance; a list of addresses: a reply for each."""
    if not isinstance(query, dict):
        return _WRONG
    link = query.get(_LINK)
    link = view.default_link if link is None else link
    one, several = query.get(_IP), query.get(_IPS)
    if not isinstance(link, str) or (one is None) == (several is None):
        return _WRONG
    if one is not None:
        return _answer_by_instance_ip(view, link, one)
    if not isinstance(several, list):
        return _WRONG
    found = [_answer_by_instance_ip(view, link, address) for address in several]
    return view.ok([[int(item.status), item.answer, item.serial] for item in found])


def _answer_by_instance_ip(view: View, link: str, address: object) -> Reply:
    if not isinstance(address, str):
        return _WRONG
    item = view.links.get(link, {}).get(address)
    if item is None:
        return _UNKNOWN
    node = view.config.nodes[item.primary_node]
    return view.ok(node.primary_ip, node.serial_no)


def _master(view: View, query: object) -> Reply:
    config = view.config
    if query is None:
        return view.ok(config.master.name)
    values = (config.master.name, config.cluster.master_ip, config.master.primary_ip)
    fields = query.get(_FIELDS) if isinstance(query, dict) else None
    if not isinstance(fields, list) or not all(field in (0, 1, 2) for field in fields):
        return _WRONG
    return view.ok([values[int(field)] for field in fields])


def _node_ips(view: View, _query: object) -> Reply:
    return view.ok([node.primary_ip for node in view.config.nodes.values()])


def _candidate_ips(view: View, _query: object) -> Reply:
    return view.ok([node.primary_ip for node in view.config.candidates()])


def _instance_ips(view: View, query: object) -> Reply:
    if query is not None and not isinstance(query, str):
        return _WRONG
    return view.ok(sorted(view.links.get(query or view.default_link, {})))


def _minors(view: View, query: object) -> Reply:
    """``[node, minor, instance, disk, role, peer]`` of each DRBD disk of a node."""
    if not isinstance(query, str):
        return _WRONG
    node = view.nodes.get(query)
    if node is None:
        return _UNKNOWN
    config = view.config
    found = []
    for disk in drbd.disks(config):
        sides = dict(drbd.minors(disk))
        owner = config.owner(disk.uuid)
        if node.uuid not in sides or owner is None:
            continue
        [peer] = [config.nodes[uuid].name for uuid in sides if uuid != node.uuid]
        role = "primary" if owner.primary_node == node.uuid else "secondary"
        name = f"disk/{owner.disks.index(disk.uuid)}"
        found.append([node.name, sides[node.uuid], owner.name, name, role, peer])
    return view.ok(sorted(found, key=lambda row: int(row[1])), node.serial_no)


def _node_instances(view: View, query: object) -> Reply:
    if not isinstance(query, str):
        return _WRONG
    node = view.nodes.get(query)
    if node is None:
        return _UNKNOWN
    config = view.config
    found = [
        [redaction.redact(base.to_wire(item)) for item in items[node.uuid]]
        for items in (config.primaries, config.secondaries)
    ]
    return view.ok(found, node.serial_no)


def _disks(view: View, query: object) -> Reply:
    if not isinstance(query, str):
        return _WRONG
    item = view.instances.get(query)
    if item is None:
        return _UNKNOWN
    found = [redaction.redact(base.to_wire(disk)) for disk in view.config.disks_of(item)]
    return view.ok(found, item.serial_no)


def _config_value(view: View, query: object) -> Reply:
    if not isinstance(query, str):
        return _WRONG
    try:
        return view.ok(json_pointer.find(view.wire, query))
    except LookupError:
        return _UNKNOWN
    except ValueError:
        return _WRONG


def _collectors(view: View, _query: object) -> Reply:
    return view.ok(view.config.cluster.data_collectors)


_ANSWERS: Mapping[int, Callable[[View, object], Reply]] = {
    Kind.PING: _ping,
    Kind.NODE_ROLE: _node_role,
    Kind.NODE_IP_BY_INSTANCE_IP: _node_ip,
    Kind.CLUSTER_MASTER: _master,
    Kind.NODE_IPS: _node_ips,
    Kind.CANDIDATE_IPS: _candidate_ips,
    Kind.INSTANCE_IPS: _instance_ips,
    Kind.NODE_MINORS: _minors,
    Kind.NODE_INSTANCES: _node_instances,
    Kind.INSTANCE_DISKS: _disks,
    Kind.CONFIG_VALUE: _config_value,
    Kind.DATA_COLLECTORS: _collectors,
}
