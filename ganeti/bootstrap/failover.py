"""Make this node the master.

Steps: vote (nobody may have newer data), stop the old master if it can be reached, claim a new term
(from then on nodes refuse calls of the old master), record the new master, start its daemon. Each
step can be repeated: after a failure the command is simply run again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ganeti import constants, errors, paths
from ganeti.base import daemon, services
from ganeti.bootstrap.settings import FailoverSettings
from ganeti.config import candidates, role_stores, vote
from ganeti.config.changes import Author, Draft
from ganeti.config.role import PATIENCE as STORE_PATIENCE
from ganeti.config.role import Role
from ganeti.config.store import Store, read_config
from ganeti.config.vote import Answers
from ganeti.jobs.files import JobFiles
from ganeti.model.config import Config
from ganeti.model.enums import MasterVote
from ganeti.model.ids import NodeUuid
from ganeti.model.node import Node
from ganeti.net.tls.contexts import Identity
from ganeti.ops.hooks import FAILED, global_env
from ganeti.ops.steps.nodes import master_ip
from ganeti.paths import Paths
from ganeti.recovery import bounds
from ganeti.recovery import role as rules
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import NodeRpc

Say = Callable[[str], None]

#: Seconds to wait for enough nodes to answer.
PATIENCE = 5.0
#: Seconds until the daemon of a silent master is killed: it is frozen, or hangs. Its lease is
#: over, and those of the nodes end while they wait for the next master.
SILENT_STOP_WAIT = 5.0
#: Path of the hooks around a failover; they run on the new master.
HOOKS = "master-failover"


@dataclass
class Failover:
    """One failover to this node. ``say`` gets a line for each step."""

    say: Say
    how: FailoverSettings = field(default_factory=FailoverSettings)
    where: Paths = field(default_factory=paths.current)

    def __post_init__(self) -> None:
        self.config: Config = read_config(self.where)
        name = paths.hostname()
        found = self._find_node(name)
        if found is None:
            raise errors.make_unknown_error(
                f"this node is called {name}, which is not a node of the cluster",
            )
        self.node: Node = found
        self.old: Node = self.config.master
        self.rpc = NodeRpc(Identity(self.where.client_cert, self.where.ca_cert).client_context())
        store = role_stores.open_store(self.config, self.where)
        self.role: Role | None = None if store is None else Role(store, name)

    def _find_node(self, name: str) -> Node | None:
        return next((node for node in self.config.nodes.values() if node.name == name), None)

    def run(self, *, dry_run: bool) -> None:
        """Do it, or only print what would be done; blocks up to some minutes.

        Raises:
            OpPrereqError: this node cannot be the master.
            NoMasterError: the vote failed; the text says why.
            OpExecError: the daemon did not start.
        """
        try:
            self._check()
            if not self.how.no_voting:
                answers: Answers = vote.ask(self.config, self.rpc)
                if self.how.if_silent:
                    self._check_silence(answers)
                self._take_newer_copy(answers, dry_run=dry_run)
            answers = self._vote()
            if self.how.if_silent:
                self._check_silence(answers)
            self.old = vote.find_old_master(self.config, answers, self.node)
            if self.old.uuid == self.node.uuid:
                self._finish(answers, dry_run=dry_run)
                return
            for line in self._plan(answers):
                self.say(line)
            if dry_run:
                self.say("Dry run: nothing was changed")
                return
            if self._is_automatic:
                self._leave_out(answers, answers)  # before anything is stopped
            self._hooks("pre")
            stopped = self._stop_old(answers)
            if self._is_automatic:
                now = self.rpc.call_many([self.old], NodeCalls.master_view) if stopped else {}
                answers = self._leave_out(answers, {**answers, **now}, stopped=stopped)
            self._claim(answers)
            self._record()
            self._start()
            self.say(f"{self.node.name} is the master now")
            self.rpc.epoch = 0  # the daemon has a term of its own by now
            self._hooks("post")
        finally:
            self.rpc.stop()
            if self.role is not None:
                self.role.store.close()

    @property
    def _is_chosen(self) -> bool:
        """Whether Pacemaker has chosen this node, as :meth:`_check` found."""
        by_pacemaker = self.config.cluster.master_vote is MasterVote.PACEMAKER
        return by_pacemaker and not self.how.no_voting

    @property
    def _is_automatic(self) -> bool:
        """Whether no administrator decides; then changes that only the old master has may go."""
        return self.how.if_silent or self._is_chosen

    def _check(self) -> None:
        if self._is_chosen and self.role is not None and (why := self.role.read().refusal):
            raise errors.NoMasterError(why)
        if not self.node.master_candidate:
            names = sorted(node.name for node in self.config.candidates())
            raise errors.make_state_error(
                f"{self.node.name} is not a master candidate and has no current configuration; run"
                f" this on one of {', '.join(names)}",
            )

        if candidates.is_witness(self.config, self.node):
            problem = f"{self.node.name} is a witness, which does not become the master by itself"
            if self._is_automatic:
                raise errors.make_state_error(problem)
            self.say(problem)

    def _take_newer_copy(self, answers: Answers, *, dry_run: bool) -> None:
        """Get the copy of a witness if nobody else has a newer one: it does not take over."""
        witness = vote.find_witness_ahead(self.config, self._read_own_state(), answers)
        if witness is None:
            return
        self.say(
            f"The newest state is on the witness {witness.name}: this node takes it from there"
        )
        if dry_run:
            return
        update = self.rpc.call_one(witness, NodeCalls.replica_read)
        self.rpc.call_one(self.node, NodeCalls.replica_adopt, update)
        self.config = read_config(self.where)

    def _check_silence(self, answers: Answers) -> None:
        """Refuse while a node has an answer of the master.

        Checked before the vote, as this is a better reason than the age of data; and with the
        answers of the vote, as a master may have won one in between.
        """
        limit = self.config.cluster.auto_failover_after
        if limit is None:
            raise errors.make_state_error(
                "automatic failover of the master is off; see"
                " gnt-cluster modify --auto-failover-after",
            )
        problem = vote.find_obstacle(self.config, answers, limit, self.node, self.role)
        if problem is not None:
            raise errors.NoMasterError(f"the master is not silent: {problem}")

    def _finish(self, answers: Answers, *, dry_run: bool) -> None:
        """Start the daemon of a master that has none (an earlier failover may have ended early).

        Its claim may have reached a majority of which some nodes do not answer now, and others have
        never heard of it. They would not let the daemon be the master, so it is made again.
        """
        if daemon.running_pid(self.where.pid_file(constants.MASTERD)) is not None:
            raise errors.make_invalid_error(f"{self.node.name} is the master already")
        self.say(f"{self.node.name} is the master already, but its daemon does not run")
        if dry_run:
            self.say("Dry run: it is not started")
            return
        self._claim(answers)
        self._start()
        self.say(f"{self.node.name} is the master now")

    def _read_own_state(self) -> vote.Own:
        last_job = JobFiles(self.where.queue).last_id()
        return vote.Own.read(self.node, self.config.data.serial_no, last_job, self.where)

    def _read_state_again(self) -> vote.Own:
        """Read the state of this node again; its master may still send changes."""
        self.config = read_config(self.where)
        return self._read_own_state()

    def _vote(self) -> Answers:
        if self.how.no_voting:
            return vote.ask(self.config, self.rpc)
        return vote.run_vote(
            self.config,
            self.rpc,
            self._read_own_state(),
            failover=True,
            patience=PATIENCE,
            retiring=self.config.master.uuid,
            renew=self._read_state_again,
            role=self.role,
        )

    def _plan(self, answers: Answers) -> list[str]:
        count = sum(answer.ok for answer in answers.values())
        old = answers.get(self.old.uuid)
        lines = [
            f"{count} of {len(answers)} nodes answer; none has newer data than this node"
            f" (configuration {self.config.data.serial_no})"
            if not self.how.no_voting
            else f"No vote: {count} of {len(answers)} nodes answer, their data is not compared"
        ]
        if old is not None and old.ok:
            lines.append(f"The old master {self.old.name} answers: its daemon is stopped first")
        else:
            lines.append(
                f"The old master {self.old.name} does not answer: nodes will refuse its calls"
            )
        lines.append(
            f"{self.node.name} becomes the master; queued jobs continue here, running ones"
            " become errors"
        )
        return lines

    def _stop_old(self, answers: Answers) -> bool:
        """Stop the old master and release the address; what cannot be reached is skipped.

        Returns whether its daemon does not run for certain.
        """
        old = answers.get(self.old.uuid)
        if old is None or not old.ok:
            return False
        failure = self._try(
            "stop the old master",
            lambda: self.rpc.call_one(
                self.old,
                NodeCalls.node_stop_master,
                SILENT_STOP_WAIT if self.how.if_silent else None,
            ),
        )
        if not isinstance(failure, errors.RpcError):
            self._try(
                "release the address of the cluster",
                lambda: self.rpc.call_one(
                    self.old,
                    NodeCalls.node_deactivate_master_ip,
                    master_ip.network(self.config),
                    self.config.cluster.use_external_mip_script,
                ),
            )
            # It has sent its last changes before it ended.
            self.config = read_config(self.where)
        return failure is None

    def _try(self, what: str, step: Callable[[], object]) -> errors.GanetiError | None:
        """Do a step that need not work; its error, which is shown."""
        try:
            step()
        except errors.GanetiError as err:
            self.say(f"Could not {what}: {errors.text(err)}")
            return err
        return None

    def _leave_out(self, answers: Answers, now: Answers, *, stopped: bool = True) -> Answers:
        """The answers of the vote without that of the old master where it must not count.

        ``now`` has what that one has written since.
        """
        rest = vote.leave_out_old_master(
            self.config,
            self._read_own_state(),
            now,
            self.old.uuid,
            stopped=stopped,
            vote=self.role is None,
        )
        return {uuid: answer for uuid, answer in answers.items() if uuid in rest}

    def _claim(self, answers: Answers) -> None:
        limit = self.config.cluster.auto_failover_after
        number = vote.claim(
            self.config,
            self.rpc,
            self._read_own_state(),
            answers,
            alone=self.how.no_voting,
            silence=limit if self.how.if_silent and self.role is None else None,
            role=self.role,
            patience=self._find_patience(),
        )
        self.say(f"Term {number} begins; calls of older masters are refused")

    def _find_patience(self) -> float:
        """Seconds to wait for the end of the old master's lease, which may have been cut off."""
        if self.role is None or self._is_automatic or self.how.no_voting:
            return 0.0
        other = rules.find_holder(self.role.store.name, self.role.read(), self.node.name)
        if other is None:
            return 0.0
        seconds = bounds.count_waiting(vote.find_lease(self.config)) + STORE_PATIENCE
        self.say(f"{other}: waiting for the end of its lease, {seconds:.0f} s at most")
        return seconds

    def _record(self) -> None:
        store = Store(self.where)
        me = self.node

        def edit(draft: Draft) -> None:
            draft.update_cluster(master_node=NodeUuid(me.uuid))

        how = "automatic master failover" if self.how.if_silent else "master failover"
        if self._is_chosen:
            how = "master failover by Pacemaker"
        author = Author(user="root", reason=f"{how} from {self.old.name}")
        try:
            if store.current.cluster.master_node != me.uuid:
                store.change("master-failover", author, edit)
        finally:
            store.close()

    def _start(self) -> None:
        options = ["--no-voting", "--yes-do-it"] if self.how.no_voting else []
        for problem in services.start_master(self.where, *options):
            self.say(problem)

    def _hooks(self, phase: str) -> None:
        """Hooks on this node; a failed pre hook ends the failover."""
        env = {
            **global_env(self.config, self.where, HOOKS, phase, "CLUSTER"),
            "GANETI_OP_TARGET": self.config.cluster.cluster_name,
            "GANETI_NEW_MASTER": self.node.name,
        }
        try:
            results = self.rpc.call_one(self.node, NodeCalls.hooks_runner, HOOKS, phase, env)
        except errors.RpcError as err:
            self.say(f"Hooks were not run: {errors.text(err)}")
            return
        failed = [[self.node.name, script, out] for script, code, out in results if code == FAILED]
        if failed and phase == "pre":
            raise errors.HooksAbort(failed)
        for name, script, text in failed:
            self.say(f"Post hook {script} failed on node {name}: {text}")
