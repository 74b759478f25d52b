"""How ganeti-doctor reads a server: texts of the kernel and of tools, and this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ganeti import constants
from ganeti.bootstrap import init
from ganeti.doctor.facts import Module, Stage, Wish
from ganeti.doctor.looks import kernel, membership, network, sockets, software, storage
from ganeti.net import certs, http_link
from ganeti.paths import Paths

NAME = "node1.example.com"


def table(*rows: str) -> str:
    """The text of a table of sockets: local and remote address, state, inode."""
    head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid"
    queues = "00000000:00000000 00:00000000 00000000     0        0"
    lines = []
    for number, row in enumerate(rows):
        local, remote, state, inode = row.split()
        lines.append(f"{number:4}: {local} {remote} {state} {queues} {inode} 1 0000 100 0 0 10 0")
    return "\n".join([f"{head}  timeout inode", *lines, ""])


NOBODY = "00000000000000000000000000000000:0000"
TCP = table(
    "00000000:0016 00000000:0000 0A 14035",
    "0B0200C0:0016 010200C0:C350 01 15100",
    "01D1357F:0713 00000000:0000 0A 44349",
)
TCP6 = table(
    f"00000000000000000000000000000000:0016 {NOBODY} 0A 14037",
    f"0000000000000000FFFF00000B0200C0:13D8 {NOBODY} 0A 20001",
    f"00000000000000000000000001000000:0277 {NOBODY} 0A 20002",
)


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.setenv("GANETI_ROOTDIR", str(tmp_path))
    monkeypatch.setenv("GANETI_HOSTNAME", NAME)
    made = Paths(tmp_path)
    made.conf.parent.mkdir()
    made.hosts.write_text(f"127.0.0.9 {NAME}\n")
    return made


def test_tables_of_sockets() -> None:
    found = [(each.address, each.port, each.inode) for each in sockets.read_table(TCP, "tcp")]
    assert found == [("0.0.0.0", 22, 14035), ("127.53.209.1", 1811, 44349)]
    found = [(each.address, each.port, each.inode) for each in sockets.read_table(TCP6, "tcp")]
    assert found == [("::", 22, 14037), ("192.0.2.11", 5080, 20001), ("::1", 631, 20002)]


@pytest.mark.parametrize(
    ("listener", "address", "occupied"),
    [
        ("0.0.0.0", "192.0.2.1", True),
        ("::", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.1", True),
        ("127.0.0.1", "192.0.2.1", False),
        ("127.0.0.1", None, True),
    ],
)
def test_which_listener_is_in_the_way(listener: str, address: str | None, occupied: bool) -> None:
    assert sockets.overlaps(listener, address) is occupied


def test_who_holds_a_port_on_this_machine(paths: Paths) -> None:
    with socket.create_server(("127.0.0.9", 0)) as server:
        port = server.getsockname()[1]
        paths.services.write_text(f"ganeti-noded {port}/tcp\n")
        noded = network.read(paths, Wish()).ports[0]
        assert (noded.daemon, noded.number, noded.occupied) == ("ganeti-noded", port, True)
        assert noded.pid == os.getpid()
    noded = network.read(paths, Wish()).ports[0]
    assert not noded.occupied


def test_the_name_of_this_node(paths: Paths) -> None:
    facts = network.read(paths, Wish(device="lo", bridges=("no-such-bridge", "lo")))
    assert (facts.host, facts.address, facts.own, facts.reverse) == (NAME, "127.0.0.9", True, NAME)
    assert facts.device_exists
    assert facts.missing_bridges == ("no-such-bridge", "lo")
    paths.hosts.write_text(f"192.0.2.77 {NAME}\n")
    assert not network.read(paths, Wish(device="no-such")).own
    paths.hosts.write_text("")
    assert network.read(paths, Wish()).address is None


def test_requirements_of_the_programs() -> None:
    lines = [
        "msgspec>=0.19",
        "pyasyncore; python_version >= '3.12'",
        'falcon >= 4 ; extra == "web"',
        "qemu.qmp>=0.0.3",
    ]
    assert list(software.read_requirements(lines, (3, 11))) == [
        ("msgspec", "0.19"),
        ("qemu.qmp", "0.0.3"),
    ]
    assert ("pyasyncore", "") in software.read_requirements(lines, (3, 12))


def test_what_dpkg_query_lists() -> None:
    text = (
        "ganeti|3.2.0|iF \nganeti-haskell-3.0|3.0.2-3|rc \nlvm2|2.03.16-2|ii \n"
        "qemu-utils||un \npython3\n"
    )
    found = {package.name: package.status for package in software.read_packages(text)}
    assert found == {"ganeti": "iF ", "ganeti-haskell-3.0": "rc ", "lvm2": "ii "}


def test_libraries_of_this_environment_can_be_used(paths: Paths) -> None:
    facts = software.read(paths)
    assert facts.python == sys.version_info[:3]
    assert {each.name for each in facts.libraries} >= {"msgspec", "simplejson", "qemu.qmp"}
    assert [each for each in facts.libraries if each.problem or each.version is None] == []


def test_the_version_of_a_configuration(paths: Paths) -> None:
    assert software.read(paths, imports=False).configuration is None
    init.make_directories(paths)
    paths.config_file.write_text('{"version": 3000000, "cluster": {}}')
    paths.ssconf("release_version").write_text("3.0.2\n")
    facts = software.read(paths, imports=False)
    assert (facts.configuration, facts.release) == (3000000, "3.0.2")
    paths.config_file.write_text("{")
    assert software.read(paths, imports=False).configuration is None


def test_modules_that_could_be_loaded(paths: Paths) -> None:
    release = os.uname().release
    lists = paths.under(f"/lib/modules/{release}")
    lists.mkdir(parents=True)
    (lists / "modules.dep").write_text(
        "kernel/drivers/block/drbd/drbd.ko: kernel/lib/lru_cache.ko\n"
        "kernel/drivers/md/dm-mod.ko.xz:\n"
    )
    (lists / "modules.builtin").write_text("kernel/drivers/net/tun.ko\n")
    assert kernel.read_module_names((lists / "modules.dep").read_text()) == {"drbd", "dm_mod"}
    assert kernel.modules(paths, release)["drbd"] is Module.AVAILABLE
    paths.under("/proc").mkdir()
    paths.under("/proc/drbd").write_text("version: 9.1.0 (api:2/proto:86-121)\n")
    facts = kernel.read(paths, Wish())
    assert (facts.modules["drbd"], facts.drbd) == (Module.LOADED, "9.1.0")
    assert "9.1.0 is loaded on this node" in facts.drbd_problem


def test_what_a_driver_says_of_its_hypervisor(paths: Paths) -> None:
    facts = kernel.read(paths, Wish(hypervisors={"fake": {}}))
    assert facts.hypervisors == {"fake": None}


def test_room_below_a_node(paths: Paths) -> None:
    (space,) = storage.read(paths, Wish()).spaces
    assert space.free > 0
    assert not space.read_only
    facts = storage.read(paths, Wish(volume_group="xenvg"))
    assert facts.groups is None
    assert facts.problem


@pytest.mark.parametrize(
    ("text", "ahead"),
    [
        ("Mon, 23 Nov 2026 18:36:53 GMT", 0.0),
        ("Mon, 23 Nov 2026 18:46:54 GMT", 600.0),
        ("Mon, 23 Nov 2026 18:26:52 GMT", -600.0),
        ("yesterday", None),
        ("", None),
    ],
)
def test_the_clock_of_another_node(text: str, ahead: float | None) -> None:
    begin = 1795459013.0  # 18:36:53
    assert http_link.read_clock(text, begin, begin + 1) == ahead


def test_addresses_of_nodes() -> None:
    text = "node1.example.com 192.0.2.1\nnode2.example.com 2001:db8::2\nrubbish\n"
    assert network.read_addresses(text) == {
        "node1.example.com": "192.0.2.1",
        "node2.example.com": "2001:db8::2",
    }


def test_tables_of_cron() -> None:
    assert membership.runs_watcher("*/5 * * * * root /usr/sbin/ganeti-watcher\n")
    assert not membership.runs_watcher("# */5 * * * * root ganeti-watcher\n45 1 * * * root x\n")


def test_how_far_a_server_belongs_to_a_cluster(paths: Paths) -> None:
    assert membership.read(paths).stage is Stage.BARE
    init.make_directories(paths)
    assert membership.read(paths).stage is Stage.BARE
    authority = certs.create_ca("cluster.example.com")
    certs.write(paths.server_cert, certs.issue_server(authority, NAME, ["192.0.2.1"]))
    facts = membership.read(paths)
    assert facts.stage is Stage.PARTIAL
    assert str(paths.ca_cert) in facts.missing
    paths.ca_cert.write_bytes(authority.cert)
    certs.write(paths.client_cert, certs.issue_client(authority, NAME))
    paths.ssconf("cluster_name").write_text("")  # a power cut
    assert membership.read(paths).missing == (str(paths.ssconf("cluster_name")),)
    paths.ssconf("cluster_name").write_text("cluster.example.com\n")
    facts = membership.read(paths)
    assert (facts.stage, facts.stopped) == (Stage.NODE, (constants.NODED,))
    assert {each.level for each in facts.certificates} == {"ok"}
    paths.ssconf("master_node").write_text(f"{NAME}\n")
    assert membership.read(paths).stage is Stage.MASTER
    paths.init_mark.touch()
    assert membership.read(paths).stage is Stage.PARTIAL


def test_certificates_that_cannot_be_used(paths: Paths) -> None:
    init.make_directories(paths)
    authority, other = certs.create_ca("one"), certs.create_ca("two")
    paths.ca_cert.write_bytes(authority.cert)
    certs.write(paths.server_cert, certs.issue_server(other, NAME, ["192.0.2.1"]))
    paths.client_cert.write_text("nothing")
    found = {each.path: each.level for each in membership.read(paths).certificates}
    assert found == {
        str(paths.ca_cert): "ok",
        str(paths.server_cert): "error",
        str(paths.client_cert): "error",
    }


def test_modes_are_those_on_disk(paths: Paths) -> None:
    init.make_directories(paths)
    paths.data.chmod(0o777)
    modes = {each.path: each.mode & 0o777 for each in membership.read(paths).files}
    assert modes[str(paths.data)] == 0o777


# the program


def doctor(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parents[3]
    return subprocess.run(
        [sys.executable, "-m", "ganeti.tools.doctor", *words],
        env={**os.environ, "PYTHONPATH": str(root), **env},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_bare_server_and_what_the_cluster_would_need(paths: Paths) -> None:
    done = doctor()
    assert (done.returncode, done.stderr) == (0, "")
    assert "OK   cluster      this server belongs to no cluster\n" in done.stdout
    wanted = doctor("--quiet", "--bridges", "no-such", "--vg-name=xenvg")
    assert wanted.returncode == 1
    assert "FAIL bridges      bridge no-such is missing: ip link add" in wanted.stdout
    assert "OK " not in wanted.stdout
    assert list(paths.root.rglob("ganeti*")) == []


def test_the_answer_for_programs(paths: Paths) -> None:
    from ganeti.base import jsonio

    done = doctor("--format", "json", "--master-netdev", "no-such")
    assert done.returncode == 1
    found = {each["check"]: each for each in jsonio.loads(done.stdout)}
    assert set(found["device"]) == {"check", "level", "text", "remedy"}
    assert found["device"]["level"] == "FAIL"
    assert found["python"]["level"] == "OK"


@pytest.mark.parametrize(
    "words", [["--enabled-hypervisors", "vmware"], ["--enabled-disk-templates", "raid"]]
)
def test_a_wrong_option_is_one_line(paths: Paths, words: list[str]) -> None:
    done = doctor(*words)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert f"'{words[1]}'" in done.stderr


def test_a_broken_library_is_the_answer_and_not_a_traceback(paths: Paths, tmp_path: Path) -> None:
    broken = tmp_path / "broken" / "msgspec"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text(
        "raise ImportError('_core.so: undefined symbol: _PyLong_New')\n"
    )
    root = Path(__file__).parents[3]
    done = doctor(PYTHONPATH=f"{broken.parent}:{root}")
    assert (done.returncode, done.stderr) == (1, "")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    assert "undefined symbol: _PyLong_New" in line
