"""Which OS definitions the nodes have, and what is wrong with them."""

from __future__ import annotations

from typing import Any

from ganeti import errors
from ganeti.opcodes.os import OpOsDiagnose
from ganeti.ops.operation import Operation


class OsDiagnose(Operation[OpOsDiagnose, list[list[Any]]]):
    """Rows of the asked fields, by name; hidden and blacklisted ones only when requested."""

    def run(self) -> list[list[object]]:
        fields = list(self.op.output_fields)
        names = set(self.op.names)
        decide = ["name", "valid", "hidden", "blacklisted"]
        answer = self.ctx.services.query("os", [*fields, *decide], None)
        unknown = [field["name"] for field in answer["fields"] if field["kind"] == "unknown"]
        if unknown:
            raise errors.make_invalid_error(
                f"unknown fields of OS definitions: {', '.join(unknown)}"
            )
        rows: list[list[object]] = []
        for row in answer["data"]:
            values = [value for _status, value in row]
            name, valid, hidden, blacklisted = values[-4:]
            if names and name not in names:
                continue
            if not names and (
                (hidden and "hidden" not in fields)
                or (blacklisted and "blacklisted" not in fields)
                or (not valid and "valid" not in fields)
            ):
                continue
            rows.append(values[:-4])
        return rows
