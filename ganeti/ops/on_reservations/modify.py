"""Change what is reserved: settings, disks, NICs, nodes. Only the record changes."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti import constants, errors
from ganeti.base.json_types import JsonObject
from ganeti.base.text import join_names
from ganeti.config import parameters
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate
from ganeti.model.ids import DiskUuid, NodeUuid
from ganeti.model.instance import Instance, Reservation
from ganeti.model.nic import Nic
from ganeti.model.node import Node
from ganeti.model.params import VALUE_DEFAULT, expand_backend
from ganeti.opcodes.base import changes
from ganeti.opcodes.devices import DiskParams, NicParams
from ganeti.opcodes.hidden import REDACTED, reveal_all
from ganeti.opcodes.instance import OpInstanceSetParams
from ganeti.ops.operation import Finding, FindingOperation, PlannedOperation
from ganeti.ops.planning import (
    checks,
    device_changes,
    disk_layout,
    disk_settings,
    nics,
    reservation_draft,
)
from ganeti.ops.planning.device_changes import Maker
from ganeti.ops.planning.reservation_draft import Drafted
from ganeti.ops.steps.changes.settings_changes import Row, merge
from ganeti.ops.steps.reservations import place
from ganeti.ops.steps.storage import disks as instance_disks

#: Parameters of a change of an instance that a reservation has too.
_POSSIBLE = frozenset(
    {
        "beparams",
        "disk_template",
        "disks",
        "hvparams",
        "nics",
        "os_name",
        "osparams",
        "osparams_private",
        "pnode",
        "pnode_uuid",
    }
)


@dataclass(frozen=True)
class _Plan:
    drafted: Drafted
    #: (what, new value) of each change
    rows: list[Row]


@dataclass(frozen=True)
class _Found:
    instance: Instance
    #: the nodes afterwards, the primary one first; none while it has no place
    nodes: list[Node]


class ReservationModify(
    FindingOperation[OpInstanceSetParams, _Found, list[Row]],
    PlannedOperation[OpInstanceSetParams, _Plan, list[Row]],
):
    """Returns (what, new value) for each change."""

    def find(self) -> Finding[_Found]:
        op, ctx = self.op, self.ctx
        instance = yield from place.forthcoming(ctx, op.instance_name, op.instance_uuid)
        nodes = self._nodes(instance)
        yield from place.lock_nodes(ctx, nodes)
        return _Found(instance, nodes)

    @property
    def instance(self) -> Instance:
        return self.found.instance

    @property
    def nodes(self) -> list[Node]:
        return self.found.nodes

    def _nodes(self, instance: Instance) -> list[Node]:
        """The nodes afterwards, the primary one first; none while it has no place."""
        op, config = self.op, self.ctx.config
        found = [config.nodes[uuid] for uuid in config.instance_nodes(instance)]
        primary, secondary = op.pnode_uuid or op.pnode, op.remote_node_uuid or op.remote_node
        if primary:
            wanted = config.node(primary)
            found = [wanted, *(node for node in found[1:] if node.uuid != wanted.uuid)]
        if secondary:
            found = [*found[:1], config.node(secondary)]
        return found

    # check -------------------------------------------------------------------------------

    def decide(self) -> _Plan:
        ctx, op = self.ctx, self.op
        self._check_request()
        new, rows = self._settings(self.instance)
        new, nic_rows = self._nics(new)
        item, template_rows = self._template(Drafted(new, ctx.config.disks_of(self.instance)))
        item, disk_rows = self._disks(item)
        drafted, node_rows = self._place(item)
        place.check(ctx, self.instance, drafted, ignore_ipolicy=op.ignore_ipolicy)
        return _Plan(drafted, [*rows, *nic_rows, *template_rows, *disk_rows, *node_rows])

    def _check_request(self) -> None:
        op = self.op
        wrong = sorted(changes(op) - _POSSIBLE)
        if op.ext_params:
            wrong.append("ext_params")
        if wrong:
            raise errors.make_state_error(
                f"{join_names(wrong)} cannot be set for {self.instance.handle}: it is forthcoming;"
                f" gnt-instance add --commit {self.instance.handle} creates it"
            )
        if not changes(op) and not (op.remote_node or op.remote_node_uuid):
            raise errors.make_invalid_error(
                "nothing to change: give at least one setting, disk or NIC"
            )

    def _settings(self, old: Instance) -> tuple[Instance, list[Row]]:
        op, ctx = self.op, self.ctx
        values: JsonObject = {}
        rows: list[Row] = []
        if op.beparams:
            values["beparams"] = parameters.change_own_backend(
                ctx.config, old.beparams, op.beparams
            )
            given = expand_backend(op.beparams)
            rows += [(f"be/{key}", value) for key, value in given.items()]
        if op.os_name is not None:
            values["os"] = op.os_name
            rows.append(("os", op.os_name))
        if op.hvparams:
            values["hvparams"] = self._hvparams(old)
            rows += [(f"hv/{key}", value) for key, value in op.hvparams.items()]
        private = reveal_all(op.osparams_private)
        values["osparams"] = merge(old.osparams, op.osparams)
        values["osparams_private"] = merge(old.osparams_private, private)
        twice = sorted(set(values["osparams"]) & set(values["osparams_private"]))
        if twice:
            raise errors.make_invalid_error(
                f"OS parameter '{twice[0]}' is both public and private; reset one of them"
            )
        rows += [(f"os/{key}", value) for key, value in op.osparams.items()]
        rows += [(f"os_private/{key}", REDACTED) for key in private]
        return base.replace(old, **values), rows

    def _hvparams(self, old: Instance) -> JsonObject:
        op, ctx = self.op, self.ctx
        resets = {key for key, value in op.hvparams.items() if value == VALUE_DEFAULT}
        kept = {key: value for key, value in old.hvparams.items() if key not in resets}
        hypervisor = reservation_draft.hypervisor_of(ctx, old)
        os_name = op.os_name or old.os
        values = checks.check_hvparams(ctx, hypervisor, os_name, kept, op.hvparams)
        return {**kept, **values}

    # NICs ----------------------------------------------------------------------------------

    def _nics(self, instance: Instance) -> tuple[Instance, list[Row]]:
        ctx, op = self.ctx, self.op
        if not op.nics:
            return instance, []
        rows: list[Row] = []
        group = self.nodes[0].group if self.nodes else next(iter(ctx.config.groups))
        conflicts = op.conflicts_check

        def add(index: int, params: NicParams) -> Nic:
            return nics.make_nic(ctx, index, params, group, check_conflicts=conflicts)

        def modify(index: int, nic: Nic, params: NicParams) -> Nic:
            return nics.change_nic(ctx, index, nic, params, group, check_conflicts=conflicts)

        result, steps = device_changes.apply(
            "NIC",
            instance.nics,
            op.nics,
            Maker(add=add, modify=modify),
            constants.MAX_NICS,
        )
        for step in steps:
            shown = str(step.action) if step.after is None else f"{step.action}:{step.after.mac}"
            rows.append((f"nic.{step.index}", shown))
        nics.refuse_twice(result)
        return base.replace(instance, nics=tuple(result)), rows

    # disks and nodes -----------------------------------------------------------------------

    def _template(self, item: Drafted) -> tuple[Drafted, list[Row]]:
        """With another template: disks are planned again, their sizes stay."""
        wanted = self.op.disk_template
        if wanted is None:
            return item, []
        template = disk_layout.enabled_template(self.ctx, str(wanted))
        if template is DiskTemplate.DISKLESS and item.disks:
            raise errors.make_invalid_error(
                f"{self.instance.handle} has disks; remove them first with --disk remove"
            )
        reservation = base.replace(
            item.instance.reservation or Reservation(), disk_template=template
        )
        disks = [
            base.replace(disk, dev_type=template, logical_id=(), children=(), nodes=(), params=None)
            for disk in item.disks
        ]
        changed = base.replace(item.instance, reservation=reservation)
        return Drafted(changed, disks), [("disk_template", str(template))]

    def _disks(self, item: Drafted) -> tuple[Drafted, list[Row]]:
        if not self.op.disks:
            return item, []
        rows: list[Row] = []
        template = self._template_of(item)
        nodes = [node.uuid for node in self.nodes]

        def change(index: int, disk: Disk, params: DiskParams) -> Disk:
            reservation_draft.check_spindles(self.ctx.config, index, params, nodes)
            return _change_disk(index, disk, params)

        def add(index: int, params: DiskParams) -> Disk:
            if params.adopt:
                raise errors.make_invalid_error("a disk that exists cannot be reserved")
            if not params.size:
                raise errors.make_invalid_error(
                    f"disk {index} has no size, as in --disk add:size=10G"
                )
            reservation_draft.check_spindles(self.ctx.config, index, params, nodes)
            return reservation_draft.make_unplaced_disk(template, index, params)

        result, steps = device_changes.apply(
            "disk", item.disks, self.op.disks, Maker(add=add, modify=change), constants.MAX_DISKS
        )
        for step in steps:
            shown = str(step.action) if step.after is None else f"{step.action}:{step.after.size}"
            rows.append((f"disk/{step.index}", shown))
        disks = instance_disks.renumber(result)
        owner = base.replace(item.instance, disks=tuple(DiskUuid(disk.uuid) for disk in disks))
        return Drafted(owner, disks), rows

    def _template_of(self, item: Drafted) -> DiskTemplate:
        kinds = [disk.dev_type for disk in item.disks if disk.dev_type is not None]
        wanted = (
            None if item.instance.reservation is None else (item.instance.reservation.disk_template)
        )
        if wanted is DiskTemplate.DISKLESS:
            raise errors.make_invalid_error(
                f"{self.instance.handle} is reserved without disks; choose a template with"
                " --disk-template"
            )
        enabled = self.ctx.config.cluster.enabled_disk_templates
        usable = [name for name in enabled if name != DiskTemplate.DISKLESS]
        return next(iter(kinds), None) or wanted or DiskTemplate(usable[0])

    def _place(self, item: Drafted) -> tuple[Drafted, list[Row]]:
        """The disks on the nodes; those that have their place there keep it."""
        if not self.nodes:
            return item, []
        ctx = self.ctx
        before = [node.uuid for node in self.nodes]
        template = None if not item.disks else self._template_of(item)
        needed = 1 if template is None else place.nodes_needed(template)
        uuids = before[:needed]
        if template is not None:
            layout = disk_layout.layout(ctx, item.instance.handle, template, uuids)
        disks: list[Disk] = []
        for index, disk in enumerate(item.disks):
            if disk.logical_id:
                disks.append(disk_layout.put_on_nodes(ctx, disk, uuids))
                continue
            fresh = disk_layout.disk(ctx, layout, index, reservation_draft.request_of(disk))
            disks.append(base.replace(fresh, uuid=disk.uuid, forthcoming=True))
        primary = self.nodes[0]
        moves = primary.uuid != self.instance.primary_node
        rows: list[Row] = [("primary_node", primary.name)] if moves else []
        placed = base.replace(item.instance, primary_node=NodeUuid(primary.uuid))
        return Drafted(placed, disks), rows

    # run ---------------------------------------------------------------------------------

    def run(self) -> list[Row]:
        place.record(self.ctx, "reservation-modify", self.plan.drafted)
        return self.plan.rows


def _change_disk(index: int, disk: Disk, params: DiskParams) -> Disk:
    """A disk with another size or other settings."""
    wrong = sorted(set(params.to_wire()) - {"size", *disk_settings.KEYS})
    if wrong:
        raise errors.make_invalid_error(
            f"disk {index}: {', '.join(wrong)} cannot be changed; remove the disk and add it again"
        )
    if params.size:
        disk = instance_disks.larger_disk(disk, params.size - disk.size)
    return disk_settings.change(disk, params)
