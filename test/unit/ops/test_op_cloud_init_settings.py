"""Which data for cloud-init a request comes to, and what cloud-init would not take."""

from __future__ import annotations

from typing import Any

import pytest

from ganeti import errors
from ganeti.model.cloud_init import CloudInit
from ganeti.opcodes import wire
from ganeti.opcodes.hidden import Private
from ganeti.opcodes.instance import OpInstanceSetParams
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.planning import cloud_init_settings as settings

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA admin@example.com"
HASH = "$6$salt$abcdefghijkl"
NEEDED = {"disks": [], "nics": [], "instance_name": "web1", "mode": "create"}


def creation(**given: Any) -> OpInstanceCreate:
    return wire.decode(OpInstanceCreate, {**NEEDED, **given})


def make(hypervisor: str = "kvm", **given: Any) -> CloudInit | None:
    return settings.make(creation(**given), hypervisor)


def make_data(**given: Any) -> CloudInit:
    found = make(**given)
    assert found is not None
    return found


def change(old: CloudInit | None, hypervisor: str = "kvm", **given: Any) -> CloudInit:
    op = wire.decode(OpInstanceSetParams, {"instance_name": "web1", **given})
    return settings.change(op, old, hypervisor)


@pytest.mark.parametrize(
    "given",
    [
        {"ssh_keys": [KEY]},
        {"ssh_keys": []},
        {"password_hash": HASH},
        {"user_data": "#!"},
        {"vendor_data": "#!"},
        {"network_config": ""},
    ],
)
def test_any_data_asks_for_cloud_init(given: dict[str, Any]) -> None:
    assert settings.is_asked_for(creation(**given))
    assert make(**given) is not None


def test_without_data_only_an_instance_from_an_image_gets_some() -> None:
    assert not settings.is_asked_for(creation())
    assert make() is None
    assert make(image="debian") == CloudInit()
    assert make("fake", image="debian") is None


def test_guests_of_some_hypervisors_get_no_data() -> None:
    with pytest.raises(errors.OpPrereqError, match=r"guests of hypervisor fake get no data.* kvm"):
        make("fake", ssh_keys=[KEY])
    with pytest.raises(errors.OpPrereqError, match=r"fake get no data"):
        change(None, "fake", ssh_keys=[KEY])


def test_all_data_is_kept_and_texts_are_hidden() -> None:
    found = make_data(
        ssh_keys=[f"  {KEY}\n"],
        password_hash=HASH,
        user_data="#cloud-config\n",
        vendor_data="#!/bin/sh\n",
        network_config="version: 2",
    )
    assert found.ssh_keys == (KEY,)
    assert found.network_config == "version: 2"
    assert found.generation == 1
    assert found.private == {
        "password_hash": HASH,
        "user_data": "#cloud-config\n",
        "vendor_data": "#!/bin/sh\n",
    }


def test_a_change_replaces_what_is_given_and_empty_removes() -> None:
    old = make_data(
        ssh_keys=[KEY], user_data="#!a", vendor_data="#!b", network_config="x", password_hash=HASH
    )
    found = change(old, user_data="#!c", vendor_data="", network_config="")
    assert found.ssh_keys == (KEY,)
    assert found.private == {"user_data": "#!c", "password_hash": HASH}
    assert found.network_config is None
    assert change(old, ssh_keys=[]).ssh_keys == ()
    assert change(old, ssh_keys=[]).private == old.private


def test_each_change_is_a_first_start_for_the_guest() -> None:
    old = change(None, ssh_keys=[KEY])
    assert old.generation == 1
    assert change(old, ssh_keys=[]).generation == 2
    assert change(change(old, ssh_keys=[]), ssh_keys=[KEY]).generation == 3


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"ssh_keys": ["-----BEGIN OPENSSH PRIVATE KEY-----"]}, "private SSH key"),
        ({"ssh_keys": [KEY, "hello"]}, "'hello' is not a public SSH key"),
        ({"ssh_keys": ["x" * 41]}, f"'{'x' * 40}' is not a public SSH key"),
        ({"ssh_keys": ["ssh-ed25519 short"]}, "is not a public SSH key"),
        ({"ssh_keys": [KEY + "\nssh-rsa x"]}, "is not a public SSH key"),
        ({"password_hash": "secret"}, "must come as a hash of crypt"),
        (
            {"user_data": "hello"},
            "user data must begin with #cloud-config, .*, Content-Type: or MIME-Version:",
        ),
        ({"vendor_data": "hello"}, "vendor data must begin with"),
        ({"user_data": Private(5)}, "user_data must be a text"),
    ],
)
def test_what_cloud_init_would_not_take_is_refused(given: dict[str, Any], text: str) -> None:
    if isinstance(value := given.get("user_data"), Private):
        given = {"user_data": value.reveal()}
    with pytest.raises(errors.OpPrereqError, match=text):
        make(**given)


def test_all_data_together_is_limited() -> None:
    assert settings.LARGEST == 262144
    half = "#!" + "x" * (settings.LARGEST // 2 - 2)
    rest = {"network_config": "y" * 10, "vendor_data": half[:-10]}
    assert make_data(user_data=half, **rest).private["user_data"] == half
    rest["network_config"] += "y"
    with pytest.raises(errors.OpPrereqError, match=f"has {settings.LARGEST + 1} bytes"):
        make(user_data=half, **rest)
