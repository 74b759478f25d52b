"""The options of all programs: one table, and a parser for it.

An option with an optional value takes it only when attached (``-pFIELDS``,
``--print-nodes=FIELDS``), as it has always been with these programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ganeti import errors
from ganeti.base.json_types import JsonObject


class UsageError(errors.GenericError):
    """The command line is wrong; the text says where."""

    exit_code = 1


class UnknownOptionError(UsageError):
    """There is no such option."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Option:
    """One option; ``kind`` says how its value is read and completed."""

    long: str
    short: str
    arg: str
    kind: str
    help: str
    optional: bool = False
    repeated: bool = False
    choices: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return self.long.replace("-", "_")


# fmt: off
_TABLE = (
    Option("print-nodes", "p", "FIELDS", "text", "print the nodes; +FIELD adds to the usual fields", True),  # noqa: E501
    Option("print-instances", "", "", "flag", "print the instances"),
    Option("print-commands", "C", "FILE", "text", "print the commands that carry out the plan, or write them to FILE", True),  # noqa: E501
    Option("text-data", "t", "FILE", "file", "read the cluster from the text file FILE"),
    Option("evac-mode", "E", "", "flag", "only move instances off nodes that are offline or drained"),  # noqa: E501
    Option("restricted-migration", "", "", "flag", "leave out moves that migrate, replace disks and migrate again"),  # noqa: E501
    Option("master", "m", "ADDRESS", "host", "read the cluster from the remote API at ADDRESS"),
    Option("luxi", "L", "SOCKET", "file", "read the cluster from the master daemon at SOCKET", True),  # noqa: E501
    Option("ialloc-src", "I", "FILE", "file", "read the cluster from the allocator request FILE"),
    Option("simulate", "", "SPEC", "text", "simulate a group of empty nodes: POLICY,NODES,DISK,RAM,CPUS[,SPINDLES]", repeated=True),  # noqa: E501
    Option("exec", "X", "", "flag", "submit the plan as jobs (only with -L)"),
    Option("first-job-group", "", "", "flag", "submit only the first set of jobs"),
    Option("reason", "", "REASON", "text", "reason of the jobs"),
    Option("group", "G", "ID", "onegroup", "the group (name or UUID)"),
    Option("max-length", "l", "N", "integer", "maximum number of moves or allocations"),
    Option("verbose", "v", "", "count", "print more"),
    Option("quiet", "q", "", "count", "print less"),
    Option("offline", "O", "NODE", "onenode", "treat NODE as offline", repeated=True),
    Option("static-kvm-node-memory", "", "N", "integer", "MiB that KVM nodes need themselves; 0: as they report"),  # noqa: E501
    Option("min-score", "e", "EPSILON", "float", "stop when the score differs from the best possible by less than EPSILON"),  # noqa: E501
    Option("max-cpu", "", "RATIO", "float", "virtual processors for each real one, instead of the policy"),  # noqa: E501
    Option("min-disk", "", "RATIO", "float", "share of its disk that a node keeps free"),
    Option("min-gain", "g", "DELTA", "float", "stop when a move gains less"),
    Option("min-gain-limit", "", "SCORE", "float", "apply --min-gain only below this score"),
    Option("no-disk-moves", "", "", "flag", "never copy disks, only migrate and fail over"),
    Option("select-instances", "", "INSTS", "manyinstances", "move only these instances", repeated=True),  # noqa: E501
    Option("no-instance-moves", "", "", "flag", "leave instances where they run, only move secondaries"),  # noqa: E501
    Option("ignore-soft-errors", "", "", "flag", "let moves break N+1, tags and ratios"),
    Option("dynu-file", "U", "FILE", "file", "read the load of instances from FILE"),
    Option("ignore-dynu", "", "", "flag", "ignore the load of instances"),
    Option("mond", "", "CHOICE", "choices", "read the load of nodes from their monitoring daemons", True, choices=("yes", "no")),  # noqa: E501
    Option("mond-data", "", "FILE", "file", "read the load of nodes from FILE"),
    Option("exit-on-missing-mond-data", "", "", "flag", "fail when the load of a node is missing"),
    Option("mond-xen", "", "", "flag", "read the load of Xen domains from the monitoring daemons"),
    Option("exclusion-tags", "", "TAG,...", "text", "instances with the same tag of these kinds stay apart", repeated=True),  # noqa: E501
    Option("exclude-instances", "", "INSTS", "manyinstances", "never move these instances", repeated=True),  # noqa: E501
    Option("save", "S", "FILE", "text", "write the cluster before and after to FILE.*"),
    Option("priority", "", "PRIO", "choices", "priority of the jobs", choices=("low", "normal", "high")),  # noqa: E501
    Option("no-capacity-checks", "", "", "flag", "do not require N+1 afterwards"),
    Option("restrict-allocation-to", "", "NODE,...", "text", "allocate only on these nodes", repeated=True),  # noqa: E501
    Option("disk-template", "", "TEMPLATE", "text", "disk template of the new instances"),
    Option("spindle-use", "", "SPINDLES", "integer", "spindles of the new instances"),
    Option("independent-groups", "", "", "flag", "a group without N+1 does not stop allocation in the others"),  # noqa: E501
    Option("accept-existing-errors", "", "", "flag", "ignore nodes that break N+1 already"),
    Option("machine-readable", "", "CHOICE", "choices", "print KEY=VALUE lines", True, choices=("yes", "no")),  # noqa: E501
    Option("standard-alloc", "", "STDSPEC", "text", "size of the normal allocation: RAM,DISK,CPUS[,SPINDLES]"),  # noqa: E501
    Option("tiered-alloc", "", "TSPEC", "text", "largest size of the tiered allocation: RAM,DISK,CPUS[,SPINDLES]"),  # noqa: E501
    Option("no-simulation", "", "", "flag", "only check, do not plan how to rebalance"),
    Option("offline-maintenance", "", "", "flag", "plan for nodes that go offline, so secondaries count too"),  # noqa: E501
    Option("no-headers", "", "", "flag", "print no headers"),
    Option("node-tags", "", "TAG,...", "text", "only nodes with one of these tags", repeated=True),
    Option("print-moves", "", "", "flag", "print where the instances of a node go"),
    Option("full-evacuation", "", "", "flag", "secondaries leave the nodes too"),
    Option("skip-non-redundant", "", "", "flag", "leave out nodes with instances that cannot move"),
    Option("ignore-non-redundant", "", "", "flag", "ignore instances that cannot move"),
    Option("force", "f", "", "flag", "continue although a node cannot be emptied"),
    Option("one-step-only", "", "", "flag", "print only the first group"),
    Option("minimal-resources", "", "FACTOR", "float", "wake nodes up when fewer than FACTOR usual instances fit"),  # noqa: E501
    Option("target-resources", "", "FACTOR", "float", "room to keep, in usual instances"),
    Option("job-delay", "", "SECONDS", "float", "seconds the jobs wait before they run"),
    Option("dry-run", "", "", "flag", "only print what would be done"),
    Option("output-dir", "d", "PATH", "directory", "where files are written"),
    Option("ca-file", "", "FILE", "file", "PEM file with certificates to trust for the remote API"),
    Option("insecure", "", "", "flag", "do not verify the certificate of the remote API"),
    Option("credentials", "", "FILE", "file", "a file with USER:PASSWORD for the remote API"),
    Option("version", "V", "", "flag", "print the version"),
    Option("help", "h", "", "flag", "print this help"),
    Option("help-completion", "", "", "flag", "print the options for shell completion"),
)
# fmt: on
OPTIONS = {option.long: option for option in _TABLE}

#: Options of every program, last in its help.
COMMON = ("version", "help", "help-completion")
#: Options for use with ``--master``, beyond the documented ones.
REMOTE = ("ca-file", "insecure", "credentials")


@dataclass(slots=True)
class Values:
    """The options of a command line by their key, and its arguments."""

    options: JsonObject = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)

    def __contains__(self, key: str) -> bool:
        return key in self.options

    def get(self, key: str, default: object = None) -> Any:
        return self.options.get(key, default)

    def number(self, key: str, default: float) -> float:
        return float(self.options.get(key, default))

    def names(self, key: str) -> list[str]:
        """All names of an option that takes lists and may be repeated."""
        given = self.options.get(key, [])
        return [name for text in given for name in text.split(",") if name]

    @property
    def verbosity(self) -> int:
        return 1 + int(self.get("verbose", 0)) - int(self.get("quiet", 0))


def parse(arguments: Sequence[str], known: Sequence[str]) -> Values:
    """Read a command line; raises :class:`UsageError`."""
    long = {name: OPTIONS[name] for name in known}
    short = {option.short: option for option in long.values() if option.short}
    values = Values()
    rest = iter(arguments)
    for text in rest:
        if text == "--":
            values.arguments += list(rest)
        elif text.startswith("--"):
            name, given, value = text[2:].partition("=")
            option = _find_long(name, long)
            _take(values, option, value if given else None, rest)
        elif text.startswith("-") and len(text) > 1:
            _take_short(values, text[1:], short, rest)
        else:
            values.arguments.append(text)
    return values


def _find_long(name: str, long: dict[str, Option]) -> Option:
    if name in long:
        return long[name]
    matches = [option for key, option in long.items() if key.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        names = ", ".join(f"--{option.long}" for option in matches)
        raise UnknownOptionError(f"option --{name} can be one of {names}")
    raise UnknownOptionError(f"unknown option --{name}")


def _take_short(values: Values, text: str, short: dict[str, Option], rest: Iterator[str]) -> None:
    while text:
        option = short.get(text[0])
        if option is None:
            raise UnknownOptionError(f"unknown option -{text[0]}")
        text = text[1:]
        if option.arg:
            _take(values, option, text or None, rest)
            return
        _take(values, option, None, rest)


def _take(values: Values, option: Option, value: str | None, rest: Iterator[str]) -> None:
    if not option.arg:
        if value is not None:
            raise UsageError(f"option --{option.long} takes no value")
        if option.kind == "count":
            values.options[option.key] = values.options.get(option.key, 0) + 1
        else:
            values.options[option.key] = True
        return
    if value is None and not option.optional:
        value = next(rest, None)
        if value is None:
            raise UsageError(f"option --{option.long} needs a value ({option.arg})")
    read = _read(option, value)
    if option.repeated:
        values.options.setdefault(option.key, []).append(read)
    else:
        values.options[option.key] = read


def _read(option: Option, value: str | None) -> object:
    if value is None:
        return option.choices[0] if option.choices else ""
    try:
        if option.kind == "integer":
            return int(value)
        if option.kind == "float":
            number = float(value)
            if number != number:
                raise ValueError
            return number
    except ValueError as err:
        raise UsageError(f"option --{option.long}: '{value}' is not a number") from err
    if option.choices and value not in option.choices:
        known = ", ".join(option.choices)
        raise UsageError(f"option --{option.long}: invalid value '{value}'; choose from {known}")
    return value


def help_text(name: str, known: Sequence[str], arguments: str, title: str) -> str:
    """The help of a program."""
    rows = []
    for key in known:
        option = OPTIONS[key]
        short = f"-{option.short}," if option.short else ""
        value = option.arg and (f"[={option.arg}]" if option.optional else f"={option.arg}")
        rows.append((f"  {short:4}--{option.long}{value}", option.help))
    width = max(len(left) for left, _ in rows)
    lines = [f"Usage: {name} [OPTION...]{arguments}", "", title, ""]
    return "\n".join(lines + [f"{left:<{width}}  {text}" for left, text in rows])


def completion_text(known: Sequence[str], arguments: str) -> str:
    """One line for each option: its names and what completes its value."""
    lines = []
    for key in known:
        option = OPTIONS[key]
        names = ",".join([f"-{option.short}"] * bool(option.short) + [f"--{option.long}"])
        kind = {"flag": "none", "count": "none", "text": "string"}.get(option.kind, option.kind)
        if option.choices:
            kind = "choices=" + ",".join(option.choices)
        lines.append(f"{names} {kind}")
    return "\n".join(lines + ([arguments] if arguments else []))
