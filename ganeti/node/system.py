"""Node calls about the host itself: resources, addresses, the master daemon, leaving."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import signal
import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ganeti import constants, errors
from ganeti.base import boot, daemon, files, process
from ganeti.base.json_types import JsonObject
from ganeti.hypervisor.abilities import PowerCycling
from ganeti.net import hosts_file, interfaces, pem
from ganeti.node import membership
from ganeti.node.context import NodeContext
from ganeti.rpc.calls.system import SystemCalls
from ganeti.storage import space

log = logging.getLogger(__name__)

#: Takes orders for the kernel.
SYSRQ = Path("/proc/sysrq-trigger")
#: Seconds until a host restarts: the answer must get out before.
REBOOT_DELAY = 2.0
#: Seconds the master daemon gets to stop.
MASTER_STOP_WAIT = 60.0
#: Seconds until one that was killed has ended.
_KILL_WAIT = 5.0


class System(SystemCalls):
    """The host that this node daemon runs on."""

    def __init__(self, context: NodeContext, *, master_stop_wait: float = MASTER_STOP_WAIT) -> None:
        self._context = context
        self._master_stop_wait = master_stop_wait

    def version(self) -> int:
        return constants.PROTOCOL_VERSION

    def node_info(
        self,
        storage_units: list[tuple[str, str, list[Any]]],
        hv_specs: list[tuple[str, JsonObject]],
    ) -> tuple[str, list[JsonObject], list[JsonObject]]:
        """Boot id, room of each storage unit, resources as each hypervisor sees them.

        Raises:
            StorageError, HypervisorError: one of them cannot be asked.
        """
        return (
            boot.read_id(),
            [self._room(kind, name, params) for kind, name, params in storage_units],
            [self.hypervisor_info(name, params) for name, params in hv_specs],
        )

    def _room(self, kind: str, name: str, params: Sequence[object]) -> JsonObject:
        """Sizes are null for a unit that is not there or cannot be asked."""
        size: int | None
        free: int | None
        try:
            size, free = space.report(kind, self._context.paths.local(name), params)
        except errors.BlockDeviceError as err:
            # The rest of the answer is still of use; what needs this unit refuses without it.
            log.warning("storage %s %s: %s", kind, name, errors.text(err))
            size = free = None
        return {"type": kind, "name": name, "storage_free": free, "storage_size": size}

    def hypervisor_info(self, name: str, params: JsonObject) -> JsonObject:
        """Resources of the node by their names on the wire; unset ones are left out."""
        info = asdict(self._context.hypervisor(name).node_info(params))
        return {key: value for key, value in info.items() if value is not None}

    def node_has_ip_address(self, address: str) -> bool:
        return interfaces.has_address(address)

    def master_node_name(self) -> str:
        """The node that this node takes for the master; ConfigurationError without one."""
        name = self._context.term.read_highest()[1] or self._context.read_master()
        if not name:
            raise errors.ConfigurationError("this node does not know which node is the master")
        return name

    def node_crypto_tokens(
        self, token_request: list[tuple[str, str, JsonObject]]
    ) -> list[list[str]]:
        """``["ssl", digest of this node's client certificate]`` for each ``("ssl", "get", {})``.

        Raises:
            ParameterError: another kind of token, or something else than to get it.
            X509CertError: the certificate cannot be read.
        """
        for kind, action, _options in token_request:
            if (kind, action) != ("ssl", "get"):
                raise errors.ParameterError(
                    f"a node issues tokens for (ssl, get) only, not for ({kind}, {action})"
                )
        digest = pem.digest_of_file(self._context.paths.client_cert) if token_request else ""
        return [["ssl", digest] for _ in token_request]

    def node_stop_master(self, patience: float | None = None) -> None:
        """Stop the master's daemons on this node; no error when they do not run.

        Blocks until they have ended, at most a minute each. With ``patience`` one that has not
        ended after so many seconds is killed: it is frozen, or hangs. Another node takes over, so
        no administrator wants that this cluster has no master.

        Raises:
            GenericError: one did not end.
            ParameterError: no such time.
        """
        if patience is not None and not 0 <= patience <= self._master_stop_wait:
            raise errors.ParameterError(f"cannot wait {patience} s for the end of a daemon")
        self._stop_daemon(constants.RAPI, patience)
        if self._stop_daemon(constants.MASTERD, patience):
            files.remove(self._context.paths.master_stopped_file)

    def _stop_daemon(self, name: str, patience: float | None) -> bool:
        """Whether it ran."""
        pid = daemon.running_pid(self._context.paths.pid_file(name))
        if pid is None:
            return False
        log.info("stopping %s (pid %d)", name, pid)
        wait = self._master_stop_wait if patience is None else patience
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            return False
        ended = process.wait_exit(pid, wait)
        if not ended and patience is not None:
            log.error("%s (pid %d) did not stop within %g s and is killed", name, pid, wait)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            ended = process.wait_exit(pid, _KILL_WAIT)
        if not ended:
            raise errors.GenericError(f"{name} (pid {pid}) did not stop within {wait:g} s")
        return True

    def test_delay(self, duration: float) -> None:
        """Wait; the stop of the daemon ends it with an error."""
        if not math.isfinite(duration) or duration < 0:
            raise errors.ParameterError(f"cannot wait {duration} s")
        if self._context.stopping.wait(duration):
            raise errors.GenericError(f"the wait of {duration:g} s ended early: the daemon stops")

    def bridges_exist(self, bridges: list[str]) -> None:
        """Refuse when one of the bridges is missing; GenericError names all of them."""
        missing = interfaces.find_missing_bridges(bridges)
        if missing:
            raise errors.GenericError(f"missing bridges on this node: {', '.join(missing)}")

    def node_powercycle(self, hypervisor: str, hvparams: JsonObject) -> str:
        """Restart this host in ``REBOOT_DELAY`` seconds; nothing is stopped before.

        Raises:
            HypervisorError: this node is a directory, not a host.
        """
        if self._context.paths.root != Path("/"):
            raise errors.HypervisorError(
                "this node lives in a directory and has no host of its own to restart;"
                " tools/local-cluster kill-node ends all of it"
            )
        driver = self._context.hypervisor(hypervisor)
        reboot = driver.powercycle if isinstance(driver, PowerCycling) else _reboot
        timer = threading.Timer(REBOOT_DELAY, reboot)
        timer.daemon = True
        timer.start()
        log.warning("this host restarts in %g s, as the master was asked to", REBOOT_DELAY)
        return f"Reboot scheduled in {REBOOT_DELAY:g} seconds"

    def node_leave_cluster(self, modify_ssh_setup: bool) -> None:
        """Forget the cluster and have the daemon stopped; disks of instances stay.

        Can be repeated: the files that the daemon needs to start go last.

        Raises:
            GenericError: a file cannot be removed.
        """
        log.warning("this node leaves the cluster")
        hosts_file.leave(self._context.paths)
        membership.remove(membership.cluster_files(self._context.paths))
        self._context.on_leave()


def _reboot() -> None:
    """Restart at once by the kernel: no disk is synchronised, no process ended."""
    SYSRQ.write_text("b")
