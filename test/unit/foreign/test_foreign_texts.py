"""What the descriptions of other products say, as plain data."""

from __future__ import annotations

import contextlib
import re

import pytest
from foreign_guests import CONFIG, DOMAIN, ENVELOPE, MIB
from hypothesis import given
from hypothesis import strategies as st

from ganeti import errors
from ganeti.foreign import libvirt, mapping, ovf, qemu_server, xml_tree
from ganeti.foreign.guest import ForeignDisk, ForeignGuest, ForeignNic

XML = DOMAIN.format(first="mail.qcow2", second="data.img")
OVF = ENVELOPE.format(first="a.vmdk", second="b.vmdk", sizes=[4, 5])
SIZES = {"drive-scsi0": 4 * MIB, "drive-scsi1": 5 * MIB}


def read_libvirt(text: str) -> ForeignGuest:
    return libvirt.read("a.xml", xml_tree.parse("a.xml", text.encode()))


def read_ovf(text: str) -> ForeignGuest:
    return ovf.read("a.ovf", xml_tree.parse("a.ovf", text.encode()))


def test_domain_of_libvirt() -> None:
    assert read_libvirt(XML) == ForeignGuest(
        name="mail.example.com",
        memory=512,
        least_memory=256,
        vcpus=2,
        disks=(
            ForeignDisk("vda", "mail.qcow2", "virtio", "qcow2"),
            ForeignDisk("vdb", "data.img", "virtio", "raw"),
        ),
        nics=(ForeignNic("52:54:00:00:00:0a", "default", "virtio"),),
        firmware="uefi",
        machine="pc-q35-8.2",
        left_out=(
            "cdrom sda",
            "TPM (tpm-crb)",
            "variables of UEFI: the guest boots what lies at \\EFI\\BOOT, or its first entry",
        ),
    )


def test_disk_that_libvirt_boots_from_comes_first() -> None:
    text = XML.replace("<target dev='vdb' bus='virtio'/>", "<target dev='vdb'/><boot order='1'/>")
    assert [disk.label for disk in read_libvirt(text).disks] == ["vdb", "vda"]


def test_only_the_name_of_a_file_counts() -> None:
    """So that no description reads a file of the server."""
    text = XML.replace("/var/lib/libvirt/images/data.img", "/etc/shadow")
    assert read_libvirt(text).disks[1].file == "shadow"
    text = OVF.replace("b.vmdk", "../b.vmdk")
    with pytest.raises(errors.OpPrereqError, match="not a name without"):
        read_ovf(text)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("unit='MiB'>512", "unit='moons'>512", "unknown unit 'moons'"),
        ("unit='MiB'>512", "unit='TiB'>99999999", "MiB; 67108864 are possible"),
        ("<vcpu placement='static'>2", "<vcpu>-2", "<vcpu> is '-2'"),
        ("type='qcow2'", "type='vdi'", "format 'vdi'"),
        ("<target dev='vda'", "<encryption/><target dev='vda'", "disk vda is encrypted"),
        (
            "<target dev='vda'",
            "<backingStore type='file'><source file='b'/></backingStore><target dev='vda'",
            "disk vda needs a backing file",
        ),
        ("<disk type='file' device='disk'>", "<disk type='network'>", "of type 'network'"),
        ("<domain type='kvm'>", "<!DOCTYPE domain><domain type='kvm'>", "DOCTYPE"),
        ("</domain>", "", "cannot be read: no element found"),
    ],
)
def test_domain_that_is_refused(old: str, new: str, text: str) -> None:
    with pytest.raises(errors.OpPrereqError, match=re.escape(text)):
        read_libvirt(XML.replace(old, new, 1))


def test_ovf() -> None:
    assert read_ovf(OVF) == ForeignGuest(
        name="db.example.com",
        memory=512,
        vcpus=2,
        disks=(
            ForeignDisk("vmdisk1", "a.vmdk", "scsi", None, 4 * MIB),
            ForeignDisk("vmdisk2", "b.vmdk", "scsi", None, 5 * MIB),
        ),
        nics=(ForeignNic("00:50:56:00:00:0b", "VM Network", "E1000"),),
        firmware="uefi",
        scsi_controller="VirtualSCSI",
        left_out=(
            "CD drive (CD/DVD drive 1)",
            "variables of UEFI: the guest boots what lies at \\EFI\\BOOT",
        ),
    )


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('capacity="4"', 'capacity="many"', "capacity of disk vmdisk1 is 'many'"),
        ("byte * 2^20</rasd", "furlong</rasd", "'furlong' is not a unit"),
        ("/disk/vmdisk2", "/disk/vmdisk3", "disk vmdisk3 is"),
        ('fileRef="file2"', 'fileRef="file3"', "no file 'file3'"),
        ('ovf:diskId="vmdisk1"', 'ovf:parentRef="x" ovf:diskId="vmdisk1"', "a parent disk"),
        ('ovf:href="a.vmdk"', 'ovf:href="a.vmdk" ovf:chunkSize="7"', "chunkSize"),
        ("<VirtualSystem ", "<VirtualSystem/><VirtualSystem ", "not exactly one guest"),
    ],
)
def test_ovf_that_is_refused(old: str, new: str, text: str) -> None:
    with pytest.raises(errors.OpPrereqError, match=re.escape(text)):
        read_ovf(OVF.replace(old, new, 1))


def test_manifest() -> None:
    found = ovf.read_manifest("a", b"SHA256(a b.vmdk)= 00FF\nSHA1(c.ovf) = 11\n")
    assert found == {
        "a b.vmdk": ovf.Checksum("sha256", "00ff"),
        "c.ovf": ovf.Checksum("sha1", "11"),
    }
    with pytest.raises(errors.OpPrereqError, match="expected a checksum"):
        ovf.read_manifest("a", b"MD5(a)= 00\n")


def test_config_of_proxmox() -> None:
    guest = qemu_server.read("a.vma", CONFIG, SIZES)
    assert (guest.name, guest.memory, guest.least_memory) == ("shop.example.com", 512, 256)
    assert (guest.vcpus, guest.firmware, guest.machine) == (2, "uefi", "q35")
    assert [disk.label for disk in guest.disks] == ["scsi1", "scsi0"]
    assert guest.nics == (ForeignNic("bc:24:11:00:00:01", "vmbr0", "virtio"),)
    assert "firewall of NIC 0" in guest.left_out
    assert any(text.startswith("TPM") for text in guest.left_out)


def test_disk_that_proxmox_did_not_back_up() -> None:
    with pytest.raises(errors.OpPrereqError, match="disk scsi1 of the guest is missing"):
        qemu_server.read("a.vma", CONFIG, {"drive-scsi0": MIB})
    text = CONFIG.replace("size=5M", "size=5M,backup=0")
    guest = qemu_server.read("a.vma", text, {"drive-scsi0": MIB})
    assert [disk.label for disk in guest.disks] == ["scsi0"]
    assert any("scsi1" in each for each in guest.left_out)


def map_guest(guest: ForeignGuest, hypervisor: str = "kvm") -> mapping.Mapped:
    return mapping.map_guest(guest, hypervisor=hypervisor, networks={}, keep_macs=True)


def test_parameters_of_kvm() -> None:
    assert map_guest(read_libvirt(XML)).hvparams == {
        "kernel_path": "",
        "disk_type": "paravirtual",
        "nic_type": "paravirtual",
        "firmware": "uefi",
        "machine_version": "q35",
    }
    found = map_guest(read_ovf(OVF))
    assert (found.hvparams["disk_type"], found.hvparams["nic_type"]) == ("scsi-hd", "e1000")
    assert any("SCSI controller virtualscsi" in text for text in found.left_out)
    found = map_guest(qemu_server.read("a", CONFIG, SIZES))
    assert found.hvparams["scsi_controller_type"] == "virtio-scsi-pci"


def test_other_hypervisor_gets_none_of_them() -> None:
    found = map_guest(read_libvirt(XML), "xen-hvm")
    assert found.hvparams == {}
    assert "firmware=uefi" in found.left_out[-1]


def test_every_parameter_is_one_of_kvm() -> None:
    from ganeti.hypervisor.kvm import params

    for bus in ("virtio", "scsi", "ide", "sata", "usb"):
        for model in ("virtio-scsi", "lsilogic", "megasas", "lsisas1078", ""):
            for nic in ("virtio", "E1000", "e1000e", "PCNet32", "VmxNet3", "rtl8139"):
                guest = ForeignGuest(
                    disks=(ForeignDisk("a", "a", bus),),
                    nics=(ForeignNic(model=nic),),
                    firmware="uefi-secure",
                    scsi_controller=model,
                )
                params.load(map_guest(guest).hvparams)


def test_networks_are_mapped_by_their_source() -> None:
    networks = dict([mapping.read_network("a=b=link:br0"), mapping.read_network("c=network:net1")])
    guest = ForeignGuest(nics=(ForeignNic("aa", "c"), ForeignNic("bb", "d"), ForeignNic("", "a=b")))
    found = mapping.map_guest(guest, hypervisor="kvm", networks=networks, keep_macs=True)
    assert found.nics == [{"mac": "aa", "network": "net1"}, {"mac": "bb"}, {"link": "br0"}]
    found = mapping.map_guest(guest, hypervisor="kvm", networks=networks, keep_macs=False)
    assert found.nics == [{"network": "net1"}, {}, {"link": "br0"}]
    with pytest.raises(errors.OpPrereqError, match=r"'c'; choose from: d"):
        mapping.map_guest(
            ForeignGuest(nics=(ForeignNic("", "d"),)),
            hypervisor="kvm",
            networks={"c": {"link": "br0"}},
            keep_macs=True,
        )
    with pytest.raises(errors.OpPrereqError, match="not of the form"):
        mapping.read_network("default=br0")


def test_disk_smaller_than_its_content_is_refused() -> None:
    guest = ForeignGuest(disks=(ForeignDisk("vda", "a", size=4 * MIB),))
    assert mapping.map_sizes(guest, [3 * MIB + 1], []) == [{"size": 4}]
    assert mapping.map_sizes(guest, [MIB], [{"size": 9, "vg": "x"}]) == [{"size": 9, "vg": "x"}]
    with pytest.raises(errors.OpPrereqError, match="one of them is wrong"):
        mapping.map_sizes(guest, [5 * MIB], [])
    with pytest.raises(errors.OpPrereqError, match="3 MiB are too few"):
        mapping.map_sizes(guest, [MIB], [{"size": 3}])
    with pytest.raises(errors.OpPrereqError, match="only 1 disks"):
        mapping.map_sizes(guest, [MIB], [{}, {}])


@given(st.data(), st.sampled_from(["libvirt", "ovf", "proxmox"]))
def test_any_damage_is_a_refusal(data: st.DataObject, kind: str) -> None:
    """A part of the text is gone, or something else: never a traceback."""
    text = {"libvirt": XML, "ovf": OVF, "proxmox": CONFIG}[kind]
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, min(len(text), begin + 40)))
    text = text[:begin] + data.draw(st.text(max_size=5)) + text[end:]
    with contextlib.suppress(errors.OpPrereqError):
        if kind == "proxmox":
            map_guest(qemu_server.read("a", text, SIZES))
        else:
            map_guest((read_libvirt if kind == "libvirt" else read_ovf)(text))


def test_xml_that_nests_too_deep_or_is_too_large() -> None:
    with pytest.raises(errors.OpPrereqError, match="64 levels"):
        xml_tree.parse("a", b"<a>" * 70)
    with pytest.raises(errors.OpPrereqError, match="more than 4 MiB"):
        xml_tree.parse("a", b"<a>" + b" " * (4 << 20))
