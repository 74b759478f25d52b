"""Storage of nodes and what still fits: asked and computed for the survey."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ganeti.base.clock import Clock
from ganeti.base.json_types import JsonObject
from ganeti.jobs.execution import JobHandle
from ganeti.master.survey import Room
from ganeti.model.job import Submitter
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.placement import OpClusterCapacity
from ganeti.ops.cluster.capacity import ClusterCapacity
from ganeti.ops.operation import Context

_NORMAL = 0


class NoJob:
    """Stands where an operation has its job; it may neither log nor submit."""

    job_id = 0
    priority = 0
    submitter: Submitter | None = None

    def __init__(self) -> None:
        self.cancel_asked = threading.Event()

    def log(self, message: object, kind: str = "message") -> None:
        """Nobody reads it: nodes that do not answer are reported elsewhere."""

    def submit(self, jobs: list[list[OpCode]]) -> list[int]:
        return []

    def stop_requested(self) -> bool:
        return False


def examine(
    query: Callable[[str, list[str], object], JsonObject],
    make_context: Callable[[JobHandle], Context],
    clock: Clock,
) -> Room:
    """Ask the nodes; blocks as long as they take to answer. Raises GanetiError of the model."""
    rows = query("node", ["name", "dtotal", "dfree"], None)["data"]
    storage = {row[0][1]: (_number(row[1]), _number(row[2])) for row in rows}
    operation = ClusterCapacity(OpClusterCapacity(), make_context(NoJob()))
    operation.plan = operation.decide()
    return Room(clock.now(), storage, operation.run()["groups"])


def _number(cell: tuple[int, Any]) -> int | None:
    status, value = cell
    return int(value) if status == _NORMAL and value is not None else None
