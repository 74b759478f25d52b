"""How the console of a guest is reached; pure but for this process's own environment."""

from __future__ import annotations

import os
import site
import sys
from pathlib import Path

import ganeti
from ganeti.hypervisor.interface import ConsoleLine
from ganeti.hypervisor.kvm.params import KvmParams
from ganeti.hypervisor.kvm.rules import is_interface, vnc_display
from ganeti.net import listen
from ganeti.rpc.objects import Console, NodeInstance

#: Addresses that stand for "every interface": then the node's name is where to connect.
_ANY = ("0.0.0.0", "::")


def console(instance: NodeInstance, node_name: str, params: KvmParams, serial: Path) -> Console:
    """The serial console by ssh, else VNC or SPICE over TCP, else a message."""
    if params.serial_console:
        return Console(
            instance=instance.name,
            kind="ssh",
            host=node_name,
            user="root",
            command=serial_command(serial),
        )
    address = params.vnc_bind_address
    if address.startswith("/"):
        return Console(
            instance=instance.name,
            kind="msg",
            message=f"the display of instance {instance.name} is the Unix socket"
            f" {os.path.join(address, instance.name)}.vnc on node {node_name}",
        )
    if address:
        display = vnc_display(instance.network_port)
        return Console(
            instance=instance.name,
            kind="vnc",
            host=address if is_numeric(address) else node_name,
            port=instance.network_port,
            display=display,
        )
    if params.spice_bind:
        return Console(
            instance=instance.name,
            kind="spice",
            host=params.spice_bind if is_numeric(params.spice_bind) else node_name,
            port=instance.network_port,
        )
    return Console(
        instance=instance.name,
        kind="msg",
        message=f"instance {instance.name} has neither a serial console nor a display;"
        " set serial_console, vnc_bind_address or spice_bind",
    )


def vnc_line(instance: NodeInstance, address: str) -> ConsoleLine:
    """Access to VNC on the node itself; ``address`` is an IP address or a directory."""
    if address.startswith("/"):
        return ConsoleLine(socket=Path(address) / f"{instance.name}.vnc")
    vnc_display(instance.network_port)
    return ConsoleLine(tcp=(listen.find_reachable(address), instance.network_port or 0))


def is_numeric(address: str) -> bool:
    """Whether an address can be given to a client as it is; an interface's name cannot."""
    return not is_interface(address) and address not in _ANY


def serial_command(serial: Path) -> list[str]:
    """Command for a serial console: the Python of this process, with the path of this package."""
    here = str(Path(ganeti.__file__).parent.parent)
    variables = [] if here in site.getsitepackages() else ["env", f"PYTHONPATH={here}"]
    return [*variables, sys.executable, "-m", "ganeti.hypervisor.kvm.console", str(serial)]
