"""Verify the nodes of a group and what should run on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.base.text import plural
from ganeti.locking.levels import LockLevel
from ganeti.model.config import Config
from ganeti.model.group import NodeGroup
from ganeti.model.ids import NodeUuid
from ganeti.model.node import Node
from ganeti.opcodes.cluster import OpClusterVerifyGroup
from ganeti.opcodes.enums import VerifyOptionalChecks
from ganeti.ops import annotate, hooks, locks
from ganeti.ops.operation import Context, Hooks, PlannedOperation
from ganeti.ops.steps.nodes import ssh_keys
from ganeti.ops.verification import (
    basics,
    bounds,
    bridges,
    certificates,
    exports,
    files,
    guests,
    images,
    memory,
    mirrors,
    os_definitions,
    placement,
    requirements,
    shared,
    ssh,
    storage,
    unfinished,
)
from ganeti.ops.verification.disk_parts import Place, is_measured, places_of, subject_of
from ganeti.ops.verification.report import Report
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import Answer

T = TypeVar("T")


#: Seconds that nodes get to answer while nothing newer is sent to them.
_BRIEFLY = 20.0


class ClusterVerifyGroup(PlannedOperation[OpClusterVerifyGroup, NodeGroup, bool]):
    """Returns whether nothing is wrong. Takes no lock: what changes meanwhile is not reported."""

    def __init__(self, op: OpClusterVerifyGroup, ctx: Context) -> None:
        super().__init__(op, ctx)
        #: names of nodes whose missing answer is reported
        self._silent: set[NodeUuid] = set()

    def decide(self) -> NodeGroup:
        return self.ctx.config.group(self.op.group_name)

    def run(self) -> bool:
        ctx, config = self.ctx, self.ctx.config
        report = Report(ctx, error_codes=self.op.error_codes, ignored=self.op.ignore_errors)
        nodes = sorted(config.group_nodes(self.plan.uuid), key=lambda node: node.name)
        online = [node for node in nodes if not node.offline]
        report.section(f"Verifying group '{self.plan.name}'")
        report.section(f"Gathering data ({len(online)} nodes)")
        working = locks.locked_names(ctx, LockLevel.NODE_RES)
        started = ctx.clock.now()
        answers = self._ask(config, online)
        ended = ctx.clock.now()
        report.section("Verifying node status")
        running: dict[NodeUuid, list[str]] = {}
        found: dict[str, JsonObject] = {}
        for node in online:
            if answers[node.uuid].error is not None:
                self._report_no_answer(config, report, answers[node.uuid])
        online = [node for node in online if node.uuid not in self._silent]
        silent = {config.nodes[uuid].name for uuid in self._silent}
        for node in online:
            value = answers[node.uuid].get()
            basics.node(report, node, value, (started, ended), silent)
            certificates.node(report, config.cluster.cluster_name, node, value)
            if isinstance(value.get("instancelist"), list):
                running[node.uuid] = value["instancelist"]
            else:
                report.error("ENODEHV", "node", node.name, str(value.get("instancelist")))
            storage.node(report, config, node, value)
            mirrors.node(report, config, ctx.config, node, value)
            requirements.node(report, config, ctx.paths, node, value)
            ssh.node(report, node, value)
            self._replica(report, node)
            found[node.uuid] = value
        bounds.nodes(report, online, found)
        os_definitions.judge(report, config, online, found)
        images.judge(report, ctx.config, online, found)
        bridges.judge(report, config, online, found)
        placement.exclusion_tags(report, config, nodes)
        self._log_in(config, report, online)
        self._files(config, report, online, found)
        mirrors.versions(report, online, found)
        storage.group_sizes(report, config, self.plan.name, online, found)
        # where a job makes or destroys disks now, nothing is called unknown
        busy = locks.locked_names(ctx, LockLevel.NODE_RES) | working
        idle = [node for node in online if node.uuid not in busy]
        storage.logical(report, config, ctx.config, online, found, busy)
        files.orphans(report, config, ctx.config, idle, found)
        exports.judge(report, online, found, locks.locked_names(ctx, LockLevel.INSTANCE))
        nplusone = VerifyOptionalChecks.NPLUSONE_MEM not in self.op.skip_checks
        memory.check(ctx, report, online, nplusone=nplusone)
        report.section("Verifying instance status")
        instances = [i for n in nodes for i in config.primaries.get(n.uuid, [])]
        for instance in sorted(instances, key=lambda item: item.name):
            if not instance.forthcoming:
                guests.state(report, config, instance, running)
                placement.instance(report, config, instance)
        guests.disks(
            report, config, ctx.config, online, found, locks.locked_names(ctx, LockLevel.INSTANCE)
        )
        unfinished.check(ctx, report, config, online)
        guests.check_unknown(report, config, running)
        report.section("Verifying disks")
        self._disks(config, report, online, found)
        self._hooks(report, online)
        report.section("Other Notes")
        offline = sum(node.offline for node in nodes)
        if offline:
            ctx.log(f"  - NOTICE: {offline} offline node(s) found.")
        ctx.services.note_findings(self.plan.uuid, report.findings)
        return report.ok

    def _ask(self, config: Config, nodes: list[Node]) -> dict[NodeUuid, Answer[JsonObject]]:
        hypervisors = list(config.cluster.enabled_hypervisors)
        checks: JsonObject = {
            **basics.checks(hypervisors, nodes),
            "instancelist": hypervisors,
            "guest-disks": hypervisors,
            **certificates.checks(self.ctx.paths),
            **storage.checks(config, nodes),
            **bounds.checks(config),
            **files.checks(config),
            **mirrors.checks(config),
            **requirements.checks(config, self.ctx.paths, nodes),
            **bridges.checks(config, nodes),
            **self._ssh_checks(config),
            os_definitions.CHECK: None,
            exports.CHECK: None,
            images.CHECK: None,
            shared.CHECK: shared.names(self.ctx.paths),
        }
        return self.ctx.rpc.call_many(
            nodes,
            NodeCalls.node_verify,
            checks,
            config.cluster.cluster_name,
            config.cluster.hvparams,
        )

    def _ssh_checks(self, config: Config) -> JsonObject:
        if not ssh_keys.is_managed(self.ctx):
            return {}
        return ssh.checks(config, ssh_keys.read(self.ctx), clutter=self.op.verify_clutter)

    def _report_no_answer(self, config: Config, report: Report, answer: Answer[Any]) -> None:
        """Report a node that does not answer, once however often it is asked."""
        node = answer.node
        if answer.error is None or node.uuid in self._silent:
            return
        self._silent.add(node.uuid)
        text = f"no answer: {errors.text(answer.error)}"
        unknown = [i for i in config.primaries.get(node.uuid, []) if not i.forthcoming]
        if unknown:
            text += f"; the state of its {plural(len(unknown), 'instance')} is not known"
        report.error("ENODERPC", "node", node.name, text)

    # nodes -------------------------------------------------------------------------------

    def _replica(self, report: Report, node: Node) -> None:
        """A candidate that answers must take what the master sends."""
        reason = self.ctx.services.replication_failure(node.uuid) if node.master_candidate else ""
        if reason:
            text = f"it has no copy of the newest configuration and jobs: {reason}"
            report.error("ECLUSTERFILECHECK", "node", node.name, text)

    def _log_in(self, config: Config, report: Report, online: list[Node]) -> None:
        """The master's remote shell must reach each node, where the cluster uses SSH."""
        master = config.master
        ports = {
            node.name: int(config.ndparams(node).get("ssh_port", 22))
            for node in online
            if node is not master
        }
        if ports and config.cluster.modify_ssh_setup:
            value = self._ask_master(config, report, "nodelist", ports)
            if value is not None:
                requirements.log_in(report, master, value)

    def _files(
        self,
        config: Config,
        report: Report,
        online: list[Node],
        found: Mapping[str, Mapping[str, object]],
    ) -> None:
        """Files that must be the same on nodes; a node that a job works on is left out."""
        ctx, master = self.ctx, config.cluster.master_node
        busy = locks.locked_names(ctx, LockLevel.NODE)
        online = [
            node
            for node in online
            if node.uuid not in busy and ctx.config.nodes.get(node.uuid) is node
        ]
        if not online:
            return
        if master not in found:
            names = shared.names(ctx.paths)
            own = self._ask_master(config, report, shared.CHECK, names)
            found = {**found, master: {shared.CHECK: own}}
        shared.judge(report, config, ctx.paths, online, found)
        with ctx.services.hold_sent_ssconf() as sent:
            if not sent:
                return
            asked = {shared.CHECK: shared.ssconf_names(ctx.paths, sent)}
            answers = ctx.rpc.limit_time(_BRIEFLY).call_many(
                online, NodeCalls.node_verify, asked, config.cluster.cluster_name, {}
            )
        for answer in answers.values():
            self._report_no_answer(config, report, answer)
        checksums = {
            uuid: (answer.node, answer.get().get(shared.CHECK))
            for uuid, answer in answers.items()
            if answer.error is None
        }
        shared.judge_ssconf(report, config, ctx.paths, sent, checksums)

    def _ask_master(self, config: Config, report: Report, check: str, argument: object) -> object:
        """Ask the master node for one check; None if it does not answer, which is reported."""
        answers = self.ctx.rpc.call_many(
            [config.master],
            NodeCalls.node_verify,
            {check: argument},
            config.cluster.cluster_name,
            {},
        )
        [answer] = answers.values()
        if answer.error is not None:
            self._report_no_answer(config, report, answer)
            return None
        return answer.get().get(check)

    # disks -------------------------------------------------------------------------------

    def _disks(
        self,
        config: Config,
        report: Report,
        nodes: list[Node],
        answers: Mapping[str, Mapping[str, object]],
    ) -> None:
        """Every disk must be there, with the size that is recorded and with all its copies."""
        everywhere = places_of(config, nodes)
        # The list of volumes tells more of plain disks.
        measured = [place for place in everywhere if is_measured(place)]
        sizes = list(self._ask_about(config, report, measured, NodeCalls.blockdev_getdimensions))
        # in this order: of a job that ends in between, the configuration has the outcome
        busy, now = locks.locked_names(self.ctx, LockLevel.INSTANCE), self.ctx.config
        for (node, owner, disk), found in sizes:
            if now.disks.get(disk.uuid) is not disk or (owner is not None and owner.name in busy):
                continue
            kind, name, where = subject_of(owner, disk)
            where = f"{where} on node {node.name}"
            if found is None:
                remedy = files.remedy(disk, owner, answers.get(node.uuid, {}))
                report.error("EINSTANCEMISSINGDISK", kind, name, f"{where} is missing: {remedy}")
            elif found[0] < disk.size * 1024 * 1024:
                text = f"{where} has {found[0] // 1048576} MiB instead of {disk.size} MiB"
                report.error("EINSTANCEFAULTYDISK", kind, name, text)
        mirrored = [
            place
            for place in everywhere
            if place[1] is not None and mirrors.is_looked_at(place[1], place[2])
        ]
        method = NodeCalls.blockdev_getmirrorstatus_multi
        states = list(self._ask_about(config, report, mirrored, method))
        apart = mirrors.find_apart((disk, state) for (_node, _owner, disk), state in states)
        for (node, owner, disk), state in states:
            if owner is not None:
                mirrors.state(report, node, owner, disk, state, apart=disk.uuid in apart)

    def _ask_about(
        self, config: Config, report: Report, places: list[Place], method: Callable[..., list[T]]
    ) -> Iterator[tuple[Place, T]]:
        """Ask nodes about disks; a node that does not answer is reported."""
        wanted: dict[NodeUuid, list[Place]] = {}
        for place in places:
            wanted.setdefault(place[0].uuid, []).append(place)
        arguments: dict[NodeUuid, tuple[Node, tuple[object, ...]]] = {
            uuid: (here[0][0], ([annotate.disk(config, p[2], p[0].group) for p in here],))
            for uuid, here in wanted.items()
        }
        for uuid, answer in self.ctx.rpc.call_each(method, arguments).items():
            if answer.error is None:
                yield from zip(wanted[uuid], answer.get())
            else:
                self._report_no_answer(config, report, answer)

    # hooks -------------------------------------------------------------------------------

    def _hooks(self, report: Report, nodes: list[Node]) -> None:
        """Post hooks of verification count: one that fails is an error."""
        ctx, config = self.ctx, self.ctx.config
        report.section("Hooks Results")
        env: JsonObject = {"CLUSTER_TAGS": list(config.cluster.tags)}
        env.update((f"NODE_TAGS_{node.name}", list(node.tags)) for node in nodes)
        spec = Hooks("cluster-verify", "CLUSTER", env, [], [node.uuid for node in nodes])
        variables = hooks.environment(ctx, self.op, spec, "post")
        answers = ctx.rpc.call_many(nodes, NodeCalls.hooks_runner, spec.path, "post", variables)
        for answer in answers.values():
            if isinstance(answer.error, errors.RpcError):
                self._report_no_answer(config, report, answer)
                continue
            if answer.error is not None:
                text = f"hooks could not be run: {errors.text(answer.error)}"
                report.error("ENODEHOOKS", "node", answer.node.name, text)
                continue
            for script, code, output in answer.get():
                if code == hooks.FAILED:
                    text = f"script {script} failed: {output}"
                    report.error("ENODEHOOKS", "node", answer.node.name, text)
