"""How well a cluster or a group is: what would go wrong, counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ganeti.base.text import join_names
from ganeti.placement import survival
from ganeti.placement.layout import Layout
from ganeti.placement.score import score
from ganeti.placement.use import NOWHERE, Bools


@dataclass(frozen=True, slots=True)
class Health:
    """Counts of problems; all zero is well."""

    #: online nodes without the memory to start what they are the secondary of
    nodes_failing: int
    #: nodes that run instances which have to stay apart
    nodes_conflicting: int
    #: instances whose primary node is offline
    primaries_offline: int
    #: instances whose secondary node is offline
    secondaries_offline: int
    #: nodes whose instances have nowhere to go when it fails; None: nobody asked
    nodes_stuck: int | None
    score: float

    @property
    def counts(self) -> tuple[int, ...]:
        known = (
            self.nodes_failing,
            self.nodes_conflicting,
            self.primaries_offline,
            self.secondaries_offline,
        )
        return known if self.nodes_stuck is None else (*known, self.nodes_stuck)


def examine(layout: Layout, *, stuck: bool = True) -> Health:
    """Count what is wrong with a layout; ``stuck``: also nodes whose instances fit nowhere else."""
    board = layout.board
    online = board.online
    shares: Bools = layout.apart_count > 1
    known = layout.secondary != NOWHERE
    return Health(
        nodes_failing=int((layout.fails & online).sum()),
        nodes_conflicting=int(shares[:, online].any(axis=0).sum()),
        primaries_offline=int((~online[layout.primary] & board.uses.real).sum()),
        secondaries_offline=int((known & ~online[layout.secondary] & board.uses.real).sum()),
        nodes_stuck=len(survival.list_failing(layout)) if stuck else None,
        score=score(layout),
    )


def findings(layout: Layout) -> list[str]:
    """The problems, with the names that the counts are about."""
    board = layout.board
    found: list[str] = []
    for i, node in enumerate(board.nodes):
        if not board.online[i]:
            here = _names(layout, (layout.primary == i) & board.uses.real)
            if here:
                found.append(f"{node.name} is offline, drained or does not answer, and has {here}")
            mirrors = _names(layout, (layout.secondary == i) & board.uses.real)
            if mirrors:
                found.append(f"{node.name} cannot take over {mirrors}")
        elif layout.fails[i]:
            short = int(layout.reserved[i] - layout.memory_left[i])
            peer = board.nodes[int(layout.peers[i].argmax())].name
            found.append(f"{node.name} needs another {short} MiB of memory to take over {peer}")
    for i in survival.list_failing(layout):
        found.append(f"when {board.nodes[i].name} fails, not all of it can start elsewhere")
    for t, tag in enumerate(board.exclusion_tags):
        for i in np.flatnonzero((layout.apart_count[t] > 1) & board.online).tolist():
            count = int(layout.apart_count[t, i])
            found.append(f"{board.nodes[i].name} runs {count} instances with exclusion tag {tag}")
    return found


def _names(layout: Layout, which: Bools) -> str:
    items = layout.board.instances
    return join_names(items[i].name for i in np.flatnonzero(which).tolist())
