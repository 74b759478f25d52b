"""Change settings of the cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.base.text import join_names, natural_sorted
from ganeti.config import candidates as pool
from ganeti.config import drbd, role_stores
from ganeti.config.changes import Draft
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model import base
from ganeti.model.cluster import Cluster
from ganeti.model.config import Config
from ganeti.model.ids import NodeUuid
from ganeti.model.node import Node
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.cluster import OpClusterSetParams
from ganeti.ops.operation import Finding, FindingOperation, Hooks, PlannedOperation
from ganeti.ops.planning import cluster_settings, communication_network, policy
from ganeti.ops.steps import images
from ganeti.ops.steps.nodes import candidates, hosts_files, master_ip, ssh_keys, switches
from ganeti.ops.verification import requirements
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import Answer
from ganeti.storage.registry import volume_templates


@dataclass(frozen=True)
class _Plan:
    decision: cluster_settings.Decision
    #: candidates that are too many
    demoted: list[Node]
    #: what sets up the communication network
    jobs: list[list[OpCode]]
    #: the configuration with the new values
    after: Config


class ClusterSetParams(
    FindingOperation[OpClusterSetParams, frozenset[NodeUuid], JsonObject | None],
    PlannedOperation[OpClusterSetParams, _Plan, JsonObject | None],
):
    """Returns null, or the jobs that set up the communication network."""

    def find(self) -> Finding[frozenset[NodeUuid]]:
        """The nodes whose role may change.

        Locks instances when a driver is disabled; nodes when they are asked or change their role.
        """
        op, config = self.op, self.ctx.config
        if _removes_something(config, op):
            yield Need(LockLevel.INSTANCE, None, shared=True)
        nodes: frozenset[NodeUuid] = frozenset()
        size = op.candidate_pool_size
        if size is not None:
            moved = [
                *pool.choose_promotions(config, size=size),
                *pool.choose_demotions(config, size=size),
            ]
            nodes = frozenset(node.uuid for node in moved)
        if nodes:
            yield Need(LockLevel.NODE, nodes)
        elif any(getattr(op, name) is not None for name in _ASKS_NODES):
            yield Need(LockLevel.NODE, None, shared=True)
        return nodes

    # check -------------------------------------------------------------------------------

    def decide(self) -> _Plan:
        op, config = self.op, self.ctx.config
        decision = cluster_settings.decide(config, op)
        cluster = base.replace(config.cluster, **decision.values)
        after = config.apply([], [], cluster, mtime=config.data.mtime)
        demoted = self._choose_demoted(config)
        name = op.instance_communication_network
        jobs: list[list[OpCode]] = []
        if name:
            groups = [group.name for group in config.groups.values()]
            jobs = communication_network.jobs(config, name, groups, op.priority)
        problems = list(self._node_problems(config, after))
        if problems and not op.force:
            raise errors.make_environment_error(
                f"{'; '.join(problems)} (--force changes it anyway)"
            )
        for text in problems:
            self.ctx.warn(text)
        return _Plan(decision, demoted, jobs, after)

    def _choose_demoted(self, config: Config) -> list[Node]:
        """Candidates that are too many; all of them are locked."""
        if self.op.candidate_pool_size is None:
            return []
        found = pool.choose_demotions(config, size=self.op.candidate_pool_size)
        if not {node.uuid for node in found} <= self.found:
            raise errors.make_state_error(
                "another job changed the master candidates meanwhile; try again"
            )
        return found

    def _node_problems(self, config: Config, after: Config) -> Iterator[str]:
        """Problems of nodes with the new settings."""
        nodes = [node for node in config.online_nodes() if node.vm_capable]
        rpc, new = self.ctx.rpc, after.cluster
        script = self.ctx.paths.master_ip_script
        if self.op.use_external_mip_script and not os.access(script, os.X_OK):
            yield f"{script} is missing on the master, or not executable"
        for name in new.enabled_hypervisors:
            known = name in config.cluster.enabled_hypervisors
            if known and new.hvparams[name] == config.cluster.hvparams.get(name):
                continue
            answers = rpc.call_many(
                nodes, NodeCalls.hypervisor_validate_params, name, new.hvparams[name]
            )
            yield from _failures(answers)
        for os_name, by_hypervisor in (self.op.os_hvp or {}).items():
            for name in sorted(set(by_hypervisor) & set(new.enabled_hypervisors)):
                full = after.hvparams_for(name, os_name, {})
                answers = rpc.call_many(nodes, NodeCalls.hypervisor_validate_params, name, full)
                yield from _failures(answers)
        changed = {*(self.op.osparams or {}), *(self.op.osparams_private_cluster or {})}
        for os_name in sorted(changed):
            values = after.osparams_for(os_name, {})
            values.update(new.osparams_private_cluster.get(os_name, {}))
            yield from _failures(
                rpc.call_many(
                    nodes, NodeCalls.os_validate, False, os_name, ["parameters"], values, True, ""
                )
            )
        yield from self._find_missing_groups(config.cluster, new, nodes)
        yield from self._find_wrong_helpers(config.cluster, new, nodes)

    def _find_missing_groups(self, old: Cluster, new: Cluster, nodes: list[Node]) -> Iterator[str]:
        """Nodes without the volume group that their disks shall come to lie in."""
        group = new.volume_group_name
        before = volume_templates() & set(old.enabled_disk_templates)
        after = volume_templates() & set(new.enabled_disk_templates)
        if not group or not after or (group == old.volume_group_name and before):
            return
        answers = self.ctx.rpc.call_many(nodes, NodeCalls.vg_list)
        yield from _failures(answers)
        good = [answer for answer in answers.values() if answer.error is None]
        without = [answer.node.name for answer in good if group not in answer.get()]
        if without:
            yield f"there is no volume group '{group}' on {join_names(natural_sorted(without))}"

    def _find_wrong_helpers(self, old: Cluster, new: Cluster, nodes: list[Node]) -> Iterator[str]:
        """Nodes whose DRBD module calls another program than the one that is set."""
        helper = new.drbd_usermode_helper
        uses, used = (drbd.is_enabled(each.enabled_disk_templates) for each in (new, old))
        if not helper or not uses or (used and helper == old.drbd_usermode_helper):
            return
        answers = self.ctx.rpc.call_many(nodes, NodeCalls.drbd_helper)
        yield from _failures(answers)
        for answer in answers.values():
            if answer.error is None and answer.get() != helper:
                yield (
                    f"the DRBD module of {answer.node.name} has the user-mode helper"
                    f" {answer.get()}, not {helper}: load it with usermode_helper={helper}"
                )

    def hooks(self) -> Hooks:
        cluster = self.ctx.config.cluster
        env = {"OP_TARGET": cluster.cluster_name, "NEW_VG_NAME": str(self.op.vg_name)}
        nodes = [cluster.master_node]
        return Hooks("cluster-modify", "CLUSTER", env, nodes, nodes)

    # run ---------------------------------------------------------------------------------

    def run(self) -> JsonObject | None:
        ctx, before = self.ctx, self.ctx.config
        for note in self.plan.decision.notes:
            ctx.log(note)
        changed = self.plan.decision.values
        moves = "master_netdev" in changed or (
            "master_netmask" in changed and self.plan.after.cluster.use_external_mip_script
        )
        if moves:
            master_ip.deactivate(ctx, before)
        with ctx.services.change_deciders(self.plan.after):
            if "master_vote" in changed:
                self._check_deciders(self.plan.after)
            ctx.store.change("cluster-modify", ctx.author, self._edit)
        self._move_address(before, moves=moves)
        if self.op.candidate_pool_size is not None:
            candidates.fill_up(ctx, among=self.found)
        if "ipolicy" in changed or "beparams" in changed:
            for text in policy.find_new_violations(before, ctx.config):
                ctx.warn(text)
        for failure in ctx.services.distribute_ssconf():
            ctx.warn(failure)
        if "ndparams" in changed:
            switches.configure(ctx, switches.find_changed(before, ctx.config))
        if self.plan.demoted:
            candidates.inform_demoted(
                ctx, [ctx.config.nodes[node.uuid] for node in self.plan.demoted]
            )
        if self.op.candidate_pool_size is not None:
            ssh_keys.bring_up_to_date(ctx)
        if changed.get("modify_etc_hosts"):
            hosts_files.bring_up_to_date(ctx)
        if self.plan.demoted and ctx.config.images:
            images.distribute(ctx)
        if not self.plan.jobs:
            return None
        return {"jobs": [[True, job_id] for job_id in ctx.job.submit(self.plan.jobs)]}

    def _check_deciders(self, after: Config) -> None:
        """Each candidate must be able to ask the store, which knows of this master by now."""
        asked = role_stores.list_checks(after)
        if not asked:
            return
        candidates = [node for node in after.online_nodes() if node.master_candidate]
        answers = self.ctx.rpc.call_many(candidates, NodeCalls.node_verify, asked, "", {})
        flaws = list(_failures(answers))
        for answer in answers.values():
            for found in (answer.value or {}).values():
                flaws += [f"{answer.node.name}: {text}" for text in requirements.list_texts(found)]
        if flaws and not self.op.force:
            raise errors.make_environment_error(f"{'; '.join(flaws)} (--force changes it anyway)")
        for text in flaws:
            self.ctx.warn(text)

    def _edit(self, draft: Draft) -> None:
        decision = cluster_settings.decide(draft.config, self.op)
        size = self.op.candidate_pool_size
        gone = [] if size is None else pool.choose_demotions(draft.config, size=size)
        if [node.uuid for node in gone] != [node.uuid for node in self.plan.demoted]:
            raise errors.make_state_error(
                "another job changed the master candidates meanwhile; try again"
            )
        if decision.values:
            draft.update_cluster(**decision.values)
        for node in gone:
            draft.update(node, master_candidate=False)
        candidates.forget(draft, [node.uuid for node in gone])

    def _move_address(self, before: Config, *, moves: bool) -> None:
        """Move the address of the cluster to its new device or prefix length."""
        ctx, after = self.ctx, self.ctx.config
        try:
            if moves:
                master_ip.activate(ctx, after)
                master_ip.explain(ctx, after)
            elif before.cluster.master_netmask != after.cluster.master_netmask:
                ctx.rpc.call_one(
                    after.master,
                    NodeCalls.node_change_master_netmask,
                    before.cluster.master_netmask,
                    after.cluster.master_netmask,
                    after.cluster.master_ip,
                    after.cluster.master_netdev,
                )
        except errors.GanetiError as err:
            ctx.warn(
                f"the address of the cluster is not as it should be: {errors.text(err)}; try"
                " gnt-cluster activate-master-ip"
            )


#: Parameters whose new values nodes are asked about.
_ASKS_NODES = (
    "drbd_helper",
    "enabled_disk_templates",
    "enabled_hypervisors",
    "hvparams",
    "os_hvp",
    "osparams",
    "osparams_private_cluster",
    "vg_name",
)


def _removes_something(config: Config, op: OpClusterSetParams) -> bool:
    """Whether something goes that an instance may be about to use."""
    cluster = config.cluster
    for current, wanted in (
        (cluster.enabled_hypervisors, op.enabled_hypervisors),
        (cluster.enabled_disk_templates, op.enabled_disk_templates),
    ):
        if wanted is not None and set(current) - {str(name) for name in wanted}:
            return True
    return op.vg_name == "" or op.drbd_helper == ""


def _failures(answers: dict[NodeUuid, Answer[Any]]) -> Iterator[str]:
    """Errors of failed calls; nodes with the same error share a text."""
    same: dict[str, list[str]] = {}
    for answer in answers.values():
        if answer.error is not None:
            text = errors.text(answer.error).removeprefix(f"node {answer.node.name}: ")
            same.setdefault(text, []).append(answer.node.name)
    for text, names in same.items():
        word = "node" if len(names) == 1 else "nodes"
        yield f"{word} {join_names(natural_sorted(names))}: {text}"
