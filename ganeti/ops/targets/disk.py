"""The disk that an operation is about: its lock, and the base of such operations."""

from __future__ import annotations

from typing import Protocol, cast

from ganeti import errors
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.disk import Disk
from ganeti.ops.operation import Context, Finding, Needs, O, Operation, R
from ganeti.ops.targets import instance


def lock(ctx: Context, name: str, *, forthcoming: bool = False) -> Finding[Disk]:
    """Lock an existing disk (by uuid, name or ``instance/index``); returns it as it is then.

    The rule for disks: an attached one is guarded by the lock of its instance, a detached one by
    its own, and operations that attach, detach, remove, grow or rename one disk hold both.
    So its instance cannot change while this holds the locks; if it changed while the job waited,
    the locks are requested again.

    Raises:
        OpPrereqError: there is none, it was removed meanwhile, or it is only reserved (unless
            ``forthcoming``).
    """
    found = ctx.config.disk(name)
    while True:
        owner = ctx.config.owner(found.uuid)
        if owner is not None:
            yield Need(LockLevel.INSTANCE, [owner.handle])
        yield Need(LockLevel.DISK, [found.uuid])
        current, now = ctx.config.disks.get(found.uuid), ctx.config.owner(found.uuid)
        if current is None:
            raise errors.make_unknown_error(
                f"disk '{name}' was removed while this job waited for it"
            )
        if (owner and owner.handle) == (now and now.handle):
            break
        ctx.release(LockLevel.DISK)
        ctx.release(LockLevel.INSTANCE)
    if now is not None:
        instance.check_real(ctx.config, now)
    if current.forthcoming and not forthcoming:
        end = "" if now else "; gnt-disk remove removes what there is of it"
        raise errors.make_state_error(
            f"disk '{name}' is forthcoming: it was reserved, or its creation did not end{end}"
        )
    return current


class _NamesDisk(Protocol):
    disk_name: str


class DiskOperation(Operation[O, R]):
    """An operation on one disk, which it locks."""

    #: as it was when its lock was granted; nobody else changes it after that
    disk: Disk

    def locks(self) -> Needs:
        yield from self.lock_disk()

    def lock_disk(self, *, forthcoming: bool = False) -> Needs:
        """Lock the disk and note it; OpPrereqError as :func:`lock`."""
        name = cast(_NamesDisk, self.op).disk_name
        self.disk = yield from lock(self.ctx, name, forthcoming=forthcoming)
