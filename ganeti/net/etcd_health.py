"""The problems of an etcd cluster as one of its clients sees them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from ganeti import constants, errors
from ganeti.base.clock import Deadline
from ganeti.net.etcd import Etcd, Health
from ganeti.net.etcd_settings import read_settings

#: Seconds for an answer.
PATIENCE: Final = 5.0
#: The first version with the paths that are used here.
_OLDEST: Final = (3, 4)
#: With fewer members the loss of one stops etcd.
_FEWEST: Final = 3


def find_flaws(settings: Path, key: str, holder: str) -> list[str]:
    """Return the problems of the members, and of ``key``, whose value must end with ``holder``.

    Blocks for some seconds where members do not answer.
    """
    flaws: list[str] = []
    try:
        with Etcd(read_settings(settings)) as etcd:
            flaws = judge(etcd.examine(PATIENCE))
            value = etcd.read([key], Deadline(PATIENCE))[key].value
    except (errors.ParameterError, errors.X509CertError) as err:
        return [errors.text(err)]
    except errors.RemoteError as err:
        return [*flaws, errors.text(err)]
    found = value.rpartition(" ")[2]
    if found != holder:
        flaws.append(
            f"key {key} says that {found or 'nobody'} is the master, not {holder}: are these the"
            " members that the other master candidates ask?"
        )
    return flaws


def judge(members: Sequence[Health]) -> list[str]:
    """The problems of members. Pure."""
    flaws = [text for health in members for text in _judge_one(health)]
    if len(members) < _FEWEST:
        flaws.append(f"only {len(members)} of at least {_FEWEST} members of etcd are named")
    return flaws


def _judge_one(health: Health) -> Iterable[str]:
    name = f"member {health.member} of etcd"
    if health.problem:
        yield f"{name} does not answer: {health.problem.removeprefix(f'{health.member}: ')}"
        return
    numbers = tuple(int(text) for text in re.findall(r"\d+", health.version)[:2])
    if numbers < _OLDEST:
        yield f"{name} has version {health.version or 'unknown'}; 3.4 or a later one is needed"
    if not health.has_leader:
        yield f"{name} knows no leader"
    for alarm in health.alarms:
        yield f"{name} raises an alarm: {alarm}"
    ahead = health.clock_ahead
    if ahead is not None and abs(ahead) > constants.MAX_CLOCK_SKEW:
        yield f"the clock of {name} is {abs(ahead):.0f} s {'ahead' if ahead > 0 else 'behind'}"
