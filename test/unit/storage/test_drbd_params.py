"""Disk parameters of template drbd, and the words that they become."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ganeti.model.enums import DiskTemplate
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeDisk
from ganeti.storage.drbd import params, v84
from ganeti.storage.drbd.params import DrbdParams
from ganeti.storage.interface import Environment
from ganeti.storage.registry import default_params, device

DEFAULTS = default_params()["drbd"]


def options(**change: object) -> list[str]:
    given = {**DEFAULTS, **{key.replace("_", "-"): value for key, value in change.items()}}
    msgspec.convert(given, DrbdParams)
    return params.disk_options(params.logical(given))


def test_defaults_are_those_of_the_cluster() -> None:
    assert msgspec.to_builtins(DrbdParams()) == DEFAULTS


def test_names_that_nodes_get() -> None:
    found = params.logical({**DEFAULTS, "metavg": "fast", "disk-barriers": "bf"})
    assert found["default-metavg"] == "fast"
    assert found["disabled-barriers"] == "bf"
    assert found["disable-meta-flush"] is False
    assert not {"metavg", "disk-barriers", "meta-barriers", "data-stripes"} & set(found)
    both = params.children({**DEFAULTS, "data-stripes": 2, "meta-stripes": 3})
    assert both == ({"stripes": 2}, {"stripes": 3})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ["--on-io-error=detach", "--resync-rate=61440k", "--c-plan-ahead=0"]),
        (
            {"resync_rate": 1024},
            ["--on-io-error=detach", "--resync-rate=1024k", "--c-plan-ahead=0"],
        ),
        (
            {"disk_barriers": "bfd", "meta_barriers": True},
            [
                "--on-io-error=detach",
                "--disk-barrier=no",
                "--disk-flushes=no",
                "--disk-drain=no",
                "--md-flushes=no",
                "--resync-rate=61440k",
                "--c-plan-ahead=0",
            ],
        ),
        (
            {"dynamic_resync": True},
            [
                "--on-io-error=detach",
                "--c-plan-ahead=20",
                "--c-delay-target=1",
                "--c-fill-target=0s",
                "--c-max-rate=61440k",
                "--c-min-rate=4096k",
            ],
        ),
        (
            {"disk_custom": "--al-extents=1237 '--disk-timeout=50'"},
            [
                "--on-io-error=detach",
                "--resync-rate=61440k",
                "--c-plan-ahead=0",
                "--al-extents=1237",
                "--disk-timeout=50",
            ],
        ),
    ],
)
def test_words_for_the_disk(change: dict[str, object], words: list[str]) -> None:
    assert options(**change) == words


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"protocol": "D"}, "A, B or C"),
        ({"disk-barriers": "x"}, "letters b"),
        ({"disk-barriers": ""}, "letters b"),
        ({"disk-barriers": "bb"}, "letters b"),
        ({"resync-rate": 0}, "between 1 and 4194304"),
        ({"c-delay-target": 0}, "between 1 and 100"),
        ({"disk-custom": "--nosuch=1"}, "cannot be set"),
        ({"disk-custom": "--size=1"}, "cannot be set"),
        ({"net-custom": "--shared-secret=x"}, "cannot be set"),
        ({"net-custom": "--allow-two-primaries=yes"}, "cannot be set"),
        ({"net-custom": "--timeout 60"}, "--option=value"),
        ({"net-custom": "--timeout='60'; rm -rf /"}, "not a value for"),
        ({"net-custom": "'"}, "cannot be split"),
        ({"net-custom": "--timeout=$(id)"}, "not a value for"),
    ],
)
def test_wrong_values_are_refused_with_a_reason(change: dict[str, object], text: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert({**DEFAULTS, **change}, DrbdParams)
    assert text in str(caught.value)


_DYNAMIC = {"dynamic_resync": True}
#: parameter -> (value, other parameters, the word for drbdsetup that it makes)
EFFECTS: dict[str, tuple[object, dict[str, object], str]] = {
    "c-delay-target": (7, _DYNAMIC, "--c-delay-target=7"),
    "c-fill-target": (9, _DYNAMIC, "--c-fill-target=9s"),
    "c-max-rate": (8192, _DYNAMIC, "--c-max-rate=8192k"),
    "c-min-rate": (512, _DYNAMIC, "--c-min-rate=512k"),
    "c-plan-ahead": (30, _DYNAMIC, "--c-plan-ahead=30"),
    "disk-barriers": ("b", {}, "--disk-barrier=no"),
    "disk-custom": ("--al-extents=1237", {}, "--al-extents=1237"),
    "dynamic-resync": (True, {}, "--c-max-rate=61440k"),
    "meta-barriers": (True, {}, "--md-flushes=no"),
    "resync-rate": (1024, {}, "--resync-rate=1024k"),
}


@pytest.mark.parametrize("name", EFFECTS)
def test_parameter_has_its_effect(name: str) -> None:
    value, others, word = EFFECTS[name]
    assert word not in options(**others)
    assert word in options(**others, **{name.replace("-", "_"): value})


def test_words_for_the_connection() -> None:
    given = {**DEFAULTS, "protocol": "A", "net-custom": "--max-buffers=8000"}
    disk = NodeDisk(
        uuid="d1",
        dev_type=DiskTemplate.DRBD,
        size=16,
        logical_id=("n1", "n2", 11000, 0, 0, "secret"),
        params=params.logical(given),
        children=tuple(
            NodeDisk(uuid=part, dev_type=DiskTemplate.PLAIN, size=16, logical_id=("xenvg", part))
            for part in ("data", "meta")
        ),
        dynamic_params={
            "local-ip": "192.0.2.1",
            "remote-ip": "192.0.2.2",
            "port": 11000,
            "local-minor": 0,
            "remote-minor": 0,
        },
    )
    made = device(disk, Environment(Paths(Path("/nowhere"))))
    words = v84.connect("resource0", made.wish(), dual=False)
    assert "--protocol=A" in words
    assert words[-1] == "--max-buffers=8000"


def test_stripes_of_both_volumes() -> None:
    given = {**DEFAULTS, "data-stripes": 2, "meta-stripes": 3}
    assert params.children(given) == ({"stripes": 2}, {"stripes": 3})
