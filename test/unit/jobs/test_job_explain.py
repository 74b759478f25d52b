"""Why a job waits: the named blocker is the one whose end lets it go on."""

from __future__ import annotations

import random

import pytest
from scripted_queue import op
from test_job_held import rule
from test_job_queue import depend_on

from ganeti import errors


def test_a_lock_names_holder_and_line(office):
    holder = office.submit(op(locks=[["web1"]], gate="g"))
    office.crew.wait_for_start(holder)
    second = office.submit(op(locks=[["web1"]]))
    office.await_condition(lambda: office.line("web1") == [second], "the second to wait")
    third = office.submit(op(locks=[["web1"]], shared=True))
    office.await_condition(lambda: office.line("web1") == [second, third], "the third to wait")
    office.clock.time += 41
    found = office.queue.explain(third)
    waits = found["waits_for"]
    assert waits["kind"] == "lock"
    assert waits["jobs"] == [holder, second]
    assert waits["age"] == 41
    assert waits["locks"] == [
        {
            "lock": "instance/web1",
            "title": "instance/web1",
            "mode": "shared",
            "held_by": [[holder, "exclusive"]],
            "ahead": [second],
            "place": 2,
        }
    ]
    assert [job["id"] for job in found["chain"]] == [holder, second]
    assert found["chain"][0]["waits_for"] is None
    assert "41 s" in found["text"]
    office.crew.open("g")
    assert set(office.finish(holder, second, third)) == {"success"}
    assert "has ended with success" in office.queue.explain(third)["text"]


def test_a_dependency_and_what_that_waits_for(office):
    holder = office.submit(op(locks=[["web2"]], gate="g", say=["copying the disk"]))
    office.crew.wait_for_start(holder)
    middle = office.submit(op(locks=[["web2"]]))
    office.await_condition(lambda: office.line("web2") == [middle], "the middle one to wait")
    last = office.submit(op(depends=[depend_on(middle, "success")]))
    office.await_condition(
        lambda: office.queue.book.jobs[last].hold is not None, "the last to be held"
    )
    found = office.queue.explain(last)
    assert (found["waits_for"]["kind"], found["waits_for"]["jobs"]) == ("job", [middle])
    assert [job["id"] for job in found["chain"]] == [middle, holder]
    assert found["chain"][1]["step"] == "copying the disk"
    office.crew.open("g")
    office.finish(last)


def test_a_filter_rule(office):
    paused = rule("PAUSE")
    office.queue.set_rules([paused])
    job = office.submit(op())
    office.await_condition(
        lambda: office.queue.book.jobs[job].hold is not None, "the job to be held"
    )
    waits = office.queue.explain(job)["waits_for"]
    assert (waits["kind"], waits["rule"], waits["jobs"]) == ("filter", paused.uuid, [])
    assert paused.uuid in waits["release"]
    office.queue.set_rules([])
    office.finish(job)


def test_a_free_worker(hire):
    office = hire(workers=1)
    busy = office.submit(op(gate="g"))
    office.crew.wait_for_start(busy)
    first, second = office.submit(op()), office.submit(op())
    waits = office.queue.explain(second)["waits_for"]
    assert (waits["kind"], waits["ahead"], waits["jobs"]) == ("worker", 1, [busy])
    office.crew.open("g")
    office.finish(first, second)


def test_an_unknown_job(office):
    with pytest.raises(errors.JobLost, match="77"):
        office.queue.explain(77)


@pytest.mark.parametrize("seed", range(8))
def test_removing_the_named_blockers_lets_the_job_run(hire, seed):
    """Random locks and dependencies; whoever is blamed is ended, nobody else, until it runs."""
    rng = random.Random(seed)
    office = hire(workers=30)
    jobs: list[int] = []
    for number in range(12):
        depends = [depend_on(rng.choice(jobs))] if jobs and rng.random() < 0.3 else []
        names = sorted(rng.sample(["web1", "web2", "web3"], rng.randint(1, 2)))
        jobs.append(
            office.submit(
                op(locks=[names], shared=rng.random() < 0.3, gate=f"g{number}", depends=depends)
            )
        )
    target = jobs[-1]
    office.await_condition(lambda: _is_steady(office, target), "the last job to wait or run")
    for _ in range(100):
        found = office.queue.explain(target)
        if found["status"] == "running":
            break
        running = [job["id"] for job in found["chain"] if job["status"] == "running"]
        assert running, found["text"]
        for job in running:
            office.crew.open(f"g{jobs.index(job)}")
        office.finish(*running)
        office.await_condition(lambda: _is_steady(office, target), "the last job to wait or run")
    assert str(office.status(target)) == "running"


def _is_steady(office, job: int) -> bool:
    """Whether what a job waits for can be told: it is not on its way between two waits."""
    found = office.queue.explain(job)
    everything = [found, *found["chain"]]
    return all(
        one["status"] == "running"
        or (one["waits_for"] is not None and one["waits_for"]["kind"] != "worker")
        for one in everything
    ) and (found["status"] == "running" or bool(found["waits_for"] and found["waits_for"]["jobs"]))
