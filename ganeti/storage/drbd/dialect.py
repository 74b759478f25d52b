"""Differences between versions of DRBD: commands, and where the state is read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from ganeti import errors
from ganeti.paths import Paths
from ganeti.storage.drbd import proc
from ganeti.storage.drbd.machine import Step
from ganeti.storage.drbd.states import Live, Setup, Wish

Argv = list[str]


class Dialect(ABC):
    """One version; the methods that return commands are pure."""

    @abstractmethod
    def observe(self, minor: int) -> tuple[Setup | None, Live]:
        """How a minor is set up (None: not at all), and what it does. BlockDeviceError."""

    @abstractmethod
    def minors(self) -> list[int]:
        """Minors that are set up on this node, in order. BlockDeviceError."""

    @abstractmethod
    def commands(self, step: Step, wish: Wish, setup: Setup | None) -> list[Argv]:
        """The commands of a step for the device that is set up now."""

    @abstractmethod
    def force_first_primary(self, wish: Wish) -> list[Argv]:
        """Declare the data of this side current, although nobody ever wrote it."""

    @abstractmethod
    def create_metadata(self, wish: Wish) -> list[Argv]:
        """Write empty metadata."""

    @abstractmethod
    def has_metadata(self, device: str) -> bool:
        """Whether a volume holds metadata; False as well when it is not there."""

    @abstractmethod
    def is_new(self, wish: Wish) -> bool:
        """Whether metadata was just made: this side never had any data. BlockDeviceError."""

    @abstractmethod
    def refit(self, wish: Wish) -> list[Argv]:
        """Give a running device the options of its disk again."""

    @abstractmethod
    def resize(self, wish: Wish, size: int) -> list[Argv]:
        """Let the device have ``size`` MiB of its volumes."""

    @abstractmethod
    def pause_resync(self, wish: Wish, *, pause: bool) -> list[Argv]:
        """Hold up or go on with a resync."""

    @abstractmethod
    def await_peer(self, wish: Wish, seconds: int) -> Argv:
        """A command that ends when the peer is connected, lost for good, or the time is over."""


def version(paths: Paths) -> tuple[int, ...]:
    """Version of the kernel module, as (8, 4, 11).

    Raises:
        BlockDeviceError: the module is not loaded.
    """
    return proc.version(read_proc(paths))


def read_proc(paths: Paths) -> str:
    """The text of ``/proc/drbd``; BlockDeviceError when the module is not loaded."""
    try:
        return Path(paths.local("/proc/drbd")).read_text()
    except FileNotFoundError as err:
        raise errors.BlockDeviceError(
            "the DRBD module is not loaded on this node: run 'modprobe drbd', and name it in"
            " /etc/modules"
        ) from err
    except OSError as err:
        raise errors.BlockDeviceError(f"cannot read /proc/drbd: {err.strerror}") from err
