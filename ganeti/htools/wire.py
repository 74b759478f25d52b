"""From the JSON of Ganeti's interfaces to the facts of the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ganeti import errors
from ganeti.placement.facts import BUILTIN_POLICY, SPEC_KEYS, Policy, Spec


class WireError(errors.GenericError):
    """Something in the data is missing or has the wrong shape; the text names object and key."""


def take(raw: Mapping[str, object], key: str, kind: type, where: str) -> Any:
    """A member of an object, of a type; raises :class:`WireError`."""
    value = raw.get(key)
    if kind is int and isinstance(value, float) and not isinstance(value, bool):
        value = int(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        if key not in raw:
            raise WireError(f"{where}: '{key}' is missing")
        raise WireError(f"{where}: '{key}' is {value!r}, not of type {kind.__name__}")
    return value


def names(raw: object, where: str) -> tuple[str, ...]:
    """A list of texts."""
    if raw is None:
        return ()
    if not isinstance(raw, list) or not all(isinstance(item, str) for item in raw):
        raise WireError(f"{where}: {raw!r} is not a list of names")
    return tuple(raw)


def spec(raw: object, where: str) -> Spec:
    """A size of an instance policy."""
    if not isinstance(raw, dict):
        raise WireError(f"{where}: {raw!r} is not a size")
    return Spec(**{key: take(raw, wire_key, int, where) for key, wire_key in SPEC_KEYS.items()})


def policy(raw: object, where: str) -> Policy:
    """An instance policy, complete."""
    if raw is None:
        return BUILTIN_POLICY
    if not isinstance(raw, dict):
        raise WireError(f"{where}: {raw!r} is not a policy")
    bounds = []
    for pair in take(raw, "minmax", list, where):
        if not isinstance(pair, dict):
            raise WireError(f"{where}: {pair!r} is not a pair of sizes")
        bounds.append((spec(pair.get("min"), where), spec(pair.get("max"), where)))
    return Policy(
        standard=spec(raw.get("std"), where),
        bounds=tuple(bounds),
        templates=names(raw.get("disk-templates"), where),
        vcpu_ratio=take(raw, "vcpu-ratio", float, where),
        spindle_ratio=take(raw, "spindle-ratio", float, where),
    )


def amount(value: object) -> int | None:
    """A number of MiB, processors or spindles; None when it is not known."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value)


def node_memory(reported: int | None, hypervisor: str | None, static: int) -> int:
    """Memory a node needs itself: on KVM a fixed amount unless that is 0."""
    if hypervisor == "kvm" and static > 0:
        return static
    return reported or 0
