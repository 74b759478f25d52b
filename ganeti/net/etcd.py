"""An etcd cluster as its client sees it, over the JSON gateway of its API v3.

A request goes to one member after the other until one answers. So the time for a request is limited
as a whole, and a member that hangs uses only a part of it. A change whose answer was lost may have
been made; the caller has to find out.

Source: etcd v3.4, ``Documentation/dev-guide/api_grpc_gateway.md`` and ``rpc.proto``.
"""

from __future__ import annotations

import base64
import http
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from ganeti import errors
from ganeti.base import typed
from ganeti.base.clock import SYSTEM, Clock, Deadline
from ganeti.net import http_client
from ganeti.net.etcd_settings import Member, Settings
from ganeti.net.http_link import Call, Response, read_clock

#: Largest accepted answer in bytes.
_MOST: Final = 1 << 20
#: Shortest time in seconds that one member gets.
_SHORTEST: Final = 0.05
#: Status codes of gRPC that every member would answer with: another one need not be asked.
_NOT_FOUND: Final = 5
_FINAL: Final = frozenset({3, _NOT_FOUND, 7, 9, 12, 16})

# what it stores ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Item:
    """The value of a key; one that was never set has revision 0."""

    value: str = ""
    #: number of the change that set it
    revision: int = 0
    #: id of the lease with which it ends, 0 for none
    lease: int = 0


class LeaseGoneError(errors.RemoteError):
    """The lease has ended; travels as ``RemoteError``."""

    @property
    def wire_name(self) -> str:
        return "RemoteError"


@dataclass(frozen=True, slots=True)
class Health:
    """The health of one member, by its own answer."""

    member: Member
    #: why it did not answer; empty: it did
    problem: str = ""
    version: str = ""
    #: whether it knows a leader
    has_leader: bool = False
    alarms: tuple[str, ...] = ()
    #: seconds that its clock is ahead; None: unknown
    clock_ahead: float | None = None


class _KeyValue(msgspec.Struct):
    key: str
    value: str = ""
    mod_revision: str = "0"
    lease: str = "0"


class _Range(msgspec.Struct):
    kvs: list[_KeyValue] = []


class _Response(msgspec.Struct):
    response_range: _Range | None = None


class _Answer(msgspec.Struct):
    """Members of answers; the gateway writes 64-bit numbers as texts, and omits zeros."""

    succeeded: bool = False
    responses: list[_Response] = []
    ID: str = "0"
    TTL: str = "0"
    version: str = ""
    leader: str = "0"
    errors: list[str] = []


class _Refusal(msgspec.Struct):
    error: str = ""
    code: int = 0


# the client --------------------------------------------------------------------------------------


class Etcd:
    """A client of one etcd cluster. Thread-safe.

    All methods but :meth:`close` raise:

    Raises:
        RemoteError: no member answers in time, or etcd refuses; the text names each member.
    """

    def __init__(self, settings: Settings, clock: Clock = SYSTEM) -> None:
        """Raises X509CertError for a certificate that cannot be used."""
        self.settings = settings
        self._clock = clock
        identity = settings.identity
        self._context = None if identity is None else identity.client_context()
        self._client = http_client.Client(self._context, threads=8, max_response=_MOST)
        #: the member that answered last is asked first
        self._first = settings.members[0]

    def close(self) -> None:
        self._client.stop()

    def __enter__(self) -> Etcd:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def grant(self, seconds: int, end: Deadline) -> tuple[int, int]:
        """Begin a lease; its id, and its length in seconds, which may be more than was asked for.

        It begins after this method was called, and a majority of the members knows of it.
        """
        answer = self._ask("/v3/lease/grant", {"TTL": str(seconds)}, end)
        return int(answer.ID), int(answer.TTL)

    def revoke(self, lease: int, end: Deadline) -> None:
        """End a lease, with its keys; it may have ended already."""
        try:
            self._ask("/v3/lease/revoke", {"ID": str(lease)}, end)
        except LeaseGoneError:
            return

    def read(self, keys: Sequence[str], end: Deadline) -> dict[str, Item]:
        """The newest values of some keys, all of the same moment."""
        return self.change({}, {}, end, reads=keys)[1]

    def change(
        self,
        conditions: Mapping[str, Item],
        values: Mapping[str, str],
        end: Deadline,
        *,
        lease: Mapping[str, int] | None = None,
        reads: Iterable[str] = (),
    ) -> tuple[bool, dict[str, Item]]:
        """Set values if each key in ``conditions`` is as there, all in one step.

        An item is compared by its revision, or by its value if that is 0; without both, the key
        must not be set. ``lease`` says with which lease a key ends. Returns whether the values
        were set, and if not what the keys in ``reads`` are.

        Raises:
            LeaseGoneError: one of the leases has ended.
        """
        lease = lease or {}
        wanted = list(reads)
        ranges = [{"request_range": {"key": _encode(key)}} for key in wanted]
        puts = [
            {
                "request_put": {
                    "key": _encode(key),
                    "value": _encode(value),
                    "lease": str(lease.get(key, 0)),
                }
            }
            for key, value in values.items()
        ]
        request = {
            "compare": [_compare(key, item) for key, item in conditions.items()],
            "success": puts if values else ranges,
            "failure": ranges,
        }
        answer = self._ask("/v3/kv/txn", request, end)
        if answer.succeeded and values:
            return True, {}
        return answer.succeeded, _read_items(wanted, answer)

    def examine(self, seconds: float) -> list[Health]:
        """Ask all members how they are, at the same time; each gets so much time."""
        calls = [
            self._make_call(member, "/v3/maintenance/status", b"{}", seconds)
            for member in self.settings.members
        ]
        begin = self._clock.now()
        answers = self._client.fan_out(calls)
        end = self._clock.now()
        return [
            _judge(member, answer, begin, end)
            for member, answer in zip(self.settings.members, answers, strict=True)
        ]

    # one request -------------------------------------------------------------------------------

    def _ask(self, path: str, request: Mapping[str, object], end: Deadline) -> _Answer:
        """Ask one member after the other, the one that answered last first.

        None gets more than its part of half of the time that is left: to connect, and as much for
        the answer.
        """
        if self._context is not None:
            self._context.reload_if_changed()
        body = msgspec.json.encode(request)
        members = self.settings.members
        begin = members.index(self._first)
        failures = []
        for member in (*members[begin:], *members[:begin]):
            part = max(end.left / (2 * len(members)), _SHORTEST)
            try:
                response = self._client.perform(self._make_call(member, path, body, part))
            except errors.RpcError as err:
                failures.append(errors.text(err))
                continue
            if response.status == http.HTTPStatus.OK:
                self._first = member
                return _decode(response, member)
            failures.append(_explain(response, member))
        raise errors.RemoteError(f"no member of etcd answers: {'; '.join(failures)}")

    @staticmethod
    def _make_call(member: Member, path: str, body: bytes, seconds: float) -> Call:
        return Call(member.host, member.port, path, body, seconds, seconds, check_host=True)


def _encode(text: str) -> str:
    return base64.b64encode(text.encode("utf-8")).decode("ascii")


def _decode_text(text: str) -> str:
    return base64.b64decode(text).decode("utf-8", "replace")


def _compare(key: str, item: Item) -> dict[str, str]:
    if item.value and not item.revision:
        return {"key": _encode(key), "target": "VALUE", "value": _encode(item.value)}
    return {"key": _encode(key), "target": "MOD", "mod_revision": str(item.revision)}


def _read_items(keys: Sequence[str], answer: _Answer) -> dict[str, Item]:
    found: dict[str, Item] = {}
    for key, response in zip(keys, answer.responses, strict=False):
        kvs = response.response_range.kvs if response.response_range is not None else []
        found[key] = (
            Item(_decode_text(kvs[0].value), int(kvs[0].mod_revision), int(kvs[0].lease))
            if kvs
            else Item()
        )
    return found


def _decode(response: Response, member: Member) -> _Answer:
    try:
        return typed.decode(response.body, _Answer)
    except msgspec.DecodeError as err:
        raise errors.RemoteError(f"{member} does not answer as etcd does: {err}") from err


def _explain(response: Response, member: Member) -> str:
    """Why a member does not do what it was asked; raises if no other one would."""
    try:
        refusal = typed.decode(response.body, _Refusal)
    except msgspec.DecodeError:
        refusal = _Refusal(f"HTTP status {response.status}")
    text = f"{member}: {refusal.error[:200]}"
    if refusal.code == _NOT_FOUND:
        raise LeaseGoneError(text)
    if refusal.code in _FINAL:
        raise errors.RemoteError(text)
    return text


def _judge(
    member: Member, answer: Response | errors.GanetiError, begin: float, end: float
) -> Health:
    if isinstance(answer, errors.GanetiError):
        return Health(member, errors.text(answer))
    try:
        if answer.status != http.HTTPStatus.OK:
            return Health(member, _explain(answer, member))
        found = _decode(answer, member)
    except errors.RemoteError as err:
        return Health(member, errors.text(err))
    return Health(
        member,
        version=found.version,
        has_leader=found.leader != "0",
        alarms=tuple(found.errors),
        clock_ahead=read_clock(answer.headers.get("date", ""), begin, end),
    )
