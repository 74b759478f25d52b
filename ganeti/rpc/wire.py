"""Node calls on the wire: how arguments, results and contents of files travel as JSON.

Everything is derived from the signatures in ``rpc/calls/``; all functions are pure.
"""

from __future__ import annotations

import base64
import inspect
import typing
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast, get_type_hints

import msgspec

from ganeti import errors
from ganeti.base import typed
from ganeti.rpc.calls import NodeCalls

#: Header of a call that is made for a job: its id, for the log of the node.
JOB_HEADER = "X-Ganeti-Job"
#: Below this many bytes a text travels uncompressed.
COMPRESS_FROM = 512


def encode_content(data: str) -> list[Any]:
    """A file's content for the wire: ``[0, text]`` or ``[1, base64 of zlib]``."""
    raw = data.encode("utf-8")
    if len(raw) < COMPRESS_FROM:
        return [0, data]
    return [1, base64.b64encode(zlib.compress(raw, 3)).decode("ascii")]


def decode_content(value: list[Any]) -> str:
    """Inverse of :func:`encode_content`; ParseError for anything else."""
    try:
        kind, text = value
        if kind == 0:
            return str(text)
        if kind == 1:
            return zlib.decompress(base64.b64decode(text)).decode("utf-8")
    except (ValueError, TypeError, zlib.error) as err:
        raise errors.ParseError(f"encoded content cannot be read: {err}") from err
    raise errors.ParseError(f"encoded content has the unknown kind {kind!r}")


@dataclass(frozen=True)
class CallSpec:
    """A node call as data."""

    name: str
    #: the abstract class that declares it
    family: type
    timeout: float
    #: type of the argument list as a whole
    args: Any
    result: Any
    doc: str
    #: defaults of the last arguments
    defaults: tuple[Any, ...] = ()
    #: whether every node may make it, not only master candidates
    by_any_node: bool = False


@cache
def specs() -> dict[str, CallSpec]:
    """All node calls by name.

    Raises:
        TypeError: a method has lost a decorator, so a node would answer the call with nothing, or
            nobody could make it.
    """
    result = {}
    for family in reversed(NodeCalls.__mro__[:-2]):  # without ABC and object
        for name, function in vars(family).items():
            if name.startswith("_"):
                continue
            abstract = getattr(function, "__isabstractmethod__", False)
            if not (abstract and hasattr(function, "__rpc_timeout__")):
                raise TypeError(
                    f"{family.__name__}.{name} needs @abstractmethod and @call(timeout=...)"
                )
            result[name] = _spec(name, family, function)
    return result


def _spec(name: str, family: type, function: Any) -> CallSpec:
    hints = get_type_hints(function)
    result = hints.pop("return")
    parameters = {k: v for k, v in inspect.signature(function).parameters.items() if k != "self"}
    types = tuple(hints[key] for key in parameters)
    defaults = tuple(v.default for v in parameters.values() if v.default is not v.empty)
    args: Any = tuple[types] if types else tuple[()]  # type: ignore[valid-type]
    return CallSpec(
        name,
        family,
        float(function.__rpc_timeout__),
        args,
        result,
        inspect.getdoc(function) or "",
        defaults,
        bool(function.__rpc_by_any_node__),
    )


def encode(value: object) -> Any:
    """Plain JSON value of arguments or a result."""
    return msgspec.to_builtins(value)


def trim_args(spec: CallSpec, values: Sequence[object]) -> list[object]:
    """Arguments without the last ones that are as by default: an older node may not know them."""
    left = list(values)
    known = list(spec.defaults)
    while known and len(left) > len(typing.get_args(spec.args)) - len(spec.defaults):
        if left[-1] != known.pop():
            break
        left.pop()
    return left


def decode_args(spec: CallSpec, value: Sequence[object]) -> tuple[Any, ...]:
    """Checked arguments; ParameterError names call and argument.

    The last ones may be missing if they have defaults, as an older master does not know them. Of
    objects, members that only a newer master knows are left out. Further arguments are refused: a
    newer master gives them only when they matter.
    """
    missing = len(typing.get_args(spec.args)) - len(value)
    if 0 < missing <= len(spec.defaults):
        value = [*value, *encode(spec.defaults[-missing:])]
    try:
        return cast(tuple[Any, ...], typed.convert(value, spec.args, strict=True))
    except msgspec.ValidationError as err:
        raise errors.ParameterError(f"call {spec.name}: {err}") from err


def decode_result(spec: CallSpec, value: object) -> Any:
    """Checked result; RemoteError when the node answered something else."""
    if spec.result is type(None):
        return None
    try:
        return typed.convert(value, spec.result, strict=True)
    except msgspec.ValidationError as err:
        raise errors.RemoteError(f"call {spec.name}: unexpected answer: {err}") from err
