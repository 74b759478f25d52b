#!/usr/bin/env python3
"""A guest that writes all the time moves live with its disk: figures as JSON on standard output.

The pause is what the serial lines of both nodes show: the longest time without a number. The rate
is compared with plain TCP over the same link, from disk to disk. ``--size`` in MiB, ``--rate`` is
numbers in each tick (18.2 a second), of 32 KiB each.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(HERE), *(str(HERE / "test" / each) for each in ("support", "cluster"))]

import writing_guest  # noqa: E402
from local_cluster import Cluster, copy_cluster  # noqa: E402

NAME = "writer.example.com"
MIB = 1024 * 1024
#: 32 KiB
_SECTORS = 64


class Watch:
    """When the guest said something, on whatever node; and the longest silence."""

    def __init__(self, logs: list[Path]) -> None:
        self._logs = logs
        self._ends = threading.Event()
        self.longest = 0.0
        self._thread = threading.Thread(target=self._follow)
        self._thread.start()

    def _follow(self) -> None:
        before, size = time.monotonic(), 0
        while not self._ends.is_set():
            found = sum(log.stat().st_size for log in self._logs if log.exists())
            now = time.monotonic()
            if found != size:
                before, size = now, found
            self.longest = max(self.longest, now - before)
            time.sleep(0.002)

    def stop(self) -> float:
        self._ends.set()
        self._thread.join()
        return self.longest


def copy_plainly(source: Path, target: Path) -> float:
    """Seconds to copy a file over TCP, with its fsync."""
    listener = socket.create_server(("127.0.0.1", 0))

    def receive() -> None:
        with listener, listener.accept()[0] as link, target.open("wb") as out:
            while data := link.recv(MIB):
                out.write(data)
            out.flush()
            os.fsync(out.fileno())

    thread = threading.Thread(target=receive)
    begun = time.monotonic()
    thread.start()
    with socket.create_connection(listener.getsockname()) as link, source.open("rb") as data:
        link.sendfile(data)
    thread.join()
    return time.monotonic() - begun


def measure(cluster: Cluster, size: int, rate: int, bandwidth: int) -> dict[str, Any]:
    cluster.ok(
        f"instance add -n node1 -o noop -t file --disk 0:size={size}M --no-nics --no-start"
        " -B memory=64M -H kvm:boot_order=disk",
        NAME,
    )
    [disk] = (cluster.root("node1") / "srv/ganeti/file-storage" / NAME).iterdir()
    writing_guest.install(disk, rate=rate, sectors=_SECTORS, full=True)
    plain = copy_plainly(disk, disk.with_suffix(".copy"))
    disk.with_suffix(".copy").unlink()
    cluster.ok("instance startup", NAME)
    logs = [cluster.paths(node).kvm_log / f"{NAME}-serial.log" for node in ("node1", "node2")]
    while not logs[0].exists() or len(writing_guest.list_numbers(logs[0].read_text())) < 100:
        time.sleep(0.1)
    before = len(writing_guest.list_numbers(logs[0].read_text()))
    idle = Watch(logs)
    time.sleep(5)
    still = idle.stop()
    written = (len(writing_guest.list_numbers(logs[0].read_text())) - before) * _SECTORS / 2048 / 5
    watch = Watch(logs)
    begun = time.monotonic()
    said = cluster.ok(
        f"instance move -f --live --bandwidth {bandwidth} -n node2", NAME, timeout=3600
    ).out
    seconds = time.monotonic() - begun
    time.sleep(1)
    pause = watch.stop()
    print(said, file=sys.stderr)
    cluster.ok("instance shutdown --timeout=0", NAME)
    [disk] = (cluster.root("node2") / "srv/ganeti/file-storage" / NAME).iterdir()
    last = writing_guest.check_disk(disk)
    return {
        "disk_mib": size,
        "numbers": last,
        "guest_writes_mib_per_s": round(written, 2),
        "plain_tcp_mib_per_s": round(size / plain, 1),
        "move_s": round(seconds, 1),
        "move_mib_per_s": round(size / seconds, 1),
        "longest_silence_s": round(pause, 3),
        "longest_silence_without_move_s": round(still, 3),
        "load": os.getloadavg()[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--rate", type=int, default=8)
    parser.add_argument("--bandwidth", type=int, default=0)
    options = parser.parse_args()
    if shutil.which("qemu-system-x86_64") is None:
        sys.exit("qemu-system-x86_64 is not installed")
    with copy_cluster(2, "kvm") as cluster:
        print(json.dumps(measure(cluster, **vars(options)), indent=1))


if __name__ == "__main__":
    main()
