"""Where an instance belongs after a migration that did not end."""

from __future__ import annotations

import itertools

import pytest

from ganeti.ops.planning.migration_verdict import Source, Target, Verdict, verdict

ON_SOURCE = {Verdict.SOURCE, Verdict.ENDED_SOURCE}
ON_TARGET = {Verdict.TARGET, Verdict.ENDED_TARGET}
GONE, RUNNING = {Target.GAVE_UP, Target.OFFLINE}, {Source.RUNS, Source.KEPT}


@pytest.mark.parametrize(("target", "source"), list(itertools.product(Target, Source)))
def test_no_node_gets_it_while_another_copy_may_run(target: Target, source: Source) -> None:
    found = verdict(target, source)
    if found in ON_SOURCE:
        kept = target is Target.UNKNOWN and source is Source.KEPT
        ended = target is Target.LOST and source in RUNNING
        assert target in GONE or kept or ended
    if found in ON_TARGET:
        assert source not in RUNNING
        assert target in (Target.RUNS, Target.LOST), "it was committed there"
    assert (found is Verdict.TWICE) == (target is Target.RUNS and source in RUNNING)


@pytest.mark.parametrize(
    ("target", "source", "found"),
    [
        (Target.RUNS, Source.ABSENT, Verdict.TARGET),
        (Target.RUNS, Source.UNKNOWN, Verdict.TARGET),
        (Target.RUNS, Source.KEPT, Verdict.TWICE),
        (Target.LOST, Source.ABSENT, Verdict.ENDED_TARGET),
        (Target.LOST, Source.OFFLINE, Verdict.ENDED_TARGET),
        (Target.LOST, Source.UNKNOWN, Verdict.UNDECIDED),
        (Target.LOST, Source.RUNS, Verdict.SOURCE),
        (Target.LOST, Source.KEPT, Verdict.SOURCE),
        (Target.UNKNOWN, Source.KEPT, Verdict.SOURCE),
        (Target.UNKNOWN, Source.RUNS, Verdict.UNDECIDED),
        (Target.UNKNOWN, Source.ABSENT, Verdict.UNDECIDED),
        (Target.GAVE_UP, Source.RUNS, Verdict.SOURCE),
        (Target.GAVE_UP, Source.KEPT, Verdict.SOURCE),
        (Target.GAVE_UP, Source.ABSENT, Verdict.ENDED_SOURCE),
        (Target.GAVE_UP, Source.OFFLINE, Verdict.ENDED_SOURCE),
        (Target.GAVE_UP, Source.UNKNOWN, Verdict.UNDECIDED),
        (Target.OFFLINE, Source.RUNS, Verdict.SOURCE),
        (Target.OFFLINE, Source.UNKNOWN, Verdict.UNDECIDED),
    ],
)
def test_the_verdict(target: Target, source: Source, found: Verdict) -> None:
    assert verdict(target, source) is found
