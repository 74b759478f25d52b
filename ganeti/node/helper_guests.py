"""Node calls about helper guests, which do on disks of an instance what this node must not.

The guest of an instance is started from a copy of an image; see :mod:`ganeti.guest_os.helper` for
what it gets and prints. Its own files are removed as soon as it has them open, so nothing is left
of them when it ends, however it does.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from uuid import uuid4

from ganeti import errors
from ganeti.base import files
from ganeti.base.clock import Deadline
from ganeti.guest_os import definition, environment, helper, scripts
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.model.enums import DiskMode
from ganeti.node.console_output import ConsoleOutput
from ganeti.node.context import NodeContext
from ganeti.node.copying import Copies, Progress
from ganeti.node.disks import Disks
from ganeti.node.images import Images
from ganeti.node.instances import Instances
from ganeti.rpc.calls.helper_guests import HelperGuestCalls
from ganeti.rpc.images import HelperTask
from ganeti.rpc.objects import NodeInstance
from ganeti.storage.file import describe_file

log = logging.getLogger(__name__)

_MIB: Final = 1024 * 1024
#: Seconds between two checks whether the master still asks.
_PAUSE: Final = 2.0


class HelperGuests(HelperGuestCalls):
    """Runs them, one at a time for each instance."""

    def __init__(
        self,
        context: NodeContext,
        disks: Disks,
        instances: Instances,
        images: Images,
        copies: Copies,
    ) -> None:
        self._context = context
        self._disks = disks
        self._instances = instances
        self._images = images
        self._copies = copies
        shutil.rmtree(context.paths.helper_guests, ignore_errors=True)

    def helper_run(self, instance: NodeInstance, task: HelperTask) -> str:
        """Begin and return the name of the work."""
        return self._copies.begin(lambda progress: self._run(instance, task, progress))

    def _run(self, instance: NodeInstance, task: HelperTask, progress: Progress) -> None:
        """Raises OpExecError when the guest fails, and what starting it raises."""
        paths = self._context.paths
        params = self._context.hypervisor(instance.hypervisor).traits.helper_params
        guest = helper.arrange(instance, params)
        disks = self._disks.all_attached(instance)
        package = self._pack(instance, disks, task)
        kind = "add" if task.installs else "zero"
        with contextlib.ExitStack() as work:
            directory = work.enter_context(_work(paths.helper_guests))
            own = [
                self._make_image(directory, task, progress),
                _attach(_write(directory / "package", package), DiskMode.RO),
            ]
            progress.set(0, 0)
            console = ConsoleOutput(self._console_log(guest))
            running = self._instances.run_beside(guest, [*own, *disks])
            with running as process:
                work.close()
                in_time = process is None or self._wait(process, task, console, progress)
        log_file = scripts.make_log(kind, instance, paths, clock=self._context.clock)
        text = console.read()
        try:
            log_file.write_text(text, encoding="utf-8")
        except OSError as err:
            raise files.failure(err) from err
        _judge(instance.name, task, helper.read_result(text), log_file, in_time=in_time)

    def _pack(
        self, instance: NodeInstance, disks: Sequence[AttachedDisk], task: HelperTask
    ) -> bytes:
        placed = helper.place_disks(disks)
        if not task.installs:
            return helper.pack_zeroing(placed)
        found = definition.load(instance.os, self._context.paths.os_search_path, force_variant=True)
        env = environment.make_create_environment(
            found, instance, placed, reinstall=task.reinstall, debug=task.debug
        )
        return helper.pack_installation(found, env)

    def _make_image(self, directory: Path, task: HelperTask, progress: Progress) -> AttachedDisk:
        path = directory / "image"

        def place(size: int) -> str:
            with path.open("xb") as stream:
                os.truncate(stream.fileno(), size * _MIB)
            return str(path)

        self._images.put(task.image, place, progress)
        return _attach(path, DiskMode.RW)

    def _console_log(self, guest: NodeInstance) -> Path:
        driver = self._context.hypervisor(guest.hypervisor)
        line = driver.console_lines(guest, guest.hvparams).get("serial")
        if line is None or line.log is None:
            raise errors.HypervisorError(f"hypervisor {guest.hypervisor} has no helper guests")
        return line.log

    def _wait(
        self, process: int, task: HelperTask, console: ConsoleOutput, progress: Progress
    ) -> bool:
        """Wait for the end of a process; False when it does not begin or end in time."""
        try:
            fd = os.pidfd_open(process)
        except ProcessLookupError:
            return True
        try:
            begin = task.startup_timeout
            if begin is not None:
                if self._ends_within(fd, begin, progress):
                    return True
                if not helper.read_result(console.read()).began:
                    return False
            return self._ends_within(fd, task.timeout, progress)
        finally:
            os.close(fd)

    def _ends_within(self, fd: int, seconds: float, progress: Progress) -> bool:
        """Raises BlockDeviceError when the daemon stops or the master asks no more."""
        deadline = Deadline(seconds, self._context.clock)
        while True:
            left = deadline.left
            if select.select([fd], [], [], min(left, _PAUSE))[0]:
                return True
            if not left:
                return False
            progress.set(0, 0)


def _judge(
    name: str, task: HelperTask, result: helper.Result, log_file: Path, *, in_time: bool
) -> None:
    """OpExecError unless the guest has done its work."""
    if in_time and result.code == 0:
        return
    if in_time and result.code is not None:
        what = f"failed with exit code {result.code}"
    elif in_time:
        what = "ended without printing an exit code"
    elif result.began:
        what = f"did not end within {task.timeout} s, and was ended"
    else:
        what = f"did not begin within {task.startup_timeout} s, and was ended"
    tail = scripts.read_tail(log_file)
    raise errors.OpExecError(
        f"the helper guest of instance {name} {what};"
        + (f" the last lines of its log {log_file}:\n{tail}" if tail else f" {log_file} is empty")
    )


@contextlib.contextmanager
def _work(parent: Path) -> Iterator[Path]:
    """An empty directory for root alone, which is gone afterwards. FileError."""
    try:
        files.ensure_dir(parent, 0o700)
        path = parent / str(uuid4())
        path.mkdir(mode=0o700)
    except OSError as err:
        raise files.failure(err) from err
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _write(path: Path, data: bytes) -> Path:
    try:
        files.write_atomic(path, data, mode=0o600, fsync=False)
    except OSError as err:
        raise files.failure(err) from err
    return path


def _attach(path: Path, mode: DiskMode) -> AttachedDisk:
    return AttachedDisk(describe_file(path, mode), str(path))
