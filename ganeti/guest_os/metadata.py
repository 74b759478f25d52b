"""Metadata that a node keeps for its guests, which read it over the network.

The node daemon writes it and ``ganeti-metad`` serves it. Values may be secret, so it lies where
root alone reads it, and in memory only: ``<run>`` is gone after a reboot. The name of a file is
the address to whose guest it belongs.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from ganeti import constants, errors
from ganeti.base import files
from ganeti.model.ids import InstanceUuid
from ganeti.paths import Paths
from ganeti.rpc.objects import InstanceMetadata

#: Addresses that guests have in the network.
NETWORK: Final = ipaddress.IPv4Network("169.254.0.0/16")
#: Bytes of one file.
MAX_SIZE: Final = 1024 * 1024


def address_of(instance: InstanceMetadata) -> str | None:
    """The address by which the guest is known; None: it does not talk to its node. Pure.

    Raises:
        ParameterError: it is none of the network's, or the server's own.
    """
    prefix = constants.COMMUNICATION_NIC
    found = next((nic.ip for nic in instance.nics if (nic.name or "").startswith(prefix)), None)
    if found is None:
        return None
    try:
        parsed = ipaddress.IPv4Address(found)
    except ValueError:
        parsed = None
    if parsed is None or parsed not in NETWORK or found == constants.METADATA_ADDRESS:
        raise errors.ParameterError(
            f"instance {instance.name}: {found!r:.40} is not an address of {NETWORK} that a guest"
            " can have"
        )
    return str(parsed)


def store(paths: Paths, instance: InstanceMetadata) -> None:
    """Keep what an instance may read, in place of what it could read before.

    An instance without a NIC for it has nothing afterwards.

    Raises:
        ParameterError: its address is impossible, or it has too many parameters.
        OSError: it cannot be written.
    """
    address = address_of(instance)
    data = msgspec.json.encode(instance)
    if len(data) > MAX_SIZE:
        raise errors.ParameterError(
            f"instance {instance.name}: its OS parameters take {len(data)} bytes, and"
            f" {MAX_SIZE} can be served"
        )
    files.ensure_dir(paths.metadata, 0o700)
    if address is not None:
        files.write_atomic(paths.metadata / address, data, mode=0o600, fsync=False)
    _remove(paths, instance.uuid, but=address)


def forget(paths: Paths, uuid: InstanceUuid) -> None:
    """Remove what an instance may read; no error when there is nothing. OSError."""
    _remove(paths, uuid, but=None)


def find(paths: Paths, address: str) -> InstanceMetadata | None:
    """Read the metadata of the guest with this address; None when it has none.

    Raises:
        OSError, msgspec.MsgspecError: the file cannot be read or understood.
    """
    try:
        data = (paths.metadata / str(ipaddress.IPv4Address(address))).read_bytes()
    except FileNotFoundError:
        return None
    return msgspec.json.decode(data, type=InstanceMetadata)


def _remove(paths: Paths, uuid: InstanceUuid, *, but: str | None) -> None:
    for path in _list_files(paths.metadata):
        if path.name == but:
            continue
        try:
            found = find(paths, path.name)
        except (ValueError, msgspec.MsgspecError):
            # Not one of ours; nobody has it as an address, or it is replaced when one gets it.
            continue
        if found is not None and found.uuid == uuid:
            files.remove(path)


def _list_files(directory: Path) -> Iterator[Path]:
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return
    yield from (directory / name for name in sorted(names))
