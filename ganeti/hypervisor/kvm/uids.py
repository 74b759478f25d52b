"""Users of the node that run QEMU with ``security_model`` user or pool.

The pool is that of the cluster (``ssconf_uid_pool``, a range a line). A user id is in use while any
process has it; between the choice and the start of QEMU a lock file ``<run>/uid-pool/<uid>`` holds
it for one start.
"""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Iterator

from ganeti import errors
from ganeti.base import files
from ganeti.hypervisor.kvm import qemu_process
from ganeti.hypervisor.kvm.params import KvmParams
from ganeti.paths import Paths

#: Group of a user id that the node has no name for.
_NOGROUP = 65534


@contextlib.contextmanager
def user_of(params: KvmParams, paths: Paths) -> Iterator[str]:
    """User for QEMU's option ``-runas`` (a name or ``uid:gid``), empty for root.

    One of the pool is nobody else's until the end of the context; QEMU has to have it by then.

    Raises:
        HypervisorError: the pool is empty, cannot be read, or all of it is in use.
    """
    if params.security_model == "user":
        yield params.security_domain
    elif params.security_model == "pool":
        with _try_pool(paths) as uid:
            yield _runas(uid)
    else:
        yield ""


def uid_of(user: str) -> int:
    """Number of what :func:`user_of` gave; HypervisorError when the node does not know it."""
    text = user.partition(":")[0]
    if text.isdigit():
        return int(text)
    try:
        return pwd.getpwnam(text).pw_uid
    except KeyError as err:
        raise errors.HypervisorError(
            f"security_domain '{text}' is not a user of this node; add it with useradd"
        ) from err


@contextlib.contextmanager
def _try_pool(paths: Paths) -> Iterator[int]:
    pool = parse_pool(_read_pool(paths))
    if not pool:
        raise errors.HypervisorError(
            "security_model is pool, but the cluster has no pool of users;"
            " set one with gnt-cluster modify --uid-pool"
        )
    directory = paths.run / "uid-pool"
    files.ensure_dir(directory)
    used = _find_used()
    for low, high in pool:
        for uid in range(low, high + 1):
            if uid in used:
                continue
            lock = files.FileLock(directory / str(uid))
            try:
                lock.acquire(blocking=False)
            except errors.LockError:
                continue
            try:
                if uid in _find_used():
                    # Somebody else's guest got it after the first look.
                    continue
                yield uid
                return
            finally:
                lock.release()
    raise errors.HypervisorError(
        "all users of the cluster's pool run something on this node;"
        " enlarge the pool with gnt-cluster modify --add-uids"
    )


def _read_pool(paths: Paths) -> str:
    path = paths.ssconf("uid_pool")
    try:
        return files.read_text(path)
    except FileNotFoundError:
        return ""
    except OSError as err:
        raise errors.HypervisorError(f"cannot read {path}: {err.strerror}") from err


def parse_pool(text: str) -> list[tuple[int, int]]:
    """``1000-1010`` or ``1020``, a line each; HypervisorError for anything else."""
    found = []
    for line in text.split():
        low, _, high = line.partition("-")
        if not low.isdigit() or not (high or low).isdigit():
            raise errors.HypervisorError(f"the pool of users has '{line}', which is not a range")
        found.append((int(low), int(high or low)))
    return found


def _find_used() -> set[int]:
    """User ids that have a process; one that has ended and was not noticed yet does not count."""
    found = set()
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            # The process may have ended meanwhile.
            with contextlib.suppress(OSError):
                uid = entry.stat().st_uid
                if uid not in found and not qemu_process.is_zombie(int(entry.name)):
                    found.add(uid)
    return found


def _runas(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"{uid}:{_NOGROUP}"
