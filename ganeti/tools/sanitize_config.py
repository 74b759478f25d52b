"""sanitize-config: a copy of the configuration that can be sent to a stranger."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ganeti import constants, errors, paths
from ganeti.base import files, jsonio
from ganeti.base.json_types import JsonObject
from ganeti.config import store
from ganeti.model import base
from ganeti.offline import data_directory
from ganeti.tools import entry
from ganeti.tools.anonymize import anonymize

PROGRAM = "sanitize-config"


def main(argv: Sequence[str] | None = None) -> int:
    """0 when the copy was written; 1 when there is no configuration, or it cannot be read."""
    options = parser().parse_args(argv)
    return entry.run(PROGRAM, lambda: _write(anonymize(read(options.path)), options.output))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Write a copy of the configuration without names and secrets, for a bug "
        "report. Names, addresses, tags, OS parameters, secrets and free text are"
        " replaced, the same one always by the same replacement.",
        epilog="UUIDs, sizes, states, times, paths of the system and parameters that are plain"
        " words or numbers stay. Exit codes: 0 done; 1 the configuration cannot be read; 2 wrong"
        " options.",
    )
    made.add_argument(
        "--path",
        type=Path,
        metavar="FILE",
        help="config.data of any version to read (default: the configuration of this node)",
    )
    made.add_argument(
        "--output", type=Path, metavar="FILE", help="file to write (default: standard output)"
    )
    return made


def read(path: Path | None) -> JsonObject:
    """The configuration in a file, or that of this node with what its journal has.

    Raises:
        GanetiError: it cannot be read.
    """
    if path is None:
        found: JsonObject = base.to_wire(store.read_config(paths.current(), edited=True).data)
        return found
    data = data_directory.read(path)
    if not isinstance(data, dict) or not isinstance(data.get("cluster"), dict):
        raise errors.ConfigurationError(f"{path} is not a cluster configuration")
    return data


def _write(data: JsonObject, path: Path | None) -> int:
    text = jsonio.format_pretty(data) + "\n"
    if path is None:
        sys.stdout.write(text)
    else:
        files.write_atomic(path, text, mode=0o600)
    return constants.EXIT_SUCCESS


if __name__ == "__main__":
    sys.exit(main())
