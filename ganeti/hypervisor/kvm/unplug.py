"""Devices that a running guest gives up: asked for, and waited for until it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ganeti import errors
from ganeti.base.clock import Deadline
from ganeti.hypervisor.kvm.hotplug_parts import DELETED, Change

if TYPE_CHECKING:
    from ganeti.hypervisor.kvm.qmp import Qmp

#: Seconds a guest may take to give up a device; an idle Linux needs 0.1.
_TIMEOUT = 10.0


def release_device(change: Change, device: str, what: str) -> None:
    """Ask the guest to give up a device and wait until it has."""
    release(change, device, "device", lambda _qmp: change.has(device), what)


def release(change: Change, device: str, key: str, has: Callable[[Qmp], bool], what: str) -> None:
    """As :func:`release_device`; events name it under ``key``, ``has`` tells if it is there."""
    name = change.runtime.instance.name
    with change.qmp.events(*DELETED) as events:
        if not has(change.qmp):
            return
        try:
            change.qmp.command("device_del", {"id": device})
        except errors.HypervisorError as err:
            # Somebody asked before; the guest may just have agreed.
            if not has(change.qmp):
                return
            if "already in the process of unplug" not in str(err):
                raise
        end = Deadline(_TIMEOUT)
        while (left := end.left) > 0:
            event = events.wait_next(left)
            if event is None:
                break
            named = str((event.get("data") or {}).get(key))
            if named != device and not named.startswith(f"{device}/"):
                continue
            if event["event"] != "DEVICE_DELETED":
                break
            if named == device or not has(change.qmp):
                return
    if has(change.qmp):
        raise errors.HotplugError(
            f"the guest of {name} did not release {what} within {_TIMEOUT:g} s, so it keeps it;"
            " check that its system runs and does not use it, and try again"
        )
