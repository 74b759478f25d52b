"""Guests of other virtualisation products become instances, with all that their disks hold."""

from __future__ import annotations

import contextlib
import gzip
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from foreign_guests import (
    CONFIG,
    DOMAIN,
    MIB,
    convert,
    make_content,
    make_libvirt,
    make_ova,
    make_ovf,
    make_vma,
    pack,
)
from local_cluster import Cluster
from needs import needs_programs, needs_root
from waiting import wait_for

from ganeti.luxi.client import Client

pytestmark = [needs_programs("qemu-img", "zstd"), needs_root("to confine programs")]
CONTENTS = (make_content(4 * MIB, 1), make_content(5 * MIB, 2))
IMPORT = "instance import -n node2 -t file --no-start"


def make_file(kind: str, directory: Path) -> Path:
    """A guest with two disks; the second one has no partition table."""
    if kind == "libvirt":
        return make_libvirt(directory, CONTENTS)
    if kind == "ovf":
        return make_ovf(directory, CONTENTS)[0]
    if kind == "ova":
        return make_ova(directory, CONTENTS)
    path = directory / f"guest.{kind}"
    # the guest boots from scsi1
    data = make_vma(
        {"drive-scsi0": CONTENTS[1], "drive-tpmstate0-backup": CONTENTS[0][:8192]}
        | {"drive-scsi1": CONTENTS[0]}
    )
    if kind == "vma.gz":
        data = gzip.compress(data, 1)
    elif kind == "vma.zst":
        data = subprocess.run(["zstd", "-qc1"], input=data, capture_output=True, check=True).stdout
    path.write_bytes(data)
    return path


def read_disks(cluster: Cluster) -> list[bytes]:
    found = cluster.paths("node2").file_storage.resolve().rglob("*disk?")
    paths = sorted(found, key=lambda path: path.name[-1])
    return [path.read_bytes() for path in paths]


def list_rest(cluster: Cluster) -> list[str]:
    """What an import may have left behind, on all nodes and in the configuration."""
    found = [row[0] for row in cluster.cells("instance list -o name")]
    found += [row[0] for row in cluster.cells("image list -o name")]
    for node in ("node1", "node2", "node3"):
        paths = cluster.paths(node)
        for place in (paths.images, paths.image_cache, paths.image_uploads, paths.file_storage):
            found += [str(path) for path in place.resolve().rglob("*") if path.is_file()]
    return found


@pytest.fixture
def clean(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster without instances, on which a failed import leaves nothing."""
    assert list_rest(cluster) == []
    yield cluster
    for [name] in cluster.cells("instance list -o name"):
        cluster.ok("instance remove -f", name)
    assert list_rest(cluster) == []


@pytest.mark.parametrize("kind", ["libvirt", "ovf", "ova", "vma", "vma.gz", "vma.zst"])
def test_disks_hold_what_they_held(clean: Cluster, tmp_path: Path, kind: str) -> None:
    path = make_file(kind, tmp_path)
    dry = clean.ok(f"{IMPORT} --dry-run", str(path))
    assert list_rest(clean) == []
    ran = clean.ok(IMPORT, str(path))
    assert ran.out.startswith(dry.out)
    assert read_disks(clean) == list(CONTENTS)
    [[name, memory, least, vcpus, sizes, mac, state]] = clean.cells(
        "instance list -o name,be/maxmem,be/minmem,be/vcpus,disk.sizes,nic.mac/0,status"
    )
    assert (memory, vcpus, sizes, state) == ("512", "2", "4,5", "ADMIN_down")
    expected = {
        "libvirt": ("mail.example.com", "256", "52:54:00:00:00:0a"),
        "ovf": ("db.example.com", "512", "00:50:56:00:00:0b"),
        "ova": ("db.example.com", "512", "00:50:56:00:00:0b"),
    }.get(kind, ("shop.example.com", "256", "bc:24:11:00:00:01"))
    assert (name, least, mac) == expected
    assert re.search("TPM|CD", ran.out.partition("Not taken over:")[2])
    left = [text for text in list_rest(clean) if "image" in text]
    assert left == []


def test_disk_file_becomes_the_only_disk(clean: Cluster, tmp_path: Path) -> None:
    path = convert(CONTENTS[0], tmp_path / "disk.qcow2", "qcow2")
    assert "give a name" in clean.gnt(IMPORT, str(path)).err
    clean.ok(f"{IMPORT} -B memory=64M --no-nics", str(path), "one.example.com")
    assert read_disks(clean) == [CONTENTS[0]]


def test_options_come_before_the_file(clean: Cluster, tmp_path: Path) -> None:
    path = make_file("libvirt", tmp_path)
    ran = clean.gnt(f"{IMPORT} --map-network other=link:br9", str(path))
    assert (ran.code, "choose from: default" in ran.err) == (1, True)
    clean.ok(
        f"{IMPORT} --new-macs --map-network default=link:br9 -B memory=128M,vcpus=3"
        " --disk 1:size=8M",
        str(path),
        "new.example.com",
    )
    [[name, memory, vcpus, sizes, mac, link]] = clean.cells(
        "instance list -o name,be/minmem,be/vcpus,disk.sizes,nic.mac/0,nic.link/0"
    )
    assert (name, memory, vcpus, sizes) == ("new.example.com", "128", "3", "4,8")
    assert (mac[:8], link) != ("52:54:00", "br9")
    assert link == "br9"
    assert [data.rstrip(b"\0") for data in read_disks(clean)] == [
        data.rstrip(b"\0") for data in CONTENTS
    ]


def test_started_by_default(clean: Cluster, tmp_path: Path) -> None:
    clean.ok("instance import -n node2 -t file", str(make_file("ova", tmp_path)))
    assert clean.cells("instance list -o status") == [["running"]]


def test_bad_files_leave_nothing(clean: Cluster, tmp_path: Path) -> None:
    def write(name: str, data: bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        return path

    def refuse(path: Path, text: str, *words: str) -> None:
        ran = clean.gnt(IMPORT, *words, str(path))
        assert (ran.code, text in ran.err) == (1, True), (text, ran.err)
        assert list_rest(clean) == [], text

    vma = make_vma({"drive-scsi0": CONTENTS[1], "drive-scsi1": CONTENTS[0]})
    refuse(write("cut.vma", vma[:-4096]), "it is cut off within an extent")
    damaged = bytearray(vma)
    damaged[vma.index(b"VMAE") + 100] ^= 1
    refuse(write("damaged.vma", bytes(damaged)), "is damaged")
    refuse(write("cut.vma.gz", gzip.compress(vma)[:-2000]), "it cannot be unpacked")
    less = make_vma({"drive-scsi0": CONTENTS[1]})
    refuse(write("less.vma", less), "disk scsi1 of the guest is missing in the backup")
    refuse(tmp_path / "none.ova", "No such file")
    ova = make_file("ova", tmp_path).read_bytes()
    refuse(write("cut.ova", ova[:60000]), "it is cut off")
    members = {path.name: path.read_bytes() for path in make_ovf(tmp_path, CONTENTS)}
    disk = bytearray(members["db-disk1.vmdk"])
    disk[-1] ^= 1
    pack(tmp_path / "changed.ova", {**members, "db-disk1.vmdk": bytes(disk)})
    refuse(tmp_path / "changed.ova", "in the manifest: the file is damaged")
    del members["db.mf"]
    text = members["db.ovf"].replace(b'capacity="4"', b'capacity="3"')
    pack(tmp_path / "lies.ova", {**members, "db.ovf": text})
    refuse(tmp_path / "lies.ova", "one of them is wrong")
    del members["db-disk2.vmdk"]
    pack(tmp_path / "less.ova", members)
    refuse(tmp_path / "less.ova", "the file db-disk2.vmdk of disk vmdisk2 is missing")
    domain = make_file("libvirt", tmp_path)
    (tmp_path / "data.img").unlink()
    refuse(domain, "data.img of disk vdb is missing")
    (tmp_path / "data.img").symlink_to("/etc/hostname")
    refuse(domain, "it is a link")
    bomb = b'<!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>' + DOMAIN.encode()
    refuse(write("bomb.xml", bomb), "DOCTYPE")
    refuse(write("page.html", b"<html></html>"), "not <domain> or <Envelope>")
    convert(CONTENTS[0], tmp_path / "base.qcow2", "qcow2")
    subprocess.run(
        ["qemu-img", "create", "-qf", "qcow2", "-F", "qcow2", "-b", "base.qcow2", "over.qcow2"],
        cwd=tmp_path,
        check=True,
    )
    refuse(tmp_path / "over.qcow2", "backing file", "--no-nics")


def test_content_that_is_damaged_inside_is_undone(clean: Cluster, tmp_path: Path) -> None:
    """The second disk is refused when the first is already written."""
    path = make_libvirt(tmp_path, CONTENTS)
    data = tmp_path / "mail.qcow2"
    text = DOMAIN.format(first="data.img", second="mail.qcow2")
    text = text.replace("'qcow2'", "'x'").replace("'raw'", "'qcow2'").replace("'x'", "'raw'")
    path.write_text(text)
    data.write_bytes(data.read_bytes()[:-MIB])
    ran = clean.gnt(IMPORT, str(path))
    assert ran.code == 1
    assert "the image is refused" in ran.err
    assert list_rest(clean) == []


def test_name_that_exists_is_refused_before_copying(clean: Cluster, tmp_path: Path) -> None:
    path = make_file("ova", tmp_path)
    clean.ok("instance add -n node2 -t diskless -o noop --no-nics --no-start", "db.example.com")
    ran = clean.gnt(IMPORT, str(path))
    assert (ran.code, "exists already" in ran.err, "Copying" in ran.err) == (1, True, False)


def test_mac_that_exists_is_refused(clean: Cluster, tmp_path: Path) -> None:
    path = make_file("ova", tmp_path)
    clean.ok(IMPORT, str(path))
    ran = clean.gnt(IMPORT, str(path), "other.example.com")
    assert (ran.code, "00:50:56:00:00:0b" in ran.err) == (1, True)
    clean.ok(f"{IMPORT} --new-macs", str(path), "other.example.com")


def test_backup_without_its_config_is_refused(clean: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "a.vma"
    path.write_bytes(make_vma({"drive-scsi0": CONTENTS[0]}, CONFIG.replace("memory", "name")))
    assert clean.gnt(IMPORT, str(path)).code == 1


class _Endless(BaseHTTPRequestHandler):
    """A file that does not end until the server does."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(1 << 30))
        self.end_headers()
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(bytes(512))
                time.sleep(0.05)

    def log_message(self, format: str, *args: object) -> None:
        """No line for each request."""


@pytest.fixture
def endless() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Endless)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/disk"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_killed_master_leaves_what_verify_names(fresh_cluster: Cluster, endless: str) -> None:
    """The sources may be URLs, as the remote API gives them."""
    cluster = fresh_cluster
    with Client(cluster.paths().luxi_socket) as client:
        client.submit_job(
            [
                {
                    "OP_ID": "OP_INSTANCE_CREATE",
                    "instance_name": "a.example.com",
                    "mode": "create",
                    "disk_template": "file",
                    "pnode": "node2.example.com",
                    "disks": [{"size": 8}],
                    "nics": [],
                    "disk_sources": [{"source": endless, "format": "raw"}],
                }
            ]
        )
    wait_for(lambda: cluster.cells("image list -o name") != [], "image on record", 30)
    cluster.kill_master()
    assert cluster.start_master().code == 0
    [[name]] = cluster.cells("image list -o name")
    ran = cluster.gnt("cluster verify")
    assert f"gnt-image remove {name}" in ran.out
    assert "a.example.com" in ran.out
    cluster.ok("image remove", name)
    cluster.ok("instance remove -f a.example.com")
    assert list_rest(cluster) == []
