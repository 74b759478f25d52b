"""Settings that a new guest gets before it runs: processors, password, limits of disks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ganeti.hypervisor.kvm import devices, inputs, pinning
from ganeti.hypervisor.kvm.devices import Drive
from ganeti.hypervisor.kvm.display import password_protocol
from ganeti.hypervisor.kvm.params import KvmParams

if TYPE_CHECKING:
    from ganeti.hypervisor.kvm.qmp import Qmp


def is_needed(params: KvmParams, drives: Sequence[Drive]) -> bool:
    """Whether :func:`finish` has something to do, so that QEMU must start paused."""
    limited = any(drive.limited for drive in drives)
    return limited or bool(password_protocol(params)) or ":" in params.cpu_mask


def pin(pid: int | None, masks: Sequence[pinning.Mask]) -> None:
    """Keep a guest to its processors when it has one mask for all; needs no answer of QEMU."""
    if pid is not None and len(masks) == 1:
        pinning.pin(pid, masks[0])


def finish(
    qmp: Qmp, params: KvmParams, masks: Sequence[pinning.Mask], drives: Sequence[Drive]
) -> None:
    """Set the password of the display, pin each virtual processor by its thread, limit disks.

    Raises:
        HypervisorError: no password in the file, QEMU refused, or the system.
    """
    protocol = password_protocol(params)
    if protocol:
        secret = inputs.password(params, protocol)
        qmp.command("set_password", {"protocol": protocol, "password": secret})
    pin_each(qmp, masks)
    for drive in drives:
        if drive.limited:
            limit(qmp, drive, params)


def limit(qmp: Qmp, drive: Drive, params: KvmParams) -> None:
    """Keep the guest to the limits of a disk, now and until they are changed; HypervisorError."""
    qmp.command("block_set_io_throttle", devices.throttle(drive, params))


def pin_each(qmp: Qmp, masks: Sequence[pinning.Mask]) -> None:
    """Pin each virtual processor by its thread when there is a mask for each; HypervisorError."""
    if len(masks) > 1:
        processors = sorted(qmp.command("query-cpus-fast"), key=lambda cpu: cpu["cpu-index"])
        pinning.pin_each([cpu["thread-id"] for cpu in processors], masks)
