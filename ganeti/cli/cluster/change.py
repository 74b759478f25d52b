"""gnt-cluster: change its settings, name and address."""

from __future__ import annotations

from typing import Any

from ganeti import errors
from ganeti.cli import jobs, notices, params, values
from ganeti.cli import options as o
from ganeti.cli.cluster import options as c
from ganeti.cli.command import Call, one
from ganeti.cli.failures import Exit
from ganeti.cli.option import ignored, value
from ganeti.cli.programs import CLUSTER

_INVAL = errors.ErrorCode.INVAL

_MAX_RUNNING = value(
    "--max-running-jobs",
    dest="max_running_jobs",
    kind="int",
    help="How many operations may run at the same time; holds at once",
)
_MAX_TRACKED = value(
    "--max-tracked-jobs",
    dest="max_tracked_jobs",
    kind="int",
    help="Kept for other tools, without effect: all running jobs are watched",
)
_COMMUNICATION_NETWORK = value(
    "--instance-communication-network",
    dest="instance_communication_network",
    metavar="<network>",
    help="Network between guests and their nodes; empty for none",
)
_ADD_UIDS = value(
    "--add-uids", dest="add_uids", metavar="<first>-<last>,...", help="User ids to add"
)
_REMOVE_UIDS = value(
    "--remove-uids", dest="remove_uids", metavar="<first>-<last>,...", help="User IDs to remove"
)
_RESERVED_LVS = value(
    "--reserved-lvs",
    dest="reserved_lvs",
    metavar="<pattern>,...",
    help="Logical volumes that are not to be touched",
)
_ETC_HOSTS = value(
    "--modify-etc-hosts",
    dest="modify_etc_hosts",
    kind="bool",
    help="Whether nodes are listed in their hosts files",
)
_COLLECTORS = value(
    "--enabled-data-collectors",
    dest="enabled_data_collectors",
    kind="keyval",
    default={},
    metavar="<collector>=yes|no,...",
    help="Which data collectors run",
)
_INTERVALS = value(
    "--data-collector-interval",
    dest="data_collector_interval",
    kind="keyval",
    default={},
    metavar="<collector>=<seconds>,...",
    help="Time between two runs of a data collector",
)

#: Options whose value goes into the opcode parameter of the same name as it is.
_PLAIN = (
    "candidate_pool_size",
    "max_running_jobs",
    "max_tracked_jobs",
    "install_image",
    "instance_communication_network",
    "mac_prefix",
    "master_netdev",
    "master_netmask",
    "vg_name",
    "maintain_node_health",
    "drbd_helper",
    "default_iallocator",
    "prealloc_wipe_disks",
    "use_external_mip_script",
    "modify_etc_hosts",
    "enabled_user_shutdown",
    "file_storage_dir",
    "shared_file_storage_dir",
    "zeroing_image",
)


@CLUSTER.command(
    "modify",
    options=(
        o.FORCE,
        o.BACKEND,
        c.CANDIDATE_POOL_SIZE,
        _MAX_RUNNING,
        _MAX_TRACKED,
        c.INSTALL_IMAGE,
        _COMMUNICATION_NETWORK,
        c.ENABLED_HYPERVISORS,
        o.HV_LIST,
        c.MAC_PREFIX,
        c.MASTER_NETDEV,
        c.MASTER_NETMASK,
        c.NIC_PARAMS,
        c.VG_NAME,
        c.MAINTAIN_NODE_HEALTH,
        c.UID_POOL,
        _ADD_UIDS,
        _REMOVE_UIDS,
        c.DRBD_HELPER,
        c.DEFAULT_IALLOCATOR,
        c.DEFAULT_IALLOCATOR_PARAMS,
        _RESERVED_LVS,
        c.WIPE_DISKS,
        o.NODE_PARAMS,
        c.EXTERNAL_MIP_SCRIPT,
        c.DISK_PARAMS,
        o.HV_STATE,
        o.DISK_STATE,
        c.ENABLED_DISK_TEMPLATES,
        *c.POLICY_OPTIONS,
        _ETC_HOSTS,
        c.USER_SHUTDOWN,
        c.FILE_DIR,
        c.SHARED_FILE_DIR,
        c.ZEROING_IMAGE,
        c.COMPRESSION_TOOLS,
        _COLLECTORS,
        _INTERVALS,
        *o.JOB_OPTIONS,
    ),
)
def modify(call: Call) -> int:
    """Change settings of the cluster; what is not named stays."""
    changes = _changes(call)
    if not changes:
        raise errors.OpPrereqError("Nothing to change: give at least one option", _INVAL)
    result = jobs.run_op(call, "OP_CLUSTER_SET_PARAMS", force=call.opts.force, **changes)
    children = jobs.children(result)
    return jobs.exit_code(jobs.wait_many(call, children, announce=True)) if children else 0


def _changes(call: Call) -> dict[str, Any]:
    opts = call.opts
    found: dict[str, Any] = {name: getattr(opts, name) for name in _PLAIN}
    found |= {
        name: values.uid_ranges(text) if (text := getattr(opts, name)) is not None else None
        for name in ("uid_pool", "add_uids", "remove_uids")
    }
    found |= {
        name: params.words(getattr(opts, name), what)
        for name, what in (
            ("enabled_hypervisors", "hypervisor"),
            ("enabled_disk_templates", "disk template"),
            ("reserved_lvs", "pattern"),
            ("compression_tools", "program"),
        )
    }
    found |= {
        name: values.resets_as_default(given) if (given := getattr(opts, name)) else None
        for name in ("beparams", "nicparams", "ndparams", "default_iallocator_params")
    }
    found |= {
        "hvparams": params.by_name(opts.hvparams) or None,
        "diskparams": params.by_name(opts.diskparams) or None,
        "hv_state": params.by_name(opts.hv_state) or None,
        "disk_state": params.disk_state(opts.disk_state) or None,
        "ipolicy": c.policy(opts) or None,
        "enabled_data_collectors": _collectors(opts.enabled_data_collectors) or None,
        "data_collector_interval": _intervals(opts.data_collector_interval) or None,
    }
    return {name: change for name, change in found.items() if change is not None}


def _collectors(given: values.KeyVals) -> dict[str, bool]:
    result = {}
    for name, text in given.items():
        try:
            result[name] = text if isinstance(text, bool) else values.boolean(str(text))
        except ValueError as err:
            raise errors.OpPrereqError(f"data collector {name}: {err}", _INVAL) from None
    return result


def _intervals(given: values.KeyVals) -> dict[str, int]:
    """Microseconds, as the opcode wants them."""
    result = {}
    for name, text in given.items():
        try:
            result[name] = round(values.number(str(text)) * 1_000_000)
        except ValueError as err:
            raise errors.OpPrereqError(f"data collector {name}: {err}", _INVAL) from None
    return result


@CLUSTER.command("rename", one("host"), options=(o.FORCE, o.DRY_RUN), usage="<new-name>")
def rename(call: Call) -> None:
    """Give the cluster another name, and with it another address."""
    new = call.args[0]
    old = call.client.query_config_values(["cluster_name"])[0]
    if not call.opts.force and not notices.confirmed(
        f"Rename the cluster from {old} to {new}? Connections to the old address break.",
        option="-f",
    ):
        raise Exit(1)
    result = jobs.run_op(call, "OP_CLUSTER_RENAME", name=new)
    if result:
        print(f"Cluster renamed from '{old}' to '{result}'")


@CLUSTER.command(
    "redist-conf",
    options=(*o.JOB_OPTIONS, ignored("--yes-do-it", help="Accepted for scripts; no effect")),
)
def redist_conf(call: Call) -> None:
    """Send configuration and shared files to all nodes again."""
    jobs.run_op(call, "OP_CLUSTER_REDIST_CONF")


@CLUSTER.command("activate-master-ip")
def activate_master_ip(call: Call) -> None:
    """Put the address of the cluster on the master node."""
    jobs.run_op(call, "OP_CLUSTER_ACTIVATE_MASTER_IP")


@CLUSTER.command("deactivate-master-ip", options=(o.CONFIRM,))
def deactivate_master_ip(call: Call) -> None:
    """Take the address of the cluster off the master node."""
    if not call.opts.confirm and not notices.confirmed(
        "Take the address of the cluster off the master node? Remote clients lose it.",
        option="--yes",
    ):
        raise Exit(1)
    jobs.run_op(call, "OP_CLUSTER_DEACTIVATE_MASTER_IP")
