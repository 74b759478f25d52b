"""Restores over the disks of an instance that did not come to their end. Pure."""

from __future__ import annotations

from ganeti import errors
from ganeti.model.backup import UnfinishedRestore
from ganeti.model.instance import Instance


def find(instance: Instance) -> UnfinishedRestore | None:
    """The restore of which the disks have only a part."""
    return instance.backup.restoring if instance.backup is not None else None


def explain(instance: Instance) -> str | None:
    """Explain an unfinished restore, with the commands that repair it; None: there is none."""
    found = find(instance)
    if found is None:
        return None
    words = [f"--backup={found.backup}"]
    if found.disk is not None:
        words.append(f"--restore-disk={found.disk}")
    if found.repository:
        words.append(f"--repository={found.repository}")
    return (
        f"the restore of backup {found.backup} to instance {instance.name} did not end, so the"
        f" disks may have only a part of it; write it again: gnt-backup restore {' '.join(words)}"
        f" {instance.name}; or start the guest with the disks as they are: gnt-instance startup"
        f" --force {instance.name}"
    )


def check_complete(instance: Instance) -> None:
    """Refuse to start a guest on disks that were restored in part; OpPrereqError."""
    found = explain(instance)
    if found is not None:
        raise errors.make_state_error(found)


def combine(known: UnfinishedRestore | None, new: UnfinishedRestore) -> UnfinishedRestore:
    """Return the record of the unfinished restore while ``new`` is written to the disks."""
    if known is None or new.disk is None or known.disk == new.disk:
        return new
    return UnfinishedRestore(backup=known.backup, repository=known.repository)


def subtract(known: UnfinishedRestore | None, disk: int | None) -> UnfinishedRestore | None:
    """Return the record that is left after one disk, or all (None), were written."""
    if known is None or disk is None or known.disk == disk:
        return None
    return known
