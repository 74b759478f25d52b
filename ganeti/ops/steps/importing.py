"""The content of new disks: from an export in this cluster, or from another cluster."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from ganeti import errors
from ganeti.base import files
from ganeti.guest_os import export_config
from ganeti.guest_os.export_config import ExportConfig
from ganeti.model.config import Config
from ganeti.model.node import Node
from ganeti.net import certs, cluster_trust
from ganeti.net.cluster_trust import DiskPlace
from ganeti.opcodes.enums import InstCreateMode
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.operation import Context
from ganeti.ops.planning import export_request, import_settings
from ganeti.ops.steps import backups, exports
from ganeti.ops.steps.storage import dumps
from ganeti.rpc.backups import BackupPlace
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import ImportExportOptions, NodeInstance

#: Kind of the entry in the job's log that tells the other cluster where it shall send the disks.
LOG_KIND = "remote-import"
#: Seconds that the other cluster has to connect, beside those for the stop of the guest there.
_CONNECT = 180


@dataclass(frozen=True)
class Source:
    """An export in this cluster."""

    node: Node
    #: directory, below that of all exports of its node
    path: str
    export: ExportConfig
    #: the backup, when it is none of an export
    backup: BackupPlace | None = None

    def images(self) -> list[str]:
        """Files with the content of disks."""
        return [f"{self.path}/{disk.dump}" for disk in self.export.disks if disk.dump]


def check_request(ctx: Context, op: OpInstanceCreate) -> None:
    """Refuse a request for content that can never come; OpPrereqError."""
    import_settings.check_mode(op)
    if op.mode is InstCreateMode.CREATE:
        return
    export_request.check_compression(ctx.config, op.compress)
    if op.mode is InstCreateMode.REMOTE_IMPORT:
        secret = _read_secret(ctx)
        cluster_trust.check_handshake(secret, op.source_handshake)
        cluster_trust.check_certificate(secret, op.source_x509_ca or "", certs.normalise)


def _read_secret(ctx: Context) -> str:
    return files.read_text(ctx.paths.domain_secret).strip()


def find(ctx: Context, op: OpInstanceCreate, name: str) -> Source:
    """The export that is requested; without a node all are asked.

    Raises:
        OpPrereqError: there is none, or several nodes have one.
    """
    path = op.src_path or name
    given = op.src_node_uuid or op.src_node
    if op.backup is not None:
        return _find_backup(ctx, op, path, op.backup)
    node = _search(ctx, ctx.config, path) if given is None else ctx.config.node(given)
    if node.offline:
        raise errors.make_state_error(f"node {node.name}, which has the export, is marked offline")
    return Source(node, path, exports.read(ctx, node, path))


def _find_backup(ctx: Context, op: OpInstanceCreate, name: str, backup: str) -> Source:
    """The backup that is requested, of an instance that is or was called so."""
    backups.check_repository(op.repository)
    instance = ctx.config.find_instance(name)
    given = op.src_node_uuid or op.src_node
    node = backups.choose_reader(ctx, instance) if given is None else ctx.config.node(given)
    path = instance.name if instance is not None else name
    repository = backups.find_repository(op.repository, instance)
    place = backups.find_place(ctx, node, repository, path, backup)
    manifest = ctx.rpc.call_one(node, NodeCalls.backup_find, place)
    return Source(node, path, export_config.parse(manifest.settings), place)


def _search(ctx: Context, config: Config, path: str) -> Node:
    if path.startswith("/"):
        raise errors.make_invalid_error(
            f"with the absolute path {path} the node must be named, too (--src-node)"
        )
    online = [node for node in config.nodes.values() if not node.offline]
    found, silent = exports.find(ctx, online)
    holders = [node for node in online if path in found.get(node.uuid, ())]
    if len(holders) == 1:
        return holders[0]
    if holders:
        names = ", ".join(sorted(node.name for node in holders))
        raise errors.make_invalid_error(
            f"several nodes have an export '{path}': {names}; choose one with --src-node"
        )
    missing = ", ".join(sorted(node.name for node in silent))
    raise errors.make_unknown_error(
        f"no node has an export '{path}'{exports.hint(path, found)}"
        + (f"; no answer from {missing}" if missing else ""),
    )


def fill_from_export(
    ctx: Context, source: Source, primary: Node, instance: NodeInstance, compress: str
) -> None:
    """Copy all dumps to the disks, one after the other; raises what ``dumps.copy`` does."""
    if source.backup is not None:
        _fill_from_backup(ctx, source.backup, primary, instance)
        rename(ctx, primary, instance, source.export.name)
        return
    for index, disk in enumerate(source.export.disks):
        if not disk.dump:
            continue
        ctx.log(f"* importing disk/{index} from node {source.node.name}")
        path = f"{source.path}/{disk.dump}"
        dumps.copy(
            ctx,
            dumps.Side(source.node, instance, ("file", [path, source.export.compression])),
            dumps.Side(primary, instance, ("script", [instance.disks_info[index], index])),
            compress=compress,
            what=f"disk/{index}",
        )
    rename(ctx, primary, instance, source.export.name)


def _fill_from_backup(
    ctx: Context, place: BackupPlace, primary: Node, instance: NodeInstance
) -> None:
    """Write a backup to the disks; the node of the instance reads it."""
    ctx.log(f"* restoring backup {place.id} of {place.instance}")
    disks = list(enumerate(instance.disks_info))
    found = ctx.rpc.call_one(primary, NodeCalls.backup_find, place)
    backups.follow(
        ctx,
        primary,
        place.instance,
        instance.name,
        lambda: ctx.rpc.call_one(
            primary, NodeCalls.backup_restore, place, disks[: len(found.disks)]
        ),
    )


def fill_from_cluster(
    ctx: Context, op: OpInstanceCreate, primary: Node, instance: NodeInstance
) -> None:
    """Wait until the other cluster has sent all disks.

    The job's log tells it where to send them. Raises what ``dumps.follow`` does.
    """
    secret = _read_secret(ctx)
    ca_pem = cluster_trust.check_certificate(secret, op.source_x509_ca or "", certs.normalise)
    key, pem = ctx.rpc.call_one(primary, NodeCalls.x509_cert_create, cluster_trust.VALIDITY)
    with ExitStack() as stack:
        stack.callback(_forget_key, ctx, primary, key)
        ends: list[dumps.End] = []
        places = []
        for index, disk in enumerate(instance.disks_info):
            options = ImportExportOptions(
                key_name=key,
                ca_pem=ca_pem,
                compress=op.compress,
                magic=cluster_trust.make_magic(),
                ipv6=":" in primary.primary_ip,
                connect_timeout=_CONNECT + op.source_shutdown_timeout,
            )
            side = dumps.Side(primary, instance, ("script", [disk, index]))
            end, port = stack.enter_context(dumps.receive(ctx, side, options, f"disk/{index}"))
            place = DiskPlace(primary.primary_ip, port, options.magic or "")
            places.append(cluster_trust.sign_place(secret, index, place))
            ends.append(end)
        ctx.log(f"* waiting for {len(ends)} disks of {op.source_instance_name}")
        signed = cluster_trust.sign_certificate(secret, pem)
        ctx.job.log({"disks": places, "x509_ca": signed}, LOG_KIND)
        dumps.follow(ctx, ends)
    rename(ctx, primary, instance, op.source_instance_name or "")


def _forget_key(ctx: Context, node: Node, key: str) -> None:
    try:
        ctx.rpc.call_one(node, NodeCalls.x509_cert_remove, key)
    except errors.GanetiError as err:
        ctx.warn(f"the key of the import stays on {node.name}: {errors.text(err)}")


def rename(ctx: Context, primary: Node, instance: NodeInstance, old_name: str) -> None:
    """Tell the content of the disks its new name, if it has one."""
    if not instance.os or not old_name or old_name == instance.name:
        return
    ctx.log(f"* running the rename script: {old_name} becomes {instance.name}")
    ctx.rpc.call_one(primary, NodeCalls.instance_run_rename, instance, old_name, 0)
