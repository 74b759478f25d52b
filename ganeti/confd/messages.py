"""Messages on the wire: four bytes, then JSON with a signed inner message. Pure.

A packet is ``plj0{"msg": text, "salt": text, "hmac": hex}``; the HMAC-SHA1 covers salt and message,
its key are the bytes of ``hmac.key``. The salt of a request is the time, that of a reply is the
``rsalt`` of its request. Nothing is encrypted.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeVar

import msgspec

from ganeti import errors
from ganeti.base import jsonio, typed
from ganeti.base.json_types import JsonObject

T = TypeVar("T")

MAGIC = b"plj0"
PROTOCOL = 1
#: Largest packet in bytes.
MAX_PACKET = 61440
#: Seconds that the clocks of both sides may differ.
SKEW = 300.0

_TIME = re.compile(r"[0-9]{1,12}")


class Kind(IntEnum):
    """Kind of a request."""

    PING = 0
    NODE_ROLE = 1
    NODE_IP_BY_INSTANCE_IP = 2
    CLUSTER_MASTER = 3
    NODE_IPS = 4
    CANDIDATE_IPS = 5
    INSTANCE_IPS = 6
    NODE_MINORS = 7
    NODE_INSTANCES = 8
    INSTANCE_DISKS = 9
    CONFIG_VALUE = 10
    DATA_COLLECTORS = 11


class Status(IntEnum):
    """The result of a request."""

    OK = 0
    ERROR = 1
    NOT_IMPLEMENTED = 2


class Fault(IntEnum):
    """Answer of a request that failed, unless it is a text."""

    UNKNOWN_ENTRY = 0
    INTERNAL = 1
    ARGUMENT = 2


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """``rsalt`` is any text that no other request has."""

    protocol: int
    type: int
    rsalt: str
    query: Any = None


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """``serial`` is that of the cluster, node or instance of the answer."""

    protocol: int = PROTOCOL
    status: int
    answer: Any
    serial: int = 0


@dataclass(frozen=True)
class Sealed:
    """A packet whose signature is right."""

    salt: str
    #: the inner message
    message: Mapping[str, object]
    signature: str


def _sign(salt: str, text: str, key: bytes) -> str:
    return hmac.new(key, f"{salt}{text}".encode(), hashlib.sha1).hexdigest()


def seal(message: Request | Reply, salt: str, key: bytes) -> bytes:
    """The packet of a message."""
    text = jsonio.dumps(msgspec.to_builtins(message))
    envelope = {"msg": text, "salt": salt, "hmac": _sign(salt, text, key)}
    return MAGIC + jsonio.dumps_bytes(envelope)


def unseal(packet: bytes, key: bytes) -> Sealed:
    """Check the signature of a packet; nothing in it is read before.

    Raises:
        ParseError: it is not a packet, or not signed with this key.
    """
    if not packet.startswith(MAGIC):
        raise errors.ParseError("it does not begin with plj0")
    outer = _read(packet[len(MAGIC) :])
    text, salt, signature = outer.get("msg"), outer.get("salt"), outer.get("hmac")
    if not (isinstance(text, str) and isinstance(salt, str) and isinstance(signature, str)):
        raise errors.ParseError("msg, salt and hmac must be texts")
    wanted = _sign(salt, text, key)
    if not hmac.compare_digest(wanted.encode(), signature.lower().encode()):
        raise errors.ParseError("the signature is wrong")
    return Sealed(salt, _read(text.encode()), wanted)


def _read(data: bytes) -> JsonObject:
    found = jsonio.read_request(data)
    if not isinstance(found, dict):
        raise errors.ParseError("it is not an object")
    return found


def request(sealed: Sealed, now: float) -> Request:
    """The request in a packet.

    Raises:
        ParseError: its time is too far from ours, or it is not a request.
    """
    if not _TIME.fullmatch(sealed.salt) or abs(now - int(sealed.salt)) > SKEW:
        raise errors.ParseError(f"its salt is not a time within {SKEW:.0f} s")
    return _convert(sealed.message, Request)


def reply(sealed: Sealed, rsalt: str) -> Reply:
    """The reply in a packet; ParseError when it belongs to another request."""
    if sealed.salt != rsalt:
        raise errors.ParseError("it answers another request")
    return _convert(sealed.message, Reply)


def _convert(message: Mapping[str, object], kind: type[T]) -> T:
    try:
        return typed.convert(dict(message), kind)
    except msgspec.ValidationError as err:
        raise errors.ParseError(str(err)) from err
