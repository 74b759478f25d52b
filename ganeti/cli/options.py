"""Options that several commands share; names, kinds and defaults are part of the interface.

Options of one command only are defined beside that command.
"""

from __future__ import annotations

from ganeti import constants
from ganeti.cli.option import (
    JOB,
    OTHER,
    OUTPUT,
    SELECTION,
    Option,
    ignored,
    select,
    switch,
    switch_off,
    value,
    values_of,
)
from ganeti.model.drivers import DiskTemplate

PRIORITIES = {
    "low": constants.PRIORITY_LOW,
    "normal": constants.PRIORITY_NORMAL,
    "high": constants.PRIORITY_HIGH,
}
DISK_TEMPLATES = tuple(map(str, DiskTemplate))
FILE_DRIVERS = ("blktap", "blktap2", "loop")
_TIMEOUT = constants.DEFAULT_SHUTDOWN_TIMEOUT

# every command
DEBUG = Option(
    ("-d", "--debug"),
    "debug",
    "Log more; shows where an internal error happened",
    action="count",
    default=0,
    group=OTHER,
)
REASON = value(
    "--reason",
    dest="reason",
    metavar="<text>",
    group=OTHER,
    help="Why this is done; kept with the job and shown in its details",
)
COMMON = (REASON, DEBUG)

# jobs
SUBMIT = switch(
    "--submit",
    dest="submit_only",
    group=JOB,
    help="Print the id of the job and do not wait for it",
)
PRINT_JOBID = switch(
    "--print-jobid",
    dest="print_jobid",
    group=JOB,
    help="Print the id of the job first, on a line of its own",
)
DRY_RUN = switch(
    "--dry-run",
    dest="dry_run",
    group=JOB,
    help="Only check whether it could be done; nothing is changed",
)
PRIORITY = value(
    "--priority",
    dest="priority",
    choices=tuple(sorted(PRIORITIES)),
    metavar="low|normal|high",
    help="Priority of the job in the queue",
    group=JOB,
)
#: Options of commands that submit a job which changes something.
JOB_OPTIONS = (SUBMIT, PRINT_JOBID, DRY_RUN, PRIORITY)
SUBMIT_OPTIONS = (SUBMIT, PRINT_JOBID)
PLAN_OPTIONS = (DRY_RUN, PRIORITY)

# output
NO_HEADERS = switch("--no-headers", dest="no_headers", group=OUTPUT, help="Leave out the titles")
SEPARATOR = value(
    "--separator",
    dest="separator",
    metavar="<text>",
    group=OUTPUT,
    help="Put this between the columns instead of aligning them; sizes are in MiB then",
)
UNITS = value(
    "--units",
    dest="units",
    choices=("g", "h", "m", "t"),
    group=OUTPUT,
    help="Unit of sizes: h picks one for each, m, g and t fix it",
)
FIELDS = value(
    "-o",
    "--output",
    dest="output",
    metavar="<field>,...",
    group=OUTPUT,
    help="Columns to show, or all; with a plus sign in front they are added to the usual ones",
)
VERBOSE = switch(
    "-v",
    "--verbose",
    dest="verbose",
    group=OUTPUT,
    help="Say more; in lists, write out why a value is missing",
)
FILTER = switch(
    "-F",
    "--filter",
    dest="force_filter",
    group=SELECTION,
    help="Take the only argument for a filter even if it looks like a name",
)
FORMAT = value(
    "--format",
    dest="format",
    choices=("table", "json", "yaml", "csv"),
    default="table",
    group=OUTPUT,
    help="Form of the list: a table for people, the others for programs",
)
#: Of the info commands, whose text is YAML as well.
INFO_FORMAT = value(
    "--format",
    dest="format",
    choices=("text", "json", "yaml"),
    default="text",
    group=OUTPUT,
    help="Form of the answer: text for people, the others for programs",
)
TABLE_OPTIONS = (NO_HEADERS, SEPARATOR)
#: Options of list-fields commands.
LIST_FIELDS_OPTIONS = (*TABLE_OPTIONS, FORMAT)
LIST_OPTIONS = (NO_HEADERS, SEPARATOR, UNITS, FIELDS, VERBOSE, FILTER, FORMAT)
SHOW_MACHINE = switch(
    "-M",
    "--show-machine-names",
    dest="show_machine_names",
    group=OUTPUT,
    help="Put the name of the node before every line of its output",
)
ROMAN = ignored("--roman", help="Ignored")

# how hard to try
FORCE = switch("-f", "--force", dest="force", help="Do not ask, and go on in spite of warnings")
CONFIRM = switch("--yes", dest="confirm", help="Do not ask")
YES_DO_IT = switch(
    "--yes-do-it", "--ya-rly", dest="yes_do_it", help="Confirm that this is really wanted"
)
IGNORE_CONSISTENCY = switch(
    "--ignore-consistency",
    dest="ignore_consistency",
    help="Go on although data may be lost",
)
IGNORE_IPOLICY = switch(
    "--ignore-ipolicy",
    dest="ignore_ipolicy",
    help="Ignore instance policy violations",
)
IGNORE_OFFLINE = switch(
    "--ignore-offline",
    dest="ignore_offline",
    help="Change the configuration only when the node is offline",
)
EARLY_RELEASE = switch(
    "--early-release",
    dest="early_release",
    help="Free the old secondary before the new disks are in sync",
)
NO_WAIT_FOR_SYNC = switch_off(
    "--no-wait-for-sync", dest="wait_for_sync", help="Do not wait until the disks are in sync"
)

# where
NODE = value("-n", "--node", dest="node", metavar="<node>", help="Node")
PLACEMENT = value(
    "-n",
    "--node",
    dest="node",
    metavar="<primary>[:<secondary>]",
    help="Nodes to put the instance on",
)
NODES = values_of("-n", "--node", dest="nodes", metavar="<node>", help="Only this node")
NODE_GROUP = value(
    "-g", "--node-group", dest="nodegroup", metavar="<group>", help="Only this node group"
)
TARGET_NODE = value(
    "-n",
    "--target-node",
    dest="dst_node",
    metavar="<node>",
    help="Node to go to (only for disks that any node can reach)",
)
NEW_SECONDARY = value(
    "-n", "--new-secondary", dest="dst_node", metavar="<node>", help="New secondary node"
)
IALLOCATOR = value(
    "-I",
    "--iallocator",
    dest="iallocator",
    metavar="<name>",
    help="Allocator that chooses nodes; a single dot stands for that of the cluster",
)
SECONDARY_IP = value(
    "-s",
    "--secondary-ip",
    dest="secondary_ip",
    metavar="<address>",
    help="Address for the replication of disks, if it has a network of its own",
)

# instances
SHUTDOWN_TIMEOUT = value(
    "--shutdown-timeout",
    dest="shutdown_timeout",
    kind="int",
    default=_TIMEOUT,
    metavar="<seconds>",
    help="Time the guest gets to stop by itself",
)
DISK_TEMPLATE = value(
    "-t",
    "--disk-template",
    dest="disk_template",
    choices=DISK_TEMPLATES,
    metavar="<template>",
    help=f"How disks are stored: {', '.join(DISK_TEMPLATES)}",
)
DISK = values_of(
    "--disk",
    dest="disks",
    kind="identkeyval",
    metavar="<index>:<key>=<value>,...",
    help="A disk, as in 0:size=10G",
)
NET = values_of(
    "--net",
    dest="nics",
    kind="identkeyval",
    metavar="<index>:<key>=<value>,...",
    help="A NIC, as in 0:link=br0,mac=auto",
)
FILE_DRIVER = value(
    "--file-driver",
    dest="file_driver",
    choices=FILE_DRIVERS,
    help="Driver for disks that are files",
)
FILE_STORAGE_DIR = value(
    "--file-storage-dir",
    dest="file_storage_dir",
    metavar="<directory>",
    help="Directory for the disks, below the one for disks that are files",
)
NO_CONFLICTS_CHECK = switch_off(
    "--no-conflicts-check",
    dest="conflicts_check",
    help="Do not look whether an address belongs to a network",
)
OS = value("-o", "--os-type", dest="os", metavar="<os>[+<variant>]", help="Operating system")
FORCE_VARIANT = switch(
    "--force-variant", dest="force_variant", help="Allow a variant that the OS does not list"
)
OS_PARAMS = value(
    "-O", "--os-parameters", dest="osparams", kind="keyval", default={}, help="OS parameters"
)
OS_PARAMS_PRIVATE = value(
    "--os-parameters-private",
    dest="osparams_private",
    kind="keyprivateval",
    default={},
    help="OS parameters that are stored but not shown",
)
OS_PARAMS_SECRET = value(
    "--os-parameters-secret",
    dest="osparams_secret",
    kind="keyprivateval",
    default={},
    help="OS parameters that are neither stored nor shown",
)
HV_PARAMS = value(
    "-H",
    "--hypervisor-parameters",
    dest="hvparams",
    kind="keyval",
    default={},
    help="Hypervisor parameters",
)
BACKEND = value(
    "-B",
    "--backend-parameters",
    dest="beparams",
    kind="keyval",
    default={},
    help="Memory, processors and the like, as in memory=1G,vcpus=2",
)
COMMUNICATION = value(
    "-c",
    "--communication",
    dest="instance_communication",
    kind="bool",
    help="Whether the guest can talk to its node",
)
IP_CHECK = switch("--ip-check", dest="ip_check", help="Refuse when the address of the name answers")
NAME_CHECK = switch(
    "--name-check", dest="name_check", help="Resolve the name and take the full one"
)
NO_REMEMBER = switch(
    "--no-remember", dest="no_remember", help="Keep the recorded state of the instance"
)
CLEANUP = switch(
    "--cleanup", dest="cleanup", help="Repair what an interrupted earlier move left behind"
)
NO_RUNTIME_CHANGES = switch_off(
    "--no-runtime-changes", dest="allow_runtime_chgs", help="Do not shrink the memory of the guest"
)
NON_LIVE = switch_off(
    "--non-live", dest="live", help="Stop the guest during the move, as in --migration-mode"
)
MIGRATION_MODE = value(
    "--migration-mode",
    dest="migration_mode",
    choices=("live", "non-live"),
    help="Whether the guest keeps running meanwhile",
)
HV_LIST = values_of(
    "-H",
    "--hypervisor-parameters",
    dest="hvparams",
    kind="identkeyval",
    metavar="<hypervisor>:<key>=<value>,...",
    help="Hypervisor parameters",
)
NODE_PARAMS = value("--node-parameters", dest="ndparams", kind="keyval", help="Node parameters")
HV_STATE = values_of(
    "--hypervisor-state",
    dest="hv_state",
    kind="identkeyval",
    metavar="<hypervisor>:<key>=<value>,...",
    help="State of a hypervisor",
)
DISK_STATE = values_of(
    "--disk-state",
    dest="disk_state",
    kind="identkeyval",
    metavar="<storage>/<name>:<key>=<value>,...",
    help="State of a storage unit",
)

# nodes
MASTER_CAPABLE = value(
    "--master-capable",
    dest="master_capable",
    kind="bool",
    help="Whether the node may become the master",
)
VM_CAPABLE = value(
    "--vm-capable", dest="vm_capable", kind="bool", help="Whether the node may run instances"
)
AUTO_PROMOTE = switch(
    "--auto-promote",
    dest="auto_promote",
    help="Make another node a master candidate if one is missing",
)
OOB_TIMEOUT = value(
    "--oob-timeout",
    dest="oob_timeout",
    kind="int",
    default=60,
    metavar="<seconds>",
    help="Time the out-of-band helper gets",
)
POWER_DELAY = value(
    "--power-delay",
    dest="power_delay",
    kind="float",
    default=2.0,
    metavar="<seconds>",
    help="Pause between switching on two nodes",
)

# tags
TAG_SOURCE = value(
    "--from",
    dest="tags_source",
    metavar="<file>",
    help="File with more tags, one on each line; - is the standard input",
)

# several instances at once
ALL = switch("--all", dest="show_all", group=SELECTION, help="All instances")
FORCE_MULTIPLE = switch(
    "--force-multiple", dest="force_multi", help="Do not ask before acting on several instances"
)
SELECTION_OPTIONS = (
    select(
        "--instance",
        dest="multi_mode",
        const="instances",
        help="The arguments are instances (as without any of these options)",
    ),
    select("--all", dest="multi_mode", const="cluster", help="All instances; no arguments"),
    select(
        "--node",
        dest="multi_mode",
        const="nodes",
        help="The arguments are nodes: all their instances",
    ),
    select(
        "--primary",
        dest="multi_mode",
        const="nodes-pri",
        help="The arguments are nodes: instances whose primary node they are",
    ),
    select(
        "--secondary",
        dest="multi_mode",
        const="nodes-sec",
        help="The arguments are nodes: instances whose secondary node they are",
    ),
    select(
        "--tags",
        dest="multi_mode",
        const="instances-by-tags",
        help="The arguments are tags of instances",
    ),
    select(
        "--node-tags",
        dest="multi_mode",
        const="nodes-by-tags",
        help="The arguments are tags of nodes, as for --node",
    ),
    select(
        "--pri-node-tags",
        dest="multi_mode",
        const="nodes-pri-by-tags",
        help="The arguments are tags of nodes, as for --primary",
    ),
    select(
        "--sec-node-tags",
        dest="multi_mode",
        const="nodes-sec-by-tags",
        help="The arguments are tags of nodes, as for --secondary",
    ),
)

# filters of job lists
_PENDING = ("queued", "waiting", "canceling")
PENDING = select(
    "--pending", dest="status_filter", const=_PENDING, help="Jobs that have not begun to work"
)
QUEUED = select("--queued", dest="status_filter", const=("queued",), help="Jobs in the queue")
WAITING = select("--waiting", dest="status_filter", const=("waiting",), help="Waiting jobs")
