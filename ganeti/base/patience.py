"""How much longer than usual this machine may take: one factor for all limits of time.

``GANETI_TIME_FACTOR`` (a number from 1 to 1000, default 1) multiplies the limits of node calls, of
LUXI connections, of answers of QEMU, of external programs and of the start of daemons. It is for
machines that are many times slower than a server (an emulated processor, a debugger attached),
where a limit that never passes on a server would end work that goes well. It belongs into the
environment of the daemons and of the commands alike. Times that an administrator sets
(``--timeout``) stay as they are.
"""

from __future__ import annotations

import os
from functools import cache

from ganeti import errors

VARIABLE = "GANETI_TIME_FACTOR"
LARGEST = 1000.0


def scale(seconds: float) -> float:
    """A limit in seconds as it holds on this machine.

    Raises:
        ParameterError: the variable holds no number from 1 to 1000.
    """
    return seconds * _factor(os.environ.get(VARIABLE) or "1")


@cache
def _factor(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1.0 <= value <= LARGEST:  # false for "nan", too
        raise errors.ParameterError(
            f"variable {VARIABLE} is '{text}'; it must be a number from 1 to {LARGEST:g}"
        )
    return value
