"""kvm-console-wrapper: a terminal on the console of a guest of kvm; a paused guest continues."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ganeti import errors, paths
from ganeti.hypervisor import host
from ganeti.hypervisor.kvm import console
from ganeti.hypervisor.kvm.runtime import Store
from ganeti.tools import entry

PROGRAM = "kvm-console-wrapper"
_USAGE = (
    "give the name of an instance, or what Ganeti gives: the path of socat, the name, the socket of"
    " the monitor, and two addresses for socat"
)


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status of the console; 1 if the guest does not run here, 2 for a wrong call."""
    words = parser().parse_args(argv).words
    if len(words) not in (1, 5):
        print(f"{PROGRAM}: {_USAGE}", file=sys.stderr)
        return 2
    return entry.run(PROGRAM, lambda: _connect(words[0] if len(words) == 1 else words[1]))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        usage="%(prog)s INSTANCE | %(prog)s SOCAT INSTANCE MONITOR ADDRESS ADDRESS",
        description="Connect the terminal to the serial console of a guest of kvm on this node. A"
        " guest that is paused continues first. Ctrl-] ends the connection. Five arguments are "
        "accepted, as in Ganeti; only the name of the instance is used.",
        epilog="Exit codes: 0 the connection ended; 1 the guest does not run here; 2 wrong call.",
    )
    made.add_argument("words", nargs="+", metavar="INSTANCE", help="name of the instance")
    return made


def _connect(name: str) -> int:
    host.check_instance_name(name)
    store = Store(paths.current().kvm)
    serial = store.socket(name, "serial")
    if not serial.exists():
        raise errors.HypervisorError(
            f"instance {name} does not run on this node, or has no serial console"
        )
    if _resume(store, name):
        print(f"Instance {name} is paused; it continues now", file=sys.stderr)
    return console.main([str(serial)])


def _resume(store: Store, name: str) -> bool:
    """Let a guest go on, and say whether it was paused."""
    with store.control(name) as qmp:
        if qmp.command("query-status")["status"] not in ("paused", "prelaunch"):
            return False
        qmp.command("cont")
    return True


if __name__ == "__main__":
    sys.exit(main())
