"""Notice at once that a guest of this node ended by itself, and notify the master.

A guest with a process of its own is watched by a descriptor of that process (pidfd); other drivers
tell when something may have ended (:class:`~ganeti.hypervisor.abilities.EndTelling`). What a node
call does to a guest is expected: it is done inside of :meth:`EndWatch.expect`.

Nothing is kept on disk. What ends while this daemon does not run is found by the watcher.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ganeti import errors
from ganeti.base import process, services
from ganeti.hypervisor.abilities import EndTelling, ProcessBacked
from ganeti.model import ssconf_keys
from ganeti.model.enums import RunState
from ganeti.node.context import NodeContext

log = logging.getLogger(__name__)

#: Seconds between two looks at a guest whose end is not clear yet, and how many looks.
_PAUSE = 0.3
_LOOKS = 40
#: Seconds for the thread to end, and for systemd to answer.
_STOP_WAIT = 5.0
_QUICK = 10.0


@dataclass(eq=False)
class _Watched:
    """A guest that should go on; another start of it makes another object."""

    name: str
    hypervisor: str
    fd: int | None = None
    looks: int = 0

    def close(self) -> None:
        if self.fd is not None:
            os.close(self.fd)  # it leaves the poll by that
            self.fd = None


class _Bell:
    """Waits for descriptors of processes, and can be rung."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poll.register(self._wake, select.EPOLLIN)

    def listen(self, fd: int) -> None:
        """Hear once when a process ends; until its descriptor is closed."""
        self._poll.register(fd, select.EPOLLIN | select.EPOLLONESHOT)

    def ring(self) -> None:
        os.eventfd_write(self._wake, 1)

    def wait(self, timeout: float | None) -> set[int]:
        """Descriptors of processes that ended; blocks until there are some, or it was rung."""
        events = {fd for fd, _mask in self._poll.poll(timeout)}
        if self._wake in events:
            os.eventfd_read(self._wake)
        return events - {self._wake}

    def close(self) -> None:
        self._poll.close()
        os.close(self._wake)


class EndWatch:
    """Calls ``tell(name)`` for each guest that ended by itself. Thread-safe."""

    def __init__(self, context: NodeContext, tell: Callable[[str], None]) -> None:
        self._context = context
        self._tell = tell
        self._lock = threading.Lock()
        self._watched: dict[str, _Watched] = {}
        #: guests of which something was heard
        self._heard: set[_Watched] = set()
        #: hypervisors -> how they stop telling, None for those that cannot tell
        self._tellers: dict[str, Callable[[], None] | None] = {}
        self._bell: _Bell | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Watch what runs here, and what begins from now on."""
        self._bell = bell = _Bell()
        self._thread = threading.Thread(
            target=self._work, args=(bell,), name="guest-ends", daemon=True
        )
        self._thread.start()
        for hypervisor in (self._context.ssconf(ssconf_keys.HYPERVISOR_LIST) or "").split():
            try:
                self._observe(hypervisor)
                found = self._context.hypervisor(hypervisor).info_all()
            except errors.GanetiError as err:
                log.warning("guests of %s are left to the watcher: %s", hypervisor, err)
                continue
            for name, info in found.items():
                if info.state == RunState.RUNNING and not self._begin(name, hypervisor):
                    self._await_process(name, hypervisor)

    def stop(self) -> None:
        """Watch nothing any more. Idempotent."""
        with self._lock:
            bell, self._bell = self._bell, None
            tellers, self._tellers = list(self._tellers.values()), {}
            if bell is None:
                return
            bell.ring()
        if self._thread is not None:
            self._thread.join(_STOP_WAIT)
        for end in tellers:
            if end is not None:
                end()
        with self._lock:
            for watched in self._watched.values():
                watched.close()
            self._watched.clear()
        bell.close()

    @contextlib.contextmanager
    def expect(self, name: str, hypervisor: str, *, begins: bool = False) -> Iterator[None]:
        """In the block a node call may end the guest, or start it; what runs then is watched.

        With ``begins`` the guest runs when the block succeeded. One that does not has ended again.
        """
        self.forget(name)
        done = False
        try:
            yield
            done = True
        finally:
            if self._bell is not None and not self._renew(name, hypervisor) and done and begins:
                log.warning("instance %s ended by itself at once", name)
                self._tell(name)

    def forget(self, name: str) -> None:
        """The end of a guest is of no interest any more, as it is sent to another node."""
        with self._lock:
            watched = self._watched.pop(name, None)
            if watched is not None:
                self._heard.discard(watched)
                watched.close()

    def _renew(self, name: str, hypervisor: str) -> bool:
        """Watch a guest if it runs; False when it does not."""
        try:
            self._observe(hypervisor)
            known = self._begin(name, hypervisor)
            # Looked at only now, so that an end in between is not missed.
            info = self._context.hypervisor(hypervisor).info(name)
        except errors.GanetiError as err:
            log.warning("the end of instance %s is left to the watcher: %s", name, err)
            return True
        if info is not None and info.state == RunState.RUNNING:
            if not known:
                self._await_process(name, hypervisor)
            return True
        self.forget(name)
        return False

    def _begin(self, name: str, hypervisor: str) -> bool:
        """Watch a guest; False when it should have a process and has none."""
        driver = self._context.hypervisor(hypervisor)
        watched = _Watched(name, hypervisor)
        if isinstance(driver, ProcessBacked):
            pid = driver.guest_process(name)
            if pid is None:
                return False
            try:
                watched.fd = os.pidfd_open(pid)
            except ProcessLookupError:
                log.info("instance %s has ended again", name)
            except OSError as err:
                log.warning("instance %s cannot be watched: %s", name, err.strerror)
                return True
        elif not self._tellers.get(hypervisor):
            return True
        with self._lock:
            if self._bell is None:
                watched.close()
                return True
            former = self._watched.get(name)
            if former is not None:
                former.close()
            self._watched[name] = watched
            if watched.fd is not None:
                self._bell.listen(watched.fd)
            elif isinstance(driver, ProcessBacked):
                self._heard.add(watched)
                self._bell.ring()
        return True

    def _await_process(self, name: str, hypervisor: str) -> None:
        """Look at a guest that runs until its process is known, or it has ended."""
        with self._lock:
            if self._bell is not None:
                self._watched[name] = watched = _Watched(name, hypervisor)
                self._heard.add(watched)
                self._bell.ring()

    def _observe(self, hypervisor: str) -> None:
        """Have a driver tell of ends, once."""
        driver = self._context.hypervisor(hypervisor)
        if not isinstance(driver, EndTelling):
            return
        with self._lock:
            if self._bell is None or hypervisor in self._tellers:
                return
            self._tellers[hypervisor] = None
        try:
            end = driver.watch_ends(lambda: self._examine_all(hypervisor))
        except errors.HypervisorError as err:
            log.warning("ends of guests of %s are left to the watcher: %s", hypervisor, err)
            return
        with self._lock:
            if self._bell is not None:
                self._tellers[hypervisor] = end
                return
        end()

    def _examine_all(self, hypervisor: str) -> None:
        with self._lock:
            found = [each for each in self._watched.values() if each.hypervisor == hypervisor]
        if not found:
            return
        try:
            infos = self._context.hypervisor(hypervisor).info_all()
        except errors.GanetiError as err:
            log.warning("guests of %s: %s", hypervisor, err)
            return
        running = {name for name, info in infos.items() if info.state == RunState.RUNNING}
        with self._lock:
            gone = {each for each in found if each.name not in running}
            if gone and self._bell is not None:
                self._heard |= gone
                self._bell.ring()

    def _work(self, bell: _Bell) -> None:
        while True:
            with self._lock:
                if self._bell is not bell:
                    return
                pause = _PAUSE if self._heard else None
            events = bell.wait(pause)
            with self._lock:
                self._heard |= {each for each in self._watched.values() if each.fd in events}
                heard = list(self._heard)
            for watched in heard:
                try:
                    self._examine(watched)
                except Exception:  # a thread's last frame: other guests are watched all the same
                    log.exception("the end of instance %s could not be handled", watched.name)
                    self._drop(watched)

    def _examine(self, watched: _Watched) -> None:
        """Find out what became of a guest; a node call that works on it goes first."""
        name = watched.name
        try:
            with self._context.instance(name, "look at its end", wait=0):
                with self._lock:
                    if self._watched.get(name) is not watched:
                        self._heard.discard(watched)
                        return
                watched.looks += 1
                if (
                    self._runs(watched)
                    and watched.looks < _LOOKS
                    and not self._has_new_process(watched)
                ):
                    return
                self._drop(watched)
                if self._runs(watched):
                    self._renew(name, watched.hypervisor)
                    return
        except errors.LockError:
            return
        if is_host_stopping(self._context):
            log.info("instance %s ended as this host is being shut down", name)
            return
        log.warning("instance %s ended by itself", name)
        self._tell(name)

    def _runs(self, watched: _Watched) -> bool:
        try:
            info = self._context.hypervisor(watched.hypervisor).info(watched.name)
        except errors.GanetiError as err:
            log.info("instance %s: %s", watched.name, err)
            return True
        return info is not None and info.state == RunState.RUNNING

    def _has_new_process(self, watched: _Watched) -> bool:
        """Whether the process of a guest, which was not known when it started, is known now."""
        driver = self._context.hypervisor(watched.hypervisor)
        return (
            watched.fd is None
            and isinstance(driver, ProcessBacked)
            and driver.guest_process(watched.name) is not None
        )

    def _drop(self, *gone: _Watched) -> None:
        with self._lock:
            for watched in gone:
                self._heard.discard(watched)
                if self._watched.get(watched.name) is watched:
                    del self._watched[watched.name]
                watched.close()

    def names(self) -> Iterable[str]:
        """Guests that are watched."""
        with self._lock:
            return sorted(self._watched)


def is_host_stopping(context: NodeContext) -> bool:
    """Whether this host is being shut down, which ends all guests.

    ``ganeti-guests`` has said so, or systemd says so.
    """
    if context.paths.host_stops.exists():
        return True
    if not services.uses_systemd(context.paths):
        return False
    try:
        found = process.run(["systemctl", "is-system-running"], timeout=_QUICK)
    except errors.CommandError:
        return False
    return found.stdout.strip() == "stopping"
