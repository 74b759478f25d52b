"""Program for the watcher on an offline node; it lists and ends guests and DRBD resources.

``list`` prints what runs here: guests by name, and its DRBD resources as ``drbd:NAME``. ``end``
ends those that are named, guests before the devices that they use.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from ganeti import constants, errors, paths
from ganeti.node.context import NodeContext
from ganeti.node.occupation import end_guest, find_running
from ganeti.storage.drbd import host

PROGRAM = "ganeti-node-maintenance"
_DRBD = "drbd:"
_PARALLEL = 4


def main(argv: Sequence[str] | None = None) -> int:
    """0 when all of it has ended; 1 when something still runs, or the words are wrong."""
    words = list(sys.argv[1:] if argv is None else argv)
    context = NodeContext(paths.current(), paths.hostname())
    if words == ["list"]:
        print("\n".join([*find_running(context), *_devices(context)]))
        return constants.EXIT_SUCCESS
    if words[:1] == ["end"]:
        return _end(context, words[1:])
    print(f"{PROGRAM}: use 'list', or 'end' and names", file=sys.stderr)
    return constants.EXIT_FAILURE


def _devices(context: NodeContext) -> list[str]:
    try:
        return [f"{_DRBD}{name}" for name in host.own_resources(context.paths)]
    except errors.BlockDeviceError as err:
        print(f"{PROGRAM}: {errors.text(err)}", file=sys.stderr)
        return []


def _end(context: NodeContext, names: Sequence[str]) -> int:
    running = find_running(context)
    wanted = {name: running[name] for name in names if name in running}
    with ThreadPoolExecutor(_PARALLEL) as pool:
        found = list(pool.map(lambda item: _end_guest(context, *item), wanted.items()))
    there = set(_devices(context))
    found += [_take_down(context, name) for name in names if name in there]
    failed = [text for text in found if text]
    for text in failed:
        print(f"{PROGRAM}: {text}", file=sys.stderr)
    return constants.EXIT_FAILURE if failed else constants.EXIT_SUCCESS


def _end_guest(context: NodeContext, name: str, hypervisor: str) -> str:
    """Why it still runs; empty when it has ended."""
    driver = context.hypervisor(hypervisor)
    try:
        end_guest(driver, name)
        if driver.info(name) is not None:
            return f"{name} still runs"
        driver.cleanup(name)
    except errors.HypervisorError as err:
        return f"{name}: {errors.text(err)}"
    print(f"ended {name}")
    return ""


def _take_down(context: NodeContext, name: str) -> str:
    """Why it is still set up; empty when it is not."""
    try:
        host.take_down(name.removeprefix(_DRBD))
    except errors.BlockDeviceError as err:
        return f"{name}: {errors.text(err)}"
    print(f"ended {name}")
    return ""


if __name__ == "__main__":
    sys.exit(main())
