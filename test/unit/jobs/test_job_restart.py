"""What becomes of jobs when the master daemon ends, in good order or not."""

from __future__ import annotations

import threading

import pytest
from scripted_queue import Office, op, read_stored

from ganeti import errors
from ganeti.model.job_status import JobStatus
from ganeti.opcodes import wire
from ganeti.opcodes.test import OpTestDummy, OpTestOsParams
from ganeti.opcodes.values import JobDep


def restart(hire, directory) -> Office:
    """A new daemon on a directory; nothing of the old one's waits for a gate there."""
    office = hire(directory=directory)
    office.crew.open_all()
    return office


def test_queued_jobs_go_on_after_a_crash(hire, crash):
    office = hire(workers=1)
    blocker = office.submit(op(gate="g"))
    office.crew.wait_for_start(blocker)
    queued = office.submit(op(result="later"))
    again = restart(hire, crash(office))
    assert again.finish(queued) == ["success"]
    assert again.result(queued) == "later"


def test_a_job_that_ran_is_an_error_and_does_not_run_again(hire, crash):
    office = hire()
    job = office.submit(op(result="done"), op(gate="g"), op())
    office.await_condition(lambda: office.crew.order == [job, job], "second opcode")
    again = restart(hire, crash(office))
    assert again.finish(job) == ["error"]
    first, second, third = again.record(job).ops
    assert (first.status, first.result) == (JobStatus.SUCCESS, "done")
    assert second.result[0] == third.result[0] == "OpExecError"
    assert "the master daemon stopped" in second.result[1][0]
    assert again.crew.order == []
    ends = [op["status"] for op in read_stored(again.directory, job)["ops"]]
    assert ends == ["success", "error", "error"]  # the verdict is on disk


def test_a_job_that_waited_for_a_lock_waits_again(hire, crash):
    office = hire()
    holder = office.submit(op(locks=[["web1"]], gate="g"))
    office.crew.wait_for_start(holder)
    waiting = office.submit(op(locks=[["web1"]]))
    office.await_condition(lambda: office.line("web1") == [waiting], "the wait")
    office.queue.set_priority(waiting, 3)  # writes the file while the job waits
    again = restart(hire, crash(office))
    assert again.finish(holder, waiting) == ["error", "success"]


def test_jobs_that_ended_are_left_as_they_are(hire, crash):
    office = hire()
    good, bad = office.submit(op(result=5)), office.submit(op(error="x"))
    office.finish(good, bad)
    office.await_condition(lambda: {good, bad} <= set(office.told), "both ends told")
    canceled_after = office.submit(op(gate="g"))
    again = restart(hire, crash(office))
    assert again.finish(good, bad) == ["success", "error"]
    assert again.record(good) == office.record(good)
    assert again.queue.archive([good, bad]) == [good, bad]
    assert again.finish(canceled_after) is not None


def test_dependencies_survive(hire, crash):
    office = hire(workers=1)
    first = office.submit(op(gate="g"))
    office.crew.wait_for_start(first)
    second = office.queue.submit([[op(result=2)], [op(depends=[JobDep(-1, [])])]], None)
    third = office.submit(op(depends=[JobDep(first, ["success"])]))
    again = restart(hire, crash(office))
    assert again.finish(*second, third) == ["success", "success", "error"]
    assert again.crew.order == second
    assert f"job {first} ended with status error" in again.result(third)[1][0]


def test_priorities_survive(hire, crash):
    office = hire(workers=1)
    blocker = office.submit(op(gate="g"))
    office.crew.wait_for_start(blocker)
    jobs = [office.submit(op(priority=10)) for _ in range(2)]
    office.queue.set_priority(jobs[1], -5)
    again = restart(hire, crash(office))
    assert again.record(jobs[1]).ops[0].priority == -5
    assert again.finish(*jobs) == ["success", "success"]


def test_a_canceling_job_is_canceled(hire, crash):
    office = hire()
    left = []

    def cancel(handle) -> None:
        office.queue.cancel(handle.job_id)
        left.append(crash(office))

    office.crew.traps["cancel"] = cancel
    job = office.submit(op(trap="cancel"))
    office.finish(job)
    again = restart(hire, left[0])
    assert again.finish(job) == ["canceled"]
    assert again.crew.order == []


def test_ids_go_on(hire, crash):
    office = hire()
    jobs = [office.submit(op()) for _ in range(3)]
    office.finish(*jobs)
    office.queue.archive(jobs)
    again = restart(hire, crash(office))
    assert again.queue.list_archived_ids() == jobs
    assert again.submit(op()) == 4


def test_a_job_whose_secret_is_gone_ends_with_a_clear_error(hire, crash):
    office = hire(workers=1)
    blocker = office.submit(op(gate="g"))
    office.crew.wait_for_start(blocker)
    raw = {"OP_ID": "OP_TEST_OS_PARAMS", "osparams_secret": {"key": "hush"}}
    secret = wire.from_wire(raw)
    assert isinstance(secret, OpTestOsParams)
    office.crew.check_submission = lambda _op: None
    job = office.submit(secret)
    copy = crash(office)
    assert f"job-{job}".encode() in (copy / "journal").read_bytes()
    assert b"hush" not in (copy / "journal").read_bytes()
    office.queue.cancel(job)
    again = restart(hire, copy)
    assert again.finish(job) == ["error"]
    text = again.result(job)[1][0]
    assert "osparams_secret[key]" in text
    assert "submit the job again" in text


def test_a_job_with_an_opcode_nobody_knows_ends_with_an_error(hire, crash):
    office = hire(workers=1)
    blocker = office.submit(op(gate="g"))
    office.crew.wait_for_start(blocker)
    job = office.submit(op())
    office.files.catch_up()
    left = crash(office)
    path = left / f"job-{job}"
    path.write_text(path.read_text().replace("OP_TEST_DUMMY", "OP_FROM_THE_FUTURE"))
    again = restart(hire, left)
    assert again.finish(job) == ["error"]
    assert again.result(job)[0] == "OpCodeUnknown"


def test_a_stop_waits_for_what_runs_and_leaves_the_rest(tmp_path, hire):
    office = hire(workers=1)
    running = office.submit(op(gate="g", result="finished"))
    office.crew.wait_for_start(running)
    queued = office.submit(op(result="next time"))
    assert office.queue.stop(0.01) is False  # still at work
    office.crew.open("g")
    assert office.queue.stop(20) is True
    assert office.crew.order == [running]
    again = restart(hire, office.directory)  # the directory was given back
    assert again.finish(running, queued) == ["success", "success"]
    assert again.result(running) == "finished"
    assert again.crew.order == [queued]


def test_a_stop_gives_up_after_its_time(hire):
    office = hire()
    job = office.submit(op(gate="g"))
    office.crew.wait_for_start(job)
    assert office.queue.stop(0.01) is False


def test_an_operation_can_see_that_it_should_end(hire):
    office = hire()
    seen: list[bool] = []
    reached, go_on = threading.Event(), threading.Event()

    def watch_stop(handle) -> None:
        seen.append(handle.stop_requested())
        reached.set()
        go_on.wait(20)
        seen.append(handle.stop_requested())

    office.crew.traps["look"] = watch_stop
    office.submit(op(trap="look"))
    assert reached.wait(20)
    office.queue.stop(0)
    go_on.set()
    office.stop()
    assert seen == [False, True]


def test_a_crash_at_any_moment_loses_no_job_and_runs_none_twice(hire, crash):
    """Copies of the directory taken while jobs run: each is a possible state after a crash."""
    office = hire(workers=3)
    jobs = office.queue.submit(
        [[op(locks=[["web1"]]), op(locks=[["web2"]])] for _ in range(25)], None
    )
    copies = [crash(office) for _ in range(4)]
    office.finish(*jobs)
    for copy in copies:
        again = restart(hire, copy)
        ends = again.finish(*jobs)
        assert set(ends) <= {"success", "error"}
        for job, end in zip(jobs, ends):
            done_before = 2 - again.crew.order.count(job)
            assert done_before >= 0
            if end == "error":
                assert any(
                    "master daemon stopped" in str(one.result) for one in again.record(job).ops
                )
        again.stop()


def test_a_damaged_job_file_does_not_stop_the_start(hire, crash, caplog):
    office = hire()
    first, second = office.submit(op()), office.submit(op())
    office.finish(first, second)
    office.files.catch_up()
    left = crash(office)
    (left / f"job-{first}").write_bytes(b"{")
    again = restart(hire, left)
    assert again.queue.read_all(lambda r: r.id) == [second]
    assert "damaged" in caplog.text
    assert again.submit(op()) == 3


def test_two_queues_cannot_share_a_directory(hire):
    office = hire()
    with pytest.raises(errors.LockError):
        restart(hire, office.directory)
    assert office.finish(office.submit(OpTestDummy(result={}))) == ["success"]
