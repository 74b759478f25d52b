"""The programs that stand in for storage tools, and the server that does what they are asked.

A test calls these programs thousands of times, so each is a few lines of Perl, which start in a
quarter of the time that an interpreter of Python takes. They hand their words to a server by a
socket, print what comes back, and end with the exit code.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable

from stand_in_drbdsetup import Drbdsetup, drbdmeta
from stand_in_lvm import Lvm
from stand_in_world import ToolError, World

#: Seconds between two looks of a command that waits.
_LOOK = 0.03
_PR_SET_PDEATHSIG = 1
#: Parts of an event that change.
_CHANGING = ("role:", "connection:", "disk:", "replication:", "peer-disk:")
_BUSY = ("WFConnection", "SyncSource", "SyncTarget", "PausedSyncS", "PausedSyncT")
#: Head of a message to a program: ``o`` (output), ``e`` (error) or ``x`` (exit code), and length.
_HEAD = struct.Struct("!cI")
_PROGRAM = """\
#!/usr/bin/perl
# Asks a test what this tool does.
sub get {{
    my ($size, $data) = ($_[0], '');
    while (length $data < $size) {{
        sysread(S, $data, $size - length $data, length $data) or exit 111;
    }}
    $data
}}
socket(S, 1, 1, 0) && connect(S, pack('S a*', 1, '{socket}')) or die "no test answers: $!\\n";
my $request = join("\\0", '{tool}', '{directory}', '{node}', @ARGV);
syswrite(S, pack('N', length $request) . $request);
while (1) {{
    my ($kind, $size) = unpack('a N', get(5));
    my $data = get($size);
    exit $data if $kind eq 'x';
    syswrite($kind eq 'o' ? STDOUT : STDERR, $data);
}}
"""

Say = Callable[[str], None]


def program(tool: str, directory: str, node: str) -> str:
    """Text of the program for a tool of a node."""
    return _PROGRAM.format(socket=_server().path, tool=tool, directory=directory, node=node)


class _Server:
    """The process that answers the programs; it ends with the one that made it."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="tools-")
        self.path = f"{self._directory.name}/socket"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.path)
            listener.listen(64)
            self._child = subprocess.Popen(
                [sys.executable, __file__, str(listener.fileno())],
                pass_fds=[listener.fileno()],
                stdin=subprocess.DEVNULL,
            )

    def close(self) -> None:
        self._child.kill()
        self._child.wait(10)
        self._directory.cleanup()


@functools.cache
def _server() -> _Server:
    made = _Server()
    atexit.register(made.close)
    return made


def serve(listener: socket.socket) -> None:
    """Answer programs, in a thread for each, until the process that made this one ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    while True:
        connection, _address = listener.accept()
        threading.Thread(target=_serve, args=(connection,), daemon=True).start()


def _serve(connection: socket.socket) -> None:
    def send(kind: bytes, text: str) -> None:
        data = text.encode()
        connection.sendall(_HEAD.pack(kind, len(data)) + data)

    with connection:
        size = int.from_bytes(_receive(connection, 4))
        tool, directory, node, *words = _receive(connection, size).decode().split("\0")
        try:
            try:
                code = _do(World(directory), tool, node, words, functools.partial(send, b"o"))
            except ToolError as err:
                send(b"e", f"{err}\n")
                code = err.code
            send(b"x", str(code))
        except BrokenPipeError:
            return  # the program was killed


def _receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            sys.exit()  # the program was killed
        data += more
    return data


def _do(world: World, tool: str, node: str, words: list[str], say: Say) -> int:
    """Do what a tool does; its exit code. ToolError for a failure with a text."""
    with world.lock():
        rule = world.rule(node, tool, words)
    if rule is not None:
        time.sleep(rule["delay"])  # what the rule asks for: a slow tool
        if rule["fail"] is not None:
            raise ToolError(int(rule["code"]), rule["fail"])
        if rule["output"] is not None:
            say(rule["output"])
            return 0
    if tool == "drbdsetup" and words[:1] == ["events2"] and "--now" not in words:
        _follow(world, node, words, say)
    if tool == "drbdsetup" and words[:1] in (["wait-connect"], ["wait-sync"]):
        return _wait(world, node, words)
    with world.lock():
        if tool == "drbdsetup":
            said = Drbdsetup(world, node).run(words)
        elif tool == "drbdmeta":
            said = drbdmeta(world, node, words)
        else:
            said = Lvm(world, node).run(tool, words)
    if said:
        say(said)
    return 0


def _follow(world: World, node: str, words: list[str], say: Say) -> None:
    """``events2``: what there is, then every change, until the program has gone."""
    arguments = [word for word in words[1:] if not word.startswith("--")]
    known: dict[str, str] = {}
    first = True
    while True:
        with world.lock():
            setup = Drbdsetup(world, node)
            setup.run(["events2", *arguments])
            facts = setup.facts(arguments)
        for line in facts:
            key = " ".join(word for word in line.split() if not word.startswith(_CHANGING))
            if known.get(key) != line:
                say(f"{'exists' if first else 'change'} {line}\n")
                known[key] = line
        # An empty text finds out whether the program is still there.
        say("exists -\n" if first else "")
        first = False
        time.sleep(_LOOK)  # time changes the world, and no event tells


def _wait(world: World, node: str, words: list[str]) -> int:
    """``wait-connect`` and ``wait-sync``: exit code 5 when the time is over."""
    busy = _BUSY[:1] if words[0] == "wait-connect" else _BUSY
    limits = [float(w.partition("=")[2]) for w in words if w.startswith("--wfc-timeout=")]
    end = time.monotonic() + limits[0] if limits and limits[0] else None
    while True:
        with world.lock():
            state = Drbdsetup(world, node).run(["cstate", words[1]]).strip()
        if state not in busy:
            return 0
        if end is not None and time.monotonic() > end:
            return 5
        time.sleep(_LOOK)  # time changes the world, and no event tells


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
