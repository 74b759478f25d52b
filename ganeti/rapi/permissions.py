"""Reading the permissions of a user or a token; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ganeti import errors
from ganeti.base.text import nearest
from ganeti.rapi.identity import READ, WRITE

#: Names for sets of permissions.
ROLES = {
    "@admin": (WRITE,),
    "@readonly": (READ,),
    "@operator": (
        READ,
        "instance.startup",
        "instance.shutdown",
        "instance.reboot",
        "instance.migrate",
        "instance.failover",
        "instance.console",
        "job.wait",
        "job.cancel",
    ),
}
_WORD = re.compile(r"[+-]?[a-z]+\.([a-z-]+|\*)|\+?(read|write)")


def parse(words: Iterable[str]) -> frozenset[str]:
    """Permissions of an identity from words such as ``@readonly``, ``+node.tags``, ``-job.*``.

    Raises:
        ParseError: a word is not a permission; the text names a near one.
    """
    found: set[str] = set()
    for word in filter(None, (item.strip() for item in words)):
        if word in ROLES:
            found.update(ROLES[word])
        elif _WORD.fullmatch(word):
            found.add(word.removeprefix("+"))
        else:
            hint = nearest(word, (READ, WRITE, *ROLES))
            raise errors.ParseError(f"'{word}' is not a permission{hint}")
    return frozenset(found)


def find_unknown(permissions: Iterable[str], known: Iterable[str]) -> list[str]:
    """Single permissions and families that no route asks for; most likely misspelt."""
    names = set(known)
    names |= {f"{name.partition('.')[0]}.*" for name in names}
    return sorted(
        item
        for item in (word.removeprefix("-") for word in permissions)
        if "." in item and item not in names
    )
