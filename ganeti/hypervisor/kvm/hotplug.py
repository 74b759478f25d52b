"""Devices of a running guest: added, removed and changed through QEMU's control socket.

The runtime file is written after each change, so it tells at any time what the guest has. A change
that broke off in between is found by its uuid the next time, and completed.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence

import msgspec

from ganeti import errors
from ganeti.hypervisor.kvm import devices, network, pinning, processors, setup, unplug
from ganeti.hypervisor.kvm.devices import Drive
from ganeti.hypervisor.kvm.hotplug_parts import (
    Change,
    add_drive,
    close_disk,
    close_net,
    escape,
    human_command,
    insert,
    lend,
    make_netdev,
    remove_device,
    size_of,
)
from ganeti.hypervisor.kvm.params import KvmParams, load
from ganeti.hypervisor.kvm.runtime import Runtime, Store
from ganeti.model.enums import DiskMode
from ganeti.model.ids import DiskUuid
from ganeti.rpc.objects import NodeDisk, NodeInstance, NodeNic

log = logging.getLogger(__name__)

_HOT_DISKS = ("paravirtual",)


class Hotplug:
    """All methods raise HotplugError, with QEMU's words, and then the guest is as it was."""

    def __init__(self, store: Store, scripts: network.Scripts) -> None:
        self._store = store
        self._scripts = scripts

    def check(self, name: str) -> None:
        """Refuse when the guest does not run or its machine has no places."""
        self._check(self._find_runtime(name))

    def list_disks(self, name: str) -> list[str] | None:
        """Uuids of the guest's disks, as far as that is on record; None when it does not run."""
        found = self._store.find(name)
        if found is None or not self._store.runs(found) or found.runtime.move != "none":
            return None
        return [drive.uuid for drive in found.runtime.drives]

    @contextlib.contextmanager
    def _change(self, name: str, *, foreign: bool = False) -> Iterator[Change]:
        """``foreign``: also of a guest that another software has started."""
        runtime = self._find_runtime(name)
        if not foreign:
            _refuse_foreign(runtime)
        try:
            with self._store.control(name) as qmp:
                yield Change(self._store, runtime, qmp)
        except errors.HotplugError:
            raise
        except (errors.HypervisorError, OSError) as err:
            raise errors.HotplugError(
                f"devices of instance {name} cannot be changed: {errors.text(err)}"
                if isinstance(err, errors.HypervisorError)
                else f"devices of instance {name} cannot be changed: {err}"
            ) from err

    def _find_runtime(self, name: str) -> Runtime:
        found = self._store.find(name)
        if found is None or not self._store.runs(found):
            raise errors.HotplugError(f"instance {name} does not run on this node")
        if found.runtime.move != "none":
            raise errors.HotplugError(
                f"instance {name} is being moved to another node; try again after that"
            )
        return found.runtime

    @staticmethod
    def _check(runtime: Runtime) -> None:
        params = runtime.params
        name = runtime.instance.name
        _refuse_foreign(runtime)
        if not runtime.machine or not params.kvm_pci_reservations:
            raise errors.HotplugError(
                f"instance {name} was started with kvm_pci_reservations 0, so QEMU placed its"
                " devices and none can be added or removed; set it to 12 and restart the instance"
            )
        if not params.acpi:
            raise errors.HotplugError(
                f"instance {name} was started without acpi, by which a guest learns of new devices"
            )

    # disks

    def plug_disk(self, name: str, drive: Drive) -> None:
        """Add a disk."""
        with self._change(name) as change:
            self._check(change.runtime)
            params = change.params
            if params.disk_type not in _HOT_DISKS and not devices.is_on_scsi(params.disk_type):
                raise errors.HotplugError(
                    f"disks of disk_type {params.disk_type} cannot be added to or removed from"
                    f" the running instance {name}"
                )
            if change.has(devices.disk_id(drive.uuid)):
                return
            places = change.places()
            device = devices.disk_device(drive, params, places)
            with contextlib.ExitStack() as undo:
                self._open_disk(change, drive, undo)
                change.qmp.command("device_add", device)
                undo.pop_all()
            change.save(drives=add_drive(change.runtime.drives, drive), places=places.occupied)
            if drive.limited:
                setup.limit(change.qmp, drive, change.params)

    def _open_disk(self, change: Change, drive: Drive, undo: contextlib.ExitStack) -> None:
        node = devices.device_id("disk", drive.uuid)
        close_disk(change.qmp, node)
        undo.callback(close_disk, change.qmp, node)
        if drive.uri is not None:
            text = devices.uri_drive(drive, drive.uri, change.params)
            answer = human_command(change.qmp, f'drive_add 0 "{escape(text)}"')
            if answer.strip() != "OK":
                raise errors.HotplugError(
                    f"disk {drive.uuid} cannot be opened: {answer.strip()[:300]}"
                )
            return
        arguments = devices.blockdev(drive, change.params)
        if change.runtime.restricted:
            arguments["file"]["filename"] = lend(
                change.qmp, drive.path, write=drive.mode != DiskMode.RO
            )
        change.qmp.command("blockdev-add", arguments)

    def unplug_disk(self, name: str, uuid: DiskUuid) -> None:
        """Remove a disk; afterwards QEMU has it not open any more."""
        with self._change(name) as change:
            device = devices.disk_id(uuid)
            params = change.params
            if params.disk_type not in _HOT_DISKS and not devices.is_on_scsi(params.disk_type):
                raise errors.HotplugError(
                    f"disks of disk_type {params.disk_type} cannot be added to or removed from"
                    f" the running instance {name}"
                )
            unplug.release_device(change, device, f"disk {uuid}")
            close_disk(change.qmp, devices.device_id("disk", uuid))
            drives = tuple(drive for drive in change.runtime.drives if drive.uuid != uuid)
            change.save(drives=drives, places=remove_device(change.runtime.places, device))

    def limit_disk(self, name: str, disk: NodeDisk) -> None:
        """Keep the guest to other limits of a disk, which also a migration takes along."""
        with self._change(name) as change:
            known = [drive for drive in change.runtime.drives if drive.uuid == disk.uuid]
            if not known:
                raise errors.HotplugError(
                    f"the running instance {name} does not have disk {disk.uuid}"
                )
            limits = {"max_iops": disk.max_iops, "max_bandwidth": disk.max_bandwidth}
            drive = msgspec.structs.replace(known[0], **limits)
            setup.limit(change.qmp, drive, change.params)
            drives = [drive if d.uuid == drive.uuid else d for d in change.runtime.drives]
            change.save(drives=tuple(drives))

    def resize_disk(self, name: str, drive: Drive, size: int) -> None:
        """Tell the guest how large a disk is now; ``size`` in MiB counts where it is not seen."""
        with self._change(name) as change:
            if not any(known.uuid == drive.uuid for known in change.runtime.drives):
                raise errors.HotplugError(
                    f"the running instance {name} does not have disk {drive.uuid}"
                )
            seen = size_of(drive)
            change.qmp.command(
                "block_resize",
                {
                    "node-name": devices.device_id("disk", drive.uuid),
                    # Never less than there is: that would cut the data off.
                    "size": size << 20 if seen is None else seen,
                },
            )

    # NICs

    def plug_nic(self, name: str, index: int, nic: NodeNic) -> None:
        """Add a card."""
        with self._change(name) as change:
            self._check(change.runtime)
            self._plug_nic(change, index, nic)

    def _plug_nic(self, change: Change, index: int, nic: NodeNic) -> None:
        runtime, params = change.runtime, change.params
        if change.has(devices.nic_id(nic.uuid)):
            return
        if params.nic_type == "ne2k_isa":
            raise errors.HotplugError(
                "NICs of nic_type ne2k_isa cannot be added to a running guest"
            )
        if "q35" in runtime.machine and params.nic_type != "paravirtual":
            raise errors.HotplugError(
                "only NICs of nic_type paravirtual can be added to a running guest with a machine"
                " of type q35"
            )
        opened: list[network.OpenCard] = []
        places = change.places()
        with contextlib.ExitStack() as undo:
            undo.callback(self._detach, change, index, nic, opened)
            with contextlib.ExitStack() as descriptors:
                descriptors.callback(network.close, opened)
                network.open_card(runtime.instance, index, nic, params, self._scripts, opened)
                card = opened[0]
                device = devices.nic_device(card.nic, params, places)
                netdev = make_netdev(change.qmp, card.nic)
                close_net(change.qmp, netdev["id"])
                change.qmp.command("netdev_add", netdev)
                undo.callback(close_net, change.qmp, netdev["id"])
                change.qmp.command("device_add", device)
            undo.pop_all()
        cards = [c for c in runtime.cards if c.uuid != nic.uuid]
        nics = [n for n in runtime.instance.nics if n.uuid != nic.uuid]
        cards.insert(index, card.card)
        nics.insert(index, nic)
        change.save(cards=tuple(cards), instance=change.nics(nics), places=places.occupied)
        self._store.note_cards(runtime.instance.name, cards)

    def _detach(
        self, change: Change, index: int, nic: NodeNic, opened: Sequence[network.OpenCard]
    ) -> None:
        for card in opened:
            network.detach(change.runtime.instance, index, nic, card.card, self._scripts)

    def unplug_nic(self, name: str, uuid: str) -> None:
        """Remove a card and its tap."""
        with self._change(name) as change:
            self._unplug_nic(change, uuid)

    def _unplug_nic(self, change: Change, uuid: str) -> None:
        runtime = change.runtime
        device = devices.nic_id(uuid)
        unplug.release_device(change, device, f"NIC {uuid}")
        close_net(change.qmp, devices.device_id("net", uuid))
        cards, nics = [], []
        for index, (card, nic) in enumerate(zip(runtime.cards, runtime.instance.nics, strict=True)):
            if card.uuid == uuid:
                network.detach(runtime.instance, index, nic, card, self._scripts)
            else:
                cards.append(card)
                nics.append(nic)
        change.save(
            cards=tuple(cards),
            instance=change.nics(nics),
            places=remove_device(runtime.places, device),
        )
        self._store.note_cards(runtime.instance.name, cards)

    def change_nic(self, name: str, index: int, nic: NodeNic) -> None:
        """Change the parameters of a NIC.

        Another link is changed behind the guest's back; another address means another card, which
        gets the place of the old one.
        """
        with self._change(name, foreign=True) as change:
            runtime = change.runtime
            at = next((i for i, c in enumerate(runtime.cards) if c.uuid == nic.uuid), None)
            if at is None:
                raise errors.HotplugError(
                    f"the running instance {name} does not have NIC {nic.uuid}"
                )
            old, card = runtime.instance.nics[at], runtime.cards[at]
            private = devices.is_private(nic) or card.tap is None
            if nic.mac != old.mac or private:
                if nic.mac == old.mac and devices.is_private(nic) == (card.tap is None):
                    return
                self._replace_nic(change, at, nic)
                return
            changed = network.change_link(runtime.instance, index, (old, nic), card, self._scripts)
            cards, nics = list(runtime.cards), list(runtime.instance.nics)
            cards[at], nics[at] = changed, nic
            change.save(cards=tuple(cards), instance=change.nics(nics))

    def _replace_nic(self, change: Change, index: int, nic: NodeNic) -> None:
        self._check(change.runtime)
        device = devices.nic_id(nic.uuid)
        place = change.runtime.places.get(device)
        old = change.runtime.instance.nics[index]
        self._unplug_nic(change, nic.uuid)
        if place is not None:
            change.save(places={**change.runtime.places, device: place})
        try:
            self._plug_nic(change, index, nic)
        except (errors.HypervisorError, OSError):
            self._plug_nic(change, index, old)
            raise

    # images

    def change_media(self, name: str, wanted: KvmParams) -> None:
        """Put the CD images of other parameters into the drives that the guest has."""
        with self._change(name) as change:
            for number, key in ((1, "cdrom_image_path"), (2, "cdrom2_image_path")):
                before, after = getattr(change.params, key), getattr(wanted, key)
                if before == after:
                    continue
                if not change.has(f"cd{number}"):
                    raise errors.HotplugError(
                        f"instance {name} was started without an image in {key}, so it has no such"
                        " drive; restart it"
                    )
                insert(change, number, after)
                instance = change.runtime.instance
                hvparams = {**instance.hvparams, key: after}
                change.save(instance=msgspec.structs.replace(instance, hvparams=hvparams))

    # processors

    def set_vcpus(self, instance: NodeInstance) -> None:
        """Set the processors of the guest to those of the instance, pinned by ``cpu_mask``."""
        wanted = instance.backend("vcpus")
        mask = load(instance.hvparams).cpu_mask
        with self._change(instance.name) as change:
            masks = pinning.plan(mask, wanted)
            slots = processors.slots(change.qmp)
            new = processors.find_added(slots, wanted, instance.name)
            surplus = processors.find_removed(
                slots, wanted, instance.name, change.runtime.accelerator
            )
            try:
                for slot in new:
                    change.qmp.command("device_add", slot.device())
                for slot in surplus:
                    unplug.release(change, slot.path, "path", slot.is_present, f"processor {slot}")
            finally:
                self._note_processors(change, mask)
            setup.pin(self._store.pid(instance.name), masks)
            setup.pin_each(change.qmp, masks)

    @staticmethod
    def _note_processors(change: Change, mask: str) -> None:
        """Remember what the guest has now; another node has to make the same machine."""
        slots = processors.slots(change.qmp)
        old = change.runtime.instance
        count = sum(1 for slot in slots if slot.path)
        hvparams = {**old.hvparams, "max_vcpus": len(slots)}
        masks = mask.split(":")
        if len(masks) == 1 or len(masks) >= count:
            hvparams["cpu_mask"] = ":".join(masks[:count])
        instance = msgspec.structs.replace(
            old, beparams={**old.beparams, "vcpus": count}, hvparams=hvparams
        )
        added = tuple(slot.device() for slot in slots if slot.was_added)
        change.save(instance=instance, processors=added)


def _refuse_foreign(runtime: Runtime) -> None:
    if runtime.software:
        name = runtime.instance.name
        raise errors.HotplugError(
            f"instance {name} was started by {runtime.software}, which gave its devices other names"
            f" and places; restart it first: gnt-instance reboot -t hard {name}"
        )
