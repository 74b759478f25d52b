"""The page about ``config.data`` explains every member."""

from __future__ import annotations

from ganeti.config import reference


def rows() -> dict[str, list[str]]:
    """Member -> cells of its last row."""
    found = {}
    for line in reference.page().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        found[cells[0]] = cells[1:]
    return found


def test_every_member_has_a_description() -> None:
    assert reference.unexplained() == []


def test_types_and_defaults_are_in_words() -> None:
    found = rows()
    assert found["`cluster`"][:2] == ["[cluster](#cluster)", "required"]
    assert found["`nodes`"][:2] == ["list of UUIDs", "empty"]  # of a disk
    assert found["`uid_pool`"][0] == "list of lists of 2 integers"
    assert found["`os_hvp`"][0] == "object of objects of objects"
    assert found["`mode`"] == ["`ro`, `rw`", '`"rw"`', "Whether the guest may write: rw or ro"]
    assert found["`network_port`"][1] == "unset"


def test_what_a_request_sets_is_described_there() -> None:
    assert rows()["`mac_prefix`"][2] == "First three bytes of generated MAC addresses"


def test_members_that_other_versions_do_not_know_have_a_star() -> None:
    found = rows()
    assert "`maintenance` *" in found
    assert "`drained`" in found
