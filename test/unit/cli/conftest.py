"""A master to talk to, and a way to run gnt-instance as it is run from a shell."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from recording_master import Ran, RecordingMaster, Run

from ganeti.cli import program, programs

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordingMaster]:
    monkeypatch.setenv("GANETI_ROOTDIR", str(tmp_path))
    monkeypatch.setenv("GANETI_HOSTNAME", "node1.example.com")
    monkeypatch.setenv("TZ", "UTC")
    for name in ("GNT_INSTANCE_LIST", "GANETI_REMOTE_SHELL"):
        monkeypatch.delenv(name, raising=False)
    made = RecordingMaster(tmp_path)
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def gnt(master: RecordingMaster, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run any program in this process: its name, then its words."""

    def run(name: str, *words: str) -> Ran:
        code = program.main(programs.PROGRAMS[name], words)
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return run


@pytest.fixture
def gnt_instance(master: RecordingMaster, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run gnt-instance in this process; the words are given one by one, or as one text."""

    def run(*words: str) -> Ran:
        argv = words[0].split() if len(words) == 1 else list(words)
        code = program.main(programs.INSTANCE, argv)
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return run


_OWN_TERMINAL = """
import fcntl, sys, termios
if sys.stdin.isatty():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from ganeti.cli.__main__ import main
sys.argv[0] = "gnt-instance"
sys.exit(main())
"""


@pytest.fixture
def start_gnt_instance(master: RecordingMaster) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start gnt-instance as a process that has the given terminal, or none at all."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: str, terminal: int | None = None) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-c", _OWN_TERMINAL, *words],
            stdin=subprocess.DEVNULL if terminal is None else terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        started.append(child)
        return child

    yield start
    for child in started:
        child.kill()
        child.wait(10)
        for stream in (child.stdout, child.stderr):
            if stream is not None:
                stream.close()
