"""A list of changes applied to the disks or NICs of an instance. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ganeti import errors
from ganeti.opcodes.devices import Change
from ganeti.opcodes.enums import DdmFull


class Named(Protocol):
    """A device that can be spoken of."""

    @property
    def uuid(self) -> str: ...

    @property
    def name(self) -> str | None: ...


D = TypeVar("D", bound=Named)
P = TypeVar("P")


@dataclass(frozen=True)
class Step(Generic[D, P]):
    """One change as it will be made."""

    action: DdmFull
    #: place of the device when the step is made
    index: int
    #: the device before and after; None where it is not there
    before: D | None
    after: D | None
    params: P

    @property
    def new_device(self) -> D:
        """The device afterwards; ProgrammerError for a step that removes it."""
        if self.after is None:
            raise errors.ProgrammerError(f"no device is left after '{self.action}'")
        return self.after

    @property
    def device(self) -> D:
        """The device afterwards, or the one that is removed."""
        return self.new_device if self.before is None or self.after is not None else self.before


@dataclass(frozen=True)
class Maker(Generic[D, P]):
    """How devices are made, fetched and changed; each may refuse with OpPrereqError."""

    #: (place, parameters) -> new device
    add: Callable[[int, P], D]
    #: (place, device, parameters) -> changed device
    modify: Callable[[int, D, P], D]
    #: (place, parameters) -> device that exists without belonging to an instance
    attach: Callable[[int, P], D] | None = None


def apply(
    what: str,
    devices: Sequence[D],
    changes: Sequence[Change[P]],
    maker: Maker[D, P],
    most: int,
) -> tuple[list[D], list[Step[D, P]]]:
    """The devices after all changes, and the steps that lead there.

    Each change sees the list as the one before has left it. ``what`` is the word for error texts.

    Raises:
        OpPrereqError: an index, name or uuid that is not there, more than ``most`` devices, an
            action that makes no sense here.
    """
    items = list(devices)
    steps: list[Step[D, P]] = []
    for change in changes:
        steps.append(_apply_one(what, items, change, maker))
        if len(items) > most:
            raise errors.make_invalid_error(
                f"an instance has at most {most} {what}s, not {len(items)}"
            )
    return items, steps


def _apply_one(what: str, items: list[D], change: Change[P], maker: Maker[D, P]) -> Step[D, P]:
    """Apply one change to ``items``."""
    action, params = change.action, change.params
    if action in (DdmFull.ADD, DdmFull.ATTACH):
        make = maker.add if action is DdmFull.ADD else maker.attach
        if make is None:
            raise errors.make_invalid_error(
                f"a {what} cannot be attached or detached; use add and remove"
            )
        index = _find_new_index(what, items, change.item)
        device = make(index, params)
        if any(item.uuid == device.uuid for item in items):
            raise errors.make_state_error(
                f"{what} {device.uuid} is attached to this instance already"
            )
        items.insert(index, device)
        return Step(action, index, None, device, params)
    if action is DdmFull.DETACH and maker.attach is None:
        raise errors.make_invalid_error(f"a {what} cannot be detached; use remove")
    index = place(what, items, change.item)
    before = items[index]
    if action is DdmFull.MODIFY:
        items[index] = maker.modify(index, before, params)
        return Step(action, index, before, items[index], params)
    del items[index]
    return Step(action, index, before, None, params)


def place(what: str, items: Sequence[Named], item: int | str) -> int:
    """Find the index of a device by index (-1: the last one), name or uuid; OpPrereqError."""
    if isinstance(item, int) or item.lstrip("-").isdigit():
        number = int(item)
        index = len(items) - 1 if number == -1 else number
        if 0 <= index < len(items):
            return index
        count = f"{len(items)} of them, counted from 0" if items else "none"
        raise errors.make_unknown_error(f"there is no {what} {number}: the instance has {count}")
    found = [n for n, device in enumerate(items) if item in (device.uuid, device.name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise errors.make_not_unique_error(
            f"{len(found)} {what}s are called '{item}'; use the index or the uuid"
        )
    raise errors.make_unknown_error(f"the instance has no {what} with the name or uuid '{item}'")


def _find_new_index(what: str, items: Sequence[object], item: int | str) -> int:
    """Return the index for a new device: -1 is behind the last one."""
    if isinstance(item, str) and not item.lstrip("-").isdigit():
        raise errors.make_invalid_error(
            f"a new {what} is given a place by its index, not by the name '{item}'"
        )
    number = int(item)
    index = len(items) if number == -1 else number
    if not 0 <= index <= len(items):
        raise errors.make_invalid_error(
            f"a new {what} cannot be number {number}: the instance has {len(items)}"
        )
    return index
