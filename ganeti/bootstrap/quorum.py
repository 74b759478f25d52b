"""Go on without master candidates that are dead, when they were a majority.

Runs on the master node. The dead nodes are marked offline and are not candidates any more, so those
that are left decide alone. Nobody can prove from here that they are dead: cut off, they can elect a
master of their own. So the administrator must say it, none of them may answer, and the new term is
far ahead of all others: a rival is refused, and stops, as soon as one side reaches the other (see
``master/demotion.py``).
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from ganeti import constants, errors, paths
from ganeti.base import services
from ganeti.base.text import join_names
from ganeti.config import role_stores, vote
from ganeti.config.changes import Author, Draft
from ganeti.config.role import Role
from ganeti.config.store import Store, read_config
from ganeti.jobs.files import JobFiles
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.ids import NodeUuid
from ganeti.model.node import Node
from ganeti.net import resolve
from ganeti.net.tls.contexts import Identity
from ganeti.ops.steps.nodes import candidates
from ganeti.paths import Paths
from ganeti.recovery import role as rules
from ganeti.rpc.client import Answer, NodeRpc
from ganeti.rpc.replica import MasterView

Say = Callable[[str], None]

#: Seconds in which a node that lives takes a connection.
KNOCK = 3.0


@dataclass
class Recovery:
    """Recovery of the quorum by giving nodes up. ``say`` gets a line for each step."""

    say: Say
    #: names of the nodes that the administrator calls dead
    names: Sequence[str]
    where: Paths = field(default_factory=paths.current)

    def __post_init__(self) -> None:
        self.config: Config = read_config(self.where)
        self.dead: list[Node] = [self.config.node(name) for name in dict.fromkeys(self.names)]
        self.rpc = NodeRpc(Identity(self.where.client_cert, self.where.ca_cert).client_context())
        store = role_stores.open_store(self.config, self.where)
        self.role = None if store is None else Role(store, self.config.master.name)

    def run(self, *, dry_run: bool, confirm: Callable[[str], bool]) -> bool:
        """Do it, or only print what would be done; False when ``confirm`` returned False.

        Raises:
            OpPrereqError: this is not the master, or the nodes must not be given up.
            NoMasterError: others have newer data or follow another master, or too few are left.
            OpExecError: the master daemon did not start.
        """
        try:
            self._check_names()
            self._check_votes()
            for line in self._plan():
                self.say(line)
            if dry_run:
                self.say("Dry run: nothing was changed")
                return True
            if not confirm(self._danger()):
                return False
            answers = self._check_votes()  # time has passed
            services.stop_master(self.where)
            self.config = read_config(self.where)
            left = self._remove_dead()
            number = vote.claim(
                left,
                self.rpc,
                self._read_own_state(),
                answers,
                lead=vote.LEAD,
                role=self.role,
            )
            self.say(f"Term {number} begins; calls of other masters are refused")
            self._record()
            for problem in services.start_master(self.where):
                self.say(problem)
            self.say(f"The cluster continues without {self._all_names()}")
            return True
        finally:
            self.rpc.stop()
            if self.role is not None:
                self.role.store.close()

    def _all_names(self) -> str:
        return join_names(node.name for node in self.dead)

    def _check_names(self) -> None:
        master, host = self.config.master, paths.hostname()
        if master.name != host:
            raise errors.make_state_error(
                f"this is {host}; run it on the master node {master.name}. If that one is dead,"
                " too: gnt-cluster master-failover --no-voting on a master candidate",
            )
        if any(node.uuid == master.uuid for node in self.dead):
            raise errors.make_invalid_error(f"{master.name} is the master, on which this runs")
        offline = [node.name for node in self.dead if node.offline]
        if offline:
            raise errors.make_state_error(
                f"marked offline already, so without a vote: {join_names(offline)}",
            )

    def _check_votes(self) -> dict[NodeUuid, Answer[MasterView]]:
        """The answers of all nodes, when they allow it; see :meth:`run` for errors."""
        answers = vote.ask(self.config, self.rpc)
        alive = [
            node.name for node in self.dead if answers[node.uuid].ok or _accepts_connections(node)
        ]
        if alive:
            raise errors.make_state_error(
                f"still alive: {join_names(alive)} (the node daemon takes connections); nodes that"
                " answer are not removed. See their node-daemon.log, or stop them",
            )
        own, left = self._read_own_state(), self._remove_dead()
        votes = self.role is None
        if vote.explain_missing_answers(self.config, own, answers, vote=votes) is None:
            raise errors.make_state_error(
                "a majority answers, so nothing needs to be recovered; to mark"
                f" {self._all_names()} as offline, use gnt-node modify --offline=yes",
            )
        problem = (
            vote.find_newer_data(left, own, answers)
            or vote.explain_missing_answers(left, own, answers, vote=votes)
            or self._find_other_master(left, own, answers)
        )
        if problem is not None:
            raise errors.NoMasterError(
                f"the cluster cannot continue without {self._all_names()}: {problem}"
            )
        return answers

    def _find_other_master(self, left: Config, own: vote.Own, answers: vote.Answers) -> str | None:
        """Why this node is not the master in the eyes of who decides that."""
        if self.role is None:
            return vote.find_other_master(left, own, answers)
        return rules.find_successor(self.role.store.name, self.role.read(), own.node.name)

    def _read_own_state(self) -> vote.Own:
        config, last_job = self.config, JobFiles(self.where.queue).last_id()
        return vote.Own.read(config.master, config.data.serial_no, last_job, self.where)

    def _remove_dead(self) -> Config:
        """The configuration as it will be."""
        data = self.config.data
        given_up = {
            node.uuid: base.replace(node, offline=True, master_candidate=False, drained=False)
            for node in self.dead
        }
        return Config(base.replace(data, nodes={**data.nodes, **given_up}))

    def _plan(self) -> list[str]:
        left = [node.name for node in self._remove_dead().nodes.values() if node.master_candidate]
        return [
            f"{self._all_names()} become offline and are not master candidates any more",
            f"Master candidates that are left: {join_names(sorted(left))}",
            "The master daemon is restarted; running jobs become errors, queued jobs continue",
        ]

    def _danger(self) -> str:
        return (
            f"If {self._all_names()} are not dead but only cut off, they can elect a master of"
            " their own; then two clusters change the same instances, and what that other master"
            " did is lost when they meet. Switch these servers off before you go on. Are they dead?"
        )

    def _record(self) -> None:
        dead = {node.uuid for node in self.dead}

        def edit(draft: Draft) -> None:
            for uuid in dead:
                node = draft.config.nodes[uuid]
                draft.update(node, offline=True, master_candidate=False, drained=False)
            candidates.forget(draft, dead)

        author = Author(user="root", reason=f"recover-quorum without {self._all_names()}")
        with closing(Store(self.where)) as store:
            store.change("recover-quorum", author, edit)


def _accepts_connections(node: Node) -> bool:
    """Whether something at the port of the node daemon takes connections."""
    try:
        socket.create_connection((node.primary_ip, resolve.port(constants.NODED)), KNOCK).close()
    except OSError:
        return False
    return True
