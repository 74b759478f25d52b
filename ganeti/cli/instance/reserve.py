"""gnt-instance: reserve capacity for instances, for whom and how long."""

from __future__ import annotations

import re
from types import SimpleNamespace

from ganeti import errors
from ganeti.base import units
from ganeti.base.json_types import JsonObject
from ganeti.base.text import plural
from ganeti.cli import jobs, moments, notices, output
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_many, take_one
from ganeti.cli.fields import override
from ganeti.cli.instance import creation
from ganeti.cli.option import value
from ganeti.cli.programs import INSTANCE

_DURATION = re.compile(r"[0-9]+[smhdw]")

#: For whom and how long capacity is reserved.
TERMS: dict[str, tuple[str, ...]] = {"OP_RESERVATION_ADD": ("owner", "expires")}
NEVER = "never"
EXPIRES = override(
    kind="string",
    metavar="<time>|never",
    help="When the reservation expires, as in 7d, 12h, 2026-12-24 or never",
)
NAMES = {**creation.NAMES, "expires": EXPIRES, "owner": override(metavar="<who>")}
_COUNT = value(
    "--count",
    dest="count",
    kind="int",
    metavar="<number>",
    help="Number of reservations, which have no names yet",
)


def moment(text: str | None, now: float) -> float | None:
    """Unix time of a duration from now or a point in time; None for never. OpPrereqError."""
    if text in (None, NEVER):
        return None
    if _DURATION.fullmatch(text):
        return now + units.parse_timespec(text)
    return moments.parse(text, now)


@INSTANCE.command(
    "reserve",
    take_many("name"),
    op=creation.OP,
    without=(
        *creation.WITHOUT,
        "commit",
        "force_variant",
        "forthcoming",
        "instance_communication",
        "no_install",
        "start",
        "image",
        "ssh_keys",
        "password_hash",
        "user_data",
        "vendor_data",
        "network_config",
    ),
    names=NAMES,
    also=TERMS | creation.SIZE,
    new=True,
    options=(_COUNT, *creation.EXTRAS, *o.JOB_OPTIONS),
)
def reserve(call: Call) -> None:
    """Reserve capacity for several equal instances: for all of them, or none.

    As in: gnt-instance reserve --count 20 -t plain --disk 0:size=10G -B memory=2G --expires 7d
    An allocator chooses the nodes unless --node names them. Each reservation has a uuid, which
    stands for its name until gnt-instance rename sets one. gnt-instance add --commit creates the
    instance. Reserved capacity counts as used.
    """
    opts = call.opts
    names = call.args or [""] * _count(opts)
    if call.args and opts.count not in (None, len(call.args)):
        raise errors.make_invalid_error(
            f"--count is {opts.count}, but {plural(len(call.args), 'name')} were given"
        )
    uuids = add(call, [body(call, name) for name in names])
    if opts.dry_run:
        return
    output.print_lines(uuids)


def add(call: Call, instances: list[JsonObject]) -> list[str]:
    """Submit the reservation of all of these; returns their UUIDs."""
    opts = call.opts
    for item in instances:
        item["iallocator"] = None
        item["opportunistic_locking"] = False
    found: list[str] = jobs.run_for_result(
        call,
        "OP_RESERVATION_ADD",
        instances=[jobs.build(call, creation.OP, **item) for item in instances],
        iallocator=opts.iallocator,
        opportunistic_locking=opts.opportunistic_locking,
        owner=opts.owner,
        expires=moment(opts.expires, call.clock.now()),
    )
    return found


def body(call: Call, name: str) -> JsonObject:
    """Parameters of one reservation."""
    return creation.parameters(call, name, may_be_open=True) | {"forthcoming": True}


def _count(opts: SimpleNamespace) -> int:
    count = 1 if opts.count is None else int(opts.count)
    if count < 1:
        raise errors.make_invalid_error(f"--count must be at least 1, not {count}")
    return count


@INSTANCE.command(
    "modify-reservation",
    take_one("instance", "instance_name"),
    op="OP_RESERVATION_SET_PARAMS",
    without=("never_expires",),
    names={"expires": EXPIRES},
    options=o.JOB_OPTIONS,
)
def modify_reservation(call: Call) -> None:
    """Change for whom, for what and how long capacity is reserved.

    gnt-instance modify changes what is reserved, gnt-instance failover changes where.
    """
    expires = call.opts.expires
    rows = jobs.run(call, expires=moment(expires, call.clock.now()), never_expires=expires == NEVER)
    if not rows:
        return
    print(f"Modified reservation {call.args[0]}")
    for name, new in rows:
        shown = output.timestamp(new) if name == "expires" and new is not None else new
        notices.say(f" - {name} -> {'-' if shown is None else shown}")
