"""Network addresses as parameters; a string is kept as it was written, but checked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from ganeti.opcodes.values import refuse


class _Address(str, ABC):
    """Text that is a network address of one kind; kept as it was written."""

    __slots__ = ()

    notation: ClassVar[str]
    expected: ClassVar[str]
    shape: ClassVar[Any] = str
    #: Whether ``none`` may stand for no address.
    clearable: ClassVar[bool] = False

    @classmethod
    def from_wire(cls, raw: object) -> Self:
        """Check the text; raises ValueError when it is not an address of this kind."""
        if not isinstance(raw, str):
            raise refuse(cls.expected, raw)
        if not (cls.clearable and raw == "none"):
            try:
                cls._check(raw)
            except ValueError:
                raise refuse(cls.expected, raw) from None
        return str.__new__(cls, raw)

    @classmethod
    @abstractmethod
    def _check(cls, text: str) -> None:
        """Raise ValueError when the text is no such address."""


class Ipv4Address(_Address):
    """An IPv4 address."""

    __slots__ = ()

    notation = "ipv4addr"
    expected = "an IPv4 address such as 192.0.2.1"

    @classmethod
    def _check(cls, text: str) -> None:
        import ipaddress

        ipaddress.IPv4Address(text)


class Ipv6Address(_Address):
    """An IPv6 address."""

    __slots__ = ()

    notation = "ipv6addr"
    expected = "an IPv6 address such as 2001:db8::1"

    @classmethod
    def _check(cls, text: str) -> None:
        import ipaddress

        ipaddress.IPv6Address(text)


def _prefix(text: str) -> str:
    length = text.partition("/")[2]
    if not (length.isascii() and length.isdigit()):
        raise ValueError("no prefix length")
    return text


class Ipv4Network(_Address):
    """An IPv4 network with its prefix length."""

    __slots__ = ()

    notation = "ipv4net"
    expected = "an IPv4 network such as 192.0.2.0/24"

    @classmethod
    def _check(cls, text: str) -> None:
        import ipaddress

        ipaddress.IPv4Network(_prefix(text), strict=False)


class Ipv6Network(_Address):
    """An IPv6 network with its prefix length."""

    __slots__ = ()

    notation = "ipv6net"
    expected = "an IPv6 network such as 2001:db8::/64"

    @classmethod
    def _check(cls, text: str) -> None:
        import ipaddress

        ipaddress.IPv6Network(_prefix(text), strict=False)


class Ipv4AddressOrNone(Ipv4Address):
    """An IPv4 address, or ``none`` to remove the one that is set."""

    __slots__ = ()

    notation = "ipv4addr|'none'"
    expected = "an IPv4 address such as 192.0.2.1, or none to remove it"
    clearable = True


class Ipv6AddressOrNone(Ipv6Address):
    """An IPv6 address, or ``none`` to remove the one that is set."""

    __slots__ = ()

    notation = "ipv6addr|'none'"
    expected = "an IPv6 address such as 2001:db8::1, or none to remove it"
    clearable = True


class Ipv6NetworkOrNone(Ipv6Network):
    """An IPv6 network, or ``none`` to remove the one that is set."""

    __slots__ = ()

    notation = "ipv6net|'none'"
    expected = "an IPv6 network such as 2001:db8::/64, or none to remove it"
    clearable = True
