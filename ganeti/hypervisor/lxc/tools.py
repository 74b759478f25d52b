"""Running the programs of LXC, and reading what they print.

Readers are pure; they are tested on recorded output of LXC 5.0.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ganeti import errors
from ganeti.base import process

#: Programs that must be on the node.
PROGRAMS = ("lxc-start", "lxc-stop", "lxc-info", "lxc-ls", "lxc-cgroup", "lxc-console")
#: The configuration has the keys of this version.
LEAST_VERSION = (3, 0)
#: Seconds for questions.
QUICK = 30.0

_STOPPED = "STOPPED"
_UNKNOWN = "doesn't exist"
#: ``lxc-start NAME 20260101120000.123 ERROR    conf - conf.c:function:12 - What happened``
_ERROR = re.compile(r"\S+ \S+ \d+\.\d+ ERROR\s+\S+ - \S+:\S+:\d+ - (?P<text>.*)")


@dataclass(frozen=True)
class Container:
    """A container as LXC sees it now."""

    name: str
    state: str
    #: its first process
    pid: int | None

    @property
    def runs(self) -> bool:
        return self.state != _STOPPED


def attempt(program: str, lxcpath: Path, words: Sequence[str], *, timeout: float) -> process.Result:
    """Run a program on the containers of a directory; it may fail. Blocks up to ``timeout`` s.

    Raises:
        HypervisorError: it cannot be started.
    """
    try:
        return process.run([program, "-P", str(lxcpath), *words], timeout=timeout)
    except errors.CommandError as err:
        raise errors.HypervisorError(f"{errors.text(err)}; install the package lxc") from err


def run(program: str, lxcpath: Path, words: Sequence[str], *, timeout: float = QUICK) -> str:
    """Like :func:`attempt`, returns the output.

    Raises:
        HypervisorError: it failed, in its own words, or hangs.
    """
    result = attempt(program, lxcpath, words, timeout=timeout)
    if not result.ok:
        raise errors.HypervisorError(result.explain())
    return result.stdout


def all_containers(lxcpath: Path) -> list[Container]:
    """Containers whose configuration is in a directory."""
    if not lxcpath.is_dir():
        return []
    return parse_list(run("lxc-ls", lxcpath, ["--fancy", "--fancy-format", "NAME,STATE,PID"]))


def container(lxcpath: Path, name: str) -> Container | None:
    """One container, None when it has no configuration."""
    result = attempt("lxc-info", lxcpath, ["-n", name, "--state", "--pid"], timeout=QUICK)
    if not result.ok:
        if _UNKNOWN in result.stdout + result.stderr:
            return None
        raise errors.HypervisorError(result.explain())
    return parse_info(name, result.stdout)


def parse_list(text: str) -> list[Container]:
    """``lxc-ls --fancy`` with the columns NAME, STATE, PID.

    Raises:
        HypervisorError: a line has another form.
    """
    return [_row(line) for line in text.splitlines()[1:]]


def _row(line: str) -> Container:
    words = line.split()
    if len(words) != 3 or not (words[2] == "-" or words[2].isdigit()):
        raise errors.HypervisorError(f"lxc-ls printed a line of an unknown form: {line[:120]!r}")
    return Container(words[0], words[1], None if words[2] == "-" else int(words[2]))


def parse_info(name: str, text: str) -> Container:
    """``lxc-info --state --pid``.

    Raises:
        HypervisorError: it says no state.
    """
    pairs = (line.partition(":") for line in text.splitlines())
    facts = {key.strip(): value.strip() for key, _, value in pairs}
    if "State" not in facts:
        raise errors.HypervisorError(f"lxc-info printed something unknown: {text[:120]!r}")
    pid = facts.get("PID", "")
    return Container(name, facts["State"], int(pid) if pid.isdigit() else None)


def parse_version(text: str) -> tuple[int, ...]:
    """``lxc-start --version``: ``5.0.2``, ``5.0.0~git2209-g5a7b9ce67``.

    Raises:
        HypervisorError: it does not begin with a number.
    """
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", text.strip())
    if match is None:
        raise errors.HypervisorError(f"lxc-start --version printed {text[:60]!r}")
    return tuple(int(number) for number in match.groups() if number is not None)


def parse_errors(text: str) -> list[str]:
    """The errors in a part of a log; the cause comes first."""
    found = (_ERROR.fullmatch(line.strip()) for line in text.splitlines())
    return [match["text"] for match in found if match is not None]


def explain_failed_start(result: process.Result, path: Path, position: int) -> str:
    """Why a container did not start: the first errors in its log from a position on."""
    if result.timed_out:
        return "it took too long; see the parameter startup_timeout"
    with contextlib.suppress(OSError), path.open("rb") as stream:
        stream.seek(position)
        messages = parse_errors(stream.read().decode("utf-8", "replace"))
        if messages:
            return " | ".join(messages[:3])
    return result.explain()
