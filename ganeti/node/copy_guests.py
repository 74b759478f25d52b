"""Guests that are started from copies of disks: to see whether they boot, or to read files.

All of such a guest is in one directory: the sockets, the console, the variables of the firmware.
Its hypervisor does not list it as a guest of this node, and it needs no run right: it has disks of
its own, which are lost with it, and it reaches nobody.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from ganeti import errors
from ganeti.backup import served
from ganeti.backup.repository import Content
from ganeti.backup.sign import Kind, Sign
from ganeti.base import files
from ganeti.base.clock import Deadline
from ganeti.guest_os import scripts
from ganeti.hypervisor.abilities import Probing, ProcessBacked
from ganeti.hypervisor.interface import AttachedDisk, Hypervisor
from ganeti.model.backup import BackedUpDisk
from ganeti.model.enums import DiskMode
from ganeti.model.ids import DiskUuid
from ganeti.net import nbd
from ganeti.node.console_output import ConsoleOutput
from ganeti.node.context import NodeContext
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeDisk, NodeInstance
from ganeti.storage.file import describe_file

log = logging.getLogger(__name__)

#: Seconds between two looks whether it works.
_PAUSE: Final = 1.0
#: File in the directory of a guest: its hypervisor.
_MARK: Final = "hypervisor"
_DIRECTORY: Final = "guest"


class Outcome(NamedTuple):
    """Whether a guest has shown that it works, and what there is to say."""

    good: bool
    text: str


class _OwnPaths(Paths):
    """Those of the node, but for what a hypervisor keeps of its guests."""

    def __init__(self, root: Path, directory: Path) -> None:
        super().__init__(root)
        self.directory = directory

    @property
    def kvm(self) -> Path:
        return self.directory / "kvm"

    @property
    def kvm_log(self) -> Path:
        return self.directory / "log"

    @property
    def kvm_uefi(self) -> Path:
        return self.directory / "uefi"


class Running(NamedTuple):
    """A guest that runs."""

    driver: Hypervisor
    #: None when it has ended already
    process: int | None
    console: ConsoleOutput


class CopyGuests:
    """Starts and ends them."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context

    @contextlib.contextmanager
    def start(
        self,
        instance: NodeInstance,
        disks: Sequence[tuple[NodeDisk, Content] | AttachedDisk],
        work: Path,
    ) -> Iterator[Running]:
        """In the block a guest runs; then it is ended.

        Its writes to contents are lost, and those in ``work`` are gone once it runs. Its writes to
        attached disks stay.

        Raises:
            HypervisorError, BlockDeviceError: it cannot be started.
        """
        directory = work / _DIRECTORY
        files.ensure_dir(directory, 0o700)
        files.write_atomic(directory / _MARK, instance.hypervisor, fsync=False)
        driver = self._make_driver(instance.hypervisor, directory)
        assert isinstance(driver, ProcessBacked)
        with contextlib.ExitStack() as stack:
            attached = [
                each if isinstance(each, AttachedDisk) else stack.enter_context(_attach(each, work))
                for each in disks
            ]
            stack.callback(_end, driver, instance.name)
            driver.start(instance, attached)
            for each in disks:
                if not isinstance(each, AttachedDisk) and each[1].path.is_relative_to(work):
                    files.remove(each[1].path)
            line = driver.console_lines(instance, instance.hvparams).get("serial")
            assert line is not None
            assert line.log is not None
            console = ConsoleOutput(line.log, whole=True)
            yield Running(driver, driver.guest_process(instance.name), console)

    def run(
        self,
        instance: NodeInstance,
        disks: Sequence[tuple[NodeDisk, Content]],
        work: Path,
        sign: Sign,
        seconds: float,
        look: Callable[[], None],
    ) -> Outcome:
        """Start a guest, wait for its sign, and end it; ``look`` may raise to end it earlier.

        Raises:
            HypervisorError, BlockDeviceError: it cannot be started; that says nothing of the copy.
        """
        with self.start(instance, disks, work) as running:
            log.info("started a copy of %s", instance.name)
            return self._wait(running, instance, sign, seconds, look)

    def _make_driver(self, name: str, directory: Path) -> Hypervisor:
        kind = type(self._context.hypervisor(name))
        return kind(_OwnPaths(self._context.paths.root, directory))

    def _wait(
        self,
        running: Running,
        instance: NodeInstance,
        sign: Sign,
        seconds: float,
        look: Callable[[], None],
    ) -> Outcome:
        clock = self._context.clock
        begun, deadline = clock.monotonic(), Deadline(seconds, clock)
        driver, process, console = running
        with contextlib.ExitStack() as stack:
            shows = stack.enter_context(_make_test(driver, instance.name, sign, console))
            ended = process is None
            while True:
                look()
                if shows():
                    took = clock.monotonic() - begun
                    return Outcome(True, f"{sign.text} after {took:.0f} s")
                if ended or deadline.left <= 0:
                    break
                ended = _ends_within(process or 0, min(_PAUSE, deadline.left))
        why = "it ended before" if ended else f"not within {seconds:g} s:"
        text = f"the copy did not boot: {why} {sign.text}"
        return Outcome(False, f"{text}; {self._keep(instance, console)}")

    def _keep(self, instance: NodeInstance, console: ConsoleOutput) -> str:
        """Keep what it printed; a sentence with the last lines."""
        path = scripts.make_log("verify", instance, self._context.paths, clock=self._context.clock)
        try:
            path.write_text(console.read(), encoding="utf-8")
        except OSError as err:
            raise files.failure(err) from err
        tail = scripts.read_tail(path)
        place = f"{path} on node {self._context.name}"
        return f"the last lines of its console, {place}:\n{tail}" if tail else f"{place} is empty"

    def end_left(self, work: Path) -> None:
        """End what an earlier node daemon has left running in a directory; HypervisorError."""
        directory = work / _DIRECTORY
        try:
            name = files.read_text(directory / _MARK)
        except FileNotFoundError:
            return
        driver = self._make_driver(name, directory)
        for guest in driver.list_names():
            driver.stop(guest, force=True)
            log.info("ended the copy of %s that was left", guest)


def describe_copy(disk: BackedUpDisk, content: Content, index: int) -> NodeDisk:
    """A disk of a copy; the guest finds it by the uuid of the real one."""
    return msgspec.structs.replace(
        describe_file(content.path, DiskMode.RW),
        uuid=DiskUuid(disk.uuid),
        size=-(-disk.size >> 20),
        iv_name=f"disk/{index}",
    )


def _end(driver: Hypervisor, name: str) -> None:
    try:
        driver.stop(name, force=True)
        driver.cleanup(name)
    except errors.HypervisorError as err:
        log.warning("the copy of %s is not ended: %s", name, errors.text(err))


@contextlib.contextmanager
def _attach(wanted: tuple[NodeDisk, Content], work: Path) -> Iterator[AttachedDisk]:
    """A disk by an address that is valid while the guest is started."""
    disk, content = wanted
    with (
        served.offer(str(content.path), content.format, work) as socket,
        nbd.short_address(socket) as address,
    ):
        yield AttachedDisk(disk, "", uri=f"nbd+unix:///?socket={address}")


def _ends_within(process: int, seconds: float) -> bool:
    try:
        fd = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], seconds)[0])
    finally:
        os.close(fd)


@contextlib.contextmanager
def _make_test(
    driver: Hypervisor, name: str, sign: Sign, console: ConsoleOutput
) -> Iterator[Callable[[], bool]]:
    """A test whether the guest has shown its sign; HypervisorError when it never can."""
    if sign.kind is Kind.SERIAL:
        yield lambda: sign.is_in(console.read())
        return
    if not isinstance(driver, Probing):
        raise errors.HypervisorError(f"only the serial console of {name} can be looked at")
    if sign.kind is Kind.AGENT:
        yield lambda: _try(lambda: driver.agent_answers(name))
        return
    with driver.make_port_probe(name, sign.port) as probe:
        yield lambda: _try(probe)


def _try(ask: Callable[[], bool]) -> bool:
    """A guest that has just ended cannot be asked; that it has is found out elsewhere."""
    try:
        return ask()
    except errors.HypervisorError:
        return False
