"""Run one command of a program: find it, read its options, turn errors into lines and codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ganeti import constants, errors
from ganeti.base import stdout
from ganeti.cli import audit, failures, notices, parser
from ganeti.cli.command import Call, Command, Program

_VERSION = "--version"
_HELP = ("--help", "-h")
#: Asked by shells; see ``completion``.
_COMPLETE = "--complete"


def main(program: Program, argv: Sequence[str] | None = None) -> int:
    """Run a program with its words (default: those of the process); the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(program, words)
        sys.stdout.flush()
    except BrokenPipeError:
        stdout.drop()
        code = constants.EXIT_FAILURE
    return code


def _run(program: Program, words: list[str]) -> int:
    name = words[0] if words else ""
    if name == _VERSION:
        print(f"{program.name} (ganeti {constants.RELEASE_VERSION}) {constants.RELEASE_VERSION}")
        return constants.EXIT_SUCCESS
    if name == _COMPLETE:
        from ganeti.cli import completion

        completion.print_completions(program, words[1:])
        return constants.EXIT_SUCCESS
    program.load(name)
    command, rest = program.match(words or [""])
    if command is None:
        return _overview(program, name)
    return _run_command(program, command, rest)


def _overview(program: Program, name: str) -> int:
    """Say what the program can do: asked for, or because there is no such command."""
    from ganeti.base.text import nearest
    from ganeti.cli import usage

    wanted = name in _HELP
    verbs = [known.partition(" ")[2] for known in program.commands if known.startswith(f"{name} ")]
    if verbs:
        notices.say(f"{program.name} {name} needs one of: {', '.join(sorted(verbs))}")
        return constants.EXIT_FAILURE
    if name and not wanted:
        notices.say(f"{program.name} has no command '{name}'{nearest(name, program.commands)}")
    print(usage.program_text(program))
    return constants.EXIT_SUCCESS if wanted else constants.EXIT_FAILURE


def _run_command(program: Program, command: Command, words: list[str]) -> int:
    try:
        words = _default_words(command) + words
        opts, args = parser.parse(command.all_options, words, passes_on=command.passes_on)
    except parser.HelpWanted:
        from ganeti.cli import usage

        print(usage.command_text(program, command))
        return constants.EXIT_SUCCESS
    except parser.UsageError as err:
        notices.say(f"{_usage_line(program, command)}\n")
        notices.say(f"{program.name} {command.name}: error: {err}")
        return constants.EXIT_USAGE
    except errors.GanetiError as err:
        return _fail(err)
    problem = command.problem(args)
    if problem is not None:
        notices.say(f"Error: {problem}")
        notices.say(_usage_line(program, command))
        return constants.EXIT_FAILURE
    if program.audited:
        audit.record(program.name, command, words)
    return _execute(program, Call(program.name, command.name, opts, args, command), command)


def _usage_line(program: Program, command: Command) -> str:
    from ganeti.cli import usage

    return usage.usage_line(program, command)


def _default_words(command: Command) -> list[str]:
    text = os.environ.get(command.default_args) if command.default_args else None
    if not text:
        return []
    import shlex

    try:
        return shlex.split(text)
    except ValueError as err:
        raise parser.UsageError(f"variable {command.default_args}: {err}") from None


def _execute(program: Program, call: Call, command: Command) -> int:
    try:
        return _perform(call, command) or constants.EXIT_SUCCESS
    except failures.Exit as err:
        return err.code
    except errors.GanetiError as err:
        return _fail(err, call.opts.debug)
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        notices.say("Interrupted")
        return 130
    except OSError as err:
        return _fail_at_file(err) if err.filename else _bug(call, err, logged=program.audited)
    except Exception as err:  # noqa: BLE001 - a bug must not show people a traceback
        return _bug(call, err, logged=program.audited)
    finally:
        if "client" in vars(call):
            call.client.close()


def _perform(call: Call, command: Command) -> int | None:
    """Do what the command is for: its function, or a job with its opcode."""
    if command.run is not None:
        return command.run(call)
    from ganeti.cli import jobs

    jobs.run(call)
    return None


def _fail(err: errors.GanetiError, debug: int = 0) -> int:
    for line in failures.lines(err, debug=debug):
        notices.say(line)
    return failures.exit_code(err)


def _fail_at_file(err: OSError) -> int:
    from ganeti.base import files

    hint = ": run this as root" if isinstance(err, PermissionError) and os.geteuid() else ""
    notices.say(f"{errors.text(files.failure(err))}{hint}")
    return constants.EXIT_FAILURE


def _bug(call: Call, err: Exception, *, logged: bool) -> int:
    import traceback

    traceback_text = "".join(traceback.format_exception(err))
    where = audit.record_failure(call.program, traceback_text) if logged else None
    if call.opts.debug:
        notices.say(traceback_text.rstrip())
    hint = f"details are in {where}" if where else "run it again with --debug for details"
    notices.say(
        f"{call.program} {call.command}: internal error: {type(err).__name__}: {err} ({hint})"
    )
    return constants.EXIT_FAILURE
