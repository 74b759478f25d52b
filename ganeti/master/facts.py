"""Facts about the cluster as a whole, in the forms that clients ask for them."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping, Sequence

from ganeti import constants
from ganeti.base import files
from ganeti.base.clock import SYSTEM
from ganeti.base.json_types import JsonObject
from ganeti.model.config import Config
from ganeti.model.enums import MasterVote
from ganeti.paths import Paths


class Facts:
    """Facts that are neither configuration nor on a node."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        bits = "64bits" if os.sysconf("SC_LONG_BIT") == 64 else "32bits"
        self.architecture = (bits, platform.machine())
        self.vcs_version = f"(py) {constants.RELEASE_VERSION}"

    def watcher_pause(self) -> float | None:
        """Until when the watcher pauses, None when it does not."""
        try:
            until = float(files.read_text(self._paths.watcher_pause).strip())
        except (FileNotFoundError, ValueError):
            return None
        return until if until > SYSTEM.now() else None


def cluster_info(config: Config, facts: Facts) -> JsonObject:
    """The answer of QueryClusterInfo."""
    cluster = config.cluster
    collectors = cluster.data_collectors
    return {
        "software_version": constants.RELEASE_VERSION,
        "protocol_version": constants.PROTOCOL_VERSION,
        "config_version": constants.CONFIG_VERSION,
        "os_api_version": max(constants.OS_API_VERSIONS),
        "export_version": constants.EXPORT_VERSION,
        "vcs_version": facts.vcs_version,
        "architecture": list(facts.architecture),
        "name": cluster.cluster_name,
        "master": config.master.name,
        "default_hypervisor": cluster.enabled_hypervisors[0],
        "enabled_hypervisors": list(cluster.enabled_hypervisors),
        "hvparams": {name: cluster.hvparams.get(name, {}) for name in cluster.enabled_hypervisors},
        "os_hvp": cluster.os_hvp,
        "beparams": cluster.beparams,
        "osparams": cluster.osparams,
        "ipolicy": cluster.ipolicy,
        "nicparams": cluster.nicparams,
        "ndparams": cluster.ndparams,
        "diskparams": cluster.diskparams,
        "candidate_pool_size": cluster.candidate_pool_size,
        "max_running_jobs": cluster.max_running_jobs,
        "max_tracked_jobs": cluster.max_tracked_jobs,
        "mac_prefix": cluster.mac_prefix,
        "master_netdev": cluster.master_netdev,
        "master_netmask": cluster.master_netmask,
        "use_external_mip_script": cluster.use_external_mip_script,
        "volume_group_name": cluster.volume_group_name,
        "drbd_usermode_helper": cluster.drbd_usermode_helper,
        "file_storage_dir": cluster.file_storage_dir,
        "shared_file_storage_dir": cluster.shared_file_storage_dir,
        "gluster_storage_dir": cluster.gluster_storage_dir,
        "maintain_node_health": cluster.maintain_node_health,
        "ctime": cluster.ctime,
        "mtime": cluster.mtime,
        "uuid": cluster.uuid,
        "tags": list(cluster.tags),
        "uid_pool": [list(pair) for pair in cluster.uid_pool],
        "default_iallocator": cluster.default_iallocator,
        "default_iallocator_params": cluster.default_iallocator_params,
        "reserved_lvs": list(cluster.reserved_lvs),
        "primary_ip_version": 4 if cluster.primary_ip_family == 2 else 6,
        "prealloc_wipe_disks": cluster.prealloc_wipe_disks,
        "hidden_os": list(cluster.hidden_os),
        "blacklisted_os": list(cluster.blacklisted_os),
        "enabled_disk_templates": list(cluster.enabled_disk_templates),
        "install_image": cluster.install_image,
        "instance_communication_network": cluster.instance_communication_network,
        "zeroing_image": cluster.zeroing_image,
        "compression_tools": list(cluster.compression_tools),
        "enabled_user_shutdown": cluster.enabled_user_shutdown,
        "enabled_data_collectors": {k: v["active"] for k, v in collectors.items()},
        "data_collector_interval": {k: v["interval"] for k, v in collectors.items()},
        "auto_failover_after": cluster.auto_failover_after or 0,
        "master_vote": cluster.master_vote or MasterVote.NODES,
        "auto_fence_after": cluster.auto_fence_after or 0,
        "modify_ssh_setup": cluster.modify_ssh_setup,
        "ssh_key_type": cluster.ssh_key_type,
        "ssh_key_bits": cluster.ssh_key_bits,
    }


#: Configuration values that are in memory.
_IN_MEMORY: Mapping[str, Callable[[Config], object]] = {
    "cluster_name": lambda config: config.cluster.cluster_name,
    "master_node": lambda config: config.master.name,
    "modify_ssh_setup": lambda config: config.cluster.modify_ssh_setup,
    "ssh_key_type": lambda config: config.cluster.ssh_key_type,
    "ssh_key_bits": lambda config: config.cluster.ssh_key_bits,
}


def is_quick(fields: object) -> bool:
    """Whether QueryConfigValues needs no file for its answer; takes whatever a client sent."""
    return (
        isinstance(fields, list)
        and len(fields) <= len(_IN_MEMORY)
        and all(isinstance(field, str) and field in _IN_MEMORY for field in fields)
    )


def config_values(
    config: Config, facts: Facts, fields: Sequence[str], *, drained: Callable[[], bool]
) -> list[object]:
    """The answer of QueryConfigValues; None for a field that does not exist."""
    files: dict[str, Callable[[], object]] = {
        "watcher_pause": facts.watcher_pause,
        "drain_flag": drained,
    }
    return [
        _IN_MEMORY[field](config)
        if field in _IN_MEMORY
        else files[field]()
        if field in files
        else None
        for field in fields
    ]
