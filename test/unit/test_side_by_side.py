"""Tests in several processes are the same tests: none is lost, and each report arrives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SUPPORT = Path(__file__).parents[1] / "support"
CONFTEST = """\
import side_by_side

def pytest_addoption(parser):
    side_by_side.add_option(parser)

def pytest_configure(config):
    config.pluginmanager.register(side_by_side.SideBySide(config, config.option.side_by_side))
"""
#: A file of tests: the process of each is written to a file of its name.
FILE = """\
import os, pathlib, pytest

@pytest.fixture(scope="module")
def shared():
    yield os.getpid()
    pathlib.Path("{name}.ended").touch()

@pytest.mark.parametrize("number", range(20))
def test_it(shared, number, capfd):
    assert shared == os.getpid()
    os.write(1, b"seen")
    assert capfd.readouterr().out == "seen"

def test_last(shared):
    print("words of {name}")
    {end}
"""


def _run(place: Path, *words: str, **ends: str) -> tuple[int, str]:
    (place / "conftest.py").write_text(CONFTEST)
    for name, end in ends.items():
        (place / f"test_{name}.py").write_text(FILE.format(name=name, end=end))
    options = ["-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "no:hypothesispytest"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *options, "--side-by-side", "2", *words],
        cwd=place,
        env={"PYTHONPATH": str(SUPPORT), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ran.returncode, ran.stdout + ran.stderr


def test_each_file_runs_in_one_process(tmp_path: Path) -> None:
    code, text = _run(tmp_path, a="pass", b="pass", c="pass")
    assert code == 0, text
    assert "63 passed" in text
    assert {path.name for path in tmp_path.glob("*.ended")} == {"a.ended", "b.ended", "c.ended"}


def test_failures_and_deaths_are_told(tmp_path: Path) -> None:
    code, text = _run(tmp_path, a="assert 1 == 2", b="os._exit(0)", c="os._exit(0)", d="pass")
    assert code == 1
    for words in ("words of a", "assert 1 == 2", "test_a.py::test_last - assert"):
        assert words in text
    for name in ("test_b.py::test_last", "test_c.py::test_"):
        assert f"FAILED {name}" in text
    assert "the process of this test died" in text


def test_the_first_failure_ends_the_run(tmp_path: Path) -> None:
    code, text = _run(tmp_path, "-x", a="assert False", b="assert False", c="pass", d="pass")
    assert code == 1
    assert "stopping after" in text
    assert not (tmp_path / "d.ended").exists()
