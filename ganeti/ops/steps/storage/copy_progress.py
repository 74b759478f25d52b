"""Copies of disks' content: waiting for their end, and saying how far they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ganeti import errors
from ganeti.base.units import format_duration
from ganeti.model.node import Node
from ganeti.ops.operation import Context
from ganeti.rpc.calls import NodeCalls

T = TypeVar("T")

MIB = 1024 * 1024
#: Seconds between two lines: at first, and at most.
_SHORTEST, _LONGEST = 5.0, 60.0
#: A part of the time so far after which the next line comes.
_OF_ELAPSED = 0.1
#: Questions without an answer, in a row, after which the wait ends, and seconds between them.
_FAILED_CALLS, RETRY = 6, 5.0


class Progress:
    """Lines about a long work on a disk: every 5 s, later every minute. Pure."""

    def __init__(self, name: str, now: float) -> None:
        self._name = name
        self._begun = now
        self._logged = (0, now)

    def make_line(self, done: int, size: int, now: float) -> str | None:
        """A line when it is time for one: percent, rate since the last one, time left.

        ``done`` and ``size`` are bytes; nothing is logged while the size is not known (0).
        """
        before, then = self._logged
        elapsed = now - self._begun
        pause = min(_LONGEST, max(_SHORTEST, elapsed * _OF_ELAPSED))
        if done >= size or now - then < pause:
            return None
        self._logged = (done, now)
        rate = (done - before) / MIB / (now - then)
        text = f" - {self._name}: {100 * done / size:.0f}%, {rate:.1f} MiB/s"
        left = elapsed / done * (size - done) if done else None
        return text if left is None else f"{text}, {format_duration(left)} left"

    def end(self, size: int, zeros: int, now: float, skipped: str = "of zeros skipped") -> str:
        """The line at the end; ``skipped`` says what was not written, and why."""
        seconds = now - self._begun
        text = f" - {self._name}: {size // MIB} MiB in {format_duration(seconds)}"
        copied = (size - zeros) / MIB
        if copied >= 1 and seconds > 0:
            text += f", {copied / seconds:.1f} MiB/s"
        return f"{text}, {zeros // MIB} MiB {skipped}" if zeros >= MIB else text


def follow(
    ctx: Context, node: Node, copy: str, name: str, *, skipped: str = "of zeros skipped"
) -> None:
    """Wait until a copy that was begun on a node has ended; ``name`` is that of the disk.

    ``skipped`` says in the last line what was not written. There is none when nothing was copied.

    Raises:
        JobCanceled: the user canceled the job; the caller's undo ends the copy.
        GanetiError: the copy failed, or the node does not answer any more.
    """
    progress = Progress(name, ctx.clock.monotonic())
    while True:
        found = ask_again(ctx, lambda: ctx.rpc.call_one(node, NodeCalls.copy_status, copy))
        now = ctx.clock.monotonic()
        if found.ended:
            if found.size:
                ctx.log(progress.end(found.size, found.zeros, now, skipped))
            return
        if ctx.job.cancel_asked.is_set():
            raise errors.JobCanceled(f"{name}: the user canceled the job")
        line = progress.make_line(found.done, found.size, now)
        if line is not None:
            ctx.log(line)


def ask_again(ctx: Context, ask: Callable[[], T]) -> T:
    """Return the answer of a node, also when some questions in a row have no answer."""
    failed = 0
    while True:
        try:
            return ask()
        except errors.RpcError as err:
            failed += 1
            if failed >= _FAILED_CALLS or ctx.job.stop_requested():
                raise
            ctx.warn(f"no news of the copy, asking again: {errors.text(err)}")
            ctx.job.cancel_asked.wait(RETRY)
