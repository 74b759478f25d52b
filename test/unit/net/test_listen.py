"""The address a daemon listens on."""

from pathlib import Path

import pytest

from ganeti import errors
from ganeti.net import listen
from ganeti.paths import Paths


def test_the_address_of_an_interface() -> None:
    assert listen.interface_address("lo") == "127.0.0.1"
    with pytest.raises(errors.ParameterError, match="nosuch0"):
        listen.interface_address("nosuch0")


def test_what_is_not_said_follows_the_cluster(tmp_path: Path) -> None:
    where = Paths(tmp_path)
    assert listen.address(None, None, where) == "0.0.0.0"
    where.data.mkdir(parents=True)
    where.ssconf("primary_ip_family").write_text("10\n")
    assert listen.address(None, None, where) == "::"
    assert listen.address("192.0.2.1", None, where) == "192.0.2.1"
    assert listen.address("127.0.0.1", "lo", where) == "127.0.0.1"
    with pytest.raises(errors.ParameterError, match=r"127\.0\.0\.1"):
        listen.address("192.0.2.1", "lo", where)
