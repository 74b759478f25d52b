"""The methods of LUXI as data, and the JSON form of requests and answers.

A request is ``{"method", "args", "version"}`` with positional arguments; an answer is
``{"success", "result"}``. The result of a failure is an encoded error (``[name, args]``), or
plain text when the request itself could not be understood; then the server hangs up. ``Query`` and
``QueryFields`` also take one object with the names of the arguments as keys.

All functions are pure. Client and server use the same table, so neither knows more than the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ganeti import constants, errors
from ganeti.base import jsonio, text
from ganeti.base.json_types import JsonObject
from ganeti.base.record import Record
from ganeti.luxi import arguments

_PARSE_FAILURE = "Failed to parse request: "
#: Key of an answer: the exact class of an error, if it is none that the programs of others know.
_CLASS = "error_class"
#: Characters of a wrong value that are quoted.
_SHOWN = 60


class Argument(Record):
    """One positional argument; its type is in the notation of ``luxi/arguments.py``."""

    name: str
    type: str
    #: whether it may be left out at the end of the list
    optional: bool = False


class Method(Record):
    """One method; ``result`` is for people."""

    name: str
    args: tuple[Argument, ...]
    result: str
    #: whether asking again does no harm when an answer got lost
    repeatable: bool
    #: answers with bare values, the form that came before Query
    classic: bool = False
    #: the arguments may also come as one object, in which these keys are other names of arguments
    aliases: Mapping[str, str] | None = None


_Arg = Argument | tuple[str, str]


def _arguments(args: tuple[_Arg, ...]) -> tuple[Argument, ...]:
    return tuple(arg if isinstance(arg, Argument) else Argument(*arg) for arg in args)


def _read(name: str, *args: _Arg, result: str = "[[value]]") -> Method:
    return Method(name, _arguments(args), result, repeatable=True)


def _classic(name: str, *args: _Arg, result: str = "[[value]]") -> Method:
    return Method(name, _arguments(args), result, repeatable=True, classic=True)


def _query(name: str, *args: _Arg, result: str) -> Method:
    aliases = {"filter": "qfilter"}
    return Method(name, _arguments(args), result, repeatable=True, aliases=aliases)


def _change(name: str, *args: _Arg, result: str) -> Method:
    return Method(name, _arguments(args), result, repeatable=False)


_NAMES = ("names", "[str]")
_FIELDS = ("fields", "[str]")
_LOCK = ("lock", "bool")
#: rules of filters are checked whole, see ``master/job_filters.py``
_UUID = ("uuid", "any")
_OPS = ("ops", "[opcode]")
_JOB = ("job", "job id")
_WHAT = Argument("what", "str")
#: the user for whom a trusted daemon speaks
_USER = Argument("user", "str", optional=True)
#: the limits of that user
_LIMITS = Argument("limits", "object|null", optional=True)
#: whether the user may not see sensitive parameters
REDACTED = Argument("redacted", "bool", optional=True)

METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        _query("Query", _WHAT, _FIELDS, ("qfilter", "any"), REDACTED, result="QueryResponse"),
        _query("QueryFields", _WHAT, ("fields", "[str]|null"), result="QueryFieldsResponse"),
        _classic("QueryNodes", _NAMES, _FIELDS, _LOCK),
        _classic("QueryGroups", _NAMES, _FIELDS, _LOCK),
        _classic("QueryNetworks", _NAMES, _FIELDS, _LOCK),
        _classic("QueryImages", _NAMES, _FIELDS, _LOCK),
        _classic("QueryInstances", _NAMES, _FIELDS, _LOCK, REDACTED),
        _classic("QueryDisks", _NAMES, _FIELDS, _LOCK),
        _classic("QueryFilters", ("uuids", "[str]|null"), _FIELDS),
        _classic("QueryJobs", ("ids", "[job id]|null"), _FIELDS, REDACTED),
        _classic("QueryExports", ("nodes", "[str]"), _LOCK, result="[[node, export]]"),
        _read("QueryConfigValues", _FIELDS, result="[value]"),
        _read("QueryClusterInfo", REDACTED, result="object"),
        _read("QueryTags", ("kind", "str"), ("name", "str"), result="[str]"),
        _read(
            "WaitForJobChange",
            _JOB,
            _FIELDS,
            ("prev_job", "[any]|null"),
            ("prev_log", "int|null"),
            ("tmout", "number"),
            REDACTED,
            result="[[value], [[serial, [s, us], type, message]]]",
        ),
        _read(
            "WaitForEvents",
            ("after", "str|null"),
            ("filter", "any"),
            ("tmout", "number"),
            result="{events: [object], last: str, lost: bool}",
        ),
        _change(
            "ReplaceFilter",
            ("uuid", "any"),
            ("priority", "any"),
            ("predicates", "any"),
            ("action", "any"),
            ("reason", "any"),
            _USER,
            result="str",
        ),
        _change("DeleteFilter", _UUID, _USER, result="null"),
        _read("ExplainJob", _JOB, result="object"),
        _read("QueryJobLog", _JOB, ("nodes", "[str]"), result="object"),
        _read("QueryMetrics", result="{name: [[[label], value]]}"),
        _read("QueryHealth", result="object"),
        _read("QueryRecovery", result="object"),
        _read("QueryNotifications", result="[object]"),
        _read("QuerySamples", ("kind", "str"), ("name", "str"), ("range", "str"), result="object"),
        _read("QueryHistory", ("filter", "any"), result="object"),
        _read("QueryConfigDiff", ("t1", "any"), ("t2", "any"), result="object"),
        _change(
            "SubmitJob",
            _OPS,
            Argument("key", "str|null", optional=True),
            Argument("user", "str|null", optional=True),
            _LIMITS,
            result="int",
        ),
        _change("SubmitJobToDrainedQueue", _OPS, result="int"),
        _change("SubmitManyJobs", ("jobs", "[[opcode]]"), result="[[bool, int|str]]"),
        _change("PickupJob", _JOB, result="null"),
        _change("ArchiveJob", _JOB, result="bool"),
        _change("AutoArchiveJobs", ("age", "number"), ("tmout", "number"), result="[int, int]"),
        _change("CancelJob", _JOB, Argument("kill", "bool", optional=True), result="[bool, str]"),
        _change("ChangeJobPriority", _JOB, ("priority", "int"), result="[bool, str]"),
        _change("SetDrainFlag", ("flag", "bool"), result="true"),
        _change(
            "NoteGuestEnd",
            ("instance", "str"),
            ("node", "str"),
            ("status", "str"),
            result="null",
        ),
        _read("QueryConsoles", ("instance", "str"), result="{instance, uuid, node, kinds: [str]}"),
        _change("OpenConsole", ("instance", "str"), ("kind", "str"), result="null, then bytes"),
        _change("NoteConsole", ("instance", "str"), ("data", "object"), result="null"),
        _change("SetWatcherPause", ("until", "number|null"), result="number|null"),
    )
}


def find(name: str) -> Method:
    """A method by name.

    Raises:
        RequestError: there is none; the text names a near one.
    """
    method = METHODS.get(name)
    if method is None:
        raise errors.RequestError(f"unknown method {name!r}{text.nearest(name, METHODS)}")
    return method


def bind(method: Method, args: Sequence[object] | Mapping[str, object]) -> JsonObject:
    """Arguments by name; optional ones that are missing are left out.

    Raises:
        RequestError: too few or too many, or one has another type.
    """
    bound = (
        _read_named_arguments(method, args)
        if isinstance(args, Mapping)
        else _positional(method, args)
    )
    for arg in method.args:
        if arg.name in bound and not arguments.is_valid(arg.type, bound[arg.name]):
            raise errors.RequestError(
                f"{method.name}: the argument '{arg.name}' must be"
                f" {arguments.describe(arg.type)}, not {_quote(bound[arg.name])}"
            )
    return bound


def _positional(method: Method, args: Sequence[object]) -> JsonObject:
    if method.aliases is not None and len(args) == 1 and isinstance(args[0], dict):
        return _read_named_arguments(method, args[0])
    least = sum(not arg.optional for arg in method.args)
    most = len(method.args)
    if not least <= len(args) <= most:
        wanted = str(most) if least == most else f"{least} to {most}"
        names = ", ".join(arg.name for arg in method.args)
        raise errors.RequestError(
            f"{method.name} takes {wanted} arguments ({names}), got {len(args)}"
        )
    return {arg.name: value for arg, value in zip(method.args, args, strict=False)}


def _read_named_arguments(method: Method, given: Mapping[str, object]) -> JsonObject:
    """The arguments of a method that takes an object; what may be null may be missing."""
    if method.aliases is None:
        raise errors.RequestError(f"{method.name}: the key 'args' must be a list")
    known = [arg.name for arg in method.args]
    found: JsonObject = {}
    for key, value in given.items():
        name = method.aliases.get(key, key)
        if name not in known:
            raise errors.RequestError(
                f"{method.name} has no key {_quote(key)}{text.nearest(key[:60], known)}"
            )
        if name in found:
            raise errors.RequestError(f"{method.name}: '{name}' and its alias are both set")
        found[name] = value
    for arg in method.args:
        if not (arg.optional or arg.name in found or arguments.is_valid(arg.type, None)):
            raise errors.RequestError(f"{method.name}: the key '{arg.name}' is missing")
    wanted = (arg.name for arg in method.args if arg.name in found or not arg.optional)
    return {name: found.get(name) for name in wanted}


def _quote(value: object) -> str:
    shown = jsonio.dumps(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."


def encode_request(name: str, args: Sequence[object]) -> bytes:
    """A request as UTF-8 JSON, without the terminator."""
    request = {"method": name, "args": list(args), "version": constants.PROTOCOL_VERSION}
    return jsonio.request_bytes(request)


def decode_request(data: bytes) -> tuple[str, list[Any] | JsonObject]:
    """Method name and arguments of a request; the name may be unknown.

    Raises:
        RequestError: not a JSON object with a text ``method`` and ``args``, a list or an object.
    """
    try:
        value = jsonio.read_request(data)
    except errors.ParseError as err:
        raise errors.RequestError(str(err)) from err
    if not isinstance(value, dict):
        raise errors.RequestError("a request must be a JSON object")
    name, args = value.get("method"), value.get("args")
    if not isinstance(name, str):
        raise errors.RequestError("the key 'method' is missing or not a text")
    if not isinstance(args, list | dict):
        raise errors.RequestError("the key 'args' is missing or not a list")
    return name, args


def encode_result(value: object) -> bytes:
    """The answer to a request that succeeded."""
    return jsonio.answer_bytes({"success": True, "result": value})


def encode_error(err: BaseException) -> bytes:
    """The answer to a request that failed.

    A RequestError becomes plain text: the server closes the connection after it. The name of a
    class that only our programs know stands beside the result.
    """
    if isinstance(err, errors.RequestError):
        result = _PARSE_FAILURE + errors.text(err)
        return jsonio.dumps_bytes({"success": False, "result": result})
    known, exact = errors.encode_known(err), errors.encode(err)[0]
    answer = {"success": False, "result": known}
    return jsonio.dumps_bytes(answer if exact == known[0] else {**answer, _CLASS: exact})


def result_bytes(data: bytes) -> bytes:
    """JSON text of the result of an answer, as the server wrote it; errors of ``decode_response``.

    For large answers that go on to somebody else: the result is checked to be JSON, nothing more.
    """
    import msgspec

    try:
        found = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError as err:
        raise errors.ProtocolError(f"The master daemon answered something else: {err}") from err
    if bytes(found.get("success", b"")) == b"true" and "version" not in found:
        return bytes(found["result"])
    return jsonio.answer_bytes(decode_response(data))


def decode_response(data: bytes) -> Any:
    """The result of an answer.

    Raises:
        GanetiError: the error that the server sent, as its own class.
        RequestError: the server did not understand the request.
        ProtocolError: no answer of this protocol, or of another version of it.
    """
    try:
        value = jsonio.read(data)
    except errors.ParseError as err:
        raise errors.ProtocolError(f"The master daemon answered something else: {err}") from err
    if not (isinstance(value, dict) and "success" in value and "result" in value):
        raise errors.ProtocolError(
            "'success' or 'result' is missing in the answer of the master daemon"
        )
    own = constants.PROTOCOL_VERSION
    version = value.get("version", own)
    if version != own:
        raise errors.ProtocolError(
            f"The master daemon speaks version {version}, this program {own}:"
            " restart the daemon, or use the programs of its version"
        )
    if value["success"]:
        return value["result"]
    result, exact = value["result"], value.get(_CLASS)
    failure = errors.decode(result)
    if failure is not None:
        raise errors.decode([exact, result[1]]) or failure
    raise errors.RequestError(str(value["result"]))
