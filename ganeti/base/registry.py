"""Name to class, imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Generic, TypeVar, cast

from ganeti import errors
from ganeti.base.text import nearest

T = TypeVar("T")


class Registry(Generic[T]):
    """A table ``name -> "module:Attribute"``; a driver costs nothing until it is used."""

    def __init__(self, what: str, table: Mapping[str, str]) -> None:
        self._what = what
        self._table = dict(table)
        self._loaded: dict[str, T] = {}

    def names(self) -> list[str]:
        return sorted(self._table)

    def __contains__(self, name: object) -> bool:
        return name in self._table

    def get(self, name: str) -> T:
        """The class of a name.

        Raises:
            ParameterError: no such name; the text lists the known ones.
        """
        found = self._loaded.get(name)
        if found is None:
            where = self._table.get(name)
            if where is None:
                raise errors.ParameterError(
                    f"unknown {self._what} '{name}'{nearest(name, self._table)};"
                    f" choose from {', '.join(self.names())}"
                )
            module, _, attribute = where.partition(":")
            found = cast(T, getattr(importlib.import_module(module), attribute))
            self._loaded[name] = found
        return found
