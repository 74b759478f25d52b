"""daemon-util: starts, stops and checks the daemons of this node, for scripts and for cron.

Exit codes: 0 done, or yes; 1 it failed, or no; 2 the command line is wrong. Actions may be written
with ``-`` or ``_``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

from ganeti import constants, errors, paths
from ganeti.base import files, releases, services
from ganeti.bootstrap import switch_version
from ganeti.paths import Paths

PROGRAM = "daemon-util"
_Args = Sequence[str]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one action; the exit code."""
    parser = command_line()
    options, rest = parser.parse_known_args(argv)
    action = options.action.replace("_", "-")
    if action not in _ACTIONS:
        parser.error(f"unknown action {options.action!r}; see {PROGRAM} --help")
    function, arguments, _help = _ACTIONS[action]
    rest = [*options.arguments, *rest]
    if arguments and not rest:
        parser.error(f"{action} needs an argument: {arguments}")
    if arguments == "DAEMON" and action != "is-daemon-name" and rest[0] not in services.ALL:
        parser.error(f"unknown daemon {rest[0]!r}; choose from {', '.join(services.ALL)}")
    try:
        return function(paths.current(), rest)
    except errors.GanetiError as err:
        print(f"{PROGRAM}: {errors.text(err)}", file=sys.stderr)
    except OSError as err:
        print(f"{PROGRAM}: {errors.text(files.failure(err))}", file=sys.stderr)
    return constants.EXIT_FAILURE


def command_line() -> argparse.ArgumentParser:
    width = max(map(len, _ACTIONS))
    lines = [f"  {name:{width}}  {text}" for name, (_f, _a, text) in _ACTIONS.items()]
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Start, stop and check the daemons of this node. Where systemd manages them, "
        "it uses systemd.",
        epilog="\n".join(["actions:", *lines]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", metavar="ACTION", help="what to do; see below")
    parser.add_argument("arguments", nargs="*", metavar="ARGUMENT", help="such as a daemon")
    return parser


def _say(lines: Sequence[object]) -> int:
    for line in lines:
        print(line)
    return constants.EXIT_SUCCESS


def _exit(yes: bool) -> int:
    return constants.EXIT_SUCCESS if yes else constants.EXIT_FAILURE


def _start(where: Paths, args: _Args) -> int:
    services.start(args[0], where, *args[1:])
    return constants.EXIT_SUCCESS


def _stop(where: Paths, args: _Args) -> int:
    services.stop(args[0], where)
    return constants.EXIT_SUCCESS


def _start_master(where: Paths, args: _Args) -> int:
    for problem in services.start_master(where, *args):
        print(f"{PROGRAM}: {problem}", file=sys.stderr)
    return constants.EXIT_SUCCESS


def _stop_master(where: Paths, _args: _Args) -> int:
    services.stop_master(where)
    return constants.EXIT_SUCCESS


def _start_all(where: Paths, _args: _Args) -> int:
    """Start what belongs on this node; a candidate that is not the master does not fail."""
    code = constants.EXIT_SUCCESS
    for service in services.ALL.values():
        if not services.is_wanted(service, where):
            continue
        try:
            services.start(service.name, where)
        except errors.OpExecError as err:
            if service.of_master and not services.is_running(constants.MASTERD, where):
                print(f"{PROGRAM}: {service.name} is not started: {errors.text(err)}")
                break
            print(f"{PROGRAM}: {errors.text(err)}", file=sys.stderr)
            code = constants.EXIT_FAILURE
    return code


def _stop_all(where: Paths, _args: _Args) -> int:
    for name in reversed(services.ALL):
        services.stop(name, where)
    return constants.EXIT_SUCCESS


def _rotate(where: Paths, args: _Args) -> int:
    for name in args or services.ALL:
        services.reopen_logs(name, where)
    return constants.EXIT_SUCCESS


def _check_config(where: Paths, _args: _Args) -> int:
    """Whether this node belongs to a cluster."""
    missing = [path for path in (where.server_cert, where.ca_cert) if not path.exists()]
    for path in missing:
        print(f"{PROGRAM}: {path} is missing; this node belongs to no cluster", file=sys.stderr)
    return _exit(not missing)


def _check_exitcode(_where: Paths, args: _Args) -> int:
    """Judge the exit code of a daemon; 11 is not a failure on a candidate."""
    if args[0] == str(constants.EXIT_SUCCESS):
        return constants.EXIT_SUCCESS
    if args[0] == str(constants.EXIT_NOTMASTER):
        print("not started: this node is not the master")
        return constants.EXIT_SUCCESS
    print(f"failed with exit code {args[0]}")
    return constants.EXIT_FAILURE


def _switch_version(where: Paths, args: _Args) -> int:
    version = releases.parse(args[0])
    switch_version.switch(where, version)
    print(f"Version {version} is in use")
    return constants.EXIT_SUCCESS


def _reload_ssh_keys(_where: Paths, _args: _Args) -> int:
    command = ["systemctl", "reload", "ssh.service"]
    try:
        return _exit(subprocess.run(command, check=False, timeout=30).returncode == 0)
    except (OSError, subprocess.TimeoutExpired) as err:
        raise errors.OpExecError(f"cannot reload sshd: {err}") from err


_Action = tuple[Callable[[Paths, _Args], int], str, str]

_ACTIONS: Mapping[str, _Action] = {
    "start": (_start, "DAEMON", "start a daemon unless it runs; options for it may follow"),
    "stop": (_stop, "DAEMON", "stop a daemon"),
    "check": (
        lambda where, args: _exit(services.is_running(args[0], where)),
        "DAEMON",
        "whether a daemon runs (exit code 0 or 1)",
    ),
    "check-and-start": (_start, "DAEMON", "the same as start"),
    "start-master": (
        _start_master,
        "",
        "start the daemons of the master; options of ganeti-masterd may follow, such as"
        " --no-voting --yes-do-it, which starts it without a vote",
    ),
    "stop-master": (_stop_master, "", "stop the daemons of the master"),
    "start-all": (_start_all, "", "start all daemons that belong on this node"),
    "stop-all": (_stop_all, "", "stop all daemons"),
    "is-daemon-name": (
        lambda _where, args: _exit(args[0] in services.ALL),
        "DAEMON",
        "whether there is such a daemon (exit code 0 or 1)",
    ),
    "list-start-daemons": (
        lambda _where, _args: _say(list(services.ALL)),
        "",
        "names of the daemons, in the order in which they start",
    ),
    "list-stop-daemons": (
        lambda _where, _args: _say(list(reversed(services.ALL))),
        "",
        "names of the daemons, in the order in which they stop",
    ),
    "daemon-pidfile": (
        lambda where, args: _say([where.pid_file(args[0])]),
        "DAEMON",
        "path of the pid file",
    ),
    "daemon-executable": (
        lambda where, args: _say([" ".join(services.ALL[args[0]].argv(where))]),
        "DAEMON",
        "command line of a daemon",
    ),
    "rotate-logs": (_rotate, "DAEMON", "let a daemon reopen its log"),
    "rotate-all-logs": (lambda where, _args: _rotate(where, []), "", "the same for all daemons"),
    "reload-ssh-keys": (_reload_ssh_keys, "", "let sshd read its host keys again"),
    "check-config": (_check_config, "", "whether this node belongs to a cluster"),
    "check-exitcode": (_check_exitcode, "CODE", "what the exit code of a daemon means"),
    "switch-version": (
        _switch_version,
        "VERSION",
        "use another installed version on this node, and restart the running daemons",
    ),
    "use-systemctl": (
        lambda where, _args: _exit(services.uses_systemd(where)),
        "",
        "whether systemd manages the daemons (exit code 0 or 1)",
    ),
}


if __name__ == "__main__":
    sys.exit(main())
