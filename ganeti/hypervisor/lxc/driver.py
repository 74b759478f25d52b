"""The hypervisor lxc: an instance is a container whose root is the file system of its first disk.

Everything of it is in ``<run>/lxc/<instance>``: ``config`` for LXC, ``rootfs`` where the disk is
mounted, ``instance.json``. LXC knows what runs; its monitor of each container continues when
the node daemon ends. The logs ``<log>/lxc/<instance>.log`` and ``<instance>.console.log`` are of
LXC and of the container's console.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import msgspec

from ganeti import errors
from ganeti.base import files, typed
from ganeti.hypervisor import host, loops, mounts, root_fs
from ganeti.hypervisor.interface import (
    AttachedDisk,
    ConsoleLine,
    HvParams,
    Hypervisor,
    NodeInfo,
    Traits,
)
from ganeti.hypervisor.kvm import network_plan
from ganeti.hypervisor.lxc import cgroups, container_config, node, params, tools
from ganeti.hypervisor.lxc.params import LxcParams
from ganeti.model.enums import DiskMode, RunState
from ganeti.rpc.objects import Console, InstanceInfo, NodeInstance

log = logging.getLogger(__name__)

#: Seconds for a container to begin when ``startup_timeout`` sets no limit.
_START = 300.0
#: Seconds for LXC to end a container that is not asked, and beyond what it was told to wait.
_KILL = 60.0
#: Seconds after which a container that should end is asked again.
_ASK_AGAIN = 5.0
#: Seconds that a container gets to end before a reboot.
_REBOOT = 120.0
_SYSCTL = Path("/proc/sys/net")


class _Started(msgspec.Struct, kw_only=True, frozen=True):
    """How a container was started."""

    #: MiB, when the node cannot limit it
    memory: int
    vcpus: int
    startup_timeout: int
    #: loop devices of further disks: device -> file
    loops: dict[str, str] = {}
    #: files below /proc/sys/net and their values, for the node's ends of routed NICs
    sysctls: dict[str, str] = {}


class LxcHypervisor(Hypervisor):
    """Containers of LXC 3 or later."""

    traits: ClassVar[Traits] = Traits()
    params: ClassVar[type[msgspec.Struct]] = LxcParams

    # life

    def start(
        self, instance: NodeInstance, disks: Sequence[AttachedDisk], *, paused: bool = False
    ) -> None:
        loaded = params.load(instance.hvparams)
        name = instance.name
        if paused:
            raise errors.HypervisorError(
                f"instance {name} is a container and cannot be started paused"
            )
        if self._find(name) is not None:
            raise errors.HypervisorError(f"instance {name} already runs on this node")
        root = root_fs.find_root_disk(name, disks)
        node.check(loaded)
        for index, nic in enumerate(instance.nics):
            node.check_link(index, nic)
        self._forget(name)  # what an earlier container has left
        try:
            root_fs.mount(root, self._root(name))
            started, blocks = self._devices(instance, loaded, disks[1:])
            place = (self._root(name), self._log(name, "console.log"))
            facts = node.facts(cgroups.find(mounts.read()), *place)
            text = container_config.text(instance, loaded, blocks, facts)
            files.write_atomic(self._home(name) / "config", text, mode=0o600, fsync=False)
            self._begin(name, started)
        except errors.HypervisorError:
            self._forget(name)
            raise

    def _devices(
        self, instance: NodeInstance, loaded: LxcParams, disks: Sequence[AttachedDisk]
    ) -> tuple[_Started, list[container_config.BlockDisk]]:
        """Write down how the container is started, and make devices of disks that are files."""
        started = _Started(
            memory=instance.backend("maxmem"),
            vcpus=instance.backend("vcpus"),
            startup_timeout=loaded.startup_timeout,
            sysctls={
                file: value
                for pair, nic in container_config.list_routed_nics(instance)
                for file, value in network_plan.sysctl_plan(pair, nic)
            },
        )
        self._save(instance.name, started)
        found = []
        for index, disk in enumerate(disks, 1):
            path = disk.path
            if not node.is_device(index, path):
                path = loops.attach(path, read_only=disk.disk.mode is DiskMode.RO)
                known = {**started.loops, path: disk.path}
                started = msgspec.structs.replace(started, loops=known)
                self._save(instance.name, started)
            number = os.stat(path).st_rdev
            found.append(
                container_config.BlockDisk(
                    index, path, os.major(number), os.minor(number), disk.disk.mode
                )
            )
        return started, found

    def _save(self, name: str, started: _Started) -> None:
        path = self._home(name) / "instance.json"
        files.write_atomic(path, msgspec.json.encode(started), mode=0o600, fsync=False)

    def _begin(self, name: str, started: _Started) -> None:
        """Start a container whose disk is mounted; leaves no part of it running on failure."""
        path = self._log(name, "log")
        files.ensure_dir(path.parent, 0o750)
        known = path.stat().st_size if path.exists() else 0
        result = tools.attempt(
            "lxc-start",
            self._lxcpath,
            ["-n", name, "--daemon", "-o", str(path), "-l", "WARN"],
            timeout=started.startup_timeout or _START,
        )
        if not result.ok:
            with contextlib.suppress(errors.HypervisorError):
                self._kill(name)
            reason = tools.explain_failed_start(result, path, known)
            raise errors.HypervisorError(f"container {name} did not start: {reason} (see {path})")
        try:
            for file, value in started.sysctls.items():
                (_SYSCTL / file).write_text(value)
        except OSError as err:
            self._kill(name)
            raise errors.HypervisorError(
                f"container {name}: its routed NIC cannot be set up: {err}"
            ) from err
        log.info("container %s runs", name)

    def stop(self, name: str, *, force: bool = False, timeout: float = 0) -> None:
        if self._find(name) is None:
            return
        if force:
            self._kill(name)
        else:
            self._ask(name, timeout)

    def _ask(self, name: str, timeout: float) -> None:
        """Have the container's first process end everything; its signal is LXC's to choose.

        It is asked again every few seconds. A first process that just begins ignores the signal,
        and LXC takes a shell that blocks all signals at that moment for systemd.
        """
        while True:
            turn = min(timeout, _ASK_AGAIN)
            wait = ["--timeout", str(math.ceil(turn))] if turn > 0 else ["--nowait"]
            result = tools.attempt(
                "lxc-stop", self._lxcpath, ["-n", name, "--nokill", *wait], timeout=turn + _KILL
            )
            timeout -= turn
            if result.ok or self._find(name) is None:
                return
            if timeout <= 0:
                log.info("container %s still runs: %s", name, result.explain())
                return

    def _kill(self, name: str) -> None:
        result = tools.attempt("lxc-stop", self._lxcpath, ["-n", name, "--kill"], timeout=_KILL)
        if not result.ok and self._find(name) is not None:
            raise errors.HypervisorError(result.explain())

    def reboot(self, instance: NodeInstance, disks: Sequence[AttachedDisk]) -> None:
        """End the container and start it again as it was; its root stays mounted.

        LXC's own reboot needs a container that may call reboot(2), which the builtin
        ``drop_capabilities`` forbids.
        """
        name = instance.name
        started = self._state(name)
        if started is None or self._find(name) is None:
            raise errors.HypervisorError(
                f"instance {name} cannot be rebooted: it does not run on this node"
            )
        self._ask(name, _REBOOT)
        if self._find(name) is not None:
            log.warning("container %s did not stop within %d s; it is ended", name, _REBOOT)
            self._kill(name)
        try:
            self._begin(name, started)
        except errors.HypervisorError:
            self._forget(name)
            raise

    def cleanup(self, name: str) -> None:
        if self._find(name) is None:
            self._forget(name)

    def _forget(self, name: str) -> None:
        """Unmount the root of a container that does not run, then remove what describes it."""
        root_fs.release(self._root(name))
        home = self._home(name)
        started = self._state(name)
        for device, path in (started.loops if started is not None else {}).items():
            loops.detach(device, path)
        if started is not None:
            cgroups.remove_empty(cgroups.find(mounts.read()), name)
        for entry in ("config", "instance.json"):
            files.remove(home / entry)
        try:
            home.rmdir()
        except FileNotFoundError:
            return
        except OSError as err:
            raise errors.HypervisorError(f"cannot remove {home}: {err.strerror}") from err

    # what runs

    def list_names(self) -> list[str]:
        return sorted(self.info_all())

    def info(self, name: str) -> InstanceInfo | None:
        found = self._find(name)
        return None if found is None else self._info(found, cgroups.find(mounts.read()))

    def info_all(self) -> dict[str, InstanceInfo]:
        layout = cgroups.find(mounts.read())
        running = [found for found in tools.all_containers(self._lxcpath) if found.runs]
        infos = ((found.name, self._info(found, layout)) for found in running)
        return {name: info for name, info in infos if info is not None}

    def guest_process(self, name: str) -> int | None:
        """The first process of the container; LXC's own monitor ends after it."""
        found = self._find(name)
        return None if found is None else found.pid

    def _find(self, name: str) -> tools.Container | None:
        """A container that runs, None when it does not."""
        if not (self._home(name) / "config").exists():
            return None
        found = tools.container(self._lxcpath, name)
        return found if found is not None and found.runs else None

    def _info(self, found: tools.Container, layout: cgroups.Layout) -> InstanceInfo | None:
        """None when it was just cleaned up, or is not ours."""
        started = self._state(found.name)
        if started is None:
            return None
        used = cgroups.usage(layout, found.pid) if found.pid is not None else None
        return InstanceInfo(
            memory=used.limit if used is not None and used.limit else started.memory,
            vcpus=started.vcpus,
            state=RunState.RUNNING,
            time=used.cpu_seconds if used is not None else 0.0,
        )

    def _state(self, name: str) -> _Started | None:
        path = self._home(name) / "instance.json"
        try:
            return typed.decode(path.read_bytes(), _Started)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as err:
            raise errors.HypervisorError(f"cannot read {path}: {err}") from err

    # abilities

    def balloon(self, instance: NodeInstance, memory: int) -> None:
        """Change the limit; refused when the container uses more, as the kernel would kill it."""
        name = instance.name
        found = self._find(name)
        layout = cgroups.find(mounts.read())
        used = cgroups.usage(layout, found.pid) if found is not None and found.pid else None
        if used is None:
            raise errors.HypervisorError(
                f"instance {name} does not run on this node, so its memory cannot be changed"
            )
        if used.limit is None:
            raise errors.HypervisorError(
                f"instance {name}: this node does not limit the memory of containers"
            )
        if used.anonymous >= memory:
            raise errors.HypervisorError(
                f"instance {name} uses {used.anonymous} MiB and cannot be left with {memory} MiB"
            )
        facts = node.facts(layout, self._root(name), self._log(name, "console.log"))
        steps = container_config.memory_limit(memory, facts)
        if memory > used.limit:
            steps.reverse()  # memory with swap may never be less than memory
        for file, value in steps:
            tools.run("lxc-cgroup", self._lxcpath, ["-n", name, file, value])

    # the node

    def node_info(self, params: HvParams) -> NodeInfo:
        """``memory_dom0`` is what neither containers have nor anybody could get."""
        layout = cgroups.find(mounts.read())
        guests = 0
        for found in self._list_running():
            used = cgroups.usage(layout, found.pid) if found.pid is not None else None
            guests += used.anonymous if used is not None else 0
        plain = host.node_info(hv_version=node.version())
        return NodeInfo(
            memory_total=plain.memory_total,
            memory_free=plain.memory_free,
            memory_dom0=max(0, plain.memory_dom0 - guests),
            cpu_total=plain.cpu_total,
            cpu_nodes=plain.cpu_nodes,
            cpu_sockets=plain.cpu_sockets,
            hv_version=plain.hv_version,
        )

    def _list_running(self) -> list[tools.Container]:
        """The node has its memory also when LXC is not installed; verify tells that."""
        try:
            return tools.all_containers(self._lxcpath)
        except errors.HypervisorError as err:
            log.info("containers of this node: %s", err)
            return []

    def verify(self, params: HvParams) -> str | None:
        if os.geteuid() != 0:
            return "the node daemon must run as root to run containers"
        missing = host.describe_missing_programs(
            (*tools.PROGRAMS, *root_fs.PROGRAMS, loops.PROGRAM)
        )
        if missing is not None:
            return f"{missing}; install the package lxc"
        try:
            return node.explain_unusable()
        except errors.HypervisorError as err:
            return errors.text(err)

    def check_params(self, params: HvParams) -> None:
        node.check(_load(params))

    def console(self, instance: NodeInstance, node_name: str, params: HvParams) -> Console:
        terminal = [] if _load(params).num_ttys else ["-t", "0"]
        return Console(
            instance=instance.name,
            kind="ssh",
            host=node_name,
            user="root",
            command=["lxc-console", "-P", str(self._lxcpath), "-n", instance.name, *terminal],
        )

    def console_lines(self, instance: NodeInstance, params: HvParams) -> dict[str, ConsoleLine]:
        """The terminal of ``lxc-console``, with the log of the console."""
        found = self.console(instance, "", params)
        log_file = self._log(instance.name, "console.log")
        return {"serial": ConsoleLine(argv=tuple(found.command or ()), log=log_file)}

    # places

    @property
    def _lxcpath(self) -> Path:
        return self.paths.lxc.resolve()

    def _home(self, name: str) -> Path:
        host.check_instance_name(name)
        return root_fs.place(self.paths.lxc, name)

    def _root(self, name: str) -> Path:
        return self._home(name) / "rootfs"

    def _log(self, name: str, kind: str) -> Path:
        return self.paths.lxc_log / f"{name}.{kind}"


_load = params.load
