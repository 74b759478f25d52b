"""Classes of named values, for modules that every command imports.

``dataclasses`` imports the tools that inspect and compile source text, and compiles methods for
each class: together half of the start of a command. A record has the same form and costs nothing
like that; constructing one takes longer, so it is for objects of which there are few.
"""

from __future__ import annotations

from typing import ClassVar, dataclass_transform


@dataclass_transform(frozen_default=True)
class Record:
    """Base of classes whose annotated attributes are the arguments of their constructor.

    Attributes with a value are optional. Records of one class with equal values are equal. A
    default is shared by all records, so it must not be changed.
    """

    _names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        own = (name for name, kind in cls.__annotations__.items() if "ClassVar" not in str(kind))
        cls._names = (*cls._names, *own)

    def __init__(self, *args: object, **given: object) -> None:
        names = self._names
        values = dict(zip(names, args, strict=False))
        unknown = [name for name in given if name not in names or name in values]
        if unknown or len(args) > len(names):
            raise TypeError(f"{type(self).__name__} takes {', '.join(names)}, each once")
        values |= given
        for name in names:
            if name not in values:
                try:
                    values[name] = getattr(type(self), name)
                except AttributeError:
                    raise TypeError(f"{type(self).__name__}: {name} is missing") from None
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}: {name} cannot be changed")

    def _values(self) -> tuple[object, ...]:
        return tuple(self.__dict__[name] for name in self._names)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={self.__dict__[name]!r}" for name in self._names)
        return f"{type(self).__name__}({shown})"
