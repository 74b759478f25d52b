"""The programs and where their commands are."""

from __future__ import annotations

from ganeti.cli.command import Program

CLUSTER = Program(
    "gnt-cluster",
    "Create and manage a cluster.",
    (
        "setup",
        "show",
        "history",
        "verify",
        "placement",
        "change",
        "remote",
        "notify",
        "recovery",
        "power",
        "upgrade",
    ),
)
NODE = Program(
    "gnt-node",
    "Manage the nodes of a cluster.",
    (
        "add",
        "show",
        "change",
        "instances",
        "storage",
        "auto_repair",
        "maintenance",
    ),
)
INSTANCE = Program(
    "gnt-instance",
    "Manage instances: virtual machines with their disks and NICs.",
    (
        "add",
        "importing",
        "reserve",
        "power",
        "change",
        "modify",
        "move",
        "disks",
        "snapshots",
        "show",
        "console",
    ),
)
GROUP = Program(
    "gnt-group",
    "Manage node groups: nodes that share a network.",
    ("show", "change"),
)
DISK = Program(
    "gnt-disk",
    "Manage disks, with and without an instance.",
    ("show", "change"),
)
BACKUP = Program(
    "gnt-backup",
    "Back up instances and restore them; export them to nodes, and import them.",
    ("incremental", "commands"),
)
NETWORK = Program(
    "gnt-network",
    "Manage networks: pools of addresses for the NICs of instances.",
    ("show", "change"),
)
IMAGE = Program(
    "gnt-image",
    "Manage images: disk contents from which instances are created without an OS definition.",
    ("show", "change"),
)
JOB = Program(
    "gnt-job",
    "List, watch and cancel jobs.",
    ("show", "commands"),
)
FILTER = Program(
    "gnt-filter",
    "Manage filter rules: which jobs may run, and when.",
    ("commands",),
)
OS = Program("gnt-os", "Show OS definitions and change their settings.", ("commands",))
STORAGE = Program(
    "gnt-storage",
    "Show the providers of external storage.",
    ("commands",),
)
DEBUG = Program(
    "gnt-debug",
    "Test and inspect the cluster manager.",
    ("commands", "queue_check", "parts"),
)
RAPI = Program("gnt-rapi", "Manage users and tokens of the remote API.", ("commands",))

#: All programs by name.
PROGRAMS = {
    program.name: program
    for program in (
        CLUSTER,
        NODE,
        INSTANCE,
        GROUP,
        DISK,
        BACKUP,
        NETWORK,
        IMAGE,
        JOB,
        FILTER,
        OS,
        STORAGE,
        DEBUG,
        RAPI,
    )
}
