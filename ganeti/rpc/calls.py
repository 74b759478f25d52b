"""Every call that a node daemon answers: one abstract method each.

The signature is the wire format: a JSON list of the arguments in order, and the result as JSON.
Encoding, checking (``rpc/wire.py``) and time-outs follow from it; mypy fails when the node side
lacks a method. Names and shapes are Ganeti's, but for ``master_*``, ``replica_*``, ``run_right*``,
``disk_*`` and ``copy_status``; sizes are MiB, times seconds.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from ganeti.model.names import HotplugAction, HotplugTarget
from ganeti.rpc.disk_calls import DiskCalls
from ganeti.rpc.objects import (
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
from ganeti.rpc.timing import FAST, NORMAL, ONE_DAY, REPLICA, SLOW, URGENT, call

Json = dict[str, Any]


class NodeCalls(DiskCalls):
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
    def file_storage_dir_rename(self, old_file_storage_dir: str, new_file_storage_dir: str) -> None:
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
    def instance_list(self, hypervisor_list: list[str], hvparams: dict[str, Json]) -> list[str]:
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
    def instance_shutdown(self, instance: NodeInstance, timeout: int, reason: list[Any]) -> None:
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

    @abstractmethod
    @call(timeout=NORMAL)
    def instance_set_vcpus(self, instance: NodeInstance) -> None:
        """Give a running instance as many processors as its parameters say."""

    # instances that move; see the protocol Migratable for the order ---------------------------

    @abstractmethod
    @call(timeout=NORMAL)
    def instance_migratable(self, instance: NodeInstance, live: bool) -> None:
        """Refuse when the running instance cannot be moved, going on meanwhile or not."""

    @abstractmethod
    @call(timeout=NORMAL)
    def migration_info(self, instance: NodeInstance, live: bool) -> Json:
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
    def instance_arrived(self, instance: NodeInstance) -> None:
        """At the target, of an instance that stands still: wait until all of it is there."""

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
        self,
        required: bool,
        name: str,
        checks: list[str],
        params: Json,
        force_variant: bool,
        hypervisor: str,
    ) -> bool:
        """Check that an OS and its parameters can be used; False when not there and optional.

        ``hypervisor`` is that of the instance; empty when none is meant.
        """
