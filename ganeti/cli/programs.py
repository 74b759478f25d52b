"""The programs and where their commands are."""

from __future__ import annotations

from ganeti.cli.command import Program

CLUSTER = Program(
    "gnt-cluster",
    "Create a cluster, look after it and change its settings.",
    (
        "ganeti.cli.cluster_setup",
        "ganeti.cli.cluster_show",
        "ganeti.cli.cluster_history",
        "ganeti.cli.cluster_verify",
        "ganeti.cli.cluster_change",
        "ganeti.cli.cluster_remote",
    ),
)
NODE = Program(
    "gnt-node",
    "Look after the nodes of a cluster.",
    (
        "ganeti.cli.node_add",
        "ganeti.cli.node_show",
        "ganeti.cli.node_change",
        "ganeti.cli.node_instances",
        "ganeti.cli.node_storage",
        "ganeti.cli.node_auto_repair",
    ),
)
INSTANCE = Program(
    "gnt-instance",
    "Look after instances: virtual machines with their disks and network cards.",
    (
        "ganeti.cli.instance_add",
        "ganeti.cli.instance_reserve",
        "ganeti.cli.instance_power",
        "ganeti.cli.instance_change",
        "ganeti.cli.instance_modify",
        "ganeti.cli.instance_move",
        "ganeti.cli.instance_disks",
        "ganeti.cli.instance_show",
        "ganeti.cli.instance_console",
    ),
)
GROUP = Program(
    "gnt-group",
    "Look after node groups: nodes that share a network.",
    ("ganeti.cli.group_show", "ganeti.cli.group_change"),
)
DISK = Program(
    "gnt-disk",
    "Look after disks, with and without an instance.",
    ("ganeti.cli.disk_show", "ganeti.cli.disk_change"),
)
NETWORK = Program(
    "gnt-network",
    "Look after networks, which instances get their addresses from.",
    ("ganeti.cli.network_show", "ganeti.cli.network_change"),
)
JOB = Program("gnt-job", "Look at jobs and change their fate.", ("ganeti.cli.job_commands",))
FILTER = Program(
    "gnt-filter", "Decide which jobs may run, and when.", ("ganeti.cli.filter_commands",)
)
OS = Program("gnt-os", "Look at OS definitions and their settings.", ("ganeti.cli.os_commands",))
STORAGE = Program(
    "gnt-storage",
    "Look at the providers of external storage.",
    ("ganeti.cli.storage_commands",),
)
DEBUG = Program(
    "gnt-debug", "Test and inspect the cluster manager.", ("ganeti.cli.debug_commands",)
)
RAPI = Program("gnt-rapi", "Say who may use the remote API.", ("ganeti.cli.rapi_commands",))
