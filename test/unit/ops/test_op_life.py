"""The life of an operation: locks step by step, check, run, undo, release."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ganeti import constants, errors
from ganeti.base.clock import SYSTEM
from ganeti.config.job_claims import JobClaims
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.locking.manager import LockManager
from ganeti.model.cluster import Cluster
from ganeti.model.config import Config, ConfigData
from ganeti.model.instance import Instance
from ganeti.model.job import Submitter
from ganeti.model.limits import Limits
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.cluster import OpClusterRename
from ganeti.opcodes.instance import OpInstanceStartup
from ganeti.opcodes.test import OpTestDummy
from ganeti.ops.operation import Context, Needs, Operation
from ganeti.ops.runner import OpExecution, Runner
from ganeti.ops.targets import instance as instance_target
from ganeti.paths import Paths

JOB = 7


def state(*instances: Instance) -> Config:
    cluster = Cluster(
        uuid="c",
        cluster_name="c",
        master_node="n",
        master_ip="192.0.2.1",
        master_netdev="lo",
        master_netmask=32,
    )
    return Config(
        ConfigData(
            version=constants.CONFIG_VERSION,
            cluster=cluster,
            instances={i.uuid: i for i in instances},
        )
    )


WEB1 = Instance(uuid="i-1", name="web1.example.com")


@pytest.fixture
def ctx(tmp_path) -> Context:
    """A real set of locks and promises, and no nodes."""
    manager = LockManager([level.label for level in LockLevel])
    manager.create(LockLevel.INSTANCE, ["web1.example.com", "web2.example.com"])
    said: list[Any] = []
    job = SimpleNamespace(job_id=JOB, priority=0, submitter=None, log=said.append, said=said)
    return Context(
        job=job,
        store=SimpleNamespace(current=state(WEB1)),
        rpc=None,
        locks=manager,  # type: ignore[arg-type]
        claims=JobClaims(),
        clock=SYSTEM,
        paths=Paths(tmp_path),
        services=None,  # type: ignore[arg-type]
    )


class OpTestUnknown(OpCode, tag="OP_TEST_UNKNOWN", kw_only=True):
    """Has no operation."""


class Recorded(Operation[OpTestDummy, str]):
    """Says what is called; fails where ``op.fail`` tells."""

    def __init__(self, op: OpTestDummy, ctx: Context) -> None:
        super().__init__(op, ctx)
        self.steps: list[str] = []

    def _step(self, name: str) -> None:
        self.steps.append(name)
        if self.op.fail == name:
            raise errors.OpExecError(f"{name} failed")

    def locks(self) -> Needs:
        self._step("locks")
        yield Need(LockLevel.INSTANCE, ["web1.example.com"])
        self._step("locked")

    def check(self) -> None:
        self._step("check")
        self.ctx.claim("name", "web9")

    def preview(self) -> str:
        return "would have"

    def run(self) -> str:
        self.ctx.undo.callback(self._step, "undo first")
        self.ctx.undo.callback(self._step, "undo second")
        self._step("run")
        return "done"


def advance(execution: OpExecution, ctx: Context) -> list[Need]:
    """Get all locks, as the job queue does."""
    needs = []
    while (need := execution.advance()) is not None:
        needs.append(need)
        if need.level != LockLevel.CLUSTER:
            ctx.locks.request(
                JOB, need.level, need.names, shared=need.shared, on_done=lambda _request: None
            )
    return needs


def begin(ctx: Context, **options: Any) -> OpExecution:
    return OpExecution(Recorded, OpTestDummy(**options), ctx)


def test_everything_happens_in_order(ctx):
    execution = begin(ctx)
    needs = advance(execution, ctx)
    assert [(n.level, n.shared) for n in needs] == [
        (LockLevel.CLUSTER, True),
        (LockLevel.INSTANCE, False),
    ]
    assert execution.run() == "done"
    assert execution._operation.steps == ["locks", "locked", "check", "run"]


def test_a_failure_is_undone_in_reverse(ctx):
    execution = begin(ctx, fail="run")
    advance(execution, ctx)
    with pytest.raises(errors.OpExecError, match="run failed"):
        execution.run()
    assert execution._operation.steps[-3:] == ["run", "undo second", "undo first"]


def test_a_refusal_does_nothing(ctx):
    execution = begin(ctx, fail="check")
    advance(execution, ctx)
    with pytest.raises(errors.OpExecError, match="check failed"):
        execution.run()
    assert "run" not in execution._operation.steps


def test_a_dry_run_ends_after_the_checks(ctx):
    execution = begin(ctx, dry_run=True)
    advance(execution, ctx)
    assert execution.run() == "would have"
    assert execution._operation.steps[-1] == "check"
    assert "nothing was changed" in ctx.job.said[0]


@pytest.mark.parametrize("fail", [None, "run", "check", "locked"])
def test_locks_and_promises_end_with_the_operation(ctx, fail):
    execution = begin(ctx, fail=fail)
    try:
        advance(execution, ctx)
        execution.run()
    except errors.OpExecError:
        pass
    execution.close()
    execution.close()
    assert ctx.list_held(LockLevel.INSTANCE) == frozenset()
    ctx.claims.claim("name", "web9", JOB + 1)


def test_some_operations_want_the_cluster_for_themselves(ctx):
    execution = OpExecution(Recorded, OpClusterRename(name="other"), ctx)  # type: ignore[arg-type]
    first = execution.advance()
    assert first is not None
    assert (first.level, first.shared) == (LockLevel.CLUSTER, False)
    execution.close()


def test_an_opcode_without_operation_is_refused_when_it_is_handed_in(ctx):
    with pytest.raises(errors.OpNotBuiltError):
        Runner(lambda job: ctx).check_submission(OpTestUnknown())


class TestInstanceLock:
    def take(self, ctx: Context, name: str) -> tuple[Need, Any]:
        needs = instance_target.lock(ctx, name)
        return next(needs), needs

    def test_short_names_lock_the_full_name(self, ctx):
        need, needs = self.take(ctx, "web1")
        assert need.names == ["web1.example.com"]
        with pytest.raises(StopIteration) as ended:
            next(needs)
        assert ended.value.value == WEB1

    def test_the_instance_is_read_anew_when_the_lock_is_held(self, ctx):
        _need, needs = self.take(ctx, "web1")
        newer = Instance(uuid="i-1", name=WEB1.name, os="debian")
        ctx.store.current = state(newer)
        with pytest.raises(StopIteration) as ended:
            next(needs)
        assert ended.value.value == newer

    @pytest.mark.parametrize(
        "now", [(), (Instance(uuid="i-1", name="other"),), (Instance(uuid="i-2", name=WEB1.name),)]
    )
    def test_one_that_went_away_meanwhile_is_refused(self, ctx, now):
        _need, needs = self.take(ctx, "web1")
        ctx.store.current = state(*now)
        with pytest.raises(errors.OpPrereqError, match="removed or renamed while this job waited"):
            next(needs)

    def test_an_unknown_one_is_refused_at_once(self, ctx):
        with pytest.raises(errors.OpPrereqError, match="'web7' is not known"):
            self.take(ctx, "web7")

    def test_a_promised_one_is_not_real(self, ctx):
        ctx.store.current = state(Instance(uuid="i-1", name=WEB1.name, forthcoming=True))
        needs = instance_target.lock_real(ctx, "web1")
        next(needs)
        with pytest.raises(errors.OpPrereqError, match="is forthcoming"):
            next(needs)


def test_parts_of_a_level_can_be_given_back(ctx):
    names = ["web1.example.com", "web2.example.com"]
    ctx.locks.request(JOB, LockLevel.INSTANCE, names, shared=False, on_done=lambda _r: None)
    ctx.release(LockLevel.INSTANCE, keep=["web2.example.com"])
    assert ctx.list_held(LockLevel.INSTANCE) == {"web2.example.com"}
    ctx.downgrade(LockLevel.INSTANCE)
    assert not ctx.locks.holds(JOB, LockLevel.INSTANCE, "web2.example.com", shared=False)
    ctx.release(LockLevel.INSTANCE)
    assert ctx.list_held(LockLevel.INSTANCE) == frozenset()


class Named(Recorded):
    """Locks the instance that the opcode names."""

    def locks(self) -> Needs:
        yield from instance_target.lock(self.ctx, self.op.instance_name)


@pytest.mark.parametrize(
    "foreign", [(), ("web1-of-others.example.com",), ("web1.a.example.com", "web1.b.example.com")]
)
def test_who_is_limited_is_not_told_names_of_others(ctx, foreign):
    """The instance was removed after the job was submitted; the hint would be somebody else's."""
    ctx.job.submitter = Submitter(uid=0, limits=Limits(name="token:t", tag="mine"))
    ctx.store.current = state(*(Instance(uuid=name, name=name) for name in foreign))
    execution = OpExecution(Named, OpInstanceStartup(instance_name="web1"), ctx)
    with pytest.raises(errors.AccessError) as caught:
        advance(execution, ctx)
    assert errors.text(caught.value) == (
        "token:t is limited to tag 'mine' and may not do anything with instance 'web1'"
    )
