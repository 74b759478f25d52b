"""Real chroots on file systems in files: what the common suite cannot ask."""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trees
from rack import Rack, make_rack

from ganeti import errors
from ganeti.base import process, retry
from ganeti.hypervisor import mounts, occupants, root_fs
from ganeti.hypervisor.abilities import Ballooning, Hotpluggable, Migratable
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.model.enums import HypervisorName, RunState

pytestmark = [pytest.mark.root, pytest.mark.together("mounts")]


@pytest.fixture
def chroot(tmp_path: Path) -> Iterator[Rack]:
    trees.need()
    made = make_rack(HypervisorName.CHROOT, tmp_path)
    yield made
    made.close()
    assert mounts.tree(tmp_path, mounts.read()) == []


def point(rack: Rack, name: str = "web1.example.com") -> Path:
    return rack.paths.chroot / name


def disk_with(rack: Rack, instance: Any, **programs: str) -> list[AttachedDisk]:
    """A disk of which some programs differ; ``_`` stands for ``/`` and ``-`` in their names."""
    disks = rack.disks(instance)
    names = {"script": "ganeti-chroot", "daemon": "bin/daemon"}
    changed = {names[name]: text for name, text in programs.items()}
    trees.image(Path(disks[0].path), {**trees.OBEDIENT, **changed})
    return disks


def test_script_is_run_with_start_and_stop_once(chroot: Any) -> None:
    instance = chroot.instance()
    disks = chroot.start(instance)
    calls = point(chroot) / "calls"
    assert calls.read_text() == "start\n"
    chroot.driver.reboot(instance, disks)
    assert calls.read_text() == "start\nstop\nstart\n"
    chroot.driver.stop(instance.name, timeout=20)
    assert not point(chroot).exists()
    log = (chroot.paths.chroot_log / f"{instance.name}.log").read_text()
    assert log == "guest is up\nguest is up\n"


def test_what_the_disk_holds_is_kept(chroot: Any) -> None:
    instance = chroot.instance()
    disks = chroot.start(instance)
    (point(chroot) / "data").write_text("precious")
    chroot.driver.stop(instance.name, force=True)
    chroot.driver.start(instance, disks)
    assert (point(chroot) / "data").read_text() == "precious"


def test_another_script(chroot: Any) -> None:
    instance = chroot.instance(init_script="/bin/begin")
    disks = chroot.disks(instance)
    with pytest.raises(errors.HypervisorError, match=r"/bin/begin.*No such file"):
        chroot.driver.start(instance, disks)
    assert chroot.list_leftovers() == []
    trees.image(Path(disks[0].path), {**trees.OBEDIENT, "bin/begin": trees.SCRIPT})
    chroot.driver.start(instance, disks)
    assert chroot.driver.info(instance.name).state == RunState.RUNNING


@pytest.mark.parametrize("path", ["", "ganeti-chroot", "/../etc/passwd", "/a/./b", "/a//b", "/a/"])
def test_script_must_be_an_absolute_path(chroot: Any, path: str) -> None:
    with pytest.raises(errors.HypervisorError, match="init_script"):
        chroot.driver.check_params({"init_script": path})


def test_link_of_the_guest_does_not_lead_out(chroot: Any) -> None:
    """The script is looked up inside only, so the node's own program is never run."""
    instance = chroot.instance(init_script="/out")
    disks = disk_with(chroot, instance)
    with _mounted(disks[0].path, chroot.directory / "look") as inside:
        (inside / "out").symlink_to("/usr/bin/env")
    with pytest.raises(errors.HypervisorError, match="No such file"):
        chroot.driver.start(instance, disks)


@contextlib.contextmanager
def _mounted(path: str, at: Path) -> Iterator[Path]:
    at.mkdir()
    process.run_checked(["mount", "-o", "loop", path, str(at)], timeout=20)
    try:
        yield at
    finally:
        process.run_checked(["umount", str(at)], timeout=20)


def test_script_that_fails_leaves_nothing(chroot: Any) -> None:
    instance = chroot.instance()
    failing = "#!/bin/sh\n/bin/daemon &\necho no database\nexit 3\n"
    disks = disk_with(chroot, instance, script=failing)
    with pytest.raises(errors.HypervisorError, match="exit code 3: no database"):
        chroot.driver.start(instance, disks)
    assert chroot.driver.info(instance.name) is None
    assert chroot.list_leftovers() == []
    assert mounts.tree(point(chroot), mounts.read()) == []


def test_disk_without_a_file_system(chroot: Any) -> None:
    instance = chroot.instance()
    disks = chroot.disks(instance)
    Path(disks[0].path).write_bytes(bytes(1 << 20))
    with pytest.raises(errors.HypervisorError, match="file system on disk 0"):
        chroot.driver.start(instance, disks)
    assert chroot.list_leftovers() == []


def test_no_disk_and_no_such_disk(chroot: Any) -> None:
    instance = chroot.instance()
    with pytest.raises(errors.HypervisorError, match="has no disk"):
        chroot.driver.start(instance, [])
    disks = chroot.disks(instance)
    Path(disks[0].path).unlink()
    with pytest.raises(errors.HypervisorError, match="No such file"):
        chroot.driver.start(instance, disks)


def test_first_partition_is_the_root(chroot: Any) -> None:
    instance = chroot.instance()
    disks = chroot.disks(instance)
    path = Path(disks[0].path)
    whole = path.read_bytes()
    entry = struct.pack("<B3xB3xII", 0, 0x83, 2048, len(whole) // 512)
    table = bytes(446) + entry + bytes(48) + b"\x55\xaa"
    path.write_bytes(table.ljust(1 << 20, b"\0") + whole)
    chroot.driver.start(instance, disks)
    assert (point(chroot) / "calls").read_text() == "start\n"


def test_deaf_processes_are_ended_by_force_only(chroot: Any) -> None:
    instance = chroot.instance()
    chroot.driver.start(instance, disk_with(chroot, instance, daemon=trees.DEAF_DAEMON))
    chroot.driver.stop(instance.name, timeout=0.5)
    assert chroot.driver.info(instance.name).state == RunState.RUNNING
    chroot.driver.stop(instance.name, force=True)
    assert occupants.names(point(chroot)) == []
    assert not point(chroot).exists()


def test_process_that_only_has_a_file_open_is_found(chroot: Any) -> None:
    instance = chroot.instance()
    chroot.start(instance)
    with (point(chroot) / "bin/busybox").open("rb") as stream:
        reader = subprocess.Popen(["sleep", "60"], stdin=stream, cwd="/")
    chroot.driver.stop(instance.name, force=True)
    assert reader.wait(5) == -9


def test_mounts_of_the_guest_go_and_those_of_the_node_stay(chroot: Any, tmp_path: Path) -> None:
    """A guest has bound a tree of the node; unmounting its copy leaves the node's alone."""
    instance = chroot.instance()
    chroot.start(instance)
    ours = tmp_path / "ours"
    (ours).mkdir()
    run = process.run_checked
    run(["mount", "-t", "tmpfs", "ours", str(ours)], timeout=10)
    try:
        run(["mount", "--make-shared", str(ours)], timeout=10)
        (ours / "inner").mkdir()
        run(["mount", "-t", "tmpfs", "inner", str(ours / "inner")], timeout=10)
        outsider = subprocess.Popen(["sleep", "60"], cwd=ours / "inner")
        run(["mount", "--rbind", str(ours), str(point(chroot) / "mnt")], timeout=10)
        run(["chroot", str(point(chroot)), "/bin/mount", "-t", "proc", "p", "/proc"], timeout=10)
        chroot.driver.stop(instance.name, timeout=20)
        assert chroot.driver.info(instance.name) is None
        assert mounts.find_mount(ours / "inner", mounts.read()) is not None
        assert outsider.poll() is None
    finally:
        outsider.kill()
        outsider.wait()
        run(["umount", "--recursive", str(ours)], timeout=10)


def test_process_in_a_mount_namespace_of_its_own_is_ended(chroot: Any) -> None:
    instance = chroot.instance()
    chroot.start(instance)
    hidden = subprocess.Popen(
        ["unshare", "--mount", "chroot", str(point(chroot)), "/bin/sleep", "60"]
    )

    def is_inside() -> bool | None:
        return os.readlink(f"/proc/{hidden.pid}/root") != "/" or None

    assert retry.retry_until(is_inside, timeout=10)
    chroot.driver.stop(instance.name, force=True)
    assert hidden.wait(5) == -9


def test_namespace_outside_that_keeps_the_disk_is_named(
    chroot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unmounted here is not free: what is written later could harm the disk elsewhere."""
    monkeypatch.setattr(root_fs, "_FREE", 0.3)
    instance = chroot.instance()
    chroot.start(instance)
    holder = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", "echo ready; sleep 60"], stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    with holder.stdout:
        assert holder.stdout.readline() == b"ready\n"
    try:
        with pytest.raises(errors.HypervisorError, match=f"still have it.*{holder.pid}"):
            chroot.driver.stop(instance.name, force=True)
    finally:
        holder.kill()
        holder.wait()
    chroot.driver.cleanup(instance.name)
    assert chroot.list_leftovers() == []


def test_start_that_was_cut_off_is_begun_anew(chroot: Any) -> None:
    """Mounted without a note that the script ended well: it does not run."""
    instance = chroot.instance()
    disks = chroot.disks(instance)
    root_fs.mount(disks[0], point(chroot))
    assert chroot.driver.info(instance.name) is None
    assert chroot.driver.list_names() == []
    chroot.driver.start(instance, disks)
    assert chroot.driver.list_names() == [instance.name]


def test_what_a_chroot_cannot_do(chroot: Any) -> None:
    instance = chroot.instance()
    with pytest.raises(errors.HypervisorError, match="cannot be started paused"):
        chroot.driver.start(instance, chroot.disks(instance), paused=True)
    assert not chroot.driver.traits.can_migrate
    for ability in (Ballooning, Hotpluggable, Migratable):
        assert not isinstance(chroot.driver, ability)


def test_console_is_a_shell_inside(chroot: Any) -> None:
    instance = chroot.instance()
    chroot.start(instance)
    console = chroot.driver.console(instance, "node1.example.com", instance.hvparams)
    said = process.run_checked([*console.command, "/bin/ls", "/"], timeout=10).stdout
    assert "ganeti-chroot" in said.split()
