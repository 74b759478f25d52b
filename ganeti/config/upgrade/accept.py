"""Makes a configuration of ours of one that the version before or after ours has written.

Each version does this for itself, as it knows best what it knows: a newer one that goes back starts
the older one (``python -m ganeti.config.upgrade.accept``) with the configuration on its standard
input, and gets :class:`Accepted` as JSON on the standard output. Nothing else is read or written.
"""

from __future__ import annotations

import sys

import msgspec

from ganeti import constants, errors
from ganeti.base import jsonio, typed
from ganeti.base.json_types import JsonObject
from ganeti.config.upgrade import upgrade
from ganeti.model import base


class Accepted(msgspec.Struct, kw_only=True):
    """The configuration in the form of this version, and what became of the other one."""

    config: JsonObject
    #: one line each
    changes: list[str]
    #: paths of keys that this version does not know; they are left out
    dropped: list[str]
    #: what is wrong in it, a sentence each
    problems: list[str]


def accept(raw: object) -> Accepted:
    """Convert the content of a ``config.data`` to this version. Pure.

    Raises:
        ConfigurationError: it cannot use it; the text names the path of what is wrong.
    """
    found = upgrade.upgrade(raw, newer=True)
    return Accepted(
        config=base.to_wire(found.config.data),
        changes=[str(change) for change in found.report.changes],
        dropped=found.report.unknown,
        problems=upgrade.problems(found.config),
    )


def decode(text: str) -> Accepted:
    """Decode the output of another version; ConfigurationError for anything else."""
    try:
        return typed.decode(text, Accepted)
    except msgspec.DecodeError as err:
        raise errors.ConfigurationError(
            f"the other version answered something else: {err}"
        ) from err


def main() -> int:
    """Standard input to standard output; the exit code."""
    try:
        found = accept(jsonio.loads_unique(sys.stdin.buffer.read()))
    except errors.GanetiError as err:
        print(errors.text(err), file=sys.stderr)
        return constants.EXIT_FAILURE
    sys.stdout.buffer.write(jsonio.dumps_bytes(msgspec.to_builtins(found)))
    return constants.EXIT_SUCCESS


if __name__ == "__main__":
    sys.exit(main())
