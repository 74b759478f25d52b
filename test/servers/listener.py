"""Runs in a server: notes what a guest prints on its serial socket, a line with the time each.

Usage: listener.py SOCKET FILE
"""

from __future__ import annotations

import socket
import sys
import time


def main() -> None:
    with socket.socket(socket.AF_UNIX) as sock, open(sys.argv[2], "ab", buffering=0) as out:
        sock.connect(sys.argv[1])
        rest = b""
        while data := sock.recv(4096):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                out.write(b"%.2f %s\n" % (time.time(), line.strip()))


main()
