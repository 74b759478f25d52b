"""Common parts of the programs: help, version, errors and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ganeti import constants, errors
from ganeti.base import stdout
from ganeti.htools import options
from ganeti.htools.options import Values


class Finished(Exception):
    """The program ends here with this exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Program:
    """One program: the options that it knows, and the function that runs it and returns the exit
    code."""

    name: str
    title: str
    known: tuple[str, ...]
    run: Callable[[Values], int]
    #: what stands for its arguments in the help, and in the list for completion
    arguments: str = ""
    completion: str = ""
    takes: tuple[int, int] = (0, 0)

    @property
    def every_option(self) -> tuple[str, ...]:
        extra = options.REMOTE if "master" in self.known or self.name == "hscan" else ()
        return (*self.known, *extra, *options.COMMON)


def say(text: str = "") -> None:
    """Print a line on standard output at once."""
    print(text, flush=True)


def warn(text: str) -> None:
    """Print a line on standard error."""
    print(text, file=sys.stderr, flush=True)


def run(program: Program, arguments: Sequence[str] | None = None) -> int:
    """Run a program with its command line; returns the exit code."""
    try:
        return _run(program, sys.argv[1:] if arguments is None else arguments)
    except Finished as end:
        return end.code
    except options.UnknownOptionError as err:
        warn(f"Command line error: {errors.text(err)}\nSee '{program.name} --help'.")
        return err.exit_code
    except errors.GanetiError as err:
        warn(f"Error: {errors.text(err)}")
        return constants.EXIT_FAILURE
    except BrokenPipeError:
        stdout.drop()
        return constants.EXIT_FAILURE
    except OSError as err:
        named = f"{err.filename}: {err.strerror}" if err.filename else str(err)
        warn(f"Error: {named}")
        return constants.EXIT_FAILURE
    except KeyboardInterrupt:
        warn("Interrupted.")
        return constants.EXIT_FAILURE


def _run(program: Program, arguments: Sequence[str]) -> int:
    values = options.parse(arguments, program.every_option)
    if "help" in values:
        say(options.help_text(program.name, program.every_option, program.arguments, program.title))
        return 0
    if "version" in values:
        say(f"{program.name} (ganeti) version {constants.RELEASE_VERSION}")
        return 0
    if "help_completion" in values:
        say(options.completion_text(program.every_option, program.completion))
        return 0
    least, most = program.takes
    if not least <= len(values.arguments) <= most:
        if most == 0:
            raise options.UsageError(f"{program.name} takes no arguments")
        raise options.UsageError(f"{program.name} needs {program.arguments.strip()}")
    return program.run(values)
