"""gnt-cluster: what the cluster is and how it is set."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ganeti import paths
from ganeti.base import units
from ganeti.base.json_types import JsonObject
from ganeti.cli import info, jobs, output, ssconf, tags
from ganeti.cli import options as o
from ganeti.cli.command import Args, Call, choice, take_one
from ganeti.cli.failures import Exit
from ganeti.cli.programs import CLUSTER

tags.add_commands(CLUSTER, "cluster", "")


@CLUSTER.command("getmaster")
def getmaster(_call: Call) -> None:
    """Show the name of the master node; works on every node of the cluster."""
    print(ssconf.master())


@CLUSTER.command("version")
def version(call: Call) -> None:
    """Show versions of the software and of its interfaces."""
    found = call.client.query_cluster_info()
    for title, key in (
        ("Software version", "software_version"),
        ("Internode protocol", "protocol_version"),
        ("Configuration format", "config_version"),
        ("OS api version", "os_api_version"),
        ("Export interface", "export_version"),
        ("VCS version", "vcs_version"),
    ):
        print(f"{title}: {found[key]}")


@CLUSTER.command("master-ping")
def master_ping(call: Call) -> None:
    """Check silently whether the master daemon answers."""
    call.client.query_cluster_info()


@CLUSTER.command("search-tags", take_one("pattern"), options=(o.PRIORITY,))
def search_tags(call: Call) -> int:
    """Find the objects whose tags match a regular expression; fails when there are none."""
    found = jobs.run_op(call, "OP_TAGS_SEARCH", pattern=call.args[0])
    output.print_lines([f"{path} {tag}" for path, tag in sorted(found)])
    return 0 if found else 1


@CLUSTER.command("queue", choice("drain", "undrain", "info"))
def queue(call: Call) -> None:
    """Refuse new jobs (drain), accept them again (undrain), or show whether they are refused."""
    word = call.args[0]
    if word == "info":
        drained = call.client.query_config_values(["drain_flag"])[0]
        print(f"The drain flag is {'set' if drained else 'unset'}")
    else:
        call.client.set_drain_flag(word == "drain")


@CLUSTER.command(
    "watcher",
    choice("pause", "continue", "info"),
    Args("duration", least=0),
    usage="{pause <duration>|continue|info}",
)
def watcher(call: Call) -> None:
    """Pause the watcher, let it continue, or show whether it is paused.

    The duration is a number of seconds, or has a unit as in 30m, 4h or 1d.
    """
    word, *rest = call.args
    if (word == "pause") != bool(rest):
        from ganeti.cli import notices

        notices.say(
            "Error: Command watcher pause expects a duration such as 30m"
            if word == "pause"
            else f"Error: Command watcher {word} expects no more arguments"
        )
        raise Exit(1)
    if word == "pause":
        until = call.client.set_watcher_pause(call.clock.now() + units.parse_timespec(rest[0]))
        print(_pause_text(until, call.clock.now()))
    elif word == "continue":
        call.client.set_watcher_pause(None)
        print("The watcher is no longer paused.")
    else:
        pause = call.client.query_config_values(["watcher_pause"])[0]
        print(_pause_text(pause, call.clock.now()))


def _pause_text(until: float | None, now: float) -> str:
    if until is None or until < now:
        return "The watcher is not paused."
    return f"The watcher is paused until {time.ctime(until)}."


@CLUSTER.command("info", aliases=("show",), options=(o.ROMAN, o.INFO_FORMAT))
def show_info(call: Call) -> None:
    """Show all settings of the cluster."""
    found = call.client.query_cluster_info()
    sections: list[info.Pair] = [
        ("Cluster name", found["name"]),
        ("Cluster UUID", found["uuid"]),
        ("Creation time", output.timestamp(found["ctime"])),
        ("Modification time", output.timestamp(found["mtime"])),
        ("Master node", found["master"]),
        ("Architecture (this node)", "{} ({})".format(*found["architecture"])),
        ("Tags", ", ".join(sorted(found["tags"])) or "(none)"),
        ("Default hypervisor", found["default_hypervisor"]),
        ("Enabled hypervisors", ", ".join(found["enabled_hypervisors"])),
        ("Hypervisor parameters", found["hvparams"]),
        ("OS-specific hypervisor parameters", found["os_hvp"]),
        ("OS parameters", found["osparams"]),
        ("Hidden OSes", ", ".join(found["hidden_os"])),
        ("Blacklisted OSes", ", ".join(found["blacklisted_os"])),
        ("Cluster parameters", _parameters(found)),
        ("Default node parameters", found["ndparams"]),
        ("Default instance parameters", found["beparams"]),
        ("Default nic parameters", found["nicparams"].get("default", {})),
        ("Default disk parameters", found["diskparams"]),
        ("Instance policy - limits for instances", info.ipolicy(found["ipolicy"])),
        ("Data collectors", _collectors(found)),
    ]
    reserved = _reservations(call)
    if reserved:
        sections.append(("Reservations", reserved))
    info.show(call, sections)


def _reservations(call: Call) -> list[info.Pair]:
    """Reservations; nothing when there are none."""
    fields = ["be/maxmem", "be/vcpus", "disk_usage", "expires"]
    rows = call.client.query("instance", fields, ["?", "forthcoming"]).data
    if not rows:
        return []
    memory, vcpus, disk = (
        sum(row[column][1] for row in rows if row[column][1] is not None) for column in range(3)
    )
    ends = sorted(row[3][1] for row in rows if row[3][1] is not None)
    return [
        ("instances", len(rows)),
        ("memory", units.format_size(memory)),
        ("vcpus", vcpus),
        ("disk space", units.format_size(disk)),
        ("next to expire", output.timestamp(ends[0]) if ends else "none"),
    ]


def _patience(seconds: int) -> str:
    return f"{seconds} s" if seconds else "never"


def _parameters(found: JsonObject) -> list[info.Pair]:
    where = paths.current()
    providers = ("/srv/ganeti", "/usr/local/lib/ganeti", "/usr/lib/ganeti", "/usr/share/ganeti")
    return [
        ("candidate pool size", found["candidate_pool_size"]),
        ("maximal number of jobs running simultaneously", found["max_running_jobs"]),
        (
            "maximal number of jobs simultaneously tracked by the scheduler",
            found["max_tracked_jobs"],
        ),
        ("mac prefix", found["mac_prefix"]),
        ("master netdev", found["master_netdev"]),
        ("master netmask", found["master_netmask"]),
        ("use external master IP address setup script", found["use_external_mip_script"]),
        ("lvm volume group", found["volume_group_name"]),
        ("lvm reserved volumes", ", ".join(found["reserved_lvs"]) or "(none)"),
        ("drbd usermode helper", found["drbd_usermode_helper"]),
        ("file storage path", found["file_storage_dir"]),
        ("shared file storage path", found["shared_file_storage_dir"]),
        ("gluster storage path", found["gluster_storage_dir"]),
        ("maintenance of node health", found["maintain_node_health"]),
        ("uid pool", _uid_pool(found["uid_pool"])),
        ("default instance allocator", found["default_iallocator"]),
        ("default instance allocator parameters", found["default_iallocator_params"]),
        ("primary ip version", found["primary_ip_version"]),
        ("preallocation wipe disks", found["prealloc_wipe_disks"]),
        ("OS search path", ", ".join(str(path) for path in where.os_search_path)),
        (
            "ExtStorage Providers search path",
            ", ".join(str(where.under(f"{parent}/extstorage")) for parent in providers),
        ),
        ("enabled disk templates", ", ".join(found["enabled_disk_templates"])),
        ("install image", found["install_image"]),
        ("instance communication network", found["instance_communication_network"]),
        ("zeroing image", found["zeroing_image"]),
        ("compression tools", list(found["compression_tools"])),
        ("enabled user shutdown", found["enabled_user_shutdown"]),
        ("automatic failover of the master after", _patience(found["auto_failover_after"])),
        ("decides about the master", found["master_vote"]),
        ("automatic fencing of nodes after", _patience(found["auto_fence_after"])),
        ("modify ssh setup", found["modify_ssh_setup"]),
        ("ssh_key_type", found["ssh_key_type"]),
        ("ssh_key_bits", found["ssh_key_bits"]),
    ]


def _uid_pool(ranges: list[list[int]]) -> str:
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def _collectors(found: JsonObject) -> JsonObject:
    intervals = found["data_collector_interval"]
    return {
        name: [
            ("active", active),
            ("interval", f"{intervals.get(name, 0) / 1_000_000:.3f}s"),
        ]
        for name, active in found["enabled_data_collectors"].items()
    }


@CLUSTER.command("show-ispecs-cmd")
def show_ispecs_cmd(call: Call) -> None:
    """Print a command that creates a cluster with the instance policy of this one."""
    import shlex

    found = call.client.query_cluster_info()
    policy = found["ipolicy"]
    words = ["gnt-cluster", "init", "--ipolicy-std-specs", _specs(policy["std"])]
    groups = [
        "/".join(f"{kind}:{_specs(specs[kind])}" for kind in ("min", "max"))
        for specs in policy["minmax"]
    ]
    words += ["--ipolicy-bounds-specs", "//".join(groups), found["name"]]
    print(shlex.join(words))


def _specs(specs: Mapping[str, object]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(specs.items()))
