"""``gnt-cluster upgrade``: all nodes of a running cluster go to another version, one by one.

Runs on the master node, as the newer of the two versions in both directions: that one knows both.
``upgrade_plan`` decides, and this does it. A file on the master says that something is going on;
what is left to do is seen from the nodes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ganeti import constants, errors, paths
from ganeti.base import files, releases, remote_shell, retry, services, upgrade_intent
from ganeti.base.clock import SYSTEM, Deadline, nanoseconds
from ganeti.base.releases import Version
from ganeti.base.text import join_names
from ganeti.base.upgrade_intent import Intent
from ganeti.bootstrap import convert_config, switch_version, upgrade_plan
from ganeti.bootstrap.upgrade_plan import Facts, Kind, Step
from ganeti.luxi import absence
from ganeti.luxi.client import Client
from ganeti.model import ssconf_keys
from ganeti.model.ids import GroupUuid, NodeUuid
from ganeti.model.job_status import JOBS_FINALIZED, JobStatus
from ganeti.model.node import Node
from ganeti.net.tls.contexts import Identity
from ganeti.paths import Paths
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import NodeRpc
from ganeti.rpc.objects import VersionState

Say = Callable[[str], None]

#: The filter rule that holds jobs. Always the same, so that a later run finds it.
RULE = "a5a1f0de-6e8b-5f0e-9c5e-0c1d7f9b3e21"
_EVERY_JOB = [["jobid", [">", "id", 0]]]
#: Seconds that jobs get to end, a node gets to go over, and its node daemon to answer.
JOB_PATIENCE = 600.0
NODE_PATIENCE = 180.0
ANSWER = 10.0
#: Seconds to start a node daemon through the remote shell.
_START = 60.0


@dataclass
class Upgrade:
    """One run. ``say`` gets a line for each step."""

    say: Say
    target: Version
    where: Paths = field(default_factory=paths.current)

    def __post_init__(self) -> None:
        self._rpc = NodeRpc(Identity(self.where.client_cert, self.where.ca_cert).client_context())
        self._rpc = self._rpc.limit_time(ANSWER)
        addresses = dict(line.split() for line in _lines(self.where, ssconf_keys.NODE_PRIMARY_IPS))
        offline = set(_lines(self.where, "offline_nodes"))
        self._offline = tuple(name for name in addresses if name in offline)
        self._nodes = {
            name: Node(
                uuid=NodeUuid(name),
                name=name,
                primary_ip=address,
                secondary_ip=address,
                group=GroupUuid(""),
            )
            for name, address in addresses.items()
            if name not in offline
        }

    def run(self, *, plan_only: bool) -> None:
        """Do it, or only print what would be done; blocks until all nodes are of the version.

        Raises:
            OpPrereqError: it cannot begin; nothing was changed.
            OpExecError: a step failed; the text says how to go on, or back.
        """
        try:
            self._run(plan_only=plan_only)
        finally:
            self._rpc.stop()

    def _run(self, *, plan_only: bool) -> None:
        facts = self._find_facts()
        if facts.silent and not plan_only:
            facts = self._wake(facts)
        refusals = upgrade_plan.list_refusals(facts, self.target)
        steps = upgrade_plan.make_steps(facts, self.target)
        left = upgrade_plan.describe_left(facts, self.target)
        if not refusals and facts.config != self.target:
            refusals += self._preview(plan_only=plan_only)
        if not refusals and not steps:
            if not plan_only:
                self._end()
            self.say(f"Cluster {facts.cluster} uses version {self.target}; nothing to do")
            for line in left:
                self.say(line)
            return
        if plan_only and not refusals:
            for line in (*upgrade_plan.describe(facts, steps, self.target), *left):
                self.say(line)
            self.say("Nothing was changed (--plan)")
            return
        if refusals:
            if facts.master_runs and not plan_only and self._release():
                self.say("Jobs that an earlier run held go on")
            raise errors.make_state_error(
                "\n".join(["the upgrade cannot begin, and nothing was changed:", *refusals]),
            )
        for line in upgrade_plan.describe(facts, steps, self.target):
            self.say(line)
        self._perform(facts, steps)
        self.say(f"Cluster {facts.cluster} uses version {self.target}")
        for line in left:
            self.say(line)

    # looking -----------------------------------------------------------------------------

    def _find_facts(self) -> Facts:
        """Ask all nodes and read what is on this one; ConfigurationError for a broken file."""
        answers = self._rpc.call_many(self._nodes.values(), NodeCalls.version_state)
        states = {a.node.name: a.value for a in answers.values() if a.value is not None}
        silent = {a.node.name: errors.text(a.error) for a in answers.values() if a.error}
        return Facts(
            cluster="".join(_lines(self.where, "cluster_name")),
            master=paths.hostname(),
            config=convert_config.read_version(self.where),
            active=releases.find_active(self.where) or releases.OWN,
            master_runs=services.is_running(constants.MASTERD, self.where),
            nodes=states,
            silent=silent,
            offline=self._offline,
        )

    def _wake(self, facts: Facts) -> Facts:
        """Start node daemons that do not run, where the remote shell gets; look again."""
        names = sorted(facts.silent)
        self.say(f"No answer from {join_names(names)}: starting what does not run there")
        command = ["ganeti-daemon-util", "start", constants.NODED]
        remote_shell.run_everywhere(names, command, timeout=_START)
        return self._find_facts()

    def _preview(self, *, plan_only: bool) -> list[str]:
        """Show how the configuration would be converted, or why it cannot be."""
        try:
            found = convert_config.preview(self.where, self.target)
        except errors.GanetiError as err:
            return [errors.text(err)]
        for line in found.changes if plan_only else ():
            self.say(f"config.data: {line}")
        for path in found.dropped:
            self.say(f"Warning: version {self.target} does not know {path} and will forget it")
        return []

    # doing -------------------------------------------------------------------------------

    def _perform(self, facts: Facts, steps: Iterable[Step]) -> None:
        former = str(facts.active)
        if facts.active == self.target and (begun := upgrade_intent.read(self.where)) is not None:
            former = begun.old
        intent = Intent(former, str(self.target), os.getpid())
        self._write(intent)
        try:
            for step in steps:
                self._do(step, facts)
        except (errors.GanetiError, OSError) as err:
            self._give_up(intent)
            text = errors.text(err if isinstance(err, errors.GanetiError) else files.failure(err))
            raise errors.OpExecError(f"{text}\n{_advise(intent)}") from err
        except KeyboardInterrupt:
            self._give_up(intent)
            self.say(_advise(intent))
            raise
        self._end()

    def _do(self, step: Step, facts: Facts) -> None:
        if step.kind is Kind.HOLD:
            self._hold(facts)
        elif step.kind is Kind.NODE:
            self._switch_node(step.node)
        elif step.kind is Kind.MASTER:
            self._switch_master(step.node)
        else:
            self._release()

    def _hold(self, facts: Facts) -> None:
        """Let no job begin, and wait for those that run.

        A master daemon that is dead is started first, which puts all changes into ``config.data``.
        With files of two versions it cannot start, and no job runs.
        """
        if not facts.master_runs:
            if facts.config != facts.active:
                return
            services.start_master(self.where)
        client = Client()
        reason = [["gnt:client:upgrade", f"upgrade to {self.target}", nanoseconds(SYSTEM.now())]]
        client.replace_filter(RULE, 0, _EVERY_JOB, "PAUSE", reason)
        deadline = Deadline(JOB_PATIENCE)
        while running := _running_jobs(client):
            names = join_names(str(each) for each in running)
            self.say(f"Waiting for jobs that run: {names}")
            for job in running:
                if not _wait_for(client, job, deadline):
                    raise errors.OpExecError(
                        f"jobs still run ({names}): wait for them, or cancel them with"
                        " 'gnt-job cancel', and try again"
                    )

    def _switch_node(self, name: str) -> None:
        node = self._nodes[name]
        began = SYSTEM.monotonic()
        self._rpc.call_one(node, NodeCalls.version_switch, str(self.target))
        state = retry.retry_until(
            lambda: self._find_end(node), timeout=NODE_PATIENCE, first=0.2, largest=1.0
        )
        if state is None:
            raise errors.OpExecError(
                f"{name} did not answer within {NODE_PATIENCE:.0f} s after the switch to version"
                f" {self.target}: run 'ganeti-daemon-util start {constants.NODED}' there"
            )
        if state.running != str(self.target):
            raise errors.OpExecError(f"{name}: {state.problem or 'it kept its version'}")
        self.say(f"{name} uses {self.target} after {SYSTEM.monotonic() - began:.1f} s")

    def _find_end(self, node: Node) -> VersionState | None:
        """The state of a node that has gone over, or has given up; None while it is at work."""
        answer = self._rpc.call_many([node], NodeCalls.version_state)[node.uuid]
        state = answer.value
        return None if state is None or state.switching else state

    def _switch_master(self, name: str) -> None:
        wanted = [constants.NODED, constants.MASTERD]
        if services.is_wanted(services.ALL[constants.RAPI], self.where):
            wanted.append(constants.RAPI)
        began = SYSTEM.monotonic()
        switch_version.switch(
            self.where,
            self.target,
            lambda: convert_config.convert(self.where, self.target),
            wanted,
        )
        self.say(f"{name} uses {self.target} after {SYSTEM.monotonic() - began:.1f} s")

    def _release(self) -> bool:
        """Let jobs run; whether they were held."""
        client = Client()
        held = bool(client.query_filters([RULE], ["uuid"]))
        if held:
            client.delete_filter(RULE)
        return held

    def _give_up(self, intent: Intent) -> None:
        """Let jobs run if a master daemon does, and record that no process works on the upgrade."""
        self._write(Intent(intent.old, intent.new, 0))
        if services.is_running(constants.MASTERD, self.where):
            try:
                self._release()
            except errors.GanetiError as err:
                self.say(
                    f"Jobs stay held ({errors.text(err)}): 'gnt-filter delete {RULE}' lets them run"
                )

    def _write(self, intent: Intent) -> None:
        files.write_atomic(self.where.upgrade_intent, intent.to_text(), mode=0o600)

    def _end(self) -> None:
        """Remove the filter rule and the file, as nothing is left to do."""
        self._release()
        files.remove(self.where.upgrade_intent)


def refuse_second(intent: Intent | None) -> None:
    """OpPrereqError while another process is at work on an upgrade."""
    if intent is not None and intent.pid != os.getpid() and intent.is_at_work:
        raise errors.make_state_error(
            f"an upgrade from {intent.old} to {intent.new} runs (process {intent.pid})",
        )


def find_driver(where: Paths, target: Version) -> list[str] | None:
    """Words that run the newer of two versions instead of this one; None when this is it.

    Raises:
        OpPrereqError: it is not installed on this node, or the way is too far.
    """
    active = releases.find_active(where) or releases.OWN
    config = convert_config.read_version(where)
    for version in (active, config):
        if not version.is_beside(target):
            raise errors.make_invalid_error(
                f"the cluster has version {version}, and {target} is neither the next one nor the"
                " one before: switch one version at a time",
            )
    newer = max(target, active, config, releases.OWN)
    if newer == releases.OWN:
        return None
    return releases.isolate(releases.python_of(newer, where), "ganeti.cli")


def check_place(where: Paths) -> None:
    """NoMasterError when this is not the master node."""
    if not absence.is_master_here(where):
        raise absence.explain_absence(where.luxi_socket, where)


def _running_jobs(client: Client) -> list[int]:
    rows = client.query_jobs(None, ["id", "status"])
    idle = {JobStatus.QUEUED, *JOBS_FINALIZED}
    return [int(number) for number, status in rows if status not in idle]


def _wait_for(client: Client, job: int, deadline: Deadline) -> bool:
    """Wait until a job has ended; False when the time is over."""
    known = None
    while (left := deadline.left) > 0:
        try:
            change = client.wait_for_job_change(
                job, ["status"], known, None, min(10, math.ceil(left))
            )
        except errors.JobLost:
            return True
        if change is None:
            continue
        known = change.values
        if known[0] in JOBS_FINALIZED or known[0] == JobStatus.QUEUED:
            return True
    return False


def _lines(where: Paths, key: str) -> list[str]:
    try:
        return files.read_text(where.ssconf(key)).splitlines()
    except FileNotFoundError:
        return []


def _advise(intent: Intent) -> str:
    return (
        "Nodes of both versions work together. Go on with 'gnt-cluster upgrade --resume', or go"
        f" back with 'gnt-cluster upgrade --to {intent.old}'"
    )
