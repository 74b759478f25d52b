"""gnt-backup: back up instances, restore them, prove that backups are good, remove old ones."""

from __future__ import annotations

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.cli import jobs, listing
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_many, take_one
from ganeti.cli.fields import override
from ganeti.cli.instance import creation, settings
from ganeti.cli.programs import BACKUP

_INSTANCE = take_one("instance", "instance_name")
_HISTORY_FIELDS = ("instance", "id", "mode", "size", "read", "stored", "consistency", "proof")

BACKUP.submits("run", "OP_BACKUP_RUN", _INSTANCE)
BACKUP.submits("schedule", "OP_BACKUP_SCHEDULE", _INSTANCE)
BACKUP.submits("verify", "OP_BACKUP_VERIFY", _INSTANCE)
BACKUP.submits("prune", "OP_BACKUP_PRUNE", _INSTANCE)


@BACKUP.command("history", take_many("instance"), options=o.LIST_OPTIONS)
def history(call: Call) -> int:
    """List backups, the oldest of an instance first.

    The master node reads the default repository and those in the schedules of instances.
    Arguments are names of instances, patterns, or one filter.
    """
    return listing.show_list(call, "backup", _HISTORY_FIELDS, name_field="instance")


#: Options of new instances that somebody may give without --as.
_OF_NEW = {
    "--node": "pnode",
    "--disk-template": "disk_template",
    "--iallocator": "iallocator",
    "--disk": "disks",
    "--net": "nics",
}
_LEFT_OUT = ("commit", "forthcoming", "no_install", "force_variant", "image", "src_path")


@BACKUP.command(
    "restore",
    take_one("instance"),
    op=creation.OP,
    without=tuple(
        field
        for field in (*creation.WITHOUT, *_LEFT_OUT)
        if field not in ("backup", "identify_defaults", "instance_name", "repository", "src_node")
    ),
    names={
        **{name: value for name, value in creation.NAMES.items() if name != "no_install"},
        "instance_name": override(
            "--as",
            metavar="<instance>",
            help="Name of a new instance that gets the content; without it the disks of the "
            "instance are overwritten",
        ),
        "src_node": override(help="Node that reads the backup; by default that of the instance"),
        "backup": override(
            "--backup", metavar="<id>", help="Id of the backup; the newest without it"
        ),
        "disk": override("--restore-disk"),
        "files": override(
            "--files",
            append=True,
            metavar="<path>",
            help="Read only this file or directory, by its full path in its file system, into an"
            " archive on --node; may be given several times",
        ),
    },
    also=creation.SIZE | {"OP_BACKUP_RESTORE": ("disk",), "OP_BACKUP_READ_FILES": ("files",)},
    new=True,
    options=(o.FORCE, *creation.EXTRAS, *o.JOB_OPTIONS),
    usage="[--backup=<id>] [--as=<instance> -n <node>[:<node>] | --files=<path>...] <instance>",
)
def restore(call: Call) -> None:
    """Restore a backup to a new instance, over the disks of the same one, or only files of it.

    With --as a new instance is created, with the settings that it had, as gnt-backup import does,
    and options of gnt-instance add change them. Without --as the instance must be stopped, and the
    command asks first. With --files nothing of the instance is changed: the files go into an
    archive on the master, or on --node.
    """
    name, opts = call.args[0], call.opts
    if opts.files:
        _read_files(call, name)
        return
    if opts.instance_name is None:
        _restore_here(call, name)
        return
    if opts.disk is not None:
        raise errors.make_invalid_error("--restore-disk makes no sense with --as")
    wanted: JsonObject = creation.parameters(call, opts.instance_name, again=True)
    wanted.update(mode="import", src_path=name, backup=opts.backup or "newest")
    jobs.run_op(call, creation.OP, **wanted)


def _restore_here(call: Call, name: str) -> None:
    opts = call.opts
    surplus = [flag for flag, dest in _OF_NEW.items() if getattr(opts, dest, None)]
    if surplus:
        raise errors.make_invalid_error(
            f"{surplus[0]} is for a new instance: give its name with --as"
        )
    which = "disk " + str(opts.disk) if opts.disk is not None else "all disks"
    settings.ask_first(
        call, name, f"Write backup {opts.backup or 'newest'} over {which} of instance {name}?"
    )
    jobs.run_op(
        call,
        "OP_BACKUP_RESTORE",
        instance_name=name,
        backup=opts.backup,
        repository=opts.repository,
        disk=opts.disk,
    )


def _read_files(call: Call, name: str) -> None:
    opts = call.opts
    others = {"--as": "instance_name", "--restore-disk": "disk", **_OF_NEW}
    del others["--node"]
    surplus = [flag for flag, dest in others.items() if getattr(opts, dest, None) not in (None, [])]
    if surplus:
        raise errors.make_invalid_error(f"{surplus[0]} makes no sense with --files")
    jobs.run_op(
        call,
        "OP_BACKUP_READ_FILES",
        instance_name=name,
        backup=opts.backup,
        repository=opts.repository,
        files=opts.files,
        node=opts.pnode,
    )
