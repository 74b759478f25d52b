"""Requests of the tools for SSH: a JSON object on standard input."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import msgspec

from ganeti import errors
from ganeti.base import files, jsonio
from ganeti.paths import Paths
from ganeti.tools import entry

T = TypeVar("T", bound=msgspec.Struct)


class Work(Protocol):
    """Work of a tool; returns its exit code."""

    def __call__(self, *, dry_run: bool, say: Callable[[str], None]) -> int: ...


def make_parser(program: str, description: str) -> argparse.ArgumentParser:
    """The options that all of these tools have."""
    made = argparse.ArgumentParser(
        prog=program,
        description=f"{description} The request is a JSON object on standard input.",
        epilog="Exit codes: 0 done; 1 refused or failed; 2 wrong options.",
    )
    made.add_argument("--dry-run", action="store_true", help="only print what would change")
    made.add_argument("-v", "--verbose", action="store_true", help="print each change")
    made.add_argument("-d", "--debug", action="store_true", help="like --verbose")
    return made


def run(parser: argparse.ArgumentParser, argv: Sequence[str] | None, work: Work) -> int:
    """Do the work that the options ask for; 0 done, 1 refused or failed."""
    options = parser.parse_args(argv)

    def say(text: str) -> None:
        if options.verbose or options.debug or options.dry_run:
            print(f"{parser.prog}: {text}", file=sys.stderr)

    return entry.run(parser.prog, lambda: work(dry_run=options.dry_run, say=say))


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
