"""How many examples Hypothesis tries: few at each run, ``EXAMPLES=20`` tries 20 times as many."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

#: How many times as many examples as usual.
TIMES = int(os.environ.get("EXAMPLES", "1"))


def examples(usual: int, **more: Any) -> settings:
    """Settings of a test; ``usual`` is the number of examples at each run."""
    return settings(max_examples=usual * TIMES, **more)
