"""The tag commands of a program."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ganeti import errors
from ganeti.cli import jobs, output
from ganeti.cli import options as o
from ganeti.cli.command import Args, Call, Program, take_many, take_one

_CHANGE_OPTIONS = (o.TAG_SOURCE, o.PRIORITY, *o.SUBMIT_OPTIONS)


def add_commands(program: Program, kind: str, noun: str) -> None:
    """Register list-tags, add-tags and remove-tags for a kind of object.

    ``noun`` is what the first argument names; empty for the cluster, which takes none.
    """
    target: Sequence[Args] = (take_one(noun),) if noun else ()
    what = f"an {noun}" if noun[:1] in ("i",) else f"a {noun}"
    if not noun:
        what = "the cluster"

    def list_tags(call: Call) -> None:
        output.print_lines(sorted(call.client.query_tags(kind, call.args[0] if noun else "")))

    def add_tags(call: Call) -> None:
        _change(call, "OP_TAGS_SET")

    def remove_tags(call: Call) -> None:
        _change(call, "OP_TAGS_DEL")

    def _change(call: Call, op_id: str) -> None:
        name = call.args[0] if noun else ""
        tags = read_tags(call.args[1:] if noun else call.args, call.opts.tags_source)
        jobs.run_op(call, op_id, kind=kind, name=name, tags=tags)

    list_tags.__doc__ = f"List the tags of {what}, sorted, one on each line."
    add_tags.__doc__ = f"Add tags to {what}."
    remove_tags.__doc__ = f"Remove tags from {what}."
    program.command("list-tags", *target)(list_tags)
    program.command("add-tags", *target, take_many("tag"), options=_CHANGE_OPTIONS)(add_tags)
    program.command("remove-tags", *target, take_many("tag"), options=_CHANGE_OPTIONS)(remove_tags)


def read_tags(words: Sequence[str], source: str | None) -> list[str]:
    """Tags of the command line and of the file of ``--from``.

    Raises:
        OpPrereqError: there are none, or the file cannot be read.
    """
    tags = list(words)
    if source is not None:
        try:
            text = sys.stdin.read() if source == "-" else Path(source).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as err:
            raise errors.make_invalid_error(f"Cannot read tags from '{source}': {err}") from err
        tags += [line.strip() for line in text.splitlines() if line.strip()]
    if not tags:
        raise errors.make_invalid_error("No tags were given")
    return tags
