"""Guests in scopes of systemd: what happens to the unit of the node daemon does not touch them."""

from __future__ import annotations

import secrets
from pathlib import Path

from ganeti import constants
from ganeti.base import services
from ganeti.paths import Paths

#: The slice of all guests; systemd-cgtop and limits of an administrator apply to it.
SLICE = "ganeti-guests.slice"
#: Stops first at the end of the system, so that guests stop in their order.
_EMPTIED_BY = "ganeti-guests.service"
#: Letters of a name that fit into the name of a unit with the rest.
_LONGEST = 200


def enter(paths: Paths, name: str) -> list[str]:
    """Words before a command line that begins a guest; none where systemd has no node daemon.

    The scope ends with its last process. At the end of the system guests are stopped before the
    node daemon, and so before what this one needs. A part of the unit's name is random: that of a
    guest which has just ended may still be known.
    """
    if not services.uses_systemd(paths):
        return []
    unit = _new_unit(name)
    return [
        "systemd-run",
        "--scope",
        "--quiet",
        "--collect",
        f"--unit={unit}",
        f"--slice={SLICE}",
        f"--description=Instance {name}",
        f"--property=After={services.ALL[constants.NODED].unit}",
        f"--property=Before={_EMPTIED_BY}",
        "--property=TasksMax=infinity",
        "--",
    ]


def move_in(paths: Paths, name: str, pid: int) -> list[str]:
    """The command that gives a guest which runs already a scope; none where :func:`enter` has none.

    Also none for a guest that is in one.
    """
    if not services.uses_systemd(paths) or SLICE in _read_cgroup(pid):
        return []
    bus = "org.freedesktop.systemd1"
    properties = [
        ["PIDs", "au", "1", str(pid)],
        ["Slice", "s", SLICE],
        ["Description", "s", f"Instance {name}"],
        ["After", "as", "1", services.ALL[constants.NODED].unit],
        ["Before", "as", "1", _EMPTIED_BY],
        ["CollectMode", "s", "inactive-or-failed"],
        ["TasksMax", "t", str((1 << 64) - 1)],
    ]
    call = ["busctl", "call", bus, f"/{bus.replace('.', '/')}", f"{bus}.Manager"]
    call += ["StartTransientUnit", "ssa(sv)a(sa(sv))", _new_unit(name), "fail"]
    call += [str(len(properties)), *(word for words in properties for word in words), "0"]
    return call


def _new_unit(name: str) -> str:
    return f"ganeti-guest-{name[:_LONGEST]}-{secrets.token_hex(4)}.scope"


def _read_cgroup(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
