"""Hooks on a node, as real programs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from local_node import LocalNode

from ganeti import errors
from ganeti.base.run_parts import MAX_OUTPUT
from ganeti.node.context import NodeContext
from ganeti.node.hooks import Hooks
from ganeti.paths import Paths

SKIP, FAIL, SUCCESS = 0, 1, 2


@pytest.fixture
def directory(paths: Paths) -> Path:
    found = paths.hooks / "instance-start-pre.d"
    found.mkdir(parents=True)
    return found


def script(directory: Path, name: str, body: str, mode: int = 0o755) -> None:
    file = directory / name
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(mode)


def run(node: LocalNode, **env: str) -> list[list[object]]:
    return node.hooks_runner("instance-start", "pre", env)


def test_hooks_run_in_the_order_of_their_names(node: LocalNode, directory: Path) -> None:
    for name in ("20-b", "10-a", "Z", "a_c"):
        script(directory, name, f"echo I am {name}")
    assert run(node) == [
        [f"instance-start-pre.d/{name}", SUCCESS, f"I am {name}"]
        for name in ("10-a", "20-b", "Z", "a_c")
    ]


def test_a_failure_does_not_keep_the_others_from_running(node: LocalNode, directory: Path) -> None:
    script(directory, "1", "echo out; echo err >&2; echo end; exit 3")
    script(directory, "2", "true")
    assert run(node) == [
        ["instance-start-pre.d/1", FAIL, "out\nerr\nend"],
        ["instance-start-pre.d/2", SUCCESS, ""],
    ]


def test_what_is_no_hook_is_skipped(node: LocalNode, directory: Path) -> None:
    script(directory, "not-executable", "echo bad", 0o644)
    script(directory, "bad.name", "echo bad")
    script(directory, "backup~", "echo bad")
    script(directory, ".hidden", "echo bad")
    (directory / "directory").mkdir()
    assert run(node) == [
        [f"instance-start-pre.d/{name}", SKIP, ""]
        for name in ("backup~", "bad.name", "directory", "not-executable")
    ]


def test_the_environment_is_replaced_and_the_directory_is_the_root(
    node: LocalNode, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAKED", "yes")
    script(directory, "env", "/usr/bin/env; pwd; read x; echo stdin=$x$?")
    [[_name, code, output]] = run(node, GANETI_X="1 2", PATH="/bin")
    assert code == SUCCESS
    lines = set(str(output).splitlines()) - {"_=/usr/bin/env"}
    assert lines == {"GANETI_X=1 2", "PATH=/bin", "PWD=/", "/", "stdin=1"}


def test_a_missing_directory_means_no_hooks(node: LocalNode) -> None:
    assert run(node) == []


def test_a_hook_that_cannot_be_started_has_failed(node: LocalNode, directory: Path) -> None:
    (directory / "x").write_text("#!/no/such/interpreter\n")
    (directory / "x").chmod(0o755)
    [[_name, code, output]] = run(node)
    assert code == FAIL
    assert "cannot run" in str(output)


def test_hooks_that_take_too_long_are_killed_and_no_more_are_started(
    context: NodeContext, directory: Path
) -> None:
    script(directory, "1", "echo begun; sleep 60")
    script(directory, "2", "echo bad")
    begin = time.monotonic()
    first, second = Hooks(context, time_limit=0.3).hooks_runner(
        "instance-start", "pre", {"PATH": "/bin"}
    )
    assert time.monotonic() - begin < 5
    assert first[1] == FAIL
    assert first[2].startswith("begun\nkilled: the 0.3 s")
    assert second[1] == FAIL
    assert second[2].startswith("not started")


def test_a_program_left_behind_does_not_hold_the_call(node: LocalNode, directory: Path) -> None:
    script(directory, "x", "sleep 2 & echo done")
    begin = time.monotonic()
    assert run(node, PATH="/bin")[0][1:] == [SUCCESS, "done"]
    assert time.monotonic() - begin < 1.5


def test_a_huge_output_is_cut_and_nothing_is_left(
    node: LocalNode, paths: Paths, directory: Path
) -> None:
    script(directory, "x", f"head -c {MAX_OUTPUT + 1000} /dev/zero | tr '\\0' x; echo END")
    [[_name, code, output]] = run(node, PATH="/bin:/usr/bin")
    assert code == SUCCESS
    assert len(str(output)) < MAX_OUTPUT + 100
    assert str(output).startswith("[1004 bytes left out]")
    assert str(output).endswith("END")
    assert list(paths.run.iterdir()) == []


@pytest.mark.parametrize("hpath", ["../../tmp/evil", "", ".", "a/b", "a\0b", "-x", "UPPER"])
def test_paths_that_lead_elsewhere_are_refused(node: LocalNode, hpath: str) -> None:
    with pytest.raises(errors.ParameterError, match="hooks directory"):
        node.hooks_runner(hpath, "pre", {})


def test_only_two_phases_exist(node: LocalNode) -> None:
    with pytest.raises(errors.ParameterError, match="pre and post"):
        node.hooks_runner("instance-start", "../pre", {})


@pytest.mark.parametrize("env", [{"A=B": "c"}, {"": "c"}, {"A": "x\0y"}, {"A\0": "x"}])
def test_variables_that_cannot_be_set_are_refused(node: LocalNode, env: dict[str, str]) -> None:
    with pytest.raises(errors.ParameterError, match="cannot be set"):
        node.hooks_runner("instance-start", "pre", env)


def test_an_unreadable_directory_is_told(node: LocalNode, paths: Paths) -> None:
    paths.hooks.mkdir(parents=True)
    (paths.hooks / "instance-start-pre.d").write_text("a file")
    with pytest.raises(errors.HooksFailure, match="cannot read"):
        run(node)
