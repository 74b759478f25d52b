from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ganeti import errors
from ganeti.guest_os import environment
from ganeti.guest_os.definition import OsDefinition
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.model.enums import DiskMode
from ganeti.rpc.objects import NodeInstance, NodeNic

MakeInstance = Callable[..., NodeInstance]
MakeDisk = Callable[..., AttachedDisk]

TINY = OsDefinition(
    name="tiny",
    path=Path("/srv/ganeti/os/tiny"),
    api_versions=(20, 15),
    api_version=20,
    variants=("small",),
    variant="small",
)


def test_common_variables() -> None:
    env = environment.common(TINY, {"size": 3, "disk-label": "root"}, debug=2)
    assert env == {
        "PATH": "/sbin:/bin:/usr/sbin:/usr/bin",
        "OS_API_VERSION": "20",
        "OS_NAME": "tiny",
        "OS_VARIANT": "small",
        "DEBUG_LEVEL": "2",
        "OSP_SIZE": "3",
        "OSP_DISK_LABEL": "root",
    }


def test_an_instance(make_instance: MakeInstance, make_disk: MakeDisk) -> None:
    env = environment.make_create_environment(
        TINY, make_instance(), [make_disk("/d/web1/disk0", 512)]
    )
    common = environment.common(TINY, make_instance().osparams)
    assert env == {
        **common,
        "INSTANCE_NAME": "web1.example.com",
        "INSTANCE_OS": "tiny+small",
        "INSTANCE_UUID": "i-uuid",
        "INSTANCE_CTIME": "1700000000.25",
        "INSTANCE_MTIME": "1700000001.5",
        "INSTANCE_PRIMARY_NODE": "n1-uuid",
        "INSTANCE_SECONDARY_NODES": "n2-uuid n3-uuid",
        "HYPERVISOR": "kvm",
        "DISK_COUNT": "1",
        "NIC_COUNT": "1",
        "DISK_0_PATH": "/d/web1/disk0",
        "DISK_0_ACCESS": "rw",
        "DISK_0_UUID": "d-uuid",
        "DISK_0_SIZE": "512",
        "DISK_0_FRONTEND_TYPE": "paravirtual",
        "DISK_0_BACKEND_TYPE": "file:loop",
        "NIC_0_MAC": "aa:00:00:11:22:33",
        "NIC_0_UUID": "nic-uuid",
        "NIC_0_MODE": "bridged",
        "NIC_0_BRIDGE": "br0",
        "NIC_0_LINK": "br0",
        "NIC_0_FRONTEND_TYPE": "e1000",
        "INSTANCE_BE_maxmem": "256",
        "INSTANCE_BE_auto_balance": "False",
        "INSTANCE_HV_disk_type": "paravirtual",
        "INSTANCE_HV_nic_type": "e1000",
        "INSTANCE_HV_acpi": "True",
    }


def test_only_a_reinstallation_says_so(make_instance: MakeInstance) -> None:
    assert "INSTANCE_REINSTALL" not in environment.make_create_environment(
        TINY, make_instance(), []
    )
    env = environment.make_create_environment(TINY, make_instance(), [], reinstall=True)
    assert env["INSTANCE_REINSTALL"] == "1"
    assert env["DISK_COUNT"] == "0"


def test_optional_facts_of_disks(make_instance: MakeInstance, make_disk: MakeDisk) -> None:
    named = make_disk("/d/a", name="data", mode=DiskMode.RO)
    remote = AttachedDisk(named.disk, "", "gluster://host/a")
    env = environment.make_instance_environment(TINY, make_instance(hvparams={}), [named, remote])
    assert env["DISK_0_NAME"] == "data"
    assert env["DISK_0_ACCESS"] == "ro"
    assert "DISK_0_URI" not in env
    assert "DISK_0_FRONTEND_TYPE" not in env
    assert "DISK_1_PATH" not in env
    assert env["DISK_1_URI"] == "gluster://host/a"


def test_optional_facts_of_network_cards(make_instance: MakeInstance) -> None:
    nic = NodeNic(
        uuid="u",
        mac="aa:00:00:00:00:01",
        ip="198.51.100.7",
        name="front",
        network="net-uuid",
        nicparams={"mode": "routed", "link": "tbl1"},
        netinfo={
            "uuid": "net-uuid",
            "name": "net1",
            "network": "198.51.100.0/28",
            "gateway": "198.51.100.1",
            "network6": "2001:db8::/64",
            "gateway6": None,
            "mac_prefix": "aa:bb:cc",
            "tags": ["b", "a"],
        },
    )
    env = environment.make_instance_environment(TINY, make_instance(nics=(nic,), hvparams={}), [])
    assert {key: value for key, value in env.items() if key.startswith("NIC_0")} == {
        "NIC_0_MAC": "aa:00:00:00:00:01",
        "NIC_0_UUID": "u",
        "NIC_0_NAME": "front",
        "NIC_0_IP": "198.51.100.7",
        "NIC_0_MODE": "routed",
        "NIC_0_LINK": "tbl1",
        "NIC_0_NETWORK_NAME": "net1",
        "NIC_0_NETWORK_UUID": "net-uuid",
        "NIC_0_NETWORK_TAGS": "b a",
        "NIC_0_NETWORK_SUBNET": "198.51.100.0/28",
        "NIC_0_NETWORK_GATEWAY": "198.51.100.1",
        "NIC_0_NETWORK_SUBNET6": "2001:db8::/64",
        "NIC_0_NETWORK_MAC_PREFIX": "aa:bb:cc",
    }


def test_rename(make_instance: MakeInstance) -> None:
    env = environment.make_rename_environment(TINY, make_instance(), [], "old.example.com")
    assert env["OLD_INSTANCE_NAME"] == "old.example.com"
    assert env["INSTANCE_NAME"] == "web1.example.com"


def test_export_and_import(make_instance: MakeInstance, make_disk: MakeDisk) -> None:
    disks = [make_disk("/d/a"), make_disk("/d/b", uri="x://b")]
    env = environment.make_export_environment(TINY, make_instance(), disks, 1, size_fd=7)
    assert {key: value for key, value in env.items() if key.startswith("EXP")} == {
        "EXPORT_DEVICE": "/d/b",
        "EXPORT_DISK_PATH": "/d/b",
        "EXPORT_DISK_URI": "x://b",
        "EXPORT_INDEX": "1",
        "EXP_SIZE_FD": "7",
    }
    snapshot = environment.make_export_environment(
        TINY, make_instance(), disks, 1, source=make_disk("/d/snap")
    )
    assert snapshot["EXPORT_DEVICE"] == "/d/snap"
    assert snapshot["DISK_1_PATH"] == "/d/b"
    assert "EXP_SIZE_FD" not in snapshot
    env = environment.make_import_environment(TINY, make_instance(), disks, 0)
    assert {key: value for key, value in env.items() if key.startswith("IMPORT")} == {
        "IMPORT_DEVICE": "/d/a",
        "IMPORT_DISK_PATH": "/d/a",
        "IMPORT_INDEX": "0",
    }
    with pytest.raises(errors.OpPrereqError, match="no disk 2"):
        environment.make_import_environment(TINY, make_instance(), disks, 2)


@pytest.mark.parametrize("params", [{"size": "a\0b"}, {"size": "\ud800"}, {"si=ze": "hidden"}])
def test_what_no_environment_can_hold(params: dict[str, str]) -> None:
    with pytest.raises(errors.OpPrereqError) as caught:
        environment.common(TINY, params)
    assert "hidden" not in str(caught.value)
