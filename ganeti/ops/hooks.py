"""Running hooks around an operation, on the nodes that it concerns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ganeti import constants, errors
from ganeti.base.json_types import JsonObject
from ganeti.config import drbd
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.ids import NodeUuid
from ganeti.model.instance import Instance
from ganeti.model.network import Network
from ganeti.opcodes.base import OpCode
from ganeti.ops.operation import Context, Hooks
from ganeti.paths import Paths
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import Answer
from ganeti.storage.registry import traits_of

#: Result codes of a single hook script.
SKIPPED, FAILED, SUCCEEDED = 0, 1, 2

#: Path of the hooks that run after each change of the configuration.
CONFIG_UPDATE = "config-update"
HOOK_PATH = "/sbin:/bin:/usr/sbin:/usr/bin"


def run_pre(ctx: Context, op: OpCode, hooks: Hooks | None) -> None:
    """Run the pre hooks; one that fails aborts the operation.

    Raises:
        HooksAbort: ``[[node, script, output], ...]`` of the failed hooks.
    """
    if hooks is None:
        return
    env = environment(ctx, op, hooks, "pre")
    refused: list[list[str]] = []
    for answer in _call(ctx, hooks, "pre", env).values():
        if answer.error is not None:
            ctx.warn(f"hooks could not be run: {errors.text(answer.error)}")
            continue
        for script, code, output in answer.get():
            if code == FAILED:
                refused.append([answer.node.name, script, output])
    if refused:
        raise errors.HooksAbort(refused)


def run_post(ctx: Context, op: OpCode, before: Hooks | None, after: Hooks | None) -> None:
    """Run the post hooks with the values from before and after; a failure is only reported."""
    if before is None or after is None:
        return
    env = environment(ctx, op, before, "post")
    env.update((f"GANETI_POST_{key}", _text(value)) for key, value in after.env.items())
    _report_failures(ctx, _call(ctx, after, "post", env))


def run_config_update(ctx: Context, op: OpCode, before: Hooks | None) -> None:
    """Run the hooks on the master that follow each change of the configuration.

    They have the variables from before the change; a failure is only reported.
    """
    if not (ctx.paths.hooks / f"{CONFIG_UPDATE}-post.d").is_dir():
        return
    master = [ctx.config.cluster.master_node]
    kind, own = (before.object_type, before.env) if before else ("", {})
    hooks = Hooks(CONFIG_UPDATE, kind, own, [], master)
    _report_failures(ctx, _call(ctx, hooks, "post", environment(ctx, op, hooks, "post")))


def _report_failures(ctx: Context, answers: dict[NodeUuid, Answer[list[list[object]]]]) -> None:
    for answer in answers.values():
        if answer.error is not None:
            ctx.warn(f"hooks could not be run: {errors.text(answer.error)}")
            continue
        for script, code, output in answer.get():
            if code == FAILED:
                ctx.warn(f"post hook {script} failed on node {answer.node.name}: {output}")


def _call(
    ctx: Context, hooks: Hooks, phase: str, env: dict[str, str]
) -> dict[NodeUuid, Answer[list[list[Any]]]]:
    config = ctx.config
    wanted = hooks.pre_nodes if phase == "pre" else hooks.post_nodes
    nodes = {uuid: config.nodes[uuid] for uuid in wanted if uuid in config.nodes}
    online = [node for node in nodes.values() if not node.offline]
    return ctx.rpc.call_many(online, NodeCalls.hooks_runner, hooks.path, phase, env)


def environment(ctx: Context, op: OpCode, hooks: Hooks, phase: str) -> dict[str, str]:
    """All variables of a hook, the global ones included."""
    basics = global_env(ctx.config, ctx.paths, hooks.path, phase, hooks.object_type, op.op_id)
    return {**basics, **_add_prefix(hooks.env)}


def global_env(
    config: Config, paths: Paths, path: str, phase: str, object_type: str, op_id: str = ""
) -> dict[str, str]:
    """The variables that every hook gets."""
    return {
        "PATH": HOOK_PATH,
        "GANETI_HOOKS_VERSION": str(constants.HOOKS_VERSION),
        "GANETI_HOOKS_PHASE": phase,
        "GANETI_HOOKS_PATH": path,
        "GANETI_OP_CODE": op_id,
        "GANETI_DATA_DIR": str(paths.data),
        "GANETI_OBJECT_TYPE": object_type,
        "GANETI_CLUSTER": config.cluster.cluster_name,
        "GANETI_MASTER": config.master.name,
    }


def _add_prefix(env: Mapping[str, object]) -> dict[str, str]:
    return {f"GANETI_{key}": _text(value) for key, value in env.items()}


def _text(value: object) -> str:
    if isinstance(value, list | tuple | set | frozenset):
        return " ".join(str(item) for item in value)
    return "" if value is None else str(value)


def instance_env(config: Config, instance: Instance) -> JsonObject:
    """Variables that every instance hook gets, without the GANETI_ prefix."""
    be = config.beparams(instance)
    names = {uuid: node.name for uuid, node in config.nodes.items()}
    env: JsonObject = {
        "OP_TARGET": instance.name,
        "INSTANCE_NAME": instance.name,
        "INSTANCE_PRIMARY": names.get(instance.primary_node, ""),
        "INSTANCE_SECONDARIES": [names[uuid] for uuid in config.secondary_nodes(instance)],
        "INSTANCE_OS_TYPE": instance.os,
        "INSTANCE_STATUS": instance.admin_state,
        "INSTANCE_MINMEM": be["minmem"],
        "INSTANCE_MAXMEM": be["maxmem"],
        "INSTANCE_MEMORY": be["maxmem"],
        "INSTANCE_VCPUS": be["vcpus"],
        "INSTANCE_DISK_TEMPLATE": config.disk_template(instance),
        "INSTANCE_HYPERVISOR": instance.hypervisor,
        "INSTANCE_NIC_COUNT": len(instance.nics),
        "INSTANCE_DISK_COUNT": len(instance.disks),
        "INSTANCE_TAGS": list(instance.tags),
    }
    _nics(env, config, instance)
    for index, uuid in enumerate(instance.disks):
        disk = config.disks.get(uuid)
        if disk is not None:
            env.update(disk_env(index, disk))
            env.update(_place_env(config, f"INSTANCE_DISK{index}", disk))
    for key, value in be.items():
        env[f"INSTANCE_BE_{key}"] = value
    for key, value in config.hvparams(instance).items():
        env[f"INSTANCE_HV_{key}"] = value
    return env


def disk_env(index: int, disk: Disk) -> JsonObject:
    """Variables of a disk that it has before it exists."""
    prefix = f"INSTANCE_DISK{index}"
    env: JsonObject = {
        f"{prefix}_UUID": disk.uuid,
        f"{prefix}_SIZE": disk.size,
        f"{prefix}_MODE": disk.mode,
    }
    if disk.name:
        env[f"{prefix}_NAME"] = disk.name
    return env


def _place_env(config: Config, prefix: str, disk: Disk) -> JsonObject:
    """Variables for the place of an existing disk; its template determines their names."""
    env: JsonObject = {f"{prefix}_DEV_TYPE": disk.dev_type}
    if drbd.is_drbd(disk) and len(disk.children) == 2:
        first, second, port, first_minor, second_minor, _secret = disk.logical_id
        names = {uuid: config.nodes[uuid].name for uuid in (first, second) if uuid in config.nodes}
        values = (names.get(first), names.get(second), port, first_minor, second_minor)
        keys = ("PNODE", "SNODE", "PORT", "PMINOR", "SMINOR")
        env.update((f"{prefix}_{key}", value) for key, value in zip(keys, values))
        for kind, child in zip(("DATA", "META"), disk.children):
            env[f"{prefix}_{kind}_VG"], env[f"{prefix}_{kind}_ID"] = child.logical_id
    elif len(disk.logical_id) == 2:
        first_key = traits_of(disk.dev_type).id_parts[0].upper()
        env[f"{prefix}_{first_key}"], env[f"{prefix}_ID"] = disk.logical_id
    return env


def list_changed_env(config: Config, instance: Instance) -> JsonObject:
    """Variables of memory, processors and NICs, for an instance as it is going to be."""
    full = instance_env(config, instance)
    keys = ("MINMEM", "MAXMEM", "MEMORY", "VCPUS", "NIC", "BE_")
    prefixes = tuple(f"INSTANCE_{key}" for key in keys)
    return {key: value for key, value in full.items() if key.startswith(prefixes)}


def _nics(env: JsonObject, config: Config, instance: Instance) -> None:
    group = config.nodes[instance.primary_node].group if instance.primary_node else None
    for index, nic in enumerate(instance.nics):
        params = config.nicparams_for(nic.nicparams, nic.network, group)
        prefix = f"INSTANCE_NIC{index}"
        if nic.name:
            env[f"{prefix}_NAME"] = nic.name
        env[f"{prefix}_UUID"] = nic.uuid
        env[f"{prefix}_IP"] = nic.ip
        env[f"{prefix}_MAC"] = nic.mac
        env[f"{prefix}_MODE"] = params["mode"]
        env[f"{prefix}_LINK"] = params["link"]
        env[f"{prefix}_VLAN"] = params["vlan"]
        if params["mode"] in ("bridged", "openvswitch"):
            env[f"{prefix}_BRIDGE"] = params["link"]
        network = config.networks.get(nic.network) if nic.network else None
        if network is None:
            continue
        env[f"{prefix}_NETWORK_UUID"] = network.uuid
        for key, value in network_env(network).items():
            env[f"{prefix}_{key}"] = value


#: Key of a network object -> end of the variable's name; unset ones have no variable.
_NETWORK_KEYS = {
    "network": "SUBNET",
    "gateway": "GATEWAY",
    "network6": "SUBNET6",
    "gateway6": "GATEWAY6",
    "mac_prefix": "MAC_PREFIX",
}


def network_env(network: Network) -> JsonObject:
    """Variables about a network, without the GANETI_ prefix."""
    env: JsonObject = {"NETWORK_NAME": network.name, "NETWORK_TAGS": list(network.tags)}
    for key, end in _NETWORK_KEYS.items():
        if getattr(network, key):
            env[f"NETWORK_{end}"] = getattr(network, key)
    return env
