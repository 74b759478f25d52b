"""Runs test files side by side: ``--side-by-side N`` forks N workers after the tests are collected.

Collecting imports all tests and rewrites their assertions, which takes longer than most files. It
is done once, and the workers share that memory. Tests of one file share what they set up, so files
are what a worker takes, the next one when it is about to end one. ``@pytest.mark.together(NAME)``
makes one portion of several files.

A worker sends its reports to the process that forked it, which shows and counts them. A worker that
dies fails the test that it was running, and the first of a file that it had taken for later.
"""

from __future__ import annotations

import atexit
import gc
import itertools
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, NoReturn

import pytest

#: Name of the mark that joins files.
TOGETHER = "together"
#: What a report of a worker that died says.
_DIED = "the process of this test died; it and other tests of its file may not have run"


def add_option(parser: pytest.Parser) -> None:
    parser.addoption(
        "--side-by-side", type=int, default=1, metavar="N", help="run N test files at a time"
    )


def portions(items: Sequence[pytest.Item]) -> list[list[pytest.Item]]:
    """The tests that one worker runs one after the other, in the order of their first tests."""
    made: dict[object, list[pytest.Item]] = {}
    for item in items:
        mark = item.get_closest_marker(TOGETHER)
        made.setdefault(mark.args[0] if mark else item.path, []).append(item)
    return list(made.values())


@dataclass
class _Worker:
    pid: int
    connection: Connection
    #: Name and place of the test that it runs.
    running: tuple[str, tuple[str, int | None, str]] | None = None
    #: Tests that it has or will have; empty before and after its work.
    portion: list[pytest.Item] = field(default_factory=list)


@dataclass
class SideBySide:
    """The loop over the tests."""

    config: pytest.Config
    count: int
    _workers: list[_Worker] = field(default_factory=list)

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        parts = portions(session.items)
        if session.testsfailed or session.config.option.collectonly or len(parts) < 2:
            return None
        gc.collect()
        gc.freeze()  # workers neither look at it nor copy it
        for number in range(min(self.count, len(parts))):
            ours, theirs = Pipe()
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                ours.close()  # or this worker would not see that the other side has gone
                self._be_worker(session, parts, theirs, number)
            theirs.close()
            self._workers.append(_Worker(pid, ours))
        try:
            self._listen(session, parts)
        finally:
            for worker in self._workers:
                worker.connection.close()
                os.waitpid(worker.pid, 0)
        return True

    def _listen(self, session: pytest.Session, parts: list[list[pytest.Item]]) -> None:
        """Hand out portions and take reports until all workers have closed."""
        left = iter(range(len(parts)))
        open_ones = {worker.connection: worker for worker in self._workers}
        while open_ones:
            for connection in wait(list(open_ones)):
                worker = open_ones[connection]  # type: ignore[index]
                try:
                    kind, content = worker.connection.recv()
                except EOFError:
                    del open_ones[worker.connection]
                    self._handle_end(session, worker)
                    continue
                if kind == "next":
                    ended = session.shouldfail or session.shouldstop
                    number = None if ended else next(left, None)
                    worker.portion = [] if number is None else parts[number]
                    worker.connection.send(number)
                else:
                    self._take(worker, kind, content)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)

    def _take(self, worker: _Worker, kind: str, content: Any) -> None:
        hook = self.config.hook
        if kind == "start":
            worker.running = content
            hook.pytest_runtest_logstart(nodeid=content[0], location=content[1])
        elif kind == "finish":
            worker.running = None
            hook.pytest_runtest_logfinish(nodeid=content[0], location=content[1])
        else:
            report = hook.pytest_report_from_serializable(config=self.config, data=content)
            hook.pytest_runtest_logreport(report=report)

    def _handle_end(self, session: pytest.Session, worker: _Worker) -> None:
        lost = [worker.running] if worker.running else []
        ahead = [(item.nodeid, item.location) for item in worker.portion]
        if ahead and worker.running not in ahead and not session.shouldfail:
            lost.append(ahead[0])
        for nodeid, location in lost:
            report = pytest.TestReport(nodeid, location, {}, "failed", _DIED, "call")
            self.config.hook.pytest_runtest_logreport(report=report)

    def _be_worker(
        self,
        session: pytest.Session,
        parts: list[list[pytest.Item]],
        connection: Connection,
        number: int,
    ) -> NoReturn:
        """What a forked process does until its end."""
        atexit._clear()  # what the other side is to do at its end is not ours
        for worker in self._workers:
            worker.connection.close()
        try:
            _become_worker(self.config, number)
            self.config.pluginmanager.register(_Sender(self.config, connection))
            _run(session, parts, connection)
            self.config.hook.pytest_sessionfinish(session=session, exitstatus=0)
        except BaseException:
            traceback.print_exc()
        finally:
            atexit._run_exitfuncs()
            os._exit(0)


def _run(session: pytest.Session, parts: list[list[pytest.Item]], connection: Connection) -> None:
    """Run the portions that the other side hands out."""

    def handed_out() -> Iterator[pytest.Item]:
        while True:
            connection.send(("next", None))
            portion = connection.recv()
            if portion is None:
                return
            yield from parts[portion]

    # The next test is known before the last one of a file runs, so what both share stays.
    for item, following in itertools.pairwise(itertools.chain(handed_out(), [None])):
        assert item is not None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail or session.shouldstop:
            return


class _Sender:
    """Sends what a worker would tell its terminal."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config = config
        self._connection = connection

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        self._connection.send(("start", (nodeid, location)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        hook = self._config.hook
        data = hook.pytest_report_to_serializable(config=self._config, report=report)
        self._connection.send(("report", data))

    def pytest_runtest_logfinish(self, nodeid: str, location: Any) -> None:
        self._connection.send(("finish", (nodeid, location)))


def _become_worker(config: pytest.Config, number: int) -> None:
    """Give this forked process an output and a terminal of its own."""
    # The sign by which pytest's plugins know a worker: it writes no cache and no report files.
    config.workerinput = {"workerid": f"worker{number}"}  # type: ignore[attr-defined]
    config.get_terminal_writer()._file = open(os.devnull, "w")  # noqa: SIM115
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()  # until a test begins
