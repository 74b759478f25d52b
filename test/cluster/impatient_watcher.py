"""``ganeti-watcher`` that gives daemons seconds where it gives them half a minute."""

from __future__ import annotations

import sys

from ganeti.watcher import daemons, program

if __name__ == "__main__":
    daemons._PATIENCE, daemons._LAST_WORDS = 2.0, 1.0
    sys.exit(program.main())
