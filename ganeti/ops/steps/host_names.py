"""Names of new instances as the name service knows them."""

from __future__ import annotations

import socket

from ganeti import constants, errors
from ganeti.net import resolve
from ganeti.ops.planning.checks import host_name

#: Seconds in which a host that is up takes or refuses a connection.
_PING = 3.0


def choose_name(name: str, *, name_check: bool, ip_check: bool) -> str:
    """The name that a new instance gets; blocks some seconds for ``ip_check``.

    ``name_check`` takes the full name that the name service has for it; it refuses a name without
    an address and one that is an alias of another host. ``ip_check`` also refuses one whose
    address answers.

    Raises:
        OpPrereqError: the text says which of these it is.
    """
    if not name_check:
        if ip_check:
            raise errors.make_invalid_error(
                "the address of a name is only checked with its name; add --name-check"
            )
        return name
    try:
        address, full = resolve.address(name), resolve.canonical(name).lower()
    except errors.ResolverError as err:
        raise errors.make_unresolved_error(
            f"'{name}' has no address ({errors.text(err)}); omit --name-check"
        ) from err
    if full != name and not full.startswith(f"{name}."):
        raise errors.make_invalid_error(
            f"'{name}' resolves to {full}, the name of another host; use that name, mend the name"
            " service, or omit --name-check"
        )
    if ip_check and _answers(address):
        raise errors.make_not_unique_error(
            f"address {address} of '{name}' is in use already; omit --ip-check if that is intended"
        )
    return host_name(full, "an instance")


def _answers(address: str) -> bool:
    """Whether a host with this address takes or refuses a connection."""
    try:
        socket.create_connection((address, resolve.port(constants.NODED)), _PING).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return True
