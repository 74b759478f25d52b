"""Which providers of external storage the nodes have, and what is wrong with them."""

from __future__ import annotations

from typing import Any

from ganeti import errors
from ganeti.opcodes.os import OpExtStorageDiagnose
from ganeti.ops.operation import Operation


class ExtStorageDiagnose(Operation[OpExtStorageDiagnose, list[list[Any]]]):
    """Rows of the asked fields, by name."""

    def run(self) -> list[list[object]]:
        fields, names = list(self.op.output_fields), set(self.op.names)
        answer = self.ctx.services.query("extstorage", [*fields, "name"], None)
        unknown = [field["name"] for field in answer["fields"] if field["kind"] == "unknown"]
        if unknown:
            raise errors.make_invalid_error(
                f"unknown fields of storage providers: {', '.join(unknown)}"
            )
        rows = ([value for _status, value in row] for row in answer["data"])
        return [row[:-1] for row in rows if not names or row[-1] in names]
