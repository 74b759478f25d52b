"""Which processors of the node run a guest: the parameter ``cpu_mask``.

``all``, or a list like ``0-3,6`` for the whole guest, or one such list for each virtual processor,
separated by colons: ``0:2-3:all``.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from ganeti import errors

#: Processors of the node, None: every one.
Mask = frozenset[int] | None

_RANGE = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")
_ALL = "all"
_ONLINE = Path("/sys/devices/system/cpu/online")


def parse(text: str) -> tuple[Mask, ...]:
    """One mask for the guest, or one for each of its processors.

    Raises:
        HypervisorError: it is none of the forms above.
    """
    return tuple(_mask(part, text) for part in text.split(":"))


def _mask(part: str, text: str) -> Mask:
    if part == _ALL:
        return None
    found: set[int] = set()
    for word in part.split(","):
        match = _RANGE.fullmatch(word)
        first = int(match[1]) if match else 0
        last = int(match[2] or first) if match else -1
        if last < first:
            raise errors.HypervisorError(
                f"cpu_mask '{text}' is not one of the forms all, 0-3,6 or 0:2-3:all"
            )
        found.update(range(first, last + 1))
    return frozenset(found)


def plan(text: str, vcpus: int, online: Path = _ONLINE) -> tuple[Mask, ...]:
    """Like :func:`parse`, checked against the guest and the node.

    Raises:
        HypervisorError: the number of masks is not that of virtual processors, or a processor is
            missing.
    """
    masks = parse(text)
    if len(masks) not in (1, vcpus):
        raise errors.HypervisorError(
            f"cpu_mask '{text}' has {len(masks)} masks but the instance has {vcpus} processors;"
            " name one for all, or one for each"
        )
    wanted = frozenset[int]().union(*(mask for mask in masks if mask is not None))
    missing = sorted(wanted - _online(online)) if wanted else []
    if missing:
        raise errors.HypervisorError(
            f"cpu_mask '{text}' names processor {missing[0]}, which this node does not have"
        )
    return masks


def _online(path: Path) -> frozenset[int]:
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return frozenset(range(os.cpu_count() or 1))
    return _mask(text, text) or frozenset()


def pin(pid: int, mask: Mask) -> None:
    """Keep a whole process to some processors; later threads inherit it.

    Raises:
        HypervisorError: the system refused.
    """
    if mask is None:
        return
    for thread in os.listdir(f"/proc/{pid}/task"):
        # A worker thread may end meanwhile.
        with contextlib.suppress(ProcessLookupError):
            _set_affinity(int(thread), mask)


def pin_each(threads: Sequence[int], masks: Sequence[Mask]) -> None:
    """Keep every virtual processor (by its thread) to its mask.

    Raises:
        HypervisorError: the system refused.
    """
    for thread, mask in zip(threads, masks, strict=True):
        if mask is not None:
            _set_affinity(thread, mask)


def _set_affinity(thread: int, mask: frozenset[int]) -> None:
    try:
        os.sched_setaffinity(thread, mask)
    except ProcessLookupError:
        raise
    except OSError as err:
        raise errors.HypervisorError(
            f"the processors {sorted(mask)} of cpu_mask cannot be used: {err.strerror}"
        ) from err
