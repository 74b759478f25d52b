"""The watchdog device of this host (``linux/Documentation/watchdog/watchdog-api.rst``).

From the moment it is opened the host is reset unless somebody writes to it in time. The letter V
before it is closed switches it off, unless the kernel does not allow that.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import stat
import struct
from collections.abc import Callable

log = logging.getLogger(__name__)

#: ``_IOWR('W', 6, int)``: set the seconds; the kernel says which it has taken.
_SET_TIMEOUT = 0xC0045706
_INT = struct.Struct("i")


class WatchdogError(Exception):
    """The host has no watchdog that can be counted on; the text says why."""


class WatchdogMissing(WatchdogError):
    """The device cannot be opened now; it may come."""


def check_device(path: str) -> None:
    """Look whether a watchdog device is there. Does not open it, as that switches it on.

    Raises:
        WatchdogMissing: there is none.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError as err:
        raise WatchdogMissing(f"{path}: {err.strerror}") from err
    if not stat.S_ISCHR(mode):
        raise WatchdogMissing(f"{path} is not a watchdog device")


def set_timeout(fd: int, seconds: int) -> int:
    """Ask for a time until the reset; the time that the device has now. Raises OSError."""
    return int(_INT.unpack(fcntl.ioctl(fd, _SET_TIMEOUT, _INT.pack(seconds)))[0])


class Watchdog:
    """One device at a time. Not thread-safe."""

    def __init__(self, set_timeout: Callable[[int, int], int] = set_timeout) -> None:
        self._set_timeout = set_timeout
        self._fd: int | None = None
        self._device = ""
        self._seconds = 0

    @property
    def is_on(self) -> bool:
        return self._fd is not None

    @property
    def device(self) -> str:
        """The device that is on; empty for none."""
        return "" if self._fd is None else self._device

    def feed(self, device: str, seconds: int) -> None:
        """Put off the reset for so many seconds; switches the device on if it is off.

        Raises:
            WatchdogError: it is none, or resets the server later than wanted. One that is on is
                fed all the same, with its earlier time.
        """
        try:
            if self._fd is None or device != self._device:
                self._open(device)
            if seconds != self._seconds:
                self._set(seconds)
            self._write(b"\0")
        except OSError as err:
            self.leave()
            raise WatchdogError(f"{device}: {err.strerror}") from err

    def keep(self) -> None:
        """Put off the reset by the device that is on, if one is."""
        if self._fd is not None:
            try:
                self._write(b"\0")
            except OSError as err:
                log.error("%s: %s", self._device, err.strerror)

    def _open(self, device: str) -> None:
        self.switch_off()
        check_device(device)
        try:
            self._fd = os.open(device, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY)
        except OSError as err:
            raise WatchdogMissing(f"{device}: {err.strerror}") from err
        self._device, self._seconds = device, 0
        log.warning("watchdog %s is on: it resets this host without a lease", device)

    def _set(self, seconds: int) -> None:
        assert self._fd is not None
        accepted = self._set_timeout(self._fd, seconds)
        if accepted > seconds:
            if self._seconds:
                self._set_timeout(self._fd, self._seconds)
                self._write(b"\0")
            else:
                self.switch_off()
            raise WatchdogError(
                f"{self._device} resets the server after {accepted} s at the earliest, and the"
                f" lease needs {seconds} s; choose a longer auto_fence_after"
            )
        self._seconds = seconds

    def _write(self, data: bytes) -> None:
        assert self._fd is not None
        os.write(self._fd, data)

    def switch_off(self) -> None:
        """Let the host live without it. Idempotent."""
        if self._fd is None:
            return
        try:
            self._write(b"V")
            log.warning("watchdog %s is off", self._device)
        except OSError as err:
            log.error("watchdog %s cannot be switched off: %s", self._device, err.strerror)
        self.leave()

    def leave(self) -> None:
        """Close the device, and leave it on if it is. Idempotent."""
        if self._fd is not None:
            with contextlib.suppress(OSError):
                os.close(self._fd)
        self._fd = None
