#!/usr/bin/env python3
"""Benchmarks of the kvm driver with real guests in software: figures as JSON on standard output.

Start: our driver against the bare QEMU with the same arguments. Moves: a guest that writes to some
of its memory all the time, over the loopback interface, encrypted.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(HERE), str(HERE / "test" / "contract" / "hypervisor")]

import boot_sectors  # noqa: E402

from ganeti.base import retry  # noqa: E402
from ganeti.hypervisor.interface import AttachedDisk  # noqa: E402
from ganeti.hypervisor.kvm.driver import KvmHypervisor  # noqa: E402
from ganeti.model.enums import DiskTemplate, MigrationState  # noqa: E402
from ganeti.paths import Paths  # noqa: E402
from ganeti.rpc.objects import NodeDisk, NodeInstance  # noqa: E402


class Guests:
    """Two nodes below a directory, and what was started on them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.nodes = [KvmHypervisor(Paths(directory / name)) for name in ("one", "two")]
        self.names: list[str] = []

    def make(self, memory: int, dirty: int, **hvparams: Any) -> tuple[NodeInstance, AttachedDisk]:
        number = str(uuid.uuid4())
        path = boot_sectors.alphabet(self.directory / f"{number}.raw", dirty + 1)
        disk = NodeDisk(
            uuid=number, dev_type=DiskTemplate.FILE, logical_id=("loop", str(path)), size=1
        )
        name = f"guest{len(self.names)}"
        self.names.append(name)
        instance = NodeInstance(
            uuid=str(uuid.uuid4()),
            name=name,
            primary_node="one",
            hypervisor="kvm",
            hvparams={"kernel_path": "", "accelerator": "tcg", **hvparams},
            beparams={"maxmem": memory, "minmem": memory, "vcpus": 1},
        )
        return instance, AttachedDisk(disk, str(path))

    def close(self) -> None:
        for node in self.nodes:
            for name in self.names:
                with contextlib.suppress(Exception):
                    node.stop(name, force=True)
                    node.cleanup(name)


@contextlib.contextmanager
def guests() -> Iterator[Guests]:
    directory = Path(tempfile.mkdtemp(prefix="bench-kvm-"))
    made = Guests(directory)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(directory)


def milliseconds(begin: float) -> float:
    return (time.perf_counter() - begin) * 1000


def starts(rounds: int = 15) -> dict[str, float]:
    """Medians, one after the other in turn, so that other load hits both."""
    ours, bare = [], []
    with guests() as made:
        node = made.nodes[0]
        instance, disk = made.make(64, 1)
        for number in range(rounds + 1):
            begin = time.perf_counter()
            node.start(instance, [disk])
            taken = milliseconds(begin)
            record = node.store.find(instance.name)
            assert record is not None
            node.stop(instance.name, force=True)
            argv = list(record.runtime.argv)
            begin = time.perf_counter()
            subprocess.run(argv, cwd=node.store.ctrl, check=True, stdin=subprocess.DEVNULL)
            if number:
                # The first start finds out what QEMU is.
                bare.append(milliseconds(begin))
                ours.append(taken)
            node.stop(instance.name, force=True)
            node.cleanup(instance.name)
    return {
        "driver_ms": round(statistics.median(ours), 1),
        "bare_qemu_ms": round(statistics.median(bare), 1),
        "overhead_ms": round(statistics.median(a - b for a, b in zip(ours, bare, strict=True)), 1),
    }


def stood_still(source: KvmHypervisor, target: KvmHypervisor, name: str) -> int:
    """Milliseconds from the guest's last instruction to its next one, by QEMU's own journals."""

    def when(node: KvmHypervisor, kind: str) -> float:
        stamps = [e["timestamp"] for e in node.store.journal(name).lines(0) if e["event"] == kind]
        return float(stamps[-1]["seconds"]) * 1000 + stamps[-1]["microseconds"] / 1000

    return round(when(target, "RESUME") - when(source, "STOP"))


def move(memory: int, dirty: int, *, live: bool = True, **hvparams: Any) -> dict[str, Any]:
    """One move; ``seconds`` is all of it, with the start of QEMU at the target."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        hvparams["migration_port"] = sock.getsockname()[1]
    with guests() as made:
        source, target = made.nodes
        instance, disk = made.make(memory, dirty, **hvparams)
        source.start(instance, [disk])
        log = source.paths.kvm_log / f"{instance.name}-serial.log"
        retry.retry_until(lambda: (log.exists() and log.stat().st_size > 100) or None, timeout=60)
        begin = time.perf_counter()
        info = source.migration_info(instance)
        where = target.accept(instance, [disk], info, "127.0.0.1")
        waiting = time.perf_counter()
        source.migrate(instance, where, live=live)
        while True:
            found = source.migration_status(instance)
            if found.status is not MigrationState.ACTIVE or time.perf_counter() - begin > 90:
                break
        if found.status is not MigrationState.COMPLETED:
            return {"result": str(found.status), "sent_mib": (found.transferred_ram or 0) >> 20}
        target.finish_target(instance, info, success=True)
        still = stood_still(source, target, instance.name)
        source.finish_source(instance, success=True, live=live)
        end = time.perf_counter()
        return {
            "pause_ms": still,
            "sending_ms": found.total_time,
            "sent_mib": (found.transferred_ram or 0) >> 20,
            "accept_ms": round((waiting - begin) * 1000),
            "seconds": round(end - begin, 2),
        }


def main() -> int:
    """Print the figures; exit status 1 without QEMU."""
    if not (shutil.which("kvm") or shutil.which("qemu-system-x86_64")):
        print("no QEMU on this machine", file=sys.stderr)
        return 1
    fast = {"migration_bandwidth": 1000}
    figures: dict[str, Any] = {"load_before": os.getloadavg()[0], "start": starts()}
    figures["move_256_mib"] = {
        "idle": move(256, 0, **fast),
        "16_mib_written_pause_300": move(256, 16, migration_downtime=300, **fast),
        "16_mib_written_pause_30": move(256, 16, **fast),
        "64_mib_written_pause_300": move(256, 64, migration_downtime=300, **fast),
        "64_mib_written_auto_converge": move(
            256, 64, migration_downtime=300, migration_caps="auto-converge", **fast
        ),
        "64_mib_written_postcopy": move(256, 64, migration_caps="postcopy-ram", **fast),
        "64_mib_written_not_live": move(256, 64, live=False, **fast),
    }
    figures["load_after"] = os.getloadavg()[0]
    print(json.dumps(figures, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
