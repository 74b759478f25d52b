"""A stand-in for ``xl``: domains are files, and what it prints is what the real one prints.

It lets the suite of hypervisors run where no Xen is; the driver meets the real one in the emulated
hosts. The forms of its output are checked against recorded ones in
``test/unit/hypervisor/test_xen_xl.py``.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import tempfile
from pathlib import Path

import boot_sectors

HEADER = "Name                                        ID   Mem VCPUs\tState\tTime(s)"
INFO = {
    "nr_cpus": 2, "nr_nodes": 1, "cores_per_socket": 1, "threads_per_core": 1,
    "virt_caps": "pv hvm hap gnttab-v1 gnttab-v2", "total_memory": 4096, "free_memory": 3000,
    "xen_major": 4, "xen_minor": 17,
}  # fmt: skip
UNKNOWN = "{0} is an invalid domain identifier (rc=-6)"


class World:
    """The domains of one node."""

    def __init__(self, directory: Path) -> None:
        self._domains = directory / "domains"
        self._domains.mkdir(parents=True, exist_ok=True)

    def write(self, domain: dict[str, object]) -> None:
        with tempfile.NamedTemporaryFile("w", dir=self._domains.parent, delete=False) as file:
            json.dump(domain, file)
        os.rename(file.name, self._domains / str(domain["name"]))

    def get(self, name: str) -> dict[str, object]:
        try:
            return json.loads((self._domains / name).read_text())
        except FileNotFoundError:
            raise SystemExit(UNKNOWN.format(name)) from None

    def all(self) -> list[dict[str, object]]:
        found = [json.loads(path.read_text()) for path in self._domains.iterdir()]
        return sorted(found, key=lambda domain: domain["id"])

    def remove(self, name: str) -> None:
        self.get(name)
        (self._domains / name).unlink()

    def new_id(self) -> int:
        path = self._domains.parent / "last-id"
        number = int(path.read_text()) + 1 if path.exists() else 1
        path.write_text(str(number))
        return number


def row(name: str, number: object, memory: object, vcpus: object, state: str) -> str:
    return f"{name:<40} {number:5} {memory:5} {vcpus:5}     {state}  {0.1:8.1f}"


def value(text: str, key: str) -> str | None:
    match = re.search(rf"^{key} = '?([^'\n]*)'?$", text, re.MULTILINE)
    return match[1] if match else None


def create(world: World, words: list[str]) -> None:
    text = Path(words[-1]).read_text()
    name = value(text, "name")
    if name is None or value(text, "kernel") is None:
        raise SystemExit("Neither kernel nor bootloader specified")
    if any(domain["name"] == name for domain in world.all()):
        raise SystemExit("Domain 2:cannot make domain: -6")
    target = re.search(r"target=([^']*)'", text)
    deaf = target is not None and boot_sectors.is_deaf(Path(target[1]))
    world.write(
        {
            "name": name, "id": world.new_id(), "memory": int(value(text, "memory") or 0),
            "vcpus": int(value(text, "vcpus") or 0), "deaf": deaf,
            "state": "--p---" if "-p" in words else "-b----",
        }
    )  # fmt: skip


def shutdown(world: World, words: list[str]) -> None:
    domain = world.get(words[-1])
    if not domain["deaf"]:
        world.write({**domain, "state": "---s--"})
    elif "-w" in words:
        signal.pause()  # as the real one waits; whoever calls it has a limit


def main(world: World, words: list[str]) -> None:
    verb, rest = words[0], words[1:]
    if verb == "info":
        print("\n".join(f"{key:<23}: {text}" for key, text in INFO.items()))
    elif verb == "list":
        print(HEADER)
        print(row("Domain-0", 0, 640, 1, "r-----"))
        for d in world.all():
            print(row(str(d["name"]), d["id"], d["memory"], d["vcpus"], str(d["state"])))
    elif verb == "create":
        create(world, rest)
    elif verb == "shutdown":
        shutdown(world, rest)
    elif verb == "destroy":
        world.remove(rest[-1])
    elif verb == "reboot":
        world.write({**world.get(rest[-1]), "id": world.new_id()})
    elif verb == "mem-set":
        world.write({**world.get(rest[0]), "memory": int(rest[1])})
    else:
        raise SystemExit("command not implemented")


if __name__ == "__main__":
    main(World(Path(sys.argv[1])), sys.argv[2:])
