"""The cluster object: everything that belongs to the whole."""

from __future__ import annotations

from typing import Any

from ganeti.model.base import Tagged
from ganeti.model.names import NodeUuid

#: Names of the data collectors of the monitoring daemon.
DATA_COLLECTORS = (
    "cpu-avg-load",
    "diskstats",
    "drbd",
    "inst-status-xen",
    "lv",
    "xen-cpu-avg-load",
)


class Cluster(Tagged, frozen=True, kw_only=True):
    rsahostkeypub: str = ""
    dsahostkeypub: str | None = None
    highest_used_port: int = 10999
    #: ports that were returned, taken again first
    tcpudp_port_pool: tuple[int, ...] = ()
    mac_prefix: str = "aa:00:00"
    volume_group_name: str | None = None
    reserved_lvs: tuple[str, ...] = ()
    drbd_usermode_helper: str | None = None
    master_node: NodeUuid
    master_ip: str
    master_netdev: str
    master_netmask: int
    use_external_mip_script: bool = False
    cluster_name: str
    file_storage_dir: str = ""
    shared_file_storage_dir: str = ""
    gluster_storage_dir: str = ""
    enabled_hypervisors: tuple[str, ...] = ()
    #: complete parameter sets per hypervisor
    hvparams: dict[str, dict[str, Any]] = {}
    os_hvp: dict[str, dict[str, dict[str, Any]]] = {}
    #: {"default": complete set}
    beparams: dict[str, dict[str, Any]] = {}
    osparams: dict[str, dict[str, Any]] = {}
    osparams_private_cluster: dict[str, dict[str, Any]] = {}
    #: {"default": complete set}
    nicparams: dict[str, dict[str, Any]] = {}
    ndparams: dict[str, Any] = {}
    diskparams: dict[str, dict[str, Any]] = {}
    candidate_pool_size: int = 10
    modify_etc_hosts: bool = False
    modify_ssh_setup: bool = False
    maintain_node_health: bool = False
    uid_pool: tuple[tuple[int, int], ...] = ()
    default_iallocator: str = ""
    default_iallocator_params: dict[str, Any] = {}
    hidden_os: tuple[str, ...] = ()
    blacklisted_os: tuple[str, ...] = ()
    #: 2 (IPv4) or 10 (IPv6)
    primary_ip_family: int = 2
    prealloc_wipe_disks: bool = False
    ipolicy: dict[str, Any] = {}
    hv_state_static: dict[str, Any] = {}
    disk_state_static: dict[str, Any] = {}
    enabled_disk_templates: tuple[str, ...] = ()
    #: node uuid -> SHA1 digest of the client certificate of a master candidate
    candidate_certs: dict[NodeUuid, str] = {}
    max_running_jobs: int = 20
    max_tracked_jobs: int = 25
    install_image: str = ""
    instance_communication_network: str = ""
    zeroing_image: str = ""
    compression_tools: tuple[str, ...] = ("gzip", "gzip-fast", "gzip-slow")
    enabled_user_shutdown: bool = False
    data_collectors: dict[str, dict[str, Any]] = {}
    ssh_key_type: str = "rsa"
    ssh_key_bits: int = 2048
