"""Add a disk template in the two files that ``doc/adding.md`` names, and use it everywhere."""

from __future__ import annotations

from pathlib import Path

from own_package import OwnPackage

ROWS = ("disk template",)

DRIVER = '''"""Template ``ramdisk``: files on a file system in memory."""

import msgspec

from ganeti.storage.file import FileDevice
from ganeti.storage.interface import Traits


class RamParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    memory_node: int = msgspec.field(name="memory-node", default=1)
    huge: bool = False


class RamDevice(FileDevice):
    traits = Traits(
        file_based=True,
        space_checked_as="file",
        directory="file_storage_dir",
        id_parts=("memory", "path"),
        overhead=4,
    )
    params = RamParams
'''
LINE = '    RAMDISK = "ramdisk", "ganeti.storage.ramdisk:RamDevice"\n'

#: What a user types, once ``make docs`` has taken the options from the opcodes again.
COMMANDS = """
from ganeti.cli import generated, program
from ganeti.cli.programs import PROGRAMS

generated.OPCODES.clear()
program.main(PROGRAMS["gnt-instance"], ["add", "--help"])
"""

#: The rest of ``make docs``: what the placement model knows of templates.
MODEL = """
from pathlib import Path
from ganeti.storage import placing

path = Path("ganeti/placement/generated.py")
text = placing.module()
path.unlink()
path.write_text(text)
"""

#: The life of a disk: a new cluster, the request, its plan, the device, and who asks about it.
LIFE = """
from pathlib import Path
from types import SimpleNamespace

from ganeti import errors, paths
from ganeti.bootstrap import defaults
from ganeti.bootstrap.settings import InitSettings
from ganeti.config import parameters, verify
from ganeti.model import base, ipolicy
from ganeti.model.config import Config
from ganeti.model.instance import Instance
from ganeti.opcodes import wire
from ganeti.ops import annotate, hooks
from ganeti.ops.allocator import request
from ganeti.ops.board import convert
from ganeti.ops.planning import disk_layout, policy
from ganeti.ops.verification import requirements
from ganeti.placement.use import Use, use_of
from ganeti.query import engine
from ganeti.storage.interface import Environment
from ganeti.storage.registry import device

where = paths.current()
settings = InitSettings(
    cluster_name="cluster.example.com",
    enabled_disk_templates=["ramdisk"],
    diskparams={"ramdisk": {"huge": "true"}},
    file_storage_dir="/srv/ram",
)
data = defaults.configuration(
    settings,
    host="node1.example.com",
    address="192.0.2.1",
    master_ip="192.0.2.9",
    certificate_digest="AA",
    now=1.0,
)
config = Config(data)
print("parameters:", config.cluster.diskparams["ramdisk"])
allowed = config.cluster.ipolicy["disk-templates"]
print("policy:", "ramdisk" in ipolicy.defaults()["disk-templates"], allowed)
for change in ({"hug": 1}, {"memory-node": "x"}):
    try:
        parameters.disk({}, {"ramdisk": change})
    except errors.ParameterError as err:
        print("refused:", errors.text(err))
print("verify:", requirements.checks(config, where, []))

op = wire.from_wire(
    {
        "OP_ID": "OP_INSTANCE_CREATE",
        "mode": "create",
        "instance_name": "web1.example.com",
        "disk_template": "ramdisk",
        "disks": [{"size": 64}],
        "nics": [],
    }
)
ctx = SimpleNamespace(config=config)
(node,) = config.nodes.values()
layout = disk_layout.layout(ctx, op.instance_name, disk_layout.template(ctx, op), [node.uuid])
(disk,) = disk_layout.disks(ctx, layout, op.disks)
print("place:", disk.logical_id[0], Path(disk.logical_id[1]).parent)

web1 = Instance(
    uuid="i1",
    name=op.instance_name,
    primary_node=node.uuid,
    os="",
    hypervisor="kvm",
    disks=(disk.uuid,),
)
data = base.replace(data, instances={"i1": web1}, disks={disk.uuid: disk})
config = Config(data)
print("wrong in the configuration:", [text for text in verify.problems(config) if "disk" in text])
print("hooks:", hooks.instance_env(config, web1)["INSTANCE_DISK0_MEMORY"])
print("allocator:", request.space_of([disk]))
print("shape:", policy.shape(config, web1).templates)
fields = ["template", "path", "params"]
[[_, path, _]] = engine.query(SimpleNamespace(config=config), "disk", fields)["data"]
print("path:", path == (0, disk.logical_id[1]))
print("usage:", engine.query(SimpleNamespace(config=config), "instance", ["disk_usage"])["data"])
fact = convert.instance(config, web1, ("file", "/srv/ram"))
print("placement:", fact.template, fact.mirror, fact.disk, int(use_of(fact)[0][Use.DISK]))

roots = (Path(where.local("/srv/ram")),)
roots[0].mkdir(parents=True)
wire_disk = annotate.disk(config, disk, node.group)
made = device(wire_disk, Environment(where, file_roots=roots))
made.create(disk.size)
print("device:", type(made).__name__, made.attach(), made.size(), wire_disk.params)
"""


def test_a_template_in_two_files_is_known_everywhere(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.write("storage/ramdisk.py", DRIVER)
    package.insert("model/drivers.py", LINE, before='    RBD = "rbd"')
    # line breaks are where the terminal is narrow
    shown = " ".join(" ".join(package.output(COMMANDS, tmp_path / "root")).split())
    assert "plain|ramdisk|rbd|sharedfile" in shown
    assert package.output(MODEL, tmp_path / "root") == []
    assert package.output(LIFE, tmp_path / "root") == [
        "parameters: {'memory-node': 1, 'huge': True}",
        "policy: True ['ramdisk']",
        "refused: unknown parameter 'hug' of disk template ramdisk; choose from memory-node, huge",
        "refused: parameter 'memory-node' of disk template ramdisk: Expected `int`, got `str`",
        "verify: {'nodesetup': None, 'file-storage-path': '/srv/ram',"
        " 'allowed-file-storage-paths': None}",
        "place: loop /srv/ram/web1.example.com",
        "wrong in the configuration: []",
        "hooks: loop",
        "allocator: 68",
        "shape: ('ramdisk',)",
        "path: True",
        "usage: [[(0, 68)]]",
        "placement: ramdisk none 68 68",
        "device: RamDevice True 67108864 {'memory-node': 1, 'huge': True}",
    ]
    assert package.touched == {"storage/ramdisk.py", "model/drivers.py"}
