"""Fields that every object of the configuration has."""

from __future__ import annotations

from typing import TypeVar

from ganeti.filters.answer import FieldKind
from ganeti.model.base import Tagged
from ganeti.query.field import Kind

R = TypeVar("R", bound=Tagged)


def add_fields(kind: Kind[R], noun: str) -> None:
    """Identity, history and tags of an object; ``noun`` is used in the descriptions."""
    kind.attribute("ctime", "CTime", FieldKind.TIMESTAMP, f"When the {noun} was created", "ctime")
    kind.attribute(
        "mtime", "MTime", FieldKind.TIMESTAMP, f"When the {noun} was last changed", "mtime"
    )
    kind.attribute(
        "serial_no", "SerialNo", FieldKind.NUMBER, f"How often the {noun} was changed", "serial_no"
    )
    kind.attribute("uuid", "UUID", FieldKind.TEXT, f"Identity of the {noun}", "uuid")
    kind.value("tags", "Tags", FieldKind.OTHER, f"Tags of the {noun}, sorted")(
        lambda row: list(row.tags)
    )
