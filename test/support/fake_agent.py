"""A guest agent that answers what is asked, at the socket where QEMU would."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def agent(path: Path) -> Iterator[list[str]]:
    """Stand in for QEMU's socket, if there is one; gives the commands that it got."""
    seen: list[str] = []
    aside = path.with_name(f"{path.name}.qemu")
    path.rename(aside)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
            server.bind(f"/proc/self/fd/{directory}/{path.name}")
            os.close(directory)
            path.chmod(0o666)
            server.listen(4)
            thread = threading.Thread(target=_serve, args=(server, seen))
            thread.start()
            try:
                yield seen
            finally:
                server.shutdown(socket.SHUT_RDWR)
                thread.join(10)
    finally:
        with contextlib.suppress(FileNotFoundError):  # the guest may have ended, with its files
            aside.rename(path)


def _serve(server: socket.socket, seen: list[str]) -> None:
    while True:
        try:
            link, _ = server.accept()
        except OSError:
            return
        with link, link.makefile("rb") as lines, contextlib.suppress(OSError):
            for line in lines:
                request = json.loads(line.lstrip(b"\xff"))
                seen.append(request["execute"])
                sync = request["execute"] == "guest-sync"
                answer = {"return": request["arguments"]["id"] if sync else 1}
                link.sendall(json.dumps(answer).encode() + b"\n")
