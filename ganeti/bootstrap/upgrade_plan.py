"""The steps that bring all of a cluster to one version. Pure.

The plan follows from what is found, not from what an earlier run has noted. So a run that was
killed is resumed by making the plan again: steps that were done are not in it.

A node may be newer than the master by one version, and so nodes go first on the way up and last on
the way down. Then all that a master asks is what its nodes know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from ganeti.base import releases
from ganeti.base.releases import Version
from ganeti.base.text import plural
from ganeti.rpc.objects import VersionState


@dataclass(frozen=True)
class Facts:
    """The state of the nodes and of the files of the master."""

    cluster: str
    master: str
    #: version of config.data
    config: Version
    #: link of the master node
    active: Version
    master_runs: bool
    #: node that answers -> its versions
    nodes: Mapping[str, VersionState]
    #: node that does not answer -> why
    silent: Mapping[str, str] = field(default_factory=dict)
    #: nodes that are marked offline
    offline: tuple[str, ...] = ()


class Kind(Enum):
    """The kind of a step."""

    HOLD = "hold"
    NODE = "node"
    MASTER = "master"
    RELEASE = "release"


@dataclass(frozen=True)
class Step:
    """One step, and its line in the plan."""

    kind: Kind
    text: str
    node: str = ""


def list_refusals(facts: Facts, target: Version) -> list[str]:
    """Why nothing can be begun, a sentence each; empty if it can."""
    return list(_find_refusals(facts, target))


def _find_refusals(facts: Facts, target: Version) -> Iterator[str]:
    for name, reason in sorted(facts.silent.items()):
        yield (
            f"{name} does not answer ({reason}): repair it, or mark it as offline with"
            f" 'gnt-node modify --offline yes {name}'; then it follows when it returns"
        )
    for name, state in sorted(facts.nodes.items()):
        if not releases.parse(state.running).is_beside(target):
            yield f"{name} runs version {state.running}, which is not next to {target}"
        elif not state.active:
            yield f"{name} cannot have several versions: it has no link /etc/ganeti/lib"
        elif str(target) not in state.installed:
            yield (
                f"version {target} is not installed on {name} (there is"
                f" {', '.join(state.installed)}): install the package ganeti-{target}"
            )


def make_steps(facts: Facts, target: Version) -> list[Step]:
    """The steps that are left, in their order; none when all is of the target version."""
    others = [
        Step(Kind.NODE, f"{name}: use {target}, start its daemons again", name)
        for name, state in sorted(facts.nodes.items())
        if name != facts.master and {state.running, state.active} != {str(target)}
    ]
    here = facts.nodes.get(facts.master)
    done = facts.config == facts.active == target and facts.master_runs
    if here is not None:
        done = done and here.running == str(target)
    master = [] if done else [Step(Kind.MASTER, _describe_master(facts, target), facts.master)]
    if not (others or master):
        return []
    up = target > min(facts.config, facts.active)
    work = [*others, *master] if up else [*master, *others]
    return [
        Step(Kind.HOLD, "hold jobs: new ones are accepted and wait; wait for those that run"),
        *work,
        Step(Kind.RELEASE, "let jobs run again"),
    ]


def _describe_master(facts: Facts, target: Version) -> str:
    convert = ""
    if facts.config != target:
        convert = f", keep a copy of config.data, bring it from {facts.config} to {target}"
    return (
        f"{facts.master} (master): stop the master daemon{convert}, use {target}, start all"
        " daemons again"
    )


def describe(facts: Facts, steps: list[Step], target: Version) -> list[str]:
    """The plan for people."""
    way = f"from version {facts.active}"
    if facts.active == target:
        way = "the rest of the way"
    lines = [f"Cluster {facts.cluster}, {way} to {target}:"]
    lines += [f"  {number}. {step.text}" for number, step in enumerate(steps, 1)]
    return lines


def describe_left(facts: Facts, target: Version) -> list[str]:
    """Nodes that are not reached now, and when they follow."""
    if not facts.offline:
        return []
    return [
        f"{plural(len(facts.offline), 'node')} offline ({', '.join(facts.offline)}): each follows"
        f" to {target} when it is back, see 'gnt-cluster verify'"
    ]
