"""Files of guests of other virtualisation products, as those write them."""

from __future__ import annotations

import hashlib
import io
import struct
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

MIB = 1 << 20
UUID = bytes(range(16))
CONFIG = """\
# what it is for
name: shop.example.com
memory: 512
balloon: 256
cores: 2
sockets: 1
bios: ovmf
machine: q35
boot: order=scsi1;scsi0
scsihw: virtio-scsi-single
scsi0: local:100/vm-100-disk-0.qcow2,size=4M
scsi1: local:100/vm-100-disk-1.qcow2,size=5M
ide2: none,media=cdrom
net0: virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1
tpmstate0: local:100/vm-100-disk-2.raw,size=4M,version=v2.0
#qmdump#map:scsi0:drive-scsi0:local:raw:

[before]
memory: 1024
"""
DOMAIN = """\
<domain type='kvm'>
  <name>mail.example.com</name>
  <memory unit='MiB'>512</memory>
  <currentMemory unit='KiB'>262144</currentMemory>
  <vcpu placement='static'>2</vcpu>
  <os firmware='efi'>
    <type arch='x86_64' machine='pc-q35-8.2'>hvm</type>
    <loader readonly='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE_4M.fd</loader>
  </os>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2'/>
      <source file='/var/lib/libvirt/images/{first}'/>
      <target dev='vda' bus='virtio'/>
    </disk>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw'/>
      <source file='/var/lib/libvirt/images/{second}'/>
      <target dev='vdb' bus='virtio'/>
    </disk>
    <disk type='file' device='cdrom'>
      <target dev='sda' bus='sata'/>
    </disk>
    <interface type='network'>
      <mac address='52:54:00:00:00:0a'/>
      <source network='default'/>
      <model type='virtio'/>
    </interface>
    <tpm model='tpm-crb'><backend type='emulator' version='2.0'/></tpm>
  </devices>
</domain>
"""
ENVELOPE = """\
<?xml version="1.0" encoding="UTF-8"?>
<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1"
 xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1"
 xmlns:vmw="http://www.vmware.com/schema/ovf"
 xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData">
  <References>
    <File ovf:id="file1" ovf:href="{first}"/>
    <File ovf:id="file2" ovf:href="{second}"/>
  </References>
  <DiskSection>
    <Info>Disks</Info>
    <Disk ovf:diskId="vmdisk1" ovf:fileRef="file1" ovf:capacity="{sizes[0]}"
     ovf:capacityAllocationUnits="byte * 2^20"/>
    <Disk ovf:diskId="vmdisk2" ovf:fileRef="file2" ovf:capacity="{sizes[1]}"
     ovf:capacityAllocationUnits="byte * 2^20"/>
  </DiskSection>
  <NetworkSection><Network ovf:name="VM Network"/></NetworkSection>
  <VirtualSystem ovf:id="vm">
    <Name>db.example.com</Name>
    <VirtualHardwareSection>
      <Item><rasd:InstanceID>1</rasd:InstanceID><rasd:ResourceType>3</rasd:ResourceType>
        <rasd:VirtualQuantity>2</rasd:VirtualQuantity></Item>
      <Item><rasd:AllocationUnits>byte * 2^20</rasd:AllocationUnits>
        <rasd:InstanceID>2</rasd:InstanceID><rasd:ResourceType>4</rasd:ResourceType>
        <rasd:VirtualQuantity>512</rasd:VirtualQuantity></Item>
      <Item><rasd:InstanceID>3</rasd:InstanceID><rasd:ResourceSubType>VirtualSCSI</rasd:ResourceSubType>
        <rasd:ResourceType>6</rasd:ResourceType></Item>
      <Item><rasd:ElementName>CD/DVD drive 1</rasd:ElementName>
        <rasd:InstanceID>4</rasd:InstanceID><rasd:ResourceType>15</rasd:ResourceType></Item>
      <Item><rasd:HostResource>ovf:/disk/vmdisk1</rasd:HostResource>
        <rasd:InstanceID>5</rasd:InstanceID><rasd:Parent>3</rasd:Parent>
        <rasd:ResourceType>17</rasd:ResourceType></Item>
      <Item><rasd:HostResource>ovf:/disk/vmdisk2</rasd:HostResource>
        <rasd:InstanceID>6</rasd:InstanceID><rasd:Parent>3</rasd:Parent>
        <rasd:ResourceType>17</rasd:ResourceType></Item>
      <Item><rasd:Connection>VM Network</rasd:Connection><rasd:InstanceID>7</rasd:InstanceID>
        <rasd:Address>00:50:56:00:00:0b</rasd:Address>
        <rasd:ResourceSubType>E1000</rasd:ResourceSubType>
        <rasd:ResourceType>10</rasd:ResourceType></Item>
      <vmw:Config ovf:required="false" vmw:key="firmware" vmw:value="efi"/>
    </VirtualHardwareSection>
  </VirtualSystem>
</Envelope>
"""


def make_content(size: int, seed: int) -> bytes:
    """Content of a disk: no partition table, some data, some zeros, data at the end."""
    block = bytes((at * 7 + seed) % 251 for at in range(4096))
    data = bytearray(size)
    for place in range(0, size, 1 << 18):
        data[place : place + 4096] = block
    data[-512:] = block[:512]
    return bytes(data)


def convert(content: bytes, path: Path, format: str, *options: str) -> Path:
    """Write a disk in a format of qemu-img."""
    raw = path.with_suffix(".source")
    raw.write_bytes(content)
    argv = ["qemu-img", "convert", "-q", "-f", "raw", "-O", format, *options, str(raw), str(path)]
    subprocess.run(argv, check=True)
    raw.unlink()
    return path


def make_libvirt(directory: Path, contents: Sequence[bytes]) -> Path:
    """A domain and its two disks."""
    convert(contents[0], directory / "mail.qcow2", "qcow2")
    (directory / "data.img").write_bytes(contents[1])
    path = directory / "mail.xml"
    path.write_text(DOMAIN.format(first="mail.qcow2", second="data.img"))
    return path


def make_ovf(directory: Path, contents: Sequence[bytes]) -> list[Path]:
    """Descriptor, manifest and disks of a guest, in this order."""
    disks = [
        convert(each, directory / f"db-disk{n}.vmdk", "vmdk", "-o", "subformat=streamOptimized")
        for n, each in enumerate(contents, 1)
    ]
    path = directory / "db.ovf"
    path.write_text(
        ENVELOPE.format(
            first=disks[0].name,
            second=disks[1].name,
            sizes=[len(each) // MIB for each in contents],
        )
    )
    manifest = directory / "db.mf"
    manifest.write_text(
        "".join(
            f"SHA256({each.name})= {hashlib.sha256(each.read_bytes()).hexdigest()}\n"
            for each in (path, *disks)
        )
    )
    return [path, manifest, *disks]


def make_ova(directory: Path, contents: Sequence[bytes]) -> Path:
    path = directory / "db.ova"
    pack(path, {each.name: each.read_bytes() for each in make_ovf(directory, contents)})
    return path


def pack(path: Path, members: Mapping[str, bytes]) -> None:
    """Write a tar archive."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def make_vma(
    devices: Mapping[str, bytes], config: str = CONFIG, *, extra: Mapping[str, bytes] | None = None
) -> bytes:
    """A backup: clusters of all devices in turn, as a running guest's come; zeros are left out."""
    blobs = bytearray(1)

    def add(data: bytes) -> int:
        place = len(blobs)
        blobs.extend(struct.pack("<H", len(data)) + data)
        return place

    head = bytearray(12288)
    configs = {"qemu-server.conf": config.encode(), **(extra or {})}
    for index, (name, text) in enumerate(configs.items()):
        struct.pack_into(">I", head, 2044 + 4 * index, add(name.encode() + b"\0"))
        struct.pack_into(">I", head, 3068 + 4 * index, add(text))
    for number, (name, data) in enumerate(devices.items(), 1):
        struct.pack_into(">IIQ", head, 4096 + 32 * number, add(name.encode() + b"\0"), 0, len(data))
    blobs.extend(bytes(-len(blobs) % 512))
    struct.pack_into(">4sI16sq", head, 0, b"VMA\0", 1, UUID, 1_700_000_000)
    struct.pack_into(">III", head, 48, 12288, len(blobs), 12288 + len(blobs))
    whole = bytes(head) + bytes(blobs)
    whole = whole[:32] + hashlib.md5(whole).digest() + whole[48:]
    clusters = [
        (number, cluster, data[cluster * 65536 : (cluster + 1) * 65536])
        for number, data in enumerate(devices.values(), 1)
        for cluster in range(-(-len(data) // 65536))
    ]
    clusters.sort(key=lambda entry: (entry[1], entry[0]))
    result = [whole]
    for begin in range(0, len(clusters), 59):
        result.append(_make_extent(clusters[begin : begin + 59]))
    return b"".join(result)


def _make_extent(clusters: Sequence[tuple[int, int, bytes]]) -> bytes:
    infos, blocks = [], []
    for number, cluster, data in clusters:
        mask = 0
        for block in range(16):
            piece = data[block * 4096 : (block + 1) * 4096]
            if piece.strip(b"\0"):
                mask |= 1 << block
                blocks.append(piece.ljust(4096, b"\0"))
        infos.append(mask << 48 | number << 32 | cluster)
    infos.extend([0] * (59 - len(infos)))
    head = struct.pack(">4sHH16s16s59Q", b"VMAE", 0, len(blocks), UUID, bytes(16), *infos)
    head = head[:24] + hashlib.md5(head).digest() + head[40:]
    return head + b"".join(blocks)
