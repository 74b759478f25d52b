"""Images and what becomes of them: copies on candidates, instances, data for cloud-init."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pycdlib
import pytest
from local_cluster import Cluster, copied

pytestmark = [
    pytest.mark.skipif(
        not (shutil.which("qemu-system-x86_64") and shutil.which("qemu-img")),
        reason="qemu-system-x86_64 or qemu-img is not installed",
    ),
    pytest.mark.skipif(os.geteuid() != 0, reason="confines as root"),
]
MIB = 1024 * 1024
NAME = "web1.example.com"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIacNZZuu9qFv3o9EFub5Lo2RGCF39nlAsl6e2V1NNtH me@here"
ADD = "instance add -t sharedfile --no-nics -B memory=32M"
SECRET = "a word that nobody may see"


@pytest.fixture(scope="module")
def kvm() -> Iterator[Cluster]:
    with copied(3, "kvm") as made:
        made.ok("cluster modify -C 2")
        made.ok("node modify -C no node3")
        yield made


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A disk of 8 MiB with random data; its boot sector stops the processor."""
    path = tmp_path_factory.mktemp("images") / "tiny-1.raw"
    code = b"\xfa\xf4\xeb\xfd"
    path.write_bytes(code.ljust(510, b"\0") + b"\x55\xaa" + os.urandom(MIB) + bytes(7 * MIB - 512))
    return path


@pytest.fixture(scope="module")
def image(kvm: Cluster, disk: Path) -> str:
    kvm.ok("image add --description", "For tests", str(disk))
    return "tiny-1"


@pytest.fixture
def instance(kvm: Cluster, image: str, tmp_path: Path) -> Iterator[Cluster]:
    key, data = tmp_path / "id.pub", tmp_path / "user-data"
    key.write_text(f"{KEY}\n")
    data.write_text(f"#cloud-config\nruncmd: [echo, {SECRET}]\n")
    kvm.ok(f"{ADD} -n node1 --image", image, "--ssh-key", str(key), "--user-data", str(data), NAME)
    yield kvm
    kvm.ok("instance remove -f --shutdown-timeout=0", NAME)


def kept(cluster: Cluster, node: str) -> list[str]:
    path = cluster.paths(node).images
    return sorted(item.name for item in path.glob("*.*")) if path.exists() else []


def seed(cluster: Cluster, node: str) -> dict[str, str]:
    """What a guest on this node reads for cloud-init."""
    path = cluster.paths(node).kvm / "seed" / f"{NAME}.iso"
    assert path.stat().st_mode & 0o777 == 0o600
    disk = pycdlib.PyCdlib()
    disk.open(str(path))
    found = {}
    for name in ("meta-data", "user-data", "vendor-data", "network-config"):
        stream = io.BytesIO()
        disk.get_file_from_iso_fp(stream, rr_path=f"/{name}")
        found[name] = stream.getvalue().decode()
    disk.close()
    return found


def test_candidates_keep_it_and_others_fetch_it(kvm: Cluster, image: str, disk: Path) -> None:
    [[uuid, copies, nodes]] = kvm.cells("image list -o uuid,copies,nodes")
    assert (copies, nodes) == ("2", "node1.example.com,node2.example.com")
    assert kept(kvm, "node2") == [f"{uuid}.qcow2"]
    kvm.ok(f"{ADD} -n node3 --no-start --image", image, NAME)
    try:
        assert kept(kvm, "node3") == []
        assert (kvm.paths("node3").image_cache / f"{uuid}.qcow2").exists()
        [path] = kvm.paths("node3").shared_file_storage.resolve().rglob("*disk0")
        assert path.read_bytes() == disk.read_bytes()
        assert kvm.cells("instance list -o image,os,disk.size/0", NAME) == [[image, "", "8"]]
    finally:
        kvm.ok("instance remove -f", NAME)


def test_fetch_goes_on_where_it_was_and_damage_is_noticed(kvm: Cluster, image: str) -> None:
    [[uuid]] = kvm.cells("image list -o uuid")
    cache = kvm.paths("node3").image_cache
    cache.mkdir(parents=True, exist_ok=True)
    whole = (kvm.paths("node1").images / f"{uuid}.qcow2").read_bytes()
    (cache / f"{uuid}.qcow2").unlink(missing_ok=True)
    part = cache / f"{uuid}.part"
    part.write_bytes(b"x" + whole[1 : len(whole) // 2])
    ran = kvm.gnt(f"{ADD} -n node3 --no-start --image", image, NAME)
    assert ran.code == 1
    assert "arrived damaged" in ran.err
    assert not part.exists()
    assert kvm.cells("instance list -o name") == []
    part.write_bytes(whole[: len(whole) // 2])
    kvm.ok(f"{ADD} -n node3 --no-start --image", image, NAME)
    kvm.ok("instance remove -f", NAME)


def test_new_candidate_gets_its_copy_and_verify_misses_a_lost_one(kvm: Cluster, image: str) -> None:
    [[uuid]] = kvm.cells("image list -o uuid")
    kvm.ok("cluster modify -C 3")
    try:
        kvm.ok("node modify -C yes node3")
        assert kept(kvm, "node3") == [f"{uuid}.qcow2"]
        (kvm.paths("node2").images / f"{uuid}.qcow2").unlink()
        ran = kvm.gnt("cluster verify")
        assert f"its copy of image {image} is missing; gnt-cluster redist-conf" in ran.out
        kvm.ok("cluster redist-conf")
        assert kept(kvm, "node2") == [f"{uuid}.qcow2"]
    finally:
        kvm.ok("cluster modify -C 2")
        kvm.ok("node modify -C no node3")
    assert kept(kvm, "node3") == []


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--disk", "0:size=4M", "--image", "tiny-1"), "needs at least 8 MiB"),
        (("--image", "tiny"), "no image 'tiny'"),
        (("--image", "tiny-1", "-o", "noop"), "exclude each other"),
        (("--image", "tiny-1", "--no-install"), "exclude each other"),
        (("--image", "tiny-1", "-t", "diskless"), "needs a disk"),
    ],
)
def test_what_cannot_be_is_refused(
    kvm: Cluster, image: str, words: tuple[str, ...], text: str
) -> None:
    ran = kvm.gnt(f"{ADD} -n node1", *words, NAME)
    assert ran.code == 1
    assert text in ran.err
    assert kvm.cells("instance list -o name") == []


def test_image_that_is_refused_leaves_nothing(kvm: Cluster, image: str, tmp_path: Path) -> None:
    path = tmp_path / "page.img"
    path.write_bytes(b"<html>" * 1000)
    before = kept(kvm, "node1")
    for words in ((str(path),), ("--sha256", "0" * 64, "--format", "raw", str(path))):
        assert kvm.gnt("image add", *words).code == 1
        assert kvm.cells("image list -o name") == [[image]]
        assert kept(kvm, "node1") == before
        assert list(kvm.paths().image_uploads.iterdir()) == []


def test_guest_gets_its_seed_and_secrets_stay_out_of_sight(instance: Cluster) -> None:
    [[uuid]] = instance.cells("instance list -o uuid")
    found = seed(instance, "node1")
    assert f'"instance-id": "{uuid}"' in found["meta-data"]
    assert f'"local-hostname": "{NAME}"' in found["meta-data"]
    assert KEY in found["meta-data"]
    assert SECRET in found["user-data"]
    paths = instance.paths()
    for directory in (paths.queue, paths.log):
        for path in directory.rglob("*"):
            assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
    [[job]] = instance.cells("job list -o id")[-1:]
    for line in ("cluster history", f"job info {job}", f"instance info {NAME}"):
        assert SECRET not in instance.ok(line).out


def test_seed_goes_with_the_guest_and_changes_at_the_next_start(
    instance: Cluster, tmp_path: Path
) -> None:
    before = seed(instance, "node1")
    instance.ok("instance migrate -f --target-node node2", NAME, timeout=120)
    assert seed(instance, "node2") == before
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\necho other\n")
    instance.ok("instance modify --user-data", str(other), NAME)
    assert seed(instance, "node2") == before
    instance.ok("instance reboot --type hard --shutdown-timeout=0", NAME)
    after = seed(instance, "node2")
    assert after["user-data"] == other.read_text()
    assert '-2"' in after["meta-data"]
    instance.ok("instance shutdown --timeout=0", NAME)
    assert not (instance.paths("node2").kvm / "seed" / f"{NAME}.iso").exists()
