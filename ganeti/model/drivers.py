"""Every hypervisor and disk template that there is: a line each, with its driver.

Cheap to import, so that commands know the names too.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class _Driven(StrEnum):
    """Names of things that have a driver; a member is ``NAME = "name", "module:Class"``.

    ``driver`` is a text, so a name costs no import; the registries import it on first use.
    """

    driver: str

    def __new__(cls, name: str, driver: str = "") -> Self:
        item = str.__new__(cls, name)
        item._value_ = name
        item.driver = driver
        return item


class HypervisorName(_Driven):
    """Hypervisors an instance can run under."""

    CHROOT = "chroot", "ganeti.hypervisor.chroot:ChrootHypervisor"
    FAKE = "fake", "ganeti.hypervisor.fake:FakeHypervisor"
    KVM = "kvm", "ganeti.hypervisor.kvm.driver:KvmHypervisor"
    LXC = "lxc", "ganeti.hypervisor.lxc.driver:LxcHypervisor"
    XEN_HVM = "xen-hvm", "ganeti.hypervisor.xen.hvm:XenHvmHypervisor"
    XEN_PVM = "xen-pvm", "ganeti.hypervisor.xen.pvm:XenPvmHypervisor"


class DiskTemplate(_Driven):
    """How the disks of an instance are stored. ``diskless`` has no disks and so no driver."""

    BLOCKDEV = "blockdev", "ganeti.storage.block:BlockDevice"
    DISKLESS = "diskless"
    DRBD = "drbd", "ganeti.storage.drbd.device:DrbdDevice"
    EXT = "ext", "ganeti.storage.external:ExtDevice"
    FILE = "file", "ganeti.storage.file:FileDevice"
    GLUSTER = "gluster", "ganeti.storage.gluster:GlusterDevice"
    PLAIN = "plain", "ganeti.storage.lvm.device:LvmDevice"
    RBD = "rbd", "ganeti.storage.rbd:RbdDevice"
    SHAREDFILE = "sharedfile", "ganeti.storage.shared_file:SharedFileDevice"
