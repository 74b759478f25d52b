"""Jobs that filter rules hold, refuse or count; keys of clients; cancel of running jobs."""

from __future__ import annotations

import itertools
import threading

import pytest
from scripted_queue import op

from ganeti import errors
from ganeti.model.filter_rule import FilterRule
from ganeti.opcodes.test import OpTestDummy

ANY = [["opcode", ["=", "OP_ID", "OP_TEST_DUMMY"]]]
_NUMBERS = itertools.count(1)


def rule(action, *, priority: int = 0, predicates=ANY, watermark: int = 0) -> FilterRule:
    return FilterRule(
        uuid=f"00000000-0000-4000-8000-{next(_NUMBERS):012d}",
        watermark=watermark,
        priority=priority,
        predicates=tuple(predicates),
        action=action,
        reason_trail=(["gnt:user", "disk work", 1],),
    )


def test_a_paused_job_waits_until_the_rule_goes(office):
    office.queue.set_rules([rule("PAUSE")])
    job = office.submit(op(result=1))
    office.await_condition(
        lambda: office.queue.book.jobs[job].hold is not None, "the job to be held"
    )
    assert str(office.status(job)) == "queued"
    office.queue.set_rules([])
    assert office.finish(job) == ["success"]


def test_a_rejected_job_is_canceled_and_says_why(office):
    office.queue.set_rules([rule("REJECT")])
    job = office.submit(op(result=1))
    assert office.finish(job) == ["canceled"]
    name, args = office.result(job)
    assert name == "JobCanceled"
    assert "disk work" in args[0]
    assert office.crew.order == []


def test_an_earlier_rule_wins(office):
    office.queue.set_rules([rule("REJECT", priority=5), rule("ACCEPT", priority=1)])
    assert office.finish(office.submit(op())) == ["success"]


def test_a_rate_limit_lets_one_after_the_other_run(hire):
    office = hire(workers=8)
    office.queue.set_rules([rule(["RATE_LIMIT", 2])])
    jobs = [office.submit(op(gate=f"g{n}")) for n in range(5)]
    for job in jobs[:2]:
        office.crew.wait_for_start(job)
    office.await_condition(
        lambda: all(office.queue.book.jobs[job].hold for job in jobs[2:]), "the rest to be held"
    )
    assert sorted(office.crew.order) == jobs[:2]
    office.crew.open("g0")
    office.crew.wait_for_start(jobs[2])
    assert len(office.crew.order) == 3
    office.crew.open_all()
    assert set(office.finish(*jobs)) == {"success"}


def test_a_running_job_is_not_disturbed_by_a_new_rule(office):
    job = office.submit(op(gate="g"), op(result=2))
    office.crew.wait_for_start(job)
    office.queue.set_rules([rule("PAUSE")])
    office.crew.open("g")
    assert office.finish(job) == ["success"]


def test_a_held_job_can_be_canceled(office):
    office.queue.set_rules([rule("PAUSE")])
    job = office.submit(op())
    office.await_condition(
        lambda: office.queue.book.jobs[job].hold is not None, "the job to be held"
    )
    assert office.queue.cancel(job)[0]
    office.queue.set_rules([])
    assert office.finish(job) == ["canceled"]


# keys --------------------------------------------------------------------------------------


def submit_with(office, key: str, *ops: OpTestDummy) -> int:
    return office.queue.submit([list(ops or (op(),))], None, key=key)[0]


def test_the_same_key_never_makes_a_second_job(office, hire):
    first = submit_with(office, "terraform-17")
    assert submit_with(office, "terraform-17") == first
    assert submit_with(office, "terraform-18") == first + 1
    office.finish(first)
    office.queue.archive([first])
    assert submit_with(office, "terraform-17") == first
    office.finish(first + 1)
    office.stop()
    again = hire(directory=office.directory)
    assert submit_with(again, "terraform-17") == first
    assert submit_with(again, "terraform-18") == first + 1
    assert submit_with(again, "terraform-19") == first + 2
    again.finish(first + 2)


def test_the_same_key_from_many_threads(office):
    got: list[int] = []
    threads = [
        threading.Thread(target=lambda: got.append(submit_with(office, "once"))) for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(got) == 20
    assert len(set(got)) == 1
    office.finish(got[0])
    assert len(office.crew.order) == 1


@pytest.mark.parametrize("key", ["", "x" * 300])
def test_keys_that_cannot_be_used(office, key):
    with pytest.raises(errors.OpPrereqError, match="1 to 256 characters"):
        submit_with(office, key)
    assert office.queue.last_id == 0


# workers -----------------------------------------------------------------------------------


def test_more_jobs_run_once_more_are_allowed(hire):
    office = hire(workers=1)
    jobs = [office.submit(op(gate="all")) for _ in range(3)]
    office.crew.wait_for_start(jobs[0])
    assert len(office.crew.order) == 1
    office.queue.resize(3)
    for job in jobs:
        office.crew.wait_for_start(job)
    office.queue.resize(1)
    office.crew.open_all()
    assert set(office.finish(*jobs)) == {"success"}
    last = office.submit(op(result=4))
    assert office.finish(last) == ["success"]


def make_limited(text: str, **script):
    return op(reason=[("gnt:user", text, 1)], **script)


def test_the_reason_of_jobs_can_limit_how_many_of_them_run(hire):
    office = hire(workers=8)
    same = "rate-limit:2:nightly work"
    jobs = [office.submit(make_limited(same, gate=f"g{n}")) for n in range(4)]
    other = office.submit(make_limited("rate-limit:1:other work", gate="other"))
    free = [
        office.submit(make_limited(text)) for text in ("rate-limit:0:x", "limit", "rate-limit:1")
    ]
    for job in [*jobs[:2], other]:
        office.crew.wait_for_start(job)
    for job in free:
        assert office.finish(job) == ["success"]
    held = office.queue.book.jobs[jobs[2]].hold
    assert held is not None
    assert "'rate-limit:2:nightly work' lets 2 such jobs run at a time" in held.text
    assert held.jobs == (jobs[0], jobs[1])
    office.queue.set_rules([rule("ACCEPT")])  # running jobs are counted again
    assert office.queue.book.jobs[jobs[3]].hold is not None
    for number, job in enumerate(jobs):
        office.crew.wait_for_start(job)
        office.crew.open(f"g{number}")
        assert office.finish(job) == ["success"]
    office.crew.open("other")
    assert office.finish(other) == ["success"]
