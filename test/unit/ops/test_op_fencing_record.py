"""What a node remembers of its death."""

from __future__ import annotations

import pytest
from op_samples import node

from ganeti.model import base
from ganeti.model.recovery import Fencing
from ganeti.ops.planning.fencing_record import update

OLD = Fencing(time=5.0, proof="switch", job=3)
NEW = Fencing(time=9.0, proof="watchdog", job=7)
OVER = base.replace(OLD, over=6.0)


@pytest.mark.parametrize(
    ("was_offline", "before", "proof", "offline", "after"),
    [
        (False, None, "watchdog", True, NEW),
        (False, OVER, "watchdog", True, NEW),
        (False, OLD, "watchdog", True, NEW),
        # the first proof of a death stays
        (True, OLD, "watchdog", True, OLD),
        # it was offline, but alive for all that is known
        (True, OVER, "watchdog", True, NEW),
        (True, None, "watchdog", True, NEW),
        # it came back
        (True, OLD, None, False, base.replace(OLD, over=9.0)),
        (True, OLD, "watchdog", False, base.replace(OLD, over=9.0)),
        (True, OVER, None, False, OVER),
        (True, None, None, False, None),
        # nothing new
        (True, OLD, None, True, OLD),
        (False, None, None, True, None),
        # offline without a proof: it may be alive
        (False, OLD, None, True, base.replace(OLD, over=9.0)),
    ],
)
def test_the_record_after_a_change_of_role(
    was_offline: bool,
    before: Fencing | None,
    proof: str | None,
    offline: bool,
    after: Fencing | None,
) -> None:
    found = update(node(2, offline=was_offline, fenced=before), proof, 9.0, 7, offline=offline)
    assert found == after
