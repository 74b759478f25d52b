"""The cluster object: everything that belongs to the whole."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ganeti.base.json_types import JsonObject
from ganeti.base.typed import doc
from ganeti.model.base import Tagged
from ganeti.model.enums import MasterVote
from ganeti.model.ids import NodeUuid
from ganeti.model.notification import Notification

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
    left_out_empty: ClassVar[frozenset[str]] = frozenset({"notifications"})

    rsahostkeypub: Annotated[
        str, doc("Public RSA host key of SSH in base64; kept for other versions, without effect")
    ] = ""
    dsahostkeypub: Annotated[
        str | None,
        doc("Public DSA host key of SSH in base64; kept for other versions, without effect"),
    ] = None
    highest_used_port: Annotated[
        int, doc("Highest TCP port that was ever given to a disk or a console")
    ] = 10999
    tcpudp_port_pool: Annotated[
        tuple[int, ...], doc("TCP ports that were returned; they are given first")
    ] = ()
    mac_prefix: str = "aa:00:00"
    volume_group_name: Annotated[str | None, doc("Volume group for disks; unset for none")] = None
    reserved_lvs: tuple[str, ...] = ()
    drbd_usermode_helper: Annotated[
        str | None, doc("Program that DRBD runs on events; unset without DRBD")
    ] = None
    master_node: Annotated[NodeUuid, doc("UUID of the master node")]
    master_ip: Annotated[str, doc("Address of the cluster, which the master node has")]
    master_netdev: str
    master_netmask: int
    use_external_mip_script: bool = False
    cluster_name: Annotated[str, doc("Name of the cluster")]
    file_storage_dir: str = ""
    shared_file_storage_dir: str = ""
    gluster_storage_dir: str = ""
    enabled_hypervisors: tuple[str, ...] = ()
    hvparams: Annotated[
        dict[str, JsonObject], doc("All hypervisor parameters with their values, by hypervisor")
    ] = {}
    os_hvp: dict[str, dict[str, JsonObject]] = {}
    beparams: Annotated[
        dict[str, JsonObject],
        doc("All back-end parameters with their values, below the key default"),
    ] = {}
    osparams: dict[str, JsonObject] = {}
    osparams_private_cluster: dict[str, JsonObject] = {}
    nicparams: Annotated[
        dict[str, JsonObject],
        doc("All parameters of NICs with their values, below the key default"),
    ] = {}
    ndparams: Annotated[JsonObject, doc("All node parameters with their values")] = {}
    diskparams: dict[str, JsonObject] = {}
    candidate_pool_size: int = 10
    modify_etc_hosts: bool = False
    modify_ssh_setup: Annotated[
        bool, doc("Let root of master candidates log in to all nodes; only chosen by init")
    ] = False
    maintain_node_health: bool = False
    uid_pool: Annotated[
        tuple[tuple[int, int], ...],
        doc("User IDs for guests of kvm, as first and last of each range"),
    ] = ()
    default_iallocator: str = ""
    default_iallocator_params: JsonObject = {}
    hidden_os: Annotated[tuple[str, ...], doc("OS definitions that lists do not show")] = ()
    blacklisted_os: Annotated[
        tuple[str, ...], doc("OS definitions with which no instance may be installed")
    ] = ()
    primary_ip_family: Annotated[
        int, doc("Family of the primary addresses of nodes: 2 for IPv4, 10 for IPv6")
    ] = 2
    prealloc_wipe_disks: bool = False
    ipolicy: JsonObject = {}
    hv_state_static: Annotated[JsonObject, doc("What is set aside of hypervisors")] = {}
    disk_state_static: Annotated[JsonObject, doc("What is set aside of volume groups")] = {}
    enabled_disk_templates: tuple[str, ...] = ()
    candidate_certs: Annotated[
        dict[NodeUuid, str],
        doc("SHA1 digest of the client certificate of each master candidate, by UUID of the node"),
    ] = {}
    max_running_jobs: int = 20
    max_tracked_jobs: int = 25
    install_image: str = ""
    instance_communication_network: str = ""
    zeroing_image: str = ""
    compression_tools: tuple[str, ...] = ("gzip", "gzip-fast", "gzip-slow")
    enabled_user_shutdown: bool = False
    data_collectors: Annotated[
        dict[str, JsonObject],
        doc("For each data collector whether it is active, and its interval in microseconds"),
    ] = {}
    auto_failover_after: Annotated[
        int | None,
        doc("Seconds without a sign of the master until a candidate takes its place"),
    ] = None
    master_vote: Annotated[
        MasterVote | None,
        doc("Who decides about the master, if not the nodes by a vote: etcd or Pacemaker"),
    ] = None
    auto_fence_after: Annotated[
        int | None, doc("Seconds without an answer of a node until the master fences it")
    ] = None
    recovery_paused_until: Annotated[
        float | None,
        doc("Until when no node is fenced and no master replaced, in seconds since 1970"),
    ] = None
    ssh_key_type: Annotated[str, doc("Algorithm of the SSH keys of nodes: rsa, dsa or ecdsa")] = (
        "rsa"
    )
    notifications: Annotated[
        dict[str, Notification], doc("Where the master sends notices of events, by name")
    ] = {}
    notifying_node: Annotated[
        NodeUuid | None, doc("UUID of the node whose master daemon sent notices last")
    ] = None
    ssh_key_bits: Annotated[int, doc("Length of the SSH keys of nodes, in bits")] = 2048

    def find_recovery_pause(self, now: float) -> float | None:
        """Until when recovery pauses; None when it does not."""
        until = self.recovery_paused_until
        return until if until is not None and until > now else None
