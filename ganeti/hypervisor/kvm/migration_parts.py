"""Commands to QEMU for both ends of a live migration."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ganeti import errors
from ganeti.base import retry
from ganeti.base.json_types import JsonObject
from ganeti.hypervisor.kvm import migration_key, migration_plan, qemu_process
from ganeti.hypervisor.kvm.params import KvmParams
from ganeti.hypervisor.kvm.runtime import Runtime, Store

if TYPE_CHECKING:
    from ganeti.hypervisor.kvm.qmp import Qmp


#: Seconds for QEMU to end a migration that failed.
FINALIZE = 10.0


def save(store: Store, runtime: Runtime, **changes: object) -> Runtime:
    """Write the changed record of a guest; returns it."""
    changed = msgspec.structs.replace(runtime, **changes)
    store.save(changed)
    return changed


def prepare(qmp: Qmp, store: Store, runtime: Runtime, params: KvmParams, end: str) -> None:
    """Set the capabilities, and load the key from its file; ``end`` is client or server."""
    qmp.command("migrate-set-capabilities", {"capabilities": migration_plan.capabilities(params)})
    migration_key.load(qmp, store, runtime, end, migration_plan.TLS_OBJECT)


def add_sums(qmp: Qmp, answer: JsonObject) -> JsonObject:
    """QEMU says that it is complete a moment before it knows how long that took."""
    if answer.get("status") != "completed":
        return answer
    retry.retry_until(
        lambda: qmp.command("query-status")["status"] == "postmigrate" or None,
        timeout=1.0,
        largest=0.05,
    )
    found: JsonObject = qmp.command("query-migrate")
    return found


def try_ports(listen: Callable[[int], None], address: str, first: int) -> str:
    """Listen on the first free port; others may be receiving at the same time.

    Returns ``address:port``. HypervisorError: none is free, or ``listen`` fails otherwise.
    """
    for port in range(first, min(first + migration_plan.PORTS, 65536)):
        try:
            listen(port)
        except errors.HypervisorError as err:
            if "in use" in str(err):
                continue
            raise
        return migration_plan.host_port(address, port)
    raise errors.HypervisorError(
        f"all of the {migration_plan.PORTS} ports from {first} on (migration_port) are in use"
        f" at {address}"
    )


def listen(qmp: Qmp, address: str, first: int) -> str:
    """Wait for the memory of a guest at the address; returns ``address:port``."""

    def incoming(port: int) -> None:
        where = migration_plan.host_port(address, port)
        qmp.command("migrate-incoming", {"uri": f"tcp:{where}"})

    return try_ports(incoming, address, first)


def has_taken_over(name: str) -> errors.HypervisorError:
    return errors.HypervisorError(
        f"instance {name} has taken over on this node, so the move cannot be taken back;"
        " forget it at the other node"
    )


@contextlib.contextmanager
def hold_still(pid: int | None, pid_file: Path) -> Any:
    """Stop the process of a guest meanwhile; it continues afterwards, if it was not killed."""
    stopped = pid is not None and qemu_process.send(pid, pid_file, signal.SIGSTOP)
    try:
        if stopped and pid is not None:
            qemu_process.wait_stopped(pid, 10.0)
        yield
    finally:
        if stopped and pid is not None:
            qemu_process.send(pid, pid_file, signal.SIGCONT)


def resume_guest(qmp: Qmp, name: str) -> None:
    """Let a guest run, unless it does.

    QEMU takes a moment to end a migration that failed in its last phase, and refuses to go on
    meanwhile; no event tells when it has done so.
    """

    def has_resumed() -> bool | None:
        status = qmp.command("query-status")
        if status["status"] == "finish-migrate":
            return None
        if not status["running"]:
            qmp.command("cont")
        return True

    if retry.retry_until(has_resumed, timeout=FINALIZE) is None:
        raise errors.HypervisorError(
            f"QEMU of instance {name} has not ended its migration within {FINALIZE:.0f} s"
        )
