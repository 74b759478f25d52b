"""What the checks of ganeti-doctor say about facts."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from dataclasses import replace

import pytest

from ganeti import constants
from ganeti.doctor.checks import kernel, membership, network, software, storage
from ganeti.doctor.facts import (
    Certificate,
    File,
    Kernel,
    Library,
    Membership,
    Module,
    Network,
    Package,
    Peer,
    Port,
    Software,
    Space,
    Stage,
    Storage,
    Wish,
)
from ganeti.doctor.findings import Finding, Level

MIB = 1024 * 1024


def list_lines(found: Iterable[Finding], level: Level) -> list[str]:
    """Lines of a level, with their subjects."""
    return [f"{each.check}: {each.line}" for each in found if each.level is level]


def good_levels(found: Iterable[Finding]) -> bool:
    return {each.level for each in found} == {Level.OK}


# software

SOUND = Software(
    (3, 11, 2),
    "/usr/lib/ganeti/venv/bin/python3",
    libraries=(Library("msgspec", "0.19", "0.19.0"), Library("pyOpenSSL", "24", "26.1.0")),
    packages=(Package("ganeti", "3.2.0", "ii "), Package("ganeti-htools-3.0", "3.0.2-3", "ii ")),
    programs=frozenset({"ip", "ssh"}),
    configuration=constants.CONFIG_VERSION,
    release=constants.RELEASE_VERSION,
)


def test_sound_software_has_only_good_lines() -> None:
    assert good_levels(software.check(SOUND, Wish(), Stage.NODE))


def test_an_old_python_is_a_failure() -> None:
    found = software.basics(replace(SOUND, python=(3, 9, 2)))
    assert list_lines(found, Level.FAIL) == [
        "python: /usr/lib/ganeti/venv/bin/python3 is Python 3.9.2: install Python 3.11 or later"
    ]


@pytest.mark.parametrize(
    ("library", "words"),
    [
        (Library("msgspec", "0.19", None), "msgspec is not installed"),
        (Library("msgspec", "0.19", "0.18.6"), "msgspec 0.18.6 is older than 0.19"),
        (
            Library("msgspec", "0.19", "0.20", "ImportError: x"),
            "cannot be imported (ImportError: x)",
        ),
    ],
)
def test_a_library_that_does_not_fit_is_named(library: Library, words: str) -> None:
    packaged = replace(SOUND, libraries=(library,))
    (line,) = list_lines(software.basics(packaged), Level.FAIL)
    assert words in line
    assert line.endswith(
        "apt-get install --reinstall ganeti, with the package for this release of Debian"
    )
    (line,) = list_lines(software.basics(replace(packaged, packages=())), Level.FAIL)
    assert line.endswith("run make install again")


def test_versions_are_compared_as_numbers() -> None:
    assert software.numbers("3.10") > software.numbers("3.9")
    assert software.numbers("24") == software.numbers("24.0.0")
    assert software.numbers("4.1rc1") == (4, 1)


@pytest.mark.parametrize("status", ["iU ", "iF ", "iH ", "rHR"])
def test_a_package_that_is_installed_by_half_is_a_failure(status: str) -> None:
    found = software.basics(replace(SOUND, packages=(Package("ganeti", "3.2.0", status),)))
    (line,) = list_lines(found, Level.FAIL)
    assert line.startswith("packages: ganeti 3.2.0 is installed by half")
    assert "dpkg --configure -a" in line


@pytest.mark.parametrize("name", ["ganeti-3.0", "ganeti-haskell-3.0", "python3-ganeti-rapi"])
def test_the_ganeti_of_debian_is_a_failure_unless_only_its_configuration_is_left(
    name: str,
) -> None:
    here = replace(SOUND, packages=(Package(name, "3.0.2-3", "ii "),))
    (line,) = list_lines(software.check_other_ganeti(here, Stage.BARE), Level.FAIL)
    assert line == f"ganeti: Debian's Ganeti is installed ({name}): apt-get remove {name}"
    left = replace(SOUND, packages=(Package(name, "3.0.2-3", "rc "),))
    assert good_levels(software.check_other_ganeti(left, Stage.BARE))


def test_the_configuration_of_another_version_is_a_failure() -> None:
    (line,) = list_lines(
        software.check_other_ganeti(replace(SOUND, configuration=3_000_000), Stage.NODE), Level.FAIL
    )
    assert "holds the configuration of version 3.0, not 3.2: ganeti-cfgupgrade" in line


def test_programs_are_wanted_for_what_the_cluster_uses() -> None:
    wish = Wish({"kvm": {}}, ("plain", "drbd"))
    (line,) = list_lines(software.check(SOUND, wish, Stage.BARE), Level.FAIL)
    assert line == (
        "programs: missing: qemu-img, socat, lvs, drbdsetup, drbdmeta:"
        " apt-get install qemu-utils socat lvm2 drbd-utils"
    )


def test_another_release_on_this_node_is_a_warning() -> None:
    found = software.check(replace(SOUND, release="3.1.0"), Wish(), Stage.NODE)
    (line,) = list_lines(found, Level.WARN)
    assert "the cluster runs 3.1.0" in line


# kernel

LOADED = Kernel(
    "6.1.0-32-amd64",
    dict.fromkeys(("dm_mod", "drbd", "kvm", "tun", "vhost_net"), Module.LOADED),
    virtualization=True,
    drbd="8.4.11",
    helper="/bin/true",
)
MIRRORS = Wish({"kvm": {}}, ("plain", "drbd"), helper="/bin/true")


def test_a_kernel_with_everything() -> None:
    assert good_levels(kernel.check(replace(LOADED, hypervisors={"kvm": None}), MIRRORS))


def test_what_a_wanted_template_needs_is_a_failure_and_else_a_warning() -> None:
    bare = Kernel("6.1.0", {"drbd": Module.AVAILABLE, "kvm": Module.LOADED, "tun": Module.LOADED})
    failed = list_lines(kernel.check(bare, MIRRORS), Level.FAIL)
    assert [line.partition(":")[0] for line in failed] == ["modules", "drbd"]
    assert "dm_mod, which plain needs" in failed[0]
    assert failed[1].endswith("echo drbd >> /etc/modules; modprobe drbd")
    nobody_said = list(kernel.check(bare, Wish()))
    assert list_lines(nobody_said, Level.FAIL) == []
    assert any("drbd is not loaded" in line for line in list_lines(nobody_said, Level.WARN))


def test_nothing_is_said_about_what_the_cluster_does_not_use() -> None:
    assert list(kernel.check(Kernel("6.1.0"), Wish({"fake": {}}, ("file",)))) == []


@pytest.mark.parametrize(
    ("virtualization", "remedy"), [(True, "boot a kernel"), (False, "in the firmware")]
)
def test_a_processor_without_virtualization_is_a_warning(virtualization: bool, remedy: str) -> None:
    facts = Kernel("6.1.0", {"tun": Module.LOADED, "vhost_net": Module.LOADED}, virtualization)
    (line,) = list_lines(kernel.check(facts, Wish({"kvm": {}}, ("file",))), Level.WARN)
    assert "in emulation" in line
    assert remedy in line


def test_the_words_of_a_driver_are_what_to_do() -> None:
    facts = replace(LOADED, hypervisors={"kvm": "there is no QEMU: apt-get install x"})
    (line,) = list_lines(kernel.check(facts, MIRRORS), Level.FAIL)
    assert line == "hypervisor: kvm cannot be used here: there is no QEMU: apt-get install x"


# network

WIRED = Network(
    "node1.example.com", "192.0.2.11", reverse="node1.example.com", outward="192.0.2.11"
)


def test_a_good_name() -> None:
    assert list_lines(network.check(WIRED, Wish()), Level.OK) == [
        "names: node1.example.com has the address 192.0.2.11"
    ]


@pytest.mark.parametrize("address", ["127.0.1.1", "127.0.0.1", "::1"])
def test_a_name_that_leads_to_the_server_itself_is_a_failure(address: str) -> None:
    facts = replace(WIRED, address=address)
    (line,) = list_lines(network.names(facts), Level.FAIL)
    assert line == (
        f"names: node1.example.com has the address {address}, which leads every server to itself:"
        f" in /etc/hosts replace the line of {address} by '192.0.2.11 node1.example.com node1'"
    )
    if address != "::1":
        assert good_levels(network.names(replace(facts, rooted=True)))


@pytest.mark.parametrize(
    ("change", "level", "words"),
    [
        ({"address": None}, Level.FAIL, "which has no address"),
        ({"own": False}, Level.FAIL, "which no device of this server has"),
        ({"host": "localhost"}, Level.FAIL, "hostnamectl set-hostname"),
        ({"host": "node1"}, Level.WARN, "without a domain"),
        ({"reverse": None}, Level.WARN, "has no name"),
        ({"reverse": "other.example.com"}, Level.WARN, "is that of other.example.com"),
    ],
)
def test_a_name_that_is_not_right(change: dict[str, str], level: Level, words: str) -> None:
    (line,) = list_lines(network.names(replace(WIRED, **change)), level)  # type: ignore[arg-type]
    assert words in line


def test_a_missing_bridge_comes_with_the_command_that_makes_it() -> None:
    found = list(
        network.bridges(replace(WIRED, missing_bridges=("br1",)), Wish(bridges=("br0", "br1")))
    )
    assert list_lines(found, Level.FAIL) == [
        "bridges: bridge br1 is missing: ip link add name br1 type bridge && ip link set br1 up"
    ]
    assert list_lines(found, Level.OK) == ["bridges: br0"]


def test_who_holds_a_port_is_named() -> None:
    facts = replace(
        WIRED,
        ports=(
            Port("ganeti-noded", 1811, "tcp", 77, "nginx", occupied=True),
            Port("ganeti-rapi", 5080, "tcp"),
        ),
    )
    assert list_lines(network.ports(facts), Level.FAIL) == [
        "ports: tcp port 1811 of ganeti-noded is held by nginx (pid 77): end it (kill 77), or name"
        " another port in /etc/services of all nodes (ganeti-noded)"
    ]


def test_a_missing_device_for_the_address_of_the_cluster() -> None:
    (line,) = list_lines(
        network.device(replace(WIRED, device_exists=False), Wish(device="br0")), Level.FAIL
    )
    assert "no network device br0" in line


@pytest.mark.parametrize(
    ("ahead", "level", "words"),
    [
        (0.0, Level.OK, "at most 1 s apart"),
        (-3.0, Level.OK, "at most 3 s apart"),
        (20.0, Level.WARN, "is 20 s ahead"),
        (-600.0, Level.FAIL, "is 10 minutes behind"),
        (90000.0, Level.FAIL, "is 25 hours ahead"),
    ],
)
def test_clocks_that_differ(ahead: float, level: Level, words: str) -> None:
    peer = Peer("node2.example.com", "192.0.2.12", "192.0.2.12", ahead=ahead)
    lines = list_lines(network.check(replace(WIRED, peers=(peer,)), Wish()), level)
    assert any(line.startswith("clock: ") and words in line for line in lines)


def test_other_nodes_are_known_by_name_and_answer() -> None:
    silent = Peer("node2.example.com", "192.0.2.12", "192.0.2.99", problem="no route to host")
    lines = list_lines(network.check(replace(WIRED, peers=(silent,)), Wish()), Level.WARN)
    assert len(lines) == 2
    assert "has the address 192.0.2.99 here, the cluster has 192.0.2.12" in lines[0]
    assert "does not answer (no route to host)" in lines[1]


# storage


def test_a_volume_group_that_is_not_there() -> None:
    wish = Wish(volume_group="xenvg")
    facts = Storage({"vg0": 10, "system": 20})
    (line,) = list_lines(storage.volume_group(facts, wish), Level.FAIL)
    assert "there is no volume group 'xenvg' on this node; it has vg0, system" in line
    assert good_levels(storage.volume_group(Storage({"xenvg": 5 * 1024 * MIB}), wish))
    (line,) = list_lines(storage.volume_group(Storage(problem="no program lvs"), wish), Level.FAIL)
    assert "cannot be listed (no program lvs): apt-get install lvm2" in line


@pytest.mark.parametrize(
    ("space", "level", "words"),
    [
        (Space("/var", 5000 * MIB, None), Level.OK, "/var 4.9G"),
        (Space("/var", 300 * MIB, 5000), Level.WARN, "only 300M free"),
        (Space("/var", 5000 * MIB, 40), Level.WARN, "only 40 inodes free"),
        (Space("/var", 2 * MIB, None), Level.FAIL, "/var is full: 2M free: make room there"),
        (Space("/var", 5000 * MIB, 0), Level.FAIL, "no inode is free"),
        (Space("/var", 5000 * MIB, None, read_only=True), Level.FAIL, "mount -o remount,rw /var"),
    ],
)
def test_room_for_configuration_and_logs(space: Space, level: Level, words: str) -> None:
    (line,) = list_lines(storage.space(Storage(spaces=(space,))), level)
    assert words in line


# the node

NODE = Membership(Stage.NODE, users=(), watcher=True, systemd=True, synchronized=True)


def test_a_good_node() -> None:
    assert good_levels(membership.check(NODE))


def test_a_node_that_was_set_up_by_half() -> None:
    facts = Membership(Stage.PARTIAL, missing=("/var/lib/ganeti/ca.pem",))
    (line,) = list_lines(membership.check(facts), Level.FAIL)
    assert "but /var/lib/ganeti/ca.pem is missing; setting this server up was interrupted" in line
    assert "repeat gnt-cluster init here, or gnt-node add on the master" in line


@pytest.mark.parametrize(
    ("change", "level", "words"),
    [
        ({"users": ("groupadd x",)}, Level.FAIL, "ganeti-rapi cannot start: ganeti-users-setup"),
        ({"users": ("groupadd x",), "systemd": False}, Level.WARN, "all daemons run as root"),
        ({"watcher": False}, Level.WARN, "systemctl enable --now ganeti-watcher.timer"),
        ({"watcher": False, "systemd": False}, Level.WARN, "/etc/cron.d/ganeti"),
        ({"paused": 1.0}, Level.WARN, "gnt-cluster watcher continue"),
        ({"synchronized": False}, Level.WARN, "apt-get install chrony"),
        ({"stopped": ("ganeti-noded",)}, Level.FAIL, "systemctl start ganeti-noded"),
        (
            {"stopped": ("ganeti-confd",), "optional": frozenset({"ganeti-confd"})},
            Level.WARN,
            "the watcher will start it: systemctl start ganeti-confd",
        ),
        ({"disabled": ("ganeti.target",)}, Level.WARN, "systemctl enable ganeti.target"),
    ],
)
def test_what_may_be_wrong_with_a_node(change: dict[str, object], level: Level, words: str) -> None:
    (line,) = list_lines(membership.check(replace(NODE, **change)), level)  # type: ignore[arg-type]
    assert words in line


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (File("/d", stat.S_IFDIR | 0o777, 0, True, True), "chmod o-w /d"),
        (File("/d", stat.S_IFREG | 0o644, 0, False, True), "/d is not a directory"),
        (File("/d", stat.S_IFDIR | 0o755, 33, True, True), "chown 0 /d"),
        (File("/k", stat.S_IFREG | 0o444, 0, False, False), "others may read the secret in /k"),
        (File("/k", stat.S_IFREG | 0o460, 0, False, False), "chmod u=r,go= /k"),
    ],
)
def test_owners_and_modes(file: File, words: str) -> None:
    (line,) = list_lines(membership.check(replace(NODE, files=(file,))), Level.FAIL)
    assert words in line


def test_certificates_are_judged_as_everywhere() -> None:
    end = Certificate("/var/lib/ganeti/server.pem", "error", "expired on 2026-01-01")
    soon = Certificate("/var/lib/ganeti/client.pem", "warning", "valid until 2026-12-01")
    found = list(membership.check(replace(NODE, certificates=(end, soon))))
    assert "server.pem expired on" in list_lines(found, Level.FAIL)[0]
    assert "client.pem valid until" in list_lines(found, Level.WARN)[0]


@pytest.mark.parametrize(
    ("path", "level", "text", "words"),
    [
        ("server.pem", "error", "expired on 2026-01-01", "gnt-node add --readd"),
        ("server.pem", "warning", "valid until 2026-12-01", "renew-crypto --expiring"),
        ("server.pem", "error", "valid only from 2030-01-01", "correct the clock"),
        ("rapi.pem", "error", "expired on 2026-01-01", "--new-rapi-certificate"),
        ("spice.pem", "error", "expired on 2026-01-01", "--new-spice-certificate"),
    ],
)
def test_the_remedy_of_a_certificate_fits_what_is_wrong(
    path: str, level: str, text: str, words: str
) -> None:
    wrong = Certificate(f"/var/lib/ganeti/{path}", level, text)
    (found,) = (
        each
        for each in membership.check(replace(NODE, certificates=(wrong,)))
        if each.check == "certificates"
    )
    assert words in found.remedy
