"""Control groups in their three arrangements, and what is read of a container's."""

from __future__ import annotations

from pathlib import Path

import pytest

from ganeti import errors
from ganeti.hypervisor import mounts
from ganeti.hypervisor.lxc import cgroups

V1 = """\
30 28 0:24 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
31 28 0:25 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
32 28 0:26 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd
"""
UNIFIED = "33 28 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n"
V2 = "30 28 0:24 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
NESTED = "30 28 0:24 /machine/a /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


def layout(text: str, controllers: str = "") -> cgroups.Layout:
    return cgroups.layout(mounts.parse(text), controllers)


def test_version_1() -> None:
    found = layout(V1)
    assert [found.version(name) for name in ("cpu", "cpuacct", "memory")] == [1, 1, 1]
    assert found.find_missing(["cpu", "cpuset", "devices"]) == ["cpuset", "devices"]


def test_both_versions() -> None:
    found = layout(V1 + UNIFIED, "pids")
    assert [found.version(name) for name in ("memory", "pids", "devices")] == [1, 2, 2]


def test_version_2() -> None:
    found = layout(V2, "cpuset cpu io memory pids\n")
    assert found.find_missing(cgroups.NEEDED) == []
    assert found.version("memory") == 2
    assert found.find_missing(["hugetlb"]) == ["hugetlb"]


def test_group_of_a_process() -> None:
    groups = cgroups.parse_groups("3:cpu,cpuacct:/lxc.payload.a\n1:name=systemd:/x\n0::/b:c\n")
    assert groups == {
        "cpu": "/lxc.payload.a",
        "cpuacct": "/lxc.payload.a",
        "name=systemd": "/x",
        "": "/b:c",
    }
    assert cgroups.directory(layout(V1), groups, "cpu") == Path(
        "/sys/fs/cgroup/cpu,cpuacct/lxc.payload.a"
    )
    assert cgroups.directory(layout(V2, "cpu"), groups, "cpu") == Path("/sys/fs/cgroup/b:c")
    assert cgroups.directory(layout(V1), groups, "pids") is None


def test_group_below_what_is_mounted() -> None:
    found = cgroups.directory(layout(NESTED, "memory"), {"": "/machine/a/lxc.payload.b"}, "memory")
    assert found == Path("/sys/fs/cgroup/lxc.payload.b")


def usage(root: Path, version: int, monkeypatch: pytest.MonkeyPatch) -> cgroups.Usage | None:
    """Usage of this process as if its groups were in a directory."""
    monkeypatch.setattr(cgroups, "directory", lambda *_: root)
    return cgroups.usage(layout(V1) if version == 1 else layout(V2, "cpu memory"), 1)


def test_usage_of_version_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory.limit_in_bytes").write_text("16777216\n")
    (tmp_path / "memory.stat").write_text("cache 9\nrss 1\ntotal_rss 2097152\n")
    (tmp_path / "cpuacct.usage").write_text("1500000000\n")
    assert usage(tmp_path, 1, monkeypatch) == cgroups.Usage(16, 2, 1.5)
    (tmp_path / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert usage(tmp_path, 1, monkeypatch) == cgroups.Usage(None, 2, 1.5)


def test_usage_of_version_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.stat").write_text("anon 3145728\nfile 4096\n")
    (tmp_path / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    assert usage(tmp_path, 2, monkeypatch) == cgroups.Usage(None, 3, 2.5)
    (tmp_path / "memory.max").write_text("33554432\n")
    assert usage(tmp_path, 2, monkeypatch) == cgroups.Usage(32, 3, 2.5)


def test_usage_of_what_ended_or_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert usage(tmp_path, 2, monkeypatch) is None
    (tmp_path / "memory.max").write_text("plenty\n")
    with pytest.raises(errors.HypervisorError, match="control groups of process 1"):
        usage(tmp_path, 2, monkeypatch)


def test_limiting_files_are_looked_for_one_level_down(tmp_path: Path) -> None:
    (tmp_path / "system.slice").mkdir()
    known = layout(V2.replace("/sys/fs/cgroup", str(tmp_path)), "memory")
    assert not cgroups.has_file(known, "memory", "memory.swap.max")
    (tmp_path / "system.slice/memory.swap.max").write_text("max\n")
    assert cgroups.has_file(known, "memory", "memory.swap.max")
    assert not cgroups.has_file(known, "cpu", "cpu.max")
