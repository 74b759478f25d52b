"""Changes of the NICs of an instance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from ganeti import constants
from ganeti.model.enums import HotplugAction
from ganeti.model.ids import GroupUuid
from ganeti.model.instance import Instance
from ganeti.model.nic import Nic
from ganeti.opcodes.devices import NicChange, NicParams
from ganeti.opcodes.enums import DdmFull
from ganeti.ops.operation import Context
from ganeti.ops.planning import device_changes, nics
from ganeti.ops.planning.device_changes import Maker, Step
from ganeti.ops.steps.changes.settings_changes import Row
from ganeti.ops.steps.running import hotplug

_ACTIONS = {
    DdmFull.ADD: HotplugAction.ADD,
    DdmFull.REMOVE: HotplugAction.REMOVE,
    DdmFull.MODIFY: HotplugAction.MODIFY,
}


@dataclass
class NicChanges:
    """The NICs afterwards, and the steps that lead there."""

    result: tuple[Nic, ...]
    steps: list[Step[Nic, NicParams]] = field(default_factory=list)


def check(
    ctx: Context,
    instance: Instance,
    changes: Sequence[NicChange],
    *,
    check_conflicts: bool,
) -> NicChanges:
    """Plan changes; addresses are reserved for the job. OpPrereqError, ReservationError."""
    group = ctx.config.nodes[instance.primary_node].group
    maker: Maker[Nic, NicParams] = Maker(
        add=partial(_add, ctx, group, check_conflicts),
        modify=partial(_modify, ctx, group, check_conflicts),
    )
    result, steps = device_changes.apply("NIC", instance.nics, changes, maker, constants.MAX_NICS)
    if steps:
        nics.refuse_twice(result)
    return NicChanges(tuple(result), steps)


def _add(ctx: Context, group: GroupUuid, conflicts: bool, index: int, params: NicParams) -> Nic:
    return nics.make_nic(ctx, index, params, group, check_conflicts=conflicts)


def _modify(
    ctx: Context, group: GroupUuid, conflicts: bool, index: int, nic: Nic, params: NicParams
) -> Nic:
    return nics.change_nic(ctx, index, nic, params, group, check_conflicts=conflicts)


def plug(ctx: Context, instance: Instance, changes: NicChanges) -> None:
    """Change the NICs of the running guest; raises HotplugError."""
    for step in changes.steps:
        hotplug.change_nic(ctx, instance, _ACTIONS[step.action], step.device, step.index)


def rows(changes: NicChanges) -> list[Row]:
    """(What, new value) of each change, for clients."""
    found: list[Row] = []
    for step in changes.steps:
        if step.action is DdmFull.REMOVE:
            found.append((f"nic.{step.index}", "remove"))
        elif step.action is DdmFull.ADD:
            nic = step.new_device
            parts = [f"mac={nic.mac}", f"ip={nic.ip}"]
            parts += [f"{key}={value}" for key, value in sorted(nic.nicparams.items())]
            found.append((f"nic.{step.index}", f"add:{','.join(parts)}"))
        else:
            found += [
                (f"nic.{key}/{step.index}", getattr(step.new_device, key, value))
                for key, value in _list_given(step.params)
            ]
    return found


def _list_given(params: NicParams) -> list[tuple[str, str]]:
    pairs = [(key, getattr(params, key)) for key in NicParams.__struct_fields__]
    return [(key, value) for key, value in pairs if value is not None]
