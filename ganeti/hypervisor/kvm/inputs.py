"""From an instance to what :mod:`ganeti.hypervisor.kvm.argv` builds from: looks at the node."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from ganeti import errors
from ganeti.base import files
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.hypervisor.kvm import argv, network
from ganeti.hypervisor.kvm.devices import Drive
from ganeti.hypervisor.kvm.params import NODE_DIRECTORIES, NODE_FILES, KvmParams
from ganeti.hypervisor.kvm.rules import is_interface, is_url
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeInstance

log = logging.getLogger(__name__)

#: VNC passwords are cut by the protocol, those of SPICE limited by it.
_VNC_PASSWORD_LENGTH = 8
_SPICE_PASSWORD_LENGTH = 59


def guest(
    instance: NodeInstance,
    disks: Sequence[AttachedDisk],
    params: KvmParams,
    cards: Sequence[network.OpenCard],
) -> argv.Guest:
    """The guest as QEMU shall see it, but for what is known only at the start.

    Raises:
        HypervisorError: a disk is not there, the display's interface has no address.
    """
    return argv.Guest(
        name=instance.name,
        uuid=instance.uuid,
        memory=instance.backend("maxmem", 128),
        vcpus=instance.backend("vcpus", 1),
        params=params,
        drives=tuple(drive(disk) for disk in disks),
        nics=tuple(card.nic for card in cards),
        port=instance.network_port,
        display_address=screen_address(params),
    )


def screen_address(params: KvmParams) -> str:
    """Address or directory of the display, empty without one.

    Raises:
        HypervisorError: the interface that the parameter names has no address.
    """
    address = params.vnc_bind_address or params.spice_bind
    if address and is_interface(address):
        version = params.spice_ip_version if params.spice_bind else 0
        address = network.interface_address(address, version)
    return address


def drive(attached: AttachedDisk) -> Drive:
    """A disk as QEMU shall open it; HypervisorError when it is not there."""
    disk = attached.disk
    block = False
    if attached.uri is None:
        try:
            block = stat.S_ISBLK(os.stat(attached.path).st_mode)
        except OSError as err:
            raise errors.HypervisorError(
                f"{disk.iv_name or 'a disk'} is not there: {attached.path}: {err.strerror}"
            ) from err
    return Drive(
        uuid=disk.uuid,
        template=disk.dev_type,
        mode=disk.mode,
        path=attached.path,
        block=block,
        uri=attached.uri,
        shared=attached.shared,
        max_iops=disk.max_iops,
        max_bandwidth=disk.max_bandwidth,
    )


def find_missing_files(params: KvmParams, paths: Paths) -> Iterator[str]:
    """A sentence for every file or directory of the parameters that is missing on the node."""
    for name, _ in NODE_FILES:
        value = getattr(params, name)
        if value and not is_url(value) and not os.path.exists(value):
            hint = "; set kernel_path to nothing to boot from the disk" * (name == "kernel_path")
            yield f"{name} {value} does not exist on this node{hint}"
    for name in NODE_DIRECTORIES:
        value = getattr(params, name)
        if value and not os.path.isdir(value):
            yield f"{name} {value} is not a directory on this node"
    if params.vnc_bind_address.startswith("/") and not os.path.isdir(params.vnc_bind_address):
        yield f"vnc_bind_address {params.vnc_bind_address} is not a directory on this node"
    if params.spice_use_tls:
        for path in (paths.spice_cert, paths.spice_ca_cert):
            if not path.exists():
                yield (
                    f"spice_use_tls is on but {path} is missing on this node; put a certificate"
                    " there on every node where the instance may run"
                )


def password(params: KvmParams, protocol: str) -> str:
    """First line of ``vnc_password_file`` or ``spice_password_file``.

    Raises:
        HypervisorError: it cannot be read or is empty, or SPICE does not take one so long.
    """
    name = f"{protocol}_password_file"
    path = Path(getattr(params, name))
    try:
        lines = files.read_text(path).splitlines()
    except (OSError, UnicodeDecodeError) as err:
        raise errors.HypervisorError(f"{name} {path} cannot be read: {err}") from err
    found = lines[0].strip() if lines else ""
    if not found:
        raise errors.HypervisorError(f"{name} {path} is empty")
    if protocol == "vnc" and len(found) > _VNC_PASSWORD_LENGTH:
        log.warning("VNC uses only the first %d characters of %s", _VNC_PASSWORD_LENGTH, path)
        return found[:_VNC_PASSWORD_LENGTH]
    if len(found) > _SPICE_PASSWORD_LENGTH:
        raise errors.HypervisorError(
            f"{name} {path}: SPICE takes at most {_SPICE_PASSWORD_LENGTH} characters"
        )
    return found
