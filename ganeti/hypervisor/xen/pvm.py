"""Xen guests that are paravirtualised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from ganeti.hypervisor import typed_params
from ganeti.hypervisor.interface import (
    AttachedDisk,
    HvParams,
    Traits,
)
from ganeti.hypervisor.xen import domain_config
from ganeti.hypervisor.xen.driver import SCRIPTS, XenHypervisor
from ganeti.hypervisor.xen.params import (
    GLOBAL_PARAMS,
    PvmParams,
    XenParams,
)
from ganeti.rpc.objects import NodeInstance


class XenPvmHypervisor(XenHypervisor):
    """Paravirtual guests: PV, or PVH where the processor helps."""

    traits: ClassVar[Traits] = Traits(
        can_migrate=True, global_params=GLOBAL_PARAMS, scripts=SCRIPTS
    )
    params: ClassVar[type[msgspec.Struct]] = PvmParams

    def _load(self, values: HvParams) -> PvmParams:
        return typed_params.load(PvmParams, values, "xen")

    def _text(self, instance: NodeInstance, disks: Sequence[AttachedDisk]) -> str:
        return domain_config.pvm(instance, disks, self._load(instance.hvparams))

    def _node_files(self, params: XenParams) -> list[tuple[str, str]]:
        assert isinstance(params, PvmParams)
        if params.use_bootloader:
            wanted = {"bootloader_path": params.bootloader_path}
        else:
            wanted = {"kernel_path": params.kernel_path}
            if params.initrd_path:
                wanted["initrd_path"] = params.initrd_path
        if params.vif_script:
            wanted["vif_script"] = params.vif_script
        return list(wanted.items())
