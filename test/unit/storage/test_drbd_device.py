"""Both sides of a mirrored disk, driven as two node daemons would, on stand-ins for the tools.

What the kernel itself does is tested with real ones in test/hosts.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from storage_nodes import StorageNodes

from ganeti import errors
from ganeti.model.enums import DiskTemplate
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeDisk
from ganeti.storage.drbd import params, tool
from ganeti.storage.drbd.device import DrbdDevice
from ganeti.storage.interface import Environment
from ganeti.storage.registry import default_params, device

SECRET = "0123456789abcdef0123456789abcdef01234567"
ADDRESSES = {"n1": "127.9.0.1", "n2": "127.9.0.2"}
#: Where the other volumes of a replaced disk differ in name.
OTHER = "new-"


def node_disk(
    node: str,
    *,
    minors: tuple[int, int] = (0, 0),
    size: int = 16,
    prefix: str = "",
    secret: str = SECRET,
    port: int = 11000,
    **given: Any,
) -> NodeDisk:
    here = ("n1", "n2").index(node)
    other = ("n2", "n1")[here]
    children = tuple(
        NodeDisk(
            uuid=f"{prefix}{part}",
            dev_type=DiskTemplate.PLAIN,
            size=mib,
            logical_id=("xenvg", f"{prefix}m{minors[here]}_{part}"),
        )
        for part, mib in (("data", size), ("meta", 128))
    )
    return NodeDisk(
        uuid=f"disk-{minors}",
        dev_type=DiskTemplate.DRBD,
        children=children,
        size=size,
        logical_id=("n1", "n2", port, *minors, secret),
        params=params.logical({**default_params()["drbd"], **given}),
        dynamic_params={
            "local-ip": ADDRESSES[node],
            "remote-ip": ADDRESSES[other],
            "port": port,
            "local-minor": minors[here],
            "remote-minor": minors[1 - here],
        },
    )


class Pair:
    """The two sides; ``with pair.enter("n2"):`` the driver runs on that node."""

    def __init__(self, nodes: StorageNodes, monkeypatch: pytest.MonkeyPatch) -> None:
        self.nodes = nodes
        self._patch = monkeypatch

    @contextmanager
    def enter(self, node: str) -> Iterator[Environment]:
        with self._patch.context() as patch:
            patch.setenv("GANETI_ROOTDIR", str(self.nodes.roots[node]))
            yield Environment(Paths(self.nodes.roots[node]))

    def call(self, node: str, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the driver; ``disk_<key>`` change the disk."""
        made = {key[5:]: kwargs.pop(key) for key in list(kwargs) if key.startswith("disk_")}
        with self.enter(node) as env:
            found = device(node_disk(node, **made), env)
            assert isinstance(found, DrbdDevice)
            return getattr(found, method)(*args, **kwargs)

    def create(self, **disk: Any) -> None:
        """A new disk, n1 primary."""
        for node in ("n2", "n1"):
            self.volumes(node, **disk)
            made = {f"disk_{key}": value for key, value in disk.items()}
            self.call(node, "create", disk.get("size", 16), **made)
            self.call(node, "begin", on_primary=node == "n1", **made)

    def volumes(self, node: str, **disk: Any) -> None:
        with self.enter(node) as env:
            for child in node_disk(node, **disk).children:
                device(child, env).create(child.size)

    def state(self, node: str, minor: int = 0) -> str:
        found = self.nodes.mirrors(node)[minor]
        return f"{found.connection} {found.role} {found.disk}"

    def write(self, node: str, data: bytes) -> None:
        with self.nodes.path(node, "drbd0").open("r+b") as disk:
            disk.write(data)

    def read(self, node: str, length: int) -> bytes:
        with self.nodes.path(node, "drbd0").open("rb") as disk:
            return disk.read(length)


def storage(root: Path) -> StorageNodes:
    return StorageNodes(root / "state", {name: root / name for name in ("n1", "n2")})


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pair:
    return Pair(storage(tmp_path), monkeypatch)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[StorageNodes, Path, Path]:
    """Storage with a new disk, where it is, and a copy of it."""
    root = tmp_path_factory.mktemp("drbd")
    nodes = storage(root / "used")
    with pytest.MonkeyPatch.context() as patch:
        Pair(nodes, patch).create()
    subprocess.run(["cp", "-a", "--sparse=always", root / "used", root / "saved"], check=True)
    return nodes, root / "used", root / "saved"


@pytest.fixture
def fresh_pair(saved: tuple[StorageNodes, Path, Path], monkeypatch: pytest.MonkeyPatch) -> Pair:
    """A pair with a new disk, as it was before other tests used it."""
    nodes, used, copy = saved
    shutil.rmtree(used)
    subprocess.run(["cp", "-a", "--sparse=always", copy, used], check=True)
    return Pair(nodes, monkeypatch)


def test_life_of_a_disk(fresh_pair: Pair) -> None:
    assert fresh_pair.state("n1") == "Connected Primary UpToDate/UpToDate"
    assert fresh_pair.state("n2") == "Connected Secondary UpToDate/UpToDate"
    fresh_pair.write("n1", b"of the guest")
    status = fresh_pair.call("n1", "status")
    assert (status.is_degraded, status.sync_percent, status.ldisk_status) == (False, None, 0)
    assert (status.major, status.minor) == (147, 0)
    fresh_pair.call("n1", "close")
    fresh_pair.call("n2", "open")
    assert fresh_pair.read("n2", 12) == b"of the guest"
    with pytest.raises(errors.BlockDeviceError, match="in use on its other node"):
        fresh_pair.call("n1", "open")
    for node in ("n2", "n1"):
        for _twice in range(2):
            fresh_pair.call(node, "shutdown")
            assert fresh_pair.call(node, "is_active") is False
            assert fresh_pair.call(node, "attach") is True
    for node in ("n1", "n2"):
        fresh_pair.call(node, "remove")
        assert fresh_pair.call(node, "attach") is False


def test_everything_done_twice_is_fine(fresh_pair: Pair) -> None:
    for _twice in range(2):
        fresh_pair.call("n1", "assemble")
        fresh_pair.call("n1", "open")
    for _twice in range(2):
        fresh_pair.call("n1", "close")
    for _twice in range(2):
        fresh_pair.call("n1", "disconnect")
    assert fresh_pair.state("n1") == "StandAlone Secondary UpToDate/DUnknown"
    fresh_pair.call("n1", "assemble")
    assert fresh_pair.state("n1") == "Connected Secondary UpToDate/UpToDate"


def test_a_new_disk_is_not_primary_before_somebody_says_so(pair: Pair) -> None:
    for node in ("n1", "n2"):
        pair.volumes(node)
        pair.call(node, "create", 16)
        pair.call(node, "assemble")
    with pytest.raises(errors.BlockDeviceError, match="Need access to UpToDate data"):
        pair.call("n1", "open")
    assert pair.state("n1") == "Connected Secondary Inconsistent/Inconsistent"


def test_old_data_is_never_declared_current(fresh_pair: Pair) -> None:
    fresh_pair.nodes.slow_sync(60)
    fresh_pair.call("n2", "shutdown")
    fresh_pair.call("n2", "remove")
    fresh_pair.call("n2", "create", 16)
    fresh_pair.call("n2", "assemble")
    assert fresh_pair.state("n2") == "SyncTarget Secondary Inconsistent/UpToDate"
    fresh_pair.nodes.cut("n1", "n2")
    with pytest.raises(errors.BlockDeviceError, match="Need access to UpToDate data"):
        fresh_pair.call("n2", "open")


def test_grow_counts_from_the_recorded_size(fresh_pair: Pair) -> None:
    for node in ("n1", "n2"):
        with fresh_pair.enter(node) as env:
            device(node_disk(node).children[0], env).grow(8)
    for _twice in range(2):
        fresh_pair.call("n1", "grow", 8)
        assert {fresh_pair.call(node, "size") for node in ("n1", "n2")} == {24 * 1024 * 1024}
    fresh_pair.nodes.cut("n1", "n2")
    with pytest.raises(errors.BlockDeviceError, match=r"only while it is mirrored.*peer away"):
        fresh_pair.call("n1", "grow", 16)


def test_two_primaries_for_a_migration(fresh_pair: Pair) -> None:
    for node in ("n1", "n2"):
        fresh_pair.call(node, "disconnect")
    fresh_pair.call("n1", "connect", two_primaries=True)
    fresh_pair.call("n2", "connect_and_wait", two_primaries=True, seconds=2)
    fresh_pair.call("n2", "open", exclusive=False)
    assert fresh_pair.state("n1") == "Connected Primary UpToDate/UpToDate"
    assert fresh_pair.state("n2") == "Connected Primary UpToDate/UpToDate"
    fresh_pair.write("n1", b"from one")
    assert fresh_pair.read("n2", 8) == b"from one"
    fresh_pair.call("n1", "close")
    for node in ("n1", "n2"):
        fresh_pair.call(node, "disconnect")
    fresh_pair.call("n1", "connect", two_primaries=False)
    fresh_pair.call("n2", "connect_and_wait", two_primaries=False, seconds=2)
    assert fresh_pair.state("n2") == "Connected Primary UpToDate/UpToDate"


def test_replaced_volumes_are_filled_by_the_peer(fresh_pair: Pair) -> None:
    fresh_pair.write("n1", b"precious")
    fresh_pair.call("n1", "detach_children", node_disk("n1").children)
    assert fresh_pair.state("n1") == "Connected Primary Diskless/UpToDate"
    assert fresh_pair.call("n1", "needs_activation") is True
    assert fresh_pair.call("n1", "status").ldisk_status == 2
    fresh_pair.volumes("n1", prefix=OTHER)
    fresh_pair.call("n1", "attach_children", node_disk("n1", prefix=OTHER).children)
    assert fresh_pair.state("n1") == "Connected Primary UpToDate/UpToDate"
    with pytest.raises(errors.BlockDeviceError, match="in use by another disk"):
        fresh_pair.call("n1", "attach_children", node_disk("n1").children)
    fresh_pair.call("n1", "close", disk_prefix=OTHER)
    fresh_pair.call("n2", "open")
    assert fresh_pair.read("n2", 8) == b"precious"


def test_split_brain_is_named_and_left_alone(fresh_pair: Pair) -> None:
    fresh_pair.nodes.cut("n1", "n2")
    fresh_pair.call("n2", "open")
    fresh_pair.write("n1", b"one")
    fresh_pair.write("n2", b"two")
    fresh_pair.call("n2", "close")
    fresh_pair.nodes.mend("n1", "n2")
    fresh_pair.call("n1", "connect", two_primaries=False)
    with pytest.raises(errors.BlockDeviceError) as caught:
        fresh_pair.call("n2", "connect_and_wait", two_primaries=False, seconds=1)
    text = errors.text(caught.value)
    assert "split brain" in text
    assert "gnt-instance replace-disks -s INSTANCE" in text
    assert fresh_pair.read("n1", 3) == b"one"
    fresh_pair.call("n2", "open")
    assert fresh_pair.read("n2", 3) == b"two"


def test_a_foreign_primary_on_the_minor_is_refused(fresh_pair: Pair) -> None:
    with pytest.raises(errors.BlockDeviceError) as caught:
        fresh_pair.call("n1", "assemble", disk_prefix=OTHER, disk_secret="f" * 40)
    text = errors.text(caught.value)
    assert "minor 0 of this node belongs to disk" in text
    assert "in use by resource0" in text
    assert "nothing was done" in text
    assert fresh_pair.state("n1") == "Connected Primary UpToDate/UpToDate"
    fresh_pair.call("n1", "shutdown", disk_prefix=OTHER, disk_secret="f" * 40)
    assert fresh_pair.state("n1") == "Connected Primary UpToDate/UpToDate"


def test_a_new_disk_gets_no_minor_of_another(fresh_pair: Pair) -> None:
    fresh_pair.volumes("n1", prefix=OTHER)
    with pytest.raises(errors.BlockDeviceError) as caught:
        fresh_pair.call("n1", "create", 16, disk_prefix=OTHER, disk_secret="f" * 40)
    assert "but is in use by resource0" in errors.text(caught.value)
    assert fresh_pair.state("n1") == "Connected Primary UpToDate/UpToDate"


def test_a_failed_tool_is_known_to_the_master() -> None:
    sent = errors.encode(tool.ToolFailure("drbdsetup: no", 10))
    assert sent == ["BlockDeviceError", ["drbdsetup: no"]]


def test_a_foreign_secondary_makes_room_and_is_never_synced_with_ours(fresh_pair: Pair) -> None:
    fresh_pair.write("n1", b"instance one")
    fresh_pair.volumes("n2", prefix=OTHER)
    other = {"disk_prefix": OTHER, "disk_secret": "f" * 40, "disk_port": 11001}
    fresh_pair.call("n2", "shutdown")
    fresh_pair.call("n2", "create", 16, **other)
    fresh_pair.call("n2", "assemble")
    fresh_pair.call("n2", "assemble", **other)
    assert fresh_pair.state("n2") == "WFConnection Secondary Inconsistent/DUnknown"
    assert fresh_pair.state("n1") == "WFConnection Primary UpToDate/DUnknown"
    assert fresh_pair.read("n1", 12) == b"instance one"


def test_same_place_with_another_secret_does_not_connect(fresh_pair: Pair) -> None:
    fresh_pair.call("n2", "assemble", disk_secret="f" * 40)
    assert fresh_pair.state("n2").startswith("StandAlone Secondary")
    assert fresh_pair.state("n1").startswith("StandAlone Primary")


def test_a_failed_step_leaves_nothing_half_made(fresh_pair: Pair) -> None:
    fresh_pair.call("n2", "shutdown")
    fresh_pair.nodes.fail(
        "drbdsetup", "0: Failure: (119) no luck", node="n2", match="attach", code=10
    )
    with pytest.raises(errors.BlockDeviceError, match="no luck"):
        fresh_pair.call("n2", "assemble")
    assert fresh_pair.nodes.mirrors("n2") == {}
    fresh_pair.call("n2", "assemble")
    assert fresh_pair.state("n2") == "Connected Secondary UpToDate/UpToDate"


def test_secret_is_in_no_error_and_no_log(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    pair.nodes.fail("drbdsetup", "resource0: Failure: (102) taken", match="connect", code=10)
    with pytest.raises(errors.BlockDeviceError) as caught:
        pair.create()
    assert "--shared-secret=<redacted>" in errors.text(caught.value)
    assert SECRET not in errors.text(caught.value) + caplog.text
    assert SECRET not in " ".join(tool.hide_secrets([f"--shared-secret={SECRET}"]))


def test_after_a_power_cut_the_disk_comes_back(fresh_pair: Pair) -> None:
    fresh_pair.write("n1", b"acknowledged")
    fresh_pair.nodes.power_cut("n1")
    fresh_pair.call("n2", "open")
    assert fresh_pair.read("n2", 12) == b"acknowledged"
    fresh_pair.nodes.boot("n1")
    assert fresh_pair.call("n1", "needs_activation") is True
    fresh_pair.call("n1", "assemble")
    assert fresh_pair.state("n1") == "Connected Secondary UpToDate/UpToDate"


def test_progress_of_a_resync(fresh_pair: Pair) -> None:
    assert fresh_pair.call("n1", "progress", 1) == (True, 100.0)
    fresh_pair.nodes.slow_sync(60)
    fresh_pair.call("n2", "remove")
    fresh_pair.call("n2", "create", 16)
    fresh_pair.call("n2", "assemble")
    done, percent = fresh_pair.call("n1", "progress", 1)
    assert (done, percent < 50) == (False, True)
    status = fresh_pair.call("n2", "status")
    assert (status.is_degraded, status.ldisk_status) == (True, 3)
    assert 0 < status.estimated_time <= 60
    fresh_pair.call("n1", "pause_resync", True)
    assert fresh_pair.state("n1").startswith("PausedSyncS")
    fresh_pair.call("n1", "pause_resync", False)
    assert fresh_pair.state("n1").startswith("SyncSource")


def test_no_module_is_said(pair: Pair) -> None:
    (pair.nodes.roots["n1"] / "proc/drbd").unlink()
    with pytest.raises(errors.BlockDeviceError, match="modprobe drbd"):
        pair.call("n1", "assemble")


def test_another_version_is_refused(pair: Pair) -> None:
    proc = pair.nodes.roots["n1"] / "proc/drbd"
    proc.write_text("version: 9.2.5 (api:2/proto:118-122)\n")
    with pytest.raises(errors.BlockDeviceError, match=r"DRBD 9.2.5 is loaded.* need 8.4"):
        pair.call("n1", "is_active")


def test_small_metadata_volume_is_refused(pair: Pair) -> None:
    with pair.enter("n1") as env:
        data, meta = node_disk("n1").children
        device(data, env).create(16)
        device(meta, env).create(64)
    with pytest.raises(errors.BlockDeviceError, match="needs 128 MiB"):
        pair.call("n1", "create", 16)
