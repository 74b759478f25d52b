"""LocalNode calls about mirrored disks, on two nodes below temporary roots with stand-in tools."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from local_node import LocalNode
from storage_nodes import StorageNodes

from ganeti import errors
from ganeti.model.enums import DiskTemplate
from ganeti.node.context import NodeContext
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeDisk
from ganeti.storage.drbd import params
from ganeti.storage.registry import default_params

NAMES = ("n1", "n2")
ADDRESSES = ("127.9.1.1", "127.9.1.2")


def disk(node: str, number: int = 0) -> NodeDisk:
    here = NAMES.index(node)
    children = tuple(
        NodeDisk(
            uuid=f"{number}-{part}",
            dev_type=DiskTemplate.PLAIN,
            size=mib,
            logical_id=("xenvg", f"d{number}_{part}"),
        )
        for part, mib in (("data", 8), ("meta", 128))
    )
    return NodeDisk(
        uuid=f"uuid-{number}",
        dev_type=DiskTemplate.DRBD,
        children=children,
        size=8,
        logical_id=("a", "b", 11000 + number, number, number, f"{number}" * 40),
        params=params.logical(default_params()["drbd"]),
        dynamic_params={
            "local-ip": ADDRESSES[here],
            "remote-ip": ADDRESSES[1 - here],
            "port": 11000 + number,
            "local-minor": number,
            "remote-minor": number,
        },
    )


class Two:
    """Two node daemons' calls, and what is below them."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.storage = StorageNodes(root / "state", {name: root / name for name in NAMES})
        self._patch = patch
        self._root = root

    @contextmanager
    def enter(self, name: str) -> Iterator[LocalNode]:
        with self._patch.context() as patch:
            patch.setenv("GANETI_ROOTDIR", str(self._root / name))
            paths = Paths(self._root / name)
            for directory in (paths.data, paths.run, paths.log):
                directory.mkdir(parents=True, exist_ok=True)
            context = NodeContext(paths, f"{name}.example.com")
            try:
                yield LocalNode(context)
            finally:
                context.stopping.set()

    def create(self, number: int = 0) -> None:
        for name in reversed(NAMES):
            with self.enter(name) as node:
                wire = disk(name, number)
                for part in (*wire.children, wire):
                    node.blockdev_create(part, part.size, "web", name == "n1", "", False)


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Two:
    return Two(tmp_path, monkeypatch)


def test_disks_of_an_instance_are_connected_and_watched_together(two: Two) -> None:
    for number in (0, 1):
        two.create(number)
    with two.enter("n1") as node:
        wires = [disk("n1", number) for number in (0, 1)]
        assert node.drbd_wait_sync(wires) == (True, 100.0)
        assert node.drbd_needs_activation(wires) == []
        node.drbd_disconnect_net(wires)
        assert node.drbd_needs_activation(wires) == ["uuid-0", "uuid-1"]
        with pytest.raises(errors.BlockDeviceError) as caught:
            node.drbd_wait_sync(wires)
        assert errors.text(caught.value).count("gnt-instance activate-disks") == 2
        node.drbd_attach_net(wires, False)
        assert node.drbd_wait_sync(wires) == (True, 100.0)
        node.blockdev_shutdown(wires[0])
        assert node.drbd_needs_activation(wires) == ["uuid-0"]
        assert node.blockdev_find(wires[0]) is None
        [(good, text), (fine, status)] = node.blockdev_getmirrorstatus_multi(wires)
    assert (good, fine) == (False, True)
    assert "is not active on this node" in str(text)
    assert status.is_degraded is False  # type: ignore[union-attr]


def test_volumes_are_taken_away_and_given_back(two: Two) -> None:
    two.create()
    with two.enter("n1") as node:
        wire = disk("n1")
        node.blockdev_removechildren(wire, list(wire.children))
        assert node.drbd_needs_activation([wire]) == ["uuid-0"]
        node.blockdev_addchildren(wire, list(wire.children))
        assert node.drbd_wait_sync([wire]) == (True, 100.0)


def test_growing_takes_two_calls(two: Two) -> None:
    two.create()
    for name in NAMES:
        with two.enter(name) as node:
            node.blockdev_grow(disk(name), 8, False, True, False)
    with two.enter("n1") as node:
        assert node.blockdev_getdimensions([disk("n1")]) == [(8 * 1024 * 1024, None)]
        node.blockdev_grow(disk("n1"), 8, False, False, False)
        assert node.blockdev_getdimensions([disk("n1")]) == [(16 * 1024 * 1024, None)]


def test_a_disk_that_cannot_begin_leaves_no_device(two: Two) -> None:
    two.storage.fail("drbdsetup", "0: Failure: (102) no luck", match="connect", code=10)
    with pytest.raises(errors.BlockDeviceError, match="no luck"):
        two.create()
    assert two.storage.mirrors("n2") == {}
    with two.enter("n2") as node:
        node.blockdev_create(disk("n2"), 8, "web", False, "", False)


def test_other_disks_are_refused(two: Two) -> None:
    with two.enter("n1") as node:
        plain = disk("n1").children[0]
        with pytest.raises(errors.BlockDeviceError, match="it is not mirrored"):
            node.drbd_attach_net([plain], False)


def test_helper_list_and_version_are_verified(two: Two) -> None:
    two.create()
    asked: dict[str, Any] = {"drbd-helper": None, "drbd-list": None, "drbd-version": None}
    with two.enter("n1") as node:
        assert node.drbd_helper() == "/bin/true"
        assert node.node_verify(asked, "cluster", {}) == {
            "drbd-helper": (True, "/bin/true"),
            "drbd-list": [0],
            "drbd-version": "8.4.11",
        }
        for file in ("proc/drbd", "sys/module/drbd/parameters/usermode_helper"):
            (two.storage.roots["n1"] / file).unlink()
        answers = node.node_verify(asked, "cluster", {})
    assert answers["drbd-helper"][0] is False
    assert "modprobe drbd" in answers["drbd-list"]
