"""Read a cluster from a remote API.

The certificate of the server is verified unless ``--insecure`` is given: against the file of
``--ca-file``, or against what this machine trusts. Passwords come from a file; in an address they
work as they always did, but every user of this machine can see them there.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ganeti import errors
from ganeti.base import jsonio
from ganeti.base.json_types import JsonObject
from ganeti.htools import objects
from ganeti.htools.options import UsageError, Values
from ganeti.placement.facts import Cluster
from ganeti.rapi.client_link import CertificateError, GanetiApiError, Link, Settings

_PORT = 5080
_PATHS = {
    "groups": "/2/groups",
    "nodes": "/2/nodes",
    "instances": "/2/instances",
    "info": "/2/info",
}


class RemoteError(errors.GenericError):
    """The remote API does not answer, or refuses."""


@dataclass(frozen=True, slots=True)
class Remote:
    """The address of a remote API, with user and password."""

    host: str
    port: int
    user: str | None
    password: str | None
    settings: Settings
    #: a directory with recorded answers instead
    directory: Path | None = None

    @classmethod
    def from_values(cls, values: Values, address: str | None = None) -> Remote:
        """Make it from the command line; raises :class:`UsageError`."""
        text = address or str(values.get("master"))
        settings = Settings(system=True, verify_hostname=True, connect_timeout=15.0, timeout=60.0)
        if "ca_file" in values:
            settings = Settings(Path(values.get("ca_file")), False, True, 15.0, 60.0)
        if "insecure" in values:
            settings = Settings(None, False, False, 15.0, 60.0)
        if text.startswith("file://"):
            return cls("", 0, None, None, settings, Path(text.removeprefix("file://")))
        split = urlsplit(text if "://" in text else f"https://{text}")
        try:
            host, port = split.hostname, split.port or _PORT
        except ValueError as err:
            raise UsageError(f"'{text}' is not an address: {err}") from err
        if split.scheme != "https" or not host:
            raise UsageError(
                f"'{text}' is not an address; must be NAME, NAME:PORT or https://NAME:PORT"
            )
        user = unquote(split.username) if split.username else None
        password = unquote(split.password) if split.password else None
        if "credentials" in values:
            user, password = read_credentials(Path(values.get("credentials")))
        return cls(host, port, user, password, settings)


def read_credentials(path: Path) -> tuple[str, str]:
    """User and password from a file that only its owner can read."""
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise UsageError(f"{path}: others can read the password; run: chmod 600 {path}")
    user, found, password = path.read_text(encoding="utf-8").strip().partition(":")
    if not found:
        raise UsageError(f"{path}: must be USER:PASSWORD")
    return user, password


def read(remote: Remote, static_memory: int) -> Cluster:
    """Ask the remote API; raises :class:`RemoteError`."""
    answers = _read_recorded(remote.directory) if remote.directory else _query(remote)
    nodes = [objects.flatten(raw) for raw in _list(answers, "nodes")]
    instances = []
    for raw in _list(answers, "instances"):
        item = objects.flatten(raw)
        item.setdefault("be/memory", item.get("be/maxmem"))
        if isinstance(raw.get("oper_ram"), int | float):
            item["be/memory"] = raw["oper_ram"]
        instances.append(item)
    info = answers["info"]
    if not isinstance(info, dict):
        raise RemoteError("the answer to info is not an object")
    return objects.build(_list(answers, "groups"), nodes, instances, info, static_memory)


def _list(answers: Mapping[str, object], name: str) -> list[JsonObject]:
    found = answers[name]
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise RemoteError(f"the answer to {name} is not a list of objects")
    return found


def _read_recorded(directory: Path) -> JsonObject:
    return {name: jsonio.loads((directory / f"{name}.json").read_bytes()) for name in _PATHS}


def _query(remote: Remote) -> JsonObject:
    try:
        link = Link(
            remote.host,
            remote.port,
            settings=remote.settings,
            username=remote.user,
            password=remote.password,
        )
    except GanetiApiError as err:
        raise RemoteError(f"{remote.host}: {err}") from err
    try:
        return {
            name: link.request("GET", path, [] if name == "info" else [("bulk", "1")])
            for name, path in _PATHS.items()
        }
    except CertificateError as err:
        hint = "give its authority with --ca-file FILE, or do not verify it with --insecure"
        raise RemoteError(f"{err}; {hint}") from err
    except GanetiApiError as err:
        raise RemoteError(f"{remote.host}: {err}") from err
    finally:
        link.close()
