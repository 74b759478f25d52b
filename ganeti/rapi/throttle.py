"""Throttle guesses: after wrong passwords a client has to wait, longer each time.

Wrong passwords count for the user's name and the address together, so that one who guesses does
not lock out others behind the same address; and, from a higher number on, for the address, so that
many names do not help. No thread waits: a client that is too early gets the time to retry.
"""

from __future__ import annotations

import ipaddress
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from hashlib import blake2b

from ganeti.base.clock import SYSTEM, Clock

#: Wrong passwords that cost nothing, of a name and of all names; people mistype.
FREE, FREE_OF_ADDRESS = 3, 30
#: Wrong passwords of a name after which a password proven before is refused, too.
CHEAP = 100
#: Seconds to wait after the first one that costs; doubles with each further one up to the longest.
FIRST, LONGEST = 1.0, 60.0
#: Seconds without a wrong password after which the count starts at zero.
FORGET = 900.0
#: Addresses that are remembered; the one not heard of for longest goes first.
REMEMBERED = 10_000
#: Names that are told apart of an address, by a digest: it does not matter whether they exist.
_NAMES = 4096


@dataclass
class _Count:
    failures: int = 0
    last: float = 0.0
    blocked_until: float = 0.0

    def note(self, now: float) -> None:
        if now - self.last > FORGET:
            self.failures = 0
        self.failures += 1
        self.last = now

    def block(self, now: float, free: int) -> None:
        if self.failures > free:
            # The exponent is bounded, as are failures that come one by one.
            delay = FIRST * 2.0 ** min(self.failures - free - 1, 30)
            self.blocked_until = now + min(delay, LONGEST)


@dataclass
class _Address:
    total: _Count = field(default_factory=_Count)
    names: dict[int, _Count] = field(default_factory=dict)
    #: held while a slow password is checked, so that guesses of one address run one by one
    turn: threading.Lock = field(default_factory=threading.Lock)


class Throttle:
    """Wrong passwords by name and address. Thread-safe; IPv6 addresses count by their /64 network.

    A token has no name.
    """

    def __init__(self, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self._seen: OrderedDict[str, _Address] = OrderedDict()
        self._mutex = threading.Lock()
        self._key = os.urandom(16)

    def turn(self, address: str) -> threading.Lock:
        """A lock to hold while a password from this address is checked."""
        with self._mutex:
            return self._entry(address).turn

    def wait(self, address: str, name: str = "") -> float:
        """Seconds until a password of this name from this address is checked; 0: at once."""
        with self._mutex:
            entry = self._seen.get(_network(address))
            if entry is None:
                return 0.0
            count = entry.names.get(self._place(name), _Count())
            end = max(entry.total.blocked_until, count.blocked_until)
            return max(0.0, end - self._clock.monotonic())

    def may_prove(self, address: str, name: str) -> bool:
        """Whether a password proven before is still accepted while the client has to wait."""
        with self._mutex:
            entry = self._seen.get(_network(address))
            count = None if entry is None else entry.names.get(self._place(name))
            if count is None or self._clock.monotonic() - count.last > FORGET:
                return True
            return count.failures < CHEAP

    def note_miss(self, address: str, name: str) -> None:
        """A password came too early and was not proven before."""
        with self._mutex:
            self._count(self._entry(address), name).note(self._clock.monotonic())

    def note_failure(self, address: str, name: str = "") -> int:
        """Count a wrong password. Returns the number of those with this name."""
        now = self._clock.monotonic()
        with self._mutex:
            entry = self._entry(address)
            count = self._count(entry, name)
            for item, free in ((count, FREE), (entry.total, FREE_OF_ADDRESS)):
                item.note(now)
                item.block(now, free)
            return count.failures

    def _count(self, entry: _Address, name: str) -> _Count:
        return entry.names.setdefault(self._place(name), _Count())

    def _place(self, name: str) -> int:
        digest = blake2b(name.encode(), key=self._key, digest_size=8).digest()
        return int.from_bytes(digest) % _NAMES

    def _entry(self, address: str) -> _Address:
        key = _network(address)
        entry = self._seen.setdefault(key, _Address())
        self._seen.move_to_end(key)
        while len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return entry


def _network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)
