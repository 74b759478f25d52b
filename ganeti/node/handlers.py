"""All node calls of one node daemon: each is handed to the family that knows how."""

from __future__ import annotations

from typing import Any

import msgspec

from ganeti import constants
from ganeti.model.names import HotplugAction, HotplugTarget
from ganeti.node import network
from ganeti.node.context import NodeContext
from ganeti.node.copying import Copies
from ganeti.node.disk_content import DiskContent
from ganeti.node.disk_states import DiskStates
from ganeti.node.disks import Disks
from ganeti.node.external import External
from ganeti.node.files import Files
from ganeti.node.guest_os import GuestOs
from ganeti.node.hooks import Hooks
from ganeti.node.hotplug import Hotplug
from ganeti.node.instances import Instances
from ganeti.node.master_ip import MasterIp
from ganeti.node.migration import Migration
from ganeti.node.mirrors import Mirrors
from ganeti.node.replica import Replica
from ganeti.node.storage import Storage
from ganeti.node.system import System
from ganeti.node.transfer import Transfer
from ganeti.node.verify import Verifier
from ganeti.rpc.calls import Json, NodeCalls
from ganeti.rpc.objects import (
    BlockDevStatus,
    Console,
    CopyStatus,
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


class Node(NodeCalls):
    """One host; what the calls mean is written at :class:`~ganeti.rpc.calls.NodeCalls`."""

    def __init__(self, context: NodeContext) -> None:
        self._system = System(context)
        self._files = Files(context)
        self._replica = Replica(context, context.term)
        #: to be called when no call comes any more
        self.stop = self._replica.stop
        self._hooks = Hooks(context)
        self._master_ip = MasterIp(context, self._hooks)
        self._external = External(context)
        self._disks = Disks(context)
        self._copies = Copies(context)
        self._transfer = Transfer(context, self._disks, self._copies)
        self._disk_content = DiskContent(context, self._disks, self._copies)
        self._disk_states = DiskStates(self._disks)
        self._mirrors = Mirrors(context, self._disks)
        self._storage = Storage(self._disks)
        self._instances = Instances(context, self._disks)
        self._hotplug = Hotplug(context, self._disks)
        self._migration = Migration(context, self._disks, self._instances.rights)
        self._guest_os = GuestOs(context, self._disks)
        self._verifier = Verifier(
            context,
            self._system,
            self._instances,
            self._disks,
            self._storage,
            self._guest_os,
        )

    # node

    def version(self) -> int:
        return constants.PROTOCOL_VERSION

    def node_info(
        self, storage_units: list[tuple[str, str, list[Any]]], hv_specs: list[tuple[str, Json]]
    ) -> tuple[str, list[Json] | None, list[Json] | None]:
        return self._system.info(storage_units, hv_specs)

    def node_verify(
        self, checkdict: Json, cluster_name: str, all_hvparams: dict[str, Json]
    ) -> Json:
        return self._verifier.run(checkdict, all_hvparams)

    def node_has_ip_address(self, address: str) -> bool:
        return network.has_address(address)

    def node_leave_cluster(self, modify_ssh_setup: bool) -> None:
        self._system.leave()

    def master_node_name(self) -> str:
        return self._system.master_name()

    def master_view(self) -> MasterView:
        return self._replica.view(self._system.told_master())

    def master_claim(self, epoch: int, master: str) -> MasterView:
        return self._replica.claim(epoch, master, self._system.told_master())

    def replica_update(self, update: ReplicaUpdate) -> bool:
        return self._replica.update(update)

    def replica_differing(self, manifest: dict[str, int]) -> list[str]:
        return self._replica.differing(manifest)

    def node_stop_master(self) -> None:
        self._system.stop_master()

    def node_demote_from_mc(self) -> None:
        self._replica.forget(self._system.demote)

    def node_activate_master_ip(
        self, master_params: MasterNetwork, use_external_mip_script: bool
    ) -> None:
        self._master_ip.activate(master_params, external=use_external_mip_script)

    def node_deactivate_master_ip(
        self, master_params: MasterNetwork, use_external_mip_script: bool
    ) -> None:
        self._master_ip.deactivate(master_params, external=use_external_mip_script)

    def node_change_master_netmask(
        self, old_netmask: int, netmask: int, master_ip: str, master_netdev: str
    ) -> None:
        self._master_ip.change_netmask(old_netmask, netmask, master_ip, master_netdev)

    def test_delay(self, duration: float) -> None:
        self._system.delay(duration)

    def bridges_exist(self, bridges_list: list[str]) -> None:
        self._system.check_bridges(bridges_list)

    def iallocator_runner(self, name: str, idata: str, default_iallocator_params: Json) -> str:
        return self._external.allocator(name, idata, default_iallocator_params)

    def run_oob(self, oob_program: str, command: str, remote_node: str, timeout: int) -> str:
        return self._external.oob(oob_program, command, remote_node, timeout)

    def node_powercycle(self, hypervisor: str, hvparams: Json) -> str:
        return self._system.powercycle(hypervisor)

    def node_crypto_tokens(self, token_request: list[tuple[str, str, Json]]) -> list[list[str]]:
        return self._system.tokens(token_request)

    # files

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
        self._files.upload(file_name, content, mode, uid, gid, (atime, mtime))

    def write_ssconf_files(self, values: dict[str, str]) -> None:
        self._files.write_ssconf(values)

    def set_watcher_pause(self, until: float | None) -> None:
        self._files.set_watcher_pause(until)

    def hooks_runner(self, hpath: str, phase: str, env: dict[str, str]) -> list[list[Any]]:
        return self._hooks.run(hpath, phase, env)

    # disks

    def blockdev_create(
        self,
        bdev: NodeDisk,
        size: int,
        owner: str,
        on_primary: bool,
        info: str,
        exclusive_storage: bool,
    ) -> list[Any] | None:
        return self._disks.create(
            bdev, size, info, on_primary=on_primary, exclusive_storage=exclusive_storage
        )

    def blockdev_remove(self, bdev: NodeDisk) -> None:
        self._disks.remove(bdev)

    def blockdev_assemble(
        self, disk: NodeDisk, instance: NodeInstance, on_primary: bool, idx: int
    ) -> tuple[str, str, str | None]:
        return self._disks.assemble(disk, instance, on_primary, idx)

    def blockdev_shutdown(self, disk: NodeDisk) -> None:
        self._disks.shutdown(disk)

    def blockdev_find(self, disk: NodeDisk) -> BlockDevStatus | None:
        return self._disks.find(disk)

    def blockdev_getdimensions(self, disks: list[NodeDisk]) -> list[tuple[int, int | None] | None]:
        return self._disks.dimensions(disks)

    def blockdev_rename(self, devlist: list[tuple[NodeDisk, list[Any]]]) -> None:
        self._disks.rename(devlist)

    def blockdev_grow(
        self, cf_bdev: NodeDisk, amount: int, dryrun: bool, backingstore: bool, es_flag: bool
    ) -> None:
        self._disks.grow(
            cf_bdev,
            amount,
            dry_run=dryrun,
            backing_store=backingstore,
            exclusive_storage=es_flag,
        )

    def blockdev_open(self, instance_name: str, disks: list[NodeDisk], exclusive: bool) -> None:
        self._disks.open(instance_name, disks, exclusive=exclusive)

    def blockdev_close(self, instance_name: str, disks: list[NodeDisk]) -> None:
        self._disks.close(disks)

    def blockdev_snapshot(
        self, cf_bdev: NodeDisk, snap_name: str | None, snap_size: int | None
    ) -> list[Any]:
        return self._disks.snapshot(cf_bdev, snap_name or "", snap_size or 0)

    def blockdev_setinfo(self, disk: NodeDisk, info: str) -> None:
        self._disks.set_info(disk, info)

    def blockdev_wipe(self, bdev: NodeDisk, offset: int, size: int) -> None:
        self._disk_content.wipe(bdev, offset, size)

    def disk_convert(self, source: NodeDisk, target: NodeDisk) -> str:
        return self._disk_content.begin_copy(source, target)

    def disk_expect(self, disk: NodeDisk, address: str, compress: str) -> tuple[int, str]:
        return self._transfer.receive(disk, address, compress)

    def disk_transfer(
        self, disk: NodeDisk, node: str, place: tuple[str, int], token: str, compress: str
    ) -> str:
        return self._transfer.begin_send(disk, node, place, token, compress)

    def copy_status(self, copy: str) -> CopyStatus:
        return self._copies.status(copy)

    def blockdev_getmirrorstatus(self, disks: list[NodeDisk]) -> list[BlockDevStatus]:
        return self._disk_states.mirrors(disks)

    def blockdev_getmirrorstatus_multi(
        self, node_disks: list[NodeDisk]
    ) -> list[tuple[bool, BlockDevStatus | str]]:
        return self._disk_states.each_mirror(node_disks)

    def blockdev_pause_resume_sync(
        self, disks: list[NodeDisk], pause: bool
    ) -> list[tuple[bool, str | None]]:
        return self._disk_states.pause_resync(disks, pause=pause)

    def blockdev_addchildren(self, bdev: NodeDisk, ndevs: list[NodeDisk]) -> None:
        self._mirrors.attach_children(bdev, ndevs)

    def blockdev_removechildren(self, bdev: NodeDisk, ndevs: list[NodeDisk]) -> None:
        self._mirrors.detach_children(bdev, ndevs)

    def drbd_attach_net(self, disks: list[NodeDisk], multimaster: bool) -> None:
        self._mirrors.attach_net(disks, two_primaries=multimaster)

    def drbd_disconnect_net(self, disks: list[NodeDisk]) -> None:
        self._mirrors.disconnect_net(disks)

    def drbd_wait_sync(self, disks: list[NodeDisk]) -> tuple[bool, float]:
        return self._mirrors.wait_sync(disks)

    def drbd_needs_activation(self, disks: list[NodeDisk]) -> list[str]:
        return self._mirrors.needs_activation(disks)

    def drbd_helper(self) -> str:
        return self._mirrors.helper()

    def bdev_sizes(self, devices: list[str]) -> dict[str, int]:
        return self._storage.device_sizes(devices)

    # storage units

    def vg_list(self) -> dict[str, int]:
        return self._storage.groups()

    def lv_list(self, vg_name: list[str]) -> dict[str, tuple[str, bool, bool]]:
        return self._storage.volumes(vg_name)

    def node_volumes(self) -> list[Json]:
        return self._storage.volumes_on_disks()

    def storage_list(
        self, su_name: str, su_args: list[Any], name: str | None, fields: list[str]
    ) -> list[list[Any]]:
        return self._storage.listed(su_name, su_args, name, fields)

    def storage_modify(self, su_name: str, su_args: list[Any], name: str, changes: Json) -> None:
        self._storage.modify(su_name, name, changes)

    def storage_execute(self, su_name: str, su_args: list[Any], name: str, op: str) -> None:
        self._storage.execute(su_name, name, op)

    def extstorage_diagnose(self) -> list[ExtStorageInfo]:
        return self._storage.providers()

    def file_storage_dir_create(self, file_storage_dir: str) -> None:
        self._disks.make_directory(file_storage_dir)

    def file_storage_dir_remove(self, file_storage_dir: str) -> None:
        self._disks.remove_directory(file_storage_dir)

    def file_storage_dir_rename(self, old_file_storage_dir: str, new_file_storage_dir: str) -> None:
        self._disks.rename_directory(old_file_storage_dir, new_file_storage_dir)

    # instances

    def all_instances_info(
        self, hypervisor_list: list[str], all_hvparams: dict[str, Json]
    ) -> dict[str, InstanceInfo]:
        return self._instances.all_info(hypervisor_list)

    def instance_list(self, hypervisor_list: list[str], hvparams: dict[str, Json]) -> list[str]:
        return self._instances.names(hypervisor_list)

    def instance_info(self, instance: str, hname: str, hvparams: Json) -> Json:
        info = self._instances.info(instance, hname)
        return {} if info is None else msgspec.structs.asdict(info)

    def instance_start(
        self, instance_hvp_bep: NodeInstance, startup_paused: bool, reason: list[Any]
    ) -> None:
        self._instances.start(instance_hvp_bep, paused=startup_paused, reason=reason)

    def run_rights(self, uuids: list[str]) -> list[RunRight]:
        return self._instances.rights.known(uuids) if uuids else self._instances.rights.unsettled()

    def run_right_set(self, right: RunRight, hypervisor: str) -> None:
        self._instances.set_right(right, hypervisor)

    def run_right_forget(self, uuid: str) -> None:
        self._instances.rights.forget(uuid)

    def instance_shutdown(self, instance: NodeInstance, timeout: int, reason: list[Any]) -> None:
        self._instances.shutdown(instance, timeout, reason)

    def instance_reboot(
        self, inst: NodeInstance, reboot_type: str, shutdown_timeout: int, reason: list[Any]
    ) -> None:
        self._instances.reboot(inst, reboot_type, shutdown_timeout, reason)

    def instance_os_add(self, instance_osp: NodeInstance, reinstall: bool, debug: int) -> None:
        self._guest_os.add(instance_osp, reinstall=reinstall, debug=debug)

    def instance_run_rename(self, instance: NodeInstance, old_name: str, debug: int) -> None:
        self._guest_os.rename(instance, old_name, debug)

    def instance_console_info(
        self, params: dict[str, tuple[NodeInstance, str]]
    ) -> dict[str, Console]:
        return self._instances.consoles(params)

    def hypervisor_validate_params(self, hvname: str, hvfull: Json) -> None:
        self._instances.check_params(hvname, hvfull)

    def instance_balloon_memory(self, instance: NodeInstance, memory: int) -> None:
        self._instances.balloon(instance, memory)

    def hotplug_supported(self, instance: NodeInstance) -> None:
        self._hotplug.check(instance)

    def hotplug_device(
        self,
        instance: NodeInstance,
        action: HotplugAction,
        dev_type: HotplugTarget,
        device: Json,
        extra: Any,
        seq: int,
    ) -> str | None:
        self._hotplug.change(instance, action, dev_type, device, seq)
        return None

    def resize_disk(self, instance: NodeInstance, disk: NodeDisk, new_size: int) -> None:
        self._hotplug.resize(instance, disk, new_size)

    def instance_change_media(self, instance: NodeInstance) -> None:
        self._hotplug.change_media(instance)

    def instance_set_vcpus(self, instance: NodeInstance) -> None:
        self._hotplug.set_vcpus(instance)

    def instance_migratable(self, instance: NodeInstance, live: bool) -> None:
        self._migration.check(instance, live=live)

    def migration_info(self, instance: NodeInstance, live: bool) -> Json:
        return self._migration.info(instance, live=live)

    def accept_instance(self, instance: NodeInstance, info: Json, target: str) -> str:
        return self._migration.accept(instance, info, target)

    def instance_migrate(
        self, cluster_name: str, instance: NodeInstance, target: str, live: bool
    ) -> None:
        self._migration.begin(instance, target, live=live)

    def instance_get_migration_status(self, instance: NodeInstance) -> MigrationStatus:
        return self._migration.status(instance)

    def instance_arrived(self, instance: NodeInstance) -> None:
        self._migration.check_arrived(instance)

    def instance_finalize_migration_src(
        self, instance: NodeInstance, success: bool, live: bool
    ) -> None:
        self._migration.finish_source(instance, success=success, live=live)

    def instance_finalize_migration_dst(
        self, instance: NodeInstance, info: Json, success: bool
    ) -> None:
        self._migration.finish_target(instance, info, success=success)

    def export_list(self) -> list[str]:
        return self._files.exports()

    # guest OS

    def os_diagnose(self) -> list[OsInfo]:
        return self._guest_os.diagnose()

    def os_validate(
        self,
        required: bool,
        name: str,
        checks: list[str],
        params: Json,
        force_variant: bool,
        hypervisor: str,
    ) -> bool:
        return self._guest_os.validate(
            name,
            checks,
            params,
            required=required,
            force_variant=force_variant,
            hypervisor=hypervisor,
        )
