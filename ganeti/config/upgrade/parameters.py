"""Parameter sets: add parameters that the cluster does not have, drop unknown ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from ganeti import errors
from ganeti.base import typed
from ganeti.base.json_types import JsonObject
from ganeti.config.upgrade import shape
from ganeti.config.upgrade.report import Report
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model import params
from ganeti.model.params import BackendParams, NicParams, NodeParams
from ganeti.storage.registry import default_params

#: Hypervisor, parameter and value that is no more -> value that means the same.
_VALUES: Mapping[tuple[str, str, object], object] = {("kvm", "disk_discard", "default"): "ignore"}


def upgrade(raw: JsonObject, report: Report) -> None:
    """Go through all parameter sets of cluster, groups, nodes and instances."""
    for path, hypervisor, values in hypervisor_sets(raw):
        _hypervisor(hypervisor, values, path, report)
    _cluster(raw["cluster"], report)
    backend, nic, node = (_names(cls) for cls in (BackendParams, NicParams, NodeParams))
    for container in ("nodegroups", "nodes"):
        for key, obj in raw[container].items():
            path = f"{container}/{shape.label(obj, key)}"
            _drop_unknown(obj.get("ndparams", {}), node, f"{path}/ndparams", report)
            _disk(obj.get("diskparams", {}), f"{path}/diskparams", report)
            for network, values in obj.get("networks", {}).items():
                _drop_unknown(values, nic, f"{path}/networks/{network}", report)
                _fill(values, {"vlan": ""}, f"{path}/networks/{network}", report)
    for key, instance in raw["instances"].items():
        path = f"instances/{shape.label(instance, key)}"
        _backend(instance, "beparams", f"{path}/beparams", report)
        _drop_unknown(instance.get("beparams", {}), backend, f"{path}/beparams", report)
        for index, item in enumerate(instance.get("nics", [])):
            where = f"{path}/nics/{index}/nicparams"
            _drop_unknown(item.setdefault("nicparams", {}), nic, where, report)


def hypervisor_sets(raw: JsonObject) -> Iterator[tuple[str, str, JsonObject]]:
    """Path, hypervisor and values of all sets of hypervisor parameters."""
    cluster = raw["cluster"]
    for name, values in cluster.get("hvparams", {}).items():
        yield f"cluster/hvparams/{name}", name, values
    for os_name, sets in cluster.get("os_hvp", {}).items():
        for name, values in sets.items():
            yield f"cluster/os_hvp/{os_name}/{name}", name, values
    for key, instance in raw["instances"].items():
        path = f"instances/{shape.label(instance, key)}/hvparams"
        yield path, str(instance.get("hypervisor")), instance.get("hvparams", {})


def builtin(hypervisor: str) -> JsonObject:
    """Parameters of a hypervisor that nobody has set; none for one without a driver."""
    return _defaults(HYPERVISORS.get(hypervisor).params) if hypervisor in HYPERVISORS else {}


def _hypervisor(name: str, values: JsonObject, path: str, report: Report) -> None:
    for key in [key for key in values if key in params.RETIRED]:
        del values[key]
        report.note_drop(f"{path}/{key}", f"since 3.1 {params.RETIRED[key]} is the only tool")
    for key, value in values.items():
        new = _VALUES.get((name, key, value)) if isinstance(value, str) else None
        if new is not None:
            values[key] = new
            report.note_change(f"{path}/{key}", f"{value} is called {new}")
    if name in HYPERVISORS:
        _drop_unknown(values, _names(HYPERVISORS.get(name).params), path, report)


def _cluster(cluster: JsonObject, report: Report) -> None:
    hvparams = cluster.setdefault("hvparams", {})
    for name in HYPERVISORS.names():
        values = hvparams.setdefault(name, {})
        _fill(values, builtin(name), f"cluster/hvparams/{name}", report)
    for key, cls in (("beparams", BackendParams), ("nicparams", NicParams)):
        group = cluster.setdefault(key, {})
        values = group.setdefault(params.VALUE_DEFAULT, {})
        path = f"cluster/{key}/{params.VALUE_DEFAULT}"
        if cls is BackendParams:
            _backend(group, params.VALUE_DEFAULT, path, report)
            values = group[params.VALUE_DEFAULT]
        _drop_unknown(values, _names(cls), path, report)
        _fill(values, _defaults(cls), path, report)
    node = cluster.setdefault("ndparams", {})
    _drop_unknown(node, _names(NodeParams), "cluster/ndparams", report)
    _fill(node, _defaults(NodeParams), "cluster/ndparams", report)
    disk = cluster.setdefault("diskparams", {})
    _disk(disk, "cluster/diskparams", report)
    for template, values in default_params().items():
        _fill(disk.setdefault(template, {}), values, f"cluster/diskparams/{template}", report)


def _backend(holder: JsonObject, key: str, path: str, report: Report) -> None:
    """The former parameter ``memory`` becomes what it means now."""
    if "memory" in holder.get(key, {}):
        holder[key] = params.expand_backend(holder[key])
        report.note_change(f"{path}/memory", "minmem and maxmem")


def _disk(sets: Mapping[str, JsonObject], path: str, report: Report) -> None:
    builtin = default_params()
    for template, values in sets.items():
        known = builtin.get(template)
        if known is None:
            raise errors.ConfigurationError(f"{path}: unknown disk template '{template}'")
        _drop_unknown(values, known, f"{path}/{template}", report)


def _drop_unknown(values: object, known: Iterable[str], path: str, report: Report) -> None:
    if not isinstance(values, dict):
        raise errors.ConfigurationError(f"{path} must be an object")
    wanted = set(known)
    for key in [key for key in values if key not in wanted]:
        del values[key]
        report.note_unknown(f"{path}/{key}")


def _fill(values: JsonObject, defaults: Mapping[str, object], path: str, report: Report) -> None:
    for key, value in defaults.items():
        if key not in values:
            values[key] = value
            report.added(f"{path}/{key}", value)


def _names(cls: type[msgspec.Struct]) -> list[str]:
    return [info.name for info in typed.fields(cls)]


def _defaults(cls: type[msgspec.Struct]) -> JsonObject:
    found: JsonObject = msgspec.to_builtins(params.check(cls, {}, cls.__name__, partial=False))
    return found
