"""Node calls that run allocators, out-of-band programs and restricted commands."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.base.json_types import JsonObject
from ganeti.rpc.timing import NORMAL, SLOW, call


class ExternalCalls(ABC):
    """Answered by :class:`ganeti.node.external.External`."""

    @abstractmethod
    @call(timeout=NORMAL)
    def iallocator_runner(
        self, name: str, idata: str, default_iallocator_params: JsonObject
    ) -> str:
        """Run an allocator with the text of a request; returns what it wrote."""

    @abstractmethod
    @call(timeout=NORMAL)
    def run_oob(self, oob_program: str, command: str, remote_node: str, timeout: int) -> str:
        """Run the out-of-band program for another node; returns what it wrote."""

    @abstractmethod
    @call(timeout=NORMAL)
    def run_fence_agent(self, agent: str, action: str, remote_node: str, timeout: int) -> str:
        """Run a fence agent for another node: ``off``, or ``status``, which returns on or off."""

    @abstractmethod
    @call(timeout=SLOW)
    def restricted_command(self, cmd: str) -> str:
        """Run a program of the directory of restricted commands; returns what it wrote."""
