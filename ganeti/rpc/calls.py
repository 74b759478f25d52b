"""Every call that a node daemon answers: one abstract method each.

The signature is the wire format: a JSON list of the arguments in order, and the result as JSON.
Encoding, checking and time-outs follow from it; mypy fails when the node side lacks a method.
Names and shapes are Ganeti's, but for ``master_*``, ``replica_*``, ``run_right*`` and ``disk_*``;
sizes are MiB, times seconds.
"""

from __future__ import annotations

import base64
import inspect
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, cast, get_type_hints

import msgspec

from ganeti import errors
from ganeti.model.names import HotplugAction, HotplugTarget
from ganeti.rpc.objects import (
    BlockDevStatus,
    Console,
    ExtStorageInfo,
    InstanceInfo,
    MasterNetwork,
    MasterView,
    MigrationStatus,
    NodeDisk,
    NodeInstance,
    OsInfo,
    ReplicaUpdate,
    RunRight,
)

#: Time-out classes in seconds.
REPLICA = 30.0
URGENT = 60.0
FAST = 300.0
NORMAL = 900.0
SLOW = 3600.0
ONE_DAY = 86400.0

F = TypeVar("F", bound=Callable[..., Any])

#: Below this many bytes a text travels uncompressed.
COMPRESS_FROM = 512

Json = dict[str, Any]


def encode_content(data: str) -> list[Any]:
    """A file's content for the wire: ``[0, text]`` or ``[1, base64 of zlib]``."""
    raw = data.encode("utf-8")
    if len(raw) < COMPRESS_FROM:
        return [0, data]
    return [1, base64.b64encode(zlib.compress(raw, 3)).decode("ascii")]


def decode_content(value: list[Any]) -> str:
    """Inverse of :func:`encode_content`; ParseError for anything else."""
    try:
        kind, text = value
        if kind == 0:
            return str(text)
        if kind == 1:
            return zlib.decompress(base64.b64decode(text)).decode("utf-8")
    except (ValueError, TypeError, zlib.error) as err:
        raise errors.ParseError(f"encoded content cannot be read: {err}") from err
    raise errors.ParseError(f"encoded content has the unknown kind {kind!r}")


def call(*, timeout: float) -> Callable[[F], F]:
    """Mark an abstract method as a node call that may take ``timeout`` seconds."""

    def mark(function: F) -> F:
        function.__rpc_timeout__ = timeout  # type: ignore[attr-defined]
        return function

    return mark


@dataclass(frozen=True)
class CallSpec:
    """A node call as data."""

    name: str
    timeout: float
    #: type of the argument list as a whole
    args: Any
    result: Any
    doc: str


class NodeCalls(ABC):
    """What the master may ask of a node. Implementations raise GanetiError to refuse."""

    # node --------------------------------------------------------------------------------

    @abstractmethod
    @call(timeout=URGENT)
    def version(self) -> int:
        """Protocol version of the node daemon."""

    @abstractmethod
    @call(timeout=URGENT)
    def node_info(
        self, storage_units: list[tuple[str, str, list[Any]]], hv_specs: list[tuple[str, Json]]
    ) -> tuple[str, list[Json] | None, list[Json] | None]:
        """Boot id, space per storage unit ``(type, name, params)``, resources per hypervisor."""

    @abstractmethod
    @call(timeout=NORMAL)
    def node_verify(
        self, checkdict: Json, cluster_name: str, all_hvparams: dict[str, Json]
    ) -> Json:
        """Answers of the asked checks: version, time, hypervisor, filelist, oslist, ..."""

    @abstractmethod
    @call(timeout=FAST)
    def node_has_ip_address(self, address: str) -> bool:
        """Whether an address belongs to this node."""

    @abstractmethod
    @call(timeout=NORMAL)
    def node_leave_cluster(self, modify_ssh_setup: bool) -> None:
        """Forget the cluster: remove its files and certificates, then stop the daemon."""

    @abstractmethod
    @call(timeout=URGENT)
    def master_node_name(self) -> str:
        """Name of the node that this node takes for the master."""

    @abstractmethod
    @call(timeout=REPLICA)
    def master_view(self) -> MasterView:
        """Whom this node follows, and how new its copy of the state is."""

    @abstractmethod
    @call(timeout=REPLICA)
    def master_claim(self, epoch: int, master: str) -> MasterView:
        """Follow a new master; DeposedError when another one has the term or a higher one."""

    @abstractmethod
    @call(timeout=REPLICA)
    def replica_update(self, update: ReplicaUpdate) -> bool:
        """Write a part of the master's state durably; False when records do not follow ours."""

    @abstractmethod
    @call(timeout=REPLICA)
    def replica_differing(self, manifest: dict[str, int]) -> list[str]:
        """Names of queue files whose content is not the one with this CRC-32."""

    @abstractmethod
    @call(timeout=FAST)
    def node_stop_master(self) -> None:
        """Stop the master daemon on this node."""

    @abstractmethod
    @call(timeout=FAST)
    def node_demote_from_mc(self) -> None:
        """Forget what only master candidates have; refused on the master."""

    @abstractmethod
    @call(timeout=FAST)
    def node_activate_master_ip(
        self, master_params: MasterNetwork, use_external_mip_script: bool
    ) -> None:
        """Put the address of the cluster on this node; no error when it is there."""

    @abstractmethod
    @call(timeout=FAST)
    def node_deactivate_master_ip(
        self, master_params: MasterNetwork, use_external_mip_script: bool
    ) -> None:
        """Take the address of the cluster off this node; no error when it is not there."""

    @abstractmethod
    @call(timeout=FAST)
    def node_change_master_netmask(
        self, old_netmask: int, netmask: int, master_ip: str, master_netdev: str
    ) -> None:
        """Change the prefix length of the address of the cluster, if this node has it."""

    @abstractmethod
    @call(timeout=ONE_DAY)
    def test_delay(self, duration: float) -> None:
        """Wait."""

    @abstractmethod
    @call(timeout=URGENT)
    def bridges_exist(self, bridges_list: list[str]) -> None:
        """Refuse when one of the bridges is missing."""

    @abstractmethod
    @call(timeout=NORMAL)
    def iallocator_runner(self, name: str, idata: str, default_iallocator_params: Json) -> str:
        """Run an allocator with the text of a request; gives what it wrote."""

    @abstractmethod
    @call(timeout=NORMAL)
    def run_oob(self, oob_program: str, command: str, remote_node: str, timeout: int) -> str:
        """Run the out-of-band program for another node; gives what it wrote."""

    @abstractmethod
    @call(timeout=NORMAL)
    def node_powercycle(self, hypervisor: str, hvparams: Json) -> str:
        """Restart this host at once, without stopping anything; answers before it does."""

    @abstractmethod
    @call(timeout=FAST)
    def node_crypto_tokens(self, token_request: list[tuple[str, str, Json]]) -> list[list[str]]:
        """Public tokens of this node: for ``("ssl", "get", {})`` the digest of its client
        certificate, as ``["ssl", digest]``."""

    # files -------------------------------------------------------------------------------

    @abstractmethod
    @call(timeout=NORMAL)
    def upload_file_single(
        self,
        file_name: str,
        content: list[Any],
        mode: int,
        uid: str,
        gid: str,
        atime: float,
        mtime: float,
    ) -> None:
        """Replace one of the files that the cluster distributes; any other path is refused."""

    @abstractmethod
    @call(timeout=NORMAL)
    def write_ssconf_files(self, values: dict[str, str]) -> None:
        """Replace ``ssconf_<key>`` files; unknown keys are refused."""

    @abstractmethod
    @call(timeout=URGENT)
    def set_watcher_pause(self, until: float | None) -> None:
        """Pause the watcher until a time (seconds since the epoch), or continue."""

    @abstractmethod
    @call(timeout=NORMAL)
    def hooks_runner(self, hpath: str, phase: str, env: dict[str, str]) -> list[list[Any]]:
        """Run the hooks ``<hpath>-<phase>.d``: ``[script, code, output]`` for each."""

    # disks -------------------------------------------------------------------------------

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_create(
        self,
        bdev: NodeDisk,
        size: int,
        owner: str,
        on_primary: bool,
        info: str,
        exclusive_storage: bool,
    ) -> list[Any] | None:
        """Make a disk; refuses when it exists."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_remove(self, bdev: NodeDisk) -> None:
        """Destroy a disk; no error when it is gone."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_assemble(
        self, disk: NodeDisk, instance: NodeInstance, on_primary: bool, idx: int
    ) -> tuple[str, str, str | None]:
        """Make a disk usable: device path, link below ``instance-disks``, address or None."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_shutdown(self, disk: NodeDisk) -> None:
        """Undo :meth:`blockdev_assemble`."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_find(self, disk: NodeDisk) -> BlockDevStatus | None:
        """State of a disk, None when it is not there."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_getdimensions(self, disks: list[NodeDisk]) -> list[tuple[int, int | None] | None]:
        """Size in bytes and spindles of disks, None for one that is not there."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_rename(self, devlist: list[tuple[NodeDisk, list[Any]]]) -> None:
        """Give disks new logical ids."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_grow(
        self, cf_bdev: NodeDisk, amount: int, dryrun: bool, backingstore: bool, es_flag: bool
    ) -> None:
        """Add ``amount`` MiB to a disk."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_open(self, instance_name: str, disks: list[NodeDisk], exclusive: bool) -> None:
        """Allow writing on this node, and make the links of the disks."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_close(self, instance_name: str, disks: list[NodeDisk]) -> None:
        """Forbid writing on this node, and remove the links of the disks."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_snapshot(
        self, cf_bdev: NodeDisk, snap_name: str | None, snap_size: int | None
    ) -> list[Any]:
        """Freeze the content of a disk; the logical id of the copy."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_setinfo(self, disk: NodeDisk, info: str) -> None:
        """Note a text beside the data of a disk, where it has a place for it."""

    @abstractmethod
    @call(timeout=SLOW)
    def blockdev_wipe(self, bdev: NodeDisk, offset: int, size: int) -> None:
        """Write zeros over ``size`` MiB of a disk from ``offset`` MiB on."""

    @abstractmethod
    @call(timeout=SLOW)
    def blockdev_convert(self, bdev_src: NodeDisk, bdev_dest: NodeDisk) -> None:
        """Copy the content of a disk into another one that is not smaller."""

    @abstractmethod
    @call(timeout=FAST)
    def disk_receive(self, disk: NodeDisk, address: str, compress: str) -> tuple[int, str]:
        """Wait at an address of this node for one sender of an assembled disk's content.

        Gives the port, and the token that the sender must know.
        """

    @abstractmethod
    @call(timeout=ONE_DAY)
    def disk_send(
        self, disk: NodeDisk, node: str, place: tuple[str, int], token: str, compress: str
    ) -> int:
        """Send the content of an assembled disk to a node that waits at a place; bytes sent."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_getmirrorstatus(self, disks: list[NodeDisk]) -> list[BlockDevStatus]:
        """State of disks together with what they are built on."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_getmirrorstatus_multi(
        self, node_disks: list[NodeDisk]
    ) -> list[tuple[bool, BlockDevStatus | str]]:
        """State of disks, with a text in place of one that cannot be asked."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_pause_resume_sync(
        self, disks: list[NodeDisk], pause: bool
    ) -> list[tuple[bool, str | None]]:
        """Hold up or go on with synchronising mirrored disks; success and text for each."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_addchildren(self, bdev: NodeDisk, ndevs: list[NodeDisk]) -> None:
        """Give a mirrored disk without volumes new ones, which its other side then fills."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_removechildren(self, bdev: NodeDisk, ndevs: list[NodeDisk]) -> None:
        """Let a mirrored disk go on without its volumes."""

    @abstractmethod
    @call(timeout=NORMAL)
    def drbd_attach_net(self, disks: list[NodeDisk], multimaster: bool) -> None:
        """Connect DRBD disks to the other node and wait until they are; call both nodes at once.

        With ``multimaster`` both nodes may be primary then, as a live migration needs.
        """

    @abstractmethod
    @call(timeout=NORMAL)
    def drbd_disconnect_net(self, disks: list[NodeDisk]) -> None:
        """Let DRBD disks work without the other node."""

    @abstractmethod
    @call(timeout=SLOW)
    def drbd_wait_sync(self, disks: list[NodeDisk]) -> tuple[bool, float]:
        """Whether all DRBD disks are in sync, and percent of the one furthest behind.

        Waits until they are connected, not until they are in sync: ask again.
        """

    @abstractmethod
    @call(timeout=NORMAL)
    def drbd_needs_activation(self, disks: list[NodeDisk]) -> list[str]:
        """Uuids of DRBD disks that are not active, without data, or not connected for good."""

    @abstractmethod
    @call(timeout=URGENT)
    def drbd_helper(self) -> str:
        """The user-mode helper of the node's DRBD module."""

    @abstractmethod
    @call(timeout=URGENT)
    def bdev_sizes(self, devices: list[str]) -> dict[str, int]:
        """MiB of block devices below ``/dev``; what is none is left out."""

    # storage units -----------------------------------------------------------------------

    @abstractmethod
    @call(timeout=URGENT)
    def vg_list(self) -> dict[str, int]:
        """Volume groups with their sizes."""

    @abstractmethod
    @call(timeout=URGENT)
    def lv_list(self, vg_name: list[str]) -> dict[str, tuple[str, bool, bool]]:
        """``group/volume`` of volume groups (none: all): size as text, inactive, in use."""

    @abstractmethod
    @call(timeout=FAST)
    def node_volumes(self) -> list[Json]:
        """Logical volumes, ``{name, size, dev, vg}`` for each physical volume they lie on."""

    @abstractmethod
    @call(timeout=NORMAL)
    def storage_list(
        self, su_name: str, su_args: list[Any], name: str | None, fields: list[str]
    ) -> list[list[Any]]:
        """Storage units of the type ``su_name``, the values of the fields for each."""

    @abstractmethod
    @call(timeout=NORMAL)
    def storage_modify(self, su_name: str, su_args: list[Any], name: str, changes: Json) -> None:
        """Change a storage unit."""

    @abstractmethod
    @call(timeout=NORMAL)
    def storage_execute(self, su_name: str, su_args: list[Any], name: str, op: str) -> None:
        """Run an operation on a storage unit."""

    @abstractmethod
    @call(timeout=FAST)
    def extstorage_diagnose(self) -> list[ExtStorageInfo]:
        """All providers of external storage found here, valid or not."""

    @abstractmethod
    @call(timeout=FAST)
    def file_storage_dir_create(self, file_storage_dir: str) -> None:
        """Make a directory for file disks."""

    @abstractmethod
    @call(timeout=FAST)
    def file_storage_dir_remove(self, file_storage_dir: str) -> None:
        """Remove an empty directory for file disks; no error when it is gone."""

    @abstractmethod
    @call(timeout=FAST)
    def file_storage_dir_rename(
        self, old_file_storage_dir: str, new_file_storage_dir: str
    ) -> None:
        """Rename a directory for file disks."""

    # instances ---------------------------------------------------------------------------

    @abstractmethod
    @call(timeout=URGENT)
    def all_instances_info(
        self, hypervisor_list: list[str], all_hvparams: dict[str, Json]
    ) -> dict[str, InstanceInfo]:
        """What runs here, of all given hypervisors."""

    @abstractmethod
    @call(timeout=URGENT)
    def instance_list(
        self, hypervisor_list: list[str], hvparams: dict[str, Json]
    ) -> list[str]:
        """Names of what runs here."""

    @abstractmethod
    @call(timeout=URGENT)
    def instance_info(self, instance: str, hname: str, hvparams: Json) -> Json:
        """State of one instance as in :class:`InstanceInfo`, ``{}`` when it does not run here."""

    @abstractmethod
    @call(timeout=NORMAL)
    def instance_start(
        self, instance_hvp_bep: NodeInstance, startup_paused: bool, reason: list[Any]
    ) -> None:
        """Start an instance whose disks are assembled; no error when it runs.

        Refused without a ``run_epoch`` newer than all that the node knows of the instance.
        """

    @abstractmethod
    @call(timeout=NORMAL)
    def instance_shutdown(
        self, instance: NodeInstance, timeout: int, reason: list[Any]
    ) -> None:
        """Stop an instance: ask, wait up to ``timeout`` seconds, then end it."""

    @abstractmethod
    @call(timeout=URGENT)
    def run_rights(self, uuids: list[str]) -> list[RunRight]:
        """What this node remembers of instances; without uuids of those that are on their way."""

    @abstractmethod
    @call(timeout=FAST)
    def run_right_set(self, right: RunRight, hypervisor: str) -> None:
        """Record a newer right; one that forbids to run is refused while the guest runs here."""

    @abstractmethod
    @call(timeout=FAST)
    def run_right_forget(self, uuid: str) -> None:
        """Forget an instance that does not exist any more; no error when it is not known."""

    @abstractmethod
    @call(timeout=NORMAL)
    def instance_reboot(
        self, inst: NodeInstance, reboot_type: str, shutdown_timeout: int, reason: list[Any]
    ) -> None:
        """Reboot: ``soft`` inside the running guest, ``hard`` by stop and start."""

    @abstractmethod
    @call(timeout=ONE_DAY)
    def instance_os_add(self, instance_osp: NodeInstance, reinstall: bool, debug: int) -> None:
        """Run the create script of the instance's OS."""

    @abstractmethod
    @call(timeout=SLOW)
    def instance_run_rename(self, instance: NodeInstance, old_name: str, debug: int) -> None:
        """Run the rename script of the instance's OS."""

    @abstractmethod
    @call(timeout=URGENT)
    def instance_console_info(
        self, params: dict[str, tuple[NodeInstance, str]]
    ) -> dict[str, Console]:
        """Console of instances: name -> (instance, name of this node)."""

    @abstractmethod
    @call(timeout=NORMAL)
    def hypervisor_validate_params(self, hvname: str, hvfull: Json) -> None:
        """Check complete hypervisor parameters on this node."""

    @abstractmethod
    @call(timeout=NORMAL)
    def instance_balloon_memory(self, instance: NodeInstance, memory: int) -> None:
        """Give a running instance ``memory`` MiB."""

    # instances that run: their devices ------------------------------------------------------

    @abstractmethod
    @call(timeout=NORMAL)
    def hotplug_supported(self, instance: NodeInstance) -> None:
        """Refuse when devices of the instance cannot be changed while it runs."""

    @abstractmethod
    @call(timeout=NORMAL)
    def hotplug_device(
        self,
        instance: NodeInstance,
        action: HotplugAction,
        dev_type: HotplugTarget,
        device: Json,
        extra: Any,
        seq: int,
    ) -> str | None:
        """Add, remove or modify a disk or card (number ``seq``); ``extra`` is not used.

        A disk that is added must be assembled, a disk that was removed can be shut down.
        """

    @abstractmethod
    @call(timeout=NORMAL)
    def resize_disk(self, instance: NodeInstance, disk: NodeDisk, new_size: int) -> None:
        """Tell a running instance that a disk has ``new_size`` MiB now."""

    @abstractmethod
    @call(timeout=NORMAL)
    def instance_change_media(self, instance: NodeInstance) -> None:
        """Put the CD images of its parameters into the drives of a running instance."""

    # instances that move; see the protocol Migratable for the order ---------------------------

    @abstractmethod
    @call(timeout=NORMAL)
    def instance_migratable(self, instance: NodeInstance) -> None:
        """Refuse when the running instance cannot be moved as it is."""

    @abstractmethod
    @call(timeout=NORMAL)
    def migration_info(self, instance: NodeInstance) -> Json:
        """At the source: what the target has to know. Contains a key: not to be logged."""

    @abstractmethod
    @call(timeout=NORMAL)
    def accept_instance(self, instance: NodeInstance, info: Json, target: str) -> str:
        """At the target, whose address ``target`` is: wait for the instance, disks assembled.

        Returns where it waits, for :meth:`instance_migrate`.
        """

    @abstractmethod
    @call(timeout=SLOW)
    def instance_migrate(
        self, cluster_name: str, instance: NodeInstance, target: str, live: bool
    ) -> None:
        """At the source: begin to move the instance; does not wait for the end."""

    @abstractmethod
    @call(timeout=SLOW)
    def instance_get_migration_status(self, instance: NodeInstance) -> MigrationStatus:
        """At the source: how far it is; waits up to 2 s for the end."""

    @abstractmethod
    @call(timeout=SLOW)
    def instance_finalize_migration_src(
        self, instance: NodeInstance, success: bool, live: bool
    ) -> None:
        """At the source: forget the instance that was moved, or stop the move and let it run."""

    @abstractmethod
    @call(timeout=NORMAL)
    def instance_finalize_migration_dst(
        self, instance: NodeInstance, info: Json, success: bool
    ) -> None:
        """At the target: see that the instance runs, or end what waits for it.

        Without ``success`` it is refused when the instance has taken over here.
        """

    @abstractmethod
    @call(timeout=FAST)
    def export_list(self) -> list[str]:
        """Names of the instance exports on this node."""

    # guest OS ----------------------------------------------------------------------------

    @abstractmethod
    @call(timeout=FAST)
    def os_diagnose(self) -> list[OsInfo]:
        """All OS definitions found here, valid or not."""

    @abstractmethod
    @call(timeout=FAST)
    def os_validate(
        self, required: bool, name: str, checks: list[str], params: Json, force_variant: bool
    ) -> bool:
        """Check that an OS and its parameters can be used; False when not there and optional."""


@cache
def specs() -> dict[str, CallSpec]:
    """All node calls by name."""
    return {
        name: _spec(name, function)
        for name, function in vars(NodeCalls).items()
        if hasattr(function, "__rpc_timeout__")
    }


def _spec(name: str, function: Any) -> CallSpec:
    hints = get_type_hints(function)
    result = hints.pop("return")
    order = [key for key in inspect.signature(function).parameters if key != "self"]
    types = tuple(hints[key] for key in order)
    args: Any = tuple[types] if types else tuple[()]  # type: ignore[valid-type]
    return CallSpec(
        name, float(function.__rpc_timeout__), args, result, inspect.getdoc(function) or ""
    )


def encode(value: Any) -> Any:
    """Plain JSON value of arguments or a result."""
    return msgspec.to_builtins(value)


def decode_args(spec: CallSpec, value: Any) -> tuple[Any, ...]:
    """Checked arguments; ParameterError names call and argument."""
    try:
        return cast(tuple[Any, ...], msgspec.convert(value, spec.args, strict=True))
    except msgspec.ValidationError as err:
        raise errors.ParameterError(f"call {spec.name}: {err}") from err


def decode_result(spec: CallSpec, value: Any) -> Any:
    """Checked result; RemoteError when the node answered something else."""
    if spec.result is type(None):
        return None
    try:
        return msgspec.convert(value, spec.result, strict=True)
    except msgspec.ValidationError as err:
        raise errors.RemoteError(f"call {spec.name}: unexpected answer: {err}") from err
