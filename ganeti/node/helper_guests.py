"""Node calls about helper guests, which do on disks of an instance what this node must not.

The guest of an instance is started from a copy of an image; see :mod:`ganeti.guest_os.helper` for
what it gets and prints. Its own files are removed as soon as it has them open, so nothing is left
of them when it ends, however it does.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

from ganeti import errors
from ganeti.base import files
from ganeti.guest_os import definition, environment, helper
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.model.enums import DiskMode
from ganeti.node import helper_ends
from ganeti.node.console_output import ConsoleOutput
from ganeti.node.context import NodeContext
from ganeti.node.copying import Copies, Progress
from ganeti.node.disks import Disks
from ganeti.node.helper_ends import Times
from ganeti.node.images import Images
from ganeti.node.instances import Instances
from ganeti.rpc.calls.helper_guests import HelperGuestCalls
from ganeti.rpc.images import HelperTask
from ganeti.rpc.objects import NodeInstance
from ganeti.storage.file import describe_file

log = logging.getLogger(__name__)


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
        kind, times = "add" if task.installs else "zero", Times(task.startup_timeout, task.timeout)
        with contextlib.ExitStack() as work:
            directory = work.enter_context(_work(paths.helper_guests))
            self._images.put_in_file(task.image, directory / "image", progress)
            own = [
                _attach(directory / "image", DiskMode.RW),
                _attach(_write(directory / "package", package), DiskMode.RO),
            ]
            progress.set(0, 0)
            console = ConsoleOutput(self._console_log(guest))
            running = self._instances.run_beside(guest, [*own, *disks])
            with running as process:
                work.close()
                in_time = helper_ends.wait(
                    process, console, times, lambda: progress.set(0, 0), self._context.clock
                )
        helper_ends.judge(kind, instance, console.read(), times, self._context, in_time=in_time)

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

    def _console_log(self, guest: NodeInstance) -> Path:
        driver = self._context.hypervisor(guest.hypervisor)
        line = driver.console_lines(guest, guest.hvparams).get("serial")
        if line is None or line.log is None:
            raise errors.HypervisorError(f"hypervisor {guest.hypervisor} has no helper guests")
        return line.log


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
