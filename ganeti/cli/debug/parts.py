"""gnt-debug: ask single parts of the cluster manager."""

from __future__ import annotations

from collections.abc import Callable

from ganeti import errors, paths
from ganeti.base import jsonio
from ganeti.cli.command import Call, take_many
from ganeti.cli.programs import DEBUG

_METAD_SECONDS = 20.0


@DEBUG.command(
    "wconfd",
    take_many("cmd", least=1),
    usage="echo <text> | listlocks <job> | listalllocks | listalllocksowners | flushconfig |"
    " cleanuplocks",
)
def wconfd(call: Call) -> None:
    """Ask about locks; ganeti-wconfd, which did this in Ganeti, is part of the master daemon.

    The answer is JSON. flushconfig and cleanuplocks only check that the master daemon answers: it
    writes each change before it acknowledges it, and frees the locks of a job when the job ends.
    """
    command, *words = call.args
    wanted, answer = _ANSWERS.get(command, (-1, _query_name))
    if wanted < 0:
        raise _make_error(f"There is no command '{command}'; choose from {', '.join(_ANSWERS)}")
    if len(words) != wanted:
        raise _make_error(f"{command} takes {wanted} argument(s), not {len(words)}")
    print(jsonio.dumps(answer(call, *words)))


def _make_error(text: str) -> errors.OpPrereqError:
    return errors.make_invalid_error(text)


def _echo(call: Call, text: str) -> str:
    _query_name(call)
    return text


def _query_name(call: Call) -> None:
    call.client.query_config_values(["cluster_name"])


def _owners(call: Call) -> list[tuple[str, str, list[str]]]:
    """Name, mode and owners of each lock that somebody holds."""
    found = call.client.query("lock", ["name", "mode", "owner"])
    return [
        (str(name), str(mode), list(owners))
        for (_1, name), (_2, mode), (_3, owners) in found.data
        if owners
    ]


def _locks_of(call: Call, job: str) -> list[list[str]]:
    if not job.isdigit():
        raise _make_error(f"'{job}' is not the number of a job")
    return [[name, mode] for name, mode, owners in _owners(call) if job in owners]


def _list_held(call: Call) -> list[str]:
    return [name for name, _mode, _owners_ in _owners(call)]


def _list_holders(call: Call) -> list[list[object]]:
    return [[name, [[owner, mode] for owner in owners]] for name, mode, owners in _owners(call)]


#: How many arguments a command takes, and what answers it.
_ANSWERS: dict[str, tuple[int, Callable[..., object]]] = {
    "echo": (1, _echo),
    "listlocks": (1, _locks_of),
    "listalllocks": (0, _list_held),
    "listalllocksowners": (0, _list_holders),
    "flushconfig": (0, _query_name),
    "cleanuplocks": (0, _query_name),
}


@DEBUG.command("metad", take_many("cmd", least=1), usage="echo <text>")
def metad(call: Call) -> None:
    """Ask ganeti-metad on this node, which serves metadata to guests. The answer is JSON."""
    from ganeti.luxi import calls
    from ganeti.net import unix_socket

    command, *words = call.args
    if command != "echo" or len(words) != 1:
        raise _make_error("Write: gnt-debug metad echo <text>")
    path = paths.current().metad_socket
    try:
        connection = unix_socket.FramedClient(path, io_timeout=_METAD_SECONDS)
    except errors.NoMasterError:
        raise errors.OpExecError(f"ganeti-metad does not run on this node: no {path}") from None
    with connection:
        answer = connection.call(calls.encode_request("Echo", words))
    print(jsonio.dumps(calls.decode_response(answer)))
