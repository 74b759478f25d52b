"""The disks of a running instance are converted, and the master is lost at every step.

The guest writes on. Afterwards it uses the disks that the configuration names, and they have all
that it has written, whether it still runs or was lost with the master.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from one_process import OneProcess

from ganeti import errors
from ganeti.hypervisor.fake_guests import Guests
from ganeti.model.enums import DiskTemplate
from ganeti.opcodes.instance import OpInstanceSetParams, OpInstanceStartup
from ganeti.opcodes.instance_move import OpInstanceMigrate
from ganeti.rpc.calls import NodeCalls

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("skip_fsync")]

WEB, HOME = "web.example.com", "node2"
LATER = b"written later"


def convert(_cluster: OneProcess) -> OpInstanceSetParams:
    return OpInstanceSetParams(instance_name=WEB, disk_template=DiskTemplate.SHAREDFILE)


def read_guests(cluster: OneProcess) -> Guests:
    return Guests(cluster.paths[HOME].fake_hypervisor)


def write_more(cluster: OneProcess) -> None:
    """What a guest writes to a disk that is converted ends when both have it."""
    known = read_guests(cluster)
    for paths in (known.disk_paths(WEB), known.successors(WEB)):
        for path in paths.values():
            with open(path, "r+b") as stream:
                stream.seek(4096)
                stream.write(LATER)


def is_open(cluster: OneProcess) -> bool:
    answers = cluster.call_many(
        cluster.config.online_nodes(), NodeCalls.instances_converting, ["fake"]
    )
    return any(answer.value for answer in answers.values())


def clean_up(cluster: OneProcess) -> None:
    """What the next master does when a node converts disks."""
    if is_open(cluster):
        cluster.run(OpInstanceMigrate(instance_name=WEB, cleanup=True))


def check_all(cluster: OneProcess, when: str) -> None:
    assert not is_open(cluster), when
    cluster.check_quiet(when)
    reported = "\n".join(cluster.verify())
    used = read_guests(cluster).disk_paths(WEB)
    images = {uuid: cluster.image(uuid) for uuid in cluster.instance(WEB).disks}
    for uuid, image in images.items():
        assert cluster.marked(uuid), when
        assert image.read_bytes()[4096 : 4096 + len(LATER)] == LATER, when
        assert os.path.samefile(used[uuid], image), (when, "the guest uses another disk")
    for path in cluster.images():
        known = any(path.samefile(image) for image in images.values())
        assert known or path.name in reported, (when, path, reported)


def test_the_master_dies_at_every_step(tmp_path: Path, running_tree: Path) -> None:
    ends = []
    for when, cluster in OneProcess.deaths(running_tree, tmp_path, convert):
        write_more(cluster)
        clean_up(cluster)
        assert cluster.running(WEB) == [HOME], when
        assert read_guests(cluster).successors(WEB) == {}, when
        check_all(cluster, when)
        ends.append(cluster.config.disk_template(cluster.instance(WEB)))
    # First it has its old disks, from some step on the new ones.
    assert ends == sorted(ends)
    assert set(ends) == {"file", "sharedfile"}


def test_the_master_and_the_guest_die_at_every_step(tmp_path: Path, running_tree: Path) -> None:
    for when, cluster in OneProcess.deaths(running_tree, tmp_path, convert):
        write_more(cluster)
        read_guests(cluster).path(WEB).unlink()
        clean_up(cluster)
        assert cluster.running(WEB) == [], when
        cluster.run(OpInstanceStartup(instance_name=WEB))
        check_all(cluster, when)


@pytest.mark.parametrize("method", ["convert_disks", "settle_disks"])
def test_a_conversion_that_fails_leaves_the_old_disks(
    tmp_path: Path, running_tree: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    cluster = OneProcess(shutil.copytree(running_tree, tmp_path / "cluster", symlinks=True))
    real = getattr(Guests, method)

    def refuse(self: Guests, name: str, paths: Mapping[str, str]) -> None:
        if any("shared" in path for path in paths.values()):
            raise errors.HypervisorError("no room")
        real(self, name, paths)

    monkeypatch.setattr(Guests, method, refuse)
    with pytest.raises(errors.GanetiError, match="no room"):
        cluster.run(convert(cluster))
    assert cluster.config.disk_template(cluster.instance(WEB)) == "file"
    write_more(cluster)
    check_all(cluster, method)
    assert len(cluster.images()) == 2
    # and a second attempt
    monkeypatch.undo()
    cluster.run(convert(cluster))
    check_all(cluster, "the second attempt")
    assert len(cluster.images()) == 2
    cluster.close()
