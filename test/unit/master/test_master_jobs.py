"""What a client of the master can do with jobs, over a real socket."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from waiting import wait_for as wait_until

from ganeti import errors
from ganeti.base.file_journal import FileJournal
from ganeti.config.changes import Author
from ganeti.jobs.files import JobFiles
from ganeti.luxi.client import Client
from ganeti.luxi.server import LuxiServer
from ganeti.master.core import Core
from ganeti.master.service import Service
from ganeti.master.waiting import Waiting
from ganeti.net.unix_socket import Credentials


def delay(**more: Any) -> dict[str, Any]:
    return {"OP_ID": "OP_TEST_DELAY", "duration": 0, "reason": [], **more}


def wait_for(client: Client, job: int, *wanted: str) -> str:
    """Follow a job as ``gnt-job watch`` does, until it has one of the statuses."""
    wanted = wanted or ("success", "error", "canceled")
    previous, serial = None, None
    end = time.monotonic() + 20
    while time.monotonic() < end:
        change = client.wait_for_job_change(job, ["status"], previous, serial, 10)
        previous = change.values
        serial = max([serial or 0, *(entry[0] for entry in change.log)])
        if previous[0] in wanted:
            return previous[0]
    raise AssertionError(f"job {job} is still {previous}")


def test_a_job_from_submission_to_archive(client, master):
    job = client.submit_job([delay(repeat=2)])
    assert wait_for(client, job) == "success"
    (row,) = client.query_jobs([job], ["id", "status", "summary", "opresult"])
    assert row[:2] == [job, "success"]
    assert "TEST_DELAY" in row[2][0]
    assert client.archive_job(job) is True
    stored = json.loads((master.paths.queue / "archive" / "0" / f"job-{job}").read_text())
    assert stored["submitter"]["uid"] == os.getuid()
    assert client.archive_job(job) is False


def test_a_trusted_daemon_hands_in_jobs_for_its_users(client, master):
    job = client.submit_job([delay()], user="rapi:alice")
    wait_for(client, job)
    master.core.job_files.catch_up()
    stored = json.loads((master.paths.queue / f"job-{job}").read_text())
    assert stored["submitter"]["user"] == "rapi:alice"
    assert stored["submitter"]["uid"] == os.getuid()
    key = client.submit_job([delay()], "once", user="rapi:alice")
    assert client.submit_job([delay()], "once", user="rapi:alice") == key


@pytest.mark.parametrize("user", ["", "a\nb", "x" * 300, 7])
def test_names_of_users_are_short_texts(client, user):
    with pytest.raises(errors.RequestError, match=r"user of a job|'user' must be a text"):
        client.call("SubmitJob", [delay()], None, user)


def test_others_speak_for_themselves_only(master):
    service, reply = Service(master.core, master.waiting), SimpleNamespace(ok=print)
    service.open()
    service.stop()  # of its threads
    stranger = Credentials(pid=1, uid=54321, gid=54321)
    arguments = {"ops": [delay()], "key": None, "user": "rapi:alice"}
    with pytest.raises(errors.OpPrereqError, match="54321 may not hand in jobs for"):
        service("SubmitJob", arguments, stranger, reply)
    assert master.core.queue.last_id == 0


def test_waiting_for_an_archived_job_is_answered_or_refused(client):
    """Nulls tell a client neither that the job has ended nor that it is gone: it asks for ever."""
    job = client.submit_job([delay()])
    wait_for(client, job)
    client.archive_job(job)
    try:
        change = client.wait_for_job_change(job, ["status"], ["running"], 0, 5)
    except errors.JobLost:
        return
    assert change.values == ["success"]


def test_unknown_jobs(client):
    assert client.query_jobs([99], ["status"]) == [[None]]
    with pytest.raises(errors.JobLost):
        client.wait_for_job_change(99, ["status"], None, None, 5)
    assert client.cancel_job(99)[0] is False
    assert client.archive_job(99) is False


def test_the_log_is_given_in_parts(client):
    job = client.submit_job([delay(repeat=3)])
    wait_for(client, job)
    change = client.wait_for_job_change(job, ["status"], None, None, 5)
    assert [entry[0] for entry in change.log] == [1, 2, 3]
    assert all("iteration" in entry[3] for entry in change.log)
    rest = client.wait_for_job_change(job, ["status"], ["success"], 2, 5)
    assert [entry[0] for entry in rest.log] == [3]


def test_a_wait_answers_as_soon_as_something_happens(client, master):
    master.hold_everything()
    job = client.submit_job([delay()])
    wait_for(client, job, "waiting")
    answers: list[Any] = []

    def watch() -> None:
        with master.client() as other:
            answers.append(other.wait_for_job_change(job, ["status"], ["waiting"], 0, 15))

    watchers = [threading.Thread(target=watch) for _ in range(5)]
    for thread in watchers:
        thread.start()
    master.let_go()
    for thread in watchers:
        thread.join(20)
    assert len(answers) == 5
    assert all(change.values[0] in ("running", "success") for change in answers)


def test_a_wait_that_sees_nothing_gives_the_present_values(client, master):
    master.hold_everything()
    job = client.submit_job([delay()])
    wait_for(client, job, "waiting")
    change = client.wait_for_job_change(job, ["status"], ["waiting"], 0, 0)
    assert (change.values, change.log) == (["waiting"], [])


def test_a_waiting_job_is_canceled(client, master):
    master.hold_everything()
    job = client.submit_job([delay()])
    wait_for(client, job, "waiting")
    assert client.cancel_job(job)[0] is True
    assert wait_for(client, job) == "canceled"
    assert client.cancel_job(job)[0] is False


def test_many_jobs_at_once_with_relative_dependencies(client, master):
    jobs = client.submit_many_jobs(
        [[delay()], [delay(depends=[[-1, ["success"]]])], [delay(depends=[[-2, ["error"]]])]]
    )
    ids = [one.job_id for one in jobs]
    assert [wait_for(client, job) for job in ids] == ["success", "success", "error"]


def test_a_drained_queue(client):
    client.set_drain_flag(True)
    with pytest.raises(errors.GenericError, match="drained"):
        client.submit_job([delay()])
    forced = client.submit_job_to_drained_queue([delay()])
    assert wait_for(client, forced) == "success"
    assert client.query_config_values(["drain_flag"]) == [True]
    client.set_drain_flag(False)
    assert wait_for(client, client.submit_job([delay()])) == "success"


def test_priorities(client, master):
    master.hold_everything()
    job = client.submit_job([delay()])
    wait_for(client, job, "waiting")
    assert client.change_job_priority(job, -3)[0] is True
    assert client.query_jobs([job], ["priority"]) == [[-3]]
    with pytest.raises(errors.OpPrereqError, match="priority 99"):
        client.change_job_priority(job, 99)


def test_old_jobs_are_archived(client):
    jobs = [client.submit_job([delay()]) for _ in range(3)]
    for job in jobs:
        wait_for(client, job)
    assert client.auto_archive_jobs(3600, 10) == (0, 0)
    assert client.auto_archive_jobs(-1, 10) == (3, 0)
    assert client.query_jobs(None, ["id"]) == []


@pytest.mark.parametrize(
    "ops",
    [
        [{"OP_ID": "OP_NONSENSE", "reason": []}],
        [{"duration": 1}],
        ["text"],
        [{"OP_ID": "OP_TEST_DELAY", "duration": 0, "reason": [], "colour": "red"}],
        [{"OP_ID": "OP_TEST_DELAY", "reason": []}],
    ],
)
def test_what_is_no_job_is_refused_and_takes_no_id(client, ops):
    with pytest.raises(errors.RequestError):
        client.submit_job(ops)
    assert client.submit_job([delay()]) == 1


def test_jobs_survive_a_restart(root, client, master):
    master.hold_everything()
    waiting = client.submit_job([delay()])
    wait_for(client, waiting, "waiting")
    stored = json.loads(FileJournal(root.queue).read_pending()[f"job-{waiting}"])
    assert stored["ops"][0]["status"] in ("queued", "waiting")


def test_who_leaves_while_waiting_is_forgotten(client, master):
    master.hold_everything()
    job = client.submit_job([delay()])
    wait_for(client, job, "waiting")
    for _ in range(5):
        with (
            Client(master.paths.luxi_socket, io_timeout=0.02) as impatient,
            pytest.raises(errors.TimeoutError),
        ):
            impatient.wait_for_job_change(job, ["status"], ["waiting"], 0, 30)
    master.let_go()
    assert wait_for(client, job) == "success"


def test_null_parameters_of_other_versions_are_ignored_with_a_warning(client):
    known = client.submit_job([delay(), delay(of_the_future=None, hotplug_mode=None)])
    wait_for(client, known)
    change = client.wait_for_job_change(known, ["status"], None, None, 1)
    told = [entry[3] for entry in change.log]
    assert [text for text in told if "of_the_future" in text or "hotplug_mode" in text] == told[:2]
    assert "OP_TEST_DELAY has no parameter 'of_the_future'; it is null and was ignored" in told[0]
    assert [entry[0] for entry in change.log] == list(range(1, len(told) + 1))
    with pytest.raises(errors.RequestError, match="unknown parameter 'of_the_future'"):
        client.submit_job([delay(of_the_future=False)])


@pytest.mark.parametrize("asked", [True, False])
def test_clients_of_3_0_ask_whether_to_hotplug_if_possible(client, asked):
    """They send the parameter with every change of an instance."""
    job = client.submit_job(
        [
            {
                "OP_ID": "OP_INSTANCE_SET_PARAMS",
                "instance_name": "web1.example.com",
                "reason": [],
                "hotplug": False,
                "hotplug_if_possible": asked,
                "beparams": {"vcpus": 2},
            }
        ]
    )
    wait_for(client, job)
    (row,) = client.query_jobs([job], ["opresult"])
    assert "web1.example.com" in row[0][0][1][0]  # it came as far as looking for the instance


def limit(master, **limits):
    store = master.core.store
    store.change("Limit", Author(user="root"), lambda draft: draft.update_cluster(**limits))


def test_no_more_operations_run_than_the_limit_allows_and_it_holds_at_once(master, client):
    limit(master, max_running_jobs=1)
    first = client.submit_job([delay(duration=60.0, on_master=True)])
    wait_for(client, first, "running")
    others = [client.submit_job([delay(duration=60.0, on_master=True)]) for _ in range(8)]
    why = client.explain_job(others[0])["waits_for"]
    assert (why["kind"], why["jobs"], why["ahead"]) == ("worker", [first], 0)
    limit(master, max_running_jobs=3)
    for job in others[:2]:
        wait_for(client, job, "running")
    assert client.explain_job(others[2])["waits_for"]["kind"] == "worker"
    limit(master, max_running_jobs=1)
    for job in (first, others[0]):
        client.cancel_job(job)
        wait_for(client, job, "canceled")
    assert client.query_jobs([others[2]], ["status"]) == [["queued"]]
    for job in others[1:]:
        client.cancel_job(job)
        wait_for(client, job, "canceled")


def test_clients_hear_at_once_of_as_many_jobs_as_are_tracked(master, client, monkeypatch):
    """``max_tracked_jobs``: clients of further jobs hear of changes later, in one go."""
    monkeypatch.setattr("ganeti.master.waiting.UNTRACKED_DELAY", 3600.0)
    limit(master, max_tracked_jobs=1)
    master.hold_everything()
    jobs = [client.submit_job([delay()]) for _ in range(2)]
    heard: list[Any] = []

    def listen(job: int) -> None:
        # The second one still waits when the master of this test ends.
        own = Client(master.paths.luxi_socket, io_timeout=20, reconnect_limit=0)
        with own, contextlib.suppress(errors.GanetiError):
            heard.append(own.wait_for_job_change(job, ["id", "status"], [job, "waiting"], 0, 60))

    for job in jobs:
        wait_for(client, job, "waiting")
    followers = [threading.Thread(target=listen, args=[job]) for job in jobs]
    for job, follower in zip(jobs, followers, strict=True):
        follower.start()
        wait_until(lambda wanted=job: wanted in master.waiting._by_key, "a client to wait")
    for job in reversed(jobs):
        client.cancel_job(job)
    followers[0].join(20)
    assert [change.values[0] for change in heard] == jobs[:1]
    assert heard[0].values[1].startswith("cancel")


def test_what_needs_no_jobs_is_answered_while_the_queue_is_read(root, monkeypatch):
    """And what needs them is answered then; nothing is refused."""
    reading, release = threading.Event(), threading.Event()
    load = JobFiles.load

    def slowly(files):
        reading.set()
        assert release.wait(20)
        return load(files)

    monkeypatch.setattr(JobFiles, "load", slowly)
    core = Core(root)
    core.replication.alone = True
    waiting = Waiting()
    service = Service(core, waiting)
    server = LuxiServer(root.luxi_socket, service)
    core.prepare()
    server.start()
    starter = threading.Thread(target=core.start)
    starter.start()
    try:
        assert reading.wait(20)
        with Client(root.luxi_socket, io_timeout=20) as client:
            assert client.query_config_values(["cluster_name"]) == ["cluster.example.com"]
            assert client.query_nodes([], ["name"]) == [["node1.example.com"]]
        got = []
        early = threading.Thread(target=lambda: got.append(submit_one(root)))
        early.start()
        early.join(0.1)
        assert got == []
        release.set()
        starter.join(20)
        service.open()
        early.join(20)
        assert got == [1]
    finally:
        release.set()
        starter.join(20)
        server.stop()
        service.stop()
        waiting.stop()
        assert core.stop(20)


def submit_one(root):
    with Client(root.luxi_socket, io_timeout=20) as client:
        return client.submit_job([delay()])


def test_a_wait_ends_when_somebody_connects_to_its_socket(client):
    job = client.submit_job([delay(duration=600, interruptible=True)])
    change = client.wait_for_job_change(job, ["status"], ["queued"], 0, 20)
    while not change.log:
        change = client.wait_for_job_change(job, ["status"], change.values, 0, 20)
    [entry] = change.log
    assert entry[2] == "delay-test"
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(entry[3][0])
        assert wait_for(client, job) == "success"
    assert not os.path.exists(entry[3][0])
    job = client.submit_job([delay(duration=600, interruptible=True)])
    wait_for(client, job, "running")
    client.cancel_job(job)
    assert wait_for(client, job) == "canceled"
