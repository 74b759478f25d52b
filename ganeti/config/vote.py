"""Choice of the master: the vote at the start of a master and before a failover.

The rules are those of the first design of Ganeti 2.0 ("Master startup/failover"): half plus one of
the nodes must agree, and nobody may have newer data. Nodes that are marked offline do not count.
Data is on master candidates only, so half plus one of those must have answered too: then at least
one of them has whatever the last master acknowledged.

A vote ends with a claim: a term number higher than any the nodes have seen. From then on they
refuse calls of the last master.

Where a store has the role (:mod:`ganeti.recovery.role`), it decides in place of the nodes who is
the master, and in which term. The rules about data stay: half plus one of the candidates must
answer and take the new term.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ganeti import errors
from ganeti.base import position
from ganeti.base.clock import SYSTEM, Clock
from ganeti.base.position import Position
from ganeti.config import candidates
from ganeti.config.role import Role
from ganeti.model.config import Config
from ganeti.model.enums import MasterVote
from ganeti.model.ids import NodeUuid
from ganeti.model.node import Node
from ganeti.paths import Paths
from ganeti.recovery import role as rules
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import Answer, NodeRpc
from ganeti.rpc.replica import MasterView, ReplicaUpdate

log = logging.getLogger(__name__)

#: Terms by which a master that continues without a majority is ahead of the usual next one: the
#: nodes that were given up may have elected a rival meanwhile, whose calls are refused then.
LEAD = 1000
#: Seconds between two rounds while too few nodes answer.
PAUSE = 1.0

Answers = Mapping[NodeUuid, Answer[MasterView]]


@dataclass(frozen=True)
class Own:
    """State of the node that wants to be the master."""

    node: Node
    config_serial: int
    last_job: int
    position: Position = (0, 0)
    #: the state was made by a master on this node
    made_here: bool = False

    @classmethod
    def read(cls, node: Node, config_serial: int, last_job: int, paths: Paths) -> Own:
        """Add how new the state in the files of this node is."""
        known = position.read(paths)
        return cls(node, config_serial, last_job, known.position, known.made_here)


def majority(count: int) -> int:
    """Half plus one."""
    return count // 2 + 1


def explain_missing_answers(
    config: Config, own: Own, answers: Answers, *, vote: bool = True
) -> str | None:
    """Why too few nodes have answered, None when there are enough. Pure.

    The own node must be among them: its daemon would else take part in what the last master does,
    and even write that master's state over ours. Without ``vote`` the answers count for their data
    only, which master candidates have.
    """
    mine = answers.get(own.node.uuid)
    if len(_voters(config)) > 1 and (mine is None or not mine.ok):
        reason = "no answer" if mine is None or mine.error is None else errors.text(mine.error)
        return f"the node daemon of this node must run and agree ({reason})"
    groups = [("nodes", _voters(config), False)] if vote else []
    for what, nodes, with_copy in (*groups, ("master candidates", _candidates(config), True)):
        silent = [
            node.name
            for node in nodes
            if node.uuid != own.node.uuid
            and not _counts(answers.get(node.uuid), with_copy=with_copy)
            and not (len(nodes) == 2 and _expects_copy(answers.get(node.uuid), own))
        ]
        heard = len(nodes) - len(silent)
        if heard < majority(len(nodes)):
            return (
                f"only {heard} of {len(nodes)} {what} answered, {majority(len(nodes))} are needed"
                f" (no answer from: {', '.join(sorted(silent))})"
            )
    return None


def _counts(answer: Answer[MasterView] | None, *, with_copy: bool) -> bool:
    """Whether a node has answered; one that lost its copy (it was demoted) is not a candidate."""
    if answer is None or answer.value is None:
        return False
    return not with_copy or answer.value.config_serial is not None


def _expects_copy(answer: Answer[MasterView] | None, own: Own) -> bool:
    """Whether the second of two candidates has nothing yet and waits for it from this node.

    The master died while it made that node a candidate. Of two, the master alone has acknowledged
    (see ``master/copy_round.py``), so nobody else can have more than the master that was here.
    """
    if answer is None or answer.value is None or not own.made_here:
        return False
    return answer.value.config_serial is None and answer.value.master == own.node.name


def find_newer_data(
    config: Config, own: Own, answers: Answers, *, retiring: str = ""
) -> str | None:
    """Which node has newer data than we, None when none has. Pure.

    ``retiring`` is the uuid of a master that will be stopped first: what it has now does not count.

    What a later master has written is newer, whatever an older one has counted up to: it may have
    made changes that nobody acknowledged. The number on the node of the last master may be too low
    after a boot. That does not matter where the others are a majority without it: one of them has
    all that was acknowledged. Without positions (state of an older version) serials and job ids
    decide.
    """
    here = _find_own_position(own, answers)
    for node in _candidates(config):
        answer = answers.get(node.uuid)
        if node.uuid in (own.node.uuid, retiring) or answer is None or answer.value is None:
            continue
        view = answer.value
        if view.config_serial is None:
            continue
        if (
            view.may_be_newer
            and view.position[0] == here[0]
            and not own.made_here
            and _is_needed(config, own, answers, node)
        ):
            return (
                f"{node.name} may have newer data: it was the master in term {here[0]}, and its"
                " server was booted since; start the master daemon there"
            )
        if view.position < here:
            continue
        if own.made_here and view.position[0] == here[0] == own.position[0]:
            continue  # it got all it has from here
        if view.position > here:
            return (
                f"{node.name} has newer data (term {view.position[0]}, write {view.position[1]};"
                f" here it is term {here[0]}, write {here[1]}); make that node the master"
            )
        if here != (0, 0):
            continue
        if view.config_serial > own.config_serial:
            return (
                f"{node.name} has a newer configuration (serial {view.config_serial}, here it is"
                f" {own.config_serial}); make that node the master"
            )
        if view.last_job > own.last_job:
            return (
                f"{node.name} knows newer jobs (up to {view.last_job}, here up to"
                f" {own.last_job}); make that node the master"
            )
    return None


def find_witness_ahead(config: Config, own: Own, answers: Answers) -> Node | None:
    """The witness whose copy is newer than that of all other nodes that answer. Pure.

    None where another node has as new a copy, or this one has. A witness does not take over by
    itself, so another candidate gets its copy first.
    """
    found: dict[Position, list[Node]] = {}
    for node in _candidates(config):
        answer = answers.get(node.uuid)
        if node.uuid == own.node.uuid or answer is None or answer.value is None:
            continue
        if answer.value.config_serial is not None:
            found.setdefault(answer.value.position, []).append(node)
    newest = max(found, default=(0, 0))
    if newest <= _find_own_position(own, answers) or (
        own.made_here and newest[0] == own.position[0]
    ):
        return None
    nodes = found[newest]
    return nodes[0] if all(candidates.is_witness(config, node) for node in nodes) else None


def _find_own_position(own: Own, answers: Answers) -> Position:
    """How new the copy of this node is: its master may have sent more since it was read."""
    mine = answers.get(own.node.uuid)
    return max(own.position, (0, 0) if mine is None or mine.value is None else mine.value.position)


def _is_needed(config: Config, own: Own, answers: Answers, node: Node) -> bool:
    """Whether the data of the answers is complete only with that of this node."""
    rest = {uuid: answer for uuid, answer in answers.items() if uuid != node.uuid}
    return explain_missing_answers(config, own, rest, vote=False) is not None


def leave_out_old_master(
    config: Config, own: Own, answers: Answers, old: NodeUuid, *, stopped: bool, vote: bool = True
) -> Answers:
    """Return the answers of the nodes that hear the claim of a node taking over by itself. Pure.

    The node ``old`` is left out if its master daemon may still act, as it must not make the
    majority; and if it has changes that are missing here. Where the others are enough without
    it, nobody has acknowledged those.

    Raises:
        NoMasterError: another one has newer data. The claim would fail, but nodes that have heard
            it accept no other one for a while.
        TooFewVotesError: the others are too few. Nothing was claimed, so the old master may go on.
    """
    what = "the claim of the master role"
    alone = {old: answers[old]} if old in answers else {}
    rest = {uuid: answer for uuid, answer in answers.items() if uuid != old}
    _check(what, find_newer_data(config, own, rest), None)
    newer = find_newer_data(config, own, alone)
    if stopped and newer is None:
        return answers
    missing = explain_missing_answers(config, own, rest, vote=vote)
    if missing is not None and alone and answers[old].ok:
        name = config.nodes[old].name
        missing += f"; {newer or f'{name} does not count, as its master daemon may still run'}"
    _check(what, None, missing)
    return rest


def find_old_master(config: Config, answers: Answers, own: Node) -> Node:
    """Which master ends before the node ``own`` takes its place; ``own`` if it is that one. Pure.

    That is the node that most nodes follow. It differs from that of the configuration when a
    failover did not get to its end.
    """
    views = [answer.value.master for answer in answers.values() if answer.value is not None]
    followed = {name for name, _count in Counter(views).most_common(1)} - {own.name}
    named = (node for node in config.nodes.values() if node.name in followed)
    return next(named, config.master)


def find_obstacle(
    config: Config, answers: Answers, limit: float, own: Node, role: Role | None
) -> str | None:
    """Why the node ``own`` may not take the master's place by itself; None when it may.

    Raises:
        RemoteError: the store does not answer.
    """
    if role is None:
        return find_living_master(config, answers, limit, own=own.uuid)
    stopped = find_stopped_master(config, answers)
    return stopped or rules.find_obstacle(role.store.name, role.read(), own.name)


def find_living_master(
    config: Config, answers: Answers, limit: float, *, own: str = ""
) -> str | None:
    """Why nobody may take the master's place by himself; None when it is silent. Pure.

    Silent means that no candidate that answers has heard from it for ``limit`` seconds. A master
    that was stopped on purpose, on a node that answers, keeps its place. ``own`` is the uuid of the
    node that asks: who knows of a later term than it has heard another master since.
    """
    problem = find_later_term(config, answers, limit, own) or find_stopped_master(config, answers)
    if problem is not None:
        return problem
    for node in _candidates(config):
        answer = answers.get(node.uuid)
        if answer is None or answer.value is None or node.uuid == config.cluster.master_node:
            continue
        view = answer.value
        if view.silence is not None and view.silence < limit:
            return (
                f"{node.name} heard from the master {int(view.silence)} s ago; it must be silent"
                f" for {limit:.0f} s"
            )
    return None


def find_stopped_master(config: Config, answers: Answers) -> str | None:
    """Why the master keeps its place although its daemon does not run. Pure."""
    answer = answers.get(config.cluster.master_node)
    if answer is None or answer.value is None or not answer.value.stopped:
        return None
    name = config.nodes[config.cluster.master_node].name
    return (
        f"the master daemon of {name} was stopped by an administrator, and the node answers;"
        " start it there, or run gnt-cluster master-failover here"
    )


def find_acting_master(config: Config, answers: Answers, own: Node) -> str | None:
    """Which other node has a master daemon that Pacemaker has not stopped. Pure.

    Pacemaker stops one before it starts another, so it was told to ignore something.
    """
    if config.cluster.master_vote is not MasterVote.PACEMAKER:
        return None
    for answer in answers.values():
        if answer.node.uuid != own.uuid and answer.value is not None and answer.value.acts:
            return f"the master daemon of {answer.node.name} still runs, and Pacemaker lets it"
    return None


def find_later_term(config: Config, answers: Answers, limit: float, own: str) -> str | None:
    """Say which node follows a later master than ``own`` knows of, if any, and since when. Pure.

    That master may have won its vote, and acts for up to ``limit`` seconds without being heard.
    """
    mine = answers.get(NodeUuid(own))
    if mine is None or mine.value is None:
        return None
    for node in _voters(config):
        answer = answers.get(node.uuid)
        view = None if answer is None else answer.value
        if view is None or view.epoch <= mine.value.epoch or view.silence is None:
            continue
        if view.silence < limit:
            return f"{node.name} began to follow {view.master} {int(view.silence)} s ago"
    return None


def find_other_master(config: Config, own: Own, answers: Answers) -> str | None:
    """Why we are not the master of a majority, None when we are. Pure."""
    mine = answers.get(own.node.uuid)
    # This node may have heard the claim of another one, too.
    votes: dict[str, int] = {} if mine is not None and mine.ok else {own.node.name: 1}
    for answer in answers.values():
        if answer.value is not None:
            votes[answer.value.master] = votes.get(answer.value.master, 0) + 1
    needed = majority(len(_voters(config)))
    if votes.pop(own.node.name, 0) >= needed:
        return None
    others = ", ".join(
        f"{count} say that it is {name or 'nobody'}" for name, count in sorted(votes.items())
    )
    return f"a majority of the nodes does not take this node for the master ({others})"


def _voters(config: Config) -> list[Node]:
    return [node for node in config.nodes.values() if not node.offline]


def _candidates(config: Config) -> list[Node]:
    return [node for node in _voters(config) if node.master_candidate]


def ask(config: Config, rpc: NodeRpc) -> dict[NodeUuid, Answer[MasterView]]:
    """The views of all nodes that are not offline; blocks until they answered or failed."""
    return rpc.call_many(_voters(config), NodeCalls.master_view)


def run_vote(
    config: Config,
    rpc: NodeRpc,
    own: Own,
    *,
    failover: bool,
    patience: float,
    retiring: str = "",
    renew: Callable[[], Own] | None = None,
    role: Role | None = None,
    clock: Clock = SYSTEM,
    wait: Callable[[float], object] = SYSTEM.sleep,
) -> dict[NodeUuid, Answer[MasterView]]:
    """Vote; returns the answers when this node may be the master.

    With ``failover`` nobody needs to take this node for the master yet. While too few nodes
    answer they are asked again for ``patience`` seconds (the whole cluster may be booting).
    ``retiring`` is a master that will be stopped before the claim (see :func:`find_newer_data`).
    ``renew`` tells again what this node has, where a master still sends changes to it: after the
    others have answered, and again while they have more. ``role``: a store decides, not the nodes.

    Raises:
        NoMasterError: another node is the master, or has newer data.
        TooFewVotesError: too few answered.
    """
    end = clock.monotonic() + patience
    while True:
        answers = ask(config, rpc)
        own = own if renew is None else renew()
        missing = explain_missing_answers(config, own, answers, vote=role is None)
        late = (
            renew is not None
            and find_newer_data(config, own, answers, retiring=retiring) is not None
        )
        if (missing is None and not late) or clock.monotonic() + PAUSE > end:
            break
        wait(PAUSE)  # nodes do not tell when they have come up; bounded by the patience
    problem = find_acting_master(config, answers, own.node)
    if missing is None and not failover and role is not None:
        found, missing = _ask_store(role, own.node.name)
        problem = problem or found
    elif missing is None and not failover:
        problem = find_other_master(config, own, answers)
        limit = config.cluster.auto_failover_after or 0
        missing = find_later_term(config, answers, limit, own.node.uuid)
    elif missing is not None and not failover:
        missing += _advise(own, answers)
    problem = problem or find_newer_data(config, own, answers, retiring=retiring)
    _check("the vote on the master", problem, missing)
    return answers


def _ask_store(role: Role, name: str) -> tuple[str | None, str | None]:
    """Why the node does not continue as the master, and why that is not known."""
    try:
        return rules.find_successor(role.store.name, role.read(), name), None
    except errors.RemoteError as err:
        return None, errors.text(err)


def _advise(own: Own, answers: Answers) -> str:
    """Return what to do when too few nodes answer.

    Empty when the daemon of this node does not answer: the error names that already.
    """
    mine = answers.get(own.node.uuid)
    if mine is None or not mine.ok:
        return ""
    if any(isinstance(answer.error, errors.RefusedCallError) for answer in answers.values()):
        return (
            "; nodes answer, but refuse this one, as it is not a master candidate any more:"
            " gnt-cluster getmaster on another node tells who the master is"
        )
    return "; if these nodes are dead, see gnt-cluster recover-quorum"


def claim(
    config: Config,
    rpc: NodeRpc,
    own: Own,
    answers: Answers,
    *,
    alone: bool = False,
    lead: int = 0,
    silence: float | None = None,
    role: Role | None = None,
    patience: float = 0.0,
) -> int:
    """Take the next term; returns its number, which ``rpc`` carries from now on.

    Nodes that did not answer before are not asked: they hear of the term with the next call.
    Once a majority has accepted it, the last master cannot acknowledge anything any more. What it
    acknowledged until then is in the answers, and is compared again. With ``alone`` (the word of
    the administrator) nobody needs to accept it, and what others have does not matter. ``lead`` is
    added to the number (see :data:`LEAD`). With ``silence`` nodes that have heard the last master
    in so many seconds do not accept it: it may have come back since it was found to be silent.
    With ``role`` the store says the number, and ``patience`` is for how many seconds another node
    may still have the role.

    Raises:
        NoMasterError: somebody else was quicker.
        TooFewVotesError: too few nodes accepted.
    """
    seen = [answer.value.epoch for answer in answers.values() if answer.value is not None]
    # Perhaps nobody has answered, not even the daemon of this node.
    number = max([rpc.epoch, own.position[0], *seen]) + 1 + lead
    if role is not None:
        number = _take(config, role, number, force=alone, patience=patience)
    accepted = _send_claim(
        config, rpc, number, own.node.name, answers, compare=not alone, silence=silence
    )
    rpc.epoch, rpc.master = number, own.node.name
    if not alone:
        problem = find_newer_data(config, own, accepted)
        missing = explain_missing_answers(config, own, accepted, vote=role is None)
        _check("the claim of the master role", problem, missing)
    if own.node.uuid in accepted:
        # From now on what is here counts as newer than all that older masters have written.
        limit = config.cluster.auto_failover_after or 0
        update = ReplicaUpdate(epoch=number, failover_after=limit)
        rpc.call_one(own.node, NodeCalls.replica_update, update)
    return number


def find_lease(config: Config) -> int:
    """Seconds for which a store gives the role."""
    return config.cluster.auto_failover_after or rules.SECONDS


def _take(config: Config, role: Role, lowest: int, *, force: bool, patience: float) -> int:
    """The number that the store gives; see :func:`claim` for errors."""
    try:
        return role.take(lowest, find_lease(config), force=force, patience=patience)
    except errors.NoMasterError as err:
        text = f"the claim of the master role failed: {errors.text(err)}"
        raise errors.NoMasterError(text) from err
    except errors.RemoteError as err:
        if force:
            log.warning("the administrator decides alone: %s", errors.text(err))
            return lowest
        text = f"the claim of the master role failed: {errors.text(err)}"
        raise errors.TooFewVotesError(text) from err


def _send_claim(
    config: Config,
    rpc: NodeRpc,
    number: int,
    name: str,
    answers: Answers,
    *,
    compare: bool,
    silence: float | None,
) -> dict[NodeUuid, Answer[MasterView]]:
    """Claim a term at the nodes that answered; ``compare``: if they have heard of no other since.

    The calls carry no number of a term, as that alone would be heard as one.
    """
    views = {uuid: answer.value for uuid, answer in answers.items() if answer.value is not None}
    # Only where it is needed: nodes of earlier versions do not know it.
    more = () if silence is None else (silence,)
    claims: dict[NodeUuid, tuple[Node, tuple[object, ...]]] = {
        node.uuid: (node, (number, name, views[node.uuid].epoch if compare else None, *more))
        for node in _voters(config)
        if node.uuid in views
    }
    plain = rpc.limit_time(float("inf"))
    plain.epoch = 0
    return plain.call_each(NodeCalls.master_claim, claims)


def _check(what: str, problem: str | None, missing: str | None) -> None:
    """Raise the error for a problem that stays, else for one that ends when more nodes answer."""
    if problem is not None:
        raise errors.NoMasterError(f"{what} failed: {problem}")
    if missing is not None:
        raise errors.TooFewVotesError(f"{what} failed: {missing}")
