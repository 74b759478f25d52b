"""Reading what an allocator says. Pure.

An allocator is a foreign program: each answer is checked for its shape, and its nodes
against the configuration, before anything is done with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from ganeti import errors
from ganeti.base import jsonio, typed
from ganeti.base.json_types import JsonObject
from ganeti.model.config import Config
from ganeti.model.node import Node
from ganeti.opcodes import wire
from ganeti.opcodes.base import OpCode

T = TypeVar("T")

#: Opcodes that the moves of an allocator may consist of.
MOVES = frozenset(("OP_INSTANCE_FAILOVER", "OP_INSTANCE_MIGRATE", "OP_INSTANCE_REPLACE_DISKS"))


class Refused(msgspec.Struct, frozen=True):
    """Why an instance has no place; ``data`` only of the built-in allocator."""

    text: str
    data: JsonObject | None = None


class Moves(msgspec.Struct, frozen=True):
    """Answer to node-evacuate and change-group."""

    #: instance, group, nodes
    moved: list[tuple[str, str, list[str]]]
    #: instance, why
    failed: list[tuple[str, str | None]]
    jobs: list[list[OpCode]]


def result(name: str, text: str) -> object:
    """The result in an answer.

    Raises:
        OpPrereqError: the allocator found no place; with its reason.
        OpExecError: this is no answer.
    """
    try:
        answer = jsonio.loads(text)
    except errors.ParseError as err:
        raise _make_error(name, f"it is not JSON: {errors.text(err)}") from err
    if not isinstance(answer, dict):
        raise _make_error(name, "it is not an object")
    for key in ("success", "info"):
        if key not in answer:
            raise _make_error(name, f"the key '{key}' is missing")
    if not answer["success"]:
        raise errors.make_resources_error(f"allocator '{name}' found no place: {answer['info']}")
    for key in ("result", "nodes"):
        if key in answer:
            return answer[key]
    raise _make_error(name, "the key 'result' is missing")


def nodes(config: Config, name: str, found: object, count: int) -> list[Node]:
    """Exactly ``count`` different nodes of the cluster, the primary one first; OpExecError."""
    names = _convert(name, found, list[str])
    if len(names) != count or len(set(names)) != count:
        raise _make_error(name, f"{count} different node(s) were requested, but it names {names}")
    known = {node.name: node for node in config.nodes.values()}
    unknown = [item for item in names if item not in known]
    if unknown:
        raise _make_error(name, f"there is no node {', '.join(unknown)}")
    return [known[item] for item in names]


def places(
    config: Config, name: str, found: object, counts: dict[str, int]
) -> tuple[dict[str, list[Node]], dict[str, Refused]]:
    """Nodes by instance, and the instances without a place with the reason; OpExecError."""
    placed, failed = _convert(
        name, found, tuple[list[tuple[str, list[str]]], list[str | tuple[str, str | None]]]
    )
    missing = dict(
        (item, Refused("")) if isinstance(item, str) else (item[0], Refused(item[1] or ""))
        for item in failed
    )
    mismatched = sorted({item for item, _nodes in placed} ^ (set(counts) - set(missing)))
    if mismatched:
        raise _make_error(name, f"it says too much or nothing about {', '.join(mismatched)}")
    return {item: nodes(config, name, where, counts[item]) for item, where in placed}, missing


def moves(name: str, found: object) -> Moves:
    """Checked moves; OpExecError for anything else than opcodes that move instances."""
    moved, failed, jobs = _convert(
        name,
        found,
        tuple[
            list[tuple[str, str, list[str]]],
            list[tuple[str, str | None]],
            list[list[JsonObject]],
        ],
    )
    return Moves(moved, failed, [[_move(name, raw) for raw in job] for job in jobs])


def _move(name: str, raw: Mapping[str, object]) -> OpCode:
    if raw.get("OP_ID") not in MOVES:
        raise _make_error(name, f"{raw.get('OP_ID')!r} is not a way to move an instance")
    try:
        return wire.from_wire(raw)
    except errors.GanetiError as err:
        raise _make_error(name, errors.text(err)) from err


def _convert(name: str, found: object, shape: object) -> Any:
    try:
        return typed.convert(found, shape)
    except msgspec.ValidationError as err:
        raise _make_error(name, str(err)) from err


def _make_error(name: str, reason: str) -> errors.OpExecError:
    return errors.OpExecError(f"the answer of allocator '{name}' cannot be used: {reason}")
