"""Do what the opcode says: log messages, submit jobs, fail, or return a result."""

from __future__ import annotations

from typing import Any

from ganeti import errors
from ganeti.opcodes import wire
from ganeti.opcodes.test import OpTestDummy
from ganeti.ops.operation import PlannedOperation
from ganeti.ops.steps.nodes import departures

_JOBS = "submit_jobs is a list of jobs, each a list of opcodes"


class TestDummy(PlannedOperation[OpTestDummy, list[list[Any]], Any]):
    """``messages`` is a text or a list of texts. With ``submit_jobs`` the result is their ids."""

    __test__ = False  # not a test case, whatever its name

    def decide(self) -> list[list[object]]:
        """The jobs to submit."""
        jobs = self.op.submit_jobs or []
        if not isinstance(jobs, list) or not all(isinstance(job, list) for job in jobs):
            raise errors.make_invalid_error(_JOBS)
        return [[wire.from_wire(op) for op in job] for job in jobs]

    def run(self) -> object:
        op = self.op
        for text in op.messages if isinstance(op.messages, list) else [op.messages]:
            if text:
                self.ctx.log(str(text))
        if op.fail:
            raise errors.OpExecError("this opcode was asked to fail")
        if self.plan:
            return departures.submit_all(self.ctx, op, self.plan)
        return op.result
