"""The answer to a guest for a path. Pure.

The paths and their content are an interface: guests and images of others read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ganeti.base import jsonio
from ganeti.base.json_types import JsonObject
from ganeti.rpc.objects import InstanceMetadata

REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
}
_TEXT: Final = "text/plain; charset=utf-8"
_JSON: Final = "application/json"


@dataclass(frozen=True)
class Answer:
    """Status, type and content."""

    code: int
    body: bytes
    kind: str = _TEXT
    headers: Mapping[str, str] = field(default_factory=dict)


def refuse(code: int, text: str, **headers: str) -> Answer:
    """An error with a line of text."""
    return Answer(code, f"{text}\n".encode(), headers=headers)


def read(instance: InstanceMetadata, path: str) -> Answer:
    """The answer to GET; a path that ends in a slash is the same without it."""
    match path.rstrip("/").split("/"):
        case [""]:
            return _list("ganeti")
        case ["", "ganeti"]:
            return _list("latest")
        case ["", "ganeti", "latest"]:
            return _list("meta_data.json", "os/")
        case ["", "ganeti", "latest", "meta_data.json"]:
            return _json(_describe(instance))
        case ["", "ganeti", "latest", "os"]:
            return _list("parameters.json")
        case ["", "ganeti", "latest", "os", "parameters.json"]:
            return _json(_parameters(instance))
    return refuse(404, "there is nothing at this path; / lists what there is")


def _list(*names: str) -> Answer:
    return Answer(200, "".join(f"{name}\n" for name in names).encode())


def _json(value: object) -> Answer:
    return Answer(200, jsonio.answer_bytes(value), _JSON)


def _describe(instance: InstanceMetadata) -> JsonObject:
    return {
        "uuid": instance.uuid,
        "name": instance.name,
        "hostname": instance.name,
        "os": instance.os,
        "nics": [
            {"name": nic.name, "mac": nic.mac, "ip": nic.ip, "uuid": nic.uuid}
            for nic in instance.nics
        ],
    }


def _parameters(instance: InstanceMetadata) -> dict[str, tuple[object, str]]:
    """Each parameter with its value and who else may see it."""
    return {
        name: (value, visibility)
        for visibility, values in (
            ("public", instance.osparams_public),
            ("private", instance.osparams_private),
            ("secret", instance.osparams_secret),
        )
        for name, value in values.items()
    }
