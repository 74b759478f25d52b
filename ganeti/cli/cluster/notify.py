"""gnt-cluster notify: where the master sends notices of events."""

from __future__ import annotations

import secrets
import shlex
import sys
from pathlib import Path

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.cli import jobs, records
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_one
from ganeti.cli.fields import override
from ganeti.cli.programs import CLUSTER

_NAME = take_one("notification", "notification_name")
#: Columns of the list.
_COLUMNS = {
    "name": "Name",
    "way": "Way",
    "target": "Target",
    "filter": "Filter",
    "waiting": "Waiting",
    "sent": "Sent",
    "lost": "Lost",
    "last_sent": "LastSent",
    "problem": "Problem",
}
_NUMBERS = ("waiting", "sent", "lost")


def _read(path: str) -> str:
    """A text of a file, or of standard input for ``-``, without the end of its last line."""
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as err:
        reason = err.strerror if isinstance(err, OSError) else "is not a text file in UTF-8"
        raise errors.make_invalid_error(f"{path}: {reason}") from err
    return text.rstrip("\n")


def _read_url(given: str) -> str:
    return _read(given[1:]) if given.startswith("@") else given


def _split_command(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as err:
        raise errors.make_invalid_error(f"option --command: {err}") from None


def _parse_filter(text: str) -> object:
    from ganeti.filters import grammar  # only here, as pyparsing takes its time

    return grammar.parse(text)


#: Fields whose options are read from a text, with what stands for an empty one.
_EMPTY: dict[str, object] = {"secret": "", "authority": "", "qfilter": []}
#: Options of a notification.
_OPTIONS = {
    "webhook": override(kind="string", metavar="<url>|@<file>", take=_read_url),
    "mail": override(metavar="<address>,..."),
    "command": override(
        kind="string",
        metavar="<program> [<argument>...]",
        help="Program in /etc/ganeti/notify-commands of the master, and its arguments",
        take=_split_command,
    ),
    "secret": override("--secret-file", kind="string", metavar="<file>", take=_read),
    "server": override(metavar="smtp[s]://[<user>@]<host>[:<port>]"),
    "sender": override("--from", metavar="<address>"),
    "authority": override("--ca-file", kind="string", metavar="<file>", take=_read),
    "qfilter": override(
        "--filter", kind="string", metavar="<filter>", help="Notices to send", take=_parse_filter
    ),
    "interval": override(metavar="<seconds>"),
}


@CLUSTER.command(
    "notify add",
    _NAME,
    op="OP_NOTIFICATION_ADD",
    names=_OPTIONS,
    options=o.JOB_OPTIONS,
    usage="--webhook=<url> | --mail=<address>,... | --command=<program> [--filter=<filter>] <name>",
)
def add(call: Call) -> None:
    """Add a notification: notices of events are sent to a webhook, by mail or to a program.

    Without a filter it gets the important ones: failed jobs, nodes that do not answer and the like.
    A file in place of a URL or key is '-' for standard input. Messages to a webhook are signed;
    without --secret-file a key is made and shown once.

      gnt-cluster notify add --mail=ops@example.com --filter='severity == "error"' ops
    """
    _run_with_key(call, needs_key=call.opts.webhook is not None)


@CLUSTER.command(
    "notify modify",
    _NAME,
    op="OP_NOTIFICATION_MODIFY",
    names=_OPTIONS,
    options=o.JOB_OPTIONS,
)
def modify(call: Call) -> None:
    """Change a notification; other settings keep their values.

    An empty --server, --from, --ca-file or --filter restores the default, and so does
    --interval=-1. With another way of delivery, such as --mail in place of a webhook, only
    filter and interval are kept. A webhook keeps its key; a new one gets a key, which is shown
    once.

      gnt-cluster notify modify --filter= --interval=300 ops
    """
    known = {item["name"]: item["way"] for item in call.client.query_notifications()}
    is_new = known.get(call.args[0]) != "webhook"
    empty = {name: value for name, value in _EMPTY.items() if getattr(call.opts, name) == ""}
    _run_with_key(call, needs_key=call.opts.webhook is not None and is_new, **empty)


def _run_with_key(call: Call, *, needs_key: bool, **given: object) -> None:
    """Submit the opcode, with a key that is made here where one is needed and none was given."""
    made = secrets.token_urlsafe(32) if needs_key and call.opts.secret is None else None
    if made is not None:
        given["secret"] = made
    jobs.run(call, **given)
    if made is not None and not call.opts.dry_run:
        print(f"Key of the signatures (it is not shown again): {made}")


CLUSTER.submits("notify remove", "OP_NOTIFICATION_REMOVE", _NAME)


@CLUSTER.command("notify test", _NAME, op="OP_NOTIFICATION_TEST", options=o.JOB_OPTIONS)
def test(call: Call) -> None:
    """Send a message now, to see that it is delivered."""
    jobs.run(call)


@CLUSTER.command("notify list", options=(*o.TABLE_OPTIONS, o.FORMAT))
def show_list(call: Call) -> None:
    """List notifications, and how many messages were sent and notices lost."""
    found = [_describe(item) for item in call.client.query_notifications()]
    records.show(call, list(_COLUMNS), list(_COLUMNS.values()), found, right=_NUMBERS)


def _describe(item: JsonObject) -> JsonObject:
    shown = item["qfilter"]
    if shown is not None:
        from ganeti.filters import tree, unparse

        read = tree.from_wire(shown)
        shown = None if read is None else unparse.format_filter(read)
    return {**item, "filter": shown, "problem": item["problem"] or None}
