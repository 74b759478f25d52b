"""LVM and DRBD for nodes that live in directories: stand-ins on a machine without device-mapper.

``StorageNodes`` puts programs named lvs, lvcreate, drbdsetup, ... into ``<root>/usr/local/sbin``
of each node, where the node daemon of a rooted cluster looks first. They behave like the recorded
tools (same output, same exit codes), keep data in plain files, and really copy it between the
nodes' files, so a test can compare checksums::

    nodes.path("node1", "drbd0")            # what a guest would write to, where it is primary
    nodes.volumes("node2")                  # {"xenvg/<uuid>.disk0_data": MiB}
    nodes.checksum("node2", "xenvg", name)  # of a volume, bypassing DRBD
    nodes.fail("lvcreate", "no space", node="node2", match="_meta", times=1)
    nodes.slow_sync(5.0)                    # a resync takes five seconds
    nodes.cut("node1", "node2"); nodes.mend("node1", "node2")
    nodes.power_cut("node1"); nodes.boot("node1")

What they are not: a kernel. Timing, caches, barriers and everything that the module does under
load is tested with real ones in test/hosts.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import stand_in_tool
from stand_in_drbd import settle
from stand_in_drbdsetup import Drbdsetup
from stand_in_lvm import Lvm
from stand_in_world import World

#: MiB of the volume group that each node gets.
GROUP_SIZE = 8192
GROUP = "xenvg"


@dataclass(frozen=True)
class Mirror:
    """What a node's DRBD device is doing, in the words of /proc/drbd."""

    connection: str
    role: str
    disk: str
    peer: str | None


class StorageNodes:
    """The storage of some nodes: ``{name: (root, address)}``."""

    def __init__(self, directory: Path, nodes: dict[str, Path]) -> None:
        self.world = World(str(directory))
        self.roots = nodes
        with self.world.lock() as world:
            for name, root in nodes.items():
                world.data["nodes"][name] = {
                    "root": str(root),
                    "up": True,
                    "helper": "/bin/true",
                    "version": "8.4.11",
                    "vgs": {GROUP: _group(GROUP_SIZE)},
                    "drbd": {},
                }
                self._install(name, root)
            settle(world)

    def _install(self, name: str, root: Path) -> None:
        programs, settings = root / "usr/local/sbin", root / "etc/lvm"
        for directory in (programs, settings):
            directory.mkdir(parents=True, exist_ok=True)
        (settings / "lvm.conf").write_text("# The stand-ins read nothing here.\n")
        for tool in [*Lvm.names(), "drbdsetup", "drbdmeta"]:
            program = programs / tool
            program.write_text(stand_in_tool.program(tool, self.world.directory, name))
            program.chmod(0o755)

    # what there is

    def path(self, node: str, device: str) -> Path:
        """A device of a node: ``drbd0``, or ``xenvg/volume``."""
        return self.roots[node] / "dev" / device

    def volumes(self, node: str) -> dict[str, int]:
        """``group/volume`` -> MiB."""
        with self.world.lock() as world:
            return {
                f"{group}/{name}": 4 * sum(count for _pv, _start, count in lv["extents"])
                for group, vg in world.node(node)["vgs"].items()
                for name, lv in vg["lvs"].items()
            }

    def tags(self, node: str, group: str, volume: str) -> list[str]:
        with self.world.lock() as world:
            found: list[str] = world.node(node)["vgs"][group]["lvs"][volume]["tags"]
            return found

    def checksum(self, node: str, group: str, volume: str) -> str:
        """Of the bytes of a volume."""
        with self.world.lock() as world:
            settle(world)
            with open(Lvm(world, node).file(group, volume), "rb") as data:
                return hashlib.file_digest(data, "sha256").hexdigest()

    def mirrors(self, node: str) -> dict[int, Mirror]:
        """Minor -> state of the DRBD devices of a node."""
        with self.world.lock() as world:
            setup = Drbdsetup(world, node)
            settle(world)
            return {
                res["minor"]: Mirror(
                    setup.cstate([str(res["minor"])], {}).strip(),
                    res["role"],
                    setup.dstate([str(res["minor"])], {}).strip(),
                    res["net"]["remote"] if res["net"] else None,
                )
                for res in setup.table.values()
                if res["minor"] is not None
            }

    def run(self, node: str, tool: str, *words: str) -> str:
        """Run a tool in this process; ToolError as its exit code."""
        with self.world.lock() as world:
            if tool == "drbdsetup":
                return Drbdsetup(world, node).run(list(words))
            return Lvm(world, node).run(tool, list(words))

    # what happens

    def fail(
        self,
        tool: str,
        text: str = "  scripted failure",
        *,
        node: str | None = None,
        match: str = "",
        code: int = 5,
        times: int | None = 1,
    ) -> None:
        """The next ``times`` (None: all) commands that have ``match`` in them fail."""
        self._rule(tool, node, match, times, fail=text, code=code)

    def delay(
        self,
        tool: str,
        seconds: float,
        *,
        node: str | None = None,
        match: str = "",
        times: int | None = None,
    ) -> None:
        """Commands take longer."""
        self._rule(tool, node, match, times, delay=seconds)

    def answer(
        self,
        tool: str,
        output: str,
        *,
        node: str | None = None,
        match: str = "",
        times: int | None = None,
    ) -> None:
        """Commands do nothing and print this."""
        self._rule(tool, node, match, times, output=output)

    def clear_rules(self) -> None:
        with self.world.lock() as world:
            world.data["rules"] = []

    def _rule(
        self, tool: str, node: str | None, match: str, times: int | None, **what: Any
    ) -> None:
        rule = {"tool": tool, "node": node, "match": match, "times": times, "fail": None}
        with self.world.lock() as world:
            added = {**rule, "delay": 0.0, "output": None, "code": 5, **what}
            world.data["rules"].append(added)

    def slow_sync(self, seconds: float) -> None:
        """How long a resync takes that begins from now on; 0: no time."""
        with self.world.lock() as world:
            world.data["sync_seconds"] = seconds

    def set_helper(self, node: str, path: str) -> None:
        """The usermode helper of a node's DRBD module."""
        with self.world.lock() as world:
            world.node(node)["helper"] = path
            settle(world)

    def lose_disk(self, node: str, minor: int) -> None:
        """The disk below a DRBD device fails: it is detached, as after an I/O error."""
        with self.world.lock() as world:
            Drbdsetup(world, node).run(["detach", str(minor)])

    def cut(self, one: str, other: str) -> None:
        """No packets between two nodes any more."""
        with self.world.lock() as world:
            settle(world)
            world.data["cuts"].append(sorted((one, other)))
            settle(world)

    def mend(self, one: str, other: str) -> None:
        with self.world.lock() as world:
            world.data["cuts"].remove(sorted((one, other)))
            settle(world)

    def power_cut(self, node: str) -> None:
        """The node is gone with its kernel; its peers wait for it. Its daemons are not touched."""
        with self.world.lock() as world:
            settle(world)
            world.node(node)["up"] = False
            settle(world)
            world.node(node)["drbd"] = {}
            settle(world)

    def boot(self, node: str) -> None:
        """A node that lost its power is back: volumes are active, DRBD is empty."""
        with self.world.lock() as world:
            world.node(node)["up"] = True
            Lvm(world, node).vgchange({}, [])
            settle(world)

    def add_group(self, node: str, name: str, size: int = GROUP_SIZE) -> None:
        """Another volume group of ``size`` MiB."""
        with self.world.lock() as world:
            world.node(node)["vgs"][name] = _group(size, f"/dev/{name}-disk")


def _group(size: int, disk: str = "/dev/sda") -> dict[str, Any]:
    pv = {"extents": size // 4, "missing": False, "allocatable": True}
    return {"pvs": {disk: pv}, "lvs": {}}
