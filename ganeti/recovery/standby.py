"""When a master candidate tries to take the place of a silent master. Pure.

The master says with its calls after how much silence its place may be taken. A candidate that tries
asks the others first (:mod:`ganeti.config.vote`), so one that alone was cut off changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

#: Seconds over which the first attempts of the candidates are spread.
SPREAD = 3.0
#: Longest pause in seconds between two attempts.
LONGEST_PAUSE = 60.0
#: Seconds until the first attempt of a node daemon that has heard no master since its start: the
#: whole cluster may be booting. Without the master's word it tries that rarely, too.
BOOT_PATIENCE = 120.0
RARE_PAUSE = 600.0


def plan_first_attempt(limit: int | None, chance: float) -> float | None:
    """Seconds after the last sign of the master until the first attempt; None for never. Pure.

    ``limit`` is what the master said, None when no master has spoken since the start of the node
    daemon. ``chance`` from 0 to 1 keeps candidates from trying at the same moment.
    """
    if limit == 0:
        return None
    return (BOOT_PATIENCE if limit is None else limit) + SPREAD * chance


def plan_next_attempt(limit: int | None, attempts: int, chance: float) -> float:
    """Seconds from a failed attempt to the next one; ``attempts`` were made. Pure."""
    if limit is None:
        return RARE_PAUSE * (0.5 + chance)
    return min(SPREAD * 2.0 ** (attempts - 1), LONGEST_PAUSE) * (0.5 + chance)


def is_standby(name: str, masters: Collection[str], *, serves: bool) -> bool:
    """Whether a node with a copy of the state could be the master and is not. Pure.

    ``masters`` are those of which the node knows: by the ssconf files and by the newest claim,
    empty for none. The node of the last master could, too, when another one has claimed a term and
    then failed, and so could one whose own claim did not make it the master: the newest data is
    there. ``serves``: a master daemon runs here, or an administrator has stopped it.
    """
    return not serves or set(masters) - {""} != {name}


class Candidate:
    """Silence as one candidate sees it. Not thread-safe."""

    def __init__(self, now: float, chance: Callable[[], float]) -> None:
        self._chance = chance
        self.limit: int | None = None
        self.heard = now
        self._attempts = 0
        #: when to try next; None for never
        self.tries_at: float | None = None
        self._plan()

    def hear(self, now: float, limit: int | None = None) -> None:
        """The master called. ``limit`` is the silence that it allows; None: as before."""
        self.heard = now
        self._attempts = 0
        if limit is not None:
            self.limit = limit
        self._plan()

    def is_due(self, now: float) -> bool:
        """Whether to try now."""
        return self.tries_at is not None and now >= self.tries_at

    def end_attempt(self, now: float, *, counts: bool = True) -> None:
        """An attempt was made; it changed nothing if the master is still silent.

        One that does not count was prevented by a master daemon on this node, which may just start.
        It can fail soon, so the next attempt is not as late as after one of many that failed.
        """
        if counts:
            self._attempts += 1
            pause = plan_next_attempt(self.limit, self._attempts, self._chance())
        else:
            pause = LONGEST_PAUSE * (0.5 + self._chance())
        if self.is_due(now):
            self.tries_at = now + pause

    def _plan(self) -> None:
        first = plan_first_attempt(self.limit, self._chance())
        self.tries_at = None if first is None else self.heard + first
