"""Node calls about instances: start, stop, reboot, what runs, consoles.

Calls that change one instance are serialised per instance on this node.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from ganeti import errors
from ganeti.base import files, jsonio
from ganeti.base.json_types import JsonObject
from ganeti.guest_os import metadata
from ganeti.hypervisor.abilities import Ballooning, Hotpluggable, ProcessBacked
from ganeti.hypervisor.interface import AttachedDisk, ConsoleLine, Hypervisor
from ganeti.model.enums import RebootType, RunState
from ganeti.node.consoles import Consoles
from ganeti.node.context import NodeContext, check_name
from ganeti.node.disks import Disks
from ganeti.node.end_watch import EndWatch
from ganeti.node.run_rights import RunRights
from ganeti.rpc.calls.instances import InstanceCalls
from ganeti.rpc.objects import Console, InstanceInfo, NodeInstance
from ganeti.rpc.server import TAKE_OVER

log = logging.getLogger(__name__)


class Instances(InstanceCalls):
    """Drives the hypervisors."""

    def __init__(
        self,
        context: NodeContext,
        disks: Disks,
        rights: RunRights,
        ends: EndWatch,
        consoles: Consoles,
        note_begin: Callable[[], None] = lambda: None,
    ) -> None:
        """``note_begin`` is called after a guest has begun to run."""
        self._context = context
        self._disks = disks
        self._rights = rights
        self._note_begin = note_begin
        self._ends = ends
        self._consoles = consoles

    # what runs

    def all_instances_info(
        self, hypervisors: list[str], all_hvparams: dict[str, JsonObject]
    ) -> dict[str, InstanceInfo]:
        """State of everything that the given hypervisors run here.

        Raises:
            HypervisorError: two hypervisors claim the same instance, or one failed.
        """
        found: dict[str, InstanceInfo] = {}
        for name in dict.fromkeys(hypervisors):
            for instance, info in self._context.hypervisor(name).info_all().items():
                if instance in found:
                    raise errors.HypervisorError(
                        f"instance {instance} is run by more than one hypervisor on this node"
                        f" ({name} and another of {', '.join(hypervisors)})"
                    )
                found[instance] = info
        return found

    def instance_list(self, hypervisors: list[str], hvparams: dict[str, JsonObject]) -> list[str]:
        """Names of what the given hypervisors run here, sorted."""
        found = (self._context.hypervisor(name).list_names() for name in hypervisors)
        return sorted({instance for names in found for instance in names})

    def plugged_disks(self, hypervisors: Sequence[str]) -> dict[str, list[str]]:
        """Name -> uuids of the disks that a running guest has, of those guests that tell."""
        found: dict[str, list[str]] = {}
        for each in hypervisors:
            driver = self._context.hypervisor(each)
            if not isinstance(driver, Hotpluggable):
                continue
            for name in driver.list_names():
                disks = driver.plugged_disks(name)
                if disks is not None:
                    found[name] = disks
        return found

    def instance_info(self, instance: str, hypervisor: str, hvparams: JsonObject) -> JsonObject:
        info = self._context.hypervisor(hypervisor).info(check_name(instance))
        return {} if info is None else msgspec.structs.asdict(info)

    # changes

    def instance_start(
        self, instance: NodeInstance, startup_paused: bool, reason: list[Any]
    ) -> None:
        """Start an instance; does nothing when it runs.

        The right to run it is on disk before the guest begins.

        Raises:
            HypervisorError: a disk is not there, or the hypervisor's own words.
            RunRightError: the right is no newer than others, or another node may run it.
        """
        with self._change(instance, "start", begins=True):
            self._start(instance, paused=startup_paused, by_new_right=True)
            self._note_reason(instance.name, reason)

    def _start(
        self,
        instance: NodeInstance,
        *,
        paused: bool = False,
        by_new_right: bool = False,
        disks: Sequence[AttachedDisk] | None = None,
    ) -> None:
        """``by_new_right``: the master wants it to run here now; it is not only a reboot.

        ``disks`` are those of the guest, unless it gets just those of the instance.
        """
        if self._context.paths.host_stops.exists():
            raise errors.HypervisorError(
                f"instance {instance.name} is not started: this host is being shut down"
                " (ganeti-guests start takes that back)"
            )
        hypervisor = self._context.hypervisor(instance.hypervisor)
        info = hypervisor.info(instance.name)
        if info is not None and info.state == RunState.RUNNING:
            log.info("instance %s runs already", instance.name)
            return
        if by_new_right:
            self._rights.take(instance)
        else:
            self._rights.need(instance)
        if info is not None:
            # The guest ended by itself and its remains are still there.
            hypervisor.stop(instance.name, force=True)
            hypervisor.cleanup(instance.name)
        found = self._list_attached(instance) if disks is None else disks
        hypervisor.start(instance, found, paused=paused)
        self._note_begin()
        log.info("started instance %s", instance.name)

    @contextlib.contextmanager
    def run_beside(
        self, instance: NodeInstance, disks: Sequence[AttachedDisk]
    ) -> Iterator[int | None]:
        """In the block the guest runs with these disks, by a new right; then it is ended.

        Yields its process, None when it has ended already. Other calls may end it meanwhile, and
        then start it as it is: that one goes on.

        Raises:
            HypervisorError: it runs already, or its guests have no processes; or as on a start.
            RunRightError: as on a start.
        """
        name, hypervisor = instance.name, self._context.hypervisor(instance.hypervisor)
        if not isinstance(hypervisor, ProcessBacked):
            raise errors.HypervisorError(f"hypervisor {instance.hypervisor} has no helper guests")
        with self._ends.expect(name, instance.hypervisor):
            with self._context.instance(name, "start of the helper guest"):
                if hypervisor.guest_process(name) is not None:
                    raise errors.HypervisorError(f"instance {name} runs already on this node")
                self._start(instance, by_new_right=True, disks=disks)
                process = hypervisor.guest_process(name)
            try:
                yield process
            finally:
                with self._context.instance(name, "end of the helper guest"):
                    if hypervisor.guest_process(name) in (process, None):
                        self._stop(hypervisor, name, 0)
                        forget_metadata(self._context, instance)

    def _list_attached(self, instance: NodeInstance) -> list[AttachedDisk]:
        try:
            return self._disks.all_attached(instance)
        except (errors.BlockDeviceError, errors.FileStoragePathError) as err:
            raise errors.HypervisorError(
                f"instance {instance.name} cannot be started: {errors.text(err)}"
            ) from err

    def instance_shutdown(self, instance: NodeInstance, timeout: int, reason: list[Any]) -> None:
        """Stop an instance: ask, wait up to ``timeout`` seconds, then end it.

        Raises:
            HypervisorError: it still runs after that.
        """
        with self._change(instance, "shutdown"):
            self._stop(self._context.hypervisor(instance.hypervisor), instance.name, timeout)
            forget_metadata(self._context, instance)
            self._note_reason(instance.name, reason)

    def _stop(self, hypervisor: Hypervisor, name: str, timeout: int) -> None:
        info = hypervisor.info(name)
        if info is None:
            log.info("instance %s does not run", name)
            # A move that was given up may have left a process that does not run the guest.
            hypervisor.stop(name, force=True)
            hypervisor.cleanup(name)
            return
        if info.state == RunState.RUNNING and timeout > 0:
            try:
                hypervisor.stop(name, timeout=timeout)
            except errors.HypervisorError as err:
                log.warning("instance %s cannot be asked to stop: %s", name, errors.text(err))
            info = hypervisor.info(name)
        if info is not None:
            if info.state == RunState.RUNNING:
                log.warning("instance %s did not stop within %d s; it is ended", name, timeout)
            hypervisor.stop(name, force=True)
            if hypervisor.info(name) is not None:
                raise errors.HypervisorError(
                    f"instance {name} still runs although it was forced to end;"
                    " see the hypervisor's log on this node"
                )
        hypervisor.cleanup(name)
        log.info("stopped instance %s", name)

    def instance_reboot(
        self, instance: NodeInstance, reboot_type: str, shutdown_timeout: int, reason: list[Any]
    ) -> None:
        """Reboot inside the running guest (``soft``) or by stop and start (``hard``).

        Raises:
            HypervisorError: it does not run, or could not be stopped or started.
            ParameterError: another kind; ``full`` needs the master, which has the disks.
        """
        if reboot_type not in (RebootType.SOFT, RebootType.HARD):
            raise errors.ParameterError(
                f"a node reboots instances in the ways soft and hard, not {reboot_type[:20]!r}"
            )
        with self._change(instance, "reboot", begins=True):
            hypervisor = self._context.hypervisor(instance.hypervisor)
            self._rights.need(instance)
            if hypervisor.info(instance.name) is None:
                raise errors.HypervisorError(
                    f"instance {instance.name} cannot be rebooted: it does not run here"
                )
            if reboot_type == RebootType.SOFT:
                hypervisor.reboot(instance, self._list_attached(instance))
            else:
                self._stop(hypervisor, instance.name, shutdown_timeout)
                self._start(instance)
            self._note_reason(instance.name, reason)

    def instance_balloon_memory(self, instance: NodeInstance, memory: int) -> None:
        """Set the memory of a running instance to ``memory`` MiB.

        Raises:
            HypervisorError: its hypervisor cannot do that, or it does not run here.
        """
        with self._context.instance(instance.name, "change of memory"):
            hypervisor = self._context.hypervisor(instance.hypervisor)
            if not isinstance(hypervisor, Ballooning):
                raise errors.HypervisorError(
                    f"the hypervisor {instance.hypervisor} cannot change the memory of a running"
                    f" instance; stop {instance.name} first"
                )
            if memory <= 0:
                raise errors.ParameterError(
                    f"instance {instance.name} cannot have {memory} MiB of memory"
                )
            hypervisor.balloon(instance, memory)

    @contextlib.contextmanager
    def _change(
        self, instance: NodeInstance, purpose: str, *, begins: bool = False
    ) -> Iterator[None]:
        """Nobody else works on the instance, and its end is none by itself."""
        with (
            self._context.instance(instance.name, purpose),
            self._ends.expect(instance.name, instance.hypervisor, begins=begins),
        ):
            yield

    def _note_reason(self, name: str, reason: list[Any]) -> None:
        """Keep why the state of an instance changed last, for those who look at this node."""
        if not reason:
            return
        path = self._context.paths.instance_reason / name
        try:
            files.ensure_dir(path.parent, 0o755)
            files.write_atomic(path, jsonio.dumps(reason), mode=0o644, fsync=False)
        except OSError as err:
            # The instance has changed already; the missing note must not hide that.
            log.warning("cannot write %s: %s", path, err.strerror)

    # the rest

    def instance_console_info(
        self, params: dict[str, tuple[NodeInstance, str]]
    ) -> dict[str, Console]:
        """How to reach consoles: name -> (instance, name of this node)."""
        return {
            name: self._context.hypervisor(instance.hypervisor).console(
                instance, node, instance.hvparams
            )
            for name, (instance, node) in params.items()
        }

    def instance_consoles(self, instance: NodeInstance) -> list[str]:
        """Kinds of consoles of a guest that runs here; HypervisorError for another."""
        return sorted(self._find_lines(instance))

    def instance_console_open(self, instance: NodeInstance, kind: str) -> None:
        """Connect the caller with a console; HypervisorError when there is none."""
        line = self._find_lines(instance).get(kind)
        if line is None:
            raise errors.HypervisorError(
                f"instance {instance.name} has no {kind} console; set"
                f" {'serial_console' if kind == 'serial' else 'vnc_bind_address'} and restart it"
            )
        self._consoles.open(instance.name, line, TAKE_OVER.get())

    def _find_lines(self, instance: NodeInstance) -> dict[str, ConsoleLine]:
        hypervisor = self._context.hypervisor(instance.hypervisor)
        if hypervisor.info(check_name(instance.name)) is None:
            raise errors.HypervisorError(
                f"instance {instance.name} does not run on this node;"
                " start it with gnt-instance startup"
            )
        return hypervisor.console_lines(instance, instance.hvparams)

    def hypervisor_validate_params(self, hypervisor: str, params: JsonObject) -> None:
        """Check complete hypervisor parameters on this node; HypervisorError."""
        self._context.hypervisor(hypervisor).check_params(params)


def forget_metadata(context: NodeContext, instance: NodeInstance) -> None:
    """Keep nothing for a guest that is not here any more; a failure is only logged."""
    try:
        metadata.forget(context.paths, instance.uuid)
    except OSError as err:
        log.warning("the metadata of instance %s stays: %s", instance.name, err)
