"""The node calls about measurements."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.rpc.samples import LatestSamples, Samples
from ganeti.rpc.timing import URGENT, call


class SampleCalls(ABC):
    """Answered by :class:`ganeti.node.samples.NodeSamples`."""

    @abstractmethod
    @call(timeout=URGENT)
    def samples_latest(self) -> LatestSamples:
        """The newest measurements; nothing is measured for it."""

    @abstractmethod
    @call(timeout=URGENT)
    def samples_read(self, name: str, begin: int, end: int, step: int) -> Samples:
        """Averages over intervals of ``step`` seconds between two Unix times.

        ``name`` is an instance, or empty for the node itself. Of what this node never measured
        there are no series.
        """

    @abstractmethod
    @call(timeout=URGENT)
    def samples_rename(self, changes: list[tuple[str, str]]) -> None:
        """Instances have another name (old, new), or with an empty new one are gone."""
