"""What can be chosen when a cluster is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class InitSettings:
    """Typed options of ``gnt-cluster init``; None and empty mean the builtin value."""

    cluster_name: str
    master_netdev: str | None = None
    master_netmask: int | None = None
    secondary_ip: str | None = None
    primary_ip_version: int = 4
    enabled_hypervisors: list[str] | None = None
    hvparams: dict[str, dict[str, Any]] = field(default_factory=dict)
    beparams: dict[str, Any] = field(default_factory=dict)
    nicparams: dict[str, Any] = field(default_factory=dict)
    ndparams: dict[str, Any] = field(default_factory=dict)
    diskparams: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: keys of the instance policy that differ from the builtin one
    ipolicy: dict[str, Any] = field(default_factory=dict)
    hv_state: dict[str, Any] = field(default_factory=dict)
    disk_state: dict[str, Any] = field(default_factory=dict)
    enabled_disk_templates: list[str] | None = None
    vg_name: str | None = None
    drbd_helper: str | None = None
    file_storage_dir: str | None = None
    shared_file_storage_dir: str | None = None
    gluster_storage_dir: str | None = None
    mac_prefix: str | None = None
    candidate_pool_size: int | None = None
    #: None: the allocator inside; empty: none
    default_iallocator: str | None = None
    default_iallocator_params: dict[str, Any] = field(default_factory=dict)
    uid_pool: list[tuple[int, int]] = field(default_factory=list)
    prealloc_wipe_disks: bool = False
    maintain_node_health: bool = False
    use_external_mip_script: bool = False
    modify_etc_hosts: bool = True
    modify_ssh_setup: bool = True
    install_image: str | None = None
    zeroing_image: str | None = None
    compression_tools: list[str] | None = None
    enabled_user_shutdown: bool = False
    ssh_key_type: str | None = None
    ssh_key_bits: int | None = None
