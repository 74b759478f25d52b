"""Run from a package that was only unpacked: ``.../venv/bin/python -m ganeti.offline.takeover``."""

from __future__ import annotations

import sys

from ganeti.offline.takeover.program import main

sys.exit(main())
