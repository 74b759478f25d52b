"""Changed settings of an instance: parameters, OS, memory, whether it is in use.

:func:`check` asks nodes and refuses; what comes out is only recorded then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.config import parameters
from ganeti.model.enums import AdminState, AdminStateSource
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.model.params import VALUE_DEFAULT, drop_defaults, expand_backend, fill
from ganeti.opcodes.hidden import REDACTED, reveal_all
from ganeti.opcodes.instance import OpInstanceSetParams
from ganeti.ops.operation import Context
from ganeti.ops.planning import checks, cloud_init_settings
from ganeti.ops.steps import node_checks
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import InstanceInfo

#: (what, new value), as clients get it.
Row = tuple[str, Any]


@dataclass
class Settings:
    """New values of the instance object, and what clients are told of them."""

    values: JsonObject = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    #: MiB the running guest gets
    balloon: int | None = None


def merge(old: Mapping[str, object], new: Mapping[str, object]) -> JsonObject:
    """Own parameters after a change; the value ``default`` removes one. Pure."""
    kept = {key: value for key, value in old.items() if key not in new}
    return {**kept, **drop_defaults(new)}


def check(
    ctx: Context,
    op: OpInstanceSetParams,
    instance: Instance,
    nodes: list[Node],
    runs: InstanceInfo | None,
) -> Settings:
    """Check what is requested on the nodes of the instance (the primary one first).

    ``runs``: what the guest is doing, None when it is stopped.

    Raises:
        OpPrereqError, ParameterError, HypervisorError: what cannot be.
    """
    result = Settings()
    online = [node for node in nodes if not node.offline]
    _state(ctx, op, instance, runs, result)
    _os(ctx, op, instance, online, result)
    _hypervisor(ctx, op, instance, online, result)
    _backend(ctx, op, instance, nodes[0], runs, result)
    _memory(ctx, op, instance, nodes[0], runs, result)
    _cloud_init(op, instance, result)
    return result


def _state(
    ctx: Context,
    op: OpInstanceSetParams,
    instance: Instance,
    runs: InstanceInfo | None,
    result: Settings,
) -> None:
    """In use or not."""
    if op.offline is None:
        return
    if op.offline and runs is not None:
        raise errors.make_state_error(
            f"instance {instance.name} is running; stop it before it is taken out of use"
        )
    if not op.offline and instance.admin_state is not AdminState.OFFLINE:
        ctx.log(f"instance {instance.name} is online already")
        return
    state = AdminState.OFFLINE if op.offline else AdminState.DOWN
    result.values.update(admin_state=state, admin_state_source=AdminStateSource.ADMIN)
    result.rows.append(("admin_state", str(state)))


def _cloud_init(op: OpInstanceSetParams, instance: Instance, result: Settings) -> None:
    """The cloud-init data for the guest's next start."""
    if not op.reseed and not cloud_init_settings.is_asked_for(op):
        return
    if op.reseed and instance.cloud_init is None and not cloud_init_settings.is_asked_for(op):
        raise errors.make_state_error(
            f"instance {instance.name} has no data for cloud-init; give some, as with --user-data"
        )
    changed = cloud_init_settings.change(op, instance.cloud_init, instance.real_hypervisor)
    result.values["cloud_init"] = changed
    result.rows.append(("cloud_init", changed.make_instance_id(instance.uuid)))


def _os(
    ctx: Context,
    op: OpInstanceSetParams,
    instance: Instance,
    nodes: list[Node],
    result: Settings,
) -> None:
    if op.os_name is None and not op.osparams and not op.osparams_private:
        return
    name = op.os_name or instance.os
    given_private = reveal_all(op.osparams_private)
    public = merge(instance.osparams, op.osparams)
    private = merge(instance.osparams_private, given_private)
    twice = sorted(set(public) & set(private))
    if twice:
        raise errors.make_invalid_error(
            f"OS parameter '{twice[0]}' is both public and private; reset one of them"
        )
    hidden = ctx.config.private_osparams_for(name, private)
    full = fill(ctx.config.osparams_for(name, public), hidden)
    if name:
        for node in nodes:
            node_checks.os_on_node(
                ctx,
                node,
                name,
                full,
                instance.hypervisor,
                force_variant=op.force_variant or op.os_name is None,
            )
    if op.os_name is not None:
        result.values["os"] = op.os_name
        result.rows.append(("os", op.os_name))
    result.values.update(osparams=public, osparams_private=private)
    result.rows += [(f"os/{key}", value) for key, value in op.osparams.items()]
    result.rows += [(f"os_private/{key}", REDACTED) for key in given_private]


def _hypervisor(
    ctx: Context,
    op: OpInstanceSetParams,
    instance: Instance,
    nodes: list[Node],
    result: Settings,
) -> None:
    if not op.hvparams:
        return
    hypervisor = instance.real_hypervisor
    resets = {key: value for key, value in op.hvparams.items() if value == VALUE_DEFAULT}
    kept = {key: value for key, value in instance.hvparams.items() if key not in resets}
    os_name = op.os_name or instance.os
    values = checks.check_hvparams(ctx, hypervisor, os_name, kept, op.hvparams)
    own = {**kept, **values}
    full = ctx.config.hvparams_for(hypervisor, os_name, own)
    for node in nodes:
        ctx.rpc.call_one(node, NodeCalls.hypervisor_validate_params, str(hypervisor), full)
    result.values["hvparams"] = own
    result.rows += [(f"hv/{key}", value) for key, value in op.hvparams.items()]


def _backend(
    ctx: Context,
    op: OpInstanceSetParams,
    instance: Instance,
    primary: Node,
    runs: InstanceInfo | None,
    result: Settings,
) -> None:
    if not op.beparams:
        return
    values = parameters.change_own_backend(ctx.config, instance.beparams, op.beparams)
    full = ctx.config.beparams_for(values)
    more = full["maxmem"] - ctx.config.beparams(instance)["maxmem"]
    if more > 0 and runs is not None and not op.force and not primary.offline:
        # its next start must not fail
        node_checks.resources(
            ctx,
            primary,
            f"instance {instance.name} with {full['maxmem']} MiB (--force skips this check)",
            memory=(str(instance.real_hypervisor), more),
        )
    result.values["beparams"] = values
    result.rows += [(f"be/{key}", value) for key, value in expand_backend(op.beparams).items()]


def _memory(
    ctx: Context,
    op: OpInstanceSetParams,
    instance: Instance,
    primary: Node,
    runs: InstanceInfo | None,
    result: Settings,
) -> None:
    """Memory of the running guest."""
    wanted = op.runtime_mem
    if wanted is None:
        return
    if runs is None:
        raise errors.make_state_error(
            f"instance {instance.name} is not running, so its memory cannot be changed now;"
            " see -B minmem=...,maxmem=..."
        )
    full = ctx.config.beparams_for(result.values.get("beparams", instance.beparams))
    if not op.force and not full["minmem"] <= wanted <= full["maxmem"]:
        raise errors.make_invalid_error(
            f"instance {instance.name} must have between {full['minmem']} and {full['maxmem']} MiB"
            f" of memory, not {wanted} (--force allows it)"
        )
    more = wanted - runs.memory
    if more > 0:
        node_checks.resources(
            ctx,
            primary,
            f"instance {instance.name}",
            memory=(str(instance.real_hypervisor), more),
        )
    result.balloon = wanted
    result.rows.append(("runtime_memory", wanted))
