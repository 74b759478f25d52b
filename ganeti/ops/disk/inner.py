"""Changes of a disk that are changes of the instance that has it, or gets it."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

from ganeti.opcodes.disk import OpDiskAttach, OpDiskDetach
from ganeti.opcodes.instance import OpInstanceSetParams
from ganeti.ops.instance.set_params import InstanceSetParams
from ganeti.ops.operation import Finding, FindingOperation, Hooks
from ganeti.ops.steps.changes.settings_changes import Row

O = TypeVar("O", OpDiskAttach, OpDiskDetach)  # noqa: E741


class ChangeOfInstance(FindingOperation[O, InstanceSetParams, list[Row]]):
    """Runs the change of the instance, with its locks, checks and hooks; returns what changed."""

    @abstractmethod
    def change(self) -> OpInstanceSetParams:
        """The change of the instance; called once, before any lock is held. OpPrereqError."""

    def find(self) -> Finding[InstanceSetParams]:
        """The operation that changes the instance."""
        inner = InstanceSetParams(self.change(), self.ctx)
        yield from inner.locks()
        return inner

    def check(self) -> None:
        self.found.check()

    def hooks(self) -> Hooks:
        return self.found.hooks()

    def run(self) -> list[Row]:
        return self.found.run()
