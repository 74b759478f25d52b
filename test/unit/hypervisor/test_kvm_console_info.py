"""How a console is reached, by parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ganeti import errors
from ganeti.hypervisor.kvm import console_info, params
from ganeti.rpc.objects import Console, NodeInstance


def console(port: int | None = 11000, **chosen: Any) -> Console:
    instance = NodeInstance(
        uuid="u", name="web1", primary_node="n", hypervisor="kvm", network_port=port
    )
    loaded = params.load({"serial_console": False, **chosen})
    return console_info.console(instance, "node1", loaded, Path("/run/web1.serial"))


def test_serial_console_comes_first_and_goes_by_ssh() -> None:
    found = console(serial_console=True, vnc_bind_address="127.0.0.1")
    assert (found.kind, found.host, found.user) == ("ssh", "node1", "root")
    assert found.command is not None
    assert found.command[-1] == "/run/web1.serial"
    assert all(isinstance(word, str) and word for word in found.command)


@pytest.mark.parametrize(
    ("address", "host"),
    [("192.0.2.1", "192.0.2.1"), ("0.0.0.0", "node1"), ("::", "node1"), ("eth0", "node1")],
)
def test_displays_over_tcp(address: str, host: str) -> None:
    vnc = console(vnc_bind_address=address)
    assert (vnc.kind, vnc.host, vnc.port, vnc.display) == ("vnc", host, 11000, 5100)
    spice = console(spice_bind=address)
    assert (spice.kind, spice.host, spice.port) == ("spice", host, 11000)


def test_display_in_a_directory_is_told_in_words() -> None:
    found = console(vnc_bind_address="/run/vnc")
    assert found.kind == "msg"
    assert "/run/vnc/web1.vnc on node node1" in (found.message or "")


def test_no_console_at_all_says_what_to_set() -> None:
    assert "serial_console" in (console().message or "")


def test_display_without_port() -> None:
    with pytest.raises(errors.HypervisorError, match="no port"):
        console(port=None, vnc_bind_address="127.0.0.1")
