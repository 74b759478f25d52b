"""Images and what becomes of them: copies on candidates, instances, data for cloud-init."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pycdlib
import pytest
from helper_sector import make_disk
from local_cluster import Cluster, copy_cluster
from needs import needs_programs, needs_root
from rapi_server import Api
from waiting import wait_for

pytestmark = [
    needs_programs("qemu-system-x86_64", "qemu-img"),
    needs_root("to confine programs"),
]
MIB = 1024 * 1024
NAME = "web1.example.com"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIacNZZuu9qFv3o9EFub5Lo2RGCF39nlAsl6e2V1NNtH me@here"
ADD = "instance add -t sharedfile --no-nics -B memory=32M"
SECRET = "a word that nobody may see"


@pytest.fixture(scope="module")
def kvm() -> Iterator[Cluster]:
    with copy_cluster(3, "kvm") as made:
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


def list_copies(cluster: Cluster, node: str) -> list[str]:
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
    assert list_copies(kvm, "node2") == [f"{uuid}.qcow2"]
    kvm.ok(f"{ADD} -n node3 --no-start --image", image, NAME)
    try:
        assert list_copies(kvm, "node3") == []
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
        assert list_copies(kvm, "node3") == [f"{uuid}.qcow2"]
        (kvm.paths("node2").images / f"{uuid}.qcow2").unlink()
        ran = kvm.gnt("cluster verify")
        assert f"its copy of image {image} is missing; gnt-cluster redist-conf" in ran.out
        kvm.ok("cluster redist-conf")
        assert list_copies(kvm, "node2") == [f"{uuid}.qcow2"]
    finally:
        kvm.ok("cluster modify -C 2")
        kvm.ok("node modify -C no node3")
    assert list_copies(kvm, "node3") == []


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
    before = list_copies(kvm, "node1")
    for words in ((str(path),), ("--sha256", "0" * 64, "--format", "raw", str(path))):
        assert kvm.gnt("image add", *words).code == 1
        assert kvm.cells("image list -o name") == [[image]]
        assert list_copies(kvm, "node1") == before
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


class Server(ThreadingHTTPServer):
    """Serves a disk: whole, with half of it missing at first, or slowly and without an end."""

    daemon_threads = True

    def __init__(self, data: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.data = data
        self.ranges: list[str | None] = []
        #: An endless answer has begun; all shall end.
        self.begun, self.stopping = threading.Event(), threading.Event()


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server, wanted = self.server, self.headers["Range"]
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        data = server.data[start:]
        endless = self.path == "/endless.raw"
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(1 << 40 if endless else len(data)))
        self.end_headers()
        if endless:
            with contextlib.suppress(OSError):
                while not server.stopping.wait(0.02):
                    self.wfile.write(bytes(4096))
                    server.begun.set()
            return
        server.ranges.append(wanted)
        cut = self.path == "/cut.raw" and not wanted
        self.wfile.write(data[: len(data) // 2] if cut else data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def server(disk: Path) -> Iterator[Server]:
    with Server(disk.read_bytes()) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.stopping.set()
        made.shutdown()
        thread.join()


def test_url_whose_download_breaks_off_is_continued(kvm: Cluster, server: Server) -> None:
    server.ranges.clear()
    sha256 = hashlib.sha256(server.data).hexdigest()
    kvm.ok("image add --sha256", sha256, f"{server.url}/cut.raw")
    assert server.ranges == [None, f"bytes={len(server.data) // 2}-"]
    try:
        [found] = kvm.cells("image list -o source,source_sha256,disk_size,copies", "cut")
        assert found == [f"{server.url}/cut.raw", sha256, "8", "2"]
    finally:
        kvm.ok("image remove cut")


def test_remote_api_adds_changes_and_removes_an_image(kvm: Cluster, server: Server) -> None:
    api = Api(kvm)
    api.run_job("POST /2/images", {"image_name": "far", "source": f"{server.url}/far.raw"})
    [found] = [item for item in api.get("/2/images?bulk=1") if item["name"] == "far"]
    assert (found["status"], found["disk_size"], found["copies"]) == ("ready", 8, 2)
    api.run_job("PUT /2/images/far/modify", {"description": "From far"})
    api.run_job("PUT /2/images/far/rename", {"new_name": "near"})
    assert api.get("/2/images/near")["description"] == "From far"
    assert api.ask("GET /2/images/far").status == 404
    api.run_job("DELETE /2/images/near")
    assert api.ask("GET /2/images/near").status == 404


@pytest.fixture
def adding(kvm: Cluster, image: str, server: Server) -> Iterator[subprocess.Popen[str]]:
    """A command that adds an image whose download does not end, at work."""
    server.begun.clear()
    argv = kvm.argv("image", "add", f"{server.url}/endless.raw")
    with subprocess.Popen(argv, env=kvm.env(), stderr=subprocess.PIPE, text=True) as command:
        assert server.begun.wait(30)
        yield command
        command.wait(30)
    assert kvm.cells("image list -o name") == [[image]]
    assert list((kvm.paths().images / ".work").iterdir()) == []


def test_job_that_makes_an_image_is_canceled_before_removal(
    kvm: Cluster, adding: subprocess.Popen[str]
) -> None:
    ran = kvm.gnt("image remove endless")
    assert ran.code == 1
    [job] = re.findall(r"is making image 'endless'; .* gnt-job cancel (\d+)$", ran.err.strip())
    kvm.ok("job cancel", job)
    assert "the user canceled the job" in adding.communicate(timeout=30)[1]


def test_killed_master_leaves_a_name_that_is_removed_at_once(
    kvm: Cluster, adding: subprocess.Popen[str]
) -> None:
    """The node daemon continues with the download; the removal ends it."""
    kvm.kill_master()
    assert kvm.start_master().code == 0
    assert adding.wait(30) != 0
    ran = kvm.gnt("cluster verify")
    assert re.search(
        r"interrupted while it made image endless; .* gnt-image remove endless", ran.out
    )
    kvm.ok("image remove endless")


# images by location, and helper guests ---------------------------------------------------------


@pytest.fixture(scope="module")
def untrusted(kvm: Cluster) -> str:
    """An OS that no node may install itself, with a word that its parameter carries."""
    for node in ("node1", "node2", "node3"):
        path = kvm.paths(node).os_search_path[1] / "strange"
        path.mkdir(parents=True)
        (path / "ganeti_api_version").write_text("20\n")
        (path / "parameters.list").write_text("word any\n")
        for script in ("create_untrusted", "verify"):
            (path / script).write_text("#!/bin/sh\nexit 0\n")
            (path / script).chmod(0o755)
    return "strange"


def offer(cluster: Cluster, data: bytes, name: str = "helper.raw") -> str:
    """Put a file where all nodes read images from, and return its path."""
    for node in ("node1", "node2", "node3"):
        directory = cluster.paths(node).os_images
        directory.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(data)
    return f"/srv/ganeti/os-images/{name}"


def content(cluster: Cluster, node: str = "node1") -> bytes:
    [path] = cluster.paths(node).shared_file_storage.resolve().rglob("*disk0")
    return path.read_bytes()


def no_helper_is_left(cluster: Cluster) -> bool:
    paths = cluster.paths()
    return not list(paths.helper_guests.iterdir()) and not list((paths.kvm / "pid").iterdir())


INSTALL = f"{ADD} -n node1 -o strange -O word=known --disk 0:size=8M --no-start"


@pytest.fixture
def helper(kvm: Cluster, untrusted: str) -> Iterator[Cluster]:
    kvm.ok("cluster modify --install-image", offer(kvm, make_disk()))
    yield kvm
    kvm.ok("cluster modify --install-image=")
    if kvm.cells("instance list -o name"):
        kvm.ok("instance remove -f --shutdown-timeout=0", NAME)
    assert no_helper_is_left(kvm)


def test_untrusted_os_is_installed_by_a_helper_guest(helper: Cluster) -> None:
    ran = helper.ok(INSTALL, NAME)
    assert "is not trusted, so a helper guest runs its script" in ran.err + ran.out
    # what the guest in the sector did: the head of the archive is on the disk of the instance
    assert content(helper).startswith(b"environment\0")
    [log] = helper.paths().os_log.glob(f"add-strange-{NAME}-*.log")
    assert log.read_text().splitlines() == ["ganeti-helper: begin", "ganeti-helper: exit 0"]
    assert helper.cells("instance list -o status,oper_state") == [["ADMIN_down", "N"]]
    helper.ok("instance startup", NAME)
    ran = helper.gnt("instance reinstall -f", NAME)
    assert "is running; stop it" in ran.err
    helper.ok("instance shutdown --timeout=0", NAME)
    helper.ok("instance reinstall -f", NAME)


@pytest.mark.parametrize(
    ("facts", "words", "text"),
    [
        ({"last": "no room\r\nganeti-helper: exit 7"}, (), "failed with exit code 7;.*no room"),
        ({"last": "bye"}, (), "ended without printing an exit code"),
        (
            {"hangs": True, "copies": False, "first": "booting"},
            ("--helper-startup-timeout=2",),
            "did not begin within 2 s.*booting",
        ),
    ],
)
def test_helper_guest_that_fails_leaves_no_instance(
    helper: Cluster, facts: dict[str, Any], words: tuple[str, ...], text: str
) -> None:
    offer(helper, make_disk(**facts))
    ran = helper.gnt(INSTALL, *words, NAME)
    assert ran.code == 1
    assert re.search(text, ran.err, re.DOTALL), ran.err
    assert helper.cells("instance list -o name") == []
    assert no_helper_is_left(helper)


def test_untrusted_os_without_an_image_is_refused_at_once(kvm: Cluster, untrusted: str) -> None:
    ran = kvm.gnt(INSTALL, NAME)
    assert "name it with gnt-cluster modify --install-image" in ran.err
    ran = kvm.gnt(INSTALL.replace(" --disk", " -H fake --disk"), NAME)
    assert ran.code == 1


@pytest.mark.parametrize(
    ("image", "text"),
    [
        ("/etc/passwd", "is not below /.*os-images, the only directory from which this node reads"),
        ("file:///etc/passwd", "not a URL of https or http"),
        ("nothing", "image 'nothing' is not known"),
        ("/srv/ganeti/os-images/large.raw", "takes 9 MiB, and the disk has 8 MiB"),
    ],
)
def test_os_image_cannot_be_any_file_of_a_node(kvm: Cluster, image: str, text: str) -> None:
    offer(kvm, make_disk().ljust(9 * MIB, b"\0"), "large.raw")
    ran = kvm.gnt(f"{ADD} -n node1 --disk 0:size=8M -O os-image={image}", NAME)
    assert ran.code == 1
    assert re.search(text, ran.err), ran.err
    assert kvm.cells("instance list -o name") == []


def test_os_image_is_put_on_the_disk(kvm: Cluster, image: str, server: Server, disk: Path) -> None:
    for word in (image, f"{server.url}/far.raw", offer(kvm, disk.read_bytes(), "tiny.raw")):
        kvm.ok(f"{ADD} -n node1 --disk 0:size=8M --no-start -O os-image={word}", NAME)
        assert content(kvm) == disk.read_bytes()
        path = next(kvm.paths().shared_file_storage.resolve().rglob("*disk0"))
        path.write_bytes(bytes(8 * MIB))
        kvm.ok("instance reinstall -f", NAME)
        assert content(kvm) == disk.read_bytes()
        kvm.ok("instance remove -f", NAME)


def test_export_zeroes_free_space_first(instance: Cluster) -> None:
    export = f"backup export -n node2 --shutdown-timeout=0 --zero-free-space {NAME}"
    assert "gnt-cluster modify --zeroing-image" in instance.gnt(export).err
    instance.ok("cluster modify --zeroing-image", offer(instance, make_disk()))
    try:
        ran = instance.ok(export)
        assert "zeroing free space of 1 disk" in ran.err + ran.out
        assert instance.cells("instance list -o status") == [["running"]]
        [dump] = (instance.paths("node2").exports / NAME).glob("*-*")
        assert b"environment\0" in dump.read_bytes()[:4096]
        offer(instance, make_disk(hangs=True, last="slow"))
        ran = instance.gnt(f"{export} --zeroing-timeout-fixed=2 --zeroing-timeout-per-mib=0")
        assert "did not end within 2 s" in ran.err
        assert instance.cells("instance list -o status") == [["running"]]
    finally:
        instance.ok("cluster modify --zeroing-image=")


def test_canceled_job_ends_the_helper_guest(instance: Cluster) -> None:
    offer(instance, make_disk(hangs=True, last="slow"))
    instance.ok("cluster modify --zeroing-image=/srv/ganeti/os-images/helper.raw")
    try:
        words = "--submit --zero-free-space --shutdown-timeout=0"
        job = instance.ok(f"backup export -n node2 {words}", NAME).err.split()[-1]
        log = instance.paths().kvm_log / f"{NAME}-serial.log"
        wait_for(lambda: "slow" in log.read_text(), "the helper guest works", 30)
        instance.ok("job cancel", job)
        ran = instance.gnt(f"job watch {job}")
        assert "the user canceled the job" in ran.out + ran.err
        assert instance.cells("instance list -o status") == [["running"]]
    finally:
        instance.ok("cluster modify --zeroing-image=")
