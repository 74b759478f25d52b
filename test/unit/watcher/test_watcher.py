"""One run of the watcher: what it asks, what it submits, and its exit codes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ganeti import constants, errors, paths
from ganeti.base import files
from ganeti.base.clock import SYSTEM
from ganeti.luxi.absence import MasterDownError, NotMasterError
from ganeti.luxi.client import QueryResult, Submission
from ganeti.upkeep.round import Options, Round
from ganeti.watcher import certificates, program, reservations
from ganeti.watcher.tasks import TASKS

NOW = 1000.0


class Master:
    """Answers like a client of a master with some reservations."""

    def __init__(self, *rows: tuple[str, str, float | None], refused: str = "") -> None:
        self.rows, self.refused = rows, refused
        self.submitted: list[dict[str, Any]] = []
        self.archived: list[int] = []

    def query(self, what: str, fields: list[str], qfilter: Any) -> QueryResult:
        if qfilter != ["?", "forthcoming"]:
            return QueryResult([], [])
        assert (what, fields) == ("instance", ["uuid", "name", "expires"])
        data = [
            [(0, uuid), (0, name), (0, end) if end is not None else (3, None)]
            for uuid, name, end in self.rows
        ]
        return QueryResult([], data)

    def submit_many_jobs(self, jobs: list[list[dict[str, Any]]]) -> list[Submission]:
        self.submitted += [job[0] for job in jobs]
        return [Submission(None, self.refused) if self.refused else Submission(7) for _ in jobs]

    def auto_archive_jobs(self, age: int, _limit: int) -> tuple[int, int]:
        self.archived.append(age)
        return 0, 0


def begin(master: Master) -> Round:
    clock: Any = SimpleNamespace(now=lambda: NOW)
    client: Any = master
    return Round(client, clock, paths.Paths(Path("/nowhere")), Options(job_age=3600))


def test_only_what_has_expired_is_submitted() -> None:
    master = Master(("u1", "u1", 999.0), ("u2", "web2", 1001.0), ("u3", "web3", None))
    reservations.run(begin(master))
    [op] = master.submitted
    assert (op["OP_ID"], op["instance_uuid"]) == ("OP_RESERVATION_EXPIRE", "u1")
    assert op["reason"][0][:2] == ["gnt:watcher", "the time of the reservation is over"]


def test_a_job_that_is_not_taken_is_reported() -> None:
    master = Master(("u1", "web1", 1.0), refused="the queue is drained")
    with pytest.raises(errors.GenericError, match="web1: the queue is drained"):
        reservations.run(begin(master))


def test_a_task_that_fails_hinders_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    done: list[str] = []

    def fails(_now: Round) -> None:
        raise errors.GenericError("no luck")

    code = program.run(begin(Master()), {"bad": fails, "good": lambda _now: done.append("good")})
    assert code == constants.EXIT_FAILURE
    assert done == ["good"]
    assert "task bad failed: no luck" in capsys.readouterr().err


def test_jobs_are_archived_by_the_age_that_the_command_line_says() -> None:
    master = Master()
    assert program.run(begin(master), {"archive": TASKS["archive"]}) == constants.EXIT_SUCCESS
    assert master.archived == [3600]


def test_certificates_are_looked_at_once_a_day(tmp_path: Path) -> None:
    def at(moment: float, refused: str = "") -> list[dict[str, Any]]:
        master: Any = Master(refused=refused)
        clock: Any = SimpleNamespace(now=lambda: moment)
        where = paths.Paths(tmp_path)
        where.data.mkdir(parents=True, exist_ok=True)
        certificates.run(Round(master, clock, where, Options(job_age=3600)))
        submitted: list[dict[str, Any]] = master.submitted
        return submitted

    day = 24 * 3600.0
    with pytest.raises(errors.GenericError, match="the queue is drained"):
        at(day, "the queue is drained")
    [op] = at(day)
    assert (op["OP_ID"], op["expiring"]) == ("OP_CLUSTER_RENEW_CRYPTO", True)
    assert at(2 * day - 1) == []
    assert len(at(2 * day)) == 1
    assert len(at(day / 2)) == 1  # the clock was set back


@pytest.fixture
def node_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[paths.Paths]:
    found = paths.Paths(tmp_path)
    for directory in (found.log, found.locks, found.data):
        directory.mkdir(parents=True)
    found.run.mkdir(parents=True)
    found.ssconf("master_node").write_text("another.example.com\n")
    monkeypatch.setattr(paths, "current", lambda: found)
    yield found
    for handler in list(logging.getLogger().handlers):
        logging.getLogger().removeHandler(handler)
        handler.close()


def answer(monkeypatch: pytest.MonkeyPatch, outcome: Exception | None) -> None:
    def ask(_fields: list[str]) -> list[str]:
        if outcome is not None:
            raise outcome
        return ["c"]

    master: Any = Master()
    master.query_config_values, master.close = ask, lambda: None
    monkeypatch.setattr(program, "Client", lambda: master)


@pytest.mark.parametrize(
    ("outcome", "code"),
    [(None, 0), (NotMasterError("elsewhere"), 11), (MasterDownError("down"), 1)],
)
def test_exit_codes(
    node_paths: paths.Paths, monkeypatch: pytest.MonkeyPatch, outcome: Exception | None, code: int
) -> None:
    answer(monkeypatch, outcome)
    assert program.main(["--no-strict"]) == code


def test_after_a_boot_it_looks_until_all_that_should_run_does(
    node_paths: paths.Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The master comes up late, then a node; what is down for ever is left to the next run."""
    uptime = [100.0]

    def sleep(seconds: float) -> None:
        uptime[0] += seconds
        answer(monkeypatch, None if uptime[0] > 120 else MasterDownError("down"))
        down[:] = [uptime[0] < 150]

    down = [True]
    clock: Any = SimpleNamespace(now=SYSTEM.now, monotonic=lambda: uptime[0], sleep=sleep)
    monkeypatch.setattr(program, "SYSTEM", clock)
    monkeypatch.setattr(program.instances, "all_run", lambda _groups: not down[0])
    answer(monkeypatch, MasterDownError("down"))
    assert program.main(["--no-strict"]) == 1
    assert uptime == [100.0]
    assert program.main(["--no-strict", "--after-boot", "600"]) == 0
    assert uptime == [160.0]
    down[:] = [True]
    sleep(-60)
    monkeypatch.setattr(program.instances, "all_run", lambda _groups: False)
    assert program.main(["--no-strict", "--after-boot", "600"]) == 0
    assert uptime[0] >= 600


def test_a_second_watcher_ends_at_once(
    node_paths: paths.Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, errors.GenericError("must not be asked"))
    lock = files.FileLock(node_paths.watcher_lock)
    lock.acquire()
    try:
        assert program.main([]) == constants.EXIT_SUCCESS
    finally:
        lock.release()


@pytest.mark.parametrize(
    ("text", "words", "paused"),
    [("9e11", [], True), ("1", [], False), ("x", [], False), ("9e11", ["--ignore-pause"], False)],
)
def test_a_pause_is_obeyed_while_it_lasts(
    node_paths: paths.Paths,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    words: list[str],
    paused: bool,
) -> None:
    answer(monkeypatch, NotMasterError("asked"))
    node_paths.watcher_pause.write_text(f"{text}\n")
    assert program.main(words) == (constants.EXIT_SUCCESS if paused else 11)
    assert (program.read_pause(node_paths, SYSTEM) is not None) == (text == "9e11")
