"""Which instances this node may run: the node's half of "never two copies".

The master numbers each right to run an instance; no number is used twice (term of the
master, number within it). The node notes number and right in ``<data>/run-rights/<uuid>`` before
a guest begins. A start is refused when its right comes late or twice, or comes from a master that
does not know of a migration. :func:`refusal`, which is pure, has the rules.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from ganeti import errors
from ganeti.base import files, jsonio, typed
from ganeti.model.enums import RunState
from ganeti.model.ids import InstanceUuid
from ganeti.node.context import NodeContext
from ganeti.rpc.calls.run_rights import RunRightCalls
from ganeti.rpc.objects import NodeInstance, RightState, RunNumber, RunRight

_UUID = re.compile(r"[0-9a-zA-Z][0-9a-zA-Z-]{0,63}")
NEVER: RunNumber = (0, 0)


def refusal(known: RunRight | None, name: str, epoch: RunNumber, state: RightState) -> str | None:
    """Why a right may not follow the known one, None when it may. Pure.

    A newer right prevails: the master decides who gets the instance. A plain start is held to
    :func:`explain_block` too, as starting is no way to end a migration.
    """
    if epoch <= NEVER:
        return f"the right to run instance {name} has no number; is the master out of date?"
    if known is None:
        return None
    if epoch <= known.epoch:
        return (
            f"the run right of instance {name} is out of date (number {_text(epoch)}, this node"
            f" has seen {_text(known.epoch)})"
        )
    if state is RightState.LEAVING and known.state is not RightState.HERE:
        return f"instance {name} cannot leave this node, {_describe_state(known)}"
    return None


def explain_block(known: RunRight | None, name: str) -> str | None:
    """Why the instance may not be started here, None when it may. Pure."""
    if known is None or known.state not in (RightState.LEAVING, RightState.ARRIVING):
        return None
    return (
        f"instance {name} is not started, {_describe_state(known)} and may run there;"
        f" gnt-instance migrate --cleanup {name} finds out where it is"
    )


def _describe_state(known: RunRight) -> str:
    match known.state:
        case RightState.LEAVING:
            return f"a migration to node {known.peer} did not finish"
        case RightState.ARRIVING:
            return f"a migration from node {known.peer} did not finish"
        case RightState.GONE:
            return "it was given to another node"
        case RightState.HERE:
            return "it belongs here"


def _text(number: RunNumber) -> str:
    return f"{number[0]}.{number[1]}"


class RunRights(RunRightCalls):
    """The records of one node. A new one is on disk before it counts. Thread-safe."""

    def __init__(
        self, context: NodeContext, explain_refusal: Callable[[], str] = lambda: ""
    ) -> None:
        """``explain_refusal``: why no guest may begin to run here now, empty when it may."""
        self._context = context
        self._explain_refusal = explain_refusal
        self._directory = context.paths.run_rights
        self._lock = threading.Lock()

    def take(self, instance: NodeInstance) -> None:
        """Note that the instance is about to run here by a new right.

        Raises:
            RunRightError: the right is out of date, a migration of it is not settled, or this
                node has no lease of the master.
        """
        self._demand_lease(instance.name)
        with self._lock:
            known = self._read(instance.uuid)
            self._refuse(explain_block(known, instance.name))
            wanted = RunRight(
                uuid=instance.uuid,
                name=instance.name,
                epoch=instance.run_epoch,
                state=RightState.HERE,
            )
            self._follow(known, wanted)

    def need(self, instance: NodeInstance) -> None:
        """Check that an instance that ran here may go on doing so.

        Raises:
            RunRightError: it was given away, or is on its way, or this node has no lease.
        """
        self._demand_lease(instance.name)
        known = self._read(instance.uuid)
        self._refuse(explain_block(known, instance.name))
        if known is not None and known.state is RightState.GONE:
            raise errors.RunRightError(
                f"instance {instance.name} may not run on this node, {_describe_state(known)}"
            )

    def demand(self, instance: NodeInstance, state: RightState) -> RunRight:
        """Return the run right of the instance; RunRightError when its state is another one."""
        known = self._read(instance.uuid)
        if known is None or known.state is not state:
            found = "nothing" if known is None else known.state.value
            raise errors.RunRightError(
                f"this node has on record that instance {instance.name} is '{found}' here, not"
                f" '{state.value}': the call comes late, or out of turn"
            )
        return known

    def run_right_set(self, right: RunRight, hypervisor: str) -> None:
        """Record a right to run; refused while the guest runs here although it must not.

        Raises:
            RunRightError: it is no newer than what is known, or the guest runs, or comes to a
                node without a lease.
        """
        if right.state is RightState.ARRIVING:
            self._demand_lease(right.name)
        with self._context.instance(right.name, "change of the right to run"):
            if right.state in (RightState.GONE, RightState.ARRIVING):
                info = self._context.hypervisor(hypervisor).info(right.name)
                if info is not None and info.state == RunState.RUNNING:
                    raise errors.RunRightError(
                        f"instance {right.name} runs on this node; it has to be stopped before"
                        " another node may run it"
                    )
            self._put(right)

    def _put(self, right: RunRight) -> None:
        """Follow the master's decision about an instance. Idempotent."""
        with self._lock:
            known = self._read(right.uuid)
            if known != right:
                self._follow(known, right)

    def run_right_forget(self, uuid: InstanceUuid) -> None:
        with self._lock:
            files.remove(self._path(uuid))

    def run_rights(self, uuids: list[InstanceUuid]) -> list[RunRight]:
        return self._read_known(uuids) if uuids else self._read_unsettled()

    def _read_known(self, uuids: Iterable[InstanceUuid]) -> list[RunRight]:
        found = (self._read(uuid) for uuid in uuids)
        return [right for right in found if right is not None]

    def _read_unsettled(self) -> list[RunRight]:
        """Instances that were on their way when something ended."""
        try:
            names = sorted(path.name for path in self._directory.iterdir())
        except FileNotFoundError:
            return []
        ways = (RightState.LEAVING, RightState.ARRIVING)
        return [
            right
            for right in self._read_known(
                InstanceUuid(name) for name in names if _UUID.fullmatch(name)
            )
            if right.state in ways
        ]

    def _follow(self, known: RunRight | None, wanted: RunRight) -> None:
        self._refuse(refusal(known, wanted.name, wanted.epoch, wanted.state))
        files.ensure_dir(self._directory)
        files.write_atomic(self._path(wanted.uuid), jsonio.dumps(msgspec.to_builtins(wanted)))

    def _read(self, uuid: InstanceUuid) -> RunRight | None:
        path = self._path(uuid)
        try:
            return typed.convert(jsonio.loads(path.read_bytes()), RunRight)
        except FileNotFoundError:
            return None
        except (errors.ParseError, msgspec.ValidationError) as err:
            raise errors.RunRightError(
                f"{path} is damaged ({err}); remove it when you are sure that the instance runs"
                " on no other node"
            ) from err

    def _path(self, uuid: InstanceUuid) -> Path:
        if not _UUID.fullmatch(uuid):
            raise errors.ParameterError(f"{uuid[:80]!r} is not a uuid of an instance")
        return self._directory / uuid

    def _demand_lease(self, name: str) -> None:
        if why := self._explain_refusal():
            raise errors.RunRightError(f"instance {name} does not start: {why}")

    @staticmethod
    def _refuse(why: str | None) -> None:
        if why is not None:
            raise errors.RunRightError(why)
