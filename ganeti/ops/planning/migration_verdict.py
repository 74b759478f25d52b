"""Decides where an instance runs after an interrupted migration, from the reports of both nodes.

At most one copy of the guest may run. A migration keeps that by the order of its steps:

- The master commits the target (its run right becomes ``here``) before the copy there may run.
  From then on the source never runs the guest again.
- To end a migration before that, the master first makes the target give up. Only then the source
  may go on.

So the reports of both nodes leave one answer, or none while a node does not answer. Pure.
"""

from __future__ import annotations

from enum import Enum


class Target(Enum):
    """State of the copy on the target node."""

    #: it gave up, and can never run the guest
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
    """State of the guest on the source node."""

    RUNS = "runs"
    #: it runs, and its hypervisor reports that the migration has failed and will not go on
    KEPT = "kept"
    #: it does not run there
    ABSENT = "absent"
    UNKNOWN = "unknown"
    OFFLINE = "offline"


class Verdict(Enum):
    """Node to which the instance belongs from now on."""

    SOURCE = "runs on the source"
    TARGET = "runs on the target"
    #: the guest has ended; the source ran it last and starts it again
    ENDED_SOURCE = "ended, belongs to the source"
    #: the guest has ended; the target ran it last and starts it again
    ENDED_TARGET = "ended, belongs to the target"
    UNDECIDED = "a node has to answer first"
    TWICE = "runs on both"


def verdict(target: Target, source: Source) -> Verdict:
    """The verdict for these two states; never for one node while a copy may run on the other."""
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
