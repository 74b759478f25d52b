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


@pytest.mark.parametrize(
    ("err", "said"),
    [
        (
            errors.HooksAbort([["node1", "10check", "no room"], ["node2", "20ask", ""]]),
            [
                "Failure: hooks execution failed:",
                "  node: node1, script: 10check, output: no room",
                "  node: node2, script: 20ask (no output)",
            ],
        ),
        (errors.HooksAbort(), ["Failure: hooks execution failed:"]),
        (
            errors.ResolverError("web1", -2, "Name or service not known"),
            ["Failure: can't resolve hostname 'web1': Name or service not known"],
        ),
        (errors.ResolverError("web1"), ["Failure: can't resolve hostname 'web1'"]),
        (
            errors.JobQueueFull(),
            [
                "Failure: the job queue is full; archive old jobs (gnt-job autoarchive) and try"
                " again"
            ],
        ),
        (
            errors.ParameterError("memroy"),
            ["Failure: unknown/wrong parameter name 'memroy'"],
        ),
        (errors.ParameterError("memory is 0"), ["Parameter Error: memory is 0"]),
        (errors.QuorumError("one node of three answers"), ["Failure: one node of three answers"]),
        (failures.NodeSetupError("node2 has no LVM"), ["node2 has no LVM"]),
        (errors.TypeEnforcementError("not a number"), ["Parameter Error: not a number"]),
    ],
)
def test_errors_with_a_form_of_their_own(err: errors.GanetiError, said: list[str]) -> None:
    assert failures.lines(err) == said
