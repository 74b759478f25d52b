"""Jobs from submission to archive, with real files and real workers."""

from __future__ import annotations

import json
import threading

import pytest
from scripted_queue import full_disk, on_disk, op, read_stored

from ganeti import errors
from ganeti.model.job import Submitter
from ganeti.model.job_status import JobStatus
from ganeti.opcodes.enums import FinalStatus
from ganeti.opcodes.test import OpTestDelay
from ganeti.opcodes.values import JobDep


def depend_on(job: int, *statuses: str) -> JobDep:
    return JobDep(job, [FinalStatus(s) for s in statuses])


# submission --------------------------------------------------------------------------------


def test_a_job_runs_and_gives_its_result(office):
    job = office.submit(op(result={"answer": 42}))
    assert office.finish(job) == ["success"]
    assert office.result(job) == {"answer": 42}
    record = office.record(job)
    assert record.received_timestamp == record.end_timestamp == [1_700_000_000, 250_000]
    assert record.submitter == Submitter(uid=1000, name="alice")


def test_an_id_is_on_disk_before_it_is_given_out(office, crash):
    job = office.submit(op(gate="never"))
    left = crash(office)
    assert read_stored(left, job)["id"] == job
    assert on_disk(left, "serial") == b"%d\n" % job


def test_a_submission_leaves_a_mark_in_the_reason_trail(office):
    job = office.submit(op(), op())
    for index, one in enumerate(office.record(job).ops):
        ((source, text, time),) = one.input["reason"]
        assert (source, text) == ("gnt:opcode:test_dummy", f"job={job};index={index}")
        assert abs(time - 1_700_000_000_250_000_000) < 1000  # nanoseconds


def test_ids_are_consecutive_also_from_many_threads(office):
    got: list[int] = []

    def submit() -> None:
        got.extend(office.queue.submit([[op()], [op()], [op()]], None))

    threads = [threading.Thread(target=submit) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(got) == list(range(1, 31))
    assert all(b - a == 1 for a, b in zip(got[::3], got[1::3]))
    assert set(office.finish(*got)) == {"success"}


def test_opcodes_run_one_after_the_other(office):
    job = office.submit(op(result=1), op(result=2, gate="second"), op(result=3))
    office.await_status(job, "running")
    office.await_condition(lambda: office.record(job).current() == 1, "second opcode")
    assert [str(o.status) for o in office.record(job).ops][::2] == ["success", "queued"]
    office.crew.open("second")
    assert office.finish(job) == ["success"]
    assert [o.result for o in office.record(job).ops] == [1, 2, 3]


def test_a_failed_opcode_fails_those_behind_it(office):
    job = office.submit(op(result=1), op(error="disk on fire"), op(result=3))
    assert office.finish(job) == ["error"]
    first, second, third = office.record(job).ops
    assert (first.status, first.result) == (JobStatus.SUCCESS, 1)
    assert second.result == ["OpExecError", ["disk on fire"]]
    assert third.status is JobStatus.ERROR
    assert "opcode 1 of this job failed" in third.result[1][0]
    assert office.crew.order == [job, job]


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ({"refuse": "not now"}, ["OpPrereqError", ["not now", "wrong_state"]]),
        ({"bug": "oops"}, ["OpExecError", ["internal error: ValueError: oops"]]),
        ({"broken": True}, ["OpExecError", ["internal error: KeyError: 'cannot even begin'"]]),
        (
            {"locks": [["nowhere"]]},
            ["OpPrereqError", ["instance nowhere was removed meanwhile", "unknown_entity"]],
        ),
    ],
)
def test_every_failure_becomes_the_result_and_frees_the_worker(hire, script, error):
    office = hire(workers=1)
    job = office.submit(op(**script))
    assert office.finish(job) == ["error"]
    assert office.result(job) == error
    assert office.finish(office.submit(op())) == ["success"]


def test_a_wish_for_a_level_that_does_not_exist_ends_the_job(hire):
    office = hire(workers=1)
    job = office.submit(op(locks=[["web1"], ["node1"], ["x"]]))
    assert office.finish(job) == ["error"]
    assert office.finish(office.submit(op(locks=[["web1"]]))) == ["success"]


def test_an_opcode_without_operation_is_refused_and_takes_no_id(office):
    with pytest.raises(errors.OpNotBuiltError, match="OP_TEST_DELAY"):
        office.queue.submit([[op()], [OpTestDelay(duration=0)]], None)
    assert office.queue.last_id == 0
    assert office.submit(op()) == 1


def test_a_job_without_opcodes_has_ended_at_once(office):
    job = office.submit()
    assert office.status(job) is JobStatus.SUCCESS
    assert office.record(job).end_timestamp == [1_700_000_000, 250_000]
    assert office.queue.auto_archive(0, 5) == (1, 0)


def test_who_asks_a_drained_queue_again_hears_the_job_that_it_has(office):
    job = office.queue.submit([[op()]], None, key="mine")
    office.queue.set_drained(True)
    assert office.queue.submit([[op()]], None, key="mine") == job
    with pytest.raises(errors.JobQueueDrainError):
        office.queue.submit([[op()]], None, key="another")


def test_a_drained_queue_takes_no_jobs_but_finishes_those_it_has(office):
    job = office.submit(op(gate="g", child={"result": "child"}))
    office.queue.set_drained(True)
    with pytest.raises(errors.JobQueueDrainError):
        office.submit(op())
    forced = office.queue.submit([[op()]], None, ignore_drain=True)
    office.crew.open("g")
    assert office.finish(job, *forced) == ["success", "success"]
    (child,) = office.result(job)
    assert office.finish(child) == ["success"]  # what a running job needs still goes in
    assert office.record(child).submitter == office.record(job).submitter
    office.queue.set_drained(False)
    assert office.finish(office.submit(op())) == ["success"]


def test_a_job_that_cannot_be_written_is_not_taken(office):
    directory = office.directory
    with full_disk(10), pytest.raises(errors.FileError, match="cannot write"):
        office.submit(op())
    assert office.queue.get(1) is None
    assert on_disk(directory, "job-1") is None
    job = office.submit(op())
    assert job > 1
    assert office.finish(job) == ["success"]
    assert office.crew.order == [job]


# logs and changes --------------------------------------------------------------------------


def test_log_entries_are_numbered_through_the_job_and_told_at_once(office):
    job = office.submit(op(say=["one", "two"]), op(say=["three"], gate="g"))
    office.await_condition(
        lambda: office.queue.view(lambda r: r.log_serial(), job) == 3, "three entries"
    )
    entries = [entry for one in office.record(job).ops for entry in one.log]
    assert [(e[0], e[2], e[3]) for e in entries] == [
        (1, "message", "one"),
        (2, "message", "two"),
        (3, "message", "three"),
    ]
    assert office.status(job) is JobStatus.RUNNING
    office.crew.open("g")
    assert office.finish(job) == ["success"]


def test_every_status_is_told(office):
    seen: list[str] = []
    office.locks.request(99, 1, ["web1"], shared=False, on_done=lambda _r: None)
    office.queue.add_listener(lambda job: seen.append(str(office.status(job))))
    office.submit(op(locks=[["web1"]], gate="g"))
    office.await_condition(lambda: "waiting" in seen, "waiting")
    office.locks.release(99)
    office.await_condition(lambda: "running" in seen, "running")
    office.crew.open("g")
    office.await_condition(lambda: "success" in seen, "success")
    assert sorted(set(seen), key=seen.index) == ["queued", "waiting", "running", "success"]


def test_what_is_told_is_on_disk(office):
    """An end that a client has seen survives a crash."""
    found: list[str] = []
    seen = threading.Event()

    def read_status(job: int) -> None:
        if office.status(job) is JobStatus.SUCCESS:
            raw = read_stored(office.directory, job)
            found.append(raw["ops"][0]["status"])
            seen.set()

    office.queue.add_listener(read_status)
    office.submit(op())
    assert seen.wait(20)
    assert found == ["success"]


# dependencies ------------------------------------------------------------------------------


def test_a_job_waits_for_the_end_of_another(office):
    first = office.submit(op(gate="g"))
    second = office.submit(op(depends=[depend_on(first, "success")]))
    office.crew.wait_for_start(first)
    assert office.status(second) is JobStatus.QUEUED
    office.crew.open("g")
    assert office.finish(first, second) == ["success", "success"]
    assert office.crew.order == [first, second]


def test_negative_ids_mean_earlier_jobs_of_the_submission(hire):
    office = hire(workers=1)
    office.submit(op())
    jobs = office.queue.submit(
        [
            [op(gate="g", priority=10)],
            [op(depends=[depend_on(-1)])],
            [op(depends=[depend_on(-2), depend_on(-1)])],
        ],
        None,
    )
    assert office.record(jobs[2]).ops[0].input["depends"] == [[jobs[0], []], [jobs[1], []]]
    office.crew.open("g")
    assert office.finish(*jobs) == ["success"] * 3
    assert office.crew.order[-3:] == jobs


@pytest.mark.parametrize("wrong", [-2, 5, 2])
def test_dependencies_that_point_nowhere_are_refused(office, wrong):
    office.submit(op())
    with pytest.raises(errors.OpPrereqError, match="dependency"):
        office.queue.submit([[op(depends=[depend_on(wrong)])]], None)
    assert office.queue.last_id == 1


@pytest.mark.parametrize(
    ("end", "accepted", "status"),
    [
        ({"error": "no"}, ["success"], "error"),
        ({"error": "no"}, ["error"], "success"),
        ({"error": "no"}, ["success", "error"], "success"),
        ({}, ["error"], "error"),
        ({"error": "no"}, [], "success"),
    ],
)
def test_the_end_of_the_other_job_decides(office, end, accepted, status):
    first = office.submit(op(**end))
    office.finish(first)
    second = office.submit(op(depends=[depend_on(first, *accepted)]))
    assert office.finish(second) == [status]
    if status == "error":
        assert f"job {first} ended with status" in office.result(second)[1][0]
        assert office.crew.order == [first]


def test_an_archived_job_still_counts_and_a_missing_one_fails(office):
    first, second = office.submit(op()), office.submit(op())
    office.finish(first, second)
    assert office.queue.archive([first, second]) == [first, second]
    (office.directory / "archive" / "0" / f"job-{second}").unlink()
    good = office.submit(op(depends=[depend_on(first, "success")]))
    bad = office.submit(op(depends=[depend_on(second, "success")]))
    assert office.finish(good, bad) == ["success", "error"]
    assert f"job {second}, which this job depends on, does not exist" in office.result(bad)[1][0]


def test_a_later_opcode_may_depend_too(office):
    first = office.submit(op(gate="g"))
    second = office.submit(op(result="early"), op(depends=[depend_on(first)], result="late"))
    office.await_condition(lambda: office.record(second).ops[0].result == "early", "first opcode")
    assert office.record(second).current() == 1
    office.crew.open("g")
    assert office.finish(second) == ["success"]


def test_many_jobs_wait_for_one(office):
    first = office.submit(op(gate="g"))
    others = [office.submit(op(depends=[depend_on(first)])) for _ in range(30)]
    office.crew.open("g")
    assert set(office.finish(*others)) == {"success"}
    assert sorted(office.crew.order) == [first, *others]


# locks -------------------------------------------------------------------------------------


def test_jobs_for_one_instance_run_in_turn(office):
    jobs = [office.submit(op(locks=[["web1"]])) for _ in range(40)]
    assert set(office.finish(*jobs)) == {"success"}
    assert sorted(office.crew.order) == jobs
    assert all(not row.owners and not row.pending for row in office.locks.snapshot())


def test_readers_run_side_by_side(office):
    jobs = [office.submit(op(locks=[["web1"]], shared=True, gate="g")) for _ in range(3)]
    for job in jobs:
        office.crew.wait_for_start(job)
    writer = office.submit(op(locks=[["web1"]]))
    office.await_condition(lambda: office.line("web1") == [writer], "the writer waits")
    office.crew.open("g")
    assert set(office.finish(writer, *jobs)) == {"success"}


def test_locks_of_several_levels_are_collected(office):
    holder = office.submit(op(locks=[["web1"], ["node1"]], gate="g"))
    office.crew.wait_for_start(holder)
    other = office.submit(op(locks=[["web2"], ["node1"]]))
    office.await_condition(lambda: office.locks.find_waiting(other) is not None, "the wait")
    assert office.locks.list_held(other, 1) == {"web2"}
    office.crew.open("g")
    assert office.finish(holder, other) == ["success", "success"]


def test_a_lock_removed_meanwhile_fails_the_job(office):
    holder = office.submit(op(locks=[["web1"]], gate="g"))
    office.crew.wait_for_start(holder)
    waiting = office.submit(op(locks=[["web1"]]))
    office.await_condition(lambda: office.line("web1") == [waiting], "the wait")
    office.locks.remove(holder, 1, "web1")
    assert office.finish(waiting) == ["error"]
    assert "web1 was removed" in office.result(waiting)[1][0]
    office.crew.open("g")
    assert office.finish(holder) == ["success"]


def test_a_thousand_waiting_jobs_hold_no_thread(hire):
    office = hire(workers=2)
    holder = office.submit(op(locks=[["web1"]], gate="g"))
    office.crew.wait_for_start(holder)
    before = threading.active_count()
    jobs = office.queue.submit([[op(locks=[["web1"]])] for _ in range(1000)], None)
    office.await_condition(lambda: len(office.line("web1")) == 1000, "all wait for the lock")
    assert sorted(office.line("web1")) == jobs
    assert threading.active_count() <= before + 1  # the second worker
    other = office.submit(op(locks=[["web2"]]))
    assert office.finish(other) == ["success"]
    canceled = jobs[500:]
    for job in canceled:
        assert office.queue.cancel(job)[0]
    office.crew.open("g")
    assert set(office.finish(*jobs[:500])) == {"success"}
    assert set(office.finish(*canceled)) == {"canceled"}
    assert sorted(office.crew.order) == [holder, *jobs[:500], other]


# priorities --------------------------------------------------------------------------------


def test_urgent_jobs_go_first(hire):
    office = hire(workers=1)
    blocker = office.submit(op(gate="g"))
    office.crew.wait_for_start(blocker)
    late, normal, urgent = (office.submit(op(priority=p)) for p in (10, 0, -10))
    office.crew.open("g")
    office.finish(late, normal, urgent)
    assert office.crew.order == [blocker, urgent, normal, late]


def test_the_priority_of_a_queued_job_can_change(hire):
    office = hire(workers=1)
    blocker = office.submit(op(gate="g"))
    office.crew.wait_for_start(blocker)
    one, two, three = (office.submit(op()) for _ in range(3))
    assert office.queue.set_priority(three, -15)[0]
    assert office.queue.set_priority(one, 5)[0]
    office.crew.open("g")
    office.finish(one, two, three)
    assert office.crew.order[:2] == [blocker, three]
    assert sorted(office.crew.order) == [blocker, one, two, three]
    assert office.record(three).ops[0].priority == -15


def test_the_priority_of_a_waiting_job_moves_it_in_the_line(office):
    holder = office.submit(op(locks=[["web1"]], gate="g"))
    office.crew.wait_for_start(holder)
    jobs = []
    for _ in range(3):
        jobs.append(office.submit(op(locks=[["web1"]])))
        office.await_condition(lambda: office.line("web1") == jobs, "in line")
    assert office.queue.set_priority(jobs[2], -20)[0]
    assert office.line("web1") == [jobs[2], jobs[0], jobs[1]]
    office.crew.open("g")
    office.finish(*jobs)
    assert office.crew.order == [holder, jobs[2], jobs[0], jobs[1]]


def test_a_priority_is_on_disk_when_it_was_changed(office, crash):
    blocker = office.submit(op(gate="g"))
    job = office.submit(op(depends=[depend_on(blocker)]))
    assert office.queue.set_priority(job, 7)[0]
    assert read_stored(crash(office), job)["ops"][0]["priority"] == 7


@pytest.mark.parametrize("wrong", [-21, 20])
def test_priorities_have_limits(office, wrong):
    job = office.submit(op(gate="g"))
    with pytest.raises(errors.OpPrereqError, match=f"priority {wrong} "):
        office.queue.set_priority(job, wrong)


def test_jobs_that_ended_or_never_were_keep_their_priority(office):
    job = office.submit(op())
    office.finish(job)
    assert not office.queue.set_priority(job, 1)[0]
    assert office.queue.set_priority(77, 1) == (False, "Job 77 not found in queue")


# cancellation ------------------------------------------------------------------------------


def test_a_queued_job_is_canceled_at_once_and_never_runs(hire, crash):
    office = hire(workers=1)
    blocker = office.submit(op(gate="g"))
    office.crew.wait_for_start(blocker)
    job = office.submit(op(), op())
    assert office.queue.cancel(job) == (True, f"Job {job} has been canceled")
    assert office.status(job) is JobStatus.CANCELED
    left = read_stored(crash(office), job)
    assert [o["status"] for o in left["ops"]] == ["canceled", "canceled"]
    office.crew.open("g")
    assert office.finish(blocker, office.submit(op())) == ["success", "success"]
    assert job not in office.crew.order


def test_a_job_that_waits_for_a_lock_is_canceled_and_leaves_the_line(office):
    holder = office.submit(op(locks=[["web1"]], gate="g"))
    office.crew.wait_for_start(holder)
    job = office.submit(op(locks=[["web1", "web2"]]))
    office.await_condition(lambda: office.line("web1") == [job], "the wait")
    behind = office.submit(op(locks=[["web2"]]))
    office.await_condition(lambda: office.line("web2") == [job, behind], "the line")
    assert office.queue.cancel(job)[0]
    assert office.finish(job, behind) == ["canceled", "success"]
    assert office.line("web1") == []
    assert job not in office.crew.order


def test_a_promise_to_cancel_survives_a_crash(office, crash):
    """The user was told that the job will be canceled, so a restart must not run it."""
    left = []

    def cancel(handle) -> None:
        assert office.queue.cancel(handle.job_id)[0]
        left.append(crash(office))

    office.crew.traps["cancel"] = cancel
    job = office.submit(op(trap="cancel"))
    assert office.finish(job) == ["canceled"]
    assert read_stored(left[0], job)["ops"][0]["status"] == "canceling"


def test_a_cancel_between_two_looks_is_not_lost(office):
    """The job is about to ask for a lock that nobody will release soon."""
    office.crew.traps["cancel"] = lambda handle: office.queue.cancel(handle.job_id)
    holder = office.submit(op(locks=[["web1"]], gate="g"))
    office.crew.wait_for_start(holder)
    job = office.submit(op(locks=[["web1"]], trap="cancel"))
    assert office.finish(job) == ["canceled"]
    assert office.status(holder) is JobStatus.RUNNING


def test_a_running_job_cannot_be_canceled_unless_it_can_end_early(office):
    job = office.submit(op(gate="g"))
    office.crew.wait_for_start(job)
    done, text = office.queue.cancel(job)
    assert not done
    assert f"Job {job} is running" in text
    office.crew.open("g")
    assert office.finish(job) == ["success"]
    assert office.queue.cancel(job) == (False, f"Job {job} is already finished (success)")
    assert office.queue.cancel(99) == (False, "Job 99 not found in queue")


def test_a_running_operation_that_can_end_early_does(office):
    job = office.submit(op(cancelable=True, locks=[["web1"]]), op())
    office.crew.wait_for_start(job)
    assert office.queue.cancel(job) == (True, f"Job {job} will be canceled")
    assert office.finish(job) == ["canceled"]
    assert office.result(job) == ["JobCanceled", ["canceled while it ran"]]
    assert office.crew.order == [job]
    assert office.finish(office.submit(op(locks=[["web1"]]))) == ["success"]


def test_a_job_between_two_opcodes_is_canceled(office):
    first = office.submit(op(gate="g"))
    job = office.submit(op(result="kept"), op(depends=[depend_on(first)]))
    office.await_condition(lambda: office.record(job).current() == 1, "the second opcode")
    assert office.queue.cancel(job)[0]
    assert office.finish(job) == ["canceled"]
    assert office.result(job) == "kept"
    assert office.record(job).ops[0].status is JobStatus.SUCCESS


def test_canceling_wakes_jobs_that_depend_on_it(office):
    first = office.submit(op(gate="g"))
    second = office.submit(op(depends=[depend_on(first)]))
    third = office.submit(op(depends=[depend_on(second, "canceled")]))
    fourth = office.submit(op(depends=[depend_on(second, "success")]))
    assert office.queue.cancel(second)[0]
    assert office.finish(third, fourth) == ["success", "error"]


def test_cancels_at_random_points_leave_nothing_behind(office):
    """Cancel each of many jobs while workers run them; each ends, once, with all locks free."""
    jobs = office.queue.submit(
        [[op(locks=[["web1"]]), op(locks=[["web2"], ["node1"]])] for _ in range(150)], None
    )
    asked = {job: office.queue.cancel(job)[0] for job in jobs[::2]}
    ends = dict(zip(jobs, office.finish(*jobs)))
    assert all(ends[job] == "success" for job in jobs if job not in asked)
    assert all(ends[job] == "canceled" for job, done in asked.items() if done)
    assert all(not row.owners and not row.pending for row in office.locks.snapshot())
    assert all(office.crew.order.count(job) <= 2 for job in jobs)


# archive -----------------------------------------------------------------------------------


def test_only_jobs_that_ended_are_archived(office):
    done, running = office.submit(op(result=1)), office.submit(op(gate="g"))
    office.finish(done)
    office.crew.wait_for_start(running)
    assert office.queue.archive([done, running, 99, done]) == [done]
    assert office.queue.get(done) is None
    archived = office.queue.read_archived(done)
    assert archived is not None
    assert archived.ops[0].result == 1
    assert office.queue.list_archived_ids() == [done]
    with pytest.raises(errors.JobLost, match=f"job {done} does not exist or is archived"):
        office.status(done)


def test_old_jobs_are_archived(office):
    old = office.submit(op())
    office.finish(old)
    office.clock.time += 100
    young, running = office.submit(op()), office.submit(op(gate="g"))
    office.finish(young)
    office.clock.time += 50
    assert office.queue.auto_archive(120, 10) == (1, 0)
    assert office.queue.read_all(lambda r: r.id) == [young, running]
    assert office.queue.auto_archive(-1, 10) == (1, 0)
    assert office.queue.read_all(lambda r: r.id) == [running]


def test_archiving_stops_when_its_time_is_over(office):
    jobs = [office.submit(op()) for _ in range(3)]
    office.finish(*jobs)
    assert office.queue.auto_archive(-1, -1) == (0, 3)


def test_a_job_is_archived_with_its_end_even_while_that_is_being_written(office):
    """Otherwise its last write would bring it back after a restart."""
    archived: list[list[int]] = []
    done = threading.Event()
    wait = office.files.wait

    def slow(ticket, **options) -> None:
        """The disk is busy; meanwhile a client archives a job that no reader sees ended yet."""
        office.files.wait = wait
        if [job.record.finalized for job in office.queue.book.jobs.values()] == [True]:
            assert office.queue.read_all(lambda r: r.finalized) == [False]
            archived.append(office.queue.archive([1]))
            wait(ticket, **options)
            done.set()
        else:
            wait(ticket, **options)
            office.files.wait = slow

    office.files.wait = slow
    office.submit(op(result="kept"))
    assert done.wait(20)
    assert archived == [[1]]
    assert not (office.directory / "job-1").exists()
    kept = json.loads((office.directory / "archive" / "0" / "job-1").read_text())
    assert (kept["ops"][0]["status"], kept["ops"][0]["result"]) == ("success", "kept")


def test_reading_takes_jobs_in_order_and_leaves_unknown_ones_out(office):
    jobs = [office.submit(op(result=n)) for n in range(3)]
    office.finish(*jobs)
    assert office.queue.read_all(lambda r: r.ops[0].result) == [0, 1, 2]
    assert office.queue.read_all(lambda r: r.id, [3, 77, 1]) == [3, 1]
