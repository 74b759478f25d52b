"""Runs inside a lab machine: carries out what the host asks for over a virtio port.

One JSON object on a line each way. Asked: ``{"id": N, "argv": [...]}``, with ``stdin``, ``env``,
``timeout`` if wanted. Answered: ``{"id": N, "code": N, "out": "...", "err": "..."}``. Requests run
side by side. ``{"op": "poweroff"}`` ends the machine.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

NAME = "lab.agent"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def find_port() -> str:
    for _ in range(100):
        for name in Path("/sys/class/virtio-ports").glob("*/name"):
            if name.read_text().strip() == NAME:
                return f"/dev/{name.parent.name}"
        time.sleep(0.1)  # the kernel is finding devices; nothing here hears udev
    raise SystemExit(f"agent: there is no virtio port {NAME}")


class Port:
    """The host's end may be closed and opened again."""

    def __init__(self) -> None:
        self._fd = os.open(find_port(), os.O_RDWR)
        self._lock = threading.Lock()

    def send(self, value: dict[str, object]) -> None:
        data = json.dumps(value).encode() + b"\n"
        with self._lock:
            while data:
                data = data[os.write(self._fd, data) :]

    def read(self) -> bytes:
        try:
            return os.read(self._fd, 65536)
        except OSError:
            return b""


def run(port: Port, request: dict[str, object]) -> None:
    answer: dict[str, object] = {"id": request["id"]}
    env = {**os.environ, **request.get("env", {})}  # type: ignore[dict-item]
    try:
        child = subprocess.Popen(
            request["argv"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            text=True,
            errors="replace",
            cwd="/root",
            start_new_session=True,
        )
    except OSError as failure:
        port.send({**answer, "code": 127, "out": "", "err": str(failure)})
        return
    try:
        out, err = child.communicate(request.get("stdin") or "", request["timeout"])
        code = child.returncode
    except subprocess.TimeoutExpired:
        # What it started goes too, or its pipes would never close.
        os.killpg(child.pid, signal.SIGKILL)
        out, err = child.communicate()
        code = 124
    port.send({**answer, "code": code, "out": out, "err": err})


def main() -> None:
    os.environ.update(HOME="/root", PATH=PATH, LC_ALL="C")
    port = Port()
    port.send({"hello": os.uname().nodename})
    rest = b""
    while True:
        data = port.read()
        if not data:  # nobody has the host's end open
            time.sleep(0.05)  # a port without a reader is always ready: select() would spin
            continue
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            request = json.loads(line)
            if request.get("op") == "poweroff":
                os.sync()
                Path("/proc/sysrq-trigger").write_text("o")
            else:
                threading.Thread(target=run, args=(port, request), daemon=True).start()


main()
