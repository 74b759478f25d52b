"""The Tab key: what the programs say may follow, and what the script for bash makes of it."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from recording_master import RecordingMaster

from ganeti.cli import program
from ganeti.cli.programs import PROGRAMS
from ganeti.paths import Paths

ROOT = Path(__file__).resolve().parents[3]

Press = Callable[..., list[str]]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["gnt-node", "li"], ["list", "list-drbd", "list-fields", "list-storage", "list-tags"]),
        (["gnt-node", "--v"], ["--version"]),
        (["gnt-rapi", "user", "p"], ["passwd"]),
        (["gnt-node", "list", "--f"], ["--filter", "--format"]),
        (["gnt-node", "list", "--format", "j"], ["json"]),
        (["gnt-node", "list", "--format=j"], ["--format=json"]),
        (["gnt-node", "list", "--no-headers=x"], []),
        (["gnt-node", "modify", "-fO", "y"], ["yes"]),
        (["gnt-cluster", "watcher", ""], ["pause", "continue", "info"]),
        (["gnt-cluster", "watcher", "info", ""], []),
        (["gnt-cluster", "watcher", "--", "-"], []),
        (["gnt-cluster", "copyfile", "/etc/h"], ["<file>"]),
        (["gnt-cluster", "nonsense", ""], []),
    ],
)
def test_words_that_may_follow(
    line: list[str], expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.main(PROGRAMS[line[0]], ["--complete", *line[1:]]) == 0
    assert capsys.readouterr().out.split() == expected


@pytest.fixture
def press_tab(tmp_path: Path) -> Press:
    """Run the script in bash as it does when Tab is pressed behind some words; what it offers."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("gnt-instance", "gnt-node"):
        script = programs / name
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -m ganeti.cli {name} "$@"\n')
        script.chmod(0o755)

    def press(*words: str) -> list[str]:
        lines = [
            f"source {ROOT}/completion/ganeti.bash",
            "COMP_WORDBREAKS=$' \\t\\n\"\\'><=;|&(:'",
            f"COMP_WORDS=({shlex.join(words)}) COMP_CWORD={len(words) - 1}",
            f"complete -p {words[0]} >/dev/null && _ganeti {words[0]}",
            "printf '%s\\n' \"${COMPREPLY[@]}\"",
        ]
        path = f"{programs}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "--norc", "-c", "\n".join(lines)],
            env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert done.stderr == ""
        return done.stdout.split()

    return press


def test_bash_replaces_what_comes_after_the_last_cut(press_tab: Press) -> None:
    assert press_tab("gnt-node", "list", "--format", "=", "j") == ["json"]
    assert press_tab("gnt-node", "list", "--format", "=") == ["table", "json", "yaml", "csv"]
    assert press_tab("gnt-node", "list", "--form") == ["--format"]


def test_names_come_from_the_master(press_tab: Press, master: RecordingMaster) -> None:
    master.tables["instance"] = [{"name": "web1.example.com"}, {"name": "db1.example.com"}]
    master.tables["node"] = [{"name": "node1"}, {"name": "node2"}]
    assert press_tab("gnt-instance", "startup", "web1.example.com", "") == ["db1.example.com"]
    assert press_tab("gnt-instance", "startup", "w") == ["web1.example.com"]
    assert press_tab("gnt-instance", "add", "-n", "node1", ":", "n") == ["node1", "node2"]


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A root whose name is short, as those of sockets must be."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")) as name:
        monkeypatch.setenv("GANETI_ROOTDIR", name)
        yield Path(name)


def test_without_an_answer_there_are_no_names(press_tab: Press, root: Path) -> None:
    assert press_tab("gnt-instance", "startup", "") == []
    path = Paths(root).luxi_socket
    path.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(path))
        silent.listen()
        assert press_tab("gnt-instance", "startup", "") == []


@pytest.mark.parametrize("script", ["ganeti.bash", "ganeti.fish", "_ganeti"])
def test_each_shell_completes_all_programs(script: str) -> None:
    words = set(re.split(r"[^a-z]+", (ROOT / "completion" / script).read_text()))
    assert {name.removeprefix("gnt-") for name in PROGRAMS} <= words
