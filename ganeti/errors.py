"""Every error that can reach a user, with its wire name, exit code and HTTP status.

A class name is its wire name: LUXI, job files and node answers carry ``[name, args]``. Programs of
others know the documented classes only: for a class of our own, LUXI and job files carry the name
in ``known_as``.
A bug is never a :class:`GanetiError`; foreign errors are mapped to one of these where they
enter (``raise X(...) from err``).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, ClassVar


class ErrorCode(StrEnum):
    """Second argument of :class:`OpPrereqError`: which kind of prerequisite failed."""

    RESOLVER = "resolver_error"
    NORES = "insufficient_resources"
    TEMP_NORES = "temp_insufficient_resources"
    INVAL = "wrong_input"
    STATE = "wrong_state"
    NOENT = "unknown_entity"
    EXISTS = "already_exists"
    NOTUNIQUE = "resource_not_unique"
    FAULT = "internal_error"
    ENVIRON = "environment_error"


class GanetiError(Exception):
    """Something went wrong that the message explains; the root of all named errors."""

    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500
    #: for a class of our own: the documented class that others get instead
    known_as: ClassVar[str] = ""

    @property
    def wire_name(self) -> str:
        """Name used in ``[name, args]`` on every wire."""
        return type(self).__name__


class GenericError(GanetiError):
    """An error without a class of its own; the text tells what happened."""


class LockError(GenericError):
    """A lock was requested in a way that is not allowed, or it was removed meanwhile."""


class PidFileLockError(LockError):
    """Another process of the same daemon is running."""


class HypervisorError(GenericError):
    """The hypervisor refused or failed; the text carries its own words."""


class RunRightError(HypervisorError):
    """A node refuses to run an instance: another node may run it, or the right is out of date."""

    known_as = "HypervisorError"


class HotplugError(HypervisorError):
    """A device could not be added to or removed from a running instance."""


class ProgrammerError(GenericError):
    """An internal rule was broken; please report it."""


class BlockDeviceError(GenericError):
    """A disk could not be created, changed, activated or removed."""


class DeviceCreationError(GenericError):
    """A disk could not be created; what was made before it is listed by the operation."""


class ConfigurationError(GenericError):
    """The cluster configuration is missing, damaged or contradicts itself."""

    exit_code = 2


class ConfigVerifyError(ConfigurationError):
    """The configuration has the listed errors."""


class ConfigVersionMismatch(ConfigurationError):
    """The configuration file was written by another version (expected, actual)."""


class ReservationError(GenericError):
    """A name, address or port is already held by another job."""

    http_status = 409


class AddressPoolError(GenericError):
    """A network address is taken, outside its network, or none is left."""


class RemoteError(GenericError):
    """A node or another server gave no answer or a wrong one."""


class RpcError(GenericError):
    """A node could not be reached or refused the call; the text names node and reason."""

    known_as = "OpExecError"


class RefusedCallError(RpcError):
    """A node answers, but does not accept calls of this one."""

    known_as = "OpExecError"


class QuorumError(GenericError):
    """Too few master candidates can be reached to keep something safely; nothing was done."""

    known_as = "GenericError"


class DeposedError(RpcError):
    """A newer master has taken over; this one must stop and changes nothing any more."""


class FileError(GenericError):
    """A file cannot be read or written; the text names it, its file system and the cause."""

    known_as = "OpExecError"
    http_status = 503


class SignatureError(GenericError):
    """A signed message does not carry a valid signature."""


class ParameterError(GenericError):
    """A parameter name is unknown or its value cannot be used."""

    http_status = 400


class ResultValidationError(GenericError):
    """The result of an operation does not have the declared form."""


class OpPrereqError(GenericError):
    """The operation was refused before anything was changed."""

    http_status = 400

    def __init__(
        self, message: str, code: ErrorCode | str | None = None, data: object = None
    ) -> None:
        """``data`` has for programs what the message says to people."""
        if code is None:
            super().__init__(message)
        elif data is None:
            super().__init__(message, str(code))
        else:
            super().__init__(message, str(code), data)


def make_invalid_error(text: str) -> OpPrereqError:
    """The refusal of a request that can never be done as it is given."""
    return OpPrereqError(text, ErrorCode.INVAL)


def make_state_error(text: str) -> OpPrereqError:
    """The refusal of a request that does not fit the state of what it is about."""
    return OpPrereqError(text, ErrorCode.STATE)


def make_unknown_error(text: str) -> OpPrereqError:
    """The refusal of a request that names something that does not exist."""
    return OpPrereqError(text, ErrorCode.NOENT)


def make_exists_error(text: str) -> OpPrereqError:
    """The refusal to make something that exists."""
    return OpPrereqError(text, ErrorCode.EXISTS)


def make_not_unique_error(text: str) -> OpPrereqError:
    """The refusal of an address or device that something else uses."""
    return OpPrereqError(text, ErrorCode.NOTUNIQUE)


def make_resources_error(text: str, data: object = None) -> OpPrereqError:
    """The refusal of a request for which resources do not suffice; ``data`` names them."""
    return OpPrereqError(text, ErrorCode.NORES, data)


def make_environment_error(text: str) -> OpPrereqError:
    """The refusal of a request that something on a node does not allow."""
    return OpPrereqError(text, ErrorCode.ENVIRON)


def make_unresolved_error(text: str) -> OpPrereqError:
    """The refusal of a host name without an address."""
    return OpPrereqError(text, ErrorCode.RESOLVER)


class OpExecError(GenericError):
    """The operation failed while it was changing something."""


class OpNotBuiltError(OpPrereqError):
    """The opcode is known but this version has no operation for it."""

    known_as = "OpPrereqError"
    http_status = 501


class OpResultError(GenericError):
    """The result of an opcode could not be used."""


class OpCodeUnknown(GenericError):
    """No opcode has this OP_ID."""

    http_status = 400


class OpRetryNotSupportedError(GenericError):
    """The operation cannot be tried again."""


class JobLost(GenericError):
    """No job has this id."""

    http_status = 404


class JobFileCorrupted(GenericError):
    """A job file cannot be read; it was moved aside."""


class JobCanceled(GenericError):
    """The job was canceled before it could finish."""


class ResolverError(GenericError):
    """A host name has no address (name, code, text)."""


class HooksFailure(GenericError):
    """Hooks could not be run."""


class HooksAbort(HooksFailure):
    """A pre hook refused the operation ([[node, script, output]])."""


class UnitParseError(GenericError):
    """A size or a time cannot be understood."""

    http_status = 400


class ParseError(GenericError):
    """A text cannot be understood."""

    http_status = 400


class QueryFilterParseError(ParseError):
    """A query filter cannot be understood; the text shows the position."""


class TypeEnforcementError(GenericError):
    """A parameter has a value of the wrong type."""

    http_status = 400


class X509CertError(GenericError):
    """A certificate cannot be used (file name, text)."""


class TagError(GenericError):
    """A tag is not allowed."""

    http_status = 400


class CommandError(GenericError):
    """An external program failed; the text carries its output."""


class StorageError(GenericError):
    """A storage unit could not be read or changed."""


class FileStoragePathError(GenericError):
    """A path is outside the allowed storage directories."""


class InotifyError(GenericError):
    """A file cannot be watched."""


class JobQueueError(GenericError):
    """The job queue could not do what was asked."""


class JobQueueDrainError(JobQueueError):
    """The job queue takes no new jobs because it is drained."""

    http_status = 503


class JobQueueFull(JobQueueError):
    """The job queue takes no new jobs because it is full."""

    http_status = 503


class ConfdMagicError(GenericError):
    """The magic number of a confd message is missing."""


class ConfdClientError(GenericError):
    """A confd query failed."""


class UdpDataSizeError(GenericError):
    """A datagram is too large."""


class NoCtypesError(GenericError):
    """The ctypes module is missing."""


class IPAddressError(GenericError):
    """A text is not an IP address."""

    http_status = 400


class LuxiError(GenericError):
    """The master daemon could not be asked; the text tells what to do."""

    http_status = 502


class NoMasterError(LuxiError):
    """This node is not the master, or its master daemon does not run."""

    known_as = "LuxiError"
    exit_code = 11
    http_status = 503


class TooFewVotesError(NoMasterError):
    """Too few nodes answered to tell who the master is; later there may be enough."""


class TimeoutError(LuxiError):
    """The master daemon did not answer in time."""

    known_as = "LuxiError"
    http_status = 504


class ProtocolError(LuxiError):
    """The other side does not speak LUXI."""

    known_as = "LuxiError"


class ConnectionClosedError(ProtocolError):
    """The other side closed the connection."""


class RequestError(ProtocolError):
    """The master daemon could not understand the request."""


class AccessError(GenericError):
    """The user is known but does not have the permission for this."""

    known_as = "GenericError"
    http_status = 403


class AuthenticationError(AccessError):
    """User name, password or token is missing or wrong."""

    http_status = 401


class ThrottledError(AuthenticationError):
    """Too many wrong passwords came from this address (text, seconds to wait)."""

    http_status = 429

    @property
    def retry_after(self) -> int:
        """Whole seconds after which the next attempt is accepted."""
        return int(self.args[1]) if len(self.args) > 1 else 1


class RapiTestResult(GenericError):
    """A test of the remote API failed."""


class SshUpdateError(GenericError):
    """SSH keys could not be changed on a node."""


def _registry() -> dict[str, type[GanetiError]]:
    found: dict[str, type[GanetiError]] = {}
    todo: list[type[GanetiError]] = [GanetiError]
    while todo:
        cls = todo.pop()
        found[cls.__name__] = cls
        todo.extend(cls.__subclasses__())
    return found


CLASSES: dict[str, type[GanetiError]] = _registry()


def encode(err: BaseException) -> list[object]:
    """``[class name, args]`` of an error; a foreign exception becomes an OpExecError."""
    if isinstance(err, GanetiError):
        return [err.wire_name, list(err.args)]
    return ["OpExecError", [f"internal error: {type(err).__name__}: {err}"]]


def encode_known(err: BaseException) -> list[object]:
    """Like :func:`encode`, with the name of a class that the programs of others know."""
    name, args = encode(err)
    return [getattr(err, "known_as", "") or name, args]


def decode(value: object) -> GanetiError | None:
    """The error that ``encode`` wrote, or None when the value is not an encoded error."""
    if not (isinstance(value, list | tuple) and len(value) == 2):
        return None
    name, args = value
    if not (isinstance(name, str) and isinstance(args, list | tuple)):
        return None
    cls = CLASSES.get(name)
    if cls is None:
        return None
    err = cls.__new__(cls)
    Exception.__init__(err, *args)
    return err


#: The first version of which others can be installed beside it.
_FIRST_BESIDE_OTHERS = 3_020_000


def text(err: BaseException) -> str:
    """One line for a human: the first text argument, or all of them."""
    args: Sequence[Any] = err.args
    if isinstance(err, OpPrereqError) and args:
        return str(args[0])
    if isinstance(err, ConfigVersionMismatch) and [type(arg) for arg in args] == [int, int]:
        wanted, found = (f"{arg // 1_000_000}.{arg // 10_000 % 100}" for arg in args)
        way = "cfgupgrade brings it there"
        if args[1] >= _FIRST_BESIDE_OTHERS:
            way = f"'ganeti-daemon-util switch-version {found}' uses that version on this node"
        return f"the configuration is of version {found}, this software needs {wanted}; {way}"
    return ", ".join(str(arg) for arg in args) or type(err).__name__
