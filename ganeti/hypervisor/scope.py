"""Guests in scopes of systemd: what happens to the unit of the node daemon does not touch them."""

from __future__ import annotations

import secrets

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
    unit = f"ganeti-guest-{name[:_LONGEST]}-{secrets.token_hex(4)}.scope"
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
