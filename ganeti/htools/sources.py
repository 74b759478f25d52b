"""Sources from which a program reads its cluster, and options that change what was read."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from ganeti import errors
from ganeti.htools import luxi, mond, rapi, request, simulate, text
from ganeti.htools.options import UsageError, Values
from ganeti.placement import tags
from ganeti.placement.facts import Cluster, Instance, Load

#: Options that name a source, and their keys.
SOURCES = ("text_data", "luxi", "master", "ialloc_src", "simulate")
#: MiB that a KVM node needs itself, when nobody says otherwise.
KVM_NODE_MEMORY = 4096


class LoadError(errors.GenericError):
    """A cluster could not be read; the text says where."""


def read(values: Values) -> Cluster:
    """The cluster that the command line names, changed as it says."""
    chosen = [key for key in SOURCES if key in values]
    if not chosen:
        raise LoadError(
            "no cluster to read; give one of -t FILE, -L, -m ADDRESS, -I FILE, --simulate SPEC"
        )
    if len(chosen) > 1:
        raise UsageError("give only one of -t, -L, -m, -I and --simulate")
    return apply_options(_read(chosen[0], values), values)


def _read(source: str, values: Values) -> Cluster:
    node_memory = int(values.get("static_kvm_node_memory", KVM_NODE_MEMORY))
    if source == "text_data":
        return read_text(values.get("text_data"))
    if source == "simulate":
        return simulate.build(values.get("simulate"))
    if source == "luxi":
        return luxi.read(values.get("luxi"), node_memory)
    if source == "master":
        return rapi.read(rapi.Remote.from_values(values), node_memory)
    return request.cluster(request.parse(read_file(values.get("ialloc_src"))))


def read_file(name: str) -> str:
    """The text of a file; :class:`LoadError` when it cannot be read."""
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as err:
        reason = err.strerror if isinstance(err, OSError) else "is not UTF-8 text"
        raise LoadError(f"{name}: {reason}") from err


def read_text(name: str) -> Cluster:
    """The cluster of a text file."""
    return text.load(read_file(name), name)


def apply_options(cluster: Cluster, values: Values) -> Cluster:
    """The cluster with the nodes, tags and loads that the command line gives."""
    mond.check(values)
    known = {node.name for node in cluster.nodes}
    offline = {full_name(name, known, "node") for name in values.names("offline")}
    nodes = tuple(
        dataclasses.replace(node, offline=True) if node.name in offline else node
        for node in cluster.nodes
    )
    extra = tuple(tags.EXCLUSION + kind for kind in values.names("exclusion_tags"))
    instances = cluster.instances
    if "ignore_dynu" in values:
        nothing = Load(0.0, 0.0, 0.0, 0.0)
        instances = tuple(dataclasses.replace(item, load=nothing) for item in instances)
    elif "dynu_file" in values:
        instances = _read_loads(instances, values.get("dynu_file"))
    elif mond.is_wanted(values):
        name = values.get("mond_data")
        instances = mond.add_loads(
            dataclasses.replace(cluster, nodes=nodes), values, read_file(name) if name else None
        )
    return dataclasses.replace(cluster, nodes=nodes, instances=instances, tags=cluster.tags + extra)


def _read_loads(instances: tuple[Instance, ...], name: str) -> tuple[Instance, ...]:
    loads = {}
    known = {item.name for item in instances}
    for number, line in enumerate(read_file(name).splitlines(), 1):
        if not line.strip():
            continue
        fields = line.split()
        if len(fields) != 5:
            raise LoadError(f"{name}, line {number}: {len(fields)} fields, must have 5")
        try:
            load = Load(*(float(value) for value in fields[1:]))
        except ValueError as err:
            raise LoadError(f"{name}, line {number}: a load is not a number") from err
        if fields[0] not in known:
            raise LoadError(f"{name}, line {number}: there is no instance '{fields[0]}'")
        loads[fields[0]] = load
    return tuple(
        dataclasses.replace(item, load=loads.get(item.name, item.load)) for item in instances
    )


def full_name(name: str, known: set[str], kind: str) -> str:
    """The full name for a name or its first part; :class:`LoadError` when there is none."""
    if name in known:
        return name
    matches = [full for full in known if full.startswith(f"{name}.")]
    if len(matches) != 1:
        raise LoadError(f"there is no {kind} '{name}'")
    return matches[0]


def instance_names(values: Values, key: str, cluster: Cluster) -> frozenset[str] | None:
    """Full names of the instances of an option; None when it is not given."""
    if key not in values:
        return None
    known = {item.name for item in cluster.instances}
    return frozenset(full_name(name, known, "instance") for name in values.names(key))
