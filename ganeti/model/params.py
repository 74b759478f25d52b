"""Parameter sets that are not a driver's: types, defaults, and the one order of inheritance.

Builtin defaults are written into the cluster object when the cluster is made, so filling starts
at the cluster. Hypervisor and disk parameters belong to their drivers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Annotated

import msgspec
from msgspec import Meta

from ganeti import errors
from ganeti.base import typed, units
from ganeti.base.json_types import JsonObject
from ganeti.base.text import nearest
from ganeti.base.typed import doc
from ganeti.model import marks
from ganeti.model.enums import HaPolicy
from ganeti.model.marks import Mark

#: Value that takes a parameter back to what it inherits.
VALUE_DEFAULT = "default"
VALUE_NONE = "none"
VALUE_AUTO = "auto"
VALUE_GENERATE = "generate"
#: IP address of a NIC: one that is free in its network.
VALUE_POOL = "pool"

Mebibytes = Annotated[int, Meta(ge=0, description="Size in MiB")]


class BackendParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Backend parameters: resources of an instance, whatever its hypervisor."""

    always_failover: Annotated[
        bool,
        doc("Whether the instance is moved by failover even when it could be migrated"),
        Mark.SAFE,
    ] = False
    auto_balance: Annotated[bool, doc("Whether balancing may move the instance"), Mark.SAFE] = True
    ha: Annotated[
        HaPolicy, doc("What happens by itself when the node of the instance dies"), Mark.SAFE
    ] = HaPolicy.TAGS
    ha_attempts: Annotated[
        int,
        Meta(ge=1, le=100, description="How often a failover is tried after the node died"),
        Mark.SAFE,
    ] = 3
    maxmem: Annotated[Mebibytes, doc("Memory that the instance gets at most"), Mark.SAFE] = 128
    minmem: Annotated[Mebibytes, doc("Memory that the instance gets at least"), Mark.SAFE] = 128
    spindle_use: Annotated[
        int, Meta(ge=0, description="Share of a spindle that the instance needs"), Mark.SAFE
    ] = 1
    vcpus: Annotated[int, Meta(ge=1, description="Number of virtual processors"), Mark.SAFE] = 1


class NicParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    link: str = "xen-br0"
    mode: str = "bridged"
    vlan: str = ""


class NodeParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    cpu_speed: float = 1.0
    exclusive_storage: bool = False
    fence_agent: Annotated[
        str,
        Meta(pattern="^(fence_[a-z0-9_]{1,50})?\\Z", description="the name of a fence agent"),
    ] = ""
    oob_program: str = ""
    ovs: bool = False
    ovs_link: str | None = ""
    ovs_name: str | None = "switch1"
    spindle_count: int = 1
    ssh_port: Annotated[int, Meta(ge=1, le=65535)] = 22
    watchdog: Annotated[
        str, Meta(pattern="^(/dev/[A-Za-z0-9/_-]{1,100})?\\Z", description="a file below /dev")
    ] = ""
    witness: bool = False


#: Backend parameters that a node group can have: what happens when a node dies.
GROUP_BACKEND_PARAMS = ("ha", "ha_attempts")

#: Node parameters that cannot differ between the nodes of a group.
GLOBAL_NODE_PARAMS = frozenset({"exclusive_storage"})

#: Parameters that are sizes: text with a unit is accepted.
SIZE_PARAMS = frozenset({"maxmem", "minmem", "memory"})

#: Parameters that older versions have, and the one value that is left.
RETIRED = {"xen_cmd": "xl"}


def fill(*levels: Mapping[str, object]) -> JsonObject:
    """One parameter set from the most general to the most special level; later levels win."""
    result: JsonObject = {}
    for level in levels:
        result.update(level)
    return result


def drop_retired(values: Mapping[str, object]) -> JsonObject:
    """The values without parameters of older versions that ask for what is always done."""
    return {key: value for key, value in values.items() if RETIRED.get(key, ...) != value}


def drop_defaults(values: Mapping[str, object]) -> JsonObject:
    """The values of a change without those that ask for the inherited value."""
    return {key: value for key, value in values.items() if value != VALUE_DEFAULT}


def expand_backend(values: Mapping[str, object]) -> JsonObject:
    """Old spelling ``memory`` becomes ``minmem`` and ``maxmem``, where these are not given."""
    result = dict(values)
    if "memory" in result:
        memory = result.pop("memory")
        result.setdefault("maxmem", memory)
        result.setdefault("minmem", memory)
    return result


def refuse_unknown(schema: type[msgspec.Struct], names: Iterable[str], what: str) -> None:
    """Refuse names that are not parameters of a set.

    Raises:
        ParameterError: it names the first of them and those to choose from.
    """
    known = [info.name for info in typed.fields(schema)]
    for name in names:
        if name not in known:
            choices = [*known, "memory"] if "maxmem" in known else known
            raise errors.ParameterError(
                f"unknown {what} parameter '{name}'{nearest(name, choices)};"
                f" choose from {', '.join(sorted(choices))}"
            )


def check(
    schema: type[msgspec.Struct], values: Mapping[str, object], what: str, *, partial: bool = True
) -> JsonObject:
    """Typed values of a parameter set that may come as text from a command line.

    With ``partial`` only the given keys are returned, else the complete set with defaults.

    Raises:
        ParameterError: unknown name, or a value of the wrong type; the text names it.
    """
    values = drop_retired(values)
    refuse_unknown(schema, values, what)
    converted = _convert(schema, values, what)
    full: JsonObject = msgspec.structs.asdict(converted)
    return {key: full[key] for key in values} if partial else full


def _convert(
    schema: type[msgspec.Struct], values: Mapping[str, object], what: str
) -> msgspec.Struct:
    prepared = {
        key: _size(key, value, what) if key in SIZE_PARAMS and isinstance(value, str) else value
        for key, value in values.items()
    }
    for info in typed.fields(schema):
        value = prepared.get(info.name)
        if marks.plain(info.type) is bool and isinstance(value, str):
            prepared[info.name] = boolean(value, f"{what} parameter '{info.name}'")
    try:
        return typed.convert(prepared, schema, strict=False)
    except msgspec.ValidationError as err:
        raise errors.ParameterError(_explain(schema, prepared, what, str(err))) from err


def _explain(
    schema: type[msgspec.Struct], values: Mapping[str, object], what: str, text: str
) -> str:
    """The error of a value, in words of users where its type has them."""
    name = text.rpartition(" - at `$.")[2].rstrip("`")
    kind = next((info.type for info in typed.fields(schema) if info.name == name), None)
    plain = marks.plain(kind)
    if isinstance(plain, type) and issubclass(plain, Enum):
        choices = ", ".join(str(choice) for choice in plain)
        return (
            f"invalid value '{values[name]}' for {what} parameter '{name}'; choose from {choices}"
        )
    for mark in getattr(kind, "__metadata__", ()):
        if isinstance(mark, Meta) and mark.pattern and mark.description:
            return f"{what} parameter '{name}' must be {mark.description}, not '{values[name]}'"
    return f"{what} parameter: {text}"


def _size(name: str, value: str, what: str) -> int:
    try:
        return units.parse_size(value)
    except errors.UnitParseError as err:
        raise errors.ParameterError(f"{what} parameter '{name}': {errors.text(err)}") from err


def boolean(value: str, what: str) -> bool:
    """The truth value of a parameter that came as text; empty is false, as in Ganeti.

    Raises:
        ParameterError: neither ``true`` nor ``false``; ``what`` names the parameter.
    """
    found = {"true": True, "false": False, "": False}.get(value.lower())
    if found is None:
        raise errors.ParameterError(f"{what} must be true or false, not '{value}'")
    return found
