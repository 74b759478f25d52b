"""Typed calls to node daemons: one node, or many at the same time.

A call is named by its method of :class:`NodeCalls`, so arguments and result are checked by mypy::

    rpc.call_one(node, NodeCalls.blockdev_remove, disk)
    answers = rpc.call_many(nodes, NodeCalls.version)
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from ganeti import constants, errors
from ganeti.base import jsonio, patience
from ganeti.base.log_lines import JOB
from ganeti.model.ids import GroupUuid, NodeUuid
from ganeti.model.node import Node
from ganeti.net import resolve
from ganeti.net.http_client import Client
from ganeti.net.http_link import CONNECT_TIMEOUT, Call, Response
from ganeti.net.tls.contexts import Identity, ReloadableContext
from ganeti.net.tls.stream import TLSSocket
from ganeti.rpc import leases, objects, wire
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.rounds import Rounds
from ganeti.rpc.tally import CallTally
from ganeti.rpc.wire import CallSpec

_LOG = logging.getLogger(__name__)

#: HTTP status with which a node refuses the calls of a master that was replaced.
DEPOSED = 409
#: HTTP status with which a node refuses a caller that is not a master candidate.
REFUSED = 403

P = ParamSpec("P")
T = TypeVar("T")

Method = Callable[Concatenate[NodeCalls, P], T]


@dataclass(frozen=True)
class Answer(Generic[T]):
    """The result of a call to one node: a value, or an error."""

    node: Node
    value: T | None = None
    error: errors.GanetiError | None = None
    #: the node is marked offline and was not asked
    offline: bool = False

    @property
    def ok(self) -> bool:
        return self.error is None

    def get(self) -> T:
        """The value; raises the error of a failed call."""
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]


class NodeRpc:
    """Calls node daemons over kept connections. Thread-safe.

    Nothing is sent before the certificate that answers is that of the node, by its name.

    Errors: RpcError when a node cannot be reached, is marked offline or answers something else;
    whatever GanetiError the node itself raised. The text begins with the node's name.
    """

    def __init__(self, context: ReloadableContext) -> None:
        #: how calls to each node went
        self.tally = CallTally()
        self._client = Client(context)
        self._client.on_end = self.tally.note
        self._port = resolve.port(constants.NODED)
        self._limit = float("inf")
        #: holds for the connection as well, and on slow machines as on others
        self._exact_limit = float("inf")
        self._rounds = Rounds()
        self._sharing = False
        #: number of the master term that calls carry; 0: none
        self.epoch = 0
        #: name of the node that claimed it
        self.master = ""
        #: renews leases of nodes with the calls of a master
        self.leases: leases.Granting | None = None
        #: called when a node says that this master was replaced
        self.on_deposed: Callable[[str], None] = lambda _text: None

    def renew(self) -> None:
        """Call with the certificate that is now in the files of this node.

        Raises:
            X509CertError: a file cannot be used; the old certificate stays in use.
        """
        self._client.renew()

    def use_files(self, certificate: Path, authorities: Path) -> NodeRpc:
        """The same calls over connections of their own, with another certificate; stop it later.

        Raises:
            X509CertError: a file cannot be used.
        """
        other = copy.copy(self)
        other._client = Client(Identity(certificate, authorities).client_context())
        return other

    def limit_time(self, seconds: float) -> NodeRpc:
        """The same calls over the same connections, none of which may take longer than this."""
        limited = copy.copy(self)
        limited._limit = seconds
        return limited

    def limit_time_exactly(self, seconds: float) -> NodeRpc:
        """Like :meth:`limit_time`, for calls that others must not wait for longer.

        It holds for the connection as well, and is not scaled for slow machines.
        """
        limited = self.limit_time(seconds)
        limited._exact_limit = seconds
        return limited

    def share_calls(self) -> NodeRpc:
        """The same calls, for those that only read: equal ones made at the same time are one.

        Answers are never older than the call (see :class:`Rounds`); nobody may change them.
        """
        shared = copy.copy(self)
        shared._sharing = True
        return shared

    def call_one(self, node: Node, method: Method[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call one node and wait for its answer; blocks up to the call's time-out."""
        return self.call_many([node], method, *args, **kwargs)[node.uuid].get()

    def open_stream(
        self, node: Node, method: Method[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> tuple[T, TLSSocket]:
        """Call one node; the connection stays open for bytes that follow the answer.

        Blocks up to the call's time-out. The caller closes the connection.
        """
        spec = _spec(method)
        if node.offline:
            raise errors.RpcError(f"node {node.name} is marked offline")
        request = self._request(spec, node, _body(spec, args, kwargs, node))
        try:
            response, connection = self._client.detach(request)
        except errors.GanetiError as err:
            raise _name_error(node, spec, err) from err
        try:
            return _answer(spec, node, response).get(), connection
        except BaseException:  # an interrupt too: close the connection and raise it
            connection.close()
            raise

    def call_many(
        self, nodes: Iterable[Node], method: Method[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> dict[NodeUuid, Answer[T]]:
        """The same call to many nodes at once; answers by node uuid. Never raises for a node."""
        spec = _spec(method)
        common = _body(spec, args, kwargs) if objects.localised(args, "") is args else None
        return self._fan_out(
            spec,
            {
                node.uuid: (node, _body(spec, args, kwargs, node) if common is None else common)
                for node in nodes
            },
        )

    def call_each(
        self,
        method: Callable[..., T],
        arguments: Mapping[NodeUuid, tuple[Node, tuple[object, ...]]],
    ) -> dict[NodeUuid, Answer[T]]:
        """One call to many nodes with different arguments: node uuid -> (node, arguments)."""
        spec = _spec(method)
        todo = {
            uuid: (node, _body(spec, args, {}, node)) for uuid, (node, args) in arguments.items()
        }
        return self._fan_out(spec, todo)

    def call_address(
        self, address: str, name: str, method: Method[P, T], *args: P.args, **kw: P.kwargs
    ) -> T:
        """Call a daemon that is not a node of the configuration (yet) by its address."""
        node = Node(
            uuid=NodeUuid(""),
            name=name,
            primary_ip=address,
            secondary_ip=address,
            group=GroupUuid(""),
        )
        spec = _spec(method)
        answers: dict[NodeUuid, Answer[T]] = self._fan_out(
            spec, {node.uuid: (node, _body(spec, args, kw))}
        )
        return answers[node.uuid].get()

    def _fan_out(
        self, spec: CallSpec, todo: Mapping[NodeUuid, tuple[Node, bytes]]
    ) -> dict[NodeUuid, Answer[Any]]:
        if not self._sharing:
            return self._ask(spec, todo)
        key = (
            spec.name,
            *(
                (uuid, node.name, node.primary_ip, node.offline, body)
                for uuid, (node, body) in todo.items()
            ),
        )
        return self._rounds.share(key, lambda: self._ask(spec, todo))

    def _ask(
        self, spec: CallSpec, todo: Mapping[NodeUuid, tuple[Node, bytes]]
    ) -> dict[NodeUuid, Answer[Any]]:
        asked = {uuid: item for uuid, item in todo.items() if not item[0].offline}
        sent = self.leases.now() if self.leases else 0.0
        requests = [self._request(spec, node, body) for node, body in asked.values()]
        if len(requests) == 1:
            replies: list[Response | errors.GanetiError] = [self._perform(requests[0])]
        else:
            replies = list(self._client.fan_out(requests))
        self._note_stamps(sent, dict(zip(asked, replies)))
        result = {
            uuid: _answer(spec, node, reply)
            for (uuid, (node, _body)), reply in zip(asked.items(), replies)
        }
        for answer in result.values():
            if isinstance(answer.error, errors.DeposedError):
                self.on_deposed(errors.text(answer.error))
        for uuid, (node, _body) in todo.items():
            if node.offline:
                error = errors.RpcError(f"node {node.name} is marked offline")
                result[uuid] = Answer(node, error=error, offline=True)
        return result

    def _request(self, spec: CallSpec, node: Node, body: bytes) -> Call:
        term = f"{self.epoch} {self.master}".strip()
        headers: tuple[tuple[str, str], ...] = (("X-Ganeti-Epoch", term),) if self.epoch else ()
        if job := JOB.get():
            headers = (*headers, (wire.JOB_HEADER, job))
        if self.epoch and self.leases and (grant := self.leases.grant(node.uuid)) is not None:
            headers = (*headers, (leases.LEASE_HEADER, leases.encode(grant)))
        return Call(
            host=node.primary_ip,
            port=self._port,
            path=f"/{spec.name}",
            body=body,
            timeout=min(patience.scale(min(spec.timeout, self._limit)), self._exact_limit),
            connect_timeout=min(patience.scale(CONNECT_TIMEOUT), self._exact_limit),
            expected_cn=node.name,
            headers=headers,
        )

    def _note_stamps(
        self, sent: float, replies: Mapping[NodeUuid, Response | errors.GanetiError]
    ) -> None:
        """Note stamps of answers. Each answer in this master's term shows that the node lives."""
        if not (self.epoch and self.leases):
            return
        for node, reply in replies.items():
            if isinstance(reply, errors.GanetiError) or reply.status in (DEPOSED, REFUSED):
                continue
            try:
                stamp = leases.read_stamp(reply.headers.get(leases.STAMP_HEADER.lower()))
            except errors.ParseError as err:
                _LOG.warning("node %s: %s", node, errors.text(err))
                stamp = None
            self.leases.hear(node, sent, stamp)

    def _perform(self, request: Call) -> Response | errors.GanetiError:
        try:
            return self._client.perform(request)
        except errors.GanetiError as err:
            return err

    def stop(self) -> None:
        """Close all connections and end all threads."""
        self._client.stop()


def _spec(method: Callable[..., object]) -> CallSpec:
    return wire.specs()[method.__name__]


def _body(
    spec: CallSpec, args: tuple[object, ...], kwargs: Mapping[str, object], node: Node | None = None
) -> bytes:
    """Arguments on the wire; with ``node`` as they hold on that node."""
    if kwargs:
        raise errors.ProgrammerError("node calls take positional arguments only")
    if node is not None:
        args = objects.localised(args, node.uuid)
    return jsonio.dumps_bytes(wire.encode(wire.trim_args(spec, args)))


def _answer(spec: CallSpec, node: Node, reply: Response | errors.GanetiError) -> Answer[Any]:
    try:
        return Answer(node, value=_value(spec, reply))
    except errors.GanetiError as err:
        return Answer(node, error=_name_error(node, spec, err))


def _value(spec: CallSpec, reply: Response | errors.GanetiError) -> object:
    if isinstance(reply, errors.GanetiError):
        raise reply
    if reply.status == DEPOSED:
        raise errors.DeposedError(reply.body.decode("utf-8", "replace"))
    if reply.status == REFUSED:
        text = reply.body[:500].decode("utf-8", "replace")
        raise errors.RefusedCallError(f"refused the call: {text}")
    if reply.status != 200:
        raise errors.RpcError(f"refused the call with HTTP status {reply.status}")
    try:
        ok, payload = jsonio.loads(reply.body)
    except (ValueError, TypeError, errors.ParseError) as err:
        raise errors.RemoteError(f"answered something that is not a result: {err}") from err
    if ok:
        return wire.decode_result(spec, payload)
    error = errors.decode(payload)
    raise error if error is not None else errors.RpcError(str(payload))


def _name_error(node: Node, spec: CallSpec, err: errors.GanetiError) -> errors.GanetiError:
    """The same error, with the node and the call in its text."""
    text = f"node {node.name}: {spec.name}: {errors.text(err)}"
    named = errors.decode([err.wire_name, [text, *err.args[1:]]])
    return named if named is not None else errors.RpcError(text)
