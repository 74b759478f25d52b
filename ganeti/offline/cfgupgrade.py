"""cfgupgrade: bring the data directory of another version to ours, or the configuration back."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

from ganeti import constants, errors, paths
from ganeti.base import daemon, files, jsonio, sealed_file
from ganeti.base.clock import SYSTEM
from ganeti.base.text import plural
from ganeti.config import store
from ganeti.config.upgrade import downgrade, upgrade, versions
from ganeti.config.upgrade.report import Report
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.offline import surroundings
from ganeti.offline.data_directory import DataDirectory
from ganeti.offline.refusal import Refused, warn

PROGRAM = "cfgupgrade"
_DESCRIPTION = """\
Bring the data directory of a cluster of version 2.7 to 3.1 to this version, on its
master node, while its daemons do not run. The old configuration is kept beside the
new one. With --downgrade, go back. See doc/admin/from-ganeti.md.
"""
_EXIT_CODES = """\
exit codes:
  0   done, or nothing to do
  1   refused or failed; config.data is as it was
  2   wrong options
  5   there is no config.data: no cluster, or no master candidate
  11  another node is the master (--ignore-hostname)
  13  not confirmed (--force)
"""


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description=_DESCRIPTION,
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("-n", "--dry-run", action="store_true", help="list what would be done and change nothing")
    add("-f", "--force", action="store_true", help="do not ask")
    add("-v", "--verbose", action="store_true", help="list each change")
    add("-d", "--debug", action="store_true", help="show details of errors")
    add("--path", metavar="DIR", help="data directory (default: that of this node)")
    add("--ignore-hostname", action="store_true", help="continue although this is not the master")
    add(
        "--no-verify",
        action="store_true",
        help="continue although the new configuration has defects",
    )
    add("--drop-unknown", action="store_true", help="drop keys that no version knows")
    add("--downgrade", action="store_true", help="go back to an older version")
    newest = versions.text(versions.TARGETS[0])
    others = ", ".join(versions.text(version) for version in versions.TARGETS)
    add("--to", metavar="VERSION", help=f"with --downgrade: one of {others} (default: {newest})")
    add("--version", action="version", version=f"%(prog)s (ganeti) {constants.RELEASE_VERSION}")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program with these words (default: those of the process); the exit code."""
    parser = command_line()
    options = parser.parse_args(argv)
    if options.to and not options.downgrade:
        parser.error("--to belongs to --downgrade")
    logging.basicConfig(
        level=logging.DEBUG if options.debug else logging.WARNING, format="%(message)s"
    )
    try:
        return _Run(options).run()
    except Refused as err:
        warn(PROGRAM, str(err))
        return err.code
    except errors.GanetiError as err:
        warn(PROGRAM, f"{errors.text(err)}\nNothing was changed.")
    except OSError as err:
        warn(PROGRAM, f"{errors.text(files.failure(err))}\nThe configuration is as it was.")
    except KeyboardInterrupt:
        warn(PROGRAM, "Interrupted. The configuration is as it was.")
    return constants.EXIT_FAILURE


class _Run:
    """One run of the program."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.directory = DataDirectory.find(options.path)
        self.paths = self.directory.paths

    def run(self) -> int:
        self._check_place()
        raw = self.directory.read()
        version = versions.find_version(raw)
        if self.options.downgrade:
            return self._downgrade(version)
        if version == constants.CONFIG_VERSION:
            return self._current()
        return self._upgrade(raw, version)

    def _check_place(self) -> None:
        if not os.path.lexists(self.paths.config_file):
            raise Refused(
                f"there is no {self.paths.config_file}: this node is not a master candidate, or"
                " --path is needed",
                constants.EXIT_NOTCLUSTER,
            )
        name_file = self.paths.ssconf("master_node")
        if not self.options.ignore_hostname and self.directory.whole and name_file.exists():
            master = files.read_text(name_file).strip()
            if master != paths.hostname():
                raise Refused(
                    f"this node is {paths.hostname()}, but {master} is the master of the cluster:"
                    " go there, or add --ignore-hostname if the name is the wrong one",
                    constants.EXIT_NOTMASTER,
                )
        if not self.options.dry_run:
            self.directory.refuse_running()

    def _current(self) -> int:
        """The file is ours already; look at what is in it."""
        config = store.read_config(self.paths)
        found = upgrade.problems(config)
        for text in found:
            warn(PROGRAM, f"problem: {text}")
        print(
            f"{self.paths.config_file} is of version {versions.text(constants.CONFIG_VERSION)}"
            " already: nothing to do"
        )
        return constants.EXIT_FAILURE if found and not self.options.no_verify else 0

    # up ----------------------------------------------------------------------------------

    def _upgrade(self, raw: object, version: int) -> int:
        surroundings.check(self.directory)
        self.directory.refuse_jobs()
        found = upgrade.upgrade(raw)
        if found.config.cluster.master_node not in found.config.nodes:
            raise errors.ConfigurationError("cluster/master_node is not a node of the cluster")
        label = _label(version)
        steps = [step.text for step in surroundings.steps(self.directory, found.config, label)]
        certificates = surroundings.lacks_authority(self.directory)
        if certificates:
            steps.insert(0, "an authority and certificates of the master are made")
        self._show(found.report, steps)
        self._check_unknown(found.report)
        self._verify(found.config)
        if self.options.dry_run:
            return self._report_dry_run()
        self._confirm(
            f"Upgrade {self.paths.config_file} from {versions.text(version)}"
            f" to {versions.text(constants.CONFIG_VERSION)}?"
        )
        with self._keep_master_away():
            backup = files.set_aside(self.paths.config_file, label, keep=True)
            config = found.config
            if certificates:
                surroundings.make_certificates(self.paths, config, label)
            if self.directory.whole:
                config = surroundings.accept_master(self.paths, config)
            for step in surroundings.steps(self.directory, config, label):
                step.do()
            self._write(base.to_wire(config.data))
        self._report_success(version, constants.CONFIG_VERSION, found.report, str(backup))
        others = [node.name for node in config.nodes.values() if node is not config.master]
        if certificates and others:
            print(
                "The other nodes have no certificates of this software yet. Start the master"
                " daemon with --no-voting --yes-do-it, then take each of them in again:"
            )
            print("\n".join(f"  gnt-node add --readd {name}" for name in sorted(others)))
        return constants.EXIT_SUCCESS

    def _check_unknown(self, report: Report) -> None:
        if report.unknown and not self.options.drop_unknown:
            raise errors.ConfigurationError(
                "keys that no version knows, and that this software has no place for:\n"
                + "".join(f"  {path}\n" for path in report.unknown)
                + "Add --drop-unknown to leave them out."
            )

    # down --------------------------------------------------------------------------------

    def _downgrade(self, version: int) -> int:
        if version != constants.CONFIG_VERSION:
            raise errors.ConfigurationError(
                f"{self.paths.config_file} is of version {versions.text(version)}; only one of"
                f" {versions.text(constants.CONFIG_VERSION)} can be taken back"
            )
        target = versions.target(self.options.to or versions.text(versions.TARGETS[0]))
        self.directory.refuse_jobs()
        config = store.read_config(self.paths)
        found = downgrade.downgrade(config, target)
        journal = self.paths.journal_file
        self._show(found.report, [f"{journal} is set aside"] if journal.exists() else [])
        self._verify(config)
        if self.options.dry_run:
            return self._report_dry_run()
        self._confirm(f"Take {self.paths.config_file} back to {versions.text(target)}?")
        with self._keep_master_away():
            label = _label(version)
            backup = files.set_aside(self.paths.config_file, label, keep=True)
            self._write(found.raw)
            if journal.exists():
                files.set_aside(journal, label)
        self._report_success(version, target, found.report, str(backup))
        return constants.EXIT_SUCCESS

    # both --------------------------------------------------------------------------------

    def _show(self, report: Report, steps: Sequence[str]) -> None:
        if self.options.verbose or self.options.dry_run:
            for change in report.changes:
                print(change)
            for text in steps:
                print(text)
        for text in report.warnings:
            warn(PROGRAM, f"warning: {text}")

    def _verify(self, config: Config) -> None:
        found = upgrade.problems(config)
        if not found:
            return
        for text in found:
            warn(PROGRAM, f"problem: {text}")
        if not self.options.no_verify:
            raise errors.ConfigVerifyError(
                f"the configuration has {plural(len(found), 'defect')} (listed above): repair it"
                " with the software that it is of, or add --no-verify"
            )

    def _report_dry_run(self) -> int:
        print("Nothing was changed (--dry-run).")
        return constants.EXIT_SUCCESS

    def _confirm(self, question: str) -> None:
        if self.options.force:
            return
        if not sys.stdin.isatty():
            raise Refused(
                "no terminal to ask on: add --force. Nothing was changed.",
                constants.EXIT_CONFIRMATION,
            )
        print(
            "Make sure that there is a copy of the whole data directory, and that no daemon of"
            " the cluster runs on any node."
        )
        if input(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
            raise Refused("Nothing was changed.", constants.EXIT_CONFIRMATION)

    @contextlib.contextmanager
    def _keep_master_away(self) -> Iterator[None]:
        """Keep a master daemon from starting meanwhile."""
        place: AbstractContextManager[None] = nullcontext()
        if self.directory.whole:
            place = _hold(daemon.PidFile(self.paths.pid_file(constants.MASTERD)))
        with place:
            yield

    def _write(self, raw: object) -> None:
        path = self.paths.config_file
        state = path.stat()
        owner = {"uid": state.st_uid, "gid": state.st_gid}
        sealed_file.write(path, jsonio.dumps(raw), mode=0o640, **owner)

    def _report_success(self, old: int, new: int, report: Report, backup: str) -> None:
        print(
            f"{self.paths.config_file} was of version {versions.text(old)} and is of"
            f" {versions.text(new)} now: {plural(len(report.changes), 'change')}. The old one is in"
            f" {backup}"
        )


@contextlib.contextmanager
def _hold(pid_file: daemon.PidFile) -> Iterator[None]:
    pid_file.acquire()
    try:
        yield
    finally:
        pid_file.release()


def _label(version: int) -> str:
    """Part of the names of files that are set aside: ``backup-3.0-20250131T120000``."""
    moment = time.strftime("%Y%m%dT%H%M%S", time.localtime(SYSTEM.now()))
    return f"backup-{versions.text(version)}-{moment}"


if __name__ == "__main__":
    sys.exit(main())
