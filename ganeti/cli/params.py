"""Option values to parameters of opcodes."""

from __future__ import annotations

from collections.abc import Sequence

from ganeti import errors
from ganeti.cli import selection
from ganeti.cli.command import Call
from ganeti.cli.fields import override
from ganeti.luxi.client import Client

#: Of the commands that migrate: ``--non-live`` is an older form of ``--migration-mode=non-live``.
MIGRATION = {
    "live": override(
        "--non-live",
        kind="switch_off",
        help="Pause the guest meanwhile, the same as --migration-mode non-live",
    ),
    "mode": override("--migration-mode"),
}


def migration(call: Call) -> dict[str, str | None]:
    """How to migrate, as parameters of the opcode."""
    return {"live": None, "mode": call.opts.mode if call.opts.live else "non-live"}


def split_nodes(text: str) -> tuple[str | None, str | None]:
    """``primary:secondary`` as two names."""
    primary, _, secondary = text.partition(":")
    return primary or None, secondary or None


def online_nodes(
    client: Client, names: Sequence[str], group: str | None, *, without: str = ""
) -> list[str]:
    """Names of nodes that are not offline; ``names`` and ``group`` limit them.

    Raises:
        OpPrereqError: an unknown name or group, or no node is left.
    """
    rows = client.query_nodes(names, ["name", "uuid", "offline", "group", "group.uuid"])
    selection.refuse_unknown(client, "node", names, [row[:2] for row in rows])
    if group is not None:
        known = client.query_groups([], ["name", "uuid"])
        selection.refuse_unknown(client, "node group", [group], known)
        rows = [row for row in rows if group in row[3:5]]
    found = [str(row[0]) for row in rows if not row[2] and row[0] != without]
    if not found and not without:
        raise errors.make_invalid_error("No node that is online was selected")
    return found
