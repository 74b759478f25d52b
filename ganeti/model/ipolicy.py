"""The instance policy: which sizes of instances a cluster or group allows. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ganeti.base.json_types import JsonObject
from ganeti.model.enums import DiskTemplate

SPEC_KEYS = (
    "cpu-count",
    "disk-count",
    "disk-size",
    "memory-size",
    "nic-count",
    "spindle-use",
)

ALL_TEMPLATES = tuple(map(str, DiskTemplate))


class PolicyKeys(msgspec.Struct, kw_only=True):
    """The keys of a policy, with underscores in place of dashes; commands have an option for each.

    Sizes are in MiB. What is unset is inherited.
    """

    std: Annotated[dict[str, int] | None, Meta(description="Standard size of instances")] = None
    minmax: Annotated[
        list[dict[str, dict[str, int]]] | None,
        Meta(description="Minimum and maximum size of instances; // separates pairs"),
    ] = None
    disk_templates: Annotated[
        list[str] | None, Meta(description="Disk templates that the instance policy allows")
    ] = None
    vcpu_ratio: Annotated[
        float | None, Meta(description="Maximum number of virtual processors for each real one")
    ] = None
    spindle_ratio: Annotated[
        float | None, Meta(description="Maximum number of instances for each spindle")
    ] = None


def defaults() -> JsonObject:
    """The builtin policy of a new cluster."""
    low = {
        "cpu-count": 1,
        "disk-count": 1,
        "disk-size": 1024,
        "memory-size": 128,
        "nic-count": 1,
        "spindle-use": 1,
    }
    high = {
        "cpu-count": 8,
        "disk-count": 16,
        "disk-size": 1048576,
        "memory-size": 32768,
        "nic-count": 8,
        "spindle-use": 12,
    }
    return {
        "minmax": [{"min": low, "max": high}],
        "std": dict(low),
        "disk-templates": list(ALL_TEMPLATES),
        "vcpu-ratio": 4.0,
        "spindle-ratio": 32.0,
    }


@dataclass(frozen=True)
class Shape:
    """The values that a policy compares: sizes in MiB."""

    memory: int
    vcpus: int
    spindle_use: int
    disks: Sequence[int]
    nics: int
    #: of its disks; ``diskless`` without disks
    templates: tuple[str, ...]


def violations(policy: Mapping[str, Any], shape: Shape) -> list[str]:
    """The violations of a policy by a shape, a sentence each; empty if it is allowed.

    With several min/max pairs one that is kept is enough; the nearest one is reported.
    """
    found: list[str] = []
    allowed = policy.get("disk-templates", ALL_TEMPLATES)
    for template in shape.templates:
        if template not in allowed:
            found.append(
                f"disk template {template} is not allowed (allowed are {', '.join(allowed)})"
            )
    tries = [_find_violations(pair["min"], pair["max"], shape) for pair in policy.get("minmax", [])]
    if tries and all(tries):
        nearest = min(tries, key=len)
        found += nearest
    return found


def _find_violations(low: Mapping[str, int], high: Mapping[str, int], shape: Shape) -> list[str]:
    found: list[str] = []
    checks: list[tuple[str, str, int]] = [
        ("memory-size", "", shape.memory),
        ("cpu-count", "", shape.vcpus),
        ("spindle-use", "", shape.spindle_use),
        ("disk-count", "", len(shape.disks)),
        ("nic-count", "", shape.nics),
        *(("disk-size", f" of disk {i}", size) for i, size in enumerate(shape.disks)),
    ]
    for key, which, value in checks:
        if key == "disk-count" and DiskTemplate.DISKLESS in shape.templates:
            continue
        if key in low and key in high and not low[key] <= value <= high[key]:
            found.append(f"{key}{which} {value} is not between {low[key]} and {high[key]}")
    return found


def fill(base: Mapping[str, Any], own: Mapping[str, Any]) -> JsonObject:
    """``base`` with the keys of ``own``; sizes that ``own`` leaves out are those of ``base``."""
    result = {**base, **own}
    if own.get("minmax"):
        first = base["minmax"][0]
        result["minmax"] = [
            {limit: {**first[limit], **pair.get(limit, {})} for limit in ("min", "max")}
            for pair in own["minmax"]
        ]
    if "std" in own:
        result["std"] = {**base["std"], **own["std"]}
    return result


def problems(policy: Mapping[str, Any]) -> list[str]:
    """Why a complete policy makes no sense, a sentence each; empty if it does."""
    found: list[str] = []
    for pair in policy["minmax"]:
        found += [
            f"the smallest {key} {pair['min'][key]} is larger than the largest {pair['max'][key]}"
            for key in SPEC_KEYS
            if pair["min"][key] > pair["max"][key]
        ]
    std = policy["std"]
    outside = [
        [key for key in SPEC_KEYS if not pair["min"][key] <= std[key] <= pair["max"][key]]
        for pair in policy["minmax"]
    ]
    if not found and all(outside):
        key = min(outside, key=len)[0]
        found.append(f"the standard {key} {std[key]} is outside of what the policy allows")
    unknown = sorted(set(policy["disk-templates"]) - set(ALL_TEMPLATES))
    if unknown:
        found.append(f"unknown disk template {', '.join(unknown)}")
    return found
