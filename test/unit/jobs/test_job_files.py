"""The queue directory: its layout, its lock, and what a crash may leave there."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted_queue import full_disk

from ganeti import errors
from ganeti.jobs import files as job_files
from ganeti.jobs.files import JobFiles
from ganeti.model.job import JobRecord, OpRecord, Submitter
from ganeti.model.job_status import JobStatus


@pytest.fixture
def files(tmp_path: Path) -> Iterator[JobFiles]:
    made = JobFiles(tmp_path / "queue")
    made.open()
    yield made
    made.close()


def job(job_id: int, status: JobStatus = JobStatus.SUCCESS) -> JobRecord:
    one = OpRecord(input={"OP_ID": "OP_TEST_DUMMY"}, status=status, result=[1, "two"])
    one.log.append([1, [5, 6], "message", "hello"])
    return JobRecord(id=job_id, ops=[one], received_timestamp=[1, 2])


def save(files: JobFiles, *jobs: JobRecord) -> None:
    files.wait(files.add({job_files.name_of(j.id): job_files.encode(j) for j in jobs}))


def tree(directory: Path) -> set[str]:
    return {str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file()}


def test_a_new_queue_has_its_version_and_nothing_else(files):
    assert tree(files.directory) == {"journal", "lock", "version"}
    assert (files.directory / "version").read_text() == "1\n"
    assert (files.directory / "archive").is_dir()
    assert files.load() == ([], 0)


def test_a_job_is_one_documented_json_file(files):
    one = job(7)
    one.submitter = Submitter(uid=0, name="root")
    save(files, one)
    files.catch_up()
    stored = json.loads((files.directory / "job-7").read_text())
    assert set(stored) == {
        "id",
        "ops",
        "received_timestamp",
        "start_timestamp",
        "end_timestamp",
        "submitter",
    }
    assert set(stored["ops"][0]) == {
        "input",
        "status",
        "result",
        "log",
        "priority",
        "start_timestamp",
        "exec_timestamp",
        "end_timestamp",
    }
    assert stored["ops"][0]["status"] == "success"
    assert (files.directory / "job-7").stat().st_mode & 0o777 == 0o640


def test_what_was_written_is_read_in_order_of_ids(files):
    save(files, *(job(i) for i in (12, 3, 100)))
    files.wait(files.add({"serial": b"250\n"}))
    jobs, last = files.load()
    assert [j.id for j in jobs] == [3, 12, 100]
    assert jobs[0] == job(3)
    assert last == 250


def test_a_job_beyond_the_serial_still_counts(files):
    """The serial and the job are written in one round, but a crash may part them."""
    files.wait(files.add({"serial": b"4\n"}))
    save(files, job(5))
    assert files.load()[1] == 5


def test_the_later_content_of_a_round_wins(files):
    first, second = job(1, JobStatus.QUEUED), job(1, JobStatus.ERROR)
    files.add({"job-1": job_files.encode(first)})
    save(files, second)
    assert files.load()[0][0].status is JobStatus.ERROR


def test_many_writers_all_get_their_files(files):
    failed: list[Exception] = []

    def write(number: int) -> None:
        try:
            save(files, job(number))
        except Exception as err:
            failed.append(err)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(1, 41)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert failed == []
    assert [j.id for j in files.load()[0]] == list(range(1, 41))


def test_a_file_that_cannot_be_written_leaves_the_old_one_and_no_rest(files):
    save(files, job(1, JobStatus.QUEUED))
    before = tree(files.directory)
    large = job(1)
    large.change(0, result="x" * 100_000)
    with full_disk(50_000), pytest.raises(errors.FileError, match="cannot write"):
        save(files, job(2), large)
    assert tree(files.directory) == before
    assert files.load()[0][0].status is JobStatus.QUEUED
    save(files, large)
    assert files.load()[0][0].ops[0].result == "x" * 100_000


def test_a_failure_reaches_every_writer_of_the_round(files):
    small = files.add({"job-1": job_files.encode(job(1))})
    with full_disk(10):
        with pytest.raises(errors.FileError):
            save(files, job(2))
        with pytest.raises(errors.FileError):
            files.wait(small)
    assert files.load() == ([], 0)


def test_rests_of_a_crash_are_swept(tmp_path):
    directory = tmp_path / "queue"
    directory.mkdir()
    (directory / ".new-job-3").write_bytes(b'{"id": 3, "op')
    made = JobFiles(directory)
    made.open()
    try:
        assert made.load() == ([], 0)
        assert ".new-job-3" not in tree(directory)
    finally:
        made.close()


@pytest.mark.parametrize(
    "content", [b"", b'{"id": 3, "ops": [', b"[]", b'{"id": 4, "ops": []}', b'{"id": 3}', b"\xff"]
)
def test_a_damaged_job_is_moved_aside_and_the_others_live(files, content, caplog):
    save(files, job(2), job(4))
    (files.directory / "job-3").write_bytes(content)
    with caplog.at_level(logging.ERROR):
        jobs, last = files.load()
    assert [j.id for j in jobs] == [2, 4]
    assert last == 4
    assert (files.directory / "job-3.corrupted").read_bytes() == content
    assert "job-3 is damaged" in caplog.text


def test_the_id_of_a_damaged_job_is_not_used_again(files):
    (files.directory / "job-9").write_bytes(b"rubbish")
    assert files.load()[1] == 9


@pytest.mark.parametrize("text", ["many", "", "-5", "²", "9" * 5000])
def test_a_damaged_serial_stops_the_start(files, text):
    (files.directory / "serial").write_text(f"{text}\n")
    with pytest.raises(errors.JobQueueError, match="serial does not hold a number"):
        files.load()


def test_other_files_in_the_directory_do_not_matter(files):
    for name in ("job-0", "job-01", "job-x", "job-5.corrupted", "notes"):
        (files.directory / name).write_text("?")
    assert files.load() == ([], 0)


def test_a_job_of_another_version_with_more_keys_is_read(files):
    stored = json.loads(job_files.encode(job(1)))
    stored["livelock"], stored["process_id"] = "/run/x", 123
    stored["ops"][0]["extra"] = None
    (files.directory / "job-1").write_text(json.dumps(stored, indent=1))
    assert files.load()[0] == [job(1)]


def test_two_masters_cannot_use_one_queue(files):
    with pytest.raises(errors.LockError, match="locked by another process"):
        JobFiles(files.directory).open()
    files.close()
    second = JobFiles(files.directory)
    second.open()
    second.close()


def test_a_queue_of_another_format_is_refused_and_left_alone(tmp_path):
    directory = tmp_path / "queue"
    directory.mkdir()
    (directory / "version").write_text("2\n")
    made = JobFiles(directory)
    for _attempt in range(2):  # the lock was given back
        with pytest.raises(errors.JobQueueError, match="has format 2, this version needs 1"):
            made.open()
    assert (directory / "version").read_text() == "2\n"


def test_the_archive_has_a_directory_for_ten_thousand_jobs(files):
    save(files, *(job(i) for i in (1, 9999, 10000, 25001)))
    files.wait(files.add({"serial": b"25001\n"}))
    files.archive([1, 9999, 10000, 25001])
    found = tree(files.directory / "archive")
    assert found == {"0/job-1", "0/job-9999", "1/job-10000", "2/job-25001"}
    assert files.last_id() == 25001  # an archived job keeps its id
    assert files.list_archived_ids() == [1, 9999, 10000, 25001]
    assert files.read_archived(10000) == job(10000)
    assert files.read_archived(2) is None


def test_the_drain_flag_is_a_file(files):
    assert not files.drained
    files.set_drained(True)
    files.set_drained(True)
    assert (files.directory / "drain").read_bytes() == b""
    assert files.drained
    files.set_drained(False)
    files.set_drained(False)
    assert not files.drained
