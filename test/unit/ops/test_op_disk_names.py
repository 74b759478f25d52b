"""What a disk may be called."""

from __future__ import annotations

import pytest
from op_samples import config, with_instance

from ganeti import errors
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.ops.planning import disk_names

UUID = "3f2c9a10-5b7e-4d68-9c1f-2a6b8e0d4c57"


def make_config(name: str) -> Config:
    """A cluster with one disk of this name and one without."""
    of = with_instance(config(), "web", "node-1")
    of = with_instance(of, "mail", "node-1")
    disk = base.replace(of.disks["disk-web"], name=name)
    return of.apply([("disks", disk.uuid, disk)], [], None, mtime=3.0)


@pytest.mark.parametrize("name", ["data", "a", "x" * 128, "1a", "web.data_1+2@x-y", "größe", "7.5"])
def test_a_name(name: str) -> None:
    assert disk_names.check(config(), name) == name


@pytest.mark.parametrize("name", [None, "none"])
def test_no_name(name: str | None) -> None:
    assert disk_names.check(make_config("data"), name) is None


@pytest.mark.parametrize("name", ["", "7", "-1", "x" * 129, "a b", "a/b", "a\n", "a:b", UUID])
def test_what_cannot_be_told_from_an_index_or_a_uuid_is_refused(name: str) -> None:
    with pytest.raises(errors.OpPrereqError, match="cannot be the name of a disk") as caught:
        disk_names.check(config(), name)
    assert caught.value.args[1] == errors.ErrorCode.INVAL


def test_a_name_belongs_to_one_disk_and_who_has_it_is_not_said() -> None:
    of = make_config("data")
    with pytest.raises(errors.OpPrereqError, match="called 'data' already") as caught:
        disk_names.check(of, "data")
    text, code = caught.value.args
    assert "web" not in text
    assert code == errors.ErrorCode.EXISTS
    with pytest.raises(errors.OpPrereqError):
        disk_names.check(of, "data", besides="disk-mail")
    assert disk_names.check(of, "data", besides="disk-web") == "data"
    assert disk_names.check(of, "other") == "other"
