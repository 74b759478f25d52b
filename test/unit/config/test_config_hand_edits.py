"""config.data that was changed by hand: found at the start, named, accepted when it is right."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from config_samples import SetClock, instance, node

from ganeti import errors
from ganeti.base import journal, sealed_file
from ganeti.bootstrap import accept_config
from ganeti.config.changes import Author
from ganeti.config.hand_edits import describe
from ganeti.config.store import Store, read_config, write_checkpoint
from ganeti.model import base
from ganeti.node.context import NodeContext
from ganeti.node.replica import Replica
from ganeti.node.standby import Standby
from ganeti.paths import Paths
from ganeti.rpc.replica import ReplicaUpdate
from ganeti.rpc.wire import encode_content

LONG = ["x" * 90]
WHO = Author(user="alice", reason="why")


class Killed(BaseException):
    """As a process that ends between two steps."""


@pytest.fixture
def written(root: Paths, clock: SetClock) -> Paths:
    """What a master leaves when it ends."""
    store = Store(root, clock)
    store.change("x", WHO, lambda draft: draft.put(instance(7, beparams={"maxmem": 128})))
    store.close()
    return root


def edit(where: Paths, old: str, new: str) -> None:
    text = where.config_file.read_text()
    assert text.count(old) == 1
    where.config_file.write_text(text.replace(old, new))


def content(where: Paths) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in where.data.rglob("*") if path.is_file()}


def refusal(where: Paths) -> str:
    before = content(where)
    with pytest.raises(errors.ConfigurationError) as caught:
        Store(where)
    assert content(where) == before
    return errors.text(caught.value)


def die(store: Store) -> None:
    """End without a last checkpoint, as a killed process does."""
    store._journal.close()


def starts(where: Paths) -> None:
    Store(where).close()


def test_one_changed_digit_is_found_and_named(written: Paths) -> None:
    raw = json.loads(written.config_file.read_text())
    raw["serial_no"] += 2
    written.config_file.write_text(json.dumps(raw, separators=(",", ":")))
    said = refusal(written)
    assert "serial_no: 6 -> 8" in said
    assert "was edited at 20" in said
    assert "gnt-cluster accept-config" in said
    copy = sealed_file.companions(written.config_file)[1]
    assert f"To take it back: cp {copy} {written.config_file}" in said
    written.config_file.write_bytes(copy.read_bytes())
    starts(written)


def test_what_was_accepted_starts_and_is_watched_from_then_on(written: Paths) -> None:
    edit(written, '"maxmem":128', '"maxmem":256')
    assert "instances/inst-7/beparams/maxmem (web7.example.com): 128 -> 256" in refusal(written)
    found = accept_config.find(written)
    assert found is not None
    assert found.changes == ["instances/inst-7/beparams/maxmem (web7.example.com): 128 -> 256"]
    assert found.defects == []
    accept_config.accept(written)
    assert accept_config.find(written) is None
    assert read_config(written).instances["inst-7"].beparams == {"maxmem": 256}
    edit(written, '"maxmem":256', '"maxmem":257')
    assert "256 -> 257" in refusal(written)


def test_the_checkpoint_before_the_last_one_is_not_taken_for_the_newest(written: Paths) -> None:
    before = written.config_file.read_bytes()
    store = Store(written)
    store.change("x", WHO, lambda draft: draft.put(instance(8, beparams={"maxmem": 64})))
    store.close()
    written.config_file.write_bytes(before)
    assert "instances/inst-8 (web8.example.com) was removed" in refusal(written)
    accept_config.accept(written)
    assert "inst-8" not in read_config(written).instances


def test_without_the_copy_the_digest_still_tells(written: Paths) -> None:
    sealed_file.companions(written.config_file)[1].unlink()
    edit(written, '"maxmem":128', '"maxmem":256')
    said = refusal(written)
    assert "its SHA-256 is not that in config.data.sha256" in said
    assert "To take it back" not in said
    found = accept_config.find(written)
    assert found is not None
    assert found.changes is None


def test_digests_that_are_garbage_accept_nothing(written: Paths) -> None:
    digests = sealed_file.companions(written.config_file)[0]
    digests.chmod(0o600)
    digests.write_text("garbage\n")
    assert "was edited at" in refusal(written)


@pytest.mark.parametrize("sealed", [True, False], ids=["with digests", "of an older version"])
def test_a_key_that_is_there_twice_is_refused_with_its_path(written: Paths, sealed: bool) -> None:
    if not sealed:
        for path in sealed_file.companions(written.config_file):
            path.unlink()
    edit(written, '"maxmem":128', '"maxmem":128,"maxmem":256')
    said = refusal(written)
    assert "the key instances/inst-7/beparams/maxmem is there twice" in said
    with pytest.raises(errors.ConfigurationError, match="is there twice"):
        accept_config.find(written)


def test_a_file_of_an_older_version_starts_once_and_is_watched_then(written: Paths) -> None:
    for path in sealed_file.companions(written.config_file):
        path.unlink()
    edit(written, '"maxmem":128', '"maxmem":256')
    die(Store(written))
    edit(written, '"maxmem":256', '"maxmem":257')
    assert "256 -> 257" in refusal(written)


@contextmanager
def killed_at(step: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Die before (even) or after (odd) the rename with this number."""
    renames = 0
    rename = os.rename

    def replace_counted(source: Any, target: Any) -> None:
        nonlocal renames
        number, renames = renames, renames + 1
        if number == step // 2 and step % 2 == 0:
            raise Killed
        rename(source, target)
        if number == step // 2:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", replace_counted)
        yield


@pytest.mark.parametrize("first", range(6))
@pytest.mark.parametrize("second", range(6))
def test_a_kill_at_any_step_of_a_checkpoint_leaves_what_starts(
    written: Paths, clock: SetClock, monkeypatch: pytest.MonkeyPatch, first: int, second: int
) -> None:
    for number, step in enumerate((first, second)):
        store = Store(written, clock)
        store.change("x", WHO, lambda draft, n=number: draft.put(node(20 + n)))
        with killed_at(step, monkeypatch), pytest.raises(Killed):
            store.checkpoint()
        die(store)
        assert {f"node-{20 + n}" for n in range(number + 1)} <= set(read_config(written).nodes)
    starts(written)
    assert {"node-20", "node-21"} <= set(read_config(written).nodes)


def test_copies_of_candidates_can_take_over(written: Paths, tmp_path: Path) -> None:
    there = Paths(tmp_path / "candidate")
    for directory in (there.data, there.queue, there.run):
        directory.mkdir(parents=True)
    context = NodeContext(there, "node2.example.com")
    replica = Replica(context, Standby(context))
    text = written.config_file.read_text()
    for _ in range(2):
        replica.replica_update(ReplicaUpdate(epoch=1, base=6, checkpoint=encode_content(text)))
        assert read_config(there).data.serial_no == 6
        text = text.replace('"maxmem":128', '"maxmem":130')
    replica.stop()
    edit(there, '"maxmem":130', '"maxmem":131')
    with pytest.raises(errors.ConfigurationError, match="130 -> 131"):
        read_config(there)


def test_an_edit_may_not_hide_changes_that_are_in_the_journal(written: Paths) -> None:
    record = {"serial": 7, "time": 1.0, "name": "x", "put": {}}
    written.journal_file.write_bytes(journal.encode(record))
    edit(written, '"maxmem":128', '"maxmem":256')
    assert accept_config.find(written) is not None
    raw = json.loads(written.config_file.read_text())
    raw["serial_no"] = 7
    written.config_file.write_text(json.dumps(raw))
    with pytest.raises(errors.ConfigurationError, match=r"serial 7 on.*set that back to 6"):
        accept_config.find(written)


def test_objects_secrets_and_long_lists_are_told_in_short() -> None:
    old = {
        "serial_no": 1,
        "nodes": {"n1": {"name": "node1"}, "n2": {"name": "node2"}},
        "instances": {"i1": {"name": "web", "osparams_private": {"key": "old"}, "tags": []}},
    }
    new = {
        "serial_no": 1,
        "nodes": {"n1": {"name": "node1"}, "n3": {"name": "node3"}},
        "instances": {"i1": {"name": "web", "osparams_private": {"key": "new"}, "tags": LONG}},
    }
    lines = describe(old, new)
    assert "nodes/n2 (node2) was removed" in lines
    assert "nodes/n3 (node3) was added" in lines
    [secret] = [line for line in lines if "private" in line]
    assert "old" not in secret.split(":", 1)[1]
    assert "new" not in secret.split(":", 1)[1]
    assert all(len(line) < 200 for line in lines)
    assert describe(old, dict(reversed(old.items()))) == ["only its form (spaces, order of keys)"]


def test_a_reader_beside_a_writer_takes_no_change_for_an_edit(written: Paths) -> None:
    """Another process reads the file while a daemon replaces it again and again."""
    config = read_config(written)
    done = threading.Event()

    def write() -> None:
        for number in range(300):
            write_checkpoint(
                config.apply([], [], base.replace(config.cluster, tags=(str(number),)), mtime=1.0),
                written,
            )
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        read_config(written)
    writer.join()
