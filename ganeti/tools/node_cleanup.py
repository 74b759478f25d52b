"""node-cleanup: make a server that has left its cluster forget the cluster, and all its secrets."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ganeti import constants, paths
from ganeti.base import files, services
from ganeti.net import hosts_file
from ganeti.node import membership
from ganeti.paths import Paths
from ganeti.tools import entry

PROGRAM = "node-cleanup"


def main(argv: Sequence[str] | None = None) -> int:
    """0 when nothing of the cluster is left; 1 when it was not confirmed, or failed."""
    options = parser().parse_args(argv)
    return entry.run(PROGRAM, lambda: _clean(paths.current(), yes=options.yes_do_it))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Remove the data of the cluster from this server, after gnt-node remove or "
        "when that could not reach the server. It stops the daemons and removes configuration, "
        "jobs, certificates and secrets. Disks of instances, logs and files in /etc/ganeti stay.",
        epilog="Exit codes: 0 done; 1 not confirmed, or something could not be removed; 2 wrong"
        " options.",
    )
    made.add_argument(
        "--yes-do-it", action="store_true", help="confirm it; the data cannot be restored"
    )
    made.add_argument(
        "--no-backup", action="store_true", help="accepted, no effect: no file is ever kept"
    )
    return made


def _clean(where: Paths, *, yes: bool) -> int:
    found = sorted(_files(where))
    if not yes:
        name = _name(where)
        text = f"{len(found)} files of {name} would be removed; --yes-do-it removes them for good"
        print(f"{PROGRAM}: {text}", file=sys.stderr)
        return constants.EXIT_FAILURE
    for service in reversed(services.ALL.values()):
        if services.stop(service.name, where):
            print(f"Stopped {service.name}")
    hosts_file.leave(where)
    # Again, as they may have written something at the end.
    found = sorted(_files(where))
    membership.remove(found)
    for directory in _directories(where):
        shutil.rmtree(directory, ignore_errors=True)
    print(f"Removed {len(found)} files")
    return constants.EXIT_SUCCESS


def _files(where: Paths) -> Iterator[Path]:
    known = {*membership.cluster_files(where), where.watcher_certificates}
    known |= {*where.data.glob("*.onetime.conf"), where.luxi_socket, where.luxi_socket_legacy}
    # Copies that an upgrade or an administrator set aside have the same secrets.
    own = [path.name for path in known if path.parent == where.data]
    known |= {copy for name in own for copy in where.data.glob(f"{name}.*")}
    yield from (path for path in known if path.exists() or path.is_symlink())


def _directories(where: Paths) -> Iterator[Path]:
    """Directories that only hold what belongs to the cluster."""
    yield from (where.queue, where.history, where.previous_crypto, where.rapi)
    yield from (where.run / "crypto", where.run_rights)


def _name(where: Paths) -> str:
    name = ""
    with contextlib.suppress(OSError):
        name = files.read_text(where.ssconf("cluster_name")).strip()
    return f"cluster {name}" if name else "a cluster"


if __name__ == "__main__":
    sys.exit(main())
