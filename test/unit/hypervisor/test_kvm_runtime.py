"""Files of guests: names, what is kept, damage, own shutdowns."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ganeti import errors
from ganeti.base import retry
from ganeti.hypervisor.kvm import qemu_process, runtime
from ganeti.rpc.objects import NodeInstance

NAME = "web1.example.com"


def record(name: str = NAME, **changes: Any) -> runtime.Runtime:
    secret = {"root_password": "sesame"}
    instance = NodeInstance(
        uuid="u", name=name, primary_node="n", hypervisor="kvm", osparams=secret
    )
    facts: dict[str, Any] = {
        "instance": instance,
        "argv": ("kvm", "-S"),
        "accelerator": "tcg",
        "started": 1.5,
        "memory": 512,
        "cards": (runtime.Card(uuid="c", tap="tap0", mode="bridged", link="br0"),),
    }
    return runtime.Runtime(**{**facts, **changes})


@pytest.fixture
def store(tmp_path: Path) -> runtime.Store:
    made = runtime.Store(tmp_path / "kvm")
    made.prepare()
    return made


def test_what_was_saved_is_found_again_without_secrets(store: runtime.Store) -> None:
    store.save(record())
    path = store.runtime_file(NAME)
    assert path.name == f"{NAME}.runtime"
    assert path.stat().st_mode & 0o777 == 0o600
    assert "sesame" not in path.read_text()
    for reader in (store, runtime.Store(store.root)):
        found = reader.find(NAME)
        assert found is not None
        assert found.pid is None
        assert found.runtime.argv == ("kvm", "-S")
        assert found.runtime.cards[0].tap == "tap0"
        assert found.runtime.instance.osparams == {}
    assert store.names() == [NAME]


def test_change_by_another_daemon_is_seen(store: runtime.Store) -> None:
    store.save(record())
    assert store.find(NAME).runtime.memory == 512
    runtime.Store(store.root).save(record(memory=256))
    assert store.find(NAME).runtime.memory == 256


def test_nothing_is_left_after_the_end(store: runtime.Store) -> None:
    store.save(record())
    store.nic_dir(NAME).mkdir()
    (store.nic_dir(NAME) / "0").write_text("tap0\n")
    store.chroot(NAME).mkdir()
    for path in (store.uid_file(NAME), store.pid_file(NAME), store.socket(NAME, "qmp")):
        path.write_text("x")
    Path(f"{store.events(NAME)}.out").write_text("x")
    for _ in range(2):
        store.clear(NAME)
    assert [p for p in store.root.rglob("*") if not p.is_dir()] == []
    assert store.names() == []
    assert store.find(NAME) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1}', '{"instance": 5}'])
def test_damaged_file_is_named(store: runtime.Store, text: str) -> None:
    store.runtime_file(NAME).write_text(text)
    with pytest.raises(errors.HypervisorError, match=r"web1\.example\.com\.runtime is damaged"):
        store.find(NAME)


def test_node_without_any_guest(tmp_path: Path) -> None:
    store = runtime.Store(tmp_path / "never-made")
    assert store.names() == []
    assert store.find(NAME) is None
    store.clear(NAME)


def test_process_must_have_been_started_with_the_pid_file(store: runtime.Store) -> None:
    path = store.pid_file(NAME)
    program = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen([*program, "-pidfile", str(path)], stdin=subprocess.PIPE) as child:
        path.write_text(f"{child.pid}\n")
        # The command line is there a moment after the start of the program.
        assert retry.retry_until(lambda: store.pid(NAME), timeout=10) == child.pid
        assert not qemu_process.is_ours(child.pid, store.pid_file("other"))
        assert qemu_process.kill(os.getpid(), path, 0) is False, "only the one of the pid file"
        child.kill()
        child.wait()
    assert store.pid(NAME) is None


@pytest.mark.parametrize("text", ["", "x", "-1", "12 13", "999999999"])
def test_pid_file_with_something_else(store: runtime.Store, text: str) -> None:
    store.pid_file(NAME).write_text(text)
    assert store.pid(NAME) is None


def test_names_of_sockets_fit_an_address() -> None:
    assert runtime.socket_name("web1", "qmp") == "web1.qmp"
    long = ["a" * 200 + end for end in ("x", "y")]
    short = [runtime.socket_name(name, "serial") for name in long]
    assert short[0] != short[1]
    assert all(len(name) <= 107 for name in short)


def event(name: str, **data: Any) -> str:
    words = ", ".join(
        f'"{k}": {str(v).lower() if isinstance(v, bool) else repr(v)}' for k, v in data.items()
    ).replace("'", '"')
    return f'{{"event": "{name}", "data": {{{words}}}}}\n'


OWN = event("SHUTDOWN", guest=True, reason="guest-shutdown")


@pytest.mark.parametrize(
    ("journal", "own"),
    [
        ("", False),
        (OWN, True),
        ('{"return": {}}\ncut off' + "\n" + OWN, True),
        (event("POWERDOWN") + OWN, False),
        (event("POWERDOWN") + event("RESET") + OWN, True),
        (event("SHUTDOWN", guest=False, reason="host-qmp-quit"), False),
        (event("SHUTDOWN", guest=True, reason="guest-panic"), False),
        (OWN + event("SHUTDOWN", guest=False, reason="host-signal"), False),
        ("[1]\n5\n", False),
    ],
)
def test_whose_will_a_shutdown_was(store: runtime.Store, journal: str, own: bool) -> None:
    Path(f"{store.events(NAME)}.out").write_text(journal)
    assert store.shut_itself_down(NAME) is own
    store.forget_events(NAME)
    assert store.shut_itself_down(NAME) is False


def test_only_the_end_of_a_long_journal_is_read(store: runtime.Store) -> None:
    Path(f"{store.events(NAME)}.out").write_text(event("NIC_RX_FILTER_CHANGED") * 5000 + OWN)
    assert store.shut_itself_down(NAME)
