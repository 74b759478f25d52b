"""Names of the ``ssconf_<key>`` files: small facts of the cluster that every node has as text.

Scripts and other tools read these files, so names and contents stay as they are.
"""

from __future__ import annotations

from typing import Final

from ganeti.model.enums import HypervisorName

#: Largest content of one file in bytes.
MAX_SIZE: Final = 131072
#: File mode; the files are for everybody to read.
MODE: Final = 0o444
#: File (below the lock directory) that is locked while files are being replaced.
LOCK_NAME: Final = "ganeti-ssconf.lock"

MASTER_NODE: Final = "master_node"
NODE_LIST: Final = "node_list"
NODE_PRIMARY_IPS: Final = "node_primary_ips"
HA_INSTANCES: Final = "ha_instances"
HYPERVISOR_LIST: Final = "hypervisor_list"
MASTER_CANDIDATES_CERTS: Final = "master_candidates_certs"
RECOVERY_PAUSED_UNTIL: Final = "recovery_paused_until"
PRIMARY_IP_FAMILY: Final = "primary_ip_family"
FILE_STORAGE_DIR: Final = "file_storage_dir"
GLUSTER_STORAGE_DIR: Final = "gluster_storage_dir"
SHARED_FILE_STORAGE_DIR: Final = "shared_file_storage_dir"

_GENERAL: Final = (
    "cluster_name",
    "cluster_tags",
    "enabled_user_shutdown",
    FILE_STORAGE_DIR,
    GLUSTER_STORAGE_DIR,
    HA_INSTANCES,
    HYPERVISOR_LIST,
    "instance_list",
    "maintain_node_health",
    "master_candidates",
    MASTER_CANDIDATES_CERTS,
    "master_candidates_ips",
    "master_ip",
    "master_netdev",
    "master_netmask",
    MASTER_NODE,
    "networks",
    NODE_LIST,
    NODE_PRIMARY_IPS,
    "node_secondary_ips",
    "node_vm_capable",
    "nodegroups",
    "offline_nodes",
    "online_nodes",
    PRIMARY_IP_FAMILY,
    RECOVERY_PAUSED_UNTIL,
    "release_version",
    SHARED_FILE_STORAGE_DIR,
    "ssh_ports",
    "uid_pool",
)

#: Every key, sorted.
KEYS: Final[tuple[str, ...]] = tuple(
    sorted((*_GENERAL, *(f"hvparams_{name.value}" for name in HypervisorName)))
)


def content(value: str) -> bytes:
    """Return the content of the file of a value: the value, and a newline unless it is empty."""
    data = value.encode("utf-8")
    return data if not data or data.endswith(b"\n") else data + b"\n"
