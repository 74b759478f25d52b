"""Add a task of the watcher in the two files that ``doc/adding.md`` names, and run the program."""

from __future__ import annotations

from pathlib import Path

from own_package import OwnPackage

ROWS = ("task of the watcher",)

TASK = '''"""Somebody says good night."""

from ganeti import errors
from ganeti.upkeep.round import Round


def run(now: Round) -> None:
    [answer] = now.submit([{"OP_ID": "OP_TEST_DELAY", "duration": 0, "reason": now.reason("late")}])
    raise errors.GenericError(f"job {answer.job_id} does not help: nobody sleeps")
'''

#: The program with its real command line, log and lock; only the master is a stand-in.
PROGRAM = """
from ganeti import constants, paths
from ganeti.base.clock import SYSTEM
from ganeti.luxi.client import Submission
from ganeti.watcher import program


class Master:
    def query_config_values(self, names):
        return ["c"]

    def submit_many_jobs(self, jobs):
        print("submitted:", jobs[0][0]["OP_ID"], jobs[0][0]["reason"][0][:2])
        return [Submission(7) for _ in jobs]

    def auto_archive_jobs(self, age, limit):
        print("archived")
        return 0, 0

    def query(self, *_question):
        from ganeti.luxi.client import QueryResult
        return QueryResult([], [])

    def close(self):
        pass


where = paths.current()
for directory in (where.data, where.log, where.locks, where.watcher_lock.parent):
    directory.mkdir(parents=True, exist_ok=True)
where.run.mkdir(parents=True)
where.ssconf("master_node").write_text("another.example.com")
where.watcher_certificates.write_text(str(SYSTEM.now()))
program.Client = Master
print("code:", program.main([]))
print("log:", (where.log / "watcher.log").read_text())
"""


def test_a_task_in_two_files_is_run_logged_and_hinders_no_other(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.write("watcher/good_night.py", TASK)
    package.insert(
        "watcher/tasks.py", '    "good night": good_night.run,\n', before='    "archive"'
    )
    package.insert(
        "watcher/tasks.py",
        "from ganeti.watcher import good_night\n",
        before="from ganeti.watcher import",
    )
    done = package.run(PROGRAM, tmp_path / "root")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:3] == [
        "submitted: OP_TEST_DELAY ['gnt:watcher', 'late']",
        "archived",
        "code: 1",
    ]
    told = "task good night failed: job 7 does not help: nobody sleeps"
    assert told in done.stderr  # cron mails it
    assert told in done.stdout.partition("log:")[2]
    assert package.touched == {"watcher/good_night.py", "watcher/tasks.py"}
