"""Settings for a new cluster, and for a failover of the master."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from ganeti.base.json_types import JsonObject
from ganeti.base.typed import doc


class FixedSettings(msgspec.Struct, kw_only=True):
    """Settings that a new cluster gets and that never change; ``init`` has options from here."""

    primary_ip_version: Annotated[Literal[4, 6], doc("Version of the addresses of the nodes")] = 4
    modify_ssh_setup: Annotated[
        bool, doc("Manage the keys with which root of nodes logs in to nodes")
    ] = True


class InitSettings(FixedSettings, kw_only=True):
    """Typed options of ``gnt-cluster init``; None and empty mean the builtin value."""

    cluster_name: str
    master_netdev: str | None = None
    master_netmask: int | None = None
    secondary_ip: str | None = None
    enabled_hypervisors: list[str] | None = None
    hvparams: dict[str, JsonObject] = {}
    beparams: JsonObject = {}
    nicparams: JsonObject = {}
    ndparams: JsonObject = {}
    diskparams: dict[str, JsonObject] = {}
    #: keys of the instance policy that differ from the builtin one
    ipolicy: JsonObject = {}
    hv_state: JsonObject = {}
    disk_state: JsonObject = {}
    enabled_disk_templates: list[str] | None = None
    vg_name: str | None = None
    drbd_helper: str | None = None
    file_storage_dir: str | None = None
    shared_file_storage_dir: str | None = None
    gluster_storage_dir: str | None = None
    mac_prefix: str | None = None
    candidate_pool_size: int | None = None
    #: None: the built-in allocator; empty: none
    default_iallocator: str | None = None
    default_iallocator_params: JsonObject = {}
    uid_pool: list[tuple[int, int]] = []
    prealloc_wipe_disks: bool = False
    maintain_node_health: bool = False
    use_external_mip_script: bool = False
    modify_etc_hosts: bool = True
    install_image: str | None = None
    zeroing_image: str | None = None
    compression_tools: list[str] | None = None
    enabled_user_shutdown: bool = False
    ssh_key_type: str | None = None
    ssh_key_bits: int | None = None


class FailoverSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How careful a master failover is; ``gnt-cluster master-failover`` has options from here."""

    no_voting: Annotated[
        bool, doc("Become master without a vote of the other nodes; see above")
    ] = False
    if_silent: Annotated[
        bool,
        doc(
            "Continue only if no candidate has heard from the master for the time in"
            " --auto-failover-after of the cluster; node daemons use this"
        ),
    ] = False
