"""What the real tools and the real module said is read as it was meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ganeti import errors
from ganeti.storage.drbd import kernel_log, proc, show, tool

RECORDED = json.loads((Path(__file__).parents[2] / "recorded" / "drbd" / "8.4.11.json").read_text())
#: Forms of versions that are not handled, written down from their documentation.
OLDER = json.loads((Path(__file__).parents[2] / "recorded" / "drbd" / "older.json").read_text())


@pytest.mark.parametrize("case", RECORDED["show"], ids=lambda case: case["case"])
def test_show(case: dict[str, Any]) -> None:
    found = msgspec.json.encode(show.parse(case["text"]))
    assert json.loads(found) == case["expected"]


@pytest.mark.parametrize("case", RECORDED["proc"], ids=lambda case: case["text"].split("\n")[2])
def test_proc(case: dict[str, Any]) -> None:
    found = proc.parse(case["text"])
    assert (found.version, found.api, found.protocol) == ((8, 4, 11), "1", "86-101")
    assert msgspec.to_builtins(found.devices, str_keys=True) == case["expected"]


@pytest.mark.parametrize("case", RECORDED["refusals"], ids=lambda case: case["expected"][:40])
def test_what_the_kernel_refuses_is_told_in_its_words(case: dict[str, Any]) -> None:
    assert tool.reason(case["stderr"], case["code"]) == case["expected"]


@pytest.mark.parametrize("case", RECORDED["kernel_log"])
def test_why_a_connection_ended(case: dict[str, Any]) -> None:
    about = ("drbd resource0: ", "block drbd0: ")
    assert kernel_log.reason(iter(case["lines"]), about) == case["expected"]


@pytest.mark.parametrize("case", OLDER["show"], ids=lambda case: case["case"])
def test_show_of_older_tools_is_refused_by_its_version(case: dict[str, Any]) -> None:
    with pytest.raises(errors.BlockDeviceError, match=r"in the form of DRBD 8\.0 to 8\.3.*8\.4"):
        show.parse(case["text"])


@pytest.mark.parametrize("case", OLDER["proc"], ids=lambda case: case["version"])
def test_an_older_module_is_refused_by_its_version(case: dict[str, Any]) -> None:
    assert ".".join(map(str, proc.version(case["text"]))) == case["version"]
    with pytest.raises(errors.BlockDeviceError, match=rf"DRBD {case['version']} is loaded"):
        proc.parse(case["text"])


@pytest.mark.parametrize(
    "text",
    ["resource r {", "resource r { disk }", "}", 'resource r { x "open; }', "x;"],
)
def test_damaged_show_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(errors.BlockDeviceError, match="cannot be read at line 1"):
        show.parse(text)


def test_addresses_of_ipv6_and_other_sections() -> None:
    text = """
    resource "odd name" {
        options { cpu-mask "3"; }
        _remote_host { address ipv6 [2001:db8::2]:11000; }
        _this_host {
            address ipv6 [2001:db8::1]:11000;
            volume 0 { device minor 12; disk "/dev/a \\"b\\""; meta-disk "/dev/m" [ 0 ]; }
        }
    }
    """
    [found] = show.parse(text)
    assert (found.resource, found.minor, found.data) == ("odd name", 12, '/dev/a "b"')
    assert found.local is not None
    assert found.local.word == "ipv6:[2001:db8::1]:11000"


@pytest.mark.parametrize("text", ["", "GIT-hash: x\n", "version: \n"])
def test_what_is_no_proc_file_is_refused(text: str) -> None:
    with pytest.raises(errors.BlockDeviceError, match="does not begin with the module's version"):
        proc.parse(text)


def test_unknown_states_are_named() -> None:
    text = "version: 8.4.11 (api:1/proto:86-101)\n 0: cs:Dancing ro:Primary/Secondary ds:A/B\n"
    with pytest.raises(errors.BlockDeviceError, match="Dancing"):
        proc.parse(text)
