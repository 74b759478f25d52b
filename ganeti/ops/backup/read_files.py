"""Read files of a backup into an archive on a node."""

from __future__ import annotations

import msgspec

from ganeti import errors
from ganeti.base import units
from ganeti.base.json_types import JsonObject
from ganeti.base.text import plural
from ganeti.model.image import Image
from ganeti.opcodes.backup import OpBackupReadFiles
from ganeti.ops.operation import Operation
from ganeti.ops.planning import checks, copy_guests, os_images
from ganeti.ops.steps import backups, images, installing, node_checks
from ganeti.rpc.backups import FileRequest
from ganeti.rpc.calls import NodeCalls

#: Most files and directories of one request, and characters of a path.
_MOST, _LONGEST = 1000, 4096


class BackupReadFiles(Operation[OpBackupReadFiles, JsonObject]):
    """Returns where the archive is; needs no locks, as nodes lock the files."""

    cancelable = True

    @classmethod
    def check_submission(cls, op: OpBackupReadFiles) -> None:
        backups.check_repository(op.repository)
        if not 0 < len(op.files) <= _MOST:
            raise errors.make_invalid_error(f"give 1 to {_MOST} files, not {len(op.files)}")
        for path in op.files:
            _check_path(path)

    def run(self) -> JsonObject:
        ctx, op = self.ctx, self.op
        config = ctx.config
        instance = config.find_instance(op.instance_name)
        name = instance.name if instance is not None else op.instance_name
        node = config.node(op.node) if op.node is not None else config.master
        checks.check_usable(node, "to read files")
        guest = copy_guests.arrange_reader(config, name)
        image = os_images.find_helper(config, guest.hypervisor, "zeroing_image")
        repository = backups.find_repository(op.repository, instance)
        place = backups.find_place(ctx, node, repository, name, op.backup)
        memory = guest.backend("maxmem")
        node_checks.resources(ctx, node, "a helper guest", memory=(str(guest.hypervisor), memory))
        request = FileRequest(
            paths=[path.rstrip("/") for path in op.files],
            image=images.describe(ctx, image) if isinstance(image, Image) else image,
            startup_timeout=installing.STARTUP,
            timeout=op.timeout,
        )
        ctx.log(f"* reading files of backup {place.id} of {name} on node {node.name}")
        copy = backups.follow(
            ctx,
            node,
            name,
            name,
            lambda: ctx.rpc.call_one(node, NodeCalls.backup_files, place, guest, request),
        )
        found = ctx.rpc.call_one(node, NodeCalls.backup_files_result, copy)
        size = units.format_size(-(-found.size // (1 << 20)), "h")
        ctx.log(f"* {plural(found.files, 'file')}, {size}: {found.path} on node {node.name}")
        return {"node": node.name, **msgspec.to_builtins(found)}


def _check_path(path: str) -> None:
    """OpPrereqError for what cannot be looked for in a file system."""
    known = path.startswith("/") and ".." not in path.split("/") and len(path) <= _LONGEST
    if not known or not path.isprintable():
        raise errors.make_invalid_error(
            f"'{path[:80]}' is not the full path of a file in a file system of the guest, such as"
            " /etc/fstab"
        )
