"""Output of commands that move many instances: the plan, and how its jobs ended."""

from __future__ import annotations

from collections.abc import Sequence

from ganeti.base.json_types import JsonObject
from ganeti.base.text import plural
from ganeti.cli import jobs, output
from ganeti.cli.command import Call


def print_plan(result: JsonObject) -> None:
    """Print for each instance of a dry run where it would move and by which operations."""
    output.print_lines(
        [
            f"{item['instance']}: {', '.join(item['operations'])} to {item['to']}"
            for item in result["plan"]
        ]
    )


def follow(call: Call, result: object, success: str) -> int:
    """Wait for the jobs that an operation submitted; the exit code."""
    outcomes = jobs.wait_many(call, jobs.children(result), announce=True)
    return sum_up(outcomes, success)


def sum_up(outcomes: Sequence[jobs.Outcome], success: str) -> int:
    """Print how many jobs failed, or ``success``; the exit code."""
    bad = sum(not outcome.ok for outcome in outcomes)
    print(f"{success}" if not bad else f"There were errors: {plural(bad, 'job')} failed")
    return 1 if bad else 0
