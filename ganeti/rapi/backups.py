"""Backups in the repositories, of all instances or of one."""

from __future__ import annotations

from ganeti.base.json_types import JsonObject
from ganeti.rapi import schemas
from ganeti.rapi.route import Call, Route

FIELDS = (
    "repository", "instance", "instance_uuid", "id", "time", "mode", "consistency", "base",
    "disks", "size", "read", "stored", "proof", "proof_time", "booted",
)  # fmt: skip


def _read(call: Call, condition: list[str] | None) -> list[JsonObject]:
    """Rows as objects; of a repository that cannot be read only its name is known."""
    rows = call.luxi.query("backup", FIELDS, condition).data
    return [dict(zip(FIELDS, (value for _, value in row), strict=True)) for row in rows]


def _list_all(call: Call) -> list[JsonObject]:
    return _read(call, None)


def _list_one(call: Call) -> list[JsonObject]:
    return _read(call, ["==", "instance", call.name()])


_ANSWER = {
    "type": "array",
    "items": schemas.record(FIELDS),
    "description": "The oldest of an instance first; id is null where a repository cannot be read",
}

ROUTES = (
    Route("GET", "/2/backups", "Backups in the repositories that the master node reads", _list_all,
          access=("read", "write"), answer=_ANSWER),
    Route("GET", "/2/instances/{instance_name}/backups",
          "Backups of an instance, also of one that was removed", _list_one,
          access=("read", "write"), answer=_ANSWER),
)  # fmt: skip
