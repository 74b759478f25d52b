"""Takes an operation through its life cycle; the operations' side of the job queue."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

from ganeti import errors
from ganeti.config import limits
from ganeti.jobs.execution import JobHandle, Need
from ganeti.locking.levels import BGL, LockLevel
from ganeti.opcodes.base import OpCode
from ganeti.ops import hooks, registry
from ganeti.ops.operation import Context, Operation, reason_of

_LOG = logging.getLogger(__name__)


class Runner:
    """Makes executions for the queue."""

    def __init__(self, make_context: Callable[[JobHandle], Context]) -> None:
        self._make_context = make_context

    def check_submission(self, op: OpCode) -> None:
        """Refuse an opcode without operation (OpNotBuiltError), or that its operation refuses."""
        registry.find(op.op_id).check_submission(op)

    def start(self, op: OpCode, job: JobHandle) -> OpExecution:
        context = self._make_context(job)
        context.reason = reason_of(op)
        cls = registry.find(op.op_id).variant(op, context)
        return OpExecution(cls, op, context)


class OpExecution:
    """One opcode on its way: locks step by step, then check, hooks and run."""

    def __init__(self, cls: type[Operation[Any, object]], op: OpCode, ctx: Context) -> None:
        self._operation = cls(op, ctx)
        self._op = op
        self._ctx = ctx
        self._needs = self._all_needs()

    @property
    def cancelable(self) -> bool:
        return self._operation.cancelable

    def _all_needs(self) -> Iterator[Need]:
        yield Need(LockLevel.CLUSTER, (BGL,), shared=not self._op.exclusive_bgl)
        yield from self._operation.locks()

    def advance(self) -> Need | None:
        """The next locks to get, None when all are held."""
        try:
            return next(self._needs, None)
        except errors.GanetiError:
            # The text may name objects of others, such as one with a similar name.
            self._check_limits()
            raise

    def _check_limits(self) -> None:
        """Check again, as names may mean something else than when the job was submitted."""
        limited = self._ctx.author.limits
        if limited is not None:
            limits.check(self._ctx.config, limited, self._op)

    def run(self) -> object:
        """Check, run hooks, run; undo what was done if the operation fails."""
        operation = self._operation
        self._check_limits()
        operation.check()
        before = operation.hooks()
        hooks.run_pre(self._ctx, self._op, before)
        if self._op.dry_run:
            result = operation.preview()
            self._ctx.log("Dry run: nothing was changed")
            return result
        serial = self._ctx.config.data.serial_no
        try:
            with self._ctx.undo as undo:
                result = operation.run()
                undo.pop_all()
            hooks.run_post(self._ctx, self._op, before, operation.hooks())
        finally:
            if self._ctx.config.data.serial_no != serial:
                hooks.run_config_update(self._ctx, self._op, before)
        return result

    def close(self) -> None:
        """Release locks, reservations and chosen places, whatever happened."""
        job_id = self._ctx.job.job_id
        self._ctx.locks.release(job_id)
        self._ctx.claims.release(job_id)
        self._ctx.boards.release(job_id)
        try:
            self._needs.close()  # type: ignore[attr-defined]
        except Exception:  # noqa: BLE001 - the job must end whatever its generator does
            _LOG.exception("the locks of the operation were not given up in order")
