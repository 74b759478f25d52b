"""What a new guest needs from outside before it may run: its processors, and its password."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ganeti.hypervisor.kvm import inputs, pinning
from ganeti.hypervisor.kvm.display import password_protocol
from ganeti.hypervisor.kvm.params import KvmParams

if TYPE_CHECKING:
    from ganeti.hypervisor.kvm.qmp import Qmp


def is_needed(params: KvmParams) -> bool:
    """Whether QEMU has to be told something by :func:`finish`, and so must start paused."""
    return bool(password_protocol(params)) or ":" in params.cpu_mask


def pin(pid: int | None, masks: Sequence[pinning.Mask]) -> None:
    """Keep a guest to its processors when it has one mask for all; needs no answer of QEMU."""
    if pid is not None and len(masks) == 1:
        pinning.pin(pid, masks[0])


def finish(qmp: Qmp, params: KvmParams, masks: Sequence[pinning.Mask]) -> None:
    """Set the password of the display, and pin each virtual processor by its thread.

    Raises:
        HypervisorError: no password in the file, QEMU refused, or the system.
    """
    protocol = password_protocol(params)
    if protocol:
        secret = inputs.password(params, protocol)
        qmp.command("set_password", {"protocol": protocol, "password": secret})
    pin_each(qmp, masks)


def pin_each(qmp: Qmp, masks: Sequence[pinning.Mask]) -> None:
    """Pin each virtual processor by its thread when there is a mask for each; HypervisorError."""
    if len(masks) > 1:
        processors = sorted(qmp.command("query-cpus-fast"), key=lambda cpu: cpu["cpu-index"])
        pinning.pin_each([cpu["thread-id"] for cpu in processors], masks)
