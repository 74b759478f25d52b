"""Add a parameter of a hypervisor and one of a disk template, and follow both everywhere."""

from __future__ import annotations

from pathlib import Path

from own_package import REPOSITORY, OwnPackage

ROWS = ("parameter of a hypervisor or a disk template",)

KVM = """    drift: Annotated[
        Literal["ignore", "slew"],
        Meta(description="What to do when the clock of the guest is late"),
        Mark.SAFE,
    ] = "ignore"
"""
KVM_USE = """    if params.drift == "slew":
        yield from ("-global", "mc146818rtc.lost_tick_policy=slew")
"""
KVM_RULE = """    if params.drift == "slew" and params.use_localtime:
        yield "drift is slew, so use_localtime must be off"
"""
RBD = """    namespace: str = "none"
"""
RBD_USE = """        self.pool += f"-{disk.params['namespace']}"
"""

FOLLOW = f"""
import importlib.util, sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import SimpleNamespace

import ganeti

repository = Path({str(REPOSITORY)!r})
sys.path[:0] = [str(repository / "test/unit/hypervisor"), str(repository / "tools")]
import kvm_cases
from ganeti import errors, paths
from ganeti.base import jsonio
from ganeti.bootstrap import defaults
from ganeti.bootstrap.settings import InitSettings
from ganeti.config import parameters
from ganeti.config.upgrade.upgrade import upgrade
from ganeti.hypervisor.kvm import params, rules
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.instance import Instance
from ganeti.ops.planning import checks
from ganeti.query import engine
from ganeti.rpc.objects import NodeDisk
from ganeti.storage.interface import Environment
from ganeti.storage.registry import device

settings = InitSettings(cluster_name="c.example.com", enabled_hypervisors=["kvm"],
                        enabled_disk_templates=["rbd"], diskparams={{"rbd": {{"namespace": "a"}}}})
data = defaults.configuration(settings, host="node1.example.com", address="192.0.2.1",
                              master_ip="192.0.2.9", certificate_digest="AA", now=1.0)
config = Config(data)
cluster = config.cluster
print("new:", cluster.hvparams["kvm"]["drift"], cluster.diskparams["rbd"]["namespace"])
old = upgrade(jsonio.loads((repository / "test/recorded/config_3_0_2.json").read_bytes()))
print("upgraded:", *[str(c) for c in old.report.changes if "drift" in str(c) or "namesp" in str(c)])

ctx = SimpleNamespace(config=config)
for given in ({{"drift": "no"}}, {{"drift": "slew"}}):
    try:
        print("own:", checks.check_hvparams(ctx, "kvm", "", {{}}, given))
    except errors.GanetiError as err:
        print("refused:", errors.text(err))
(group,) = config.groups.values()
print("of a group:", parameters.disk({{}}, {{"rbd": {{"namespace": "b"}}}}))
print("rules:", rules.problems(params.load({{"drift": "slew", "use_localtime": True}}))[0])
print("QEMU:", kvm_cases.difference({{"params": {{"drift": "slew"}}}}))

(node,) = config.nodes
web1 = Instance(uuid="i1", name="web1", primary_node=node, os="", hypervisor="kvm",
                hvparams={{"drift": "slew"}})
sources = SimpleNamespace(config=Config(base.replace(data, instances={{"i1": web1}})))
print("query:", engine.query(sources, "instance", ["hv/drift"])["data"],
      engine.query(sources, "group", ["diskparams"])["data"][0][0][1]["rbd"]["namespace"])
disk = NodeDisk(uuid="d", dev_type="rbd", size=1, logical_id=("rbd", "x"),
                params=cluster.diskparams["rbd"])
print("device:", device(disk, Environment(paths.current())).pool)
loader = SourceFileLoader("make_docs", str(repository / "tools/make-docs"))
make_docs = importlib.util.module_from_spec(importlib.util.spec_from_loader("make_docs", loader))
loader.exec_module(make_docs)
print(*[line for line in make_docs.parameters().splitlines() if "`drift`" in line])
"""


def test_parameters_of_drivers_are_known_everywhere(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.insert("hypervisor/kvm/params.py", KVM, before="    use_localtime: Annotated[")
    package.insert("hypervisor/kvm/argv.py", KVM_USE, before='    if params.reboot_behavior == "')
    package.insert(
        "hypervisor/kvm/rules.py", KVM_RULE, before='    if params.boot_order == "cdrom"'
    )
    package.insert("storage/rbd.py", RBD, before='    pool: str = "rbd"')
    package.insert("storage/rbd.py", RBD_USE, before="        self.image = disk.logical_id[1]")
    assert package.output(FOLLOW, tmp_path / "root") == [
        "new: ignore a",
        "upgraded: added cluster/hvparams/kvm/drift: 'ignore'"
        " added cluster/diskparams/rbd/namespace: 'none'",
        "refused: hypervisor kvm parameter: Invalid enum value 'no' - at `$.drift`",
        "own: {'drift': 'slew'}",
        "of a group: {'rbd': {'namespace': 'b'}}",
        "rules: drift is slew, so use_localtime must be off",
        "QEMU: {'drops': [], 'adds': [['-global', 'mc146818rtc.lost_tick_policy=slew']]}",
        "query: [[(0, 'slew')]] a",
        "device: rbd-a",
        "| `drift` | `oneof('ignore','slew')` | `\"ignore\"` |"
        " What to do when the clock of the guest is late |",
    ]
    assert package.touched == {
        "hypervisor/kvm/params.py",
        "hypervisor/kvm/argv.py",
        "hypervisor/kvm/rules.py",
        "storage/rbd.py",
    }
