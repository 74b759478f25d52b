"""The node call that runs hooks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ganeti.rpc.timing import NORMAL, call


class HookCalls(ABC):
    """Answered by :class:`ganeti.node.hooks.Hooks`."""

    @abstractmethod
    @call(timeout=NORMAL)
    def hooks_runner(self, hpath: str, phase: str, env: dict[str, str]) -> list[list[Any]]:
        """Run the hooks ``<hpath>-<phase>.d``: ``[script, code, output]`` for each."""
