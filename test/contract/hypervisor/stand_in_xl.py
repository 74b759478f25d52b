"""A stand-in for ``xl``: domains are files, and what it prints is what the real one prints.

A domain that is moved is its file on the way between two worlds. In a world with a file called
``slow`` the way has no end, with one called ``full`` no domain can be built.

It lets the suite of hypervisors run where no Xen is; the driver meets the real one in the emulated
hosts. The forms of its output are checked against recorded ones in
``test/unit/hypervisor/test_xen_xl.py``. Half of its time is its start, so it loads little.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

HEADER = "Name                                        ID   Mem VCPUs\tState\tTime(s)"
INFO = {
    "nr_cpus": 2,
    "nr_nodes": 1,
    "cores_per_socket": 1,
    "threads_per_core": 1,
    "virt_caps": "pv hvm hap gnttab-v1 gnttab-v2",
    "total_memory": 4096,
    "free_memory": 3000,
    "xen_major": 4,
    "xen_minor": 17,
}
UNKNOWN = "{0} is an invalid domain identifier (rc=-6)"


class World:
    """The domains of one node."""

    def __init__(self, directory: Path) -> None:
        self._domains = directory / "domains"
        self._domains.mkdir(parents=True, exist_ok=True)

    def write(self, domain: dict[str, object]) -> None:
        new = self._domains.parent / f"{domain['name']}.{os.getpid()}"
        new.write_text(json.dumps(domain))
        new.rename(self._domains / str(domain["name"]))

    def get(self, name: str) -> dict[str, object]:
        try:
            return json.loads((self._domains / name).read_text())
        except FileNotFoundError:
            raise SystemExit(UNKNOWN.format(name)) from None

    def all(self) -> list[dict[str, object]]:
        found = [json.loads(path.read_text()) for path in self._domains.iterdir()]
        return sorted(found, key=lambda domain: domain["id"])

    def says(self, word: str) -> bool:
        return (self._domains.parent / word).exists()

    def rename(self, old: str, new: str) -> None:
        self.write({**self.get(old), "name": new})
        self.remove(old)

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
    deaf = target is not None and _is_deaf(Path(target[1]))
    world.write(
        {
            "name": name,
            "id": world.new_id(),
            "memory": int(value(text, "memory") or 0),
            "vcpus": int(value(text, "vcpus") or 0),
            "deaf": deaf,
            "state": "--p---" if "-p" in words else "-b----",
        }
    )


def _is_deaf(disk: Path) -> bool:
    import boot_sectors

    return boot_sectors.is_deaf(disk)


def shutdown(world: World, words: list[str]) -> None:
    domain = world.get(words[-1])
    if not domain["deaf"]:
        world.write({**domain, "state": "---s--"})
    elif "-w" in words:
        signal.pause()  # as the real one waits; whoever calls it has a limit


def send(world: World, name: str, stream: BinaryIO) -> None:
    """The domain is paused while its last part is sent; it continues when nobody takes it."""
    domain = world.get(name)
    text = json.dumps(domain).encode() + b"\n"
    stream.write(text[:9])
    stream.flush()
    world.write({**domain, "state": "---s--"})
    try:
        while world.says("slow"):
            stream.write(b" ")
            stream.flush()
            time.sleep(0.02)  # a line that is slow
        stream.write(text[9:])
        stream.flush()
    except BrokenPipeError:
        world.write(domain)
        # Nothing more can be said through it, not even by the interpreter at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise SystemExit("Failed to save domain, resuming domain") from None


def receive(world: World, name: str | None, stream: BinaryIO) -> str:
    """The name of the new domain, which is paused."""
    try:
        domain = json.loads(stream.readline())
    except ValueError:
        raise SystemExit("libxl: error: stream truncated") from None
    if world.says("full"):
        raise SystemExit("libxl: error: cannot make domain: not enough memory")
    made = name or f"{domain['name']}--incoming"
    world.write({**domain, "name": made, "id": world.new_id(), "state": "--p---"})
    return made


def save(world: World, words: list[str]) -> None:
    with open(words[-1], "wb", buffering=0) as stream:
        send(world, words[-2], stream)
    world.write({**world.get(words[-2]), "state": "--p---"})


def restore(world: World, words: list[str]) -> None:
    name = value(Path(words[-2]).read_text(), "name")
    with open(words[-1], "rb") as stream:
        receive(world, name, stream)


def migrate(world: World, words: list[str]) -> None:
    import subprocess

    command, name, host = words[1:]
    line = ["sh", "-c", f"exec {command} {host} xl migrate-receive"]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        domain = world.get(name)
        send(world, name, other.stdin)
        if other.stdout.readline() != b"ready\n":
            world.write(domain)
            raise SystemExit("migration target: failed, resuming at sender")
        world.rename(name, f"{name}--migratedaway")
        other.stdin.write(b"go\n")
        other.stdin.flush()
        if other.stdout.readline() != b"done\n":
            raise SystemExit("migration sender: failure to learn how it ended")
        world.remove(f"{name}--migratedaway")


def migrate_receive(world: World, _words: list[str]) -> None:
    made = receive(world, None, sys.stdin.buffer)
    print("ready", flush=True)
    if sys.stdin.buffer.readline() != b"go\n":
        world.remove(made)
        raise SystemExit("migration target: nobody said that it shall run")
    world.rename(made, made.removesuffix("--incoming"))
    world.write({**world.get(made.removesuffix("--incoming")), "state": "-b----"})
    print("done", flush=True)


MOVES = {"save": save, "restore": restore, "migrate": migrate, "migrate-receive": migrate_receive}


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
    elif verb == "rename":
        world.rename(*rest)
    elif verb in ("pause", "unpause"):
        world.write({**world.get(rest[0]), "state": "--p---" if verb == "pause" else "-b----"})
    elif verb in MOVES:
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        MOVES[verb](world, rest)
    elif verb == "mem-set":
        world.write({**world.get(rest[0]), "memory": int(rest[1])})
    else:
        raise SystemExit("command not implemented")


if __name__ == "__main__":
    main(World(Path(sys.argv[1])), sys.argv[2:])
