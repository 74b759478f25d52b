"""Which queued jobs may begin, and which ones are looked at again when something ends."""

from __future__ import annotations

from typing import Any

import pytest

from ganeti import errors
from ganeti.jobs.gate import Dependency, Gate, Hold, dependencies_of
from ganeti.model.filter_rule import FilterRule
from ganeti.model.job import JobRecord, OpRecord
from ganeti.model.job_status import JobStatus
from ganeti.opcodes.base import JobDep
from ganeti.opcodes.test import OpTestDummy

ANY = (["opcode", ["=", "OP_ID", "OP_TEST_DUMMY"]],)
ONE_AT_A_TIME = "rate-limit:1:backups"


def job(number: int, *reasons: str, **more: Any) -> JobRecord:
    entries = [["gnt:user", text, 1] for text in reasons]
    op = OpRecord(input={"OP_ID": "OP_TEST_DUMMY", "reason": entries})
    return JobRecord(id=number, ops=[op], **more)


def rule(action: Any, number: int = 1) -> FilterRule:
    uuid = f"00000000-0000-4000-8000-{number:012d}"
    return FilterRule(uuid=uuid, watermark=0, priority=0, predicates=ANY, action=action)


def gate(**statuses: JobStatus | str) -> Gate:
    """A gate that knows jobs: ``j5=JobStatus.SUCCESS``, ``j6=""`` for one that has not ended."""
    return Gate(lambda number: statuses.get(f"j{number}"))


def depend_on(number: int, *statuses: str) -> Dependency:
    return Dependency(number, frozenset(statuses))


def check_hold(verdict: object) -> Hold:
    assert isinstance(verdict, Hold)
    return verdict


# dependencies


def test_a_job_without_dependencies_begins() -> None:
    assert gate().judge(job(1), []) is None


def test_it_waits_for_all_that_have_not_ended() -> None:
    hold = check_hold(
        gate(j1="", j2=JobStatus.SUCCESS, j3="").judge(job(9), map(depend_on, (1, 2, 3)))
    )
    assert hold.jobs == (1, 3)
    assert "job 1, 3" in hold.text
    assert hold.rule is None


@pytest.mark.parametrize("wanted", [[], ["success"], ["error", "success"]])
def test_it_begins_after_an_end_that_was_asked_for(wanted: list[str]) -> None:
    assert gate(j1=JobStatus.SUCCESS).judge(job(2), [depend_on(1, *wanted)]) is None


def test_another_end_is_an_error_that_names_both() -> None:
    verdict = gate(j1=JobStatus.CANCELED).judge(job(2), [depend_on(1, "success", "error")])
    assert isinstance(verdict, errors.OpExecError)
    assert "job 1 ended with status canceled, but error or success" in str(verdict)


def test_an_unknown_job_is_an_error() -> None:
    verdict = gate().judge(job(2), [depend_on(1)])
    assert isinstance(verdict, errors.OpExecError)
    assert "job 1, which this job depends on, does not exist" in str(verdict)


def test_who_waits_is_looked_at_when_the_other_job_ends_and_only_once() -> None:
    found = gate(j1="", j2="")
    for number in (9, 8):
        found.judge(job(number), [depend_on(1)])
    found.judge(job(7), [depend_on(2)])
    assert found.end_job(1) == [8, 9]
    assert found.end_job(1) == []
    assert found.end_job(2) == [7]


def test_a_canceled_job_is_not_looked_at_again() -> None:
    found = gate(j1="", j2="")
    for other in (1, 2):
        found.judge(job(9), [depend_on(other)])
        found.judge(job(10), [depend_on(other)])
    found.forget(9)
    assert found.end_job(1) == [10]
    assert found.end_job(2) == [10]


# filter rules


def test_a_paused_job_is_looked_at_when_rules_change() -> None:
    found = gate()
    pause = rule("PAUSE")
    assert found.set_rules([pause], []) == []
    hold = check_hold(found.judge(job(5), []))
    assert (hold.jobs, hold.rule) == ((), pause.uuid)
    assert found.set_rules([], []) == [5]
    assert found.judge(job(5), []) is None
    assert found.set_rules([], []) == [], "it is held no more"


def test_a_rejected_job_never_begins() -> None:
    found = gate()
    found.set_rules([rule("REJECT")], [])
    assert isinstance(found.judge(job(5), []), errors.JobCanceled)
    assert found.set_rules([], []) == []


def test_a_job_that_has_begun_is_not_stopped_by_a_rule() -> None:
    found = gate()
    found.set_rules([rule("PAUSE")], [])
    assert found.judge(job(5, start_timestamp=(1, 0)), []) is None


def test_a_canceled_job_that_a_rule_held_is_not_looked_at_again() -> None:
    found = gate()
    found.set_rules([rule("PAUSE")], [])
    found.judge(job(5), [])
    found.judge(job(6), [])
    found.forget(5)
    assert found.set_rules([], []) == [6]


def test_a_limit_counts_running_jobs_and_lets_the_next_one_in_when_one_ends() -> None:
    found = gate()
    limit = rule(["RATE_LIMIT", 2])
    found.set_rules([limit], [])
    assert [found.judge(job(number), []) for number in (1, 2)] == [None, None]
    hold = check_hold(found.judge(job(3), []))
    assert (hold.jobs, hold.rule) == ((1, 2), limit.uuid)
    assert found.end_job(1) == [3]
    assert found.judge(job(3), []) is None
    assert check_hold(found.judge(job(4), [])).jobs == (2, 3)


def test_the_end_of_a_job_that_was_not_counted_wakes_nobody() -> None:
    found = gate()
    found.set_rules([rule(["RATE_LIMIT", 1])], [])
    found.judge(job(1), [])
    found.judge(job(2), [])
    assert found.end_job(77) == []


def test_jobs_that_ran_before_a_rule_was_made_count_for_it() -> None:
    found = gate()
    found.set_rules([rule(["RATE_LIMIT", 1])], [job(1)])
    assert check_hold(found.judge(job(2), [])).jobs == (1,)
    assert found.end_job(1) == [2]


# limits that jobs bring along in their reason


def test_a_limit_of_the_reason_holds_the_next_job_of_the_same_kind_only() -> None:
    found = gate()
    assert found.judge(job(1, ONE_AT_A_TIME), []) is None
    hold = check_hold(found.judge(job(2, ONE_AT_A_TIME), []))
    assert (hold.jobs, hold.rule) == ((1,), None)
    assert "lets 1 such jobs run at a time, now 1" in hold.text
    assert found.judge(job(3), []) is None
    assert found.end_job(1) == [2]
    assert found.judge(job(2, ONE_AT_A_TIME), []) is None


def test_a_reason_without_a_time_counts_and_one_without_a_text_does_not() -> None:
    def short(number: int) -> JobRecord:
        entries = [["gnt:user"], ["gnt:user", ONE_AT_A_TIME]]
        op = OpRecord(input={"OP_ID": "OP_TEST_DUMMY", "reason": entries})
        return JobRecord(id=number, ops=[op])

    found = gate()
    assert found.judge(short(1), []) is None
    assert check_hold(found.judge(short(2), [])).jobs == (1,)


def test_a_job_counts_under_each_of_its_limits() -> None:
    found = gate()
    found.judge(job(1, ONE_AT_A_TIME, "rate-limit:1:other"), [])
    assert check_hold(found.judge(job(2, "rate-limit:1:other"), [])).jobs == (1,)
    assert check_hold(found.judge(job(3, ONE_AT_A_TIME), [])).jobs == (1,)


def test_running_jobs_keep_their_limits_when_rules_change() -> None:
    found = gate()
    found.set_rules([], [job(1, ONE_AT_A_TIME)])
    assert check_hold(found.judge(job(2, ONE_AT_A_TIME), [])).jobs == (1,)
    assert found.set_rules([], [job(1, ONE_AT_A_TIME)]) == [2]


# what is written in an opcode


def depends(*items: tuple[int, list[str]]) -> OpTestDummy:
    return OpTestDummy(
        depends=[JobDep(number, [JobStatus(s) for s in wanted]) for number, wanted in items],
    )


def test_an_opcode_without_dependencies_has_none() -> None:
    assert dependencies_of(OpTestDummy(), 5) == []


def test_ids_are_absolute_or_relative_to_the_job() -> None:
    op = depends((3, ["success"]), (-1, []), (-2, ["error", "canceled"]))
    assert dependencies_of(op, 12, first=10) == [
        depend_on(3, "success"),
        depend_on(11),
        depend_on(10, "error", "canceled"),
    ]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (-3, "does not point to an earlier job of the same submission"),
        (12, "dependency 12 is not an earlier job"),
        (13, "dependency 13 is not an earlier job"),
    ],
)
def test_only_earlier_jobs_can_be_waited_for(number: int, text: str) -> None:
    with pytest.raises(errors.OpPrereqError, match=text) as caught:
        dependencies_of(depends((number, [])), 12, first=10)
    assert caught.value.args[1] == errors.ErrorCode.INVAL
    assert dependencies_of(depends((11, [])), 12, first=10) == [depend_on(11)]


def test_the_number_0_is_no_relative_one() -> None:
    assert dependencies_of(depends((0, [])), 12, first=10) == [depend_on(0)]


def test_before_there_is_a_job_id_every_absolute_one_may_be() -> None:
    assert dependencies_of(depends((99, []))) == [depend_on(99)]
