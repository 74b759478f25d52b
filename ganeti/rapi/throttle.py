"""Slowing down those who guess: after wrong passwords an address has to wait, longer each time.

Nobody waits inside: who is too early is told when to come again.
"""

from __future__ import annotations

import ipaddress
import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from ganeti.base.clock import SYSTEM, Clock

#: Wrong passwords that cost nothing; people mistype.
FREE = 3
#: Seconds to wait after the first one that costs; doubles with each further one up to the longest.
FIRST, LONGEST = 1.0, 60.0
#: Seconds without a wrong password after which an address is forgotten.
FORGET = 900.0
#: Addresses that are remembered; the one not heard of for longest goes first.
REMEMBERED = 10_000


@dataclass
class _Address:
    failures: int = 0
    last: float = 0.0
    blocked_until: float = 0.0
    #: held while a slow password is looked at, so that guesses of one address come one by one
    turn: threading.Lock = field(default_factory=threading.Lock)


class Throttle:
    """Wrong passwords by address. Thread-safe; IPv6 addresses count by their /64 network."""

    def __init__(self, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self._seen: OrderedDict[str, _Address] = OrderedDict()
        self._mutex = threading.Lock()

    def turn(self, address: str) -> threading.Lock:
        """A lock to hold while a password from this address is looked at."""
        with self._mutex:
            return self._entry(address).turn

    def wait(self, address: str) -> float:
        """Seconds until a password from this address is looked at again; 0: at once."""
        with self._mutex:
            entry = self._seen.get(_network(address))
            return max(0.0, entry.blocked_until - self._clock.monotonic()) if entry else 0.0

    def failed(self, address: str) -> int:
        """A wrong password came; how many that makes."""
        now = self._clock.monotonic()
        with self._mutex:
            entry = self._entry(address)
            if now - entry.last > FORGET:
                entry.failures = 0
            entry.failures += 1
            entry.last = now
            if entry.failures > FREE:
                # The exponent is bounded, as are failures that come one by one.
                delay = FIRST * 2.0 ** min(entry.failures - FREE - 1, 30)
                entry.blocked_until = now + min(delay, LONGEST)
            return entry.failures

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
