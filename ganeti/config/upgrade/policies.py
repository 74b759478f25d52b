"""Instance policies: until 2.7 one smallest and one largest size, now a list of such pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.config.upgrade import shape
from ganeti.config.upgrade.report import Report
from ganeti.model import ipolicy

_KEYS = ("minmax", "std", "disk-templates", "vcpu-ratio", "spindle-ratio")
_LIMITS = ("min", "max")


def upgrade(raw: JsonObject, report: Report) -> None:
    """Bring the policies of cluster and groups into the form they have now."""
    cluster = raw["cluster"]
    policy = cluster.setdefault("ipolicy", {})
    _reshape(policy, "cluster/ipolicy", report)
    for key, value in ipolicy.defaults().items():
        if not policy.get(key):
            policy[key] = value
            report.added(f"cluster/ipolicy/{key}", value)
    builtin = ipolicy.defaults()
    _fill_sizes(policy["std"], builtin["std"], "cluster/ipolicy/std", report)
    _fill_pairs(policy, builtin["minmax"][0], "cluster/ipolicy", report)
    for uuid, group in raw["nodegroups"].items():
        path = f"nodegroups/{shape.label(group, uuid)}/ipolicy"
        own = group.setdefault("ipolicy", {})
        _reshape(own, path, report)
        if "std" in own:
            del own["std"]
            report.note_drop(f"{path}/std", "only a cluster has a standard size")
        _fill_pairs(own, policy["minmax"][0], path, report)


def _reshape(policy: JsonObject, path: str, report: Report) -> None:
    limits = {limit: policy.pop(limit) for limit in _LIMITS if limit in policy}
    limits = {limit: sizes for limit, sizes in limits.items() if sizes}
    if limits and "minmax" not in policy:
        policy["minmax"] = [limits]
        report.note_change(path, "min and max are a pair in minmax")
    if isinstance(policy.get("minmax"), dict):
        policy["minmax"] = [policy["minmax"]]
        report.note_change(f"{path}/minmax", "a list of pairs")
    if "minmax" in policy and not policy["minmax"]:
        del policy["minmax"]
        report.note_drop(f"{path}/minmax", "it was empty")
    for key in [key for key in policy if key not in _KEYS]:
        del policy[key]
        report.note_unknown(f"{path}/{key}")
    _check(policy, path)


def _check(policy: JsonObject, path: str) -> None:
    pairs = policy.get("minmax", [])
    sizes = [("std", policy.get("std", {}))]
    if not isinstance(pairs, list) or not all(isinstance(pair, dict) for pair in pairs):
        raise errors.ConfigurationError(f"{path}/minmax must be a list of objects")
    sizes += [
        (f"minmax/{i}/{limit}", pair.get(limit, {}))
        for i, pair in enumerate(pairs)
        for limit in _LIMITS
    ]
    for where, value in sizes:
        if not isinstance(value, dict):
            raise errors.ConfigurationError(f"{path}/{where} must be an object")
        for key, size in value.items():
            if isinstance(size, bool) or not isinstance(size, int | float):
                raise errors.ConfigurationError(f"{path}/{where}/{key} must be a number")


def _fill_pairs(policy: JsonObject, base: Mapping[str, Any], path: str, report: Report) -> None:
    for index, pair in enumerate(policy.get("minmax", [])):
        for limit in _LIMITS:
            sizes = pair.setdefault(limit, {})
            _fill_sizes(sizes, base[limit], f"{path}/minmax/{index}/{limit}", report)


def _fill_sizes(sizes: JsonObject, base: Mapping[str, object], path: str, report: Report) -> None:
    for key in ipolicy.SPEC_KEYS:
        if key not in sizes:
            sizes[key] = base[key]
            report.added(f"{path}/{key}", base[key])
    for key in [key for key in sizes if key not in ipolicy.SPEC_KEYS]:
        del sizes[key]
        report.note_unknown(f"{path}/{key}")
