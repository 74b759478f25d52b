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
    legacy_option,
    select,
    switch,
    switch_off,
    value,
    values_of,
)

PRIORITIES = {
    "low": constants.PRIORITY_LOW,
    "normal": constants.PRIORITY_NORMAL,
    "high": constants.PRIORITY_HIGH,
}

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
    help="Reason, stored with the job and shown in its details",
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
NO_HEADERS = switch("--no-headers", dest="no_headers", group=OUTPUT, help="Omit the titles")
SEPARATOR = value(
    "--separator",
    dest="separator",
    metavar="<text>",
    group=OUTPUT,
    help="Separator of the columns, which are not aligned then; sizes are in MiB",
)
UNITS = value(
    "--units",
    dest="units",
    choices=("g", "h", "m", "t"),
    group=OUTPUT,
    help="Unit of sizes: m, g or t; h chooses one for each size",
)
FIELDS = value(
    "-o",
    "--output",
    dest="output",
    metavar="<field>,...",
    group=OUTPUT,
    help="Columns to show, or all; with a plus sign in front they are added to the default ones",
)
VERBOSE = switch(
    "-v",
    "--verbose",
    dest="verbose",
    group=OUTPUT,
    help="Print more; in lists also why a value is missing",
)
FILTER = switch(
    "-F",
    "--filter",
    dest="force_filter",
    group=SELECTION,
    help="Read the only argument as a filter, even if it looks like a name",
)
#: Of lists, and of commands that show everything of an object; the text of most is YAML as well.
FORMAT, INFO_FORMAT = (
    value(
        "--format",
        dest="format",
        choices=choices,
        default=choices[0],
        group=OUTPUT,
        help=f"Format of the output: {choices[0]} for people, the others for programs",
    )
    for choices in (("table", "json", "yaml", "csv"), ("text", "json", "yaml"))
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
ROMAN = legacy_option("--roman", help="Ignored")

# how hard to try
FORCE = switch("-f", "--force", dest="force", help="Do not ask, and ignore warnings")
CONFIRM = switch("--yes", dest="confirm", help="Do not ask")
YES_DO_IT = switch(
    "--yes-do-it", "--ya-rly", dest="yes_do_it", help="Confirm that this is really wanted"
)

NO_SSH_KEY_CHECK = switch_off(
    "--no-ssh-key-check", dest="ssh_key_check", help="Accept a host key that is not known yet"
)

# where
NODES = values_of(
    "-n", "--node", dest="nodes", metavar="<node>", help="Only this node; may be repeated"
)
NODE_GROUP = value(
    "-g", "--node-group", dest="nodegroup", metavar="<group>", help="Only this node group"
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
SELECTION_OPTIONS = tuple(
    select(flag, dest="multi_mode", const=mode, help=text)
    for flag, mode, text in (
        ("--instance", "instances", "The arguments are instances (the default)"),
        ("--all", "cluster", "All instances; no arguments"),
        ("--node", "nodes", "The arguments are nodes: all their instances"),
        (
            "--primary",
            "nodes-pri",
            "The arguments are nodes: instances whose primary node they are",
        ),
        (
            "--secondary",
            "nodes-sec",
            "The arguments are nodes: instances whose secondary node they are",
        ),
        ("--tags", "instances-by-tags", "The arguments are tags of instances"),
        ("--node-tags", "nodes-by-tags", "The arguments are tags of nodes, as for --node"),
        (
            "--pri-node-tags",
            "nodes-pri-by-tags",
            "The arguments are tags of nodes, as for --primary",
        ),
        (
            "--sec-node-tags",
            "nodes-sec-by-tags",
            "The arguments are tags of nodes, as for --secondary",
        ),
    )
)

# filters of job lists
PENDING, QUEUED, WAITING, RUNNING, ERROR, FINISHED = (
    select(
        f"--{name}",
        dest="status_filter",
        const=statuses or (name,),
        help=text or f"Jobs with the status {name}",
    )
    for name, statuses, text in (
        ("pending", ("queued", "waiting", "canceling"), "Jobs that have not begun"),
        ("queued", (), ""),
        ("waiting", (), ""),
        ("running", (), ""),
        ("error", (), ""),
        ("finished", ("success", "canceled", "error"), "Jobs that have ended"),
    )
)
