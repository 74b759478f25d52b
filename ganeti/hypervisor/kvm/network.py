"""NICs on the node's side: taps, what they are attached to, scripts.

A tap is opened here and handed to QEMU as a descriptor, so it is attached before the guest runs and
vanishes with QEMU. An executable ``<conf>/kvm-vif-bridge`` or ``kvm-ifup-os`` replaces the
attaching below; ``kvm-ifdown-os`` is run when a card goes. They are run once a card without
arguments, with the variables of :func:`ganeti.hypervisor.nic_scripts.script_environment`.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ganeti import constants, errors
from ganeti.base import process
from ganeti.hypervisor.kvm.devices import USER_NETWORK, Nic, describe_own_network, is_private
from ganeti.hypervisor.kvm.network_plan import (
    attach_plan,
    detach_plan,
    is_communication,
    release_plan,
    sysctl_plan,
)
from ganeti.hypervisor.kvm.params import KvmParams
from ganeti.hypervisor.kvm.runtime import Card
from ganeti.hypervisor.nic_scripts import script_environment
from ganeti.model.enums import NicMode
from ganeti.rpc.objects import NodeInstance, NodeNic

log = logging.getLogger(__name__)

_TUN = Path("/dev/net/tun")
_VHOST = Path("/dev/vhost-net")
_INTERFACES = Path("/sys/class/net")
_SYSCTL = Path("/proc/sys/net")
_IPV6_ADDRESSES = Path("/proc/net/if_inet6")
#: linux/if_tun.h, bits/ioctls.h
_TUNSETIFF = 0x400454CA
_IFF_TAP = 0x0002
_IFF_NO_PI = 0x1000
_IFF_VNET_HDR = 0x4000
_IFF_MULTI_QUEUE = 0x0100
_SIOCGIFADDR = 0x8915
_TIMEOUT = 30.0
_UP = ("kvm-vif-bridge", "kvm-ifup-os")
_DOWN = ("kvm-ifdown-os",)


@dataclass(frozen=True)
class OpenCard:
    """A card that is ready for QEMU, whose descriptors :func:`close` closes."""

    nic: Nic
    card: Card


@dataclass(frozen=True)
class Scripts:
    """The scripts of the administrator, looked for at each use."""

    conf: Path

    def find_up_script(self) -> Path | None:
        """The script that attaches a NIC in place of the node daemon."""
        return self._find_first(_UP)

    def find_down_script(self) -> Path | None:
        """The script that detaches a NIC in place of the node daemon."""
        return self._find_first(_DOWN)

    def _find_first(self, names: Sequence[str]) -> Path | None:
        paths = (self.conf / name for name in names)
        return next((p for p in paths if p.is_file() and os.access(p, os.X_OK)), None)


def open_cards(
    instance: NodeInstance,
    params: KvmParams,
    scripts: Scripts,
    opened: list[OpenCard],
    *,
    arriving: bool = False,
) -> None:
    """:func:`open_card` for every card, appended to ``opened`` one by one.

    So after an error the caller knows what to :func:`close` and :func:`detach`.
    """
    for index, nic in enumerate(instance.nics):
        open_card(instance, index, nic, params, scripts, opened, arriving=arriving)


def open_card(
    instance: NodeInstance,
    index: int,
    nic: NodeNic,
    params: KvmParams,
    scripts: Scripts,
    opened: list[OpenCard],
    *,
    arriving: bool = False,
) -> None:
    """Make a tap and attach it; that of a routed NIC waits until the guest has arrived.

    See :func:`attach_routed`.

    Raises:
        HypervisorError: no permission, no such bridge, a script failed; with what to do.
    """
    mode = str(nic.nicparams.get("mode", NicMode.BRIDGED))
    link = str(nic.nicparams.get("link") or "")
    if is_private(nic):
        card = Card(uuid=nic.uuid, tap=None, mode=mode, link=link)
        own = describe_own_network(nic)
        opened.append(OpenCard(Nic(uuid=nic.uuid, mac=nic.mac, own=own), card))
        return
    _check(instance.name, index, mode, link, scripts)
    tap, fds = _open_tap(instance.name, index, nic, params)
    card = Card(uuid=nic.uuid, tap=tap, mode=mode, link=link)
    vhost = _open_vhost(params, len(fds))
    opened.append(OpenCard(Nic(uuid=nic.uuid, mac=nic.mac, fds=fds, vhost_fds=vhost), card))
    if not (arriving and mode == NicMode.ROUTED):
        attach(instance, index, nic, card, scripts)


def attach_routed(instance: NodeInstance, cards: Sequence[Card], scripts: Scripts) -> None:
    """Attach the routed cards of a guest that has arrived.

    Not before that, as the node would draw the guest's traffic to itself.

    Raises:
        HypervisorError: a command or the script failed, with its words.
    """
    for index, card in enumerate(cards):
        if card.mode == NicMode.ROUTED:
            attach(instance, index, instance.nics[index], card, scripts)


def change_link(
    instance: NodeInstance, index: int, nics: tuple[NodeNic, NodeNic], card: Card, scripts: Scripts
) -> Card:
    """Attach the tap of a running card somewhere else; ``nics`` is the card before and after.

    The guest notices nothing but other traffic. On an error the card is where it was.

    Raises:
        HypervisorError: no such bridge, a script failed.
    """
    old, new = nics
    mode = str(new.nicparams.get("mode", NicMode.BRIDGED))
    link = str(new.nicparams.get("link") or "")
    _check(instance.name, index, mode, link, scripts)
    changed = Card(uuid=card.uuid, tap=card.tap, mode=mode, link=link)
    detach(instance, index, old, card, scripts, alive=True)
    try:
        attach(instance, index, new, changed, scripts)
    except errors.HypervisorError:
        detach(instance, index, new, changed, scripts, alive=True)
        attach(instance, index, old, card, scripts)
        raise
    return changed


def close(cards: Sequence[OpenCard]) -> None:
    """Close our copies of the descriptors; a tap that no QEMU has is gone then."""
    for card in cards:
        for fd in (*card.nic.fds, *card.nic.vhost_fds):
            os.close(fd)


def detach(
    instance: NodeInstance,
    index: int,
    nic: NodeNic,
    card: Card,
    scripts: Scripts,
    *,
    alive: bool = False,
) -> None:
    """Undo :func:`attach`, mostly of a tap that is gone; ``alive``: it stays. Errors are logged.

    Ports of a virtual switch and routing rules survive a tap.
    """
    if card.tap is None:
        return
    talks = is_communication(card)
    script = None if talks else scripts.find_down_script()
    if script is not None:
        environment = script_environment(instance, index, nic, card.tap)
        result = process.run([str(script)], timeout=_TIMEOUT, env=environment)
        if not result.ok:
            log.warning("%s for tap %s: %s", script, card.tap, result.explain())
    if scripts.find_up_script() is not None and not talks:
        # Nothing of ours was done.
        return
    for argv in (*(release_plan(card, nic) if alive else ()), *detach_plan(card)):
        result = process.run(argv, timeout=_TIMEOUT)
        if not result.ok:
            # Mostly gone already; an instance must be removable in any case.
            log.info("network of tap %s: %s", card.tap, result.explain())


def _check(name: str, index: int, mode: str, link: str, scripts: Scripts) -> None:
    """Refuse early what would otherwise fail half way."""
    what = f"NIC {index} of instance {name}"
    if mode not in set(NicMode):
        raise errors.HypervisorError(f"{what} has the unknown mode '{mode}'")
    if scripts.find_up_script() is not None:
        return
    if mode == NicMode.EXT:
        raise errors.HypervisorError(
            f"{what} has mode ext, but the script {scripts.conf / _UP[0]} that should attach it is"
            f" missing or not executable; write it, or set the link to {USER_NETWORK} for a private"
            " network"
        )
    if mode == NicMode.BRIDGED and not (_INTERFACES / link / "bridge").is_dir():
        raise errors.HypervisorError(
            f"{what} needs the bridge '{link}', which is not on this node; make it"
            f" (ip link add name {link} type bridge; ip link set {link} up)"
            " or change the link of the NIC"
        )


def _open_tap(
    name: str, index: int, nic: NodeNic, params: KvmParams
) -> tuple[str, tuple[int, ...]]:
    """A new tap and its descriptors, one a queue."""
    paravirtual = params.nic_type == "paravirtual"
    queues = params.virtio_net_queues if paravirtual else 1
    flags = _IFF_TAP | _IFF_NO_PI
    if paravirtual and params.vnet_hdr:
        flags |= _IFF_VNET_HDR
    if queues > 1:
        flags |= _IFF_MULTI_QUEUE
    talks = (nic.name or "").startswith(constants.COMMUNICATION_NIC)
    tap = f"{constants.COMMUNICATION_INTERFACE if talks else 'tap'}%d".encode()
    fds: list[int] = []
    try:
        for _ in range(queues):
            fd = os.open(_TUN, os.O_RDWR | os.O_CLOEXEC)
            fds.append(fd)
            answer = fcntl.ioctl(fd, _TUNSETIFF, struct.pack("16sH22x", tap, flags))
            tap = answer[:16].rstrip(b"\0")
    except OSError as err:
        for fd in fds:
            os.close(fd)
        raise errors.HypervisorError(
            f"cannot make the tap for NIC {index} of instance {name}: {err.strerror}"
            f" ({_TUN}); the node daemon must run as root on a kernel with the module tun, or set"
            f" the NIC to mode ext with link {USER_NETWORK}"
        ) from err
    return tap.decode("ascii"), tuple(fds)


def _open_vhost(params: KvmParams, queues: int) -> tuple[int, ...]:
    """Descriptors of the kernel's packet mover; none when the kernel has none."""
    if not (params.vhost_net and params.nic_type == "paravirtual" and _VHOST.exists()):
        return ()
    fds: list[int] = []
    try:
        for _ in range(queues):
            fds.append(os.open(_VHOST, os.O_RDWR | os.O_CLOEXEC))
    except OSError as err:
        for fd in fds:
            os.close(fd)
        log.warning("%s cannot be used (%s); packets go through QEMU", _VHOST, err.strerror)
        return ()
    return tuple(fds)


def attach(instance: NodeInstance, index: int, nic: NodeNic, card: Card, scripts: Scripts) -> None:
    """Put a tap where its card says.

    Raises:
        HypervisorError: a command or the script failed, with its words.
    """
    tap = card.tap or ""
    # A guest and its node are nobody else's business.
    script = None if is_communication(card) else scripts.find_up_script()
    try:
        if script is not None:
            environment = script_environment(instance, index, nic, tap)
            process.run_checked([str(script)], timeout=_TIMEOUT, env=environment)
            return
        if card.mode == NicMode.ROUTED:
            for path, value in sysctl_plan(tap, nic):
                _set(path, value)
        for argv in attach_plan(card, nic, mtu=_mtu(card)):
            process.run_checked(argv, timeout=_TIMEOUT)
    except (errors.CommandError, OSError) as err:
        raise errors.HypervisorError(
            f"cannot attach NIC {index} of instance {instance.name} to"
            f" '{card.link}' (mode {card.mode}): {err}"
        ) from err


def _set(path: str, value: str) -> None:
    """Write a setting of the kernel; one of IPv6 is not there without IPv6. OSError."""
    file = _SYSCTL / path
    if path.startswith("ipv6/") and not (_SYSCTL / "ipv6").is_dir():
        return
    file.write_text(value, encoding="ascii")


def interface_address(name: str, version: int = 0) -> str:
    """First address of an interface of the node; ``version`` 4 or 6, or 0: IPv4 before IPv6.

    Raises:
        HypervisorError: no such interface, or it has no such address.
    """
    found = _ipv4_address(name) if version != 6 else None
    if found is None and version != 4:
        found = _ipv6_address(name)
    if found is None:
        wanted = f"IPv{version} address" if version else "address"
        raise errors.HypervisorError(f"interface '{name}' has no {wanted} on this node")
    return found


def _ipv4_address(name: str) -> str | None:
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sock:
        try:
            answer = fcntl.ioctl(sock, _SIOCGIFADDR, struct.pack("16s24x", name.encode()[:15]))
        except OSError:
            # No such interface, or none of that family.
            return None
    return socket.inet_ntoa(answer[20:24])


def _ipv6_address(name: str) -> str | None:
    """Link-local addresses (scope 20) are no use to clients without a scope."""
    try:
        lines = _IPV6_ADDRESSES.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        digits, _, _, scope, _, interface = line.split()
        if interface == name and scope != "20":
            return socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))
    return None


def _mtu(card: Card) -> str | None:
    """MTU of the bridge or switch, which a tap should have as well; None: leave it."""
    if card.mode not in (NicMode.BRIDGED, NicMode.OPENVSWITCH):
        return None
    try:
        return (_INTERFACES / card.link / "mtu").read_text(encoding="ascii").strip()
    except OSError:
        # A switch without an interface of its own name.
        return None
