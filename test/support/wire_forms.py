"""What goes over wires and into files, as data; and whether one version reads what another writes.

A form is a JSON value made of the declared types: ``"int"``, ``["list", form]`` and so on, or
``["object", name]``; ``objects`` has the members of each object by name. ``tools/record-forms``
records the forms of a release in ``test/recorded/releases/X.Y.json``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect as kinds

from ganeti.luxi import calls as luxi
from ganeti.model.config import ConfigData
from ganeti.model.job import JobRecord
from ganeti.opcodes import registry
from ganeti.rpc import wire

Form = Any
Record = dict[str, Any]


def describe() -> Record:
    """The forms of the code of this tree."""
    objects: Record = {}

    def form(kind: object) -> Form:
        return _form(msgspec.inspect.type_info(kind), objects)

    node_calls = {
        name: {
            "arguments": form(spec.args)[1],
            "needed": len(form(spec.args)[1]) - len(spec.defaults),
            "result": form(spec.result),
        }
        for name, spec in sorted(wire.specs().items())
    }
    methods = {
        name: [[arg.name, str(arg.type), arg.optional] for arg in method.args]
        for name, method in sorted(luxi.METHODS.items())
    }
    opcodes = {name: form(cls) for name, cls in sorted(registry.all_opcodes().items())}
    return {
        "node_calls": node_calls,
        "luxi": methods,
        "opcodes": opcodes,
        "config": form(ConfigData),
        "job": form(JobRecord),
        "objects": dict(sorted(objects.items())),
    }


def _form(kind: kinds.Type, objects: Record) -> Form:
    if isinstance(kind, kinds.Metadata):
        return _form(kind.type, objects)
    if isinstance(kind, kinds.StructType):
        name = f"{kind.cls.__module__.removeprefix('ganeti.')}.{kind.cls.__qualname__}"
        if name not in objects:
            objects[name] = {}
            objects[name] = {
                "strict": kind.forbid_unknown_fields,
                "array": kind.array_like,
                "members": {
                    each.encode_name: [each.required, _form(each.type, objects)]
                    for each in kind.fields
                },
                # What is left out while it has its default may be missing for a reader.
                "sparse": bool(kind.cls.__struct_config__.omit_defaults),
            }
        return ["object", name]
    if isinstance(kind, kinds.TupleType):
        return ["tuple", [_form(each, objects) for each in kind.item_types]]
    if isinstance(kind, kinds.UnionType):
        return ["union", [_form(each, objects) for each in kind.types]]
    if isinstance(kind, kinds.DictType):
        return ["map", _form(kind.value_type, objects)]
    if isinstance(kind, kinds.ListType | kinds.VarTupleType | kinds.FrozenSetType | kinds.SetType):
        return ["list", _form(kind.item_type, objects)]
    if isinstance(kind, kinds.EnumType):
        return ["enum", sorted((each.value for each in kind.cls), key=str)]
    if isinstance(kind, kinds.LiteralType):
        return ["enum", sorted(kind.values, key=str)]
    if isinstance(kind, kinds.CustomType):
        return ["custom", kind.cls.__name__]
    return type(kind).__name__.removesuffix("Type").lower()


def find_unreadable(
    reader: Form, read: Record, writer: Form, written: Record, *, drops: bool = False
) -> list[str]:
    """Why a reader may refuse what a writer writes, with the path of each; empty if it never does.

    ``read`` and ``written`` are the ``objects`` of the two. With ``drops`` the reader leaves out
    members that it does not know, whatever its class says.
    """
    seen: set[tuple[str, str]] = set()
    return list(_unreadable(reader, read, writer, written, "", seen, drops))


def _unreadable(
    reader: Form,
    read: Record,
    writer: Form,
    written: Record,
    path: str,
    seen: set[tuple[str, str]],
    drops: bool,
) -> Iterator[str]:
    def inner(left: Form, right: Form, place: str) -> Iterator[str]:
        return _unreadable(left, read, right, written, f"{path}/{place}", seen, drops)

    if reader == "any" or (isinstance(reader, str) and reader == writer):
        return
    if (reader, writer) == ("float", "int"):
        return
    if isinstance(writer, list) and writer[0] == "union":
        for number, each in enumerate(writer[1]):
            yield from inner(reader, each, f"<{number}>")
        return
    if isinstance(reader, list) and reader[0] == "union":
        tries = [list(inner(each, writer, "")) for each in reader[1]]
        if all(tries):
            yield min(tries, key=len)[0]
        return
    if isinstance(reader, str) or isinstance(writer, str):
        texts = isinstance(writer, list) and writer[0] in ("enum", "custom")
        if not (reader == "str" and texts):
            yield f"{path}: {_text(writer)} is written, {_text(reader)} is read"
        return
    if reader[0] != writer[0]:
        if (reader[0], writer[0]) == ("list", "tuple"):
            for number, each in enumerate(writer[1]):
                yield from inner(reader[1], each, str(number))
            return
        yield f"{path}: {_text(writer)} is written, {_text(reader)} is read"
    elif reader[0] in ("list", "map"):
        yield from inner(reader[1], writer[1], "*")
    elif reader[0] == "tuple":
        if len(reader[1]) != len(writer[1]):
            yield f"{path}: {len(writer[1])} items are written, {len(reader[1])} are read"
        for number, (left, right) in enumerate(zip(reader[1], writer[1])):
            yield from inner(left, right, str(number))
    elif reader[0] == "enum":
        new = [value for value in writer[1] if value not in reader[1]]
        if new:
            yield f"{path}: the values {new} are written and not known"
    elif reader[0] == "custom":
        if reader != writer:
            yield f"{path}: {_text(writer)} is written, {_text(reader)} is read"
    elif (reader[1], writer[1]) not in seen:
        seen.add((reader[1], writer[1]))
        yield from _objects(read[reader[1]], written[writer[1]], inner, path, drops)


def _objects(left: Record, right: Record, inner: Any, path: str, drops: bool) -> Iterator[str]:
    if left["array"] != right["array"]:
        yield f"{path}: an object here is a list there"
        return
    for name, (needed, form) in left["members"].items():
        if name in right["members"]:
            always, wrote = right["members"][name]
            if needed and right["sparse"] and not always:
                yield f"{path}/{name}: is needed, and left out while it has its default"
            yield from inner(form, wrote, name)
        elif needed:
            yield f"{path}/{name}: is needed, and not written"
    for name in right["members"] if left["strict"] and not drops else ():
        if name not in left["members"]:
            yield f"{path}/{name}: is written, and refused as unknown"


def _text(form: Form) -> str:
    return form if isinstance(form, str) else " ".join(map(str, form))[:60]


def find_call_problems(caller: Record, node: Record) -> list[str]:
    """Why a node may refuse a call of a master, or a master its answer, for calls that both know.

    The caller leaves out last arguments that are as by default, so further ones are no problem.
    """
    found = []
    for name, call in caller["node_calls"].items():
        other = node["node_calls"].get(name)
        if other is None:
            continue
        given, known = call["arguments"], other["arguments"]
        if call["needed"] > len(known):
            found.append(f"{name}: {call['needed']} arguments are given, {len(known)} are known")
        if len(given) < other["needed"]:
            found.append(f"{name}: {len(given)} arguments are given, {other['needed']} are needed")
        pairs = [
            (left, right, f"{number}") for number, (left, right) in enumerate(zip(known, given))
        ]
        for left, right, place in pairs:
            problems = find_unreadable(left, node["objects"], right, caller["objects"])
            found += [f"{name}, argument {place}{text}" for text in problems]
        problems = find_unreadable(
            call["result"], caller["objects"], other["result"], node["objects"]
        )
        found += [f"{name}, answer{text}" for text in problems]
    return found
