"""How long node calls may take, and the annotation that declares it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

#: Time-out classes in seconds.
REPLICA = 30.0
URGENT = 60.0
FAST = 300.0
NORMAL = 900.0
SLOW = 3600.0
ONE_DAY = 86400.0

F = TypeVar("F", bound=Callable[..., Any])


def call(*, timeout: float, by_any_node: bool = False) -> Callable[[F], F]:
    """Mark an abstract method as a node call that may take ``timeout`` seconds.

    With ``by_any_node`` every node of the cluster may make it, not only master candidates.
    """

    def mark(function: F) -> F:
        function.__rpc_timeout__ = timeout  # type: ignore[attr-defined]
        function.__rpc_by_any_node__ = by_any_node  # type: ignore[attr-defined]
        return function

    return mark
