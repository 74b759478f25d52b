"""Add a check of ``ganeti-doctor``, run the program, and let ``gnt-cluster init`` refuse."""

from __future__ import annotations

import platform
from pathlib import Path

from own_package import OwnPackage

ROWS = ("check of `ganeti-doctor`",)

FACT = """    #: whether something has marked it as unfit
    tainted: bool = False
"""
LOOK = """        tainted=_read(where.under("/sys/tainted")).strip() == "1",
"""
CALL = "    yield from tainted(facts)\n"
JUDGEMENT = '''def tainted(facts: Kernel) -> Iterator[Finding]:
    """A kernel that is unfit."""
    if facts.tainted:
        yield fail("taint", f"kernel {facts.release} is tainted", "reboot")
    else:
        yield ok("taint", "none")


'''
FOR_INIT = "        *kernel_checks.tainted(kernel.read(where, wish)),\n"

RUN = """
import contextlib, io, json

from ganeti import errors, paths
from ganeti.bootstrap import init
from ganeti.doctor import examine
from ganeti.doctor.facts import Wish
from ganeti.tools import doctor

where = paths.current()
mark = where.under("/sys/tainted")
mark.parent.mkdir(parents=True)
for word in "01":
    mark.write_text(word)
    for form in ("text", "json"):
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            code = doctor.main(["--format", form, "--enabled-hypervisors", "fake",
                                "--enabled-disk-templates", "file"])
        if form == "json":
            print([item for item in json.loads(shown.getvalue()) if item["check"] == "taint"])
        else:
            print(*[line for line in shown.getvalue().splitlines() if "taint" in line])
    try:
        examine.refuse(examine.before_cluster(where, Wish(templates=("file",))))
        print("a cluster may be made")
    except errors.OpPrereqError as err:
        print("refused:", err.args[0])
print("code:", code)
"""


def test_a_check_is_shown_and_refuses_a_cluster(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.insert("doctor/facts.py", FACT, before="    #: whether the processor shows")
    package.insert("doctor/looks/kernel.py", LOOK, before="        drbd=version,")
    package.insert("doctor/checks/kernel.py", CALL, before="    yield from drbd(facts, wish)")
    package.insert("doctor/checks/kernel.py", JUDGEMENT, before="def hypervisors(")
    package.insert(
        "doctor/examine.py", FOR_INIT, before="        *kernel_checks.drbd(kernel.read(where, Wish("
    )
    said = package.output(RUN, tmp_path / "root")
    assert [line.replace(platform.release(), "KERNEL") for line in said] == [
        "OK   taint        none",
        "[{'check': 'taint', 'level': 'OK', 'text': 'none', 'remedy': ''}]",
        "a cluster may be made",
        "FAIL taint        kernel KERNEL is tainted: reboot",
        "[{'check': 'taint', 'level': 'FAIL', 'text': 'kernel KERNEL is tainted', 'remedy':"
        " 'reboot'}]",
        "refused: kernel KERNEL is tainted: reboot",
        "code: 1",
    ]
    assert package.touched == {
        "doctor/facts.py",
        "doctor/looks/kernel.py",
        "doctor/checks/kernel.py",
        "doctor/examine.py",
    }
