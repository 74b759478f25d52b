"""Hypervisor name -> driver, imported on first use."""

from __future__ import annotations

from ganeti.base.registry import Registry
from ganeti.hypervisor.interface import Hypervisor

HYPERVISORS: Registry[type[Hypervisor]] = Registry(
    "hypervisor",
    {
        "chroot": "ganeti.hypervisor.chroot:ChrootHypervisor",
        "fake": "ganeti.hypervisor.fake:FakeHypervisor",
        "kvm": "ganeti.hypervisor.kvm.driver:KvmHypervisor",
        "lxc": "ganeti.hypervisor.lxc.driver:LxcHypervisor",
        "xen-hvm": "ganeti.hypervisor.xen.driver:XenHvmHypervisor",
        "xen-pvm": "ganeti.hypervisor.xen.driver:XenPvmHypervisor",
    },
)
