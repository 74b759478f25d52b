"""Sensitive parameters are hidden from those who may not set them, wherever they appear."""

from __future__ import annotations

from typing import Any

import pytest
from query_cluster import StubSources, config, instance, node

from ganeti.base import jsonio
from ganeti.model.job import from_wire
from ganeti.query import engine, redaction
from ganeti.query.classic import classic
from ganeti.query.live import JobView

HIDDEN = "<redacted>"
SECRET = "ro password=hunter2"
OPS = [
    {
        "input": {
            "OP_ID": "OP_CLUSTER_SET_PARAMS",
            "hvparams": {"kvm": {"kernel_args": SECRET}},
            "os_hvp": {"debian": {"kvm": {"kvm_extra": SECRET, "acpi": True}}},
        },
        "result": [["hv/kernel_args", SECRET], ["hv/acpi", True]],
        "log": [],
        "status": "success",
    },
    {
        "input": {"OP_ID": "OP_INSTANCE_QUERY_DATA"},
        "log": [],
        "status": "success",
        "result": {"web1": {"hv_actual": {"cdrom_image_path": SECRET, "acpi": True}}},
    },
    {
        "input": {"OP_ID": "OP_QUERY"},
        "log": [],
        "status": "success",
        "result": {
            "fields": [{"name": "name"}, {"name": "hv/kernel_args"}],
            "data": [[[0, "web1"], [0, SECRET]]],
        },
    },
    {
        "input": {"OP_ID": "OP_X", "x": {"fields": 1, "data": [SECRET[:2]]}},
        "log": [],
        "status": "success",
        "result": None,
    },
]


@pytest.fixture
def sources() -> StubSources:
    own = {"kernel_args": SECRET, "acpi": False, "kvm_extra": ""}
    found = StubSources(config([node(1)], [instance(1, hvparams=own), instance(2)]))
    found.queue[7] = JobView(from_wire({"id": 7, "ops": OPS}), archived=False)
    return found


@pytest.mark.parametrize(
    "field", ["hv/kernel_args", "hvparam/kernel_args", "hvparams", "custom_hvparams"]
)
def test_fields_of_instances(sources: StubSources, field: str) -> None:
    for redacted in (False, True, False):  # what is kept with the snapshot is not mixed up
        query = engine.Query("instance", [field], redacted=redacted)
        found = jsonio.dumps(query.run(sources)["data"])
        assert ("hunter2" in found, HIDDEN in found) == (not redacted, redacted)
        row = jsonio.dumps(classic(sources, "instance", ["i1"], [field], redacted=redacted))
        assert ("hunter2" in row, HIDDEN in row) == (not redacted, redacted)


def test_what_is_harmless_or_not_set_stays(sources: StubSources) -> None:
    [[params], _] = classic(sources, "instance", [], ["custom_hvparams"], redacted=True)
    assert params == {"kernel_args": HIDDEN, "acpi": False, "kvm_extra": ""}


@pytest.mark.parametrize(
    "guess",
    [
        ["=~", "hv/kernel_args", "password=h"],
        ["==", "hv/kernel_args", SECRET],
        ["=~", "hvparam/kernel_args", "hunter2"],
    ],
)
def test_a_filter_finds_nothing_out(sources: StubSources, guess: list[Any]) -> None:
    def is_found(redacted: bool) -> bool:
        rows = engine.Query("instance", ["name"], guess, redacted=redacted).values(sources)
        return ["inst1.example.com"] in rows

    assert (is_found(False), is_found(True)) == (True, False)


def test_jobs(sources: StubSources) -> None:
    fields = ["ops", "opresult", "oplog"]
    plain = jsonio.dumps(classic(sources, "job", [7], fields))
    shown = jsonio.dumps(classic(sources, "job", [7], fields, redacted=True))
    assert plain.count("hunter2") == 5
    assert "hunter2" not in shown
    assert shown.count(HIDDEN) == 5
    assert '"acpi":true' in shown.replace(" ", "")


def test_which_parameters_are_sensitive() -> None:
    assert redaction.names() == {
        "bootloader_args",
        "cdrom2_image_path",
        "cdrom_image_path",
        "extra_config",
        "kernel_args",
        "kvm_extra",
    }
