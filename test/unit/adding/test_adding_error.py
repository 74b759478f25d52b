"""Add an error in the file that ``doc/adding.md`` names, and follow it to everybody who sees it."""

from __future__ import annotations

from pathlib import Path

from own_package import OwnPackage

ROWS = ("error",)

ERROR = '''class GuestAsleepError(HypervisorError):
    """The guest sleeps; wake it up first."""

    exit_code = 17
    http_status = 423
    known_as = "HypervisorError"


'''

#: Who carries an error: job files and LUXI, node calls, the commands, the remote API.
CARRIERS = """
from ganeti import errors
from ganeti.base import jsonio
from ganeti.cli import failures
from ganeti.rapi import failures as http

err = errors.GuestAsleepError("web1 sleeps", 5)
print("stored:", jsonio.dumps(errors.encode_known(err)))
there = errors.decode(jsonio.loads(jsonio.dumps(errors.encode(err))))
print("decoded:", type(there).__name__, there.args, errors.text(there))
print("command:", failures.exit_code(there), failures.lines(there))
print("http:", http.status_of(there), http.text_of(there))
"""


def test_an_error_in_one_file_is_carried_everywhere(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.insert("errors.py", ERROR, before="class HotplugError(")
    assert package.output(CARRIERS, tmp_path / "root") == [
        'stored: ["HypervisorError",["web1 sleeps",5]]',
        "decoded: GuestAsleepError ('web1 sleeps', 5) web1 sleeps, 5",
        "command: 17 ['web1 sleeps, 5']",
        "http: 423 web1 sleeps, 5",
    ]
    assert package.touched == {"errors.py"}
