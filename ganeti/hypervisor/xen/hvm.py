"""Xen guests that are fully virtualised."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import msgspec

from ganeti import errors
from ganeti.base import files
from ganeti.hypervisor import typed_params
from ganeti.hypervisor.interface import (
    AttachedDisk,
    ConsoleLine,
    HvParams,
    Traits,
)
from ganeti.hypervisor.xen import domain_config
from ganeti.hypervisor.xen.driver import SCRIPTS, XenHypervisor
from ganeti.hypervisor.xen.params import (
    GLOBAL_PARAMS,
    HvmParams,
    XenParams,
)
from ganeti.rpc.objects import Console, NodeInstance

log = logging.getLogger(__name__)


class XenHvmHypervisor(XenHypervisor):
    """Guests that see a whole PC."""

    traits: ClassVar[Traits] = Traits(
        can_migrate=True, global_params=GLOBAL_PARAMS, scripts=SCRIPTS, needs_port=True
    )
    params: ClassVar[type[msgspec.Struct]] = HvmParams
    _fallback: ClassVar[tuple[str, ...]] = ("-F",)

    def _load(self, values: HvParams) -> HvmParams:
        return typed_params.load(HvmParams, values, "xen")

    def _text(self, instance: NodeInstance, disks: Sequence[AttachedDisk]) -> str:
        params = self._load(instance.hvparams)
        password = self._password(params)
        return domain_config.hvm(instance, disks, domain_config.Hvm(params, password))

    def _password(self, params: HvmParams) -> str | None:
        path = Path(params.vnc_password_file)
        try:
            return files.read_text(path).strip()
        except FileNotFoundError:
            log.warning("%s does not exist: guests get no VNC display", path)
            return None
        except OSError as err:
            raise errors.HypervisorError(
                f"vnc_password_file {path} cannot be read: {err.strerror}"
            ) from err

    def _node_files(self, params: XenParams) -> list[tuple[str, str]]:
        """The builtin values need not exist: they stand for what this Xen came with."""
        assert isinstance(params, HvmParams)
        builtin = HvmParams()
        names = (
            "kernel_path",
            "device_model",
            "vnc_password_file",
            "cdrom_image_path",
            "vif_script",
        )
        values = [(name, getattr(params, name)) for name in names]
        return [(name, value) for name, value in values if value != getattr(builtin, name)]

    def check_params(self, params: HvParams) -> None:
        super().check_params(params)
        address = self._load(params).vnc_bind_address
        try:
            ipaddress.IPv4Address(address)
        except ValueError as err:
            raise errors.HypervisorError(
                f"vnc_bind_address: '{address}' is not an IPv4 address"
            ) from err

    def console(self, instance: NodeInstance, node_name: str, params: HvParams) -> Console:
        known = self._load(params)
        if not instance.network_port or self._password(known) is None:
            return super().console(instance, node_name, params)
        any_address = known.vnc_bind_address == "0.0.0.0"
        return Console(
            instance=instance.name,
            kind="vnc",
            host=node_name if any_address else known.vnc_bind_address,
            port=instance.network_port,
            display=instance.network_port - domain_config.VNC_BASE_PORT,
        )

    def console_lines(self, instance: NodeInstance, params: HvParams) -> dict[str, ConsoleLine]:
        """Also VNC, if the guest has a display."""
        known, lines = self._load(params), super().console_lines(instance, params)
        if instance.network_port and self._password(known) is not None:
            address = known.vnc_bind_address
            local = "127.0.0.1" if address == "0.0.0.0" else address
            lines["vnc"] = ConsoleLine(tcp=(local, instance.network_port))
        return lines
