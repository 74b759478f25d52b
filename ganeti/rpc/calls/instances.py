"""Node calls about instances: what runs, start, stop, reboot, consoles."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.rpc.objects import Console, InstanceInfo, NodeInstance
from ganeti.rpc.timing import NORMAL, URGENT, call


class InstanceCalls(ABC):
    """Answered by :class:`ganeti.node.instances.Instances`."""

    @abstractmethod
    @call(timeout=URGENT)
    def all_instances_info(
        self, hypervisors: list[str], all_hvparams: dict[str, JsonObject]
    ) -> dict[str, InstanceInfo]:
        """Facts about the guests here, of all given hypervisors, by instance name."""

    @abstractmethod
    @call(timeout=URGENT)
    def instance_list(self, hypervisors: list[str], hvparams: dict[str, JsonObject]) -> list[str]:
        """Names of what runs here."""

    @abstractmethod
    @call(timeout=URGENT)
    def instance_info(self, instance: str, hypervisor: str, hvparams: JsonObject) -> JsonObject:
        """State of one instance as in :class:`InstanceInfo`, ``{}`` when it does not run here."""

    @abstractmethod
    @call(timeout=NORMAL)
    def instance_start(
        self, instance: NodeInstance, startup_paused: bool, reason: list[Any]
    ) -> None:
        """Start an instance whose disks are assembled; no error when it runs.

        Refused without a ``run_epoch`` newer than all that the node knows of the instance.
        """

    @abstractmethod
    @call(timeout=NORMAL)
    def instance_shutdown(self, instance: NodeInstance, timeout: int, reason: list[Any]) -> None:
        """Stop an instance: ask, wait up to ``timeout`` seconds, then end it."""

    @abstractmethod
    @call(timeout=NORMAL)
    def instance_reboot(
        self, instance: NodeInstance, reboot_type: str, shutdown_timeout: int, reason: list[Any]
    ) -> None:
        """Reboot: ``soft`` inside the running guest, ``hard`` by stop and start."""

    @abstractmethod
    @call(timeout=NORMAL)
    def instance_balloon_memory(self, instance: NodeInstance, memory: int) -> None:
        """Set the memory of a running instance to ``memory`` MiB."""

    @abstractmethod
    @call(timeout=URGENT)
    def instance_console_info(
        self, params: dict[str, tuple[NodeInstance, str]]
    ) -> dict[str, Console]:
        """Console of instances: name -> (instance, name of this node)."""

    @abstractmethod
    @call(timeout=URGENT)
    def instance_consoles(self, instance: NodeInstance) -> list[str]:
        """Kinds of consoles that can be opened here: ``serial``, ``vnc``."""

    @abstractmethod
    @call(timeout=URGENT)
    def instance_console_open(self, instance: NodeInstance, kind: str) -> None:
        """Open a console: after the answer the connection carries its bytes, both ways.

        The node says nothing before it has got one byte, which it drops.
        """

    @abstractmethod
    @call(timeout=NORMAL)
    def hypervisor_validate_params(self, hypervisor: str, params: JsonObject) -> None:
        """Check complete hypervisor parameters on this node."""
