"""check-cert-expired: tell a script whether a certificate has expired."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ganeti import constants, errors
from ganeti.base.clock import SYSTEM
from ganeti.net import certs, expiry

PROGRAM = "check-cert-expired"


def main(argv: Sequence[str] | None = None) -> int:
    """0 when the certificate has expired; 1 when it has not, or cannot be read."""
    file = parser().parse_args(argv).file
    try:
        info = certs.inspect(file)
    except errors.X509CertError as err:
        print(f"{PROGRAM}: {': '.join(map(str, err.args))}", file=sys.stderr)
        return constants.EXIT_FAILURE
    print(f"{file}: {expiry.judge(info)[1]}")
    expired = info.not_after <= SYSTEM.now()
    return constants.EXIT_SUCCESS if expired else constants.EXIT_FAILURE


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Tell whether the first certificate in a PEM file has expired.",
        epilog="Exit codes: 0 it has expired; 1 it has not, or cannot be read; 2 wrong options.",
    )
    made.add_argument("file", metavar="FILE", type=Path, help="PEM file with a certificate")
    return made


if __name__ == "__main__":
    sys.exit(main())
