"""Node calls about what this node daemon has measured."""

from __future__ import annotations

import os

from ganeti import errors
from ganeti.base import files
from ganeti.node import rings
from ganeti.node.context import NodeContext, check_name
from ganeti.node.rings import SERIES, Row, Shape
from ganeti.node.sampler import NODE, Sampler
from ganeti.rpc.calls.samples import SampleCalls
from ganeti.rpc.samples import LatestSamples, Samples

#: Most intervals of one answer.
MOST = 8640


class NodeSamples(SampleCalls):
    """Reads what the sampler keeps."""

    def __init__(self, context: NodeContext, sampler: Sampler) -> None:
        self._directory = context.paths.samples
        self._sampler = sampler

    def samples_latest(self) -> LatestSamples:
        return self._sampler.latest

    def samples_read(self, name: str, begin: int, end: int, step: int) -> Samples:
        """Averages; fine ones of the last day, else those of five minutes.

        Raises:
            ParameterError: the times make no sense, or it would be too much.
        """
        shape = _choose(begin, end, step)
        path = rings.path_of(self._directory, check_name(name) if name else NODE, shape)
        each = step // shape.step
        first = begin // step
        count = end // step - first + 1
        answer = Samples(start=first * step, step=step)
        if not path.exists():
            return answer
        kept = rings.read(path, shape, first * each, (first + count) * each - 1)
        rows: list[Row | None] = [*[None] * (count * each - len(kept)), *kept]
        means = [rings.average(rows[at : at + each]) for at in range(0, len(rows), each)]
        for index, key in enumerate(SERIES):
            answer.series[key] = [None if row is None else row[index] for row in means]
        return answer

    def samples_rename(self, changes: list[tuple[str, str]]) -> None:
        """Rename or remove files; what is not there needs nothing."""
        for old, new in changes:
            for shape in rings.SHAPES:
                path = rings.path_of(self._directory, check_name(old), shape)
                if not new:
                    files.remove(path)
                elif path.exists():
                    os.replace(path, rings.path_of(self._directory, check_name(new), shape))


def _choose(begin: int, end: int, step: int) -> Shape:
    """The rings for a question."""
    if step <= 0 or step % rings.DAY.step or not 0 <= begin <= end:
        raise errors.ParameterError(f"no samples from {begin} to {end} at {step} s")
    if (end - begin) // step >= MOST:
        raise errors.ParameterError(f"more than {MOST} samples at once; take a longer step")
    kept = rings.DAY.step * rings.DAY.count
    return rings.MONTH if step % rings.MONTH.step == 0 and end - begin > kept else rings.DAY
