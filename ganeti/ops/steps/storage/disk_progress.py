"""How far the disks of a running guest are: lines for its user, and an end to one that writes too
fast. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ganeti import errors
from ganeti.base.text import join_names
from ganeti.base.units import format_duration
from ganeti.model.ids import DiskUuid
from ganeti.rpc.objects import DiskProgress

#: Seconds without a byte after which a migration is given up.
STALLED_AFTER = 60.0
_MIB = 1024 * 1024
#: Seconds between two lines: at first, and at most; and the part of the time so far between them.
_SHORTEST, _LONGEST, _OF_ELAPSED = 5.0, 60.0, 0.1
#: The end is nearer when what is left has become less by this part of it, or by this part of what
#: was sent meanwhile: a slow link sends little of a large disk, but sends it once.
_NEARER, _NEARER_BY_SENT = 0.001, 0.1


class Progress:
    """Follows all disks of one guest."""

    def __init__(
        self, names: Mapping[DiskUuid, str], size: int, give_up_after: float, now: float
    ) -> None:
        """``size``: MiB of all of them."""
        self._names = names
        self._size = size * _MIB
        self._give_up_after = give_up_after
        self._begun = self._logged_at = self._moved = self._nearer_at = now
        #: bytes that were done and left when the last line was made
        self._before = (0, 0)
        self._done = -1
        #: the least that was left so far, and what was done then
        self._least: int | None = None
        self._done_at_least = 0
        self._warned = False
        self.is_complete = False

    def make_lines(self, found: Sequence[DiskProgress], now: float) -> list[str]:
        """Lines when it is time for some.

        Raises:
            OpExecError: a disk cannot be sent, nothing was sent for a minute, or the disks did not
                get nearer to the end for too long.
        """
        known = {disk.uuid: disk for disk in found}
        for uuid, name in self._names.items():
            if uuid not in known:
                raise errors.OpExecError(f"{name} is not being sent any more")
            if (reason := known[uuid].error) is not None:
                raise errors.OpExecError(f"{name} was not sent: {reason}")
        done, left = sum(disk.done for disk in found), sum(disk.left for disk in found)
        if self._least is None:
            self._before = (done, done + left)
        if all(known[uuid].ready for uuid in self._names):
            self.is_complete = True
            return [self._summarise(done, now)]
        self._check_stall(done, now)
        return [*self._check_least(done, left, now), *self._describe(done, left, now)]

    @property
    def _name(self) -> str:
        return join_names(sorted(self._names.values()))

    def _summarise(self, done: int, now: float) -> str:
        seconds = now - self._begun
        again = max(0, done - self._size) // _MIB
        text = f" - {self._name}: {self._size // _MIB} MiB in {format_duration(seconds)}"
        return f"{text}, {again} MiB of that again" if again else text

    def _check_stall(self, done: int, now: float) -> None:
        if done != self._done:
            self._done, self._moved = done, now
        if now - self._moved > STALLED_AFTER:
            raise errors.OpExecError(f"nothing was sent for {STALLED_AFTER:.0f} s")

    def _check_least(self, done: int, left: int, now: float) -> list[str]:
        """A line when the end gets no nearer; raises when that was so for too long."""
        if self._is_nearer(done, left):
            self._least, self._done_at_least = left, done
            self._nearer_at, self._warned = now, False
            return []
        idle = now - self._nearer_at
        if idle < self._give_up_after / 4:
            return []
        facts = self._describe_rates(done, left, now)
        if idle >= self._give_up_after:
            raise errors.OpExecError(
                f"the guest writes as fast as its disks are sent: {left // _MIB} MiB are left as"
                f" {format_duration(idle)} ago ({facts}); try a larger --bandwidth or"
                " --give-up-after, or a move without --live"
            )
        if self._warned:
            return []
        self._warned = True
        rest = format_duration(self._give_up_after - idle)
        return [
            f"* the guest writes as fast as its disks are sent ({facts}); given up in {rest} if it"
            " stays so"
        ]

    def _is_nearer(self, done: int, left: int) -> bool:
        if self._least is None:
            return True
        sent = max(done - self._done_at_least, 0)
        return self._least - left > min(self._least * _NEARER, sent * _NEARER_BY_SENT)

    def _describe(self, done: int, left: int, now: float) -> list[str]:
        pause = min(_LONGEST, max(_SHORTEST, (now - self._begun) * _OF_ELAPSED))
        if now - self._logged_at < pause:
            return []
        percent = 100 * (1 - min(left / self._size, 1))
        text = f" - {self._name}: {percent:.0f}%, {self._describe_rates(done, left, now)}"
        sent, written = self._rates(done, left, now)
        if sent > written:
            text += f", {format_duration(left / (sent - written))} left"
        self._logged_at, self._before = now, (done, done + left)
        return [text]

    def _describe_rates(self, done: int, left: int, now: float) -> str:
        sent, written = self._rates(done, left, now)
        text = f"{sent / _MIB:.1f} MiB/s"
        return f"{text}, {written / _MIB:.1f} MiB/s of it again" if written else text

    def _rates(self, done: int, left: int, now: float) -> tuple[float, float]:
        """Bytes in a second since the last line: sent, and to be sent again."""
        seconds = max(now - self._logged_at, 0.001)
        before, total = self._before
        return (done - before) / seconds, (done + left - total) / seconds
