"""Which QEMU is used; asked with small programs that stand for one."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ganeti import errors
from ganeti.hypervisor.kvm import binary

MACHINES = """Supported machines are:
microvm              microvm (i386)
pc                   Standard PC (i440FX + PIIX, 1996) (alias of pc-i440fx-7.2)
pc-i440fx-7.2        Standard PC (i440FX + PIIX, 1996) (default)
pc-q35-7.2           Standard PC (Q35 + ICH9, 2009)
"""


def qemu(path: Path, version: str = "7.2.22", machines: str = MACHINES) -> Path:
    """A program that answers like QEMU and counts how often it was asked."""
    path.write_text(
        f'#!/bin/sh\necho "$1" >> {path}.asked\n'
        f'if [ "$1" = --version ]; then echo "QEMU emulator version {version} (Debian)"\n'
        f"else cat <<'END'\n{machines}END\nfi\n"
    )
    path.chmod(0o755)
    return path


def test_answers_are_remembered_until_the_file_changes(tmp_path: Path) -> None:
    program = qemu(tmp_path / "kvm")
    cache = tmp_path / "run" / "qemu.json"
    for _ in range(3):
        found = binary.Finder(cache).find(str(program))
    assert found.version == (7, 2, 22)
    assert found.default_machine == "pc-i440fx-7.2"
    assert "microvm" in found.machines
    assert found.aliases["pc"] == "pc-i440fx-7.2"
    asked = Path(f"{program}.asked")
    assert asked.read_text().split() == ["--version", "-sandbox"]
    qemu(program, version="10.0")
    assert binary.Finder(cache).find(str(program)).version == (10, 0, 0)


def test_a_qemu_without_the_sandbox(tmp_path: Path) -> None:
    program = qemu(tmp_path / "kvm")
    program.write_text(program.read_text().replace("echo", "[ $1 = -sandbox ] && exit 1; echo", 1))
    found = binary.Finder(tmp_path / "qemu.json").find(str(program))
    assert (found.sandbox, found.default_machine) == (False, "pc-i440fx-7.2")


def test_callers_at_the_same_time_ask_once(tmp_path: Path) -> None:
    program = qemu(tmp_path / "kvm")
    finder = binary.Finder(tmp_path / "qemu.json")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: finder.find(str(program)), range(4)))
    assert found == [found[0]] * 4
    assert Path(f"{program}.asked").read_text().split() == ["--version", "-sandbox"]


def test_two_programs_are_told_apart(tmp_path: Path) -> None:
    finder = binary.Finder(tmp_path / "qemu.json")
    one, two = qemu(tmp_path / "one"), qemu(tmp_path / "two", version="8.1.0")
    assert finder.find(str(one)).version == (7, 2, 22)
    assert finder.find(str(two)).version == (8, 1, 0)


@pytest.mark.parametrize("text", ["", "{", "{}", "[]"])
def test_damaged_memory_is_written_anew(tmp_path: Path, text: str) -> None:
    cache = tmp_path / "qemu.json"
    cache.write_text(text)
    assert binary.Finder(cache).find(str(qemu(tmp_path / "kvm"))).version == (7, 2, 22)
    assert "7" in cache.read_text()


def test_path_that_somebody_chose_is_never_replaced(tmp_path: Path) -> None:
    with pytest.raises(errors.HypervisorError, match="kvm_path /no/such does not exist"):
        binary.locate("/no/such")
    plain = tmp_path / "plain"
    plain.write_text("no program")
    with pytest.raises(errors.HypervisorError, match="plain cannot be executed"):
        binary.locate(str(plain))
    with pytest.raises(errors.HypervisorError, match="is not a regular file"):
        binary.locate(str(tmp_path))


def test_only_the_builtin_path_has_a_second_choice(tmp_path: Path, monkeypatch: object) -> None:
    monkeypatch.setattr(binary, "DEFAULT_KVM_PATH", str(tmp_path / "kvm"))  # type: ignore
    monkeypatch.setattr(binary.process, "SAFE_PATH", str(tmp_path))  # type: ignore
    with pytest.raises(errors.HypervisorError, match="install the package qemu-system-x86"):
        binary.locate(str(tmp_path / "kvm"))
    other = qemu(tmp_path / "qemu-system-x86_64")
    assert binary.locate(str(tmp_path / "kvm")) == str(other)


@pytest.mark.parametrize(
    ("version", "machines", "text"),
    [("none", MACHINES, "version"), ("7.2", "Supported machines are:\n", "no default machine")],
)
def test_program_that_is_no_qemu(tmp_path: Path, version: str, machines: str, text: str) -> None:
    program = qemu(tmp_path / "kvm", version, machines)
    with pytest.raises(errors.HypervisorError, match=text):
        binary.Finder(tmp_path / "cache").find(str(program))


def test_program_that_fails(tmp_path: Path) -> None:
    program = tmp_path / "kvm"
    program.write_text("#!/bin/sh\necho no library >&2\nexit 127\n")
    program.chmod(0o755)
    with pytest.raises(errors.HypervisorError, match="no library"):
        binary.Finder(tmp_path / "cache").find(str(program))


def test_machine_with_options_and_a_wrong_one(tmp_path: Path) -> None:
    found = binary.Finder(tmp_path / "cache").find(str(qemu(tmp_path / "kvm")))
    binary.check_machine(found, "")
    binary.check_machine(found, "pc-q35-7.2,usb=off")
    with pytest.raises(errors.HypervisorError, match=r"pc-q35-7.3.*did you mean pc-q35-7.2"):
        binary.check_machine(found, "pc-q35-7.3")
    assert os.path.exists(tmp_path / "cache")
