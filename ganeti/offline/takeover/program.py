"""ganeti-takeover: take over a cluster of Ganeti 2.16 to 3.1 while its guests run, or go back."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from ganeti import constants, errors, paths
from ganeti.base import files, remote_shell
from ganeti.base.text import plural
from ganeti.offline.refusal import Refused, warn
from ganeti.offline.takeover import (
    facts,
    findings,
    look,
    old_software,
    return_path,
    steps,
    work,
)
from ganeti.offline.takeover.finding import Finding, Kind
from ganeti.paths import Paths

PROGRAM = "ganeti-takeover"
_DESCRIPTION = """\
Take over a cluster of Ganeti 2.16 to 3.1 while its guests run, node by node, or go
back. check reads and changes nothing. prepare stops the old daemons of this node
and sets its data aside; then this software is installed. run converts the data,
adopts the guests and starts the daemons; the master comes first. back undoes both.
Each action can be repeated after it was interrupted. Guests run on all the time.
"""
_EXIT_CODES = """\
exit codes:
  0   done; check: nothing stands in the way
  1   refused or failed; each line says what is wrong and what to do
  2   wrong options
  5   no cluster is here
  13  not confirmed (--force)
"""
_SEND_TIMEOUT = 60.0


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description=_DESCRIPTION,
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("action", choices=list(_ACTIONS), help="what to do on this node")
    add("-f", "--force", action="store_true", help="do not ask")
    add("-v", "--verbose", action="store_true", help="check: also list what continues as it is")
    add(
        "--discard-changes",
        action="store_true",
        help="back: go back although the configuration was changed since the takeover",
    )
    add("--version", action="version", version=f"%(prog)s (ganeti) {constants.RELEASE_VERSION}")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program with these words (default: those of the process); the exit code."""
    options = command_line().parse_args(argv)
    try:
        if os.geteuid() != 0 and not paths.is_rooted():
            raise Refused(f"{PROGRAM} must be run by root", constants.EXIT_FAILURE)
        return _ACTIONS[options.action](_Run(options))
    except Refused as err:
        warn(PROGRAM, str(err))
        return err.code
    except errors.GanetiError as err:
        warn(PROGRAM, errors.text(err))
    except OSError as err:
        warn(PROGRAM, errors.text(files.failure(err)))
    except KeyboardInterrupt:
        warn(PROGRAM, f"Interrupted. Run {PROGRAM} {options.action} again, or {PROGRAM} back.")
    return constants.EXIT_FAILURE


def _say(text: str) -> None:
    print(text, flush=True)


class _Run:
    """One run of the program."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.where: Paths = paths.current()
        self.record = steps.load(self.where)

    # check -------------------------------------------------------------------------------

    def check(self) -> int:
        record = self.record
        if record is not None:
            _say(_stage_text(record))
            if "place" in record.done:
                return self._check_return(record)
        set_aside = work.data(self.where)
        known = look.read(self.where, set_aside if set_aside.exists() else None)
        if not known.cluster:
            raise Refused("no cluster of Ganeti is here", constants.EXIT_NOTCLUSTER)
        found = findings.examine(known)
        self._show(found.findings)
        stops = len(found.stops)
        end = "Nothing stands in the way." if not stops else f"{plural(stops, 'obstacle')}."
        _say(f"{_title(known)}: {end} Nothing was changed.")
        return constants.EXIT_FAILURE if stops else constants.EXIT_SUCCESS

    def _check_return(self, record: steps.Record) -> int:
        """Once the data are ours, all that can be asked is what stands in the way back."""
        for text in return_path.obstacles(self.where, record, discard=False):
            _say(f"{Kind.WARNS:7} back: {text}")
        _say("Nothing was changed.")
        return constants.EXIT_SUCCESS

    def _show(self, shown: Sequence[Finding]) -> None:
        for item in shown:
            if self.options.verbose or item.kind in (Kind.STOPS, Kind.WARNS):
                _say(str(item))
        if not self.options.verbose:
            for kind, text in ((Kind.CHANGES, "change"), (Kind.KEEPS, "keep")):
                count = sum(item.kind is kind for item in shown)
                if count:
                    _say(f"{text:7} {plural(count, 'line')}; -v shows them")

    # prepare -----------------------------------------------------------------------------

    def prepare(self) -> int:
        record = self.record
        if record is None:
            known = look.read(self.where)
            if not known.cluster:
                raise Refused("no cluster of Ganeti is here", constants.EXIT_NOTCLUSTER)
            self._refuse(findings.examine(known).findings)
            self._confirm(
                f"Stop the daemons of {known.cluster} on {known.host}? Its guests run on."
            )
            record = steps.Record(
                host=known.host,
                cluster=known.cluster,
                master=known.master,
                packages=known.packages,
            )
            steps.save(self.where, record)
        _refuse_return(record)
        steps.perform(self.where, record, work.preparation(self.where), _say)
        _say(f"{record.host} is prepared. Now install this software here, then type: {PROGRAM} run")
        return constants.EXIT_SUCCESS

    def _refuse(self, found: Sequence[Finding]) -> None:
        stops = [item for item in found if item.kind is Kind.STOPS]
        for item in stops:
            _say(str(item))
        if stops:
            raise Refused(
                f"{plural(len(stops), 'obstacle')} (listed above). Nothing was changed.",
                constants.EXIT_FAILURE,
            )

    def _confirm(self, question: str) -> None:
        if self.options.force:
            return
        if not sys.stdin.isatty():
            raise Refused(
                "no terminal to ask on: add --force. Nothing was changed.",
                constants.EXIT_CONFIRMATION,
            )
        if input(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
            raise Refused("Nothing was changed.", constants.EXIT_CONFIRMATION)

    # run ---------------------------------------------------------------------------------

    def run(self) -> int:
        record = self.record
        if record is None or "data" not in record.done:
            raise Refused(
                f"this node is not prepared: {PROGRAM} check, then {PROGRAM} prepare",
                constants.EXIT_FAILURE,
            )
        _refuse_return(record)
        if "start" not in record.done:
            self._check_run(record)
        steps.perform(self.where, record, work.takeover(self.where, record, _say), _say)
        guests = plural(len(work.adopted(self.where)), "guest")
        _say(f"{record.host} is taken over: {guests} adopted, none of them stopped.")
        if record.host == record.master:
            self._send(record)
        return constants.EXIT_SUCCESS

    def _check_run(self, record: steps.Record) -> None:
        if old_software.is_installed(self.where):
            raise Refused(
                "the old software is still installed: install this one in its place first, as"
                " root: apt-get install ./ganeti_*.deb",
                constants.EXIT_FAILURE,
            )
        if record.host != record.master:
            work.read_kit(self.where, record)
        known = look.read(self.where, work.data(self.where))
        seen = known.listeners
        own = set(known.own_daemons)
        ports = {name: port for name, port in look.ports().items() if name not in own}
        found = [*findings.find_listeners(seen, ports)]
        found += [item for item in findings.examine(known).stops if not _is_own(item)]
        if "place" not in record.done:
            self._refuse(found)

    def _send(self, record: steps.Record) -> None:
        """Send the other nodes their kits; failures are reported."""
        names = work.nodes_to_come(self.where)
        options = [
            f"-oGlobalKnownHostsFile={self.where.data / 'known_hosts'}",
            f"-oHostKeyAlias={record.cluster}",
        ]
        target = str(work.kit_file(self.where))
        for name in names:
            kit = work.kit_of(self.where, name)
            command = ["install", "-D", "-m", "600", "/dev/stdin", target]
            result = remote_shell.run(
                name, command, timeout=_SEND_TIMEOUT, input=kit.read_bytes(), options=options
            )
            if result.ok:
                _say(f"{name} has its kit: type there {PROGRAM} prepare, install, {PROGRAM} run")
            else:
                _say(
                    f"{name} did not get its kit ({result.explain()}): copy {kit} to {target}"
                    " there, mode 600"
                )
        if names:
            _say("The master daemon begins when more than half of the candidates are taken over.")

    # back --------------------------------------------------------------------------------

    def go_back(self) -> int:
        record = self.record
        if record is None:
            raise Refused("no takeover has begun on this node", constants.EXIT_FAILURE)
        if not record.back:
            found = [
                *return_path.obstacles(self.where, record, discard=self.options.discard_changes)
            ]
            for text in found:
                _say(f"stop    {text}")
            if found:
                raise Refused(
                    f"{plural(len(found), 'obstacle')} (listed above). Nothing was changed."
                    " --discard-changes gives up what was changed since the takeover.",
                    constants.EXIT_FAILURE,
                )
            self._confirm(f"Go back to the old software on {record.host}? Its guests run on.")
            record.back = True
            steps.save(self.where, record)
        steps.perform(self.where, record, return_path.way_back(self.where, record, _say), _say)
        return_path.finish(self.where)
        _say(f"{record.host} is back. What this software had here is in {self.where.takeover}.")
        return constants.EXIT_SUCCESS


def _refuse_return(record: steps.Record) -> None:
    if record.back:
        raise Refused(
            f"this node is on its way back: run {PROGRAM} back again to finish that",
            constants.EXIT_FAILURE,
        )


def _is_own(item: Finding) -> bool:
    """Whether a finding is about our daemons, which run once the node was taken over."""
    return item.subject in (constants.NODED, constants.MASTERD, constants.RAPI, constants.CONFD)


def _stage_text(record: steps.Record) -> str:
    if record.back:
        return f"{record.host} is on its way back; {PROGRAM} back continues."
    if "confirm" in record.done:
        return f"{record.host} is taken over; {PROGRAM} back goes back."
    if "place" in record.done:
        return f"The takeover of {record.host} was interrupted; {PROGRAM} run continues."
    if "data" in record.done:
        return f"{record.host} is prepared; {PROGRAM} run continues."
    return f"The preparation of {record.host} was interrupted; {PROGRAM} prepare continues."


def _title(known: facts.Facts) -> str:
    role = "the master of" if known.is_master else "a node of"
    return f"{known.host}, {role} {known.cluster}"


_ACTIONS: dict[str, Callable[[_Run], int]] = {
    "check": _Run.check,
    "prepare": _Run.prepare,
    "run": _Run.run,
    "back": _Run.go_back,
}


if __name__ == "__main__":
    sys.exit(main())
