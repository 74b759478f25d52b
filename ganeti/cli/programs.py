"""The programs and where their commands are."""

from __future__ import annotations

from ganeti.cli.command import Program

CLUSTER = Program(
    "gnt-cluster",
    "Create and manage a cluster.",
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
    "Manage the nodes of a cluster.",
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
    "Manage instances: virtual machines with their disks and NICs.",
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
    "Manage node groups: nodes that share a network.",
    ("ganeti.cli.group_show", "ganeti.cli.group_change"),
)
DISK = Program(
    "gnt-disk",
    "Manage disks, with and without an instance.",
    ("ganeti.cli.disk_show", "ganeti.cli.disk_change"),
)
NETWORK = Program(
    "gnt-network",
    "Manage networks, which instances get their addresses from.",
    ("ganeti.cli.network_show", "ganeti.cli.network_change"),
)
JOB = Program(
    "gnt-job",
    "List, watch and cancel jobs.",
    ("ganeti.cli.job_show", "ganeti.cli.job_commands"),
)
FILTER = Program(
    "gnt-filter",
    "Manage filter rules: which jobs may run, and when.",
    ("ganeti.cli.filter_commands",),
)
OS = Program(
    "gnt-os", "Show OS definitions and change their settings.", ("ganeti.cli.os_commands",)
)
STORAGE = Program(
    "gnt-storage",
    "Show the providers of external storage.",
    ("ganeti.cli.storage_commands",),
)
DEBUG = Program(
    "gnt-debug", "Test and inspect the cluster manager.", ("ganeti.cli.debug_commands",)
)
RAPI = Program(
    "gnt-rapi", "Manage users and tokens of the remote API.", ("ganeti.cli.rapi_commands",)
)
