"""The role of the master where Pacemaker decides: a file of the node, and the quorum of Pacemaker.

Pacemaker runs its resource ``ganeti-master-role`` on one node at a time. The start of the resource
makes the file ``/run/ganeti/master-grant`` there, and its stop removes it when no master daemon
runs any more. Without the file no master begins or goes on. A reboot removes it, too.

The file has the newest claim of this node and the moment when its lease ends, on the clock that
counts from the boot: ``7 node1.example.com 81234.5``. Before a claim it is empty.

A renewal needs the file and quorum. So a master that is cut off ends with its lease, whatever
becomes of Pacemaker there.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
from collections.abc import Callable, Iterator
from typing import Final

from ganeti import errors
from ganeti.base import files
from ganeti.base.clock import SYSTEM, Clock, Deadline
from ganeti.net import pacemaker
from ganeti.paths import Paths
from ganeti.recovery.role import Claim, Record, read_claim

_REFUSAL: Final = (
    f"Pacemaker decides about the master, and does not run {pacemaker.AGENT} on this node: move"
    " that resource here (pcs resource move)"
)
#: A claim, and when its lease ends.
_CONTENT: Final = re.compile(r"([0-9]+ [^ ]+) ([0-9]+\.[0-9]+)")
#: Longest content in bytes.
_MOST: Final = 1000


class Grant:
    """The file by which Pacemaker lets this node have the role. Safe between processes.

    Who reads or writes has the file locked, for some microseconds. Daemons that are not root can
    write into its directory, so a file of another user is none.
    """

    def __init__(self, paths: Paths, clock: Clock = SYSTEM) -> None:
        self._path = paths.master_grant
        self._clock = clock

    def give(self) -> None:
        """Let this node have the role from now on. Idempotent."""
        with self._open() as opened:
            if opened is not None:
                return
        files.ensure_dir(self._path.parent, 0o775)
        files.remove(self._path)  # what others than root have put there
        with contextlib.suppress(FileExistsError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            os.close(os.open(self._path, flags, 0o600))

    def revoke(self) -> bool:
        """Nobody on this node can claim or renew the role from now on. Idempotent.

        Returns whether somebody had the role.
        """
        with self._open() as opened:
            if opened is None:
                return False
            self._path.unlink()
            try:
                return self._read_record(opened).holder is not None
            except errors.RemoteError:
                return True

    def read(self) -> Record | None:
        """The claims of this node; None: Pacemaker does not let it have the role.

        Raises:
            RemoteError: the file is damaged.
        """
        with self._open() as opened:
            return None if opened is None else self._read_record(opened)

    def change(self, allow: Callable[[Record], bool], claim: Claim, seconds: int) -> bool:
        """Write a claim with a lease if the content now allows it; else False."""
        with self._open() as opened:
            if opened is None or not allow(self._read_record(opened)):
                return False
            text = f"{claim} {self._clock.monotonic() + seconds!r}"
            os.ftruncate(opened, 0)
            os.pwrite(opened, text.encode(), 0)
            return True

    @contextlib.contextmanager
    def _open(self) -> Iterator[int | None]:
        """A descriptor of the locked file; None when there is none."""
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as err:
            if err.errno not in (errno.ENOENT, errno.ELOOP):
                raise
            yield None
            return
        try:
            is_own = os.fstat(fd).st_uid == os.geteuid()
            if is_own:
                fcntl.flock(fd, fcntl.LOCK_EX)
            yield fd if is_own and os.fstat(fd).st_nlink else None
        finally:
            os.close(fd)

    def _read_record(self, fd: int) -> Record:
        text = os.pread(fd, _MOST, 0).decode(errors="replace")
        if not text:
            return Record()
        match = _CONTENT.fullmatch(text)
        if match is None:
            raise errors.RemoteError(f"{self._path} is damaged: {text[:60]!r}")
        last = read_claim(match[1])
        return Record(last, last if self._clock.monotonic() < float(match[2]) else None)


class PacemakerRole:
    """Implements :class:`~ganeti.recovery.role.RoleStore` for one node. Thread-safe.

    A claim with ``force`` needs neither the file nor quorum: an administrator decides alone.
    """

    def __init__(self, paths: Paths, clock: Clock = SYSTEM) -> None:
        self._grant = Grant(paths, clock)

    @property
    def name(self) -> str:
        return "Pacemaker"

    def read(self, end: Deadline) -> Record:
        if self._grant.read() is not None:
            _check_quorum(end)
        return self._grant.read() or Record(refusal=_REFUSAL)

    def claim(
        self, seen: Record, claim: Claim, seconds: int, end: Deadline, *, force: bool = False
    ) -> int | None:
        if force:
            self._grant.give()
        else:
            _check_quorum(end)

        def allow(now: Record) -> bool:
            return now.last == seen.last and (force or now.holder == seen.holder)

        return seconds if self._grant.change(allow, claim, seconds) else None

    def renew(self, claim: Claim, seconds: int, end: Deadline) -> int | None:
        found = self._grant.read()
        if found is None or found.holder != claim:
            return None
        _check_quorum(end)
        kept = self._grant.change(lambda now: now.holder == claim, claim, seconds)
        return seconds if kept else None

    def release(self, claim: Claim, end: Deadline) -> None:
        self._grant.change(lambda now: now.holder == claim, claim, 0)

    def close(self) -> None:
        return


def _check_quorum(end: Deadline) -> None:
    """Raise RemoteError unless this node is in the part of Pacemaker that has quorum."""
    if not pacemaker.has_quorum(end.left):
        raise errors.RemoteError("this node is in a part of Pacemaker without quorum")
