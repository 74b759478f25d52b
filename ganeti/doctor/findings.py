"""Findings of checks: one line each, with what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is; only ``FAIL`` makes the exit code 1."""

    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    #: its subject in one word, such as ``names``
    check: str
    level: Level
    text: str
    #: the command, or the change, that cures it
    remedy: str = ""

    @property
    def line(self) -> str:
        """The finding on one line, without its subject and level."""
        return f"{self.text}: {self.remedy}" if self.remedy else self.text


def ok(check: str, text: str) -> Finding:
    return Finding(check, Level.OK, text)


def warn(check: str, text: str, remedy: str) -> Finding:
    return Finding(check, Level.WARN, text, remedy)


def fail(check: str, text: str, remedy: str) -> Finding:
    return Finding(check, Level.FAIL, text, remedy)


def failures(found: Iterable[Finding]) -> list[Finding]:
    """The findings that are failures."""
    return [finding for finding in found if finding.level is Level.FAIL]
