"""What a guest gets for a path. Pure.

The paths and their content are an interface: guests and images of others read them.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ganeti.base import jsonio
from ganeti.rpc.objects import InstanceMetadata

REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    413: "Content Too Large",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
}
_TEXT: Final = "text/plain; charset=utf-8"
_JSON: Final = "application/json"
_TAR: Final = "application/x-tar"
#: Where a helper guest tells how its script ended.
RESULT: Final = "/ganeti/latest/os/result"


@dataclass(frozen=True)
class Answer:
    """Status, type and content."""

    code: int
    body: bytes
    kind: str = _TEXT
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Files:
    """What only a guest that installs an OS reads and writes."""

    #: the OS definition as a tar archive; None when there is nothing to install
    read_package: Callable[[], bytes | None] = lambda: None
    #: takes the exit code of the script; whether somebody waits for it
    write_result: Callable[[int], bool] = lambda code: False


def refuse(code: int, text: str, **headers: str) -> Answer:
    """An error with a line for who reads it."""
    return Answer(code, f"{text}\n".encode(), headers=headers)


def read(instance: InstanceMetadata, path: str, files: Files) -> Answer:
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
            package = ("environment", "package") if instance.environment else ()
            return _list("parameters.json", *package)
        case ["", "ganeti", "latest", "os", "parameters.json"]:
            return _json(_parameters(instance))
        case ["", "ganeti", "latest", "os", "environment"] if instance.environment:
            return Answer(200, _shell(instance.environment).encode())
        case ["", "ganeti", "latest", "os", "package" | "os-install-package"]:
            package_file = files.read_package()
            if package_file is not None:
                return Answer(200, package_file, _TAR)
    return refuse(404, "there is nothing at this path; / lists what there is")


def write(path: str, body: bytes, files: Files) -> Answer:
    """The answer to PUT and POST: only the result of an installation is taken."""
    if path != RESULT:
        return refuse(405, "only GET is possible here", Allow="GET, HEAD")
    text = body.decode("ascii", "replace").strip()
    if not (text.isdigit() and len(text) <= 3 and int(text) < 256):
        return refuse(400, "send the exit code of the script, a number from 0 to 255")
    if not files.write_result(int(text)):
        return refuse(404, "no OS is being installed")
    return Answer(200, b"")


def _list(*names: str) -> Answer:
    return Answer(200, "".join(f"{name}\n" for name in names).encode())


def _json(value: Any) -> Answer:
    return Answer(200, jsonio.answer_bytes(value), _JSON)


def _describe(instance: InstanceMetadata) -> dict[str, Any]:
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


def _parameters(instance: InstanceMetadata) -> dict[str, tuple[Any, str]]:
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


def _shell(environment: Mapping[str, str]) -> str:
    """Variables as lines for a shell to source."""
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in sorted(environment.items()))
