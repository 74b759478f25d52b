"""Add a hypervisor in the two files that ``doc/adding.md`` names, and use it everywhere."""

from __future__ import annotations

from pathlib import Path

from own_package import OwnPackage

ROWS = ("hypervisor",)

DRIVER = '''"""Hypervisor ``dream``: guests are files, but each has a depth and a password."""

from typing import Annotated

import msgspec
from msgspec import Meta

from ganeti.hypervisor.fake import FakeHypervisor
from ganeti.hypervisor.interface import Traits
from ganeti.model.marks import Mark


class DreamParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    depth: Annotated[int, Meta(ge=0, description="How deep the guest sleeps"), Mark.SAFE] = 3
    lamp: Annotated[bool, Meta(description="Whether the light is on")] = False
    password: Annotated[str, Meta(description="Word that wakes the guest up"), Mark.SENSITIVE] = ""
    shift: Annotated[str, Meta(description="Who watches, in the whole cluster")] = "night"


class DreamHypervisor(FakeHypervisor):
    traits = Traits(can_migrate=True, global_params=frozenset({"shift"}), joins_bridges=False)
    params = DreamParams
'''
LINE = '    DREAM = "dream", "ganeti.hypervisor.dream:DreamHypervisor"\n'

USES = """
from types import SimpleNamespace

from ganeti import errors
from ganeti.bootstrap import defaults
from ganeti.bootstrap.settings import InitSettings
from ganeti.config import parameters
from ganeti.model import base, ssconf_keys
from ganeti.model.config import Config
from ganeti.model.instance import Instance
from ganeti.opcodes import wire
from ganeti.ops.planning import checks
from ganeti.query import engine, redaction

data = defaults.configuration(
    InitSettings(
        cluster_name="cluster.example.com",
        enabled_hypervisors=["dream"],
        hvparams={"dream": {"depth": "7"}},
    ),
    host="node1.example.com",
    address="192.0.2.1",
    master_ip="192.0.2.9",
    certificate_digest="AA",
    now=1.0,
)
config = Config(data)
print("cluster:", config.cluster.hvparams["dream"])
print("ssconf:", "hvparams_dream" in ssconf_keys.KEYS)
op = wire.from_wire(
    {
        "OP_ID": "OP_INSTANCE_CREATE",
        "mode": "create",
        "instance_name": "web1.example.com",
        "hypervisor": "dream",
        "hvparams": {"depth": "9"},
        "disks": [],
        "nics": [],
    }
)
ctx = SimpleNamespace(config=config)
used = checks.hypervisor_enabled(ctx, str(op.hypervisor))
own = checks.check_hvparams(ctx, used, "", {}, op.hvparams)
print("instance:", own)
for given in ({"depth": -1}, {"dept": 1}, {"shift": "day"}):
    try:
        checks.check_hvparams(ctx, "dream", "", {}, given)
    except errors.GanetiError as err:
        print("refused:", errors.text(err))

(node,) = config.nodes
web1 = Instance(uuid="i1", name="web1", primary_node=node, os="", hypervisor="dream", hvparams=own)
sources = SimpleNamespace(config=Config(base.replace(data, instances={"i1": web1})))
asked = ["hv/depth", "hv/lamp", "hv/shift", "hvparams"]
for item in engine.fields_of("instance", asked[:3])["fields"]:
    print("field:", item["name"], item["kind"], item["doc"])
print("row:", engine.query(sources, "instance", asked, [">", "hv/depth", 8])["data"])
print("hidden:", redaction.hide([["hv/password", "wake"], ["hv/depth", 9]]))
"""


def test_a_hypervisor_in_two_files_is_known_everywhere(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.write("hypervisor/dream.py", DRIVER)
    package.insert("model/drivers.py", LINE, before='    FAKE = "fake"')
    assert package.output(USES, tmp_path / "root") == [
        "cluster: {'depth': 7, 'lamp': False, 'password': '', 'shift': 'night'}",
        "ssconf: True",
        "instance: {'depth': 9}",
        "refused: hypervisor dream parameter: Expected `int` >= 0 - at `$.depth`",
        "refused: unknown hypervisor dream parameter 'dept' (did you mean depth?);"
        " choose from depth, lamp, password, shift",
        "refused: parameters of the whole cluster, not of an instance: shift",
        "field: hv/depth number How deep the guest sleeps",
        "field: hv/lamp bool Whether the light is on",
        "field: hv/shift unknown No such field",
        "row: [[(0, 9), (0, False), (1, None), (0, {'depth': 9, 'lamp': False, 'password': ''})]]",
        "hidden: [['hv/password', '<redacted>'], ['hv/depth', 9]]",
    ]
    assert package.touched == {"hypervisor/dream.py", "model/drivers.py"}
