"""Options that ``gnt-cluster init`` and ``modify`` share, and the policy that they describe."""

from __future__ import annotations

from types import SimpleNamespace

from ganeti import errors
from ganeti.base import units
from ganeti.base.json_types import JsonObject
from ganeti.base.text import nearest
from ganeti.cli.fields import override
from ganeti.cli.option import value
from ganeti.cli.values import KeyVals

OP = "OP_CLUSTER_SET_PARAMS"
#: Settings that only gnt-os or other programs change.
WITHOUT = ("blacklisted_os", "hidden_os", "os_hvp", "osparams", "osparams_private_cluster")
#: Lists of which nothing takes the meaning from a comma, and ranges.
NAMES = {
    "compression_tools": override(kind="words", metavar="<program>,..."),
    "enabled_data_collectors": override(metavar="<collector>=yes|no,..."),
    "enabled_disk_templates": override(kind="words", metavar="<template>,..."),
    "enabled_hypervisors": override(kind="words", metavar="<hypervisor>,..."),
    "reserved_lvs": override(kind="words", metavar="<pattern>,..."),
    **{
        name: override(kind="string", metavar="<first>-<last>,...")
        for name in ("add_uids", "remove_uids", "uid_pool")
    },
}
#: The options of the instance policy, and what differs from the rule for them.
POLICY = {"PolicyKeys": ("std", "minmax", "disk_templates", "vcpu_ratio", "spindle_ratio")}
POLICY_NAMES = {
    "std": override("--ipolicy-std-specs"),
    "minmax": override("--ipolicy-bounds-specs"),
    "disk_templates": override("--ipolicy-disk-templates", metavar="<template>,..."),
    "vcpu_ratio": override("--ipolicy-vcpu-ratio", kind="maybefloat"),
    "spindle_ratio": override("--ipolicy-spindle-ratio", kind="maybefloat"),
}

#: Key of a size in the policy -> destination of the option that sets its three limits at once.
_SPLIT = {
    "cpu-count": "ispecs_cpu_count",
    "disk-count": "ispecs_disk_count",
    "disk-size": "ispecs_disk_size",
    "memory-size": "ispecs_mem_size",
    "nic-count": "ispecs_nic_count",
}
SPLIT_SPECS = tuple(
    value(
        f"--{dest.removeprefix('i').replace('_', '-')}",
        dest=dest,
        kind="keyval",
        default={},
        metavar="min=<size>,std=<size>,max=<size>",
        help=f"Limits of {key}; not together with --ipolicy-bounds-specs",
    )
    for key, dest in _SPLIT.items()
)
_IN_MIB = ("disk-size", "memory-size")


def policy(opts: SimpleNamespace) -> JsonObject:
    """The keys of the instance policy that options name.

    Raises:
        OpPrereqError: an unknown size or limit, or both ways of giving sizes at once.
    """
    from ganeti.model.params import VALUE_DEFAULT  # only policies need it

    result: JsonObject = {}
    if opts.minmax == [{VALUE_DEFAULT: {}}]:
        result["minmax"] = VALUE_DEFAULT
    elif opts.minmax:
        result["minmax"] = [
            {_limit(limit): _specs(keys) for limit, keys in pair.items()} for pair in opts.minmax
        ]
    standard = getattr(opts, "std", None)  # a group has none
    if standard:
        result["std"] = _specs(standard)
    split = {key: getattr(opts, dest, None) for key, dest in _SPLIT.items()}
    if any(split.values()):
        if result:
            raise errors.make_invalid_error(
                "--specs-... cannot be used together with --ipolicy-bounds-specs and"
                " --ipolicy-std-specs",
            )
        result = _parse_split(split)
    for key, found in (
        ("disk-templates", opts.disk_templates),
        ("vcpu-ratio", opts.vcpu_ratio),
        ("spindle-ratio", opts.spindle_ratio),
    ):
        if found is not None:
            result[key] = VALUE_DEFAULT if found == [VALUE_DEFAULT] else found
    return result


def _limit(name: str) -> str:
    if name not in ("min", "max"):
        raise errors.make_invalid_error(
            f"--ipolicy-bounds-specs takes min:... and max:..., not '{name}'"
        )
    return name


def _specs(keys: KeyVals) -> dict[str, int]:
    return {key: _size(key, found) for key, found in keys.items()}


def _size(key: str, text: str | bool | None) -> int:
    from ganeti.model import ipolicy  # only policies need it, every command reads this module

    if key not in ipolicy.SPEC_KEYS:
        raise errors.make_invalid_error(
            f"the instance policy has no size '{key}'{nearest(key, ipolicy.SPEC_KEYS)};"
            f" choose from {', '.join(ipolicy.SPEC_KEYS)}",
        )
    try:
        return units.parse_size(str(text)) if key in _IN_MIB else int(str(text))
    except (errors.UnitParseError, ValueError):
        raise errors.make_invalid_error(
            f"'{text}' cannot be used for {key} of the instance policy"
        ) from None


def _parse_split(split: dict[str, KeyVals | None]) -> JsonObject:
    limits: dict[str, dict[str, int]] = {"min": {}, "max": {}, "std": {}}
    for key, given in split.items():
        for limit, text in (given or {}).items():
            if limit not in limits:
                raise errors.make_invalid_error(
                    f"invalid limit '{limit}' of {key}; choose from min, std, max"
                )
            limits[limit][key] = _size(key, text)
    return {"minmax": [{"min": limits["min"], "max": limits["max"]}], "std": limits["std"]}
