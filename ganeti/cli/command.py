"""What a command is, and how a program registers its commands.

A command is a function with a decorator; its documentation string is its help, and from the
decorator follow parser, usage, help and argument checks::

    @INSTANCE.command("startup", many("instance"), options=(*MULTI, o.FORCE))
    def startup(call: Call) -> int | None:
        \"\"\"Start instances.

        What else there is to know.
        \"\"\"
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING

from ganeti.cli import options as o
from ganeti.cli.option import Option

if TYPE_CHECKING:
    from ganeti.luxi.client import Client


@dataclass(frozen=True)
class Args:
    """How many positional arguments of a kind a command takes; ``most`` None is any number."""

    kind: str
    least: int = 1
    most: int | None = 1
    choices: tuple[str, ...] = ()
    #: whether other words than the choices are refused
    strict: bool = False

    @property
    def metavar(self) -> str:
        name = "|".join(self.choices) if self.choices else f"<{self.kind}>"
        if self.most is None:
            name += "..."
        return f"[{name}]" if self.least == 0 else name


def one(kind: str) -> Args:
    """Exactly one argument."""
    return Args(kind)


def many(kind: str, least: int = 0) -> Args:
    """Any number of arguments, at least ``least``."""
    return Args(kind, least, None)


def choice(*words: str) -> Args:
    """Exactly one of some words."""
    return Args("choice", choices=words, strict=True)


@dataclass
class Call:
    """One run of a command: what it was called with, and its way to the master."""

    program: str
    command: str
    opts: SimpleNamespace
    args: list[str]

    @cached_property
    def client(self) -> Client:
        """The LUXI client; connects with its first request."""
        from ganeti.cli import notices
        from ganeti.luxi.client import Client

        return Client(on_lost=notices.connection_lost)


Run = Callable[[Call], int | None]


@dataclass(frozen=True)
class Command:
    """A registered command; ``run`` returns the exit code, None for success."""

    name: str
    run: Run
    args: tuple[Args, ...]
    options: tuple[Option, ...]
    aliases: tuple[str, ...] = ()
    #: arguments in the usage line when the derived text is not good enough
    usage: str = ""
    #: environment variable with default options
    default_args: str = ""
    #: whether words after the first argument are for somebody else, even if they begin with a dash
    passes_on: bool = False

    @property
    def all_options(self) -> tuple[Option, ...]:
        """Its own options and those of every command."""
        return (*self.options, *o.COMMON)

    @property
    def summary(self) -> str:
        """First line of the documentation."""
        return (self.run.__doc__ or self.name).strip().splitlines()[0]

    @property
    def arguments_text(self) -> str:
        return self.usage or " ".join(arg.metavar for arg in self.args)

    def problem(self, given: Sequence[str]) -> str | None:
        """Why these arguments cannot be taken, or None."""
        least = sum(arg.least for arg in self.args)
        most: int | None = 0
        for arg in self.args:
            most = None if most is None or arg.most is None else most + arg.most
        if len(given) < least or (most is not None and len(given) > most):
            return f"Command {self.name} expects {self._expected(least, most)}, not {len(given)}"
        for arg, word in zip(self.args, given, strict=False):
            if arg.strict and word not in arg.choices:
                return f"Command {self.name} expects {' or '.join(arg.choices)}, not '{word}'"
        return None

    def _expected(self, least: int, most: int | None) -> str:
        if most == 0:
            return "no arguments"
        if most == least:
            count = f"exactly {least}"
        elif most is None:
            count = f"at least {least}"
        else:
            count = f"{least} to {most}"
        noun = "argument" if max(least, most or 0) == 1 else "arguments"
        return f"{count} {noun} ({self.arguments_text})"


@dataclass
class Program:
    """A gnt-* program; its commands are in ``modules`` of its package, imported when it runs."""

    name: str
    title: str
    modules: tuple[str, ...] = ()
    #: whether runs are logged on this node; not for programs that must write nothing
    audited: bool = True
    commands: dict[str, Command] = field(default_factory=dict)

    @property
    def package(self) -> str:
        """Where its modules are: ``gnt-instance`` is ``ganeti.cli.instance``."""
        return f"ganeti.cli.{self.name.removeprefix('gnt-')}"

    def command(
        self,
        name: str,
        *args: Args,
        options: Sequence[Option] = (),
        aliases: tuple[str, ...] = (),
        usage: str = "",
        default_args: str = "",
        passes_on: bool = False,
    ) -> Callable[[Run], Run]:
        """Register a function as a command of this program."""

        def register(run: Run) -> Run:
            self.commands[name] = Command(
                name, run, args, tuple(options), aliases, usage, default_args, passes_on
            )
            return run

        return register

    def load(self) -> None:
        """Import the modules that register the commands. Idempotent."""
        for module in self.modules:
            import_module(f"{self.package}.{module}")

    def find(self, name: str) -> Command | None:
        """A command by name or alias."""
        found = self.commands.get(name)
        if found is not None:
            return found
        return next((cmd for cmd in self.commands.values() if name in cmd.aliases), None)
