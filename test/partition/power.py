"""The power of the nodes of a cluster in namespaces, and the devices that switch it.

A node without power has a file beside its root directory. Run as a program this is such a device,
an out-of-band helper or a fence agent: ``power.py DIRECTORY helper|agent [COMMAND NODE]``. What it
does for a node is in a file: it works, is slow, fails, or lies, which is to say off and do nothing.

It imports nothing of the cluster, as a device is started often.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path

#: Seconds for which a slow device waits.
SLOW = 20.0
DEVICES = ("agent", "helper")
#: What the log says of a node that loses power.
OFF = "has no power"
#: Seconds in which nothing new may appear before a node counts as off.
_QUIET = 0.5
_AGENT_OFF = 2


def marker(directory: Path, short: str) -> Path:
    """The file that a node without power has."""
    return directory / f"{short}.off"


def log_file(directory: Path) -> Path:
    """What the devices did: moment, node and action, a line each."""
    return directory / "power.log"


def mode_file(directory: Path, kind: str, short: str) -> Path:
    return directory / f"{short}.{kind}"


def holder_file(directory: Path, short: str) -> Path:
    """The pid of the process that holds the namespace of a node."""
    return directory / f"{short}.holder"


def list_processes(holder: int) -> list[int]:
    """All processes in the network namespace of another, which is not named itself."""
    wanted = os.readlink(f"/proc/{holder}/ns/net")
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in (holder, os.getpid()):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{name}/ns/net") == wanted:
                    found.append(int(name))
    return found


def switch_off(directory: Path, short: str) -> None:
    """End everything on a node at once: daemons, commands and guests. Idempotent."""
    note(directory, short, OFF)
    marker(directory, short).touch()
    holder = int(holder_file(directory, short).read_text())
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < _QUIET:
        for pid in list_processes(holder):
            quiet_since = time.monotonic()
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)  # processes that were on their way into the namespace
    _forget_boot(directory / short)


def switch_on(directory: Path, short: str) -> None:
    """Give a node power; nothing runs there yet."""
    note(directory, short, "has power")
    marker(directory, short).unlink(missing_ok=True)


def note(directory: Path, short: str, what: str) -> None:
    with log_file(directory).open("a") as stream:
        stream.write(f"{time.time():.3f} {short} {what}\n")


def read_log(directory: Path) -> list[tuple[float, str, str]]:
    """Moments (since 1970), nodes, and what happened."""
    try:
        lines = log_file(directory).read_text().splitlines()
    except FileNotFoundError:
        return []
    parts = [line.split(" ", 2) for line in lines]
    return [(float(moment), short, what) for moment, short, what in parts]


def _forget_boot(root: Path) -> None:
    """What is in memory only: the guests, and the files below /run."""
    run = root / "var/run/ganeti"
    shutil.rmtree(run / "fake-hypervisor", ignore_errors=True)
    for place, _directories, names in os.walk(run):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(place, name))


def _act(directory: Path, kind: str, short: str, action: str) -> bool | None:
    """Do what a device was told; whether the node is on, None when the device fails."""
    mode = mode_file(directory, kind, short).read_text().strip()
    note(directory, short, f"{kind} ({mode}): {action}")
    if mode == "fails":
        return None
    off = marker(directory, short)
    lie = off.with_suffix(f".{kind}-lie")
    if action == "off":
        if mode == "lies":
            lie.touch()
        else:
            time.sleep(SLOW if mode == "slow" else 0.0)  # a management controller takes its time
            switch_off(directory, short)
    return not (off.exists() or (mode == "lies" and lie.exists()))


def main(words: list[str]) -> int:
    directory, kind = Path(words[0]), words[1]
    if kind == "agent":
        given = dict(line.partition("=")[::2] for line in sys.stdin.read().split())
        short, action = given["plug"], given["action"]
    else:
        action, short = words[2].removeprefix("power-"), words[3].partition(".")[0]
    on = _act(directory, kind, short, action)
    if on is None:
        print("the management controller does not answer", file=sys.stderr)
        return 1
    if kind == "agent":
        return _AGENT_OFF if action == "status" and not on else 0
    if action == "status":
        print('{"powered": true}' if on else '{"powered": false}')
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
