"""Findings before a takeover, and whether they prevent it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The meaning of a finding."""

    #: keeps the takeover from beginning
    STOPS = "stop"
    #: somebody should know it before
    WARNS = "warning"
    #: becomes another
    CHANGES = "change"
    #: continues as it is
    KEEPS = "keep"


@dataclass(frozen=True, slots=True)
class Finding:
    kind: Kind
    #: ``instance web1``, ``cluster``, ...
    subject: str
    text: str
    #: what to do about it
    remedy: str = ""

    def __str__(self) -> str:
        remedy = f". {self.remedy}" if self.remedy else ""
        return f"{self.kind:7} {self.subject}: {self.text}{remedy}"
