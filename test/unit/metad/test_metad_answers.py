"""What guests get, and who they are."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from ganeti import constants, errors
from ganeti.guest_os import metadata
from ganeti.metad import answers, origin
from ganeti.paths import Paths
from ganeti.rpc.objects import InstanceMetadata, NodeNic


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path)


def make(ip: str | None = "169.254.0.5", uuid: str = "u1", **values: Any) -> InstanceMetadata:
    name = f"{constants.COMMUNICATION_NIC}web1"
    nics = (
        NodeNic(uuid="n0", mac="aa:00:00:00:00:01", ip="192.0.2.1"),
        NodeNic(uuid="n1", mac="52:54:00:00:00:01", ip=ip, name=name),
    )
    return InstanceMetadata(uuid=uuid, name="web1", os="debian", nics=nics, **values)  # type: ignore[arg-type]


def get(path: str, **values: Any) -> tuple[int, str]:
    answer = answers.read(make(**values), path)
    return answer.code, answer.body.decode()


def test_lists_lead_to_what_there_is() -> None:
    assert get("/") == (200, "ganeti\n")
    assert get("/ganeti") == get("/ganeti/") == (200, "latest\n")
    assert get("/ganeti/latest/") == (200, "meta_data.json\nos/\n")
    assert get("/ganeti/latest/os") == (200, "parameters.json\n")


def test_parameters_say_who_else_sees_them() -> None:
    code, body = get(
        "/ganeti/latest/os/parameters.json",
        osparams_public={"a": "1"},
        osparams_private={"b": "2"},
        osparams_secret={"c": "3"},
    )
    assert code == 200
    assert body.strip() == '{"a":["1","public"],"b":["2","private"],"c":["3","secret"]}'


def test_the_interface_of_an_address() -> None:
    table = (
        "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"
        "eth0 0000FEA9 00000000 0001 0 0 0 0000FFFF 0 0 0\n"
        "gnt.com.0 0500FEA9 00000000 0005 0 0 0 FFFFFFFF 0 0 0\n"
    ).splitlines()
    assert origin.find_route(table, "169.254.0.5") == "gnt.com.0"
    assert origin.find_route(table, "169.254.0.6") is None
    assert origin.find_route(table, "169.254.0.0") is None


def test_the_interface_of_a_connection() -> None:
    other = struct.pack("@Nii4s4x", 20, 0, 99, b"xxxx")
    info = struct.pack("@Nii", 28, 0, 8) + struct.pack("@i8s", 7, b"")
    assert origin.find_index(info) == origin.find_index(other + info) == 7
    assert origin.find_index(b"") == origin.find_index(other) == 0
    assert origin.find_index(struct.pack("@Nii", 0, 0, 99) * 3) == 0


@pytest.mark.parametrize("ip", ["192.0.2.1", "169.254.169.254", "fe80::1", "../x"])
def test_an_address_that_no_guest_can_have(ip: str) -> None:
    with pytest.raises(errors.ParameterError, match="not an address of"):
        metadata.address_of(make(ip))


def test_what_is_kept_follows_the_address(paths: Paths) -> None:
    metadata.store(paths, make())
    metadata.store(paths, make("169.254.0.6", uuid="u2"))
    metadata.store(paths, make("169.254.0.7"))
    assert metadata.find(paths, "169.254.0.5") is None
    assert metadata.find(paths, "169.254.0.7") == make("169.254.0.7")
    metadata.store(paths, InstanceMetadata(uuid="u1", name="web1"))  # type: ignore[arg-type]
    assert [path.name for path in paths.metadata.iterdir()] == ["169.254.0.6"]
    metadata.forget(paths, "u2")
    metadata.forget(paths, "u2")
    assert list(paths.metadata.iterdir()) == []


def test_too_much_is_refused_and_changes_nothing(paths: Paths) -> None:
    metadata.store(paths, make())
    with pytest.raises(errors.ParameterError, match="can be served"):
        metadata.store(paths, make(osparams_public={"a": "x" * metadata.MAX_SIZE}))
    assert metadata.find(paths, "169.254.0.5") == make()
