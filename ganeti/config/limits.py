"""Requests that a user with limits to a part of the cluster may make. Pure.

The objects that an opcode names must be in the limits, and of its parameters only those pass that
are marked on their definition (``model/marks``) or have their default. So a new opcode, a new
parameter and a new key of a disk are refused until somebody marks them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ganeti import errors
from ganeti.base import typed
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model import marks, params
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.ids import DiskUuid, GroupUuid
from ganeti.model.instance import Instance
from ganeti.model.limits import Limits
from ganeti.model.marks import Mark
from ganeti.model.params import BackendParams
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.devices import Change, DiskChange, DiskKeys, DiskParams, DiskRecreation
from ganeti.opcodes.disk import OpDiskCreate, OpDiskDetach
from ganeti.opcodes.enums import DdmFull, InstCreateMode
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.opcodes.tags import OpTagsDel, OpTagsSet

_KINDS = {Mark.INSTANCE: "instance", Mark.NODE: "node", Mark.GROUP: "group", Mark.DISK: "disk"}
#: Keys by which a disk is named that is attached.
_NAMES_OF_DISK = ("uuid", "name")


def check(config: Config, limits: Limits, op: OpCode) -> None:
    """Refuse what is outside of the limits.

    Raises:
        AccessError: an object that is not in them, or a parameter that only the administrator of
            the cluster may set.
    """
    _Check(config, limits).opcode(op)


class Scope:
    """The objects in somebody's limits, in one state of the configuration."""

    def __init__(self, config: Config, limits: Limits) -> None:
        self._config = config
        self._limits = limits

    def has_instance(self, instance: Instance) -> bool:
        """An instance counts for the group of its primary node."""
        node = self._config.nodes.get(instance.primary_node)
        return self._fits(None if node is None else node.group, instance.tags)

    def has_disk(self, disk: Disk) -> bool:
        """A disk counts for its instance; a detached one for itself."""
        owner = self._config.owner(disk.uuid)
        if owner is not None:
            return self.has_instance(owner)
        nodes = self._config.nodes
        groups = {nodes[uuid].group for uuid in disk.nodes if uuid in nodes}
        return self._fits(groups.pop() if len(groups) == 1 else None, disk.tags)

    def _fits(self, group: GroupUuid | None, tags: Iterable[str]) -> bool:
        limits = self._limits
        name = None if group is None else self._config.groups[group].name
        return limits.group in (None, name) and (limits.tag is None or limits.tag in tags)

    def has(self, kind: Mark, word: str) -> bool:
        """Whether a word names an object of a kind that is in the limits."""
        config, limits = self._config, self._limits
        try:
            if kind is Mark.INSTANCE:
                return self.has_instance(config.instance(word))
            if kind is Mark.NODE:
                node = config.node(word)
                return limits.group in (None, config.groups[node.group].name)
            if kind is Mark.GROUP:
                return limits.group in (None, config.group(word).name)
        except errors.OpPrereqError:
            return False
        # By uuid alone: two disks may have the same name, of which one is somebody else's.
        disk = config.disks.get(DiskUuid(word))
        return disk is not None and self.has_disk(disk)


class _Check:
    """The check of one opcode."""

    def __init__(self, config: Config, limits: Limits) -> None:
        self._config = config
        self._limits = limits
        self._scope = Scope(config, limits)

    def _refusal(self, what: str) -> errors.AccessError:
        return errors.AccessError(f"{self._limits} and may not {what}")

    def opcode(self, op: OpCode) -> None:
        kind = op.within
        # A tag is of instances and disks; nodes and groups have those of everybody.
        if kind is None or (self._limits.tag is not None and kind in (Mark.NODE, Mark.GROUP)):
            raise self._refusal(f"do {op.op_id}")
        named = {mark for info in _find_given_fields(op) for mark in self._parameter(op, info)}
        if isinstance(op, OpInstanceCreate):
            self._creation(op)
        elif isinstance(op, OpDiskCreate):
            self._own_tag(op.tags)
            if self._limits.group is not None and Mark.NODE not in named:
                raise self._refusal("create disks without naming their nodes")
        elif isinstance(op, OpTagsSet | OpTagsDel):
            self._tags(op)
        elif kind not in named:
            raise self._refusal(f"do {op.op_id} without naming one {_KINDS[kind]}")
        if isinstance(op, OpDiskDetach):
            self._keeps_tag(DiskUuid(op.disk_name))

    # parameters --------------------------------------------------------------------------

    def _parameter(self, op: OpCode, info: msgspec.structs.FieldInfo) -> frozenset[Mark]:
        """Check one parameter that is given; its marks."""
        found, value = marks.find_marks(info.type), getattr(op, info.name)
        if Mark.SAFE in found:
            self._check_parts(value, info.name)
        elif Mark.HVPARAMS in found:
            known = HYPERVISORS.get(self._hypervisor(op)).params
            self._keys(value, marks.names(known, Mark.SAFE), "hypervisor parameter")
            # What is safe is so for values of its type.
            params.check(known, params.drop_defaults(value), "hypervisor")
        elif Mark.BEPARAMS in found:
            known_here = marks.names(BackendParams, Mark.SAFE)
            self._keys(params.expand_backend(value), known_here, "backend parameter")
        elif found & set(_KINDS):
            for kind in found & set(_KINDS):
                self._check_names(kind, [value] if isinstance(value, str) else value)
        else:
            raise self._refusal(f"set the parameter '{info.name}'")
        return found

    def _hypervisor(self, op: OpCode) -> str:
        name = getattr(op, "instance_name", "") or getattr(op, "instance_uuid", None)
        found = self._config.find_instance(name) if name else None
        # The answer must not tell an instance of somebody else from one that does not exist.
        if found is None or found.hypervisor is None or not self._scope.has_instance(found):
            return str(self._config.cluster.enabled_hypervisors[0])
        return str(found.hypervisor)

    def _check_names(self, kind: Mark, words: Iterable[str]) -> None:
        for word in words:
            if not self._scope.has(kind, word):
                raise self._refusal(f"do anything with {_KINDS[kind]} '{word}'")

    def _keys(self, given: Mapping[str, object], allowed: frozenset[str], what: str) -> None:
        for key in given:
            if key not in allowed:
                raise self._refusal(f"set the {what} '{key}'")

    def _check_parts(self, value: object, where: str) -> None:
        """Check the parts of a value that is safe as a whole."""
        if isinstance(value, list):
            for item in value:
                self._check_parts(item, where)
        elif isinstance(value, DiskChange) and value.action is DdmFull.ATTACH:
            self._refuse_foreign_disk(value.params)
        elif isinstance(value, DiskChange) and value.action is DdmFull.DETACH:
            self._check_detached(value.item)
            self._check_parts(value.params, where)
        elif isinstance(value, Change | DiskRecreation):
            self._check_parts(value.params, where)
        elif isinstance(value, DiskParams):
            self._keys(value.to_wire(), marks.names(DiskKeys, Mark.SAFE), "disk parameter")
        elif isinstance(value, msgspec.Struct):
            given = [info.name for info in _find_given_fields(value)]
            self._keys(dict.fromkeys(given), marks.names(type(value), Mark.SAFE), f"key in {where}")
        elif isinstance(value, dict):
            raise self._refusal(f"set the parameter '{where}'")

    # what is special ---------------------------------------------------------------------

    def _refuse_foreign_disk(self, disk: DiskParams) -> None:
        """Refuse to take a disk of somebody else into an instance."""
        given = disk.to_wire()
        words = [given[key] for key in _NAMES_OF_DISK if key in given]
        self._keys(given, frozenset(_NAMES_OF_DISK), "disk parameter")
        if not words or not all(isinstance(word, str) for word in words):
            raise self._refusal("attach a disk without its uuid")
        self._check_names(Mark.DISK, words)

    def _check_detached(self, item: int | str) -> None:
        if self._limits.tag is not None:
            if item not in self._config.disks:
                raise self._refusal("detach a disk that is not named by its uuid")
            self._keeps_tag(DiskUuid(str(item)))

    def _keeps_tag(self, uuid: DiskUuid) -> None:
        """Refuse to detach a disk that nobody would find again."""
        tag = self._limits.tag
        if tag is not None and tag not in self._config.disks[uuid].tags:
            raise self._refusal(f"detach a disk that does not have the tag '{tag}' itself")

    def _own_tag(self, tags: Iterable[str]) -> None:
        tag = self._limits.tag
        if tag is not None and tag not in tags:
            raise self._refusal(f"create anything without the tag '{tag}'")

    def _creation(self, op: OpInstanceCreate) -> None:
        if op.mode is not InstCreateMode.CREATE:
            raise self._refusal("import instances")
        if op.commit:
            self._check_names(Mark.INSTANCE, [op.instance_name])
        if op.tags or not op.commit:
            self._own_tag(op.tags)
        if op.commit:
            return
        place = op.pnode or op.pnode_uuid or (None if op.forthcoming else op.group_name)
        if self._limits.group is not None and not place:
            raise self._refusal("create instances without naming this group or one of its nodes")

    def _tags(self, op: OpTagsSet | OpTagsDel) -> None:
        kinds = {name: mark for mark, name in _KINDS.items() if mark is not Mark.GROUP}
        kind = kinds.get(str(op.kind))
        if kind is None or (kind is Mark.NODE and self._limits.tag is not None):
            raise self._refusal(f"change tags of the {op.kind}")
        self._check_names(kind, [op.name or ""])
        if isinstance(op, OpTagsDel) and self._limits.tag in op.tags:
            raise self._refusal(f"remove the tag '{self._limits.tag}'")


def _find_given_fields(value: msgspec.Struct) -> list[msgspec.structs.FieldInfo]:
    """The fields that do not have their default, or are required."""
    return [
        info
        for info in typed.fields(type(value))
        if info.required or getattr(value, info.name) != _default(info)
    ]


def _default(info: msgspec.structs.FieldInfo) -> object:
    if info.default_factory is not msgspec.NODEFAULT:
        return info.default_factory()
    return info.default
