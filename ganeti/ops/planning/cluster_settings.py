"""The result of a change of the cluster's settings: new values, refusals, notes. Pure.

Every function takes the state and the opcode and returns the fields of the cluster object that
change; each raises OpPrereqError or ParameterError for a value that cannot be used.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.base.text import join_names, nearest
from ganeti.config import drbd, parameters, policy_parameters
from ganeti.model import params, uid_pool
from ganeti.model.cluster import DATA_COLLECTORS
from ganeti.model.config import Config
from ganeti.model.enums import DiskTemplate
from ganeti.opcodes.cluster import OpClusterSetParams
from ganeti.opcodes.devices import NicParams
from ganeti.ops.planning import os_images, recovery_settings
from ganeti.ops.planning.os_settings import os_lists, os_parameters
from ganeti.storage.registry import traits_of, volume_templates

_TOOL = re.compile(r"[a-zA-Z0-9_-]+")
_PROGRAM = re.compile(r"[a-zA-Z0-9_.-]+")
_DEVICE = re.compile(r"[^\s/]{1,15}")
#: Parameters whose value goes into the cluster object as it is.
_PLAIN = (
    "candidate_pool_size",
    "max_running_jobs",
    "max_tracked_jobs",
    "maintain_node_health",
    "prealloc_wipe_disks",
    "use_external_mip_script",
    "modify_etc_hosts",
    "enabled_user_shutdown",
    "instance_communication_network",
)


@dataclass(frozen=True)
class Decision:
    """Fields of the cluster object that change, and what the user should know of it."""

    values: JsonObject
    notes: tuple[str, ...] = ()


def decide(config: Config, op: OpClusterSetParams) -> Decision:
    """All new values at once.

    Raises:
        OpPrereqError, ParameterError: the first thing that cannot be used; nothing is changed.
    """
    notes: list[str] = []
    values: JsonObject = {
        name: value for name in _PLAIN if (value := getattr(op, name)) is not None
    }
    for part in (_programs, _users, _network, _parameters, os_parameters, _collectors):
        values.update(part(config, op))
    notes += _find_limits(op)
    values.update(recovery_settings.limits(config, op, notes))
    values.update(os_lists(config, op, notes))
    values.update(_drivers(config, op))
    values.update(_storage(config, op))
    values.update(_allow_templates(config, op, values))
    changed = {
        name: value for name, value in values.items() if getattr(config.cluster, name) != value
    }
    if not changed.keys().isdisjoint(_WHOLE):
        whole = {name: getattr(config.cluster, name) for name in _WHOLE}
        _check_whole(config, {**whole, **changed}, notes)
    return Decision(changed, tuple(notes))


def _find_limits(op: OpClusterSetParams) -> list[str]:
    """Notes for the user about settings that do less than their names say."""
    notes = []
    if op.maintain_node_health:
        notes.append(
            "NOTE: maintain_node_health works on nodes that can ask ganeti-confd of a master"
            " candidate; it runs where CONFD_ARGS is set in /etc/default/ganeti"
        )
    return notes


def _allow_templates(config: Config, op: OpClusterSetParams, values: JsonObject) -> JsonObject:
    """The policy allows templates when they are enabled, unless its own list is given."""
    policy: JsonObject = values.get("ipolicy", config.cluster.ipolicy)
    enabled, allowed = values.get("enabled_disk_templates", ()), policy["disk-templates"]
    known = {*config.cluster.enabled_disk_templates, *allowed}
    new = [str(name) for name in enabled if name not in known]
    if not new or "disk-templates" in (op.ipolicy or {}):
        return {}
    return {"ipolicy": {**policy, "disk-templates": [*allowed, *new]}}


_DIRECTORIES = ("file_storage_dir", "shared_file_storage_dir", "gluster_storage_dir")
_WHOLE = (
    "enabled_disk_templates",
    "volume_group_name",
    "drbd_usermode_helper",
    *_DIRECTORIES,
    "ipolicy",
)


def _check_whole(config: Config, values: JsonObject, notes: list[str]) -> None:
    """Refuse settings that do not fit together."""
    enabled = set(values["enabled_disk_templates"])
    lvm = sorted(enabled & volume_templates())
    if lvm and not values["volume_group_name"]:
        raise parameters.refuse(
            f"disk templates {', '.join(lvm)} need an LVM volume group; name it with --vg-name"
        )
    if drbd.is_enabled(enabled) and not values["drbd_usermode_helper"]:
        raise parameters.refuse(
            "disk template drbd needs a user-mode helper; name it with --drbd-usermode-helper"
        )
    for template in sorted(enabled):
        field = traits_of(template).directory
        if field and not values[field]:
            option = f"--{field.replace('_', '-')}"
            raise parameters.refuse(
                f"disk template {template} needs a directory; name it with {option}"
            )
    for name, policy in (
        ("of the cluster", values["ipolicy"]),
        *((f"of node group {group.name}", group.ipolicy) for group in config.groups.values()),
    ):
        allowed = policy.get("disk-templates")
        if allowed is not None and not enabled & set(allowed):
            notes.append(f"WARNING: the instance policy {name} allows no enabled disk template")


# single values -------------------------------------------------------------------------------


def _programs(config: Config, op: OpClusterSetParams) -> JsonObject:
    """Names of programs, files and patterns."""
    values: JsonObject = {}
    if op.default_iallocator is not None:
        if op.default_iallocator and not _PROGRAM.fullmatch(op.default_iallocator):
            raise parameters.refuse(
                f"'{op.default_iallocator}' cannot be the name of an allocator: a file name"
                " without directory is expected"
            )
        values["default_iallocator"] = op.default_iallocator
    if op.default_iallocator_params is not None:
        given = params.drop_defaults(op.default_iallocator_params)
        values["default_iallocator_params"] = given
    for name in ("install_image", "zeroing_image"):
        text = getattr(op, name)
        if text is None:
            continue
        if text:
            os_images.find(config, text)
        values[name] = text
    if op.compression_tools is not None:
        values["compression_tools"] = _tools(op.compression_tools)
    if op.reserved_lvs is not None:
        values["reserved_lvs"] = tuple(_pattern(text) for text in op.reserved_lvs)
    return values


def _tools(names: Iterable[str]) -> tuple[str, ...]:
    tools = tuple(dict.fromkeys(names))
    for name in tools:
        if not _TOOL.fullmatch(name):
            raise parameters.refuse(
                f"'{name}' cannot be a compression tool: letters, digits, '-' and '_' are allowed"
            )
    if "gzip" not in tools:
        raise parameters.refuse("gzip must be among the compression tools; every node has it")
    return tools


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as err:
        raise parameters.refuse(
            f"reserved volume '{text}' is not a regular expression: {err}"
        ) from err
    return text


def _users(config: Config, op: OpClusterSetParams) -> JsonObject:
    if op.uid_pool is None and op.add_uids is None and op.remove_uids is None:
        return {}
    pool = config.cluster.uid_pool
    if op.uid_pool is not None:
        pool = uid_pool.check(op.uid_pool)
    if op.add_uids is not None:
        pool = uid_pool.add(pool, op.add_uids)
    if op.remove_uids is not None:
        pool = uid_pool.remove(pool, op.remove_uids)
    return {"uid_pool": pool}


def _network(config: Config, op: OpClusterSetParams) -> JsonObject:
    values: JsonObject = {}
    if op.mac_prefix is not None:
        values["mac_prefix"] = parameters.mac_prefix(op.mac_prefix)
    if op.master_netdev is not None:
        if not _DEVICE.fullmatch(op.master_netdev):
            raise parameters.refuse(f"'{op.master_netdev}' cannot be the name of a network device")
        values["master_netdev"] = op.master_netdev
    if op.master_netmask is not None:
        longest = 32 if config.cluster.primary_ip_family == 2 else 128
        if not 0 < op.master_netmask <= longest:
            raise parameters.refuse(
                f"master netmask {op.master_netmask} is not between 1 and {longest}"
            )
        values["master_netmask"] = op.master_netmask
    return values


def _collectors(config: Config, op: OpClusterSetParams) -> JsonObject:
    if op.enabled_data_collectors is None and op.data_collector_interval is None:
        return {}
    result = {name: dict(facts) for name, facts in config.cluster.data_collectors.items()}
    for key, given in (
        ("active", op.enabled_data_collectors or {}),
        ("interval", op.data_collector_interval or {}),
    ):
        for name, value in given.items():
            if name not in DATA_COLLECTORS:
                raise parameters.refuse(
                    f"unknown data collector '{name}'{nearest(name, DATA_COLLECTORS)};"
                    f" choose from {', '.join(DATA_COLLECTORS)}"
                )
            if key == "interval" and value <= 0:
                raise parameters.refuse(f"the interval of data collector {name} must be positive")
            result.setdefault(name, {"active": True, "interval": 5_000_000})[key] = value
    return {"data_collectors": result}


# parameter sets ------------------------------------------------------------------------------


def _parameters(config: Config, op: OpClusterSetParams) -> JsonObject:
    cluster = config.cluster
    values: JsonObject = {}
    if op.beparams is not None:
        full = parameters.backend(cluster.beparams.get("default", {}), op.beparams)
        values["beparams"] = {**cluster.beparams, "default": full}
    if op.nicparams is not None:
        values["nicparams"] = {**cluster.nicparams, "default": _nicparams(config, op.nicparams)}
    if op.ndparams is not None:
        values["ndparams"] = parameters.cluster_node(cluster.ndparams, op.ndparams)
    if op.diskparams is not None:
        given = {str(name): change for name, change in op.diskparams.items()}
        values["diskparams"] = parameters.cluster_disk(cluster.diskparams, given)
    if op.ipolicy is not None:
        values["ipolicy"] = policy_parameters.cluster_policy(cluster.ipolicy, op.ipolicy)
    if op.hv_state is not None:
        values["hv_state_static"] = parameters.hv_state(cluster.hv_state_static, op.hv_state)
    if op.disk_state is not None:
        values["disk_state_static"] = parameters.disk_state(
            cluster.disk_state_static, op.disk_state
        )
    return values


def _nicparams(config: Config, given: NicParams) -> JsonObject:
    """New defaults of NICs; refused when an existing NIC would not work with them."""
    for name in ("ip", "mac", "name", "network"):
        if getattr(given, name) is not None:
            raise parameters.refuse(f"'{name}' belongs to a single NIC, not to the cluster")
    current = config.cluster.nicparams.get("default", {})
    full = parameters.nic(current, given.own_params())
    if full["mode"] == "routed" and current.get("mode") != "routed":
        bad = [
            instance.name
            for instance in config.instances.values()
            if any(
                nic.ip is None and nic.network is None and "mode" not in nic.nicparams
                for nic in instance.nics
            )
        ]
        if bad:
            raise parameters.refuse(
                "NIC mode routed needs an address on every NIC, but instances"
                f" {join_names(bad)} have NICs without one"
            )
    return full


# drivers and storage -------------------------------------------------------------------------


def _drivers(config: Config, op: OpClusterSetParams) -> JsonObject:
    """Hypervisors and their parameters, and disk templates."""
    cluster = config.cluster
    values: JsonObject = {}
    enabled = cluster.enabled_hypervisors
    if op.enabled_hypervisors is not None:
        enabled = parameters.hypervisors([str(name) for name in op.enabled_hypervisors])
        values["enabled_hypervisors"] = enabled
        used = Counter(str(i.hypervisor) for i in config.instances.values() if i.hypervisor)
        _refuse_removal("hypervisor", cluster.enabled_hypervisors, enabled, used)
    sets = {name: dict(own) for name, own in cluster.hvparams.items()}
    for name, change in (op.hvparams or {}).items():
        sets[name] = parameters.hypervisor(name, sets.get(name, {}), change)
    for name in enabled:
        if name not in sets:
            sets[name] = parameters.hypervisor(name, {}, {})
    values["hvparams"] = sets
    if op.enabled_disk_templates is not None:
        chosen = parameters.templates([str(name) for name in op.enabled_disk_templates])
        values["enabled_disk_templates"] = chosen
        _refuse_removal(
            "disk template", cluster.enabled_disk_templates, chosen, _template_use(config)
        )
    return values


def _template_use(config: Config) -> Counter[str]:
    """How many instances use each disk template."""
    use: Counter[str] = Counter()
    for instance in config.instances.values():
        kinds = {config.disks[uuid].dev_type for uuid in instance.disks if uuid in config.disks}
        use.update(str(kind) for kind in kinds if kind is not None)
        if not instance.disks:
            use[str(DiskTemplate.DISKLESS)] += 1
    return use


def _refuse_removal(
    what: str, before: Iterable[str], after: Iterable[str], use: Counter[str]
) -> None:
    for name in before:
        if name not in set(after) and use[str(name)]:
            raise errors.make_state_error(
                f"{what} {name} cannot be disabled, {use[str(name)]} instances use it"
            )


def _storage(config: Config, op: OpClusterSetParams) -> JsonObject:
    values: JsonObject = {}
    changes_storage = op.vg_name is not None or op.drbd_helper is not None
    use = _template_use(config) if changes_storage else Counter()
    if op.vg_name is not None:
        values["volume_group_name"] = op.vg_name or None
        lvm = sum(use[name] for name in volume_templates())
        if not op.vg_name and lvm:
            raise parameters.refuse(
                f"the LVM volume group cannot be removed: {lvm} instances have disks on it"
            )
    if op.drbd_helper is not None:
        if op.drbd_helper and not op.drbd_helper.startswith("/"):
            raise parameters.refuse(
                f"user-mode helper '{op.drbd_helper}' of DRBD must be an absolute path"
            )
        values["drbd_usermode_helper"] = op.drbd_helper or None
        if not op.drbd_helper and use["drbd"]:
            raise parameters.refuse(
                f"the user-mode helper of DRBD cannot be removed: {use['drbd']} instances use it"
            )
    for field in _DIRECTORIES:
        text = getattr(op, field)
        if text is not None:
            values[field] = _directory(field, text)
    return values


def _directory(field: str, text: str) -> str:
    if text and (not text.startswith("/") or ".." in PurePosixPath(text).parts or "\0" in text):
        raise parameters.refuse(
            f"{field.replace('_', ' ')} '{text}' must be an absolute path without '..'"
        )
    return str(PurePosixPath(text)) if text else ""
