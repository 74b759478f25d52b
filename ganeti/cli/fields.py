"""Options that follow from the fields of an opcode, and what differs from the rule.

A field ``early_release`` is the option ``--early-release``; its type says how a value is read, its
description is the help. A field that is true by default is switched off: ``--no-wait-for-sync``.
Names of fields that say otherwise are in ``NAMES``; a command adds its own with ``override``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ganeti.base.record import Record
from ganeti.cli import values
from ganeti.cli.option import Option

if TYPE_CHECKING:
    from ganeti.cli.derive import Field


class Override(Record):
    """Parts of an option that do not follow from its field."""

    flags: tuple[str, ...] = ()
    kind: str = ""
    #: whether the option may be given several times, so that the values are a list; None: by kind
    append: bool | None = None
    metavar: str = ""
    help: str = ""
    choices: tuple[str, ...] = ()
    default: Any = None
    #: makes the parameter of the opcode from the value
    take: Callable[[Any], Any] | None = None
    #: value of the field -> flags and help of a switch for it, in place of an option with a value
    each: Mapping[Any, tuple[str, ...]] | None = None


def override(*flags: str, **rest: Any) -> Override:
    """An exception for one field: other flags, another kind of value, ..."""
    return Override(flags, **rest)


#: Fields whose option is not called like them, or is read in another way.
NAMES: Mapping[str, Override] = {
    "beparams": override("-B", "--backend-parameters"),
    "default_iallocator": override("-I", "--default-iallocator"),
    "candidate_pool_size": override("-C", "--candidate-pool-size"),
    "disk_state": override(
        kind="identkeyval",
        metavar="plain/<volume-group>:<key>=<value>,...",
        take=values.disk_state,
    ),
    "disk_template": override("-t", "--disk-template"),
    "diskparams": override("-D", "--disk-parameters", metavar="<template>:<key>=<value>,..."),
    "disks": override(
        "--disk",
        kind="identkeyval",
        metavar="<index>:<key>=<value>,...",
        help="A disk, as in 0:size=10G",
        take=list,
    ),
    "drbd_helper": override("--drbd-usermode-helper"),
    "enabled_user_shutdown": override("--user-shutdown"),
    "ext_params": override("-e", "--ext-params"),
    "force": override("-f", "--force"),
    "hv_state": override(
        "--hypervisor-state", kind="identkeyval", metavar="<hypervisor>:<key>=<value>,..."
    ),
    "hvparams": override("-H", "--hypervisor-parameters"),
    "iallocator": override("-I", "--iallocator"),
    "ignore_offline_nodes": override("--ignore-offline"),
    "instance_communication": override("-c", "--communication", kind="bool"),
    "mac_prefix": override("-m", "--mac-prefix"),
    "ndparams": override("--node-parameters"),
    "nicparams": override("-N", "--nic-parameters", kind="keyval"),
    "nics": override(
        "--net",
        kind="identkeyval",
        metavar="<index>:<key>=<value>,...",
        help="A NIC, as in 0:link=br0,mac=auto",
        take=list,
    ),
    "os_name": override("-o", "--os-type"),
    "os_type": override("-o", "--os-type"),
    "osparams": override("-O", "--os-parameters"),
    "osparams_private": override("--os-parameters-private"),
    "osparams_secret": override("--os-parameters-secret"),
    "remote_node": override("-n", "--new-secondary"),
    "room": override("--room", kind="unit"),
    "secondary_ip": override("-s", "--secondary-ip", metavar="<address>"),
    "allow_runtime_changes": override("--no-runtime-changes"),
    "tags": override("--tags", kind="words", metavar="<tag>,..."),
    "target_groups": override("--to", append=True, metavar="<group>"),
    "target_node": override("-n", "--target-node"),
}
#: The instance policy has options for its parts (``cluster.options``).
_POLICY = "ipolicy"


def find_fields(op_id: str) -> tuple[str, tuple[Field, ...]]:
    """Description and fields of an opcode, or of another request (``derive.REQUESTS``).

    From the table that tools/make-docs keeps, because importing opcodes takes as long as all else
    that a command does before its first request; an opcode that is not there yet is imported.
    """
    from ganeti.cli import generated

    found = generated.OPCODES.get(op_id)
    if found is None:
        from ganeti.cli import derive

        found = derive.facts(op_id)
    return found


def options(
    op_id: str,
    *,
    without: Collection[str],
    only: Collection[str] | None,
    names: Mapping[str, Override],
    new: bool,
) -> Iterator[Option]:
    """Options for the fields of an opcode, in their order.

    ``new`` is for what is created: a key taken back to its default is left out then, elsewhere
    it is sent as the word ``default``.
    """
    for field in find_fields(op_id)[1]:
        name = field[0]
        if name in without or name == _POLICY or (only is not None and name not in only):
            continue
        exception = names.get(name) or NAMES.get(name) or Override()
        if exception.each is not None:
            yield from _switches(field, exception.each)
            continue
        option = _option(field, exception, new=new)
        if option is not None:
            yield option


def _switches(field: Field, each: Mapping[object, tuple[str, ...]]) -> Iterator[Option]:
    """A switch for each of some values; of a field that is not a list only one may be given."""
    name, kind, _default, choices, _doc = field
    take = None
    if kind != "list":
        take = partial(
            values.value_of_switches, names={value: row[-2] for value, row in each.items()}
        )
    for value, (*flags, text) in each.items():
        if value not in (choices or (False, True)):
            raise ValueError(f"{name} cannot be {value!r}")
        yield Option(tuple(flags), name, text, action="append", default=[], const=value, take=take)


def _option(field: Field, exception: Override, *, new: bool) -> Option | None:
    """None for a field that no option can fill, and for the uuid beside a name."""
    name, kind, default, choices, doc = field
    kind = exception.kind or kind
    if not kind or name.endswith(("_uuid", "_uuids")):
        return None
    off = kind == "switch_off"
    flags = exception.flags or (_flag(f"no_{name}" if off else name),)
    if kind in ("switch", "switch_off"):
        text = exception.help or (f"Do not {doc[:1].lower()}{doc[1:]}" if off else doc)
        return Option(flags, name, text, default=off, const=not off)
    append = kind == "identkeyval" if exception.append is None else exception.append
    if append and kind == "list":
        kind = "choice" if choices else "string"
    elif kind != "choice":
        choices = ()
    if append:
        default = []
    elif kind == "keyval" or kind == "keyprivateval":
        default = {}
    elif exception.default is not None:
        default = exception.default
    return Option(
        flags,
        name,
        exception.help or doc,
        kind=kind,
        action="append" if append else "store",
        default=default,
        choices=exception.choices or choices,
        metavar=exception.metavar or _metavar(name, kind),
        take=exception.take or _take(kind, new=new),
    )


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _metavar(name: str, kind: str) -> str:
    if kind == "string":
        return f"<{name.replace('_', '-')}>"
    return "<seconds>" if kind == "int" and name.endswith("timeout") else ""


def _take(kind: str, *, new: bool) -> Callable[[Any], Any] | None:
    if kind in ("keyval", "keyprivateval"):
        return values.drop_resets if new else values.resets_as_default
    return values.index_by_name if kind == "identkeyval" else None
