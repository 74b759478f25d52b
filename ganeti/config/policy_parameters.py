"""Instance policies: what a change of one leaves, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from ganeti.base import typed
from ganeti.base.json_types import JsonObject
from ganeti.base.text import nearest
from ganeti.config.parameters import merge, refuse
from ganeti.model import ipolicy, params

_POLICY_KEYS = ("minmax", "std", "disk-templates", "vcpu-ratio", "spindle-ratio")

_Natural = Annotated[int, msgspec.Meta(ge=0)]


def cluster_policy(current: Mapping[str, object], change: Mapping[str, object]) -> JsonObject:
    """A complete policy after a change; a key that is reset gets its builtin value.

    Raises:
        OpPrereqError: an unknown key, a value of the wrong form, or one that makes no sense.
    """
    own = _policy(change)
    builtin = ipolicy.defaults()
    start = {key: builtin[key] if change.get(key) == "default" else current[key] for key in builtin}
    return _check_policy(ipolicy.fill(start, own))


def group_policy(
    cluster: Mapping[str, object], current: Mapping[str, object], change: Mapping[str, object]
) -> JsonObject:
    """Own keys of a group's policy after a change; checked together with the cluster's.

    Raises:
        OpPrereqError: as :func:`cluster_policy`, or the standard size, which only a cluster has.
    """
    if "std" in change:
        raise refuse("the standard size of instances is set for the cluster, not for a group")
    own = _policy(change)
    if "minmax" in own:
        own["minmax"] = ipolicy.fill(cluster, {"minmax": own["minmax"]})["minmax"]
    result = merge(current, change, own)
    # The standard size only has to fit where no group has bounds of its own.
    _check_policy({**ipolicy.fill(cluster, result)}, standard="minmax" not in result)
    return result


def _check_policy(policy: JsonObject, *, standard: bool = True) -> JsonObject:
    checked = policy if standard else {**policy, "std": dict(policy["minmax"][0]["min"])}
    problems = ipolicy.problems(checked)
    if problems:
        raise refuse(f"instance policy: {'; '.join(problems)}")
    return policy


def _policy(change: Mapping[str, object]) -> JsonObject:
    """The keys of a change that are not resets, with checked forms."""
    for key in change:
        if key not in _POLICY_KEYS:
            raise refuse(
                f"the instance policy has no key '{key}'{nearest(key, _POLICY_KEYS)};"
                f" choose from {', '.join(_POLICY_KEYS)}"
            )
    result: JsonObject = {}
    for key, value in change.items():
        if value == params.VALUE_DEFAULT:
            continue
        if key == "minmax":
            result[key] = _bounds(value)
        elif key == "std":
            result[key] = _sizes(value, "std")
        elif key == "disk-templates":
            result[key] = _allowed(value)
        else:
            result[key] = _ratio(key, value)
    return result


def _bounds(value: object) -> list[dict[str, JsonObject]]:
    if not isinstance(value, list) or not value:
        raise refuse("minmax of the instance policy is a list of at least one pair of min and max")
    for pair in value:
        if not isinstance(pair, Mapping) or not set(pair) <= {"min", "max"}:
            raise refuse("each item in minmax of the instance policy has the keys min and max")
    return [{limit: _sizes(sizes, limit) for limit, sizes in pair.items()} for pair in value]


def _sizes(value: object, what: str) -> JsonObject:
    if not isinstance(value, Mapping):
        raise refuse(f"{what} of the instance policy is a mapping of sizes")
    for key in value:
        if key not in ipolicy.SPEC_KEYS:
            raise refuse(
                f"the instance policy has no size '{key}'{nearest(key, ipolicy.SPEC_KEYS)};"
                f" choose from {', '.join(ipolicy.SPEC_KEYS)}"
            )
    return {key: _count(f"{what} {key}", size) for key, size in value.items()}


def _count(what: str, value: object) -> int:
    try:
        return typed.convert(value, _Natural, strict=False)
    except msgspec.ValidationError:
        raise refuse(f"{what} must be an integer that is not negative, not '{value}'") from None


def _allowed(value: object) -> list[str]:
    if not isinstance(value, list) or not value:
        raise refuse("the instance policy must allow at least one disk template")
    unknown = [str(name) for name in value if name not in ipolicy.ALL_TEMPLATES]
    if unknown:
        raise refuse(
            f"unknown disk template {', '.join(unknown)};"
            f" choose from {', '.join(ipolicy.ALL_TEMPLATES)}"
        )
    return list(dict.fromkeys(str(name) for name in value))


def _ratio(key: str, value: Any) -> float:
    try:
        ratio = float(value)
    except (TypeError, ValueError):
        ratio = 0.0
    if not 0 < ratio < 1e9:
        raise refuse(f"{key} of the instance policy must be a positive number, not '{value}'")
    return ratio
