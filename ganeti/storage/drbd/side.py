"""One minor of this node: inspecting it, and bringing it to the wanted state."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ganeti import errors
from ganeti.model.ids import DiskUuid
from ganeti.paths import Paths
from ganeti.storage.drbd import host, tool
from ganeti.storage.drbd.machine import (
    FOREIGN,
    OWN,
    Disk,
    Link,
    State,
    Step,
    Trouble,
    classify,
    plan,
)
from ganeti.storage.drbd.states import Live, Role, Setup, Wish

log = logging.getLogger(__name__)

_locks: dict[int, threading.RLock] = {}
_locks_guard = threading.Lock()


class Side:
    """A minor and the disk that it belongs to in the configuration."""

    def __init__(self, uuid: DiskUuid, wish: Wish, paths: Paths) -> None:
        """BlockDeviceError when no module is loaded, or one that is not handled."""
        self.uuid = uuid
        self.wish = wish
        self.minor = wish.minor
        self.dialect = host.current(paths)

    @contextmanager
    def lock_minor(self) -> Iterator[None]:
        """Between looking at a minor and changing it no other call of this daemon does either."""
        with _locks_guard:
            lock = _locks.setdefault(self.minor, threading.RLock())
        with lock:
            yield

    def observe(self) -> tuple[State, Setup | None, Live]:
        """The state of the minor as the disk sees it, and what it was made of."""
        setup, live = self.dialect.observe(self.minor)
        return classify(setup, live, self.wish), setup, live

    def observe_live(self) -> Live:
        """Observe the state of the active device; BlockDeviceError like :meth:`observe_active`."""
        return self.observe_active()[2]

    def observe_active(self) -> tuple[State, Setup | None, Live]:
        """Like :meth:`observe`; BlockDeviceError when the disk is not active here."""
        state, setup, live = self.observe()
        if state.disk not in OWN:
            raise errors.BlockDeviceError(
                f"disk {self.uuid} is not active on this node: minor {self.minor} is {state.disk}"
            )
        return state, setup, live

    def reach(
        self,
        state: State,
        setup: Setup | None,
        *,
        disk: Disk | None = None,
        links: frozenset[Link] | None = None,
        role: Role | None = None,
    ) -> None:
        """Run the steps to a state; what was begun from nothing is taken down on a failure."""
        try:
            steps = plan(state, disk=disk, links=links, role=role)
        except errors.BlockDeviceError as err:
            _setup, live = self.dialect.observe(self.minor)
            raise self.make_taken_error(setup, live) from err
        if state.disk is Disk.FOREIGN and steps and setup is not None:
            log.warning(
                "minor %d belongs to disk %s: taking down %s, which is not in the configuration",
                self.minor,
                self.uuid,
                setup.resource,
            )
        try:
            for step in steps:
                self.run(self.dialect.commands(step, self.wish, setup))
                if step is Step.DOWN:
                    setup = None
        except errors.BlockDeviceError:
            if Step.NEW in steps:
                self._abandon()
            raise

    def await_peer(self, seconds: int) -> Live:
        """Wait until the peer is there or lost for good, or time is over; return the state then."""
        try:
            tool.run(self.dialect.await_peer(self.wish, seconds), timeout=seconds + 10.0)
        except tool.ToolFailure as err:
            log.info("%s", errors.text(err))
        return self.observe_live()

    def _abandon(self) -> None:
        try:
            setup, _live = self.dialect.observe(self.minor)
            if setup is not None:
                self.run(self.dialect.commands(Step.DOWN, self.wish, setup))
        except errors.BlockDeviceError as err:
            log.warning("minor %d was left half made: %s", self.minor, errors.text(err))

    @staticmethod
    def run(commands: Sequence[Sequence[str]]) -> None:
        """Run commands one after the other; BlockDeviceError of the first that fails."""
        for argv in commands:
            tool.run(argv)

    def make_taken_error(self, setup: Setup | None, live: Live) -> errors.BlockDeviceError:
        """The error for a minor that another device uses."""
        who = "something else" if setup is None else setup.resource
        where = f" on {setup.data}" if setup and setup.data else ""
        repair = FOREIGN.repair.replace("RESOURCE", who).replace("MINOR", str(self.minor))
        return errors.BlockDeviceError(
            f"minor {self.minor} of this node belongs to disk {self.uuid} but is in use by"
            f" {who}{where} ({live}); nothing was done. To free it: {repair}"
        )

    def make_unusable_error(
        self, live: Live, what: Trouble | None, reason: str = ""
    ) -> errors.BlockDeviceError:
        """The error for a disk in a wrong state, with the command that repairs it."""
        text = f"disk {self.uuid} (minor {self.minor}, {live})"
        text += f": {reason}" if reason else ""
        if what is not None:
            repair = what.repair.replace("MINOR", str(self.minor))
            text += f"; {what.name}: {what.text}. To repair: {repair}"
        return errors.BlockDeviceError(text)
