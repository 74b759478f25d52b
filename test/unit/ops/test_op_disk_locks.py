"""Which locks guard a disk, also when it changes its instance while a job waits for them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import op_samples
import pytest

from ganeti import errors
from ganeti.locking.levels import LockLevel
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.ops.targets import disk as disk_target

Edit = Callable[[Config], Config]


def make_attached() -> Config:
    return op_samples.with_instance(op_samples.config(op_samples.node(2)), "web1", "node-2")


def detach(config: Config) -> Config:
    owner = config.instance("web1")
    return config.apply(
        [("instances", owner.uuid, base.replace(owner, disks=()))], [], None, mtime=3.0
    )


def attach_again(config: Config) -> Config:
    owner = config.instance("web1")
    return config.apply(
        [("instances", owner.uuid, base.replace(owner, disks=("disk-web1",)))], [], None, mtime=4.0
    )


def remove(config: Config) -> Config:
    return detach(config).apply([], [("disks", "disk-web1")], None, mtime=4.0)


def take_locks(config: Config, name: str, *edits: Edit | None) -> tuple[list[str], Any]:
    """Locks in the order in which they are requested and released; what the disk is then.

    Each edit happens while the job waits for its next lock.
    """
    ctx = SimpleNamespace(config=config)
    seen: list[str] = []
    ctx.release = lambda level: seen.append(f"-{level.label}")
    todo = list(edits)
    generator = disk_target.lock(ctx, name)  # type: ignore[arg-type]
    try:
        while True:
            need = next(generator)
            seen.append(f"{LockLevel(need.level).label}/{','.join(need.names or ())}")
            edit = todo.pop(0) if todo else None
            if edit is not None:
                ctx.config = edit(ctx.config)
    except StopIteration as end:
        return seen, end.value


def test_an_attached_disk_is_guarded_by_its_instance() -> None:
    seen, disk = take_locks(make_attached(), "web1/0")
    assert seen == ["instance/web1", "disk/disk-web1"]
    assert disk.uuid == "disk-web1"


def test_a_detached_disk_is_guarded_by_itself() -> None:
    seen, disk = take_locks(detach(make_attached()), "disk-web1")
    assert seen == ["disk/disk-web1"]
    assert disk.uuid == "disk-web1"


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ((detach,), ["instance/web1", "disk/disk-web1", "-disk", "-instance", "disk/disk-web1"]),
        (
            (None, detach, attach_again),
            [
                "instance/web1",
                "disk/disk-web1",
                "-disk",
                "-instance",
                "disk/disk-web1",
                "-disk",
                "-instance",
                "instance/web1",
                "disk/disk-web1",
            ],
        ),
    ],
)
def test_locks_are_asked_for_again_when_it_went_elsewhere(edits, expected) -> None:
    seen, disk = take_locks(make_attached(), "disk-web1", *edits)
    assert seen == expected
    assert disk.uuid == "disk-web1"


def test_a_disk_that_is_removed_meanwhile_is_told() -> None:
    with pytest.raises(errors.OpPrereqError, match="was removed while this job waited"):
        take_locks(make_attached(), "disk-web1", remove)


def test_a_reserved_disk_is_not_locked() -> None:
    config = detach(make_attached())
    reserved = base.replace(config.disks["disk-web1"], forthcoming=True)
    config = config.apply([("disks", reserved.uuid, reserved)], [], None, mtime=5.0)
    with pytest.raises(errors.OpPrereqError, match="gnt-disk remove removes"):
        take_locks(config, "disk-web1")
