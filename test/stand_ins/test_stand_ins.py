"""The stand-ins behave as the recorded tools did: output, exit codes, and where the bytes are."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from stand_in_world import ToolError
from storage_nodes import Mirror, StorageNodes

A, B = "ipv4:127.9.0.1:11000", "ipv4:127.9.0.2:11000"
NET = ("--protocol=C", "--cram-hmac-alg=md5", "--shared-secret=s3kr1t")


@pytest.fixture
def nodes(tmp_path: Path) -> StorageNodes:
    roots = {name: tmp_path / name for name in ("n1", "n2", "n3")}
    return StorageNodes(tmp_path / "state", roots)


def call(nodes: StorageNodes, node: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run an installed program as the node daemon does."""
    program = nodes.roots[node] / "usr/local/sbin" / words[0]
    return subprocess.run(
        [str(program), *words[1:]], capture_output=True, text=True, timeout=20, check=False, env={}
    )


def prepare(nodes: StorageNodes, node: str, minor: int = 0, name: str = "resource0") -> None:
    """A DRBD device with its disk, not connected."""
    for part, size in (("data", "16m"), ("meta", "128m")):
        nodes.run(node, "lvcreate", "-L", size, "-n", f"d{minor}_{part}", "xenvg")
    meta = str(nodes.path(node, f"xenvg/d{minor}_meta"))
    result = call(nodes, node, "drbdmeta", "--force", str(minor), "v08", meta, "0", "create-md")
    assert result.returncode == 0
    nodes.run(node, "drbdsetup", "new-resource", name)
    nodes.run(node, "drbdsetup", "new-minor", name, str(minor), "0")
    attach(nodes, node, minor)


def attach(nodes: StorageNodes, node: str, minor: int = 0) -> None:
    data, meta = (str(nodes.path(node, f"xenvg/d{minor}_{part}")) for part in ("data", "meta"))
    nodes.run(node, "drbdsetup", "attach", str(minor), data, meta, "0", "--on-io-error=detach")


def connect(nodes: StorageNodes, *more: str) -> None:
    nodes.run("n1", "drbdsetup", "connect", "resource0", A, B, *NET, *more)
    nodes.run("n2", "drbdsetup", "connect", "resource0", B, A, *NET, *more)


@pytest.fixture
def pair(nodes: StorageNodes) -> StorageNodes:
    """n1 primary, n2 secondary, in sync."""
    for node in ("n1", "n2"):
        prepare(nodes, node)
    connect(nodes)
    nodes.run("n1", "drbdsetup", "primary", "0", "--force")
    return nodes


def sums(nodes: StorageNodes) -> set[str]:
    return {nodes.checksum(node, "xenvg", "d0_data") for node in ("n1", "n2")}


def states(nodes: StorageNodes) -> list[str]:
    return [
        f"{m.connection} {m.role} {m.disk}"
        for m in (nodes.mirrors(node)[0] for node in ("n1", "n2"))
    ]


def test_programs_print_what_the_tools_print(nodes: StorageNodes) -> None:
    made = call(nodes, "n1", "lvcreate", "-Wy", "-y", "-L", "512m", "-n", "i1.disk0_data", "xenvg")
    assert made.stdout == '  Logical volume "i1.disk0_data" created.\n'
    nodes.run("n1", "lvchange", "--addtag", "originstname+inst1", "xenvg/i1.disk0_data")
    shown = call(
        nodes,
        "n1",
        "lvs",
        "--noheadings",
        "--separator",
        "|",
        "--units",
        "k",
        "--nosuffix",
        "-o",
        "lv_attr,lv_kernel_major,lv_kernel_minor,vg_extent_size,stripes,lv_size,lv_tags",
        "xenvg/i1.disk0_data",
    )
    assert shown.stdout == "  -wi-a-----|253|0|4096.00|1|524288.00|originstname+inst1\n"
    json_form = call(
        nodes,
        "n1",
        "vgs",
        "--reportformat",
        "json",
        "--units",
        "b",
        "--nosuffix",
        "-o",
        "vg_name,vg_size,vg_free",
    )
    [row] = json.loads(json_form.stdout)["report"][0]["vg"]
    assert row == {"vg_name": "xenvg", "vg_size": "8589934592", "vg_free": "8053063680"}
    missing = call(nodes, "n1", "lvs", "xenvg/none")
    assert (missing.returncode, missing.stderr.strip()) == (
        5,
        'Failed to find logical volume "xenvg/none"',
    )


def test_volumes_grow_are_renamed_and_removed(nodes: StorageNodes) -> None:
    nodes.run("n1", "lvcreate", "-L", "10m", "-n", "one", "xenvg")
    nodes.path("n1", "xenvg/one").write_bytes(b"content")
    nodes.run("n1", "lvextend", "-L", "+100m", "/dev/xenvg/one")
    nodes.run("n1", "lvrename", "xenvg", "one", "two")
    assert nodes.volumes("n1") == {"xenvg/two": 112}
    nodes.run("n1", "lvchange", "-an", "xenvg/two")
    assert not nodes.path("n1", "xenvg/two").exists()
    with pytest.raises(ToolError, match="insufficient free space"):
        nodes.run("n1", "lvcreate", "-L", "9g", "-n", "big", "xenvg")
    nodes.run("n1", "lvremove", "-f", "xenvg/two")
    assert nodes.volumes("n1") == {}


def test_bytes_reach_the_other_side(pair: StorageNodes) -> None:
    assert states(pair) == [
        "Connected Primary UpToDate/UpToDate",
        "Connected Secondary UpToDate/UpToDate",
    ]
    with pair.path("n1", "drbd0").open("r+b") as disk:
        disk.write(b"payload")
    assert not pair.path("n2", "drbd0").exists()
    pair.run("n1", "drbdsetup", "secondary", "0")
    pair.run("n2", "drbdsetup", "primary", "0")
    assert pair.path("n2", "drbd0").read_bytes()[:7] == b"payload"
    with pytest.raises(ToolError, match="Multiple primaries not allowed") as caught:
        pair.run("n1", "drbdsetup", "primary", "0")
    assert caught.value.code == 11


def test_sides_that_are_apart_are_two_disks(pair: StorageNodes) -> None:
    pair.run("n2", "drbdsetup", "disconnect", B, A)
    assert states(pair)[0] == "WFConnection Primary UpToDate/DUnknown"
    with pair.path("n1", "drbd0").open("r+b") as disk:
        disk.write(b"later")
    assert len(sums(pair)) == 2
    pair.run("n2", "drbdsetup", "connect", "resource0", B, A, *NET)
    assert states(pair)[1] == "Connected Secondary UpToDate/UpToDate"
    assert len(sums(pair)) == 1


def test_split_brain_ends_the_connection(pair: StorageNodes) -> None:
    pair.cut("n1", "n2")
    pair.run("n2", "drbdsetup", "primary", "0")
    for node in ("n1", "n2"):
        with pair.path(node, "drbd0").open("r+b") as disk:
            disk.write(node.encode())
    pair.run("n2", "drbdsetup", "secondary", "0")
    pair.mend("n1", "n2")
    assert [line.split()[0] for line in states(pair)] == ["StandAlone", "StandAlone"]
    assert len(sums(pair)) == 2
    pair.run("n1", "drbdsetup", "connect", "resource0", A, B, *NET)
    pair.run("n2", "drbdsetup", "connect", "resource0", B, A, *NET, "--discard-my-data=yes")
    assert len(sums(pair)) == 1
    assert pair.path("n1", "drbd0").read_bytes()[:2] == b"n1"


def test_alone_without_writes_is_no_split_brain(pair: StorageNodes) -> None:
    pair.cut("n1", "n2")
    pair.run("n2", "drbdsetup", "primary", "0")
    pair.run("n2", "drbdsetup", "secondary", "0")
    pair.mend("n1", "n2")
    assert states(pair)[0] == "Connected Primary UpToDate/UpToDate"


def test_wrong_secret_is_refused(nodes: StorageNodes) -> None:
    for node in ("n1", "n2"):
        prepare(nodes, node)
    nodes.run("n1", "drbdsetup", "connect", "resource0", A, B, *NET)
    nodes.run("n2", "drbdsetup", "connect", "resource0", B, A, *NET[:2], "--shared-secret=other")
    assert [m.connection for n in ("n1", "n2") for m in nodes.mirrors(n).values()] == [
        "StandAlone",
        "StandAlone",
    ]


def test_slow_resync_shows_its_progress(pair: StorageNodes) -> None:
    pair.slow_sync(0.4)
    pair.run("n2", "drbdsetup", "down", "resource0")
    meta = str(pair.path("n2", "xenvg/d0_meta"))
    assert (
        call(pair, "n2", "drbdmeta", "--force", "0", "v08", meta, "0", "create-md").returncode == 0
    )
    pair.run("n2", "drbdsetup", "new-resource", "resource0")
    pair.run("n2", "drbdsetup", "new-minor", "resource0", "0", "0")
    attach(pair, "n2")
    pair.run("n2", "drbdsetup", "connect", "resource0", B, A, *NET)
    assert states(pair)[1] == "SyncTarget Secondary Inconsistent/UpToDate"
    text = (pair.roots["n2"] / "proc/drbd").read_text()
    assert "sync'ed:" in text
    assert "finish: 0:00:0" in text
    assert call(pair, "n2", "drbdsetup", "wait-sync", "0").returncode == 0
    assert states(pair)[1] == "Connected Secondary UpToDate/UpToDate"


def test_power_cut_and_return(pair: StorageNodes) -> None:
    with pair.path("n1", "drbd0").open("r+b") as disk:
        disk.write(b"acknowledged")
    pair.power_cut("n1")
    assert pair.mirrors("n1") == {}
    pair.run("n2", "drbdsetup", "primary", "0")
    assert pair.path("n2", "drbd0").read_bytes()[:12] == b"acknowledged"
    pair.boot("n1")
    pair.run("n1", "drbdsetup", "new-resource", "resource0")
    pair.run("n1", "drbdsetup", "new-minor", "resource0", "0", "0")
    with pytest.raises(ToolError, match="Unclean meta-data found"):
        attach(pair, "n1")
    meta = str(pair.path("n1", "xenvg/d0_meta"))
    assert call(pair, "n1", "drbdmeta", "0", "v08", meta, "0", "apply-al").returncode == 0
    attach(pair, "n1")
    pair.run("n1", "drbdsetup", "connect", "resource0", A, B, *NET)
    assert pair.mirrors("n1") == {0: Mirror("Connected", "Secondary", "UpToDate/UpToDate", B)}


def test_lost_disk_is_diskless_and_still_readable(pair: StorageNodes) -> None:
    pair.lose_disk("n1", 0)
    assert states(pair)[0] == "Connected Primary Diskless/UpToDate"
    with pair.path("n1", "drbd0").open("r+b") as disk:
        disk.write(b"over the net")
    pair.run("n1", "drbdsetup", "secondary", "0")
    pair.run("n2", "drbdsetup", "primary", "0")
    assert pair.path("n2", "drbd0").read_bytes()[:12] == b"over the net"


def test_failures_delays_and_answers_by_script(nodes: StorageNodes) -> None:
    nodes.fail("lvcreate", "  no luck", node="n1", match="_meta")
    words = ("lvcreate", "-L", "4m", "-n")
    assert call(nodes, "n1", *words, "x_data", "xenvg").returncode == 0
    failed = call(nodes, "n1", *words, "x_meta", "xenvg")
    assert (failed.returncode, failed.stderr) == (5, "  no luck\n")
    assert call(nodes, "n1", *words, "x_meta", "xenvg").returncode == 0
    nodes.answer("vgs", "anything\n")
    assert call(nodes, "n2", "vgs").stdout == "anything\n"
    nodes.clear_rules()
    assert "xenvg" in call(nodes, "n2", "vgs").stdout


def test_events_follow_what_happens(pair: StorageNodes) -> None:
    program = pair.roots["n1"] / "usr/local/sbin/drbdsetup"
    with subprocess.Popen(
        [str(program), "events2", "resource0"], stdout=subprocess.PIPE, text=True, env={}
    ) as follower:
        assert follower.stdout is not None
        lines = iter(follower.stdout)
        assert "exists resource name:resource0 role:Primary" in next(lines)
        assert "connection:Connected role:Secondary" in next(lines)
        while next(lines) != "exists -\n":
            pass
        pair.run("n2", "drbdsetup", "down", "resource0")
        assert "change connection" in next(lines)
        follower.kill()
