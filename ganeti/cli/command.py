"""Commands, and how a program registers them.

A command is a function with a decorator; its documentation string is its help, and from the
decorator follow parser, usage, help and argument checks::

    @INSTANCE.command("startup", many("instance"), options=(*MULTI, o.FORCE))
    def startup(call: Call) -> int | None:
        \"\"\"Start instances.

        What else there is to know.
        \"\"\"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from ganeti.base.clock import SYSTEM, Clock
from ganeti.base.json_types import JsonObject
from ganeti.base.record import Record
from ganeti.cli import options as o
from ganeti.cli.option import Option

if TYPE_CHECKING:
    from ganeti.cli.fields import Override
    from ganeti.luxi.client import Client


class Args(Record):
    """How many positional arguments of a kind a command takes; ``most`` None is any number."""

    kind: str
    least: int = 1
    most: int | None = 1
    choices: tuple[str, ...] = ()
    #: whether other words than the choices are refused
    strict: bool = False
    #: parameter of the command's opcode that it is
    field: str = ""

    @property
    def metavar(self) -> str:
        name = "|".join(self.choices) if self.choices else f"<{self.kind}>"
        if self.most is None:
            name += "..."
        return f"[{name}]" if self.least == 0 else name


def take_one(kind: str, field: str = "") -> Args:
    """Exactly one argument."""
    return Args(kind, field=field)


def take_many(kind: str, least: int = 0, field: str = "") -> Args:
    """Any number of arguments, at least ``least``."""
    return Args(kind, least, None, field=field)


def choice(*words: str, field: str = "") -> Args:
    """Exactly one of some words."""
    return Args("choice", choices=words, strict=True, field=field)


class Call:
    """One run of a command: what it was called with, and its way to the master."""

    def __init__(
        self,
        program: str,
        command: str,
        opts: SimpleNamespace,
        args: list[str],
        spec: Command,
        clock: Clock = SYSTEM,
    ) -> None:
        self.program = program
        self.command = command
        self.opts = opts
        self.args = args
        self.spec = spec
        self.clock = clock

    @cached_property
    def client(self) -> Client:
        """The LUXI client; connects with its first request."""
        from ganeti.cli import notices
        from ganeti.luxi.client import Client

        return Client(on_lost=notices.connection_lost)


Run = Callable[[Call], int | None]

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Command(Record):
    """A registered command; ``run`` returns the exit code, None for success."""

    name: str
    #: None: only a job with the opcode
    run: Run | None
    args: tuple[Args, ...]
    #: options that do not follow from a field
    extras: Sequence[Option]
    #: module of the program's package that registers it
    module: str
    #: opcode whose fields are options, and usually what is submitted
    op: str = ""
    #: fields that do not become options; ``only``: the only ones that do
    without: Sequence[str] = ()
    only: Sequence[str] | None = None
    #: exceptions for fields of this command
    names: Mapping[str, Override] = _NOTHING
    #: fields of other requests that are options; what they mean is up to the function
    also: Mapping[str, Sequence[str]] = _NOTHING
    #: whether something is created, so that there is nothing to take back to a default
    new: bool = False
    aliases: tuple[str, ...] = ()
    #: arguments in the usage line when the derived text is not good enough
    usage: str = ""
    #: environment variable with default options
    default_args: str = ""
    #: whether words after the first argument are for somebody else, even if they begin with a dash
    passes_on: bool = False

    @cached_property
    def field_options(self) -> tuple[Option, ...]:
        """Options that are fields of the opcode; their ``dest`` is the name of the field."""
        if not self.op:
            return ()
        from ganeti.cli import fields

        skipped = {arg.field for arg in self.args}.union(self.without)
        return tuple(
            fields.options(self.op, without=skipped, only=self.only, names=self.names, new=self.new)
        )

    @cached_property
    def other_options(self) -> tuple[Option, ...]:
        """Options that are fields of other requests; :meth:`parameters` leaves them out."""
        from ganeti.cli import fields

        return tuple(
            option
            for request, wanted in self.also.items()
            for option in fields.options(
                request, without=(), only=wanted, names=self.names, new=self.new
            )
        )

    @property
    def options(self) -> tuple[Option, ...]:
        """Its own options."""
        return (*self.field_options, *self.other_options, *self.extras)

    @property
    def all_options(self) -> tuple[Option, ...]:
        """Its own options and those of every command."""
        return (*self.options, *o.COMMON)

    def parameters(self, call: Call) -> JsonObject:
        """Parameters of the opcode that arguments and options give; None where there is none."""
        result: JsonObject = {}
        rest = list(call.args)
        for arg in self.args:
            if arg.most is None:
                given: object = rest
            else:
                given = rest.pop(0) if rest else None
            if arg.field:
                result[arg.field] = given
        for option in self.field_options:
            given = getattr(call.opts, option.dest)
            if option.take is not None:
                parameter = option.take(given) if given else None
                given = None if parameter in ({}, [], "") else parameter
            elif option.action == "append":
                given = given or None
            result[option.dest] = given
        return result

    @property
    def documentation(self) -> str:
        """Its description: of its function, or of its opcode."""
        if self.run is None or not self.run.__doc__:
            from ganeti.cli import fields

            return fields.find_fields(self.op)[0] if self.op else self.name
        from inspect import cleandoc

        return cleandoc(self.run.__doc__)

    @property
    def summary(self) -> str:
        """First line of the documentation."""
        return self.documentation.splitlines()[0]

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
            return f"Command {self.name} expects {self._expectation(least, most)}, not {len(given)}"
        for arg, word in zip(self.args, given, strict=False):
            if arg.strict and word not in arg.choices:
                return f"Command {self.name} expects {' or '.join(arg.choices)}, not '{word}'"
        return None

    def _expectation(self, least: int, most: int | None) -> str:
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


class Program:
    """A gnt-* program; its commands are in ``modules`` of its package, imported when it runs."""

    def __init__(
        self, name: str, title: str, modules: tuple[str, ...] = (), *, audited: bool = True
    ) -> None:
        self.name = name
        self.title = title
        self.modules = modules
        #: whether runs are logged on this node; not for programs that must write nothing
        self.audited = audited
        self.commands: dict[str, Command] = {}
        self._loading = ""

    @property
    def package(self) -> str:
        """The package of its modules: ``gnt-instance`` is ``ganeti.cli.instance``."""
        return f"ganeti.cli.{self.name.removeprefix('gnt-')}"

    def command(
        self,
        name: str,
        *args: Args,
        op: str = "",
        without: Sequence[str] = (),
        only: Sequence[str] | None = None,
        names: Mapping[str, Override] = _NOTHING,
        also: Mapping[str, Sequence[str]] = _NOTHING,
        new: bool = False,
        options: Sequence[Option] = (),
        aliases: tuple[str, ...] = (),
        usage: str = "",
        default_args: str = "",
        passes_on: bool = False,
    ) -> Callable[[Run], Run]:
        """Register a function as a command of this program.

        With ``op`` the fields of that opcode are its options, as ``names`` (and
        ``fields.NAMES``) call them; ``without`` some of them, or ``only`` some. ``also`` are
        fields of other requests, ``options`` are the others.
        """

        def register(run: Run) -> Run:
            self._add(
                Command(
                    name,
                    run,
                    args,
                    options,
                    self._loading or run.__module__.rpartition(".")[2],
                    op=op,
                    without=without,
                    only=only,
                    names=names,
                    also=also,
                    new=new,
                    aliases=aliases,
                    usage=usage,
                    default_args=default_args,
                    passes_on=passes_on,
                )
            )
            return run

        return register

    def submits(
        self,
        name: str,
        op: str,
        *args: Args,
        options: Sequence[Option] = o.JOB_OPTIONS,
        without: Sequence[str] = (),
        new: bool = False,
    ) -> None:
        """Register a command that submits an opcode, waits for the job and prints its log.

        Its help is the description of the opcode.
        """
        self._add(
            Command(name, None, args, options, self._loading, op=op, without=without, new=new)
        )

    def _add(self, command: Command) -> None:
        self.commands[command.name] = command

    def load(self, name: str = "") -> None:
        """Import the modules that register the commands, or the one of ``name`` if it is known.

        Idempotent.
        """
        from ganeti.cli import generated_modules

        known = generated_modules.COMMANDS.get(self.name, {}).get(name)
        for module in self.modules if known is None else (known,):
            self._loading = module
            import_module(f"{self.package}.{module}")
        self._loading = ""

    def find(self, name: str) -> Command | None:
        """A command by name or alias."""
        found = self.commands.get(name)
        if found is not None:
            return found
        return next((cmd for cmd in self.commands.values() if name in cmd.aliases), None)

    def match(self, words: Sequence[str]) -> tuple[Command | None, list[str]]:
        """The command that these words begin with, and the words after it."""
        command, rest = self.find(words[0]), list(words[1:])
        if command is None and rest:
            # Some names have two words: "token add".
            command, rest = self.find(f"{words[0]} {rest[0]}"), rest[1:]
        return command, rest
