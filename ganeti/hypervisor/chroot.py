"""The hypervisor chroot: an instance is the processes in the file system of its first disk.

The file system is mounted at ``<run>/chroot-hypervisor/<instance>``, and its ``init_script`` is run
there with the argument ``start`` or ``stop``. An instance runs from the moment its script has
started it until its file system is unmounted, whether or not a process is left in it. Beside the
mount, ``.<instance>.json`` says how it was started; what the script prints goes to
``<log>/chroot/<instance>.log``.

Nothing is limited or hidden: processes are those of the node, with its network and all its rights.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from ganeti import errors
from ganeti.base import files, process, typed
from ganeti.base.clock import Deadline
from ganeti.hypervisor import host, mounts, occupants, root_fs, systemd_scope, typed_params
from ganeti.hypervisor.interface import AttachedDisk, HvParams, Hypervisor, NodeInfo, Traits
from ganeti.model.enums import RunState
from ganeti.rpc.objects import Console, InstanceInfo, NodeInstance

log = logging.getLogger(__name__)

_BEGIN = "start"
#: Seconds for the script to start everything.
_START = 300.0
#: Seconds that the script and the processes get to end before a reboot.
_REBOOT = 120.0
#: Least seconds for the script to stop everything, however little it gets.
_LEAST = 0.2
#: How much of the end of the log is shown after a failure.
_TAIL = 300


class ChrootParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Parameters of the hypervisor ``chroot``."""

    init_script: Annotated[
        str,
        Meta(
            pattern="^/",
            description="Program in the file system of the instance that starts and stops what is"
            " in it: an absolute path, run with the argument start or stop",
        ),
    ] = "/ganeti-chroot"


class _Started(msgspec.Struct, kw_only=True, frozen=True):
    """How an instance was started."""

    init_script: str
    #: MiB
    memory: int
    vcpus: int


class ChrootHypervisor(Hypervisor):
    """Directory trees of which programs are run."""

    traits: ClassVar[Traits] = Traits(joins_bridges=False)
    params: ClassVar[type[msgspec.Struct]] = ChrootParams

    # life

    def start(
        self, instance: NodeInstance, disks: Sequence[AttachedDisk], *, paused: bool = False
    ) -> None:
        params = _load(instance.hvparams)
        name = instance.name
        point = self._point(name)
        if paused:
            raise errors.HypervisorError(
                f"instance {name} is run by chroot and cannot be started paused"
            )
        if self._read_started(name) is not None:
            raise errors.HypervisorError(f"instance {name} already runs on this node")
        disk = root_fs.find_root_disk(name, disks)
        self._forget(name)  # what a start that was cut off has left
        root_fs.mount(disk, point)
        self._begin(
            name,
            _Started(
                init_script=params.init_script,
                memory=instance.backend("maxmem"),
                vcpus=instance.backend("vcpus"),
            ),
        )

    def _begin(self, name: str, started: _Started) -> None:
        """Run the script in the mounted file system; unmounts that when it fails."""
        try:
            result = self._script(name, started.init_script, _BEGIN, _START)
            if not result.ok:
                raise errors.HypervisorError(
                    f"instance {name} did not start: {self._explain(name, result)}"
                )
            text = msgspec.json.encode(started)
            files.write_atomic(self._state_file(name), text, mode=0o600, fsync=False)
        except errors.HypervisorError:
            self._forget(name)
            raise
        log.info("instance %s runs", name)

    def stop(self, name: str, *, force: bool = False, timeout: float = 0) -> None:
        started = self._read_started(name)
        if started is None:
            return
        if force or self._ask(name, started, timeout):
            self._forget(name)

    def _ask(self, name: str, started: _Started, timeout: float) -> bool:
        """Have the script end everything, then ask what is left; whether nothing is left."""
        end = Deadline(timeout)
        point = self._point(name)
        result = self._script(name, started.init_script, "stop", max(timeout, _LEAST))
        if not result.ok:
            log.warning("stop of instance %s: %s", name, self._explain(name, result))
        occupants.ask(point)
        return occupants.wait_gone(point, end.left)

    def reboot(self, instance: NodeInstance, disks: Sequence[AttachedDisk]) -> None:
        """End and start everything in the file system, which stays mounted."""
        name = instance.name
        started = self._read_started(name)
        if started is None:
            raise errors.HypervisorError(
                f"instance {name} cannot be rebooted: it does not run on this node"
            )
        if not self._ask(name, started, _REBOOT):
            log.warning("instance %s did not stop within %d s; it is ended", name, _REBOOT)
            occupants.kill(self._point(name), _REBOOT)
        self._begin(name, started)

    def cleanup(self, name: str) -> None:
        if self._read_started(name) is None:
            self._forget(name)

    def _forget(self, name: str) -> None:
        """End what is left and unmount; the state goes last, so that a failure can be repeated."""
        root_fs.release(self._point(name))
        files.remove(self._state_file(name))

    def _script(self, name: str, script: str, verb: str, timeout: float) -> process.Result:
        """Run the script in the file system, where alone its path is looked up."""
        path = self._log_file(name)
        try:
            files.ensure_dir(path.parent, 0o750)
            before = systemd_scope.enter(self.paths, name) if verb == _BEGIN else []
            argv = [*before, "chroot", str(self._point(name)), script, verb]
            return process.run(argv, timeout=timeout, cwd=Path("/"), log=path)
        except (OSError, errors.CommandError) as err:
            raise errors.HypervisorError(f"instance {name}: {errors.text(err)}") from err

    def _explain(self, name: str, result: process.Result) -> str:
        """How the script ended, with the last that was printed."""
        path = self._log_file(name)
        with path.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - _TAIL))
            lines = stream.read().decode("utf-8", "replace").splitlines()
        output = f": {' | '.join(lines[-3:])}" if lines else ""
        return f"{result.explain()}{output} (see {path})"

    # what runs

    def list_names(self) -> list[str]:
        return sorted(self.info_all())

    def info(self, name: str) -> InstanceInfo | None:
        started = self._read_started(name)
        return None if started is None else _info(started)

    def info_all(self) -> dict[str, InstanceInfo]:
        directory = self.paths.chroot.resolve()
        points = {Path(mount.point) for mount in mounts.tree(directory, mounts.read())}
        names = sorted(point.name for point in points if point.parent == directory)
        found = ((name, self._state(name)) for name in names)
        return {name: _info(started) for name, started in found if started is not None}

    def _read_started(self, name: str) -> _Started | None:
        """How a running instance was started, None when it does not run."""
        return self._state(name) if root_fs.is_mounted(self._point(name)) else None

    def _state(self, name: str) -> _Started | None:
        path = self._state_file(name)
        try:
            return typed.decode(path.read_bytes(), _Started)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as err:
            raise errors.HypervisorError(f"cannot read {path}: {err}") from err

    # the node

    def node_info(self, params: HvParams) -> NodeInfo:
        return host.node_info()

    def verify(self, params: HvParams) -> str | None:
        if os.geteuid() != 0:
            return "the node daemon must run as root to mount the disks of instances"
        return host.describe_missing_programs(("chroot", *root_fs.PROGRAMS))

    def check_params(self, params: HvParams) -> None:
        _load(params)

    def console(self, instance: NodeInstance, node_name: str, params: HvParams) -> Console:
        return Console(
            instance=instance.name,
            kind="ssh",
            host=node_name,
            user="root",
            command=["chroot", str(self._point(instance.name))],
        )

    # places

    def _point(self, name: str) -> Path:
        host.check_instance_name(name)
        return root_fs.place(self.paths.chroot, name)

    def _state_file(self, name: str) -> Path:
        return self._point(name).with_name(f".{name}.json")

    def _log_file(self, name: str) -> Path:
        return self.paths.chroot_log / f"{name}.log"


def _load(values: HvParams) -> ChrootParams:
    params = typed_params.load(ChrootParams, values, "chroot")
    path = params.init_script
    if path != os.path.normpath(path) or path == "/" or not path.isprintable():
        raise errors.HypervisorError(
            f"init_script: {path!r} is not a plain absolute path such as /ganeti-chroot"
        )
    return params


def _info(started: _Started) -> InstanceInfo:
    return InstanceInfo(memory=started.memory, vcpus=started.vcpus, state=RunState.RUNNING)
