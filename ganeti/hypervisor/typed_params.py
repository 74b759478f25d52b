"""Typed parameters of a hypervisor from the plain values that travel to a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from ganeti import errors
from ganeti.base import typed
from ganeti.base.text import nearest

P = TypeVar("P", bound=msgspec.Struct)


def load(kind: type[P], values: Mapping[str, object], hypervisor: str) -> P:
    """Typed parameters; missing ones get the builtin value.

    Raises:
        HypervisorError: unknown name, or a value of the wrong type.
    """
    known = [field.name for field in typed.fields(kind)]
    for key in values:
        if key not in known:
            raise errors.HypervisorError(
                f"unknown {hypervisor} parameter '{key}'{nearest(key, known)}"
            )
    try:
        return typed.convert(values, kind)
    except msgspec.ValidationError as err:
        raise errors.HypervisorError(f"{hypervisor} parameter: {err}") from err
