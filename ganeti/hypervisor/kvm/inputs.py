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
from ganeti.rpc.objects import NodeInstance

log = logging.getLogger(__name__)

#: VNC passwords are cut by the protocol.
_VNC_PASSWORD_LENGTH = 8


def guest(
    instance: NodeInstance,
    disks: Sequence[AttachedDisk],
    params: KvmParams,
    cards: Sequence[network.OpenCard],
    *,
    paused: bool,
) -> argv.Guest:
    """The guest as QEMU shall see it.

    Raises:
        HypervisorError: a disk is not there, the display's interface has no address.
    """
    address = params.vnc_bind_address
    if address and is_interface(address):
        address = network.interface_address(address)
    return argv.Guest(
        name=instance.name,
        uuid=instance.uuid,
        memory=int(instance.beparams.get("maxmem", 128)),
        vcpus=int(instance.beparams.get("vcpus", 1)),
        params=params,
        drives=tuple(_drive(disk) for disk in disks),
        nics=tuple(card.nic for card in cards),
        port=instance.network_port,
        vnc_address=address,
        paused=paused,
    )


def _drive(attached: AttachedDisk) -> Drive:
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
    )


def missing_files(params: KvmParams) -> Iterator[str]:
    """A sentence for every file or directory that the parameters name and the node lacks."""
    for name, _ in NODE_FILES:
        value = getattr(params, name)
        if value and not is_url(value) and not os.path.exists(value):
            hint = "; set kernel_path to nothing to boot from the disk" * (name == "kernel_path")
            yield f"{name} {value} does not exist on this node{hint}"
    for name in NODE_DIRECTORIES:
        value = getattr(params, name)
        if value and not os.path.isdir(value):
            yield f"{name} {value} is no directory on this node"


def vnc_password(params: KvmParams) -> str:
    """First line of ``vnc_password_file``.

    Raises:
        HypervisorError: it cannot be read or is empty.
    """
    path = Path(params.vnc_password_file)
    try:
        lines = files.read_text(path).splitlines()
    except OSError as err:
        raise errors.HypervisorError(f"vnc_password_file {path}: {err.strerror}") from err
    password = lines[0].strip() if lines else ""
    if not password:
        raise errors.HypervisorError(f"vnc_password_file {path} is empty")
    if len(password) > _VNC_PASSWORD_LENGTH:
        log.warning("VNC uses only the first %d characters of %s", _VNC_PASSWORD_LENGTH, path)
    return password[:_VNC_PASSWORD_LENGTH]
