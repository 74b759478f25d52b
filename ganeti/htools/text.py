"""The text format of clusters, which all programs read and write (``-t``, ``--save``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ganeti import errors
from ganeti.placement.facts import BUILTIN_POLICY, Cluster, Group, Instance, Node, Policy, Spec

T = TypeVar("T")


class TextError(errors.GenericError):
    """A text file breaks the format; the text names file, line and field."""


class _Line:
    """One line of a section, whose fields are read by position."""

    def __init__(self, where: str, text: str, least: int, most: int) -> None:
        self.where = where
        self.fields = text.split("|")
        if not least <= len(self.fields) <= most:
            raise TextError(
                f"{where}: {len(self.fields)} fields, must have {least}"
                + (f" to {most}" if most != least else "")
            )

    def text(self, index: int, name: str, default: str | None = None) -> str:
        if index >= len(self.fields):
            return default or ""
        value = self.fields[index]
        if not value and default is None:
            raise TextError(f"{self.where}, field {index + 1} ({name}): is empty")
        return value

    def number(self, index: int, name: str, default: int | None = None, least: int = 0) -> int:
        if index >= len(self.fields) and default is not None:
            return default
        value = self._convert(index, name, lambda text: int(float(text)), "a number")
        if value < least:
            raise TextError(f"{self.where}, field {index + 1} ({name}): {value} is below {least}")
        return value

    def read_real(self, index: int, name: str, default: float) -> float:
        if index >= len(self.fields):
            return default
        value = self._convert(index, name, float, "a number")
        if not 0 <= value < float("inf"):
            raise TextError(f"{self.where}, field {index + 1} ({name}): {value} is not an amount")
        return value

    def choice(self, index: int, name: str, values: str, default: str | None = None) -> str:
        if index >= len(self.fields) and default is not None:
            return default
        value = self.fields[index]
        if value not in values or len(value) != 1:
            known = ", ".join(values)
            raise TextError(
                f"{self.where}, field {index + 1} ({name}): invalid value '{value}'; "
                f"choose from {known}"
            )
        return value

    def names(self, index: int) -> tuple[str, ...]:
        if index >= len(self.fields):
            return ()
        return tuple(part for part in self.fields[index].split(",") if part)

    def _convert(self, index: int, name: str, how: Callable[[str], T], what: str) -> T:
        value = self.fields[index]
        try:
            return how(value)
        except (ValueError, OverflowError) as err:
            raise TextError(
                f"{self.where}, field {index + 1} ({name}): '{value}' is not {what}"
            ) from err


def load(text: str, source: str) -> Cluster:
    """Read a cluster; ``source`` is what errors call the text. Raises :class:`TextError`."""
    sections: list[list[tuple[int, str]]] = [[]]
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            sections[-1].append((number, line))
        else:
            sections.append([])
    if len(sections) < 3:
        raise TextError(
            f"{source}: {len(sections)} sections; must have groups, nodes and instances, "
            "with an empty line between them"
        )
    sections += [[]] * (5 - len(sections))

    def lines(index: int, least: int, most: int) -> list[_Line]:
        return [_Line(f"{source}, line {n}", text, least, most) for n, text in sections[index]]

    groups = [_group(line) for line in lines(0, 3, 5)]
    nodes = [_node(line, {group.uuid for group in groups}) for line in lines(1, 9, 15)]
    _check_unique(source, "node", [node.name for node in nodes])
    names = {node.name for node in nodes}
    instances = [_instance(line, names) for line in lines(2, 10, 13)]
    _check_unique(source, "instance", [item.name for item in instances])
    policies = dict(_policy(line) for line in lines(4, 6, 6))
    return Cluster(
        groups=tuple(groups),
        nodes=tuple(nodes),
        instances=tuple(instances),
        tags=tuple(line.strip() for _, line in sections[3]),
        policy=policies.pop("", BUILTIN_POLICY),
        policies=policies,
    )


def _check_unique(source: str, kind: str, names: Sequence[str]) -> None:
    seen = set()
    for name in names:
        if name in seen:
            raise TextError(f"{source}: {kind} '{name}' is there twice")
        seen.add(name)


ALLOC_POLICIES = ("preferred", "last_resort", "unallocable")


def _group(line: _Line) -> Group:
    policy = line.text(2, "allocation policy")
    if policy not in ALLOC_POLICIES:
        raise TextError(
            f"{line.where}, field 3 (allocation policy): invalid value '{policy}'; "
            f"choose from {', '.join(ALLOC_POLICIES)}"
        )
    return Group(line.text(0, "name"), line.text(1, "UUID"), policy, line.names(3), line.names(4))


def _node(line: _Line, groups: set[str]) -> Node:
    name, group = line.text(0, "name"), line.text(8, "group")
    if group not in groups:
        raise TextError(f"{line.where}, field 9 (group): there is no group '{group}'")
    status = line.choice(7, "status", "NYM")
    if "?" in line.fields[1:7]:
        return Node(name, group, 0, 0, 0, 0, 0, 0, offline=True, tags=line.names(10))
    return Node(
        name=name,
        group=group,
        memory=line.number(1, "total memory"),
        node_memory=line.number(2, "memory of the node"),
        free_memory=line.number(3, "free memory", least=-(1 << 62)),
        disk=line.number(4, "total disk"),
        free_disk=line.number(5, "free disk", least=-(1 << 62)),
        cpus=line.number(6, "processors"),
        offline=status == "Y",
        master=status == "M",
        spindles=line.number(9, "spindles", 1),
        tags=line.names(10),
        exclusive_storage=line.choice(11, "exclusive storage", "YN", "N") == "Y",
        free_spindles=line.number(12, "free spindles", 0),
        node_cpus=line.number(13, "processors of the node", 1),
        cpu_speed=line.read_real(14, "processor speed", 1.0),
    )


def _instance(line: _Line, nodes: set[str]) -> Instance:
    primary, secondary = line.text(6, "primary node", ""), line.text(7, "secondary node", "")
    forthcoming = line.choice(12, "forthcoming", "YN", "N") == "Y"
    if not primary and not forthcoming:
        raise TextError(f"{line.where}, field 7 (primary node): is empty")
    for index, title, node in ((7, "primary node", primary), (8, "secondary node", secondary)):
        if node and node not in nodes:
            raise TextError(f"{line.where}, field {index} ({title}): there is no node '{node}'")
    if primary and primary == secondary:
        raise TextError(
            f"{line.where}, field 8 (secondary node): '{secondary}' is the primary node too"
        )
    known = len(line.fields) > 11 and line.fields[11] not in ("-", "")
    return Instance(
        name=line.text(0, "name"),
        memory=line.number(1, "memory"),
        disk=line.number(2, "disk"),
        vcpus=line.number(3, "virtual processors"),
        status=line.text(4, "status"),
        auto_balance=line.choice(5, "auto_balance", "YN") == "Y",
        primary=primary,
        secondary=secondary,
        template=line.text(8, "disk template"),
        tags=line.names(9),
        spindle_use=line.number(10, "spindle use", 1),
        spindles=line.number(11, "spindles") if known else None,
        forthcoming=forthcoming,
    )


def _spec(line: _Line, text: str, index: int, name: str) -> Spec:
    try:
        memory, cpus, disk, disks, nics, spindles = (int(part) for part in text.split(","))
    except ValueError as err:
        raise TextError(
            f"{line.where}, field {index + 1} ({name}): '{text}' is not a size; "
            "must be six numbers with commas between them"
        ) from err
    return Spec(memory, cpus, disk, disks, nics, spindles)


def _policy(line: _Line) -> tuple[str, Policy]:
    bounds = [_spec(line, text, 2, "bounds") for text in line.text(2, "bounds").split(";") if text]
    if len(bounds) % 2:
        raise TextError(f"{line.where}, field 3 (bounds): a smallest size has no largest size")
    policy = Policy(
        standard=_spec(line, line.text(1, "standard size"), 1, "standard size"),
        bounds=tuple(zip(bounds[::2], bounds[1::2])),
        templates=line.names(3),
        vcpu_ratio=line.read_real(4, "processor ratio", 4.0),
        spindle_ratio=line.read_real(5, "spindle ratio", 32.0),
    )
    return line.fields[0], policy


def dump(cluster: Cluster) -> str:
    """Write a cluster in the text format; :func:`load` gives it back."""
    yes = {True: "Y", False: "N"}
    sections: list[list[str]] = [[], [], [], list(cluster.tags), []]
    for group in cluster.groups:
        fields = [group.name, group.uuid, group.alloc_policy]
        fields += [",".join(group.tags), ",".join(group.networks)]
        sections[0].append("|".join(fields))
    for node in cluster.nodes:
        status = "Y" if node.offline else "M" if node.master else "N"
        sections[1].append(
            f"{node.name}|{node.memory}|{node.node_memory}|{node.free_memory}|{node.disk}|"
            f"{node.free_disk}|{node.cpus}|{status}|{node.group}|{node.spindles}|"
            f"{','.join(node.tags)}|{yes[node.exclusive_storage]}|{node.free_spindles}|"
            f"{node.node_cpus}|{node.cpu_speed}"
        )
    for item in cluster.instances:
        spindles = "-" if item.spindles is None else str(item.spindles)
        sections[2].append(
            f"{item.name}|{item.memory}|{item.disk}|{item.vcpus}|{item.status}|"
            f"{yes[item.auto_balance]}|{item.primary}|{item.secondary}|{item.template}|"
            f"{','.join(item.tags)}|{item.spindle_use}|{spindles}|{yes[item.forthcoming]}"
        )
    sections[4].append(_policy_line("", cluster.policy))
    sections[4] += [
        _policy_line(group.name, cluster.policies[group.name])
        for group in cluster.groups
        if group.name in cluster.policies
    ]
    return "\n".join("".join(f"{line}\n" for line in section) for section in sections)


def _policy_line(owner: str, policy: Policy) -> str:
    def spec(value: Spec) -> str:
        return (
            f"{value.memory},{value.cpus},{value.disk},{value.disk_count},"
            f"{value.nics},{value.spindles}"
        )

    bounds = ";".join(spec(size) for pair in policy.bounds for size in pair)
    return (
        f"{owner}|{spec(policy.standard)}|{bounds}|{','.join(policy.templates)}|"
        f"{policy.vcpu_ratio}|{policy.spindle_ratio}"
    )
