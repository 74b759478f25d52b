"""ganeti-doctor: what is missing or wrong on this server, with the command that cures it.

Libraries of others are imported late: where they are broken, that is the answer.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence

from ganeti import constants, paths
from ganeti.doctor.checks import software as software_checks
from ganeti.doctor.facts import Software, Wish
from ganeti.doctor.findings import Finding, Level, failures
from ganeti.doctor.looks import software
from ganeti.tools import entry

PROGRAM = "ganeti-doctor"
_COLOURS = {Level.OK: "32", Level.WARN: "33", Level.FAIL: "31"}


def main(argv: Sequence[str] | None = None) -> int:
    """0 when no check fails; 1 when one does, or it could not be done."""
    options = parser().parse_args(argv)
    return entry.run(PROGRAM, lambda: _run(options))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Check this server, before it joins a cluster or as a node. Each line says OK,"
        " WARN or FAIL, the subject, what was found and what to do. Nothing is changed. A FAIL"
        " keeps the cluster from working on this server; a WARN is something that an administrator"
        " should know. On a master candidate it reads the needs of the cluster from the "
        "configuration; elsewhere the options name them. gnt-cluster init and gnt-node add run "
        "those of these checks without which they would fail.",
        epilog="Exit codes: 0 no check fails, warnings aside; 1 a check fails, or this server could"
        " not be checked; 2 wrong options.",
    )
    add = made.add_argument
    add(
        "--format",
        choices=("text", "json"),
        default="text",
        help="format of the output: text for people, json for programs (default: %(default)s)",
    )
    add(
        "-q",
        "--quiet",
        action="store_true",
        help="do not print lines with OK",
    )
    add(
        "--enabled-hypervisors",
        metavar="NAME,...",
        type=_names,
        help="hypervisors that the cluster uses, or will use",
    )
    add(
        "--enabled-disk-templates",
        metavar="NAME,...",
        type=_names,
        help="disk templates that the cluster uses, or will use",
    )
    add("--vg-name", metavar="NAME", help="volume group for disks")
    add("--drbd-usermode-helper", metavar="PATH", help="program that the DRBD module must call")
    add("--bridges", metavar="NAME,...", type=_names, help="bridges that NICs of instances need")
    add("--master-netdev", metavar="NAME", help="device for the address of the cluster")
    return made


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


def _run(options: argparse.Namespace) -> int:
    where = paths.current()
    programs = software.read(where)
    found = list(software_checks.basics(programs))
    if not failures(found):
        found = _examine(where, options, programs)
    _show(found, options)
    return constants.EXIT_FAILURE if failures(found) else constants.EXIT_SUCCESS


def _examine(where: paths.Paths, options: argparse.Namespace, programs: Software) -> list[Finding]:
    from ganeti.doctor import examine

    return list(examine.examine_all(where, _wish(where, options), programs))


def _wish(where: paths.Paths, options: argparse.Namespace) -> Wish:
    """The needs of the cluster; options go before its configuration.

    Raises:
        OpPrereqError: an option names something that there is not.
    """
    from ganeti.config import parameters
    from ganeti.doctor import needs

    known = needs.here(where) or Wish()
    if options.enabled_hypervisors is not None:
        parameters.hypervisors(options.enabled_hypervisors)
    if options.enabled_disk_templates is not None:
        parameters.templates(options.enabled_disk_templates)
    hypervisors = known.hypervisors
    if options.enabled_hypervisors is not None:
        hypervisors = {
            name: (known.hypervisors or {}).get(name) or needs.default_parameters(name)
            for name in options.enabled_hypervisors
        }
    return Wish(
        hypervisors,
        known.templates
        if options.enabled_disk_templates is None
        else options.enabled_disk_templates,
        options.vg_name or known.volume_group,
        options.drbd_usermode_helper or known.helper,
        known.bridges if options.bridges is None else options.bridges,
        options.master_netdev or known.device,
    )


# what is shown ----------------------------------------------------------------------------------


def _show(found: Sequence[Finding], options: argparse.Namespace) -> None:
    shown = [each for each in found if not (options.quiet and each.level is Level.OK)]
    if options.format == "json":
        print(json.dumps([_plain(each) for each in shown], indent=2))
        return
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    for each in shown:
        level = f"{each.level:4}"
        if colour:
            level = f"\033[{_COLOURS[each.level]}m{level}\033[m"
        print(f"{level} {each.check:<12} {each.line}")


def _plain(finding: Finding) -> dict[str, str]:
    return {
        "check": finding.check,
        "level": str(finding.level),
        "text": finding.text,
        "remedy": finding.remedy,
    }


if __name__ == "__main__":
    sys.exit(main())
