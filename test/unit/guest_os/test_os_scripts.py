from __future__ import annotations

import logging
import re
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ganeti import errors
from ganeti.base.process import wait_exit
from ganeti.guest_os import definition, scripts
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeInstance

MakeOs = Callable[..., Path]
MakeInstance = Callable[..., NodeInstance]
MakeDisk = Callable[..., AttachedDisk]


class FixedClock:
    def now(self) -> float:
        return 1_700_000_000.0

    def monotonic(self) -> float:
        return 0.0


def test_create_runs_in_its_directory_with_its_environment_only(
    paths: Paths,
    make_os: MakeOs,
    make_instance: MakeInstance,
    make_disk: MakeDisk,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LEAKED", "from the daemon")
    path = make_os(create="pwd; cat; env; echo to-stderr >&2")
    log = scripts.create(make_instance(), [make_disk("/d/a")], paths, debug=1, timeout=30)
    lines = log.read_text().splitlines()
    assert lines[0] == str(path)
    assert "to-stderr" in lines
    assert "INSTANCE_NAME=web1.example.com" in lines
    assert "OSP_DISK_LABEL=root" in lines
    assert "DEBUG_LEVEL=1" in lines
    assert "DISK_0_PATH=/d/a" in lines
    assert not any(line.startswith(("LEAKED", "INSTANCE_REINSTALL")) for line in lines)


def test_reinstalling(paths: Paths, make_os: MakeOs, make_instance: MakeInstance) -> None:
    make_os(create='echo "again=$INSTANCE_REINSTALL"')
    log = scripts.create(make_instance(), [], paths, reinstall=True, timeout=30)
    assert log.read_text() == "again=1\n"


def test_the_log_file(paths: Paths, make_os: MakeOs, make_instance: MakeInstance) -> None:
    make_os()
    clock = FixedClock()
    stamp = time.strftime("%Y-%m-%d_%H_%M_%S", time.localtime(clock.now()))
    names = [
        scripts.create(make_instance(), [], paths, timeout=30, clock=clock),
        scripts.create(make_instance(), [], paths, timeout=30, clock=clock),
        scripts.rename(make_instance(), [], "old", paths, timeout=30, clock=clock),
    ]
    assert names == [
        paths.os_log / f"add-tiny+small-web1.example.com-{stamp}.log",
        paths.os_log / f"add-tiny+small-web1.example.com-{stamp}-2.log",
        paths.os_log / f"rename-tiny+small-web1.example.com-{stamp}.log",
    ]
    assert {stat.S_IMODE(name.stat().st_mode) for name in names} == {0o640}
    assert stat.S_IMODE(paths.os_log.stat().st_mode) == 0o750


def test_the_longest_instance_name_still_has_a_log(
    paths: Paths, make_os: MakeOs, make_instance: MakeInstance
) -> None:
    make_os()
    name = ".".join(["x" * 62] * 4) + ".y"
    assert len(name) == 253
    log = scripts.create(make_instance(name=name), [], paths, timeout=30)
    assert re.search(r"x-\d{4}-\d\d-\d\d_\d\d_\d\d_\d\d\.log$", log.name)


def test_rename_tells_both_names(
    paths: Paths, make_os: MakeOs, make_instance: MakeInstance
) -> None:
    make_os(rename='echo "$OLD_INSTANCE_NAME $INSTANCE_NAME"')
    log = scripts.rename(make_instance(), [], "old.example.com", paths, timeout=30)
    assert log.read_text() == "old.example.com web1.example.com\n"


def test_a_failing_script_shows_the_end_of_its_log(
    paths: Paths, make_os: MakeOs, make_instance: MakeInstance
) -> None:
    make_os(create="seq 1 1000; printf 'bad \\033[31mdisk\\n' >&2; exit 3")
    with pytest.raises(errors.OpExecError) as caught:
        scripts.create(make_instance(), [], paths, timeout=30)
    head, *tail = str(caught.value).splitlines()
    (log,) = paths.os_log.iterdir()
    assert "create of 'tiny+small' for instance web1.example.com failed with exit code 3" in head
    assert str(log) in head
    assert tail == [*(str(number) for number in range(982, 1001)), "bad ?[31mdisk"]


def test_a_script_that_says_nothing(
    paths: Paths, make_os: MakeOs, make_instance: MakeInstance
) -> None:
    make_os(create="kill -9 $$")
    with pytest.raises(errors.OpExecError, match=r"was killed by signal 9; its log .* is empty"):
        scripts.create(make_instance(), [], paths, timeout=30)


def test_a_script_that_never_ends(
    paths: Paths, make_os: MakeOs, make_instance: MakeInstance, tmp_path: Path
) -> None:
    note = tmp_path / "child"
    make_os(create=f"sleep 1000 & echo $! > {note}; echo started; wait")
    with pytest.raises(errors.OpExecError, match=r"longer than 1 s and was killed[^$]*started"):
        scripts.create(make_instance(), [], paths, timeout=1)
    assert wait_exit(int(note.read_text()), 5)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("#!/no/such/shell\n", r"first line is '#!/no/such/shell': is that program installed"),
        ("#!", "cannot run"),
    ],
)
def test_a_script_without_interpreter(
    paths: Paths, make_os: MakeOs, make_instance: MakeInstance, text: str, told: str
) -> None:
    make_os(create=text)
    with pytest.raises(errors.OpExecError, match=told):
        scripts.create(make_instance(), [], paths, timeout=30)


def test_a_script_without_first_line(
    paths: Paths, make_os: MakeOs, make_instance: MakeInstance
) -> None:
    (make_os() / "create").write_bytes(b"\x00\x01binary")
    with pytest.raises(errors.OpExecError, match="does not name an interpreter"):
        scripts.create(make_instance(), [], paths, timeout=30)


def test_an_untrusted_os_is_refused(
    paths: Paths, make_os: MakeOs, make_instance: MakeInstance, tmp_path: Path
) -> None:
    path = make_os(create=f"touch {tmp_path}/ran")
    (path / "create").rename(path / "create_untrusted")
    with pytest.raises(errors.OpExecError, match=r"not trusted.*helper guest"):
        scripts.create(make_instance(), [], paths, timeout=30)
    assert not (tmp_path / "ran").exists()
    scripts.rename(make_instance(), [], "old", paths, timeout=30)


def test_a_definition_with_defects_is_refused(
    paths: Paths, make_os: MakeOs, make_instance: MakeInstance
) -> None:
    (make_os() / "export").chmod(0o644)
    with pytest.raises(errors.OpPrereqError, match="export is not executable"):
        scripts.create(make_instance(), [], paths, timeout=30)
    assert not paths.os_log.exists()


def test_a_forced_variant_reaches_the_script(
    paths: Paths, make_os: MakeOs, make_instance: MakeInstance
) -> None:
    make_os(create='echo "$OS_VARIANT"')
    log = scripts.create(make_instance(os="tiny+huge"), [], paths, timeout=30)
    assert log.read_text() == "huge\n"


def test_secrets_travel_in_the_environment_only(
    paths: Paths,
    make_os: MakeOs,
    make_instance: MakeInstance,
    caplog: pytest.LogCaptureFixture,
) -> None:
    probe = "tr '\\0' '\\n' < /proc/$$/cmdline; echo \"${#OSP_SIZE}\""
    make_os(create=probe, rename=f"{probe}; exit 1", verify=f"{probe}; exit 1")
    instance = make_instance(osparams={"size": "topsecret"})
    caplog.set_level(logging.DEBUG)
    log = scripts.create(instance, [], paths, timeout=30)
    assert log.read_text().splitlines()[-1] == "9"
    told = [log.read_text()]
    with pytest.raises(errors.OpExecError) as caught:
        scripts.rename(instance, [], "old", paths, timeout=30)
    told.append(str(caught.value))
    with pytest.raises(errors.OpPrereqError) as refused:
        scripts.validate("tiny+small", instance.osparams, paths, timeout=30)
    told.append(str(refused.value))
    told.append(caplog.text)
    told.extend(path.name for path in paths.os_log.iterdir())
    assert "topsecret" not in "\n".join(told)
    assert all("9" in text for text in told[:3])


def test_verify_gets_the_parameters(paths: Paths, make_os: MakeOs, tmp_path: Path) -> None:
    make_os(verify=f'env > {tmp_path}/env; echo "$@" >> {tmp_path}/env')
    assert scripts.validate("tiny+large", {"size": "7"}, paths, timeout=30) is True
    lines = (tmp_path / "env").read_text().splitlines()
    assert {"OSP_SIZE=7", "OS_VARIANT=large", "OS_API_VERSION=20"} <= set(lines)
    assert lines[-1] == "parameters"
    assert not any(line.startswith("INSTANCE_") for line in lines)


def test_verify_refuses(paths: Paths, make_os: MakeOs) -> None:
    make_os(verify="echo size must be a number >&2; exit 1")
    with pytest.raises(errors.OpPrereqError, match="size must be a number") as caught:
        scripts.validate("tiny+small", {"size": "x"}, paths, timeout=30)
    assert caught.value.args[1] == "wrong_input"
    with pytest.raises(errors.OpPrereqError, match="no parameter 'color'"):
        scripts.validate("tiny+small", {"color": "x"}, paths, timeout=30)
    with pytest.raises(errors.OpPrereqError, match="'colors'"):
        scripts.validate("tiny+small", {}, paths, checks=["colors"], timeout=30)
    with pytest.raises(errors.OpPrereqError, match="no variant"):
        scripts.validate("tiny+x", {}, paths, timeout=30)


def test_verify_that_never_ends(paths: Paths, make_os: MakeOs) -> None:
    make_os(verify="exec sleep 1000")
    with pytest.raises(errors.OpPrereqError, match=r"longer than 0\.5 s") as caught:
        scripts.validate("tiny+small", {}, paths, timeout=0.5)
    assert caught.value.args[1] == "environment_error"


def test_an_os_that_need_not_be_there(paths: Paths, make_os: MakeOs) -> None:
    assert scripts.validate("gone", {}, paths, required=False) is False
    with pytest.raises(errors.OpPrereqError, match="not installed"):
        scripts.validate("gone", {}, paths)


def test_old_definitions_are_not_asked(paths: Paths, make_os: MakeOs) -> None:
    path = make_os(verify=f"touch {paths.run}/asked; exit 1")
    (path / "ganeti_api_version").write_text("15\n")
    found = definition.load("tiny", paths.os_search_path)
    scripts.verify(found, {"anything": "goes"}, timeout=30)
    assert not (paths.run / "asked").exists()


def test_an_os_with_variants_is_named_with_one(paths: Paths, make_os: MakeOs) -> None:
    make_os()
    with pytest.raises(errors.OpPrereqError, match=r"choose one: tiny\+small, tiny\+large"):
        scripts.validate("tiny", {}, paths)
    assert scripts.validate("tiny", {}, paths, force_variant=True)


def test_an_os_for_some_hypervisors_only(paths: Paths, make_os: MakeOs) -> None:
    path = make_os() / "hypervisors"
    path.write_text("# no fake one\nkvm\n\nxen-pvm\n")
    assert scripts.validate("tiny+small", {}, paths, hypervisor="kvm")
    assert scripts.validate("tiny+small", {}, paths)
    with pytest.raises(
        errors.OpPrereqError, match=r"does not support hypervisor fake, only kvm, xen-pvm .*tiny"
    ):
        scripts.validate("tiny+small", {}, paths, hypervisor="fake")
    [found] = definition.diagnose(paths.os_search_path)
    assert found.hypervisors == ["kvm", "xen-pvm"]
    path.write_text("# none\n")
    [found] = definition.diagnose(paths.os_search_path)
    assert found.diagnose == "file hypervisors is empty: write one name a line"
