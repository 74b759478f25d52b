"""Requests of the tools for SSH: a JSON object on standard input."""

from __future__ import annotations

import re
import sys
from typing import TypeVar

import msgspec

from ganeti import errors
from ganeti.base import files, jsonio
from ganeti.paths import Paths

T = TypeVar("T", bound=msgspec.Struct)


def read_request(kind: type[T]) -> T:
    """The JSON object on standard input.

    Raises:
        ParameterError: it is none, a name in it is not known, or a value has the wrong type.
    """
    text = sys.stdin.read()
    try:
        return msgspec.convert(jsonio.loads(text), kind, strict=True)
    except errors.ParseError as err:
        raise errors.ParameterError(f"standard input is not JSON: {errors.text(err)}") from err
    except msgspec.ValidationError as err:
        raise errors.ParameterError(f"the request on standard input: {err}") from err


def check_cluster(paths: Paths, name: str, certificate: str | None) -> None:
    """Refuse a request of another cluster than the one that this server belongs to.

    Raises:
        OpPrereqError: name or certificate are those of another cluster.
    """
    known = paths.ssconf("cluster_name")
    if known.exists() and (here := files.read_text(known).strip()) != name:
        raise errors.make_state_error(f"this server belongs to cluster {here}, not to {name}")
    if certificate is None:
        return
    wanted = set(_certificates(certificate))
    if not wanted:
        raise errors.ParameterError("node_daemon_certificate has no certificate in it")
    have: set[str] = set()
    for file in (paths.server_cert, paths.ca_cert):
        if file.exists():
            have.update(_certificates(files.read_text(file)))
    if have and not wanted & have:
        raise errors.make_state_error(
            "node_daemon_certificate is neither that of this server nor of its cluster; remove"
            " what is left of another cluster with node-cleanup"
        )


def _certificates(text: str) -> list[str]:
    pattern = r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----"
    return [block.replace("\r", "") for block in re.findall(pattern, text, re.S)]
