"""The scripts that attach interfaces of guests, on real interfaces in a network of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools" / "net"
SETUP = """
set -e
mount -t sysfs sysfs /sys
ip link set lo up
ip link add br0 type bridge
ip link set br0 mtu 1400 up
ip tuntap add tap7 mode tap
ip tuntap add vif5.1 mode tap
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    for program in ("unshare", "ip"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} on this machine: install util-linux and iproute2")
    (tmp_path / "etc/ganeti").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    return tmp_path


def run(root: Path, text: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run lines of a shell where the interfaces above are; the network ends with them."""
    path = f"{root}/bin:{os.environ['PATH']}"
    known = {"PATH": path, "GANETI_ROOTDIR": str(root), "LIB": str(TOOLS), **env}
    argv = ["unshare", "--net", "--mount", "sh", "-c", SETUP + text]
    return subprocess.run(argv, env=known, capture_output=True, text=True, timeout=60, check=False)


def ok(root: Path, text: str, **env: str) -> str:
    ran = run(root, text, **env)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    return ran.stdout


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


BRIDGED = {"MODE": "bridged", "LINK": "br0"}


def test_a_card_on_a_bridge_with_vlans(root: Path) -> None:
    # Not every kernel filters VLANs; a stand-in writes down what is asked of it.
    program(root / "bin/bridge", f'echo "$@" >>{root}/vlans')
    out = ok(
        root,
        "$LIB/kvm-ifup tap7; $LIB/kvm-ifup tap7; ip -o link show tap7",
        **BRIDGED,
        VLAN=".5:6",
    )
    assert "mtu 1400" in out
    assert "master br0" in out
    assert (root / "vlans").read_text().splitlines()[:3] == [
        "vlan del dev tap7 vid 1",
        "vlan add dev tap7 vid 5 pvid untagged",
        "vlan add dev tap7 vid 6",
    ]


def test_a_routed_card(root: Path) -> None:
    out = ok(
        root,
        "$LIB/kvm-ifup; $LIB/kvm-ifup; ip rule; ip route show table 100;"
        " cat /proc/sys/net/ipv4/conf/tap7/proxy_arp",
        INTERFACE="tap7",
        MODE="routed",
        LINK="100",
        IP="192.0.2.7",
    )
    assert out.count("iif tap7 lookup 100") == 1
    assert "192.0.2.7 dev tap7 proto static" in out
    assert out.splitlines()[-1] == "1"


def test_a_card_on_a_virtual_switch(root: Path) -> None:
    program(root / "bin/ovs-vsctl", 'echo "$@"')
    out = ok(root, "$LIB/kvm-ifup tap7", MODE="openvswitch", LINK="sw1", VLAN="5:6:7")
    assert out == "-- --may-exist add-port sw1 tap7 tag=5 trunks=6,7 vlan_mode=native-untagged\n"


def test_a_script_of_the_administrator_takes_the_place(root: Path) -> None:
    program(root / "etc/ganeti/kvm-ifup-os", 'echo "mine: $INTERFACE $LINK"')
    assert ok(root, "$LIB/kvm-ifup tap7", **BRIDGED) == "mine: tap7 br0\n"
    program(root / "etc/ganeti/kvm-vif-bridge", 'echo "older: $INTERFACE"')
    assert ok(root, "$LIB/kvm-ifup tap7", **BRIDGED) == "older: tap7\n"


@pytest.mark.parametrize(
    ("env", "text"),
    [
        ({"MODE": "bridged"}, "variable LINK is not set"),
        ({"MODE": "bridged", "LINK": "br7"}, "there is no bridge br7"),
        ({"MODE": "pigeon"}, "MODE is 'pigeon'"),
        ({"LINK": "br0"}, "variable MODE is not set"),
    ],
)
def test_what_is_wrong_is_told(root: Path, env: dict[str, str], text: str) -> None:
    ran = run(root, "$LIB/kvm-ifup tap7", **env)
    assert ran.returncode == 1
    assert text in ran.stderr
    assert "no network interface tap9" in run(root, "$LIB/kvm-ifup tap9", **BRIDGED).stderr


def test_a_nic_of_a_domain(root: Path) -> None:
    facts = root / "var/run/ganeti/xen-hypervisor/nic/web1.example.com"
    facts.mkdir(parents=True)
    (facts / "1").write_text("MODE=bridged\nLINK=br0\nVLAN=''\nTAGS='a b'\n")
    program(root / "bin/xl", '[ "$1 $2" = "domname 5" ] && echo web1.example.com--incoming')
    program(root / "bin/xenstore-write", 'echo "$@"')
    out = ok(
        root,
        "$LIB/vif-ganeti online; ip -o link show vif5.1; $LIB/vif-ganeti offline;"
        " ip -o link show vif5.1 | grep -c master || :",
        vif="vif5.1",
        XENBUS_PATH="backend/vif/5/1",
    )
    assert "backend/vif/5/1/hotplug-status connected" in out
    assert "master br0" in out
    assert out.splitlines()[-1] == "0"
    program(root / "etc/ganeti/xen-ifup-os", 'echo "mine: $INTERFACE $LINK $TAGS"')
    assert "mine: vif5.1 br0 a b" in ok(root, "$LIB/vif-ganeti online", vif="vif5.1")
    missing = run(root, "$LIB/vif-ganeti online", vif="vif5.0", XENBUS_PATH="b")
    assert missing.returncode == 1
    assert "no facts about NIC 0 of web1.example.com" in missing.stderr
    assert "b/hotplug-status error" in missing.stdout
    assert "not the name of an interface" in run(root, "$LIB/vif-ganeti online", vif="eth0").stderr


def test_a_console_of_a_domain_that_is_paused(root: Path) -> None:
    program(
        root / "bin/xl",
        """case "$1" in
list) printf 'Name ID Mem VCPUs State Time\\nweb1 5 512 1 --p--- 0.3\\n' ;;
console) sleep 2; echo "console of $2" ;;
unpause) echo "unpaused $2" ;;
esac""",
    )
    assert ok(root, "$LIB/xen-console-wrapper xl web1") == "unpaused web1\nconsole of web1\n"
    assert ok(root, "$LIB/xen-console-wrapper web1").endswith("console of web1\n")
    assert run(root, "$LIB/xen-console-wrapper").returncode == 2


def test_a_communication_card(root: Path) -> None:
    program(root / "bin/xenstore-read", f'echo "$@" >>{root}/store; echo 169.254.0.5')
    program(root / "bin/xenstore-write", f'echo "$@" >>{root}/store')
    out = ok(
        root,
        "ip tuntap add gnt.com.0 mode tap; $LIB/kvm-ifup gnt.com.0; $LIB/kvm-ifup gnt.com.0;"
        " ip -o -4 address show; ip route;"
        " export vif=vif5.1 XENBUS_PATH=b IP=169.254.0.6; $LIB/vif-ganeti-metad online;"
        " ip -o address show gnt.com.5.1; ip route; $LIB/vif-ganeti-metad offline;"
        " cd /proc/sys/net/ipv4/conf/gnt.com.5.1; cat rp_filter forwarding",
        IP="169.254.0.5",
        MODE="routed",
        LINK="communication_rt",
    )
    assert "gnt.com.0    inet 169.254.169.254/32" in out
    assert "169.254.0.5 dev gnt.com.0 proto static" in out
    assert "169.254.0.5 dev gnt.com.5.1 proto static" in out
    assert out.endswith("1\n0\n")
    assert (root / "store").read_text() == "b/ip\nb/hotplug-status connected\n"


def test_a_communication_card_that_is_none(root: Path) -> None:
    program(root / "bin/xenstore-read", "exit 1")
    program(root / "bin/xenstore-write", f'echo "$@" >>{root}/store')
    assert "variable IP is not set" in run(root, "$LIB/kvm-ifup gnt.com.0").stderr
    wrong = run(root, "$LIB/vif-ganeti-metad online", vif="eth0", IP="169.254.0.5")
    assert "'eth0' is not the name of an interface of a guest" in wrong.stderr
    assert run(root, "$LIB/vif-ganeti-metad online", vif="vif5.1", XENBUS_PATH="b").returncode
    assert (root / "store").read_text() == "b/hotplug-status error\n"


OPEN_CARD = """
import subprocess
from pathlib import Path
from ganeti.hypervisor.kvm import network
from ganeti.hypervisor.kvm.params import KvmParams
from ganeti.rpc.objects import (NodeInstance, NodeNic)

nic = NodeNic(
    uuid="u",
    mac="52:54:00:00:00:01",
    ip="169.254.0.5",
    name="ganeti:communication:web1",
    nicparams={"mode": "routed", "link": "communication_rt"},
)
guest = NodeInstance(uuid="i", name="web1", primary_node="n", hypervisor="kvm", nics=(nic,))
opened = []
network.open_cards(guest, KvmParams(), network.Scripts(Path("CONF")), opened)
subprocess.run(["ip", "-o", "-4", "address", "show", opened[0].card.tap], check=True)
subprocess.run(["ip", "route"], check=True)
network.close(opened)
"""


def test_the_node_daemon_attaches_a_communication_card_itself(root: Path) -> None:
    # Scripts of the administrator are for the others.
    program(root / "etc/ganeti/kvm-vif-bridge", f"touch {root}/asked; exit 1")
    script = root / "open_card.py"
    script.write_text(OPEN_CARD.replace("CONF", str(root / "etc/ganeti")))
    out = ok(root, f"{sys.executable} {script}")
    assert "gnt.com.0    inet 169.254.169.254/32" in out
    assert "169.254.0.5 dev gnt.com.0 proto static" in out
    assert not (root / "asked").exists()
