"""Guests that are paused for a moment while their disks are copied.

Each has a time limit, so that a master that dies in between costs a guest seconds. A note on disk
tells a node daemon that was killed and starts again whom to release.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

from ganeti import errors
from ganeti.base import files
from ganeti.hypervisor.abilities import Holding
from ganeti.model.enums import Consistency
from ganeti.node.context import NodeContext, check_name
from ganeti.rpc.calls.holds import HoldCalls
from ganeti.rpc.objects import NodeInstance

log = logging.getLogger(__name__)

#: Longest time that a guest may be held.
LONGEST = 60.0


@dataclass
class _Hold:
    hypervisor: str
    timer: threading.Timer


class Holds(HoldCalls):
    """The guests that are held on this node."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._held: dict[str, _Hold] = {}

    def start(self) -> None:
        """Release what an earlier node daemon held and could not release."""
        directory = self._context.paths.held_guests
        for path in sorted(directory.iterdir()) if directory.is_dir() else []:
            log.warning(
                "instance %s was held when the node daemon ended; it is released", path.name
            )
            try:
                self._let_go(path.name, files.read_text(path).strip())
            except errors.GanetiError as err:
                log.error("instance %s may still be paused: %s", path.name, errors.text(err))

    def stop(self) -> None:
        """Release all; to be called when no call comes any more."""
        with self._lock:
            names = list(self._held)
        for name in names:
            self._end(name)

    def instance_hold(self, instance: NodeInstance, seconds: float) -> Consistency:
        """Pause a guest.

        Raises:
            HypervisorError: it does not run here, or its hypervisor cannot do that.
            ParameterError: longer than a minute.
        """
        name = check_name(instance.name)
        if not 0 < seconds <= LONGEST:
            raise errors.ParameterError(
                f"instance {name} cannot be held for {seconds:g} s; the limit is {LONGEST:g} s"
            )
        with self._context.instance(name, "hold"):
            driver = self._driver(instance.hypervisor)
            self._end(name)
            path = self._context.paths.held_guests / name
            files.ensure_dir(path.parent)
            files.write_atomic(path, instance.hypervisor, fsync=False)
            timer = threading.Timer(seconds, self._expire, [name])
            timer.daemon = True
            try:
                found = driver.hold(name)
            except errors.HypervisorError:
                self._let_go(name, instance.hypervisor)
                raise
            with self._lock:
                self._held[name] = _Hold(instance.hypervisor, timer)
            timer.start()
            return found

    def instance_release(self, instance: NodeInstance) -> bool:
        """Whether the guest was paused until now; HypervisorError when it cannot run on."""
        with self._context.instance(instance.name, "release"):
            return self._end(instance.name)

    def _driver(self, hypervisor: str) -> Holding:
        driver = self._context.hypervisor(hypervisor)
        if not isinstance(driver, Holding):
            raise errors.HypervisorError(f"the hypervisor {hypervisor} cannot pause a guest")
        return driver

    def _expire(self, name: str) -> None:
        log.warning("instance %s was held for too long and is released", name)
        try:
            self._end(name)
        except errors.GanetiError as err:
            log.error("instance %s is still paused: %s", name, errors.text(err))

    def _end(self, name: str) -> bool:
        with self._lock:
            held = self._held.pop(name, None)
        if held is None:
            return False
        held.timer.cancel()
        self._let_go(name, held.hypervisor)
        return True

    def _let_go(self, name: str, hypervisor: str) -> None:
        """Let it run on; the note stays when that fails, for the next start of the daemon."""
        self._driver(hypervisor).release(name)
        files.remove(self._context.paths.held_guests / name)
