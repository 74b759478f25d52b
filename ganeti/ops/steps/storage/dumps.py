"""Dumps of disks on their way: both ends are begun, followed and forgotten here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ganeti import errors
from ganeti.model.node import Node
from ganeti.net import cluster_trust
from ganeti.net.cluster_trust import DiskPlace
from ganeti.ops.operation import Context
from ganeti.ops.steps.storage import copy_progress
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import ImportExportOptions, ImportExportStatus, NodeInstance

#: Source or target of a node: kind, and its arguments (see the node calls).
Io = tuple[str, list[Any]]
_MIB = 1024 * 1024


@dataclass(frozen=True)
class Side:
    """One end of a transfer inside of the cluster."""

    node: Node
    instance: NodeInstance
    io: Io


@dataclass
class End:
    """A transfer that was begun on a node."""

    node: Node
    name: str
    what: str
    sends: bool
    last: ImportExportStatus | None = None

    def ask(self, ctx: Context) -> ImportExportStatus:
        """How far it is; waits up to 2 s for news. OpExecError when the node does not know it."""
        [found] = copy_progress.ask_again(
            ctx, lambda: ctx.rpc.call_one(self.node, NodeCalls.impexp_status, [self.name])
        )
        if found is None:
            raise errors.OpExecError(
                f"node {self.node.name} does not know the transfer any more: its daemon was"
                " restarted, which ends all transfers"
            )
        self.last = found
        return found

    @property
    def has_ended(self) -> bool:
        return self.last is not None and self.last.exit_status is not None

    @property
    def failure(self) -> str:
        """Why it failed; empty as long as it did not."""
        return (self.last.error_message if self.last is not None else None) or ""

    def forget(self, ctx: Context) -> None:
        try:
            ctx.rpc.call_one(self.node, NodeCalls.impexp_cleanup, self.name)
        except errors.GanetiError as err:
            ctx.warn(f"{self.node.name} keeps the end of a transfer: {errors.text(err)}")


@contextmanager
def receive(
    ctx: Context, side: Side, options: ImportExportOptions, what: str
) -> Iterator[tuple[End, int]]:
    """A node that waits for a dump, and its port; the transfer is ended at the end."""
    name = ctx.rpc.call_one(
        side.node, NodeCalls.import_start, options, side.instance, what, side.io
    )
    end = End(side.node, name, what, sends=False)
    try:
        port = end.ask(ctx).listen_port
        if port is None:
            raise errors.OpExecError(f"node {side.node.name} waits at no port for {what}")
        yield end, port
    finally:
        end.forget(ctx)


@contextmanager
def send(
    ctx: Context, side: Side, options: ImportExportOptions, place: DiskPlace, what: str
) -> Iterator[End]:
    """A node that sends a dump to a place; the transfer is ended at the end."""
    name = ctx.rpc.call_one(
        side.node,
        NodeCalls.export_start,
        options,
        place.host,
        place.port,
        side.instance,
        what,
        side.io,
    )
    end = End(side.node, name, what, sends=True)
    try:
        yield end
    finally:
        end.forget(ctx)


def copy(ctx: Context, source: Side, target: Side, *, compress: str, what: str) -> None:
    """Copy one dump between two nodes of the cluster; blocks until it has arrived.

    Raises:
        OpExecError: an end failed; the text says which, and why.
        JobCanceled: the user wants no more of it.
    """
    options = ImportExportOptions(compress=compress, magic=cluster_trust.make_magic())
    with receive(ctx, target, options, what) as (receiver, port):
        place = DiskPlace(target.node.secondary_ip, port, options.magic or "")
        with send(ctx, source, options, place, what) as sender:
            follow(ctx, [sender, receiver])


def follow(ctx: Context, ends: Sequence[End]) -> None:
    """Wait until all ends have ended well, and say how far they are; raises as :func:`copy`."""
    begun = ctx.clock.monotonic()
    # both ends of a dump do the same
    shown = [end for end in ends if end.sends] or list(ends)
    lines = {end.name: copy_progress.Progress(end.what, begun) for end in shown}
    while not all(end.has_ended for end in ends):
        for end in ends:
            if end.has_ended:
                continue
            end.ask(ctx)
            if end.failure:
                raise _make_error(ctx, ends)
            if end.name in lines:
                _log_progress(ctx, end, lines[end.name])
        if ctx.job.cancel_asked.is_set():
            raise errors.JobCanceled("the transfer was ended as the user requested")


def _log_progress(ctx: Context, end: End, progress: copy_progress.Progress) -> None:
    """A line when it is time for one, or at the end."""
    done, size = _read_progress(end.last)
    now = ctx.clock.monotonic()
    line = progress.end(done, 0, now) if end.has_ended else progress.make_line(done, size, now)
    if line is not None:
        ctx.log(line)


def _read_progress(status: ImportExportStatus | None) -> tuple[int, int]:
    """Bytes done, and of how many (0: not known)."""
    if status is None or not status.progress_mbytes:
        return 0, 0
    done = int(status.progress_mbytes * _MIB)
    if not status.progress_percent:
        return done, 0
    return done, int(done * 100 / status.progress_percent)


def _make_error(ctx: Context, ends: Sequence[End]) -> errors.OpExecError:
    """Make the error with the texts of all ends; the end that failed by itself tells most."""
    found: list[str] = []
    for end in ends:
        try:
            if not end.has_ended:
                ctx.rpc.call_one(end.node, NodeCalls.impexp_abort, end.name)
                end.ask(ctx)
        except errors.GanetiError as err:
            found.append(f"{end.node.name}: {errors.text(err)}")
            continue
        verb = "sending" if end.sends else "receiving"
        if end.failure:
            found.append(f"{verb} {end.what} on {end.node.name}: {end.failure}")
    return errors.OpExecError(f"the disks were not copied: {'; '.join(found)}")
