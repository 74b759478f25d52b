"""Snapshots of instances: their names, of what they can be made, what they forbid. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ganeti import errors
from ganeti.base.text import nearest
from ganeti.config.snapshots import content
from ganeti.hypervisor.abilities import Holding
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model.disk import Disk
from ganeti.model.enums import Consistency
from ganeti.model.ids import DiskUuid, NodeUuid, SnapshotUuid
from ganeti.model.instance import Instance
from ganeti.model.snapshot import FrozenDisk, Snapshot
from ganeti.storage.interface import Snapshotting
from ganeti.storage.registry import TEMPLATES

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,62}")
#: Most snapshots of one instance: each slows the writes of the guest down, and takes room.
MOST = 32


def check_new_name(instance: Instance, name: str) -> None:
    """OpPrereqError for a name that is invalid or taken, or one snapshot too many."""
    if not _NAME.fullmatch(name):
        raise errors.make_invalid_error(
            f"invalid name '{name[:80]}' of a snapshot: letters, digits and ._+- are allowed,"
            " a letter or digit first, 63 at most"
        )
    if any(each.name == name for each in instance.snapshots):
        raise errors.make_exists_error(f"instance {instance.name} has a snapshot '{name}' already")
    if len(instance.snapshots) >= MOST:
        raise errors.make_resources_error(
            f"instance {instance.name} has {MOST} snapshots, which is the limit; remove one first"
        )


def find(instance: Instance, name: str) -> Snapshot:
    """A snapshot by its name or uuid; OpPrereqError when there is none."""
    for each in instance.snapshots:
        if name in (each.name, each.uuid):
            return each
    known = [each.name for each in instance.snapshots]
    raise errors.make_unknown_error(
        f"instance {instance.name} has no snapshot '{name[:80]}'{nearest(name, known)}"
    )


def find_ready(instance: Instance, name: str) -> Snapshot:
    """Like :func:`find`; OpPrereqError also for one whose making did not end."""
    found = find(instance, name)
    if found.creating is not None:
        raise errors.make_state_error(_explain_part(instance, found))
    return found


def draft(
    disks: Sequence[Disk],
    *,
    uuid: SnapshotUuid,
    name: str,
    description: str,
    created: float,
    consistency: Consistency,
    job: int,
    nodes: tuple[NodeUuid, ...] | None = None,
) -> Snapshot:
    """The snapshot that a job makes of some disks: on all their nodes, or only on some (uuids)."""
    return Snapshot(
        uuid=SnapshotUuid(uuid),
        name=name,
        created=created,
        description=description,
        consistency=consistency,
        creating=job,
        disks=tuple(
            FrozenDisk(
                disk=DiskUuid(disk.uuid),
                volume=f"{uuid}.snap{index}",
                size=disk.size,
                nodes=disk.nodes if nodes is None else nodes,
            )
            for index, disk in enumerate(disks)
        ),
    )


def freezes(disk: Disk) -> bool:
    """Whether its template can copy it in a moment."""
    return issubclass(TEMPLATES.get(content(disk).real_template), Snapshotting)


def check_copyable(instance: Instance, disks: Iterable[Disk], *, runs: bool) -> None:
    """Refuse disks of which no copy can be made, or not while the guest runs; OpPrereqError."""
    found = list(disks)
    if not found:
        raise errors.make_invalid_error(f"instance {instance.name} has no disks")
    for disk in found:
        template = content(disk).real_template
        if TEMPLATES.get(template).traits.must_adopt:
            raise errors.make_invalid_error(
                f"{disk.iv_name} of instance {instance.name} is of template {template}: the"
                " cluster does not own such a device, and cannot make a copy beside it"
            )
        if runs and not freezes(disk):
            raise errors.make_state_error(
                f"{disk.iv_name} of instance {instance.name} is of template {template}, of which a"
                " snapshot is a whole copy; stop the instance first"
            )


def must_hold(instance: Instance, disks: Sequence[Disk]) -> bool:
    """Whether a running guest must be paused; OpPrereqError when its hypervisor cannot do that.

    One disk on one node is copied at one moment anyway.
    """
    kind = instance.real_hypervisor
    if issubclass(HYPERVISORS.get(kind), Holding):
        return True
    if len(disks) == 1 and len(disks[0].nodes) <= 1:
        return False
    raise errors.make_state_error(
        f"hypervisor {kind} cannot pause instance {instance.name} while its disks are copied one"
        " after the other; stop the instance first"
    )


def check_none(instance: Instance, purpose: str) -> None:
    """Refuse what would part the disks of an instance from their snapshots; OpPrereqError."""
    if instance.snapshots:
        names = " ".join(each.name for each in instance.snapshots)
        raise errors.make_state_error(
            f"instance {instance.name} has snapshots, which are bound to the disks as they are;"
            f" remove them {purpose}: gnt-instance snapshot remove {instance.name} {names}"
        )


def check_detachable(instance: Instance, disk: Disk) -> None:
    """Refuse to take a disk from an instance while snapshots have a copy of it; OpPrereqError."""
    for each in instance.snapshots:
        if any(frozen.disk == disk.uuid for frozen in each.disks):
            raise errors.make_state_error(
                f"snapshot '{each.name}' of instance {instance.name} has a copy of {disk.iv_name};"
                f" remove it first: gnt-instance snapshot remove {instance.name} {each.name}"
            )


def check_complete(instance: Instance) -> None:
    """Refuse to start a guest on disks that were reverted in part; OpPrereqError."""
    for each in instance.snapshots:
        if each.reverting is not None:
            raise errors.make_state_error(_explain_mixture(instance, each))


def _explain_mixture(instance: Instance, snapshot: Snapshot) -> str:
    return (
        f"job {snapshot.reverting} was interrupted while it reverted instance"
        f" {instance.name} to snapshot '{snapshot.name}'; the disks are a mixture until this"
        f" ends: gnt-instance snapshot revert {instance.name} {snapshot.name}"
    )


def _explain_part(instance: Instance, snapshot: Snapshot) -> str:
    return (
        f"job {snapshot.creating} was interrupted while it made snapshot '{snapshot.name}'; remove"
        f" what is left of it: gnt-instance snapshot remove {instance.name} {snapshot.name}"
    )


def list_interrupted(instance: Instance) -> list[str]:
    """A text for each snapshot that is half made or half copied back, with the command."""
    made = [each for each in instance.snapshots if each.creating is not None]
    reverted = [each for each in instance.snapshots if each.reverting is not None]
    return [
        *(_explain_part(instance, each) for each in made),
        *(_explain_mixture(instance, each) for each in reverted),
    ]
