"""How a tool runs: what goes wrong is one line, and never a traceback."""

from __future__ import annotations

import sys
from collections.abc import Callable

from ganeti import constants, errors
from ganeti.base import files


def run(program: str, work: Callable[[], int]) -> int:
    """The exit code of ``work``; 1 when it fails, with the reason on standard error."""
    try:
        return work()
    except errors.GanetiError as err:
        text = errors.text(err)
    except OSError as err:
        text = errors.text(files.failure(err))
    except KeyboardInterrupt:
        text = "interrupted"
    print(f"{program}: {text}", file=sys.stderr)
    return constants.EXIT_FAILURE
