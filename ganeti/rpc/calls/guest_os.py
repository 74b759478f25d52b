"""Node calls about OS definitions."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.base.json_types import JsonObject
from ganeti.rpc.objects import NodeInstance, OsInfo
from ganeti.rpc.timing import FAST, ONE_DAY, SLOW, call


class GuestOsCalls(ABC):
    """Answered by :class:`ganeti.node.guest_os.GuestOs`."""

    @abstractmethod
    @call(timeout=FAST)
    def os_diagnose(self) -> list[OsInfo]:
        """All OS definitions found here, valid or not."""

    @abstractmethod
    @call(timeout=FAST)
    def os_validate(
        self,
        required: bool,
        name: str,
        checks: list[str],
        params: JsonObject,
        force_variant: bool,
        hypervisor: str,
    ) -> bool:
        """Check that an OS and its parameters can be used; False when not there and optional.

        ``hypervisor`` is that of the instance; empty when none is meant.
        """

    @abstractmethod
    @call(timeout=ONE_DAY)
    def instance_os_add(self, instance: NodeInstance, reinstall: bool, debug: int) -> None:
        """Run the create script of the instance's OS."""

    @abstractmethod
    @call(timeout=SLOW)
    def instance_run_rename(self, instance: NodeInstance, old_name: str, debug: int) -> None:
        """Run the rename script of the instance's OS."""
