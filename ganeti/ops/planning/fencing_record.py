"""Record of the death of a node: from the proof until it comes back. Pure."""

from __future__ import annotations

from ganeti.model import base
from ganeti.model.node import Node
from ganeti.model.recovery import Fencing


def update(node: Node, proof: str | None, now: float, job: int, *, offline: bool) -> Fencing | None:
    """The record after a job changed the node's role; ``offline`` is the new role.

    The first proof of a death stays.

    A node that is set offline without a proof may be alive, whatever was proven before.
    """
    if offline and proof is not None and not node.is_proven_dead:
        return Fencing(time=now, proof=proof, job=job)
    if node.fenced is None or node.fenced.over is not None or (offline and node.offline):
        return node.fenced
    return base.replace(node.fenced, over=now)
