"""Backups on nodes: which node reads a repository, and following what it does."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.config.changes import Draft
from ganeti.model import base
from ganeti.model.backup import BackupPlan, Manifest, check_id, is_name
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops.operation import Context
from ganeti.ops.steps.storage import copy_progress
from ganeti.rpc.backups import BackupPlace
from ganeti.rpc.calls import NodeCalls

#: Word for the last backup.
NEWEST = "newest"


def plan_of(instance: Instance | None) -> BackupPlan:
    """The plan of an instance, with nothing in it when there is none."""
    return (instance.backup if instance is not None else None) or BackupPlan()


def find_repository(given: str | None, instance: Instance | None) -> str:
    """The directory or name that is meant; empty for the default of the nodes."""
    return given or plan_of(instance).repository or ""


def check_repository(given: str | None) -> None:
    """Refuse what is neither a directory on nodes nor the name of a repository; OpPrereqError."""
    if not given or is_name(given):
        return
    if not given.startswith("/") or ".." in given.split("/"):
        raise errors.make_invalid_error(
            f"'{given[:80]}' is not a repository: give a directory with its full path, or the name"
            " of a file in /etc/ganeti/backup-repositories of the nodes"
        )


def choose_reader(ctx: Context, instance: Instance | None) -> Node:
    """The node that reads backups of an instance: its own, or the master."""
    if instance is not None and instance.primary_node in ctx.config.nodes:
        node = ctx.config.nodes[instance.primary_node]
        if not node.offline:
            return node
    return ctx.config.master


def list_all(ctx: Context, node: Node, repository: str, instance: str) -> list[Manifest]:
    """Backups of an instance, the oldest first; GenericError."""
    return ctx.rpc.call_one(node, NodeCalls.backup_list, repository, instance)


def find_place(
    ctx: Context, node: Node, repository: str, instance: str, backup: str | None
) -> BackupPlace:
    """One backup, the newest without an id.

    Raises:
        OpPrereqError: there is none.
        GenericError: the repository cannot be read.
    """
    if backup is not None and backup != NEWEST:
        return BackupPlace(repository=repository, instance=instance, id=check_id(backup))
    found = list_all(ctx, node, repository, instance)
    if not found:
        where = repository or "the default repository"
        raise errors.make_unknown_error(
            f"there is no backup of '{instance}' in {where}; gnt-backup history lists what there"
            " is",
        )
    return BackupPlace(repository=repository, instance=instance, id=found[-1].id)


def follow(ctx: Context, node: Node, instance: str, what: str, begin: Callable[[], str]) -> str:
    """Begin to copy on a node and wait for the end; returns the name of the copy.

    Raises:
        JobCanceled: the user canceled the job, and the copy has been told to end.
        GanetiError: why it failed.
    """
    copy = begin()
    try:
        copy_progress.follow(ctx, node, copy, what)
    except errors.JobCanceled:
        ctx.rpc.call_one(node, NodeCalls.backup_cancel, instance)
        _await_end(ctx, node, copy)
        raise
    return copy


def _await_end(ctx: Context, node: Node, copy: str) -> None:
    """Wait until the node has removed the files of a canceled copy."""
    try:
        while not ctx.rpc.call_one(node, NodeCalls.copy_status, copy).ended:
            pass
    except errors.GanetiError as err:
        ctx.log(f" - {errors.text(err)}")


def note(ctx: Context, instance: Instance, **values: object) -> None:
    """Change the plan of an instance that still exists."""

    def edit(draft: Draft) -> None:
        current = draft.config.instances.get(instance.uuid)
        if current is not None:
            draft.update(current, backup=base.replace(plan_of(current), **values))

    ctx.store.change("instance-backup", ctx.author, edit)


def describe(manifest: Manifest) -> JsonObject:
    """A backup as the result of a job."""
    found: JsonObject = msgspec.to_builtins(manifest)
    del found["settings"]
    return {**found, "read": manifest.read, "stored": manifest.stored}
