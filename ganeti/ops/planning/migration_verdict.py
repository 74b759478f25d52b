"""Where an instance is after a migration that did not end, from what both nodes say. Pure.

The order of a migration makes the answer unique. The target is committed (its right becomes
``here``) before its copy may run, and then the source never runs it again; before that moment
the target is told to give up first, and only then the source goes on.
"""

from __future__ import annotations

from enum import Enum


class Target(Enum):
    """What became of the copy on the target."""

    #: it can never run the guest
    GAVE_UP = "gave up"
    #: the guest runs there
    RUNS = "runs"
    #: it was committed, but the guest has ended there since
    LOST = "lost"
    #: it does not answer
    UNKNOWN = "unknown"
    #: the administrator has marked the node offline
    OFFLINE = "offline"


class Source(Enum):
    """What became of the guest on the source."""

    RUNS = "runs"
    #: it runs, and its hypervisor says that the move has failed for good
    KEPT = "kept"
    ABSENT = "absent"
    UNKNOWN = "unknown"
    OFFLINE = "offline"


class Verdict(Enum):
    """Where the instance belongs from now on."""

    SOURCE = "runs on the source"
    TARGET = "runs on the target"
    #: it has ended; it is to be started on the source, which had it last
    ENDED_SOURCE = "ended, belongs to the source"
    ENDED_TARGET = "ended, belongs to the target"
    UNDECIDED = "a node has to answer first"
    TWICE = "runs on both"


def verdict(target: Target, source: Source) -> Verdict:
    """The verdict; total, and never in favour of a node while another copy may run."""
    match target:
        case Target.RUNS:
            runs = source in (Source.RUNS, Source.KEPT)
            return Verdict.TWICE if runs else Verdict.TARGET
        case Target.LOST:
            if source is Source.UNKNOWN:
                return Verdict.UNDECIDED
            runs = source in (Source.RUNS, Source.KEPT)
            return Verdict.SOURCE if runs else Verdict.ENDED_TARGET
        case Target.UNKNOWN:
            return Verdict.SOURCE if source is Source.KEPT else Verdict.UNDECIDED
        case Target.GAVE_UP | Target.OFFLINE:
            match source:
                case Source.RUNS | Source.KEPT:
                    return Verdict.SOURCE
                case Source.ABSENT | Source.OFFLINE:
                    return Verdict.ENDED_SOURCE
                case Source.UNKNOWN:
                    return Verdict.UNDECIDED
