"""The request to commit a reservation: it may add what is open, but not change what is reserved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.enums import HypervisorName
from ganeti.model.instance import Instance
from ganeti.model.params import drop_defaults, expand_backend
from ganeti.opcodes.hidden import reveal_all
from ganeti.opcodes.instance_create import OpInstanceCreate

#: Addresses that a NIC got when it was reserved.
_CHOSEN = ("auto", "generate", "pool")


def complete(config: Config, reserved: Instance, op: OpInstanceCreate) -> Instance:
    """The reservation with what the commit adds; disks and nodes stay as they are.

    Raises:
        OpPrereqError: the commit says something else than the reservation.
    """
    known = _Known(reserved)
    os_name = known.value("OS", reserved.os, op.os_type)
    hypervisor = known.value("hypervisor", reserved.hypervisor, op.hypervisor)
    wanted = drop_defaults(expand_backend(op.beparams))
    full = config.beparams(reserved)
    for key, value in wanted.items():
        known.value(f"backend parameter {key}", full.get(key), value)
    private = reveal_all(op.osparams_private)
    if op.tags:
        known.value("set of tags", reserved.tags, tuple(sorted(set(op.tags))))
    _check_nics(known, reserved, op)
    return base.replace(
        reserved,
        os=os_name or "",
        hypervisor=HypervisorName(hypervisor or config.cluster.enabled_hypervisors[0]),
        hvparams=known.mapping("hypervisor parameter", reserved.hvparams, op.hvparams),
        osparams=known.mapping("OS parameter", reserved.osparams, op.osparams),
        osparams_private=known.mapping("OS parameter", reserved.osparams_private, private),
        tags=reserved.tags or tuple(sorted(set(op.tags))),
    )


class _Known:
    """Compares values that are given with those that are reserved."""

    def __init__(self, reserved: Instance) -> None:
        self._handle = reserved.handle

    def value(self, what: str, old: object, new: object) -> Any:
        """The old value, or the new one when there is none; OpPrereqError when they differ."""
        if new is None or new == old:
            return old
        if old in (None, "", ()):
            return new
        raise errors.make_invalid_error(
            f"the {what} of reservation {self._handle} is {_format(old)}, not {_format(new)};"
            f" gnt-instance modify {self._handle} changes it"
        )

    def mapping(
        self, what: str, old: Mapping[str, object], new: Mapping[str, object]
    ) -> JsonObject:
        given = drop_defaults(new)
        return {
            **old,
            **{key: self.value(f"{what} {key}", old.get(key), given[key]) for key in given},
        }


def _format(value: object) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value))
    return str(value)


def _check_nics(known: _Known, reserved: Instance, op: OpInstanceCreate) -> None:
    """NICs may be given again, as old scripts do; OpPrereqError when they differ."""
    if not op.nics:
        return
    known.value("number of NICs", len(reserved.nics), len(op.nics))
    for index, (nic, item) in enumerate(zip(reserved.nics, op.nics)):
        for key in ("mac", "ip"):
            value = getattr(item, key)
            if value not in (None, *_CHOSEN):
                known.value(f"{key} of NIC {index}", getattr(nic, key), value)
        for key, value in drop_defaults(item.own_params()).items():
            known.value(f"{key} of NIC {index}", nic.nicparams.get(key), value)


def check_place(config: Config, reserved: Instance, op: OpInstanceCreate) -> None:
    """Refuse nodes or disks that are not those reserved; OpPrereqError."""
    known = _Known(reserved)
    nodes = [config.nodes[uuid] for uuid in config.instance_nodes(reserved)]
    for node, given in zip(nodes, (op.pnode_uuid or op.pnode, op.snode_uuid or op.snode)):
        if given:
            known.value("node", node.name, config.node(given).name)
    disks = config.disks_of(reserved)
    if disks and op.disk_template is not None:
        known.value("disk template", config.disk_template(reserved), str(op.disk_template))
    if disks and op.disks:
        sizes = tuple(item.size for item in op.disks)
        known.value("list of disk sizes", tuple(disk.size for disk in disks), sizes)
