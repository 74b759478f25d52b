"""An option as data: flags, where its value goes, how its text is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ganeti.base.record import Record
from ganeti.cli import values

#: Headings in the help of a command.
GENERAL = "Options"
OUTPUT = "Output"
SELECTION = "Selection"
JOB = "Job"
OTHER = "Other"
GROUPS = (GENERAL, SELECTION, OUTPUT, JOB, OTHER)

#: Name of a kind of value and the function that reads it.
READERS: Mapping[str, Callable[[str], object]] = {
    "string": str,
    "choice": str,
    "int": values.integer,
    "float": values.number,
    "unit": values.unit,
    "bool": values.boolean,
    "list": values.split_list,
    "words": values.words,
    "nodes": values.nodes,
    "maybefloat": values.parse_float_or_default,
    "keyval": values.keyval,
    "keyprivateval": values.keyval,
    "identkeyval": values.identkeyval,
    "multilistidentkeyval": values.multilistidentkeyval,
}

_METAVARS = {
    "int": "<number>",
    "float": "<number>",
    "unit": "<size>",
    "bool": "yes|no",
    "list": "<item>,...",
    "words": "<word>,...",
    "nodes": "<primary>[:<secondary>]",
    "maybefloat": "<number>|default",
    "keyval": "<key>=<value>,...",
    "keyprivateval": "<key>=<value>,...",
    "identkeyval": "<name>:<key>=<value>,...",
    "multilistidentkeyval": "min:<key>=<value>,.../max:...[//...]",
}


class Option(Record):
    """One option of commands.

    ``kind`` names the reader of its value (see ``READERS``); empty for a switch. ``action`` is
    ``store`` (a value, or ``const`` for a switch), ``append``, ``count`` or ``ignore`` (accepted
    for old scripts, without effect).
    """

    flags: tuple[str, ...]
    dest: str
    help: str
    kind: str = ""
    action: str = "store"
    default: Any = None
    const: Any = True
    choices: tuple[str, ...] = ()
    metavar: str = ""
    group: str = GENERAL
    #: makes the parameter of the opcode from the value
    take: Callable[[Any], Any] | None = None

    @property
    def takes_value(self) -> bool:
        return bool(self.kind)

    @property
    def value_name(self) -> str:
        """The placeholder of the value in the help."""
        if self.metavar or not self.kind:
            return self.metavar
        return "|".join(self.choices) or _METAVARS.get(self.kind, f"<{self.dest}>")

    @property
    def hidden_value(self) -> bool:
        """Whether the value must not be logged."""
        return self.kind == "keyprivateval"


def switch(*flags: str, dest: str, help: str, group: str = GENERAL) -> Option:
    """An option without a value: false unless given."""
    return Option(flags, dest, help, default=False, group=group)


def switch_off(*flags: str, dest: str, help: str, group: str = GENERAL) -> Option:
    """An option without a value: true unless given."""
    return Option(flags, dest, help, default=True, const=False, group=group)


def select(*flags: str, dest: str, const: object, help: str, group: str = SELECTION) -> Option:
    """One of several options without a value that exclude each other; the last one counts."""
    return Option(flags, dest, help, const=const, group=group)


def value(
    *flags: str,
    dest: str,
    help: str,
    kind: str = "string",
    default: object = None,
    choices: tuple[str, ...] = (),
    metavar: str = "",
    group: str = GENERAL,
) -> Option:
    """An option with a value; the last one counts."""
    return Option(
        flags,
        dest,
        help,
        kind="choice" if choices else kind,
        default=default,
        choices=choices,
        metavar=metavar,
        group=group,
    )


def values_of(
    *flags: str,
    dest: str,
    help: str,
    kind: str = "string",
    choices: tuple[str, ...] = (),
    metavar: str = "",
    group: str = GENERAL,
) -> Option:
    """An option with a value that may be given several times; the values are a list."""
    return Option(
        flags,
        dest,
        help,
        kind="choice" if choices else kind,
        action="append",
        default=[],
        choices=choices,
        metavar=metavar,
        group=group,
    )


def legacy_option(*flags: str, help: str) -> Option:
    """An option without effect, kept for scripts written for Ganeti 2.x and 3.0."""
    return Option(flags, "", help, action="ignore", group=OTHER)
