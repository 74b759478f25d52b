"""gnt-filter: rules that let queued jobs run, hold them back or cancel them."""

from __future__ import annotations

from collections.abc import Sequence

from ganeti import constants, errors
from ganeti.base import jsonio
from ganeti.base.text import nearest
from ganeti.cli import jobs, listing, notices, usage
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_many, take_one
from ganeti.cli.failures import Exit
from ganeti.cli.fields import override
from ganeti.cli.programs import FILTER
from ganeti.filters import shape, tree

_FIELDS = ("uuid", "watermark", "priority", "predicates", "action", "reason_trail")
_ACTIONS = ("ACCEPT", "CONTINUE", "PAUSE", "REJECT")
_RATE_LIMIT = "RATE_LIMIT"
#: Kinds of predicates in which the master takes all but comparisons as false.
_COMPARING_KINDS = ("jobid", "reason")

_SETTINGS = {"FilterSettings": ("priority", "predicates", "action")}
_NAMES = {
    "predicates": override(kind="string", default="[]", metavar="<json>"),
    "action": override(kind="string", default="CONTINUE"),
}


@FILTER.command("add", also=_SETTINGS, names=_NAMES)
def add(call: Call) -> None:
    """Add a filter rule and print its uuid.

    Rules are tried in the order of priority, watermark and uuid. The first one that matches a
    job decides; a rule with the action CONTINUE never does. The watermark of a rule is the
    highest job id at the time when it was made. To accept no new jobs but finish those in the
    queue:

      gnt-filter add --predicates '[["jobid", [">", "id", "watermark"]]]' --action REJECT
    """
    _put(call, None)


@FILTER.command("replace", take_one("filter"), usage="<filter-uuid>", also=_SETTINGS, names=_NAMES)
def replace(call: Call) -> None:
    """Replace a filter rule by another one and print its uuid.

    A rule that does not exist is created. Settings without an option get their defaults, not the
    values of the old rule; the watermark is a new one.
    """
    _put(call, call.args[0])


def _put(call: Call, uuid: str | None) -> None:
    predicates = _read_predicates(call)
    action = _read_action(call)
    _warn_of_useless(predicates)
    reason = jobs.reason_trail(call)
    print(call.client.replace_filter(uuid, call.opts.priority, predicates, action, reason))


def _read_predicates(call: Call) -> list[object]:
    text = call.opts.predicates
    try:
        read = jsonio.loads(text)
    except errors.ParseError as err:
        raise _refusal(call, f"option --predicates: not JSON: {errors.text(err)}") from None
    if not isinstance(read, list):
        raise _refusal(call, "option --predicates: expected a list of [<kind>, <filter>]")
    return read


def _read_action(call: Call) -> str | list[object]:
    text: str = call.opts.action
    if text in _ACTIONS:
        return text
    word, _, number = text.partition(" ")
    if word == _RATE_LIMIT:
        limit = number.strip()
        if limit.isascii() and limit.isdigit() and len(limit) <= 18:
            return [_RATE_LIMIT, int(limit)]
        raise _refusal(
            call, f"option --action: {_RATE_LIMIT} needs a number, as in '{_RATE_LIMIT} 4'"
        )
    hint = nearest(text, (*_ACTIONS, _RATE_LIMIT))
    known = ", ".join(_ACTIONS)
    raise _refusal(
        call,
        f"option --action: invalid value '{text}'; choose from {known},"
        f" '{_RATE_LIMIT} <number>'{hint}",
    )


def _refusal(call: Call, problem: str) -> Exit:
    """Say what is wrong with the value of an option, in the usual form; ends the command."""
    notices.say(f"{usage.usage_line(FILTER, FILTER.commands[call.command])}\n")
    notices.say(f"{call.program} {call.command}: error: {problem}")
    return Exit(constants.EXIT_USAGE)


def _warn_of_useless(predicates: Sequence[object]) -> None:
    """Say which conditions can never hold; what is malformed is left to the master."""
    for item in predicates:
        if not (isinstance(item, list) and len(item) == 2 and item[0] in _COMPARING_KINDS):
            continue
        try:
            conditions = list(shape.conditions(tree.from_wire(item[1])))
        except errors.QueryFilterParseError:
            continue  # the master refuses it, with the number of the predicate
        for condition in conditions:
            if not isinstance(condition, tree.Compare):
                notices.warn(
                    f"{jsonio.dumps(tree.to_wire(condition))} never holds: {item[0]} predicates"
                    " can only compare (== != < <= > >=)"
                )


@FILTER.command("delete", take_one("filter"), usage="<filter-uuid>")
def delete(call: Call) -> None:
    """Delete a filter rule; jobs that it held back continue."""
    call.client.delete_filter(call.args[0])


@FILTER.command(
    "list",
    take_many("filter"),
    usage="[<filter-uuid>...]",
    options=(o.NO_HEADERS, o.SEPARATOR, o.FIELDS, o.VERBOSE, o.FORMAT),
)
def list_filters(call: Call) -> int:
    """List filter rules.

    Arguments are uuids, patterns such as '3f2c*', or one filter such as 'priority > 5'.
    """
    call.opts.force_filter = False
    return listing.show_list(call, "filter", _FIELDS, name_field="uuid")


@FILTER.command(
    "list-fields", take_many("field"), usage="[<fields>...]", options=o.LIST_FIELDS_OPTIONS
)
def list_fields(call: Call) -> int:
    """List the fields that gnt-filter list can show."""
    return listing.show_fields(call, "filter")


@FILTER.command("info", take_many("filter"), usage="[<filter-uuid>...]")
def show_info(call: Call) -> None:
    """Show filter rules in detail.

    Without arguments all are shown, in the order in which they are tried. Predicates and
    actions are written as the options of add and replace take them.
    """
    rows = call.client.query_filters(call.args or None, _FIELDS)
    missing = [name for name in call.args if name not in {row[0] for row in rows}]
    for uuid, watermark, priority, predicates, action, trail in sorted(
        rows, key=lambda row: (row[2], row[1], row[0])
    ):
        print(f"UUID: {uuid}")
        print(f"  Watermark: {watermark}")
        print(f"  Priority: {priority}")
        print(f"  Predicates: {jsonio.dumps(predicates)}")
        print(f"  Action: {action if isinstance(action, str) else ' '.join(map(str, action))}")
        print(f"  Reason trail: {jsonio.dumps(trail)}")
    for name in missing:
        notices.say(f"Filter rule '{name}' not found")
