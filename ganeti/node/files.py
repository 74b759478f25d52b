"""Node calls about files: distributed files, ssconf, the watcher's pause, finished exports."""

from __future__ import annotations

import grp
import logging
import math
import os
import pwd
import threading
from collections.abc import Callable
from typing import Any

from ganeti import errors
from ganeti.base import files as base_files
from ganeti.base import retry
from ganeti.model import ssconf_keys
from ganeti.net import hosts_file
from ganeti.node import distributed
from ganeti.node.context import NodeContext
from ganeti.rpc.calls.files import FileCalls
from ganeti.rpc.wire import decode_content

log = logging.getLogger(__name__)

#: Seconds to wait for others that write ssconf files.
LOCK_WAIT = 10.0


class Files(FileCalls):
    """Writes what the master distributes, and lists what it has stored here."""

    def __init__(self, context: NodeContext, on_new_master: Callable[[], None]) -> None:
        """``on_new_master``: the ssconf files name another master than before."""
        self._context = context
        self._on_new_master = on_new_master
        self._hosts = threading.Lock()

    def upload_file_single(
        self,
        file_name: str,
        content: list[Any],
        mode: int,
        uid: str,
        gid: str,
        atime: float,
        mtime: float,
    ) -> None:
        """Replace one distributed file atomically; it is on disk when this returns.

        A daemon that is not root leaves owner and group as they are its own.

        Raises:
            FileStoragePathError: not one of the files that may be replaced.
            ParameterError: mode, owner, group or times cannot be used.
            ParseError: the content cannot be decoded.
            GenericError: the file cannot be written.
        """
        file = distributed.find(file_name, self._context.paths)
        bits = distributed.limit_mode(mode, file)
        owner, group = (_owner(uid), _group(gid)) if os.geteuid() == 0 else (-1, -1)
        times = (atime, mtime)
        if not all(math.isfinite(moment) and moment >= 0 for moment in times):
            raise errors.ParameterError(f"{file_name} cannot get the times {times}")
        data = decode_content(content)
        try:
            distributed.replace(file, data, mode=bits, uid=owner, gid=group)
            distributed.stamp(file, *times)
        except OSError as err:
            raise errors.GenericError(f"cannot write {file.path}: {err.strerror}") from err
        log.info("replaced %s", file.path)

    def etc_hosts_modify(self, mode: str, name: str, ip: str) -> None:
        """Change the lines of the cluster in ``/etc/hosts``; on disk when this returns.

        Lines of the administrator stay, and count for the names in them.

        Raises:
            OpPrereqError: root of this node did not agree.
            ParameterError: not the name or the address of a node.
            ParseError: the marks in the file are damaged.
            GenericError: the file cannot be written.
        """
        mark = self._context.paths.hosts_managed
        with self._hosts:
            if not mark.exists():
                raise errors.make_state_error(
                    f"this node does not let the cluster change its hosts file; to allow it:"
                    f" touch {mark}"
                )
            if hosts_file.change(self._context.paths, mode, name, ip):
                log.info("%s %s in %s", mode, name, self._context.paths.hosts)

    def write_ssconf_files(self, values: dict[str, str]) -> None:
        """Replace ssconf files; those that have the wanted content already are left alone.

        Blocks up to 10 s when somebody else is writing them. All values are checked before the
        first is written.

        Raises:
            ConfigurationError: unknown key or too large a value.
            LockError: others did not finish.
            GenericError: a file cannot be written.
        """
        wanted = {key: _ssconf_content(key, value) for key, value in values.items()}
        locks = self._context.paths.locks
        try:
            base_files.ensure_dir(locks, 0o755)
            lock = base_files.FileLock(locks / ssconf_keys.LOCK_NAME, 0o644)
            _acquire(lock, self._context)
            try:
                changed = [key for key in wanted if self._replace_ssconf(key, wanted[key])]
            finally:
                lock.release()
        except OSError as err:
            raise errors.GenericError(
                f"cannot write ssconf files: {err.filename}: {err.strerror}"
            ) from err
        log.info("ssconf: changed %s", ", ".join(changed) or "nothing")
        self._context.on_ssconf()
        if ssconf_keys.MASTER_NODE in changed:
            self._on_new_master()

    def _replace_ssconf(self, key: str, data: bytes) -> bool:
        path = self._context.paths.ssconf(key)
        try:
            if path.read_bytes() == data:
                return False
        except FileNotFoundError:
            pass
        base_files.write_atomic(path, data, mode=ssconf_keys.MODE)
        return True

    def set_watcher_pause(self, until: float | None) -> None:
        """Pause the watcher until a time in seconds since 1970; None lets it run.

        Raises:
            ParameterError: no usable time.
            GenericError: the file cannot be written.
        """
        path = self._context.paths.watcher_pause
        try:
            if until is None:
                base_files.remove(path)
                return
            if not math.isfinite(until) or until < 0:
                raise errors.ParameterError(f"the watcher cannot be paused until {until}")
            base_files.write_atomic(path, f"{int(until)}\n", mode=0o644)
        except OSError as err:
            raise errors.GenericError(f"cannot change {path}: {err.strerror}") from err


def _ssconf_content(key: str, value: str) -> bytes:
    if key not in ssconf_keys.KEYS:
        raise errors.ConfigurationError(f"unknown ssconf file {key[:80]!r}")
    data = ssconf_keys.content(value)
    if len(data) > ssconf_keys.MAX_SIZE:
        raise errors.ConfigurationError(
            f"ssconf_{key} would have {len(data)} bytes, {ssconf_keys.MAX_SIZE} are allowed"
        )
    return data


def _acquire(lock: base_files.FileLock, context: NodeContext) -> None:
    """Take a file lock within a time limit (the kernel has no call for that)."""

    def attempt() -> bool | None:
        try:
            lock.acquire()
        except errors.LockError:
            if context.stopping.is_set():
                raise
            return None
        return True

    if not retry.retry_until(attempt, timeout=LOCK_WAIT, wait=context.stopping.wait):
        raise errors.LockError(f"{lock.path} was not free for {LOCK_WAIT:g} s")


def _owner(name: str) -> int:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError as err:
        raise errors.ParameterError(f"this node has no user {name[:80]!r}") from err


def _group(name: str) -> int:
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError as err:
        raise errors.ParameterError(f"this node has no group {name[:80]!r}") from err
