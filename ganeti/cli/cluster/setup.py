"""gnt-cluster: create and destroy a cluster."""

from __future__ import annotations

from ganeti import constants, errors
from ganeti.cli import jobs, notices, values
from ganeti.cli import options as o
from ganeti.cli.cluster import options as c
from ganeti.cli.command import Call, take_many, take_one
from ganeti.cli.failures import Exit
from ganeti.cli.fields import override
from ganeti.cli.option import value
from ganeti.cli.programs import CLUSTER

_IGNORE_OFFLINE = value(
    "--ignore-offline-nodes",
    dest="ignore_offline_nodes",
    metavar="yes|no",
    help="Ignored: offline nodes never vote",
)


@CLUSTER.command(
    "init",
    take_one("host"),
    op=c.OP,
    without=(
        *c.WITHOUT,
        "add_uids",
        "auto_failover_after",
        "auto_fence_after",
        "data_collector_interval",
        "enabled_data_collectors",
        "force",
        "instance_communication_network",
        "master_vote",
        "max_running_jobs",
        "max_tracked_jobs",
        "remove_uids",
        "reserved_lvs",
    ),
    names={
        **c.NAMES,
        **c.POLICY_NAMES,
        "modify_etc_hosts": override(
            "--no-etc-hosts",
            kind="switch_off",
            help="Do not write the names of nodes to /etc/hosts",
        ),
        "modify_ssh_setup": override("--no-ssh-init"),
        "primary_ip_version": override(kind="int", metavar="4|6"),
        "ssh_key_bits": override(help="Length of the SSH keys of the nodes, in bits"),
        "ssh_key_type": override(help="Algorithm of the SSH keys of the nodes"),
    },
    also={
        **c.POLICY,
        "FixedSettings": ("primary_ip_version", "modify_ssh_setup"),
        "OP_CLUSTER_RENEW_CRYPTO": ("ssh_key_type", "ssh_key_bits"),
        "OP_NODE_ADD": ("secondary_ip",),
    },
    new=True,
    options=c.SPLIT_SPECS,
)
def init(call: Call) -> None:
    """Create a cluster with this server as its first node and master.

    The argument is the name of the cluster, which needs an address of its own. The daemons are
    started; other servers are then added with gnt-node add.
    """
    from ganeti.bootstrap.init import init_cluster
    from ganeti.bootstrap.settings import InitSettings

    opts = call.opts
    if opts.primary_ip_version not in (4, 6):
        raise errors.make_invalid_error(
            f"--primary-ip-version must be 4 or 6, not {opts.primary_ip_version}",
        )
    problems = init_cluster(
        InitSettings(
            cluster_name=call.args[0],
            master_netdev=opts.master_netdev,
            master_netmask=opts.master_netmask,
            secondary_ip=opts.secondary_ip,
            primary_ip_version=opts.primary_ip_version,
            enabled_hypervisors=opts.enabled_hypervisors,
            hvparams=values.index_by_name(opts.hvparams),
            beparams=values.drop_resets(opts.beparams),
            nicparams=values.drop_resets(opts.nicparams),
            ndparams=values.drop_resets(opts.ndparams),
            diskparams=values.index_by_name(opts.diskparams),
            ipolicy=c.policy(opts),
            hv_state=values.index_by_name(opts.hv_state),
            disk_state=values.disk_state(opts.disk_state),
            enabled_disk_templates=opts.enabled_disk_templates,
            vg_name=opts.vg_name,
            drbd_helper=opts.drbd_helper,
            file_storage_dir=opts.file_storage_dir,
            shared_file_storage_dir=opts.shared_file_storage_dir,
            gluster_storage_dir=opts.gluster_storage_dir,
            mac_prefix=opts.mac_prefix,
            candidate_pool_size=opts.candidate_pool_size,
            default_iallocator=opts.default_iallocator,
            default_iallocator_params=values.drop_resets(opts.default_iallocator_params),
            uid_pool=[(low, high) for low, high in values.uid_ranges(opts.uid_pool or "")],
            prealloc_wipe_disks=bool(opts.prealloc_wipe_disks),
            maintain_node_health=bool(opts.maintain_node_health),
            use_external_mip_script=bool(opts.use_external_mip_script),
            modify_etc_hosts=opts.modify_etc_hosts,
            modify_ssh_setup=opts.modify_ssh_setup,
            install_image=opts.install_image,
            zeroing_image=opts.zeroing_image,
            compression_tools=opts.compression_tools,
            enabled_user_shutdown=bool(opts.enabled_user_shutdown),
            ssh_key_type=opts.ssh_key_type,
            ssh_key_bits=opts.ssh_key_bits,
        )
    )
    for problem in problems:
        notices.warn(problem)
    jobs.run_op(call, "OP_CLUSTER_POST_INIT")


@CLUSTER.command(
    "master-failover",
    aliases=("masterfailover",),
    also={"FailoverSettings": ("no_voting", "if_silent")},
    options=(o.YES_DO_IT, _IGNORE_OFFLINE, o.DRY_RUN),
)
def master_failover(call: Call) -> None:
    """Make the node on which this runs the master.

    The nodes vote: a majority must answer, and none may have newer data. The old master is stopped
    if it can be reached; if not, the nodes refuse its calls from now on. Jobs that it was running
    fail; queued ones continue here. Where Pacemaker decides about the master, it must be told to
    move its resource instead.

    --no-voting takes over without asking. Changes that only the old master has are lost then, and
    if it still runs there are two masters; be sure that it does not.
    """
    from ganeti.bootstrap.failover import Failover
    from ganeti.bootstrap.settings import FailoverSettings

    opts = call.opts
    if opts.no_voting and not (opts.yes_do_it or opts.dry_run):
        notices.say(
            "--no-voting can make two masters and lose changes; add --yes-do-it when you are sure"
            " that the old master is gone"
        )
        raise Exit(1)
    if opts.no_voting and opts.if_silent:
        notices.say(
            "--no-voting and --if-silent exclude each other: only a vote tells who is silent"
        )
        raise Exit(2)
    how = FailoverSettings(no_voting=opts.no_voting, if_silent=opts.if_silent)
    Failover(notices.say, how).run(dry_run=opts.dry_run)


@CLUSTER.command("accept-config", options=(o.FORCE, o.DRY_RUN))
def accept_config(call: Call) -> None:
    """Accept changes made by hand in the configuration file of this node.

    The master daemon must not run. Shows what differs from what the master wrote,
    checks the result and asks. Without this, a master daemon does not start on an edited file.
    """
    from ganeti import paths
    from ganeti.bootstrap import accept_config as edited

    where = paths.current()
    edit = edited.find(where)
    if edit is None:
        notices.say(f"{where.config_file} is as the master wrote it: there is nothing to accept")
        return
    if edit.changes is None:
        notices.say("What the master had written is not known here, so no difference is shown")
    for line in edit.changes or ():
        print(line)
    for defect in edit.defects:
        notices.warn(f"the configuration will have a defect: {defect}")
    if call.opts.dry_run:
        notices.say("Dry run: nothing was accepted")
        return
    if not call.opts.force and not notices.confirm(
        f"Accept {where.config_file}?", option="--force"
    ):
        notices.say("Nothing was accepted")
        raise Exit(1)
    edited.accept(where)
    notices.say("Accepted; the master daemon can be started")


@CLUSTER.command("recover-quorum", take_many("node", 1), options=(o.YES_DO_IT, o.DRY_RUN))
def recover_quorum(call: Call) -> None:
    """Continue without dead master candidates when they were a majority.

    While a majority of the master candidates does not answer, nothing can be changed: no job is
    accepted, not even one that marks nodes offline. If those servers are dead, name them here, on
    the master node. They are marked offline and stop being candidates; the others continue.

    Refused if one of the named nodes answers. If they are not dead but cut off, they can elect
    a master of their own: switch them off first. When they come back, they are not candidates any
    more, and their copies of the configuration are removed. gnt-node modify --offline=no
    sets such a node online again.
    """
    from ganeti.bootstrap.quorum import Recovery

    opts = call.opts

    def confirm(danger: str) -> bool:
        return opts.yes_do_it or notices.confirm(danger, option="--yes-do-it")

    if not Recovery(notices.say, call.args).run(dry_run=opts.dry_run, confirm=confirm):
        raise Exit(constants.EXIT_CONFIRMATION)


@CLUSTER.command("destroy", options=(o.YES_DO_IT,))
def destroy(call: Call) -> None:
    """Destroy the cluster; only its master node may be left, and no instance.

    Stops the daemons and removes configuration, jobs and certificates of the cluster. Disks and
    log files stay.
    """
    if not call.opts.yes_do_it:
        notices.say(
            "Destroying a cluster cannot be undone; add --yes-do-it if this is really wanted"
        )
        raise Exit(1)
    from ganeti.bootstrap.destroy import finish_destroy

    jobs.run_op(call, "OP_CLUSTER_DESTROY")
    call.client.close()
    finish_destroy()
