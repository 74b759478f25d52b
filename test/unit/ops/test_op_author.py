"""Whom and which reason the history of the configuration names for what an operation changes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ganeti.base.clock import SYSTEM
from ganeti.config.changes import Author
from ganeti.model.job import Submitter
from ganeti.opcodes.test import OpTestDelay
from ganeti.ops.operation import Context, reason_of
from ganeti.ops.runner import Runner
from ganeti.paths import Paths

CLIENT = ("gnt:client:gnt-instance", "startup", 2)
OPCODE = ("gnt:opcode:instance_startup", "job=7;index=0", 3)


def op(*trail: tuple[str, str, int]) -> OpTestDelay:
    return OpTestDelay(duration=1.0, reason=list(trail))


@pytest.mark.parametrize(
    ("trail", "reason"),
    [
        ([], ""),
        ([CLIENT, OPCODE], ""),
        ([("gnt:user", "moving house", 1), CLIENT, OPCODE], "moving house"),
        ([CLIENT, ("gnt:user", "", 1), ("gnt:user", "second", 1)], "second"),
        ([("gnt:watcher", "was down", 1), CLIENT], "was down"),
        ([("gnt:watcher", "was down", 1), ("gnt:user", "by hand", 2)], "by hand"),
        ([("rlib2:PUT_2_instances", "", 1), ("rlib2:x", "y", 1)], ""),
        ([("gnt:library:rlib2:tags", "alice", 1)], ""),
    ],
)
def test_the_reason_is_that_of_a_person_or_else_of_a_program(trail, reason):
    assert reason_of(op(*trail)) == reason


@pytest.mark.parametrize(
    ("submitter", "user"),
    [
        (Submitter(uid=1000, name="alice"), "alice"),
        (Submitter(uid=1234), "uid 1234"),
        (None, ""),
        (Submitter(uid=0, name="root", user="rapi:bob"), "rapi:bob"),
    ],
)
def test_an_operation_changes_in_the_name_of_its_submitter(tmp_path, submitter, user):
    made: list[Context] = []

    def context(job: Any) -> Context:
        nothing: Any = None
        made.append(
            Context(
                job=job,
                store=nothing,
                rpc=nothing,
                locks=nothing,
                claims=nothing,
                clock=SYSTEM,
                paths=Paths(tmp_path),
                services=nothing,
            )
        )
        return made[0]

    job: Any = SimpleNamespace(job_id=7, submitter=submitter)
    Runner(context).start(op(("gnt:user", "why", 1)), job)
    assert made[0].author == Author(job=7, user=user, reason="why")
