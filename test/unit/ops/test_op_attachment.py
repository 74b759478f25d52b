"""Which disk is meant by an attach, and which one an instance cannot use."""

from __future__ import annotations

import op_samples
import pytest

from ganeti import errors
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate
from ganeti.opcodes.devices import DiskParams
from ganeti.ops.steps.storage import attachment


def sample() -> Config:
    """web1 with a mirror, web2 with a file, and detached disks: two twins and an rbd image."""
    config = op_samples.config(op_samples.node(2), op_samples.node(3))
    config = op_samples.with_instance(config, "web1", "node-2", "node-3")
    config = op_samples.with_instance(config, "web2", "node-2")
    loose = [
        Disk(uuid="one", name="twin", dev_type=DiskTemplate.PLAIN, nodes=("node-2",), size=4),
        Disk(uuid="two", name="twin", dev_type=DiskTemplate.PLAIN, nodes=("node-2",), size=4),
        Disk(
            uuid="net",
            name="image",
            dev_type=DiskTemplate.RBD,
            size=4,
            params={"access": "userspace"},
        ),
    ]
    taken = base.replace(config.disks["disk-web2"], name="taken")
    puts = [("disks", disk.uuid, disk) for disk in (*loose, taken)]
    return config.apply(puts, [], None, mtime=3.0)


def find(**given: str) -> Disk:
    config = sample()
    params = DiskParams.from_wire(given)
    return attachment.find(config, config.instance("web1"), 1, params)


def test_a_disk_is_found_by_uuid_or_by_its_only_name() -> None:
    assert find(uuid="one").uuid == "one"
    assert find(name="image").uuid == "net"
    assert find(uuid="disk-web1").uuid == "disk-web1"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "say which disk to attach by either uuid= or name="),
        ({"uuid": "one", "name": "twin"}, "either uuid= or name=, not by name, uuid"),
        ({"name": "image", "mode": "ro"}, "not by mode, name"),
        ({"name": "twin"}, "2 disks are called 'twin'; use the uuid"),
        ({"name": "nosuch"}, "'nosuch' is not known"),
        ({"uuid": "twin"}, "'twin' is not known"),
        ({"name": "taken"}, r"belongs to an instance \(web2\)"),
        ({"uuid": "disk-web2"}, r"belongs to an instance \(web2\)"),
    ],
)
def test_what_names_no_free_disk(given: dict[str, str], text: str) -> None:
    with pytest.raises(errors.OpPrereqError, match=text):
        find(**given)


def test_only_some_hypervisors_open_addresses() -> None:
    config = sample()
    instance = config.instance("web1")
    with pytest.raises(errors.OpPrereqError, match="hypervisor fake of web1 opens devices"):
        attachment.check_openable(config, instance, config.disks["net"])
    kvm = base.replace(instance, hypervisor="kvm")
    attachment.check_openable(config, kvm, config.disks["net"])
    kernel = base.replace(config.disks["net"], params={"access": "kernelspace"})
    attachment.check_openable(config, instance, kernel)
    assert attachment.candidates(config, []) == []


def test_what_ties_an_instance_to_its_node_is_told() -> None:
    config = sample()
    mirrored, local = config.instance("web1"), config.instance("web2")
    text = attachment.ties(config, mirrored, [config.disks["one"]])
    assert text is not None
    assert "with a disk of template plain instance web1 (drbd) cannot be migrated" in text
    assert attachment.ties(config, mirrored, [config.disks["net"]]) is None
    assert attachment.ties(config, local, [config.disks["one"]]) is None


def test_the_template_of_a_new_disk() -> None:
    config = sample()
    web1 = config.instance("web1")
    assert attachment.template_of_new(config, web1, 1, None) == "drbd"
    assert attachment.template_of_new(config, web1, 1, "plain") == "plain"
    mixed = base.replace(web1, disks=("disk-web1", "one"))
    with pytest.raises(errors.OpPrereqError, match=r"several templates \(drbd, plain\)"):
        attachment.template_of_new(config, mixed, 2, None)
    with pytest.raises(errors.OpPrereqError, match=r"is diskless, so say how disk 0 is stored"):
        attachment.template_of_new(config, base.replace(web1, disks=()), 0, None)
