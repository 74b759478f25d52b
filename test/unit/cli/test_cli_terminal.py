"""What a person sees on a terminal, and what scripts see, which is Ganeti's to the byte."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recording_master import Ran, RecordingMaster

ROOT = Path(__file__).resolve().parents[3]
Gnt = Callable[..., Ran]


def _run(line: str, stdout: int) -> tuple[int, str]:
    name, *words = line.split()
    done = subprocess.run(
        [sys.executable, "-m", "ganeti.cli", name, *words],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        start_new_session=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.fixture
def terminal(master: RecordingMaster) -> Gnt:
    """Run a command whose standard output is a terminal."""

    def run(line: str) -> Ran:
        ours, its = os.openpty()
        try:
            code, err = _run(line, its)
            os.close(its)
            said = b""
            try:
                while more := os.read(ours, 65536):
                    said += more
            except OSError:
                pass  # the other end is closed: that was all
            return Ran(code, said.decode().replace("\r\n", "\n"), err)
        finally:
            os.close(ours)

    return run


@pytest.fixture
def piped(master: RecordingMaster, tmp_path: Path) -> Gnt:
    """Run a command whose standard output is a file."""

    def run(line: str) -> Ran:
        path = tmp_path / "output"
        with path.open("wb") as file:
            code, err = _run(line, file.fileno())
        return Ran(code, path.read_text(), err)

    return run


def _job(number: int, status: str, **fields: Any) -> dict[str, Any]:
    now = int(time.time())
    return {
        "id": number,
        "status": status,
        "summary": ["TEST_DELAY(20000000000 ns)"],
        "user": "rapi:anna",
        "received_ts": [now - 7200, 5],
        "start_ts": [now - 7199, 0],
        "end_ts": [now - 7157, 0],
        "opresult": [None],
        **fields,
    }


def test_nodes_have_a_role_on_a_terminal(
    master: RecordingMaster, terminal: Gnt, piped: Gnt
) -> None:
    usual = dict.fromkeys(
        ("dtotal", "dfree", "mtotal", "mnode", "mfree", "pinst_cnt", "sinst_cnt"), 0
    )
    master.tables["node"] = [
        {"name": "n1", "role": "M", **usual},
        {"name": "n2", "role": "D", **usual},
        {"name": "n3", "role": "O", **usual},
    ]
    lines = [line.split()[:3] for line in terminal("gnt-node list").out.splitlines()]
    assert lines == [
        ["Name", "Role", "Dtotal"],
        ["n1", "master", "0"],
        ["n2", "drained", "0"],
        ["n3", "offline", "0"],
    ]
    assert piped("gnt-node list --no-headers").out.splitlines()[0] == "n1 0 0 0 0 0 0 0"
    # whoever separates columns parses them
    assert "master" not in terminal("gnt-node list --separator=:").out


def test_reservations_come_after_instances(
    master: RecordingMaster, terminal: Gnt, piped: Gnt
) -> None:
    fields = {"hypervisor": "kvm", "os": "noop", "pnode": "n1", "oper_ram": 64}
    master.tables["instance"] = [
        {"name": "6914264d", "status": "ADMIN_down", "forthcoming": True, **fields},
        {"name": "web1", "status": "running", "forthcoming": False, **fields},
    ]
    assert terminal("gnt-instance list --no-headers -o name,status").out.splitlines() == [
        "web1     running",
        "6914264d reserved",
    ]
    assert piped("gnt-instance list --no-headers -o name,status").out.splitlines() == [
        "6914264d ADMIN_down",
        "web1     running",
    ]


def test_jobs_have_user_age_and_duration_on_a_terminal(
    master: RecordingMaster, terminal: Gnt, piped: Gnt
) -> None:
    master.tables["job"] = [_job(1, "success")]
    head, row = terminal("gnt-job list").out.splitlines()
    assert head.split() == ["Id", "Status", "User", "Age", "Duration", "Summary"]
    assert row.split() == [
        "1",
        "success",
        "rapi:anna",
        "2",
        "h",
        "0",
        "min",
        "42",
        "s",
        "TEST_DELAY(20",
        "s)",
    ]
    assert piped("gnt-job list --no-headers").out == "1 success TEST_DELAY(20000000000 ns)\n"


def test_the_newest_jobs_are_enough(master: RecordingMaster, terminal: Gnt, piped: Gnt) -> None:
    master.tables["job"] = [_job(number, "success") for number in range(1, 61)]

    def ids(ran: Ran) -> list[int]:
        return [int(line.split()[0]) for line in ran.out.splitlines()]

    ran = terminal("gnt-job list --no-headers")
    assert ids(ran) == list(range(11, 61))
    assert ran.err == "10 older jobs are not shown; --limit 0 shows all\n"
    assert ids(terminal("gnt-job list --no-headers --limit 0")) == list(range(1, 61))
    assert ids(piped("gnt-job list --no-headers")) == list(range(1, 61))
    assert ids(piped("gnt-job list --no-headers --limit 2")) == [59, 60]
    ran = piped("gnt-job list --limit -1")
    assert (ran.code, ran.out) == (1, "")
    assert "--limit -1: expected 0" in ran.err


def test_failed_jobs_are_listed_with_their_error(master: RecordingMaster, terminal: Gnt) -> None:
    failure = ["OpPrereqError", ["node 'n9' is not known", "unknown_entity"]]
    master.tables["job"] = [_job(1, "success"), _job(2, "error", opresult=[failure])]
    ran = terminal("gnt-job list --error --no-headers")
    assert ran.out.rstrip().endswith("TEST_DELAY(20 s) node 'n9' is not known")
    assert len(ran.out.splitlines()) == 1


def test_times_of_jobs_are_text_on_a_terminal(
    master: RecordingMaster, terminal: Gnt, piped: Gnt
) -> None:
    master.tables["job"] = [_job(1, "running", received_ts=[1795363400, 644469], end_ts=None)]
    line = "gnt-job list --no-headers -o received_ts,end_ts"
    assert terminal(line).out.split() == ["2026-11-22", "16:03:20.644469", "N/A"]
    assert piped(line).out == "[1795363400, 644469] None\n"


def test_an_unknown_column_is_refused_on_a_terminal(
    master: RecordingMaster, terminal: Gnt, piped: Gnt
) -> None:
    master.tables["instance"] = [{"name": "web1", "memory": 64, "forthcoming": False}]
    ran = terminal("gnt-instance list -o name,mem")
    assert (ran.code, ran.out) == (14, "")
    assert ran.err.startswith("Unknown instance field mem (did you mean memory?)")
    ran = piped("gnt-instance list --no-headers -o name,mem")
    assert (ran.code, ran.out) == (14, "web1 ??\n")
    assert ran.err == "Warning: Queried for unknown fields mem (did you mean memory?)\n"


def test_all_columns(master: RecordingMaster, piped: Gnt) -> None:
    master.tables["node"] = [{"name": "n1", "role": "M", "mfree": 5}]
    assert piped("gnt-node list -o all --separator=:").out == "Mfree:Name:Role\n5:n1:M\n"


def test_free_locks_are_not_shown_on_a_terminal(
    master: RecordingMaster, terminal: Gnt, piped: Gnt
) -> None:
    held = {"name": "node/uuid-n1", "mode": "shared", "owner": ["7"], "pending": None}
    free = {"name": "node/uuid-n2", "mode": None, "owner": None, "pending": None}
    master.tables["lock"] = [held, free]
    master.add_node("n1")
    ran = terminal("gnt-debug locks --no-headers")
    assert ran.out == "node/n1 shared 7 -\n"
    assert ran.err == "1 free lock not shown; -v shows them too\n"
    assert len(terminal("gnt-debug locks --no-headers -v").out.splitlines()) == 2
    assert [line.split()[0] for line in piped("gnt-debug locks --no-headers").out.splitlines()] == [
        "node/uuid-n1",
        "node/uuid-n2",
    ]


def test_a_submitted_job_is_announced_in_one_form(
    master: RecordingMaster, terminal: Gnt, piped: Gnt
) -> None:
    master.add_instance("web1")
    ran = terminal("gnt-instance startup --submit web1")
    assert (ran.out, ran.err) == ("", "JobID: 1 (web1)\n")
    ran = piped("gnt-instance startup --submit web1")
    assert (ran.out, ran.err) == ("2: web1\n", "JobID: 2 (web1)\n")


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("gnt-instance shutdown web1 web2", "--force-multiple"),
        ("gnt-instance migrate web1", "-f"),
        ("gnt-node powercycle n1", "--yes"),
    ],
)
def test_without_a_terminal_the_option_that_answers_is_named(
    master: RecordingMaster, piped: Gnt, line: str, option: str
) -> None:
    master.add_instance("web1")
    master.add_instance("web2")
    ran = piped(line)
    assert ran.code == 1
    assert ran.err.endswith(f"nothing is done; {option} answers yes\n")
    assert master.jobs == []


def test_watching_an_ended_job_shows_its_log_and_how_it_ended(
    master: RecordingMaster, terminal: Gnt
) -> None:
    master.add_instance("web1")
    master.logs["OP_INSTANCE_STARTUP"] = ["starting"]
    assert terminal("gnt-instance startup web1 --submit").code == 0
    ran = terminal("gnt-job watch 1")
    assert ran.out.splitlines()[2].endswith(" starting")
    assert ran.err.endswith("Job 1 has ended: success\n")


def test_options_may_follow_arguments(master: RecordingMaster, piped: Gnt) -> None:
    master.add_instance("web1")
    assert piped("gnt-instance migrate web1 -f --submit").code == 0
    assert master.op["OP_ID"] == "OP_INSTANCE_MIGRATE"
