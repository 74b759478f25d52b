"""gnt-cluster: change its settings, name and address."""

from __future__ import annotations

from pathlib import Path

from ganeti import errors
from ganeti.cli import jobs, notices, values
from ganeti.cli import options as o
from ganeti.cli.cluster import options as c
from ganeti.cli.command import Call, take_one
from ganeti.cli.failures import Exit
from ganeti.cli.fields import override
from ganeti.cli.programs import CLUSTER


def _collectors(given: values.KeyVals) -> dict[str, bool]:
    result = {}
    for name, text in given.items():
        try:
            result[name] = text if isinstance(text, bool) else values.boolean(str(text))
        except ValueError as err:
            raise errors.make_invalid_error(f"data collector {name}: {err}") from None
    return result


def _intervals(given: values.KeyVals) -> dict[str, int]:
    """Microseconds, as the opcode wants them."""
    result = {}
    for name, text in given.items():
        try:
            result[name] = round(values.number(str(text)) * 1_000_000)
        except ValueError as err:
            raise errors.make_invalid_error(f"data collector {name}: {err}") from None
    return result


@CLUSTER.command(
    "modify",
    op=c.OP,
    without=(*c.WITHOUT, "gluster_storage_dir"),
    names={
        **c.NAMES,
        **c.POLICY_NAMES,
        "data_collector_interval": override(
            metavar="<collector>=<seconds>,...",
            help="Seconds between two runs, by data collector",
            take=_intervals,
        ),
        "enabled_data_collectors": override(metavar="<collector>=yes|no,...", take=_collectors),
        **{
            name: override(kind="string", metavar="<first>-<last>,...", take=values.uid_ranges)
            for name in ("add_uids", "remove_uids", "uid_pool")
        },
    },
    also=c.POLICY,
    options=o.JOB_OPTIONS,
)
def modify(call: Call) -> int:
    """Change settings of the cluster; others keep their values."""
    children = jobs.children(jobs.run_changes(call, ipolicy=c.policy(call.opts) or None))
    return jobs.exit_code(jobs.wait_many(call, children, announce=True)) if children else 0


@CLUSTER.command(
    "rename",
    take_one("host", "name"),
    op="OP_CLUSTER_RENAME",
    options=(o.FORCE, o.DRY_RUN),
    usage="<new-name>",
)
def rename(call: Call) -> None:
    """Rename the cluster, and with it change its address."""
    new = call.args[0]
    old = call.client.query_config_values(["cluster_name"])[0]
    if not call.opts.force and not notices.confirm(
        f"Rename the cluster from {old} to {new}? Connections to the old address break.",
        option="-f",
    ):
        raise Exit(1)
    result = jobs.run(call)
    if result:
        print(f"Cluster renamed from '{old}' to '{result}'")


CLUSTER.submits("activate-master-ip", "OP_CLUSTER_ACTIVATE_MASTER_IP", options=())


def _content(path: str) -> str:
    """Content of a file on this machine; OpPrereqError when it cannot be read."""
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as err:
        reason = err.strerror if isinstance(err, OSError) else "is not a text file in ASCII"
        raise errors.make_invalid_error(f"{path}: {reason}") from err


@CLUSTER.command(
    "renew-crypto",
    op="OP_CLUSTER_RENEW_CRYPTO",
    names={
        "node_certificates": override("--new-node-certificates"),
        "renew_ssh_keys": override("--new-ssh-keys"),
        "verbose": override("-v", "--verbose"),
        **{
            name: override(kind="string", metavar="<file>", take=_content)
            for name in (
                "rapi_certificate",
                "spice_certificate",
                "spice_ca_certificate",
                "cluster_domain_secret",
            )
        },
    },
    without=("debug",),
    options=(*o.JOB_OPTIONS, o.NO_SSH_KEY_CHECK, o.FORCE),
)
def renew_crypto(call: Call) -> None:
    """Replace certificates and secrets of the running cluster.

    Old certificates are accepted until all nodes that answer have new ones, so nothing is
    interrupted. Without options the command ends a renewal that was interrupted, and renews nodes
    that were down during one.
    """
    jobs.run(call)


CLUSTER.submits(
    "redist-conf",
    "OP_CLUSTER_REDIST_CONF",
    options=(*o.JOB_OPTIONS, o.YES_DO_IT),
)


@CLUSTER.command("deactivate-master-ip", op="OP_CLUSTER_DEACTIVATE_MASTER_IP", options=(o.CONFIRM,))
def deactivate_master_ip(call: Call) -> None:
    """Deactivate the address of the cluster on the master node."""
    if not call.opts.confirm and not notices.confirm(
        "Deactivate the address of the cluster on the master node? Remote clients lose it.",
        option="--yes",
    ):
        raise Exit(1)
    jobs.run(call)
