"""Changes of a disk that are changes of the instance that has it, or gets it."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

from ganeti.opcodes.disk import OpDiskAttach, OpDiskDetach
from ganeti.opcodes.instance import OpInstanceSetParams
from ganeti.ops.instance.set_params import InstanceSetParams
from ganeti.ops.operation import Hooks, Needs, Operation
from ganeti.ops.steps.changes.settings_changes import Row

O = TypeVar("O", OpDiskAttach, OpDiskDetach)  # noqa: E741


class ChangeOfInstance(Operation[O, list[Row]]):
    """Runs the change of the instance, with its locks, checks and hooks; returns what changed."""

    inner: InstanceSetParams

    @abstractmethod
    def change(self) -> OpInstanceSetParams:
        """The change of the instance; called once, before any lock is held. OpPrereqError."""

    def locks(self) -> Needs:
        self.inner = InstanceSetParams(self.change(), self.ctx)
        yield from self.inner.locks()

    def check(self) -> None:
        self.inner.check()

    def hooks(self) -> Hooks:
        return self.inner.hooks()

    def run(self) -> list[Row]:
        return self.inner.run()
