"""Steps that are done once, in order, and can be interrupted anywhere.

A file records the steps that are done. A step that was cut off is done again, so each one can be
repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ganeti import errors
from ganeti.base import files, jsonio, typed
from ganeti.paths import Paths


class Record(msgspec.Struct, kw_only=True):
    """How far a takeover is on this node: ``record.json`` in its directory."""

    host: str
    cluster: str
    master: str
    #: packages of the other software -> version
    packages: dict[str, str] = {}
    #: names of the steps that are done
    done: list[str] = []
    #: whether it is on its way back
    back: bool = False


def record_file(where: Paths) -> Path:
    return where.takeover / "record.json"


def load(where: Paths) -> Record | None:
    """The record that was written last; None where no takeover has begun.

    Raises:
        OpPrereqError: the file is damaged.
    """
    path = record_file(where)
    try:
        return typed.convert(jsonio.loads(path.read_bytes()), Record)
    except FileNotFoundError:
        return None
    except (errors.ParseError, msgspec.ValidationError) as err:
        raise errors.make_state_error(
            f"{path} is damaged ({err}); what was kept is beside it, to be put back by hand",
        ) from err


def save(where: Paths, record: Record) -> None:
    """Durable at return."""
    files.ensure_dir(where.takeover, 0o700)
    value: object = msgspec.to_builtins(record)
    files.write_atomic(record_file(where), jsonio.dumps(value), mode=0o600)


@dataclass(frozen=True)
class Step:
    name: str
    #: for people, as ``the daemons stop``
    text: str
    do: Callable[[], None]


def perform(
    where: Paths, record: Record, steps: Iterable[Step], say: Callable[[str], None]
) -> None:
    """Do what is not done yet; raises what a step raises, and continues there the next time."""
    for step in steps:
        if step.name in record.done:
            continue
        say(step.text)
        step.do()
        record.done.append(step.name)
        save(where, record)
