"""Opcodes for the cluster as a whole."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ganeti.base.json_types import JsonObject
from ganeti.model.enums import MasterVote
from ganeti.opcodes import params as p
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.devices import NicParams
from ganeti.opcodes.enums import DdmSimple, DiskTemplate, Hypervisor, SshKeyType
from ganeti.opcodes.hidden import Private, Secret
from ganeti.opcodes.scalars import NonEmpty, Positive, UInt, doc


class OpClusterPostInit(OpCode, tag="OP_CLUSTER_POST_INIT", kw_only=True):
    """Run the hooks that follow the creation of a cluster."""

    exclusive_bgl: ClassVar[bool] = True
    result_type: ClassVar[str] = "bool"


class OpClusterDestroy(OpCode, tag="OP_CLUSTER_DESTROY", kw_only=True):
    """Destroy the cluster; only the master node may be left."""

    exclusive_bgl: ClassVar[bool] = True
    result_type: ClassVar[str] = "nestr"


class OpClusterQuery(OpCode, tag="OP_CLUSTER_QUERY", kw_only=True):
    """Return name, versions and settings of the cluster."""

    result_type: ClassVar[str] = "{any:any}"


class OpClusterConfigQuery(OpCode, tag="OP_CLUSTER_CONFIG_QUERY", kw_only=True):
    """Return single values about the cluster."""

    result_type: ClassVar[str] = "[any]"

    output_fields: p.OutputFields


class OpClusterRename(OpCode, tag="OP_CLUSTER_RENAME", kw_only=True):
    """Rename the cluster, and with it change the master address."""

    summary_field: ClassVar[str | None] = "name"
    exclusive_bgl: ClassVar[bool] = True
    result_type: ClassVar[str] = "nestr"

    name: p.NewName


class OpClusterActivateMasterIp(OpCode, tag="OP_CLUSTER_ACTIVATE_MASTER_IP", kw_only=True):
    """Activate the address of the cluster on the master node."""

    exclusive_bgl: ClassVar[bool] = True
    result_type: ClassVar[str] = "null"


class OpClusterDeactivateMasterIp(OpCode, tag="OP_CLUSTER_DEACTIVATE_MASTER_IP", kw_only=True):
    """Deactivate the address of the cluster on the master node."""

    exclusive_bgl: ClassVar[bool] = True
    result_type: ClassVar[str] = "null"


class OpClusterRedistConf(OpCode, tag="OP_CLUSTER_REDIST_CONF", kw_only=True):
    """Send the configuration and shared files to all nodes again."""

    rest: ClassVar[tuple[str, ...]] = ("PUT /2/redistribute-config",)
    result_type: ClassVar[str] = "null"


class OpClusterRenewCrypto(OpCode, tag="OP_CLUSTER_RENEW_CRYPTO", kw_only=True):
    """Replace certificates and secrets of the running cluster."""

    result_type: ClassVar[str] = "null"

    node_certificates: Annotated[bool, doc("Make new certificates for all nodes")] = False
    renew_ssh_keys: Annotated[bool, doc("Make new SSH keys of root for all nodes")] = False
    ssh_key_type: Annotated[SshKeyType | None, doc("Algorithm of the new SSH keys")] = None
    ssh_key_bits: Annotated[Positive | None, doc("Length of the new SSH keys")] = None
    verbose: p.Verbose = False
    debug: Annotated[bool, doc("Report details of every step")] = False
    new_cluster_certificate: Annotated[
        bool, doc("Make a new authority, and with it new certificates for all nodes")
    ] = False
    expiring: Annotated[
        bool, doc("Replace each certificate made by the cluster that expires within 90 days")
    ] = False
    new_rapi_certificate: Annotated[bool, doc("Make a new certificate for the remote API")] = False
    rapi_certificate: Annotated[
        Secret | None, doc("Certificate of the remote API and its key, PEM")
    ] = None
    new_spice_certificate: Annotated[
        bool, doc("Make a new certificate for the SPICE displays of guests")
    ] = False
    spice_certificate: Annotated[
        Secret | None, doc("Certificate of the SPICE displays of guests and its key, PEM")
    ] = None
    spice_ca_certificate: Annotated[
        str | None, doc("Certificate of the authority that issued that of SPICE, PEM")
    ] = None
    new_cluster_domain_secret: Annotated[
        bool, doc("Make a new secret, by which clusters recognise each other")
    ] = False
    cluster_domain_secret: Annotated[
        Secret | None, doc("The secret by which clusters recognise each other")
    ] = None
    new_confd_hmac_key: Annotated[bool, doc("Make a new key for requests to ganeti-confd")] = False


class OpClusterRepairDiskSizes(OpCode, tag="OP_CLUSTER_REPAIR_DISK_SIZES", kw_only=True):
    """Correct recorded disk sizes that differ from the real ones."""

    result_type: ClassVar[str] = "[(nestr,uint,nestr,uint)]"

    instances: p.InstanceNames = []


class OpClusterVerify(OpCode, tag="OP_CLUSTER_VERIFY", kw_only=True):
    """Submit jobs that verify the configuration and every node group."""

    result_type: ClassVar[str] = "JobIdListOnly"

    debug_simulate_errors: p.DebugSimulateErrors = False
    error_codes: p.ErrorCodes = False
    skip_checks: p.SkipChecks = frozenset()
    ignore_errors: p.IgnoreErrors = frozenset()
    verbose: p.Verbose = False
    group_name: p.OptionalGroupName = None
    verify_clutter: p.VerifyClutter = False


class OpClusterVerifyConfig(OpCode, tag="OP_CLUSTER_VERIFY_CONFIG", kw_only=True):
    """Verify the configuration and the certificates of the cluster."""

    result_type: ClassVar[str] = "bool"

    debug_simulate_errors: p.DebugSimulateErrors = False
    error_codes: p.ErrorCodes = False
    ignore_errors: p.IgnoreErrors = frozenset()
    verbose: p.Verbose = False


class OpClusterVerifyGroup(OpCode, tag="OP_CLUSTER_VERIFY_GROUP", kw_only=True):
    """Verify the nodes and instances of one node group."""

    summary_field: ClassVar[str | None] = "group_name"
    result_type: ClassVar[str] = "bool"

    group_name: p.GroupName
    debug_simulate_errors: p.DebugSimulateErrors = False
    error_codes: p.ErrorCodes = False
    skip_checks: p.SkipChecks = frozenset()
    ignore_errors: p.IgnoreErrors = frozenset()
    verbose: p.Verbose = False
    verify_clutter: p.VerifyClutter = False


class OpClusterVerifyDisks(OpCode, tag="OP_CLUSTER_VERIFY_DISKS", kw_only=True):
    """Submit jobs that find disks that are not active or missing."""

    result_type: ClassVar[str] = "JobIdListOnly"

    group_name: p.OptionalGroupName = None
    is_strict: p.IsStrict = True


class OpClusterPauseRecovery(OpCode, tag="OP_CLUSTER_PAUSE_RECOVERY", kw_only=True):
    """Pause automatic fencing of nodes and failover of the master, or continue it."""

    rest: ClassVar[tuple[str, ...]] = ("PUT /2/recovery/pause",)
    result_type: ClassVar[str] = "number|null"

    duration: Annotated[UInt, doc("Seconds until recovery continues by itself; 0 to continue now")]


class OpClusterPlanRecovery(OpCode, tag="OP_CLUSTER_PLAN_RECOVERY", kw_only=True):
    """Return what would happen if a node died now."""

    summary_field: ClassVar[str | None] = "node_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/recovery/plan",)
    result_type: ClassVar[str] = "{any:any}"

    node_name: p.NodeName


UidRanges = list[tuple[int, int]]
OsListChanges = list[tuple[DdmSimple, NonEmpty]]


class OpClusterSetParams(OpCode, tag="OP_CLUSTER_SET_PARAMS", kw_only=True):
    """Change settings of the cluster; what is not given stays."""

    rest: ClassVar[tuple[str, ...]] = ("PUT /2/modify",)
    result_type: ClassVar[str] = "null|JobIdListOnly"
    says_how: ClassVar[frozenset[str]] = frozenset({"force"})

    force: p.Force = False
    hv_state: p.HvState = None
    disk_state: p.DiskState = None
    vg_name: Annotated[str | None, doc("LVM volume group for disks; empty for none")] = None
    enabled_hypervisors: Annotated[
        list[Hypervisor] | None, doc("Hypervisors that instances may use; the first is the default")
    ] = None
    hvparams: Annotated[
        dict[str, JsonObject] | None, doc("Hypervisor parameters, by hypervisor")
    ] = None
    beparams: Annotated[JsonObject | None, doc("Backend parameters, such as memory and vcpus")] = (
        None
    )
    os_hvp: Annotated[
        dict[str, JsonObject] | None, doc("Hypervisor parameters of an OS, by OS and hypervisor")
    ] = None
    osparams: Annotated[dict[str, JsonObject] | None, doc("OS parameters, by OS")] = None
    osparams_private_cluster: Annotated[
        dict[str, dict[str, Private]] | None,
        doc("OS parameters that are stored but not shown, by OS"),
    ] = None
    diskparams: p.DiskTemplateParams = None
    candidate_pool_size: Annotated[
        Positive | None,
        doc("Number of master candidates, which keep a replica of the configuration"),
    ] = None
    max_running_jobs: Annotated[
        Positive | None, doc("Maximum number of operations that run at the same time")
    ] = None
    max_tracked_jobs: Annotated[
        Positive | None, doc("Number of jobs of which clients hear each change at once")
    ] = None
    uid_pool: Annotated[
        UidRanges | None, doc("User IDs for guests, as first and last of each range")
    ] = None
    add_uids: Annotated[UidRanges | None, doc("Ranges of user IDs to add")] = None
    remove_uids: Annotated[UidRanges | None, doc("Ranges of user IDs to remove")] = None
    maintain_node_health: Annotated[
        bool | None, doc("End guests and DRBD devices on nodes that are offline")
    ] = None
    prealloc_wipe_disks: Annotated[bool | None, doc("Overwrite new disks before use")] = None
    nicparams: Annotated[NicParams | None, doc("Parameters of NICs")] = None
    ndparams: p.NodeParams = None
    ipolicy: p.IPolicy = None
    drbd_helper: Annotated[str | None, doc("User-mode helper of DRBD; empty for none")] = None
    default_iallocator: Annotated[
        str | None, doc("Allocator to use when none is named; empty for none")
    ] = None
    default_iallocator_params: Annotated[
        JsonObject | None, doc("Parameters of the default allocator")
    ] = None
    mac_prefix: p.MacPrefix = None
    master_netdev: Annotated[
        str | None, doc("Network device that carries the address of the cluster")
    ] = None
    master_netmask: Annotated[UInt | None, doc("Prefix length of the address of the cluster")] = (
        None
    )
    reserved_lvs: Annotated[
        list[NonEmpty] | None, doc("Patterns of logical volumes that the cluster never changes")
    ] = None
    hidden_os: Annotated[OsListChanges | None, doc("Changes of the list of hidden OSes")] = None
    blacklisted_os: Annotated[
        OsListChanges | None, doc("Changes of the list of OSes that are not to be installed")
    ] = None
    use_external_mip_script: Annotated[
        bool | None, doc("Let a script of the administrator set the master address")
    ] = None
    enabled_disk_templates: Annotated[
        list[DiskTemplate] | None,
        doc("Disk templates that instances may use; the first is the default"),
    ] = None
    modify_etc_hosts: Annotated[
        bool | None, doc("Keep the names of nodes in /etc/hosts of all nodes")
    ] = None
    file_storage_dir: Annotated[str | None, doc("Directory for file disks")] = None
    shared_file_storage_dir: Annotated[
        str | None, doc("Directory for file disks on shared storage")
    ] = None
    gluster_storage_dir: Annotated[str | None, doc("Directory where Gluster is mounted")] = None
    install_image: Annotated[
        str | None, doc("Image of helper guests that install an OS: its name, a URL or a path")
    ] = None
    instance_communication_network: Annotated[
        str | None, doc("Network between guests and their nodes; empty for none")
    ] = None
    zeroing_image: Annotated[
        str | None, doc("Image of helper guests that zero free space: its name, a URL or a path")
    ] = None
    compression_tools: Annotated[
        list[NonEmpty] | None, doc("Programs that may compress transfers")
    ] = None
    enabled_user_shutdown: Annotated[
        bool | None, doc("Leave a guest stopped if its user shut it down from inside")
    ] = None
    auto_failover_after: Annotated[
        UInt | None,
        doc("Seconds without a call of the master until a candidate takes over; 0 for never"),
    ] = None
    master_vote: Annotated[
        MasterVote | None,
        doc("Who decides about the master: nodes (by a vote), an etcd cluster, or Pacemaker"),
    ] = None
    auto_fence_after: Annotated[
        UInt | None,
        doc("Seconds without an answer of a node until the master fences it; 0 for never"),
    ] = None
    enabled_data_collectors: Annotated[dict[str, bool] | None, doc("Which data collectors run")] = (
        None
    )
    data_collector_interval: Annotated[
        dict[str, int] | None, doc("Microseconds between two runs, by data collector")
    ] = None
