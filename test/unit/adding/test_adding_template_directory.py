"""Give a disk template a directory that the administrator chooses: a parameter of it."""

from __future__ import annotations

from pathlib import Path

from own_package import REPOSITORY, OwnPackage

ROWS = ("disk template", "- with a directory that the administrator chooses")

DRIVER = '''"""Template ``shelf``: files in a directory of its own."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from ganeti.storage.file import FileDevice
from ganeti.storage.interface import Traits


class ShelfParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    directory: Annotated[str, Meta(pattern="^/[^\\\\0]+$")] = "/srv/shelf"


class ShelfDevice(FileDevice):
    traits = Traits(id_parts=("driver", "name"))
    params = ShelfParams

    def __init__(self, disk, env):
        self._directory = Path(env.paths.local(disk.params["directory"]))
        super().__init__(disk, replace(env, file_roots=(self._directory,)))

    @property
    def path(self):
        return str(self._directory / self.disk.logical_id[1])

    @classmethod
    def plan(cls, request):
        return ("loop", f"{request.instance_name}-{request.index}")
'''
LINE = '    SHELF = "shelf", "ganeti.storage.shelf:ShelfDevice"\n'

USE = f"""
import sys, tempfile
from pathlib import Path

sys.path[:0] = [{str(REPOSITORY / "test/support")!r}]
from one_process import OneProcess
from ganeti import errors
from ganeti.config import parameters
from ganeti.opcodes import wire

cluster = OneProcess(Path(tempfile.mkdtemp()) / "cluster", count=1)


def run(op, **params):
    return cluster.run(wire.from_wire({{"OP_ID": op, **params}}))


def set_directory(op, directory, **params):
    try:
        run(op, diskparams={{"shelf": {{"directory": directory}}}}, **params)
    except errors.GanetiError as err:
        print("refused:", errors.text(err))


def add(name):
    run("OP_INSTANCE_CREATE", mode="create", instance_name=name, disk_template="shelf",
        disks=[{{"size": 1}}], nics=[], no_install=True, start=False, pnode="node1.example.com")


where = cluster.paths["node1"]
for directory in ("/srv/shelf", "/srv/fast", "/srv/group"):
    where.under(directory).mkdir(parents=True)
try:
    run("OP_CLUSTER_SET_PARAMS", enabled_disk_templates=["file", "shelf", "diskless"])
    print("by default:", cluster.config.cluster.diskparams["shelf"])
    add("a.example.com")
    set_directory("OP_CLUSTER_SET_PARAMS", "srv/fast")
    set_directory("OP_CLUSTER_SET_PARAMS", "/srv/fast")
    add("b.example.com")
    set_directory("OP_GROUP_SET_PARAMS", "/srv/group", group_name="default")
    add("c.example.com")
    files = where.under("/srv").glob("*/*-0")
    print("files:", *sorted(f"{{path.parent.name}}/{{path.name}}" for path in files))
finally:
    cluster.close()
"""


def test_a_directory_is_a_parameter_of_the_template(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.write("storage/shelf.py", DRIVER)
    package.insert("model/drivers.py", LINE, before='    SHAREDFILE = "sharedfile"')
    assert package.output(USE, tmp_path / "root") == [
        "by default: {'directory': '/srv/shelf'}",
        "refused: disk template shelf: Expected `str` matching regex '^/[^\\\\0]+$'"
        " - at `$.directory`",
        "files: fast/b.example.com-0 group/c.example.com-0 shelf/a.example.com-0",
    ]
    assert package.touched == {"storage/shelf.py", "model/drivers.py"}
