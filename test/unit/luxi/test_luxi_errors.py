"""Every error survives the way over the wire, under the name that other programs know."""

from __future__ import annotations

import pytest

from ganeti import errors
from ganeti.luxi import calls

#: Name of each documented error, and arguments of the documented form.
DOCUMENTED = {
    "AddressPoolError": ["m"],
    "BlockDeviceError": ["m"],
    "CommandError": ["m"],
    "ConfdClientError": ["m"],
    "ConfdMagicError": ["m"],
    "ConfigVerifyError": ["m", ["a", "b"]],
    "ConfigVersionMismatch": [3020000, 2090000],
    "ConfigurationError": ["m"],
    "DeviceCreationError": ["m"],
    "FileStoragePathError": ["m"],
    "GenericError": ["m"],
    "HooksAbort": [[["node1", "script", "output"]]],
    "HooksFailure": ["m"],
    "HotplugError": ["m"],
    "HypervisorError": ["m"],
    "IPAddressError": ["m"],
    "InotifyError": ["m"],
    "JobCanceled": ["m"],
    "JobFileCorrupted": ["m"],
    "JobLost": ["m"],
    "JobQueueDrainError": ["m"],
    "JobQueueError": ["m"],
    "JobQueueFull": [],
    "LockError": ["m"],
    "LuxiError": ["m"],
    "NoCtypesError": ["m"],
    "OpCodeUnknown": ["m"],
    "OpExecError": ["m"],
    "OpPrereqError": ["m", "wrong_input"],
    "OpResultError": ["m"],
    "OpRetryNotSupportedError": ["m"],
    "ParameterError": ["m"],
    "ParseError": ["m"],
    "PidFileLockError": ["m"],
    "ProgrammerError": ["m"],
    "QueryFilterParseError": ["m"],
    "RapiTestResult": ["m"],
    "RemoteError": ["m"],
    "ReservationError": ["m"],
    "ResolverError": ["host", 5, "text"],
    "ResultValidationError": ["m"],
    "SignatureError": ["m"],
    "SshUpdateError": ["m"],
    "StorageError": ["m"],
    "TagError": ["m"],
    "TypeEnforcementError": ["m"],
    "UdpDataSizeError": ["m"],
    "UnitParseError": ["m"],
    "X509CertError": ["file", "m"],
}

#: Who catches the parent must catch the child.
PARENTS = {
    "ConfigVerifyError": "ConfigurationError",
    "ConfigVersionMismatch": "ConfigurationError",
    "HooksAbort": "HooksFailure",
    "HotplugError": "HypervisorError",
    "JobQueueDrainError": "JobQueueError",
    "JobQueueFull": "JobQueueError",
    "PidFileLockError": "LockError",
    "QueryFilterParseError": "ParseError",
}


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_documented_errors(name):
    cls = getattr(errors, name)
    parent = getattr(errors, PARENTS.get(name, "GanetiError"))
    assert issubclass(cls, parent)
    wire = calls.encode_error(cls(*DOCUMENTED[name]))
    with pytest.raises(cls) as caught:
        calls.decode_response(wire)
    assert type(caught.value) is cls
    assert list(caught.value.args) == DOCUMENTED[name]


@pytest.mark.parametrize("name", sorted(set(errors.CLASSES) - {"RequestError"}))
def test_every_error_comes_back_as_itself(name):
    cls = errors.CLASSES[name]
    for args in ([], ["words"], ["words", ["more", {"a": 1}], None]):
        error = cls.__new__(cls)
        Exception.__init__(error, *args)
        with pytest.raises(errors.GanetiError) as caught:
            calls.decode_response(calls.encode_error(error))
        assert type(caught.value) is cls
        assert list(caught.value.args) == args


@pytest.mark.parametrize("name", sorted(set(errors.CLASSES) - {"RequestError", "GanetiError"}))
def test_others_get_a_class_that_they_know(name):
    """Programs of others decode only documented names, with a list of arguments."""
    error = errors.CLASSES[name]("words")
    answer = calls.jsonio.loads(calls.encode_error(error))
    assert answer["result"] == errors.encode_known(error)
    known, args = answer["result"]
    assert known in DOCUMENTED
    assert args == ["words"]
    assert isinstance(error, getattr(errors, known)) or known in ("OpExecError", "LuxiError")


@pytest.mark.parametrize("code", sorted(errors.ErrorCode))
def test_the_codes_of_refusals(code):
    with pytest.raises(errors.OpPrereqError) as caught:
        calls.decode_response(calls.encode_error(errors.OpPrereqError("m", code)))
    assert caught.value.args == ("m", str(code))
    assert errors.text(caught.value) == "m"


def test_the_codes_are_the_documented_ones():
    assert set(errors.ErrorCode) == {
        "already_exists",
        "environment_error",
        "insufficient_resources",
        "internal_error",
        "resolver_error",
        "resource_not_unique",
        "temp_insufficient_resources",
        "unknown_entity",
        "wrong_input",
        "wrong_state",
    }


def test_a_refused_request_is_plain_text():
    wire = calls.encode_error(errors.RequestError("nonsense"))
    assert b'"Failed to parse request: nonsense"' in wire
    with pytest.raises(errors.RequestError, match="Failed to parse request: nonsense"):
        calls.decode_response(wire)


def test_a_foreign_exception_does_not_get_out_by_its_name():
    with pytest.raises(errors.OpExecError, match="internal error: ZeroDivisionError: x"):
        calls.decode_response(calls.encode_error(ZeroDivisionError("x")))


@pytest.mark.parametrize(
    "result", ["text", ["OfTheFuture", ["m"]], ["SystemExit", [1]], ["GenericError"], {"a": 1}]
)
def test_what_is_no_known_error_is_shown_as_it_is(result):
    wire = calls.jsonio.dumps_bytes({"success": False, "result": result})
    with pytest.raises(errors.RequestError) as caught:
        calls.decode_response(wire)
    assert str(result) in str(caught.value)


@pytest.mark.parametrize("answer", [b"", b"hello", b"[1]", b'{"success": true}', b'{"result": 1}'])
def test_an_answer_of_another_protocol(answer):
    with pytest.raises(errors.ProtocolError):
        calls.decode_response(answer)


def test_an_answer_of_another_version_says_which():
    with pytest.raises(errors.ProtocolError, match="speaks version 2090000, this program"):
        calls.decode_response(b'{"success": true, "result": 1, "version": 2090000}')
