"""Starting and stopping an instance on its primary node."""

from __future__ import annotations

from collections.abc import Mapping

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.model.enums import AdminState, AdminStateSource
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes.base import OpCode
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.planning import restores, snapshots
from ganeti.ops.steps.running import double_run, metadata
from ganeti.ops.steps.storage import disks as instance_disks
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import InstanceInfo


def reason(op: OpCode) -> list[object]:
    """The reason trail of an opcode for the node."""
    return [list(entry) for entry in op.reason]


def primary(ctx: Context, instance: Instance) -> Node:
    """The primary node, which must be online; OpPrereqError otherwise."""
    node = ctx.config.nodes[instance.primary_node]
    if node.offline:
        raise errors.make_state_error(
            f"primary node {node.name} of instance {instance.name} is marked offline"
        )
    return node


def accepts_offline_node(ctx: Context, instance: Instance, *, accept: bool) -> bool:
    """Whether the primary node is offline and, as the user accepts, only the record changes."""
    node = ctx.config.nodes[instance.primary_node]
    if not (node.offline and accept):
        return False
    ctx.log(f"Primary node {node.name} is offline: only the new state is recorded")
    return True


def query_running(ctx: Context, instance: Instance) -> InstanceInfo | None:
    """Ask the primary node about the guest of the instance; None when it does not run there."""
    node = primary(ctx, instance)
    hypervisor = str(instance.real_hypervisor)
    params = ctx.config.cluster.hvparams.get(hypervisor, {})
    answer = ctx.rpc.call_one(
        node, NodeCalls.all_instances_info, [hypervisor], {hypervisor: params}
    )
    return answer.get(instance.name)


def set_state(
    ctx: Context,
    instance: Instance,
    state: AdminState,
    *,
    disks_active: bool,
    source: AdminStateSource = AdminStateSource.ADMIN,
) -> None:
    """Record what the admin wants of an instance."""
    current = ctx.config.instances[instance.uuid]
    if (current.admin_state, current.disks_active, current.admin_state_source) == (
        state,
        disks_active,
        source,
    ):
        return

    def edit(draft: Draft) -> None:
        draft.update(
            instance, admin_state=state, disks_active=disks_active, admin_state_source=source
        )

    ctx.store.change(f"instance-{state}", ctx.author, edit)


def start(
    ctx: Context,
    instance: Instance,
    op: OpCode,
    *,
    hvparams: Mapping[str, object] | None = None,
    beparams: Mapping[str, object] | None = None,
    paused: bool = False,
    ignore_secondaries: bool = False,
    accept_parts: bool = False,
) -> None:
    """Activate the disks and start the guest; the disks go down again if that fails.

    With ``ignore_secondaries`` mirrored disks need no other node than the primary one, and with
    ``accept_parts`` a backup may have been restored to them in part.

    Raises:
        OpExecError: another node runs it, or may run it.
        OpPrereqError: its disks are a mixture, as reverting or restoring them was interrupted.
    """
    node = primary(ctx, instance)
    snapshots.check_complete(instance)
    if not accept_parts:
        restores.check_complete(instance)
    double_run.refuse_second(ctx, instance)
    instance_disks.assemble(ctx, instance, ignore_secondaries=ignore_secondaries)
    wire = annotate.instance(
        ctx.config,
        instance,
        hvparams=hvparams,
        beparams=beparams,
        run_epoch=ctx.services.run_epoch(),
    )
    metadata.offer(ctx, instance, node)
    try:
        ctx.rpc.call_one(node, NodeCalls.instance_start, wire, paused, reason(op))
    except errors.GanetiError:
        instance_disks.shutdown(ctx, instance)
        raise


def stop(ctx: Context, instance: Instance, op: OpCode, timeout: int) -> None:
    """Ask the guest to stop, wait up to ``timeout`` seconds, then end it."""
    node = primary(ctx, instance)
    wire = annotate.instance(ctx.config, instance)
    ctx.rpc.call_one(node, NodeCalls.instance_shutdown, wire, timeout, reason(op))
