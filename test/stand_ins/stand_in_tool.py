"""Entry of every stand-in: apply scripted rules, run the tool, print what it says.

Called as ``stand_in_tool.py TOOL STATE-DIRECTORY NODE ARGUMENT...`` by the programs that
:class:`storage_nodes.StorageNodes` puts into a node's ``/usr/local/sbin``.
"""

from __future__ import annotations

import gc
import os
import sys
import time

from stand_in_world import ToolError, World

#: Seconds between two looks of a command that waits.
_LOOK = 0.03
#: Parts of an event that change.
_CHANGING = ("role:", "connection:", "disk:", "replication:", "peer-disk:")
_BUSY = ("WFConnection", "SyncSource", "SyncTarget", "PausedSyncS", "PausedSyncT")


def run(argv: list[str]) -> None:
    """Do what a tool does and end the process, without the time that freeing objects takes."""
    gc.disable()
    code = main(argv)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main(argv: list[str]) -> int:
    tool, directory, node, *words = argv
    world = World(directory)
    with world.locked():
        rule = world.rule(node, tool, words)
    if rule is not None:
        time.sleep(rule["delay"])  # what the rule asks for: a slow tool
        if rule["fail"] is not None:
            print(rule["fail"], file=sys.stderr)
            return int(rule["code"])
        if rule["output"] is not None:
            print(rule["output"], end="")
            return 0
    try:
        if tool == "drbdsetup" and words[:1] == ["events2"] and "--now" not in words:
            return _follow(world, node, words)
        if tool == "drbdsetup" and words[:1] in (["wait-connect"], ["wait-sync"]):
            return _wait(world, node, words)
        with world.locked():
            print(_run(world, tool, node, words), end="")
    except ToolError as err:
        print(err, file=sys.stderr)
        return err.code
    return 0


def _run(world: World, tool: str, node: str, words: list[str]) -> str:
    if tool.startswith("drbd"):
        from stand_in_drbdsetup import Drbdsetup, drbdmeta

        if tool == "drbdsetup":
            return Drbdsetup(world, node).run(words)
        return drbdmeta(world, node, words)
    from stand_in_lvm import Lvm

    return Lvm(world, node).run(tool, words)


def _follow(world: World, node: str, words: list[str]) -> int:
    """``events2``: what there is, then every change, until somebody ends us."""
    from stand_in_drbdsetup import Drbdsetup

    arguments = [word for word in words[1:] if not word.startswith("--")]
    known: dict[str, str] = {}
    first = True
    while True:
        with world.locked():
            setup = Drbdsetup(world, node)
            setup.run(["events2", *arguments])
            facts = setup.facts(arguments)
        for line in facts:
            key = " ".join(word for word in line.split() if not word.startswith(_CHANGING))
            if known.get(key) != line:
                print("exists" if first else "change", line, flush=True)
                known[key] = line
        if first:
            print("exists -", flush=True)
        first = False
        time.sleep(_LOOK)  # other processes change the world, and no event tells


def _wait(world: World, node: str, words: list[str]) -> int:
    """``wait-connect`` and ``wait-sync``: exit code 5 when the time is over."""
    from stand_in_drbdsetup import Drbdsetup

    busy = _BUSY[:1] if words[0] == "wait-connect" else _BUSY
    limits = [float(w.partition("=")[2]) for w in words if w.startswith("--wfc-timeout=")]
    end = time.monotonic() + limits[0] if limits and limits[0] else None
    while True:
        with world.locked():
            state = Drbdsetup(world, node).run(["cstate", words[1]]).strip()
        if state not in busy:
            return 0
        if end is not None and time.monotonic() > end:
            return 5
        time.sleep(_LOOK)  # other processes change the world, and no event tells


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
