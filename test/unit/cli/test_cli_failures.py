"""Errors as lines: the reason first; the form of Ganeti for scripts that ask for it."""

from __future__ import annotations

import os

import pytest

from ganeti import errors
from ganeti.cli import failures, program
from ganeti.cli.command import Call, Program

_ORDINARY = [
    (
        errors.OpPrereqError("node2 has no bridge br7", errors.ErrorCode.ENVIRON),
        [
            "Failure: prerequisites not met for this operation:",
            "error type: environment_error, error details:",
        ],
    ),
    (
        errors.OpPrereqError("the password is empty"),
        ["Failure: prerequisites not met for this operation:"],
    ),
    (errors.OpExecError("disk is busy"), ["Failure: command execution error:"]),
    (errors.RpcError("node2 does not answer"), ["Failure: command execution error:"]),
]

_ONE_LINE = [
    errors.JobQueueDrainError("Job queue is drained, refusing job"),
    errors.JobLost("there is no job 99"),
    errors.JobCanceled("Job was canceled"),
    errors.GenericError("the filter rejects the job"),
    errors.AccessError("root only"),
]


@pytest.mark.parametrize(("err", "heading"), _ORDINARY)
def test_the_reason_comes_first(
    monkeypatch: pytest.MonkeyPatch, err: errors.GanetiError, heading: list[str]
) -> None:
    monkeypatch.delenv("GANETI_ERRORS", raising=False)
    reason = str(err.args[0])
    assert failures.lines(err) == [reason]
    assert failures.lines(err, debug=1) == [*heading, reason]
    monkeypatch.setenv("GANETI_ERRORS", "classic")
    assert failures.lines(err) == [*heading, reason]


@pytest.mark.parametrize("err", _ONE_LINE)
def test_an_ordinary_refusal_is_not_unhandled(
    monkeypatch: pytest.MonkeyPatch, err: errors.GanetiError
) -> None:
    monkeypatch.delenv("GANETI_ERRORS", raising=False)
    assert failures.lines(err) == [err.args[0]]
    monkeypatch.setenv("GANETI_ERRORS", "classic")
    assert failures.lines(err) == [f"Unhandled Ganeti error: {err.args[0]}"]


def test_a_bug_says_that_it_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GANETI_ERRORS", raising=False)
    assert failures.lines(errors.ProgrammerError("internal error: KeyError: 'x'")) == [
        "Unhandled Ganeti error: internal error: KeyError: 'x'"
    ]


@pytest.mark.parametrize(
    ("err", "said"),
    [
        (PermissionError(13, "Permission denied", "/a/b"), "/a/b: Permission denied{}\n"),
        (FileNotFoundError(2, "No such file or directory", "/a/b"), "/a/b: No such file or"),
        (OSError(22, "Invalid argument"), "gnt-test fails: internal error: OSError: "),
    ],
)
def test_a_file_that_cannot_be_used_is_no_bug(
    err: OSError, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Program("gnt-test", "Test.", audited=False)

    @made.command("fails")
    def fail(call: Call) -> None:
        """Fail."""
        raise err

    assert program.main(made, ["fails"]) == 1
    hint = ": run this as root" if os.geteuid() else ""
    assert said.format(hint) in capsys.readouterr().err
