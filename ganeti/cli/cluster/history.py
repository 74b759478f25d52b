"""gnt-cluster history and diff: who changed what in the configuration, when and why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ganeti.base import jsonio
from ganeti.base.text import plural
from ganeti.cli import info, moments, notices, output
from ganeti.cli import options as o
from ganeti.cli.command import Args, Call
from ganeti.cli.fields import override
from ganeti.cli.programs import CLUSTER

#: Changes shown unless another number is requested.
_USUAL = 1000
#: Characters of a value shown without ``--verbose``.
_SHORT = 120

_NAMES = {
    "since": override(kind="string", metavar="<time>", help=f"Only newer changes; {moments.FORMS}"),
    "until": override(kind="string", metavar="<time>", help="Only older changes"),
    "job": override(metavar="<job-id>"),
    "kind": override(metavar="<kind>"),
    "limit": override(default=_USUAL),
}

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Fields = Mapping[str, Any]


@CLUSTER.command(
    "history",
    Args("object", least=0),
    also={"HistoryFilter": tuple(_NAMES)},
    names=_NAMES,
    options=(o.INFO_FORMAT, o.VERBOSE),
)
def show_history(call: Call) -> None:
    """Show who changed the configuration, when, in which job and why.

    The object is the name or uuid of an instance, a node, a node group or a network, also of a
    removed one, or 'cluster'; without it all changes are shown. The newest change comes last.
    """
    opts = call.opts
    found = call.client.query_history(
        object=call.args[0] if call.args else None,
        kind=opts.kind,
        since=None if opts.since is None else moments.parse(opts.since),
        until=None if opts.until is None else moments.parse(opts.until),
        job=opts.job,
        limit=opts.limit,
    )
    if opts.format != "text":
        info.show(call, found)
        return
    text = _Text(found["names"], opts.verbose)
    output.print_lines(list(_history_lines(found, text)))
    if found["more"]:
        notices.say(f"There are older changes; these are the newest {opts.limit}")
    begins = found["begins"]
    if not found["changes"]:
        notices.say(f"No such change is recorded since {output.timestamp(begins['time'])}")


def _history_lines(found: Fields, text: _Text) -> Iterator[str]:
    missing = [*found["missing"]]
    for number, change in enumerate(found["changes"]):
        if number:
            yield ""
        while missing and missing[0][1] < change["serial"]:
            yield _gap(missing.pop(0))
            yield ""
        yield from text.change(change)
    for gap in missing:
        yield ""
        yield _gap(gap)


def _gap(gap: Sequence[int]) -> str:
    first, last = gap
    which = f"change {first} is" if first == last else f"changes {first} to {last} are"
    return f"({which} not known on this node: another one was the master)"


@CLUSTER.command(
    "diff", Args("time", 2, 2), usage="<time> <time>", options=(o.INFO_FORMAT, o.VERBOSE)
)
def show_diff(call: Call) -> None:
    """Show what differs between the configurations of two times.

    Times may be written as 2026-11-21, '2026-11-21 08:00', 2026-11-21T08:00:00, in seconds since
    1970, as 2h or -2h (two hours ago; also s, m, d, w), or as now.
    """
    begin, end = (moments.parse(word) for word in call.args)
    found = call.client.query_config_diff(begin, end)
    if call.opts.format != "text":
        info.show(call, found)
        return
    text = _Text(found["names"], call.opts.verbose)
    lines = [
        f"{word}: {output.timestamp(found[key]['time'])} (change {found[key]['serial']})"
        for word, key in (("From", "from"), ("To", "to"))
    ]
    for item in found["objects"]:
        lines += ["", *text.difference(item, "", _origin(item))]
    if not found["objects"]:
        lines += ["", "No difference"]
    output.print_lines(lines)


def _origin(item: Fields) -> str:
    """The serials of the changes and the ids of the jobs that made a difference."""
    serials, jobs = item["serials"], item["jobs"]
    parts = [f"{'change' if len(serials) == 1 else 'changes'} {_numbers(serials)}"]
    if jobs:
        parts.append(f"{'job' if len(jobs) == 1 else 'jobs'} {_numbers(jobs)}")
    return f" ({', '.join(parts)})"


def _numbers(numbers: Sequence[int]) -> str:
    shown = [str(number) for number in numbers]
    if len(shown) > 5:
        shown = [*shown[:2], "...", *shown[-2:]]
    return " ".join(shown)


class _Text:
    """Writes changes as lines of text."""

    def __init__(self, names: Mapping[str, str], verbose: bool) -> None:
        self._names = names
        self._verbose = verbose

    def change(self, change: Fields) -> Iterator[str]:
        """One change of the history."""
        yield f"Change {change['serial']}: {_join_lines(change['name'])}"
        yield f"  Time: {output.timestamp(change['time'])}"
        if change["job"]:
            yield f"  Job: {change['job']}"
        for title, key in (("User", "user"), ("Reason", "reason")):
            if change[key]:
                yield f"  {title}: {_join_lines(change[key])}"
        for item in change["objects"]:
            yield from self.difference(item, "  ")
        if change["others"]:
            yield f"  and {plural(change['others'], 'other object')}"

    def difference(self, item: Fields, indent: str, origin: str = "") -> Iterator[str]:
        """One object, and below it what changed in it."""
        name = _join_lines(item["name"] or item["uuid"])
        if item.get("owner"):
            name += f" of {_join_lines(item['owner'])}"
        yield f"{indent}{item['kind'].capitalize()} {name}: {item['change']}{origin}"
        for key in item.get("keys", ()):
            yield f"{indent}  {self._key(key['key'])}: {self._change_text(key['old'], key['new'])}"
        if self._verbose:
            for name, shown in sorted(item.get("values", {}).items()):
                yield f"{indent}  {_join_lines(name)}: {self._value(shown)}"

    def _key(self, path: str) -> str:
        return _join_lines("/".join(self._name_of(part) for part in path.split("/")))

    def _change_text(self, old: Any, new: Any) -> str:
        if _is_plain_list(old) and _is_plain_list(new) and (old or new):
            gone = [item for item in old or () if item not in (new or ())]
            come = [item for item in new or () if item not in (old or ())]
            if gone or come:
                return " ".join(
                    [f"-{self._value(i)}" for i in gone] + [f"+{self._value(i)}" for i in come]
                )
        return f"{self._value(old)} -> {self._value(new)}"

    def _value(self, shown: object) -> str:
        if shown is None:
            return "(unset)"
        if isinstance(shown, str):
            text = _join_lines(self._name_of(shown)) or "''"
        else:
            text = _UUID.sub(lambda match: self._name_of(match[0]), jsonio.dumps(shown))
        if len(text) > _SHORT and not self._verbose:
            return f"{text[:_SHORT]}... ({len(text)} characters)"
        return text

    def _name_of(self, text: str) -> str:
        return self._names.get(text, text)


def _is_plain_list(value: object) -> bool:
    return value is None or (
        isinstance(value, list) and not any(isinstance(item, dict | list) for item in value)
    )


def _join_lines(text: str) -> str:
    """A text on one line, without characters that control a terminal."""
    return text if text.isprintable() else jsonio.dumps(text)
