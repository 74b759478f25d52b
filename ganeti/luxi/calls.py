"""The methods of LUXI as data, and the JSON form of requests and answers.

A request is ``{"method", "args", "version"}`` with positional arguments; an answer is
``{"success", "result"}``. The result of a failure is an encoded error (``[name, args]``), or
plain text when the request itself could not be understood; then the server hangs up.

All functions are pure. Client and server use the same table, so neither knows more than the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ganeti import constants, errors
from ganeti.base import jsonio, text

_PARSE_FAILURE = "Failed to parse request: "


@dataclass(frozen=True, slots=True)
class Argument:
    """One positional argument; ``type`` is for people (``[str]``, ``int|null``)."""

    name: str
    type: str
    #: whether it may be left out at the end of the list
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Method:
    """One method; ``result`` is for people, like the types of the arguments."""

    name: str
    args: tuple[Argument, ...]
    result: str
    #: whether asking again does no harm when an answer got lost
    repeatable: bool
    #: answers with bare values, the form that came before Query
    classic: bool = False


def _read(name: str, *args: tuple[str, str], result: str = "[[value]]") -> Method:
    return Method(name, tuple(Argument(*arg) for arg in args), result, repeatable=True)


def _classic(name: str, *args: tuple[str, str], result: str = "[[value]]") -> Method:
    arguments = tuple(Argument(*arg) for arg in args)
    return Method(name, arguments, result, repeatable=True, classic=True)


def _change(name: str, *args: Argument | tuple[str, str], result: str) -> Method:
    arguments = tuple(arg if isinstance(arg, Argument) else Argument(*arg) for arg in args)
    return Method(name, arguments, result, repeatable=False)


_NAMES = ("names", "[str]")
_FIELDS = ("fields", "[str]")
_LOCK = ("lock", "bool")
_UUID = ("uuid", "str")
_OPS = ("ops", "[OpCode]")
_JOB = ("job", "int")
#: whom a trusted daemon speaks for
_USER = Argument("user", "str", optional=True)

METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        _read("Query", ("what", "QueryType"), _FIELDS, ("qfilter", "filter|null"),
              result="QueryResponse"),
        _read("QueryFields", ("what", "QueryType"), ("fields", "[str]|null"),
              result="QueryFieldsResponse"),
        _classic("QueryNodes", _NAMES, _FIELDS, _LOCK),
        _classic("QueryGroups", _NAMES, _FIELDS, _LOCK),
        _classic("QueryNetworks", _NAMES, _FIELDS, _LOCK),
        _classic("QueryInstances", _NAMES, _FIELDS, _LOCK),
        _classic("QueryDisks", _NAMES, _FIELDS, _LOCK),
        _classic("QueryFilters", ("uuids", "[str]|null"), _FIELDS),
        _classic("QueryJobs", ("ids", "[int]|null"), _FIELDS),
        _classic("QueryExports", ("nodes", "[str]"), _LOCK, result="[[node, export]]"),
        _read("QueryConfigValues", _FIELDS, result="[value]"),
        _read("QueryClusterInfo", result="object"),
        _read("QueryTags", ("kind", "TagKind"), ("name", "str"), result="[str]"),
        _read("WaitForJobChange", _JOB, _FIELDS, ("prev_job", "[value]|null"),
              ("prev_log", "int|null"), ("tmout", "int"),
              result="[[value], [[serial, [s, us], type, message]]]"),
        _read("WaitForEvents", ("after", "str|null"), ("filter", "object|null"), ("tmout", "int"),
              result="{events: [object], last: str, lost: bool}"),
        _change("ReplaceFilter", ("uuid", "str|null"), ("priority", "uint"),
                ("predicates", "[FilterPredicate]"), ("action", "FilterAction"),
                ("reason", "ReasonTrail"), _USER, result="str"),
        _change("DeleteFilter", _UUID, _USER, result="null"),
        _read("ExplainJob", _JOB, result="object"),
        _read("QueryHistory", ("filter", "object|null"), result="object"),
        _read("QueryConfigDiff", ("t1", "number"), ("t2", "number"), result="object"),
        _change("SubmitJob", _OPS, Argument("key", "str|null", optional=True),
                _USER, result="int"),
        _change("SubmitJobToDrainedQueue", _OPS, result="int"),
        _change("SubmitManyJobs", ("jobs", "[[OpCode]]"), result="[[bool, int|str]]"),
        _change("PickupJob", _JOB, result="null"),
        _change("ArchiveJob", _JOB, result="bool"),
        _change("AutoArchiveJobs", ("age", "int"), ("tmout", "int"), result="[int, int]"),
        _change("CancelJob", _JOB, Argument("kill", "bool", optional=True),
                result="[bool, str]"),
        _change("ChangeJobPriority", _JOB, ("priority", "int -20..19"), result="[bool, str]"),
        _change("SetDrainFlag", ("flag", "bool"), result="true"),
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
        raise errors.RequestError(f"there is no method {name!r}{text.nearest(name, METHODS)}")
    return method


def bind(method: Method, args: Sequence[Any]) -> dict[str, Any]:
    """Arguments by name; optional ones that are missing are left out.

    Raises:
        RequestError: too few or too many.
    """
    least = sum(not arg.optional for arg in method.args)
    most = len(method.args)
    if not least <= len(args) <= most:
        wanted = str(most) if least == most else f"{least} to {most}"
        names = ", ".join(arg.name for arg in method.args)
        raise errors.RequestError(
            f"{method.name} takes {wanted} arguments ({names}), got {len(args)}"
        )
    return {arg.name: value for arg, value in zip(method.args, args, strict=False)}


def encode_request(name: str, args: Sequence[Any]) -> bytes:
    """A request as UTF-8 JSON, without the terminator."""
    request = {"method": name, "args": list(args), "version": constants.PROTOCOL_VERSION}
    return jsonio.request_bytes(request)


def decode_request(data: bytes) -> tuple[str, list[Any]]:
    """Method name and arguments of a request; the name may be unknown.

    Raises:
        RequestError: no JSON object with a text ``method`` and a list ``args``.
    """
    try:
        value = jsonio.read(data)
    except errors.ParseError as err:
        raise errors.RequestError(str(err)) from err
    if not isinstance(value, dict):
        raise errors.RequestError("a request must be a JSON object")
    name, args = value.get("method"), value.get("args")
    if not isinstance(name, str):
        raise errors.RequestError("the key 'method' is missing or no text")
    if not isinstance(args, list):
        raise errors.RequestError("the key 'args' is missing or no list")
    return name, args


def encode_result(value: Any) -> bytes:
    """The answer to a request that succeeded."""
    return jsonio.answer_bytes({"success": True, "result": value})


def encode_error(err: BaseException) -> bytes:
    """The answer to a request that failed.

    A RequestError becomes plain text: the server closes the connection after it.
    """
    result: Any = errors.encode(err)
    if isinstance(err, errors.RequestError):
        result = _PARSE_FAILURE + errors.text(err)
    return jsonio.dumps_bytes({"success": False, "result": result})


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
        raise errors.ProtocolError("The answer of the master daemon lacks 'success' or 'result'")
    ours = constants.PROTOCOL_VERSION
    version = value.get("version", ours)
    if version != ours:
        raise errors.ProtocolError(
            f"The master daemon speaks version {version}, this program {ours}:"
            " restart the daemon, or use the programs of its version"
        )
    if value["success"]:
        return value["result"]
    failure = errors.decode(value["result"])
    if failure is not None:
        raise failure
    raise errors.RequestError(str(value["result"]))
