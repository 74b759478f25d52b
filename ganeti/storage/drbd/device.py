"""Template ``drbd``: one side of a mirrored disk, on a data volume and a metadata volume.

Each method looks at the minor, asks :mod:`ganeti.storage.drbd.machine` for the steps that lead
to what is wanted, and runs their commands. So all are idempotent, and none depends on what was
called before.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import msgspec

from ganeti import errors
from ganeti.base import typed
from ganeti.base.json_types import JsonObject
from ganeti.rpc.objects import BlockDevStatus, NodeDisk
from ganeti.storage import registry
from ganeti.storage.drbd import metadata, params, plans, tool
from ganeti.storage.drbd.kernel_log import KernelLog
from ganeti.storage.drbd.machine import OWN, SPLIT_BRAIN, Disk, Link, Step, find_fault
from ganeti.storage.drbd.side import Side
from ganeti.storage.drbd.states import Connection, DiskState, Endpoint, Role, Wish, judge_local_disk
from ganeti.storage.interface import ChildPlan, Device, Environment, PlanRequest, Traits

log = logging.getLogger(__name__)

MIB = 1024 * 1024
#: Major number of DRBD devices in the kernel.
_MAJOR = 147
#: Seconds for a peer that refused us at first: it has been told to connect as well.
_SECOND_WAIT = 10
_PAIRED = frozenset({Link.PAIRED})
_DUAL = frozenset({Link.DUAL})
_ALONE = frozenset({Link.ALONE})


class DrbdDevice(Device):
    """One side; ``logical_id`` is [node A, node B, port, minor A, minor B, secret].

    Which side this node is comes in ``dynamic_params``. Methods block for the commands of DRBD,
    each at most two minutes.

    Raises (all methods): BlockDeviceError; where a state is the cause the text ends with the
    command that repairs it.
    """

    traits: ClassVar[Traits] = Traits(
        mirrored=True,
        space_checked_as="lvm-vg",
        nodes_needed=2,
        holds_old_data=True,
        id_parts=("node", "node", "port", "minor", "minor", "secret"),
        built_on="plain",
        overhead=plans.META_SIZE,
    )
    params: ClassVar[type[msgspec.Struct]] = params.DrbdParams

    def __init__(self, disk: NodeDisk, env: Environment) -> None:
        super().__init__(disk, env)
        if len(disk.logical_id) != 6:
            raise errors.BlockDeviceError(
                f"disk {disk.uuid}: a DRBD disk is named by [node, node, port, minor, minor,"
                f" secret], not by {len(disk.logical_id)} parts"
            )
        try:
            self.ends = typed.convert(disk.dynamic_params, _Ends)
        except msgspec.ValidationError as err:
            raise errors.BlockDeviceError(
                f"disk {disk.uuid}: this node is not one of its two nodes ({err})"
            ) from err
        self.minor = self.ends.local_minor

    @property
    def path(self) -> str:
        return self.env.paths.local(f"/dev/drbd{self.minor}")

    # what is wanted, and what is

    def wish(self, children: Sequence[NodeDisk] | None = None) -> Wish:
        """How the minor should be set up, with its own children or with others."""
        data, meta = self._children(children)
        given = self.disk.params
        return Wish(
            minor=self.minor,
            data=data.path,
            meta=meta.path,
            size=self.disk.size,
            local=Endpoint(self.ends.local_ip, self.ends.port),
            remote=Endpoint(self.ends.remote_ip, self.ends.port),
            secret=str(self.disk.logical_id[5]),
            protocol=given.get("protocol", "C"),
            disk_options=tuple(params.disk_options(given)),
            net_options=tuple(
                params.custom("net-custom", given.get("net-custom", ""), params.NET_OPTIONS)
            ),
        )

    def _children(self, children: Sequence[NodeDisk] | None = None) -> tuple[Device, Device]:
        found = self.disk.children if children is None else children
        if len(found) != 2:
            raise errors.BlockDeviceError(
                f"disk {self.disk.uuid}: a DRBD disk lies on a data and a metadata volume, not on"
                f" {len(found)} disks"
            )
        data, meta = (registry.device(child, self.env) for child in found)
        return data, meta

    def _side(self, children: Sequence[NodeDisk] | None = None) -> Side:
        return Side(self.disk.uuid, self.wish(children), self.env.paths)

    # life

    def create(self, size: int, *, info: str = "") -> None:
        """Write empty metadata onto the metadata volume; its data volume must be there, too.

        ``info`` belongs to the volumes. The device is not active afterwards, see :meth:`begin`.

        Raises:
            BlockDeviceError: the minor is in use by somebody else; volumes too small.
        """
        side = self._side()
        state, setup, live = side.observe()
        if state.disk is Disk.FOREIGN:
            raise side.make_taken_error(setup, live)
        metadata.create(side)

    def begin(self, *, on_primary: bool) -> None:
        """First use of a new disk: activate it, and on the primary start the first resync.

        Only metadata that was just made is declared current, so no side that ever had data, or
        that waits for it, is overwritten.
        """
        self.assemble()
        if not on_primary:
            return
        side = self._side()
        with side.lock_minor():
            live = side.observe_live()
            if live.disk is DiskState.INCONSISTENT and not live.connection.is_resync:
                if not side.dialect.is_new(side.wish):
                    raise side.make_unusable_error(live, find_fault(live))
                side.run(side.dialect.force_first_primary(side.wish))
                return
        self.open()

    def remove(self) -> None:
        """Take the device down and forget its metadata; the volumes are removed on their own."""
        self.shutdown()
        side = self._side()
        if side.dialect.has_metadata(side.wish.meta):
            metadata.clear(side.wish.meta)

    def attach(self) -> bool:
        """Whether the disk was made on this node, active or not.

        It is when its metadata volume holds metadata, or its minor is set up for it.
        """
        side = self._side()
        if side.dialect.has_metadata(side.wish.meta) and self._children()[0].attach():
            return True
        return self.is_active()

    def is_active(self) -> bool:
        return self._side().observe()[0].disk in OWN

    def assemble(self) -> None:
        """Attach the volumes and look for the peer; returns without waiting for it.

        The state that is there stays: a device for two primaries stays so, a role stays.
        """
        side = self._side()
        with side.lock_minor():
            state, setup, _live = side.observe()
            wanted = _DUAL if state.link is Link.DUAL else _PAIRED
            side.reach(state, setup, disk=Disk.ATTACHED, links=wanted)
            if state.disk is Disk.ATTACHED:
                side.run(side.dialect.refit(side.wish))

    def shutdown(self) -> None:
        """Take the device down; somebody else's device on the minor is left alone."""
        side = self._side()
        with side.lock_minor():
            state, setup, _live = side.observe()
            if state.disk is Disk.FOREIGN:
                log.warning("minor %d is not of disk %s; left alone", self.minor, self.disk.uuid)
                return
            side.reach(state, setup, disk=Disk.ABSENT)

    def open(self, *, exclusive: bool = True) -> None:
        """Become primary. The kernel refuses data that is not current, and a second primary.

        With ``exclusive`` the peer must not be primary either, even if two may be.
        """
        side = self._side()
        with side.lock_minor():
            state, setup, live = side.observe_active()
            if exclusive and live.peer_role is Role.PRIMARY and state.role is not Role.PRIMARY:
                raise errors.BlockDeviceError(
                    f"disk {self.disk.uuid} is in use on its other node: {live}"
                )
            try:
                side.reach(state, setup, role=Role.PRIMARY)
            except tool.ToolFailure as err:
                raise side.make_unusable_error(live, find_fault(live), errors.text(err)) from err

    def close(self) -> None:
        """Become secondary; fine when the device is not active."""
        side = self._side()
        with side.lock_minor():
            state, setup, _live = side.observe()
            if state.disk in OWN:
                side.reach(state, setup, role=Role.SECONDARY)

    def grow(self, amount: int, *, dry_run: bool = False) -> None:
        """Take ``amount`` MiB more of the volumes, which have grown on both nodes before.

        The size is counted from ``NodeDisk.size``, so that doing it twice grows once. The new
        part is synchronised. On one node is enough: the peer follows.
        """
        if amount < 0:
            raise errors.BlockDeviceError(
                f"disk {self.disk.uuid} cannot shrink by {-amount} MiB: disks can only grow"
            )
        wanted = self.disk.size + amount
        side = self._side()
        live = side.observe_live()
        if self.size() >= wanted * MIB:
            return
        if not live.connection.has_peer:
            raise side.make_unusable_error(
                live, find_fault(live), "a DRBD disk grows only while it is mirrored"
            )
        if live.connection.is_resync:
            raise side.make_unusable_error(live, None, "it cannot grow before it is synchronised")
        if not dry_run:
            side.run(side.dialect.resize(side.wish, wanted))

    def rename(self, new_id: Sequence[str]) -> None:
        """Nothing to do: a device has a number only; its volumes are renamed on their own."""

    # the network

    def connect(self, *, two_primaries: bool) -> None:
        """Look for the peer; BlockDeviceError when the disk is not active here."""
        side = self._side()
        with side.lock_minor():
            state, setup, _live = side.observe_active()
            side.reach(state, setup, links=_DUAL if two_primaries else _PAIRED)

    def disconnect(self) -> None:
        """Disconnect from the peer; no error when the device is not active."""
        side = self._side()
        with side.lock_minor():
            state, setup, _live = side.observe()
            if state.disk in OWN:
                side.reach(state, setup, links=_ALONE)

    def connect_and_wait(self, *, two_primaries: bool, seconds: int) -> None:
        """Look for the peer until it answers; blocks at most ``seconds`` and some more.

        A peer that still had other settings makes both sides give up, so a side that is alone
        tries once more.

        Raises:
            BlockDeviceError: nobody answers, or the two sides refuse each other (split brain).
        """
        side = self._side()
        with KernelLog(self.env.paths, f"resource{self.minor}", self.minor) as kernel:
            self.connect(two_primaries=two_primaries)
            live = side.await_peer(seconds)
            if live.connection.has_peer:
                return
            refused = live.connection is Connection.STANDALONE
            if refused:
                self.connect(two_primaries=two_primaries)
                live = side.await_peer(min(seconds, _SECOND_WAIT))
                if live.connection.has_peer:
                    return
            reason = kernel.reason()
        if refused or reason:
            raise side.make_unusable_error(
                live, SPLIT_BRAIN, reason or "the two sides refuse each other"
            )
        peer = side.wish.remote.word
        raise side.make_unusable_error(
            live, find_fault(live), f"no answer from {peer} within {seconds} s"
        )

    def needs_activation(self) -> bool:
        """Not active, without its own disk, or not looking for the peer."""
        state, _setup, live = self._side().observe()
        if state.disk is not Disk.ATTACHED or not live.disk.has_disk:
            return True
        return live.connection is Connection.STANDALONE or state.link is Link.FOREIGN

    def progress(self, seconds: int) -> tuple[bool, float]:
        """Whether nothing is being synchronised, and percent done (100 when so).

        Blocks at most ``seconds`` for a peer that is looked for. Raises when there is none.
        """
        side = self._side()
        live = side.observe_live()
        if not live.connection.has_peer and live.connection is not Connection.STANDALONE:
            live = side.await_peer(seconds)
        if not live.connection.has_peer:
            raise side.make_unusable_error(live, find_fault(live))
        if live.connection.is_resync:
            return False, live.percent or 0.0
        return True, 100.0

    # other volumes

    def detach_children(self, children: Sequence[NodeDisk]) -> None:
        """Go on without the volumes; a primary works on the peer's disk then.

        Raises:
            BlockDeviceError: it is attached to others than these, or the peer has no good data.
        """
        side = self._side(children)
        with side.lock_minor():
            state, setup, live = side.observe()
            if state.disk is Disk.FOREIGN:
                raise side.make_taken_error(setup, live)
            if state.disk is Disk.ATTACHED:
                side.reach(state, setup, disk=Disk.DISKLESS)

    def attach_children(self, children: Sequence[NodeDisk]) -> None:
        """Give a device without disk new volumes, which the peer then fills."""
        side = self._side(children)
        with side.lock_minor():
            state, setup, _live = side.observe()
            if state.disk is not Disk.DISKLESS:
                raise errors.BlockDeviceError(
                    f"disk {self.disk.uuid} gets no new volumes: minor {self.minor} is {state.disk}"
                )
            metadata.create(side)
            side.run(side.dialect.commands(Step.ATTACH, side.wish, setup))

    # looking

    def size(self) -> int:
        """Size in bytes: of the active device, else of its data volume."""
        file = Path(self.env.paths.local(f"/sys/block/drbd{self.minor}/size"))
        try:
            sectors = int(file.read_text())
        except (OSError, ValueError):
            sectors = 0
        return sectors * 512 if sectors else self._children()[0].size()

    def status(self) -> BlockDevStatus:
        live = self._side().observe_live()
        syncing = live.connection.is_resync
        return BlockDevStatus(
            dev_path=self.path,
            major=_MAJOR,
            minor=self.minor,
            sync_percent=(live.percent or 0.0) if syncing else None,
            estimated_time=live.seconds_left if syncing else None,
            is_degraded=not live.is_mirrored,
            ldisk_status=judge_local_disk(live),
        )

    def pause_resync(self, pause: bool) -> None:
        """Hold up a resync, or go on with it."""
        side = self._side()
        side.observe_live()
        side.run(side.dialect.pause_resync(side.wish, pause=pause))

    # plans

    @classmethod
    def plan(cls, request: PlanRequest) -> tuple[str | int, ...]:
        return plans.logical_id(request)

    @classmethod
    def plan_children(cls, request: PlanRequest) -> tuple[ChildPlan, ...]:
        return plans.children(request)

    @classmethod
    def node_params(cls, values: JsonObject) -> tuple[JsonObject, tuple[JsonObject, ...]]:
        return params.logical(values), params.children(values)


class _Ends(msgspec.Struct, rename="kebab"):
    """``dynamic_params``: addresses and minors as one node sees them."""

    local_ip: str
    remote_ip: str
    port: int
    local_minor: int
    remote_minor: int
