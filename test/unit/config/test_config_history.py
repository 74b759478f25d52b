"""The history: kept when the journal is shortened, whole after crashes, read without secrets."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Any

import pytest
from config_samples import cluster, data, disk, full_disk, instance, node
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from ganeti import errors
from ganeti.base import journal, jsonio
from ganeti.config import differences, history, redaction
from ganeti.config.changes import Author, Draft
from ganeti.config.history import History
from ganeti.config.store import Store, read_config
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.enums import DiskTemplate
from ganeti.model.filter_rule import FilterRule
from ganeti.paths import Paths

WHO = Author(job=12, user="alice", reason="moving house")


def directory(root: Paths) -> Path:
    return root.data / "history"


def segments(root: Paths) -> list[str]:
    if not directory(root).exists():
        return []
    return sorted(path.name for path in directory(root).iterdir())


def serials(store: Store, born: float = 0.0) -> list[int]:
    """Serials as a reader finds them, oldest first."""
    upto = store.current.data.serial_no
    return [line.serial for line in store.history.read_newest_first(upto, born)][::-1]


def tag(store: Store, *tags: str) -> None:
    store.change("tag", WHO, lambda d: d.update_cluster(tags=tags))


def changes(store: Store, count: int) -> None:
    for number in range(count):
        tag(store, f"t{store.current.data.serial_no}-{number}")


def records(store: Store) -> list[journal.Record]:
    upto = store.current.data.serial_no
    return [line.record() for line in store.history.read_newest_first(upto, 0.0)][::-1]


# old values ----------------------------------------------------------------------------------


def test_a_record_has_the_old_values_of_what_changed_and_no_others(store):
    store.change(
        "x",
        WHO,
        lambda d: (
            d.update(store.current.instances["inst-1"], beparams={"maxmem": 512}, tags=("new",)),
            d.update_cluster(tags=("prod",)),
            d.put(node(4)),
            d.delete(store.current.disks["disk-1"]),
        ),
    )
    old = records(store)[-1]["old"]
    assert old["instances"] == {"inst-1": {"beparams": {}, "tags": []}}
    assert old["cluster"] == {"tags": ["prod", "web"]}
    assert "nodes" not in old  # a new object has no past
    assert old["disks"]["disk-1"]["size"] == 512  # what is gone is here as a whole


def test_an_object_that_was_put_as_it_was_is_no_new_one(store):
    same = store.current.nodes["node-2"]
    store.change("x", WHO, lambda d: d.put(same))
    assert records(store)[-1]["old"] == {"nodes": {"node-2": {}}}


def test_a_key_that_was_not_set_is_null(store):
    store.change("x", WHO, lambda d: d.update(store.current.instances["inst-1"], network_port=5))
    (difference,) = map(differences.describe, differences.find_touched(records(store)[-1]))
    assert difference["keys"] == [{"key": "network_port", "old": None, "new": 5}]


# segments ------------------------------------------------------------------------------------


def test_what_a_checkpoint_takes_from_the_journal_is_kept(store, root):
    changes(store, 3)
    before = records(store)
    lines = root.journal_file.read_bytes()
    store.checkpoint()
    assert root.journal_file.read_bytes() == b""
    assert segments(root) == ["6-8.gz"]
    kept = directory(root) / "6-8.gz"
    assert gzip.decompress(kept.read_bytes()) == lines
    assert kept.stat().st_mode & 0o777 == 0o600
    assert directory(root).stat().st_mode & 0o777 == 0o700
    assert records(store) == before
    changes(store, 2)
    assert serials(store) == [6, 7, 8, 9, 10]


def test_a_checkpoint_without_changes_keeps_nothing(store, root):
    store.checkpoint()
    assert segments(root) == []
    assert serials(store) == []
    assert store.history.beginning(5, 0.0) is None


def test_small_segments_are_joined_and_large_ones_are_not(store, root, monkeypatch):
    for _ in range(4):
        changes(store, 2)
        store.checkpoint()
    assert segments(root) == ["6-13.gz"]
    monkeypatch.setattr(history, "SMALL", 10)
    changes(store, 1)
    store.checkpoint()
    assert segments(root) == ["14-14.gz", "6-13.gz"]
    assert serials(store) == list(range(6, 15))


def test_the_oldest_go_when_there_is_no_room(store, root, monkeypatch):
    monkeypatch.setattr(history, "SMALL", 10)
    for _ in range(5):
        changes(store, 1)
        store.checkpoint()
    size = (directory(root) / "10-10.gz").stat().st_size
    monkeypatch.setattr(history, "MAX_SIZE", size * 2 + 40)
    changes(store, 1)
    store.checkpoint()
    assert segments(root) == ["10-10.gz", "11-11.gz"]
    assert store.history.beginning(11, 0.0).serial == 10
    monkeypatch.setattr(history, "MAX_SIZE", 1)
    changes(store, 1)
    store.checkpoint()
    assert segments(root) == ["12-12.gz"]  # the newest always stays


def test_changes_during_a_checkpoint_stay_in_the_journal(store, root, monkeypatch):
    changes(store, 3)
    write = store.history.keep

    def keep(lines: bytes) -> None:
        changes(store, 2)  # somebody is quicker than the checkpoint
        write(lines)

    monkeypatch.setattr(store.history, "keep", keep)
    store.checkpoint()
    assert [r["serial"] for r in journal.read(root.journal_file)] == [9, 10]
    assert root.journal_file.stat().st_mode & 0o777 == 0o600
    assert segments(root) == ["6-8.gz"]
    assert serials(store) == [6, 7, 8, 9, 10]
    changes(store, 1)
    assert read_config(root).data == store.current.data
    monkeypatch.undo()
    store.checkpoint()
    assert serials(store) == [6, 7, 8, 9, 10, 11]


def test_a_journal_that_cannot_be_shortened_stays_and_goes_on(store, root, monkeypatch):
    changes(store, 3)
    keep = store.history.keep

    def keep_and_change(lines: bytes) -> None:
        keep(lines)
        changes(store, 1)

    def full(*_args: Any, **_more: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.history, "keep", keep_and_change)
    monkeypatch.setattr("ganeti.base.journal.files.write_atomic", full)
    monkeypatch.setattr("ganeti.config.store.write_checkpoint", lambda *_args: None)
    monkeypatch.setattr(History, "_write", lambda *_args: root.data)
    with pytest.raises(OSError, match="No space left"):
        store.checkpoint()
    monkeypatch.undo()
    changes(store, 1)
    assert [r["serial"] for r in journal.read(root.journal_file)] == [6, 7, 8, 9, 10]
    assert serials(store) == [6, 7, 8, 9, 10]


# crashes -------------------------------------------------------------------------------------


class Crash(Exception):
    """The process dies here."""


def reopened(root: Paths, clock: Any) -> Store:
    """What a new process finds; the old one wrote nothing more."""
    other = Paths(root.root.with_name("after-crash"))
    if other.root.exists():
        shutil.rmtree(other.root)
    shutil.copytree(root.root, other.root)
    return Store(other, clock)


STEPS = (
    "before the segment",
    "before the rename",
    "before the journal",
    "while joining",
    "before the tail",
)


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_loses_and_duplicates_nothing(store, root, clock, monkeypatch, step):
    changes(store, 2)
    store.checkpoint()
    changes(store, 3)
    expected = list(range(6, 11))
    crash(monkeypatch, store, step)
    with pytest.raises(Crash):
        store.checkpoint()
    monkeypatch.undo()
    after = reopened(root, clock)
    assert serials(after) == expected
    assert after.current.data == store.current.data
    changes(after, 1)
    after.checkpoint()
    assert serials(after) == [*expected, 11]
    names = [path.name for path in after.history._directory.iterdir()]
    assert names == ["6-11.gz"]  # nothing is left of the crash
    after.close()


def crash(monkeypatch, store: Store, step: str) -> None:
    def die(*_args: Any, **_more: Any) -> Any:
        raise Crash

    if step == "before the segment":
        monkeypatch.setattr(store.history, "keep", die)
    elif step == "before the rename":
        monkeypatch.setattr("os.rename", rename_or_die)
    elif step == "before the journal":
        monkeypatch.setattr(store._journal, "drop", die)
    elif step == "while joining":
        monkeypatch.setattr(Path, "unlink", die)
    else:
        keep = store.history.keep
        monkeypatch.setattr(store.history, "keep", lambda lines: keep(lines) or die())


def rename_or_die(source: str, target: Path) -> None:
    if target.suffix == ".gz":
        Path(f"{source}.rest").write_text("as a power cut leaves it")
        raise Crash
    Path(source).replace(target)


def test_a_full_disk_leaves_the_journal_and_the_history(root, clock, caplog):
    store = Store(root, clock)
    changes(store, 3)
    with full_disk(root.journal_file, more=-root.journal_file.stat().st_size + 100):
        store.close()
    assert "the journal has everything" in caplog.text
    again = Store(root, clock)
    assert serials(again) == [6, 7, 8]
    again.close()


def test_a_background_checkpoint_that_fails_says_so(root, clock, caplog, monkeypatch):
    store = Store(root, clock)
    monkeypatch.setattr("ganeti.config.store.CHECKPOINT_AFTER", 10)
    directory(root).write_text("no directory")
    changes(store, 1)
    store._checkpointing.join(10)
    assert "no checkpoint, the journal has everything" in caplog.text
    monkeypatch.undo()
    directory(root).unlink()
    store.close()


# other masters, other clusters ---------------------------------------------------------------


def test_changes_that_were_lost_with_a_master_make_way_for_those_made_anew(store, root):
    """A forced failover to an older state: what came after it is not the past."""
    changes(store, 3)
    store.checkpoint()
    lines = [
        journal.encode({"serial": s, "time": 1.7e9, "name": "anew", "cluster": {}}) for s in (8, 9)
    ]
    store.history.keep(b"".join(lines))
    found = [
        (line.serial, line.record()["name"]) for line in store.history.read_newest_first(9, 0.0)
    ]
    assert found == [(9, "anew"), (8, "anew"), (7, "tag"), (6, "tag")]


def test_segments_beyond_the_state_are_not_read(store):
    changes(store, 3)
    store.checkpoint()
    assert [line.serial for line in store.history.read_newest_first(7, 0.0)] == [7, 6]
    assert store.history.beginning(7, 0.0).serial == 6


def test_a_gap_is_where_the_known_history_begins(store, monkeypatch):
    monkeypatch.setattr(history, "SMALL", 10)
    for _ in range(4):
        changes(store, 2)
        store.checkpoint()
    (store.history._directory / "8-9.gz").unlink()
    assert serials(store) == [6, 7, 10, 11, 12, 13]
    assert store.history.beginning(13, 0.0).serial == 10


def test_what_is_older_than_the_cluster_is_of_another_one(store, clock, monkeypatch):
    monkeypatch.setattr(history, "SMALL", 10)
    changes(store, 2)
    store.checkpoint()
    clock.time += 100
    changes(store, 2)
    born = clock.time - 50
    assert serials(store, born) == [8, 9]
    assert store.history.beginning(9, born).serial == 8


def test_a_damaged_segment_is_named(store, root):
    changes(store, 3)
    store.checkpoint()
    path = directory(root) / "6-8.gz"
    whole = path.read_bytes()
    for raw in (whole[:-10], whole[:20] + b"\xff\xff\xff" + whole[23:], b"text"):
        path.write_bytes(raw)
        with pytest.raises(errors.ConfigurationError, match=r"6-8\.gz is damaged"):
            serials(store)
    path.write_bytes(gzip.compress(b'00000000 {"serial":6}\n'))
    with pytest.raises(errors.ConfigurationError, match=r"history .* is damaged"):
        serials(store)


def test_segments_may_be_joined_and_dropped_while_somebody_reads(store, monkeypatch):
    monkeypatch.setattr(history, "SMALL", 10)
    for _ in range(4):
        changes(store, 2)
        store.checkpoint()
    reader = store.history.read_newest_first(13, 0.0)
    found = [next(reader).serial for _ in range(3)]
    monkeypatch.undo()
    changes(store, 1)
    store.checkpoint()  # everything is one segment now
    assert len(store.history.segments()) == 1
    assert [*found, *(line.serial for line in reader)] == list(range(13, 5, -1))


# differences ---------------------------------------------------------------------------------


def keys(difference: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {key["key"]: (key["old"], key["new"]) for key in difference["keys"]}


def merge(store: Store, after: int = 0) -> dict[str, dict[str, Any]]:
    found = differences.merge_records(r for r in reversed(records(store)) if r["serial"] > after)
    return {item["uuid"]: item for item in found}


def test_several_changes_of_one_object_are_told_as_one(store):
    for memory in (512, 768, 1024):
        store.change(
            "m",
            Author(job=memory),
            lambda d, m=memory: d.update(
                store.current.instances["inst-1"], beparams={"maxmem": m, "minmem": 128}
            ),
        )
    found = merge(store)["inst-1"]
    assert keys(found) == {"beparams/maxmem": (None, 1024), "beparams/minmem": (None, 128)}
    assert (found["change"], found["name"]) == ("changed", "web1.example.com")
    assert (found["serials"], found["jobs"]) == ([6, 7, 8], [512, 768, 1024])
    assert keys(merge(store, after=6)["inst-1"]) == {"beparams/maxmem": (512, 1024)}


def test_there_and_back_is_no_difference(store):
    changes(store, 2)
    tag(store, "prod", "web")
    store.change("+", WHO, lambda d: d.put(node(4)))
    store.change("-", WHO, lambda d: d.delete(store.current.nodes["node-4"]))
    assert merge(store) == {}


def test_what_came_and_what_went(store):
    store.change("+", WHO, lambda d: d.put(node(4)))
    store.change("~", WHO, lambda d: d.update(store.current.nodes["node-4"], drained=True))
    store.change("~", WHO, lambda d: d.update(store.current.nodes["node-3"], tags=("x",)))
    store.change("-", WHO, lambda d: d.delete(store.current.nodes["node-3"]))
    found = merge(store)
    assert (found["node-4"]["change"], found["node-4"]["values"]["drained"]) == ("added", True)
    assert found["node-3"]["change"] == "removed"
    assert found["node-3"]["name"] == "node3.example.com"


def test_one_that_went_and_came_back_has_changed(store):
    gone = store.current.nodes["node-3"]
    store.change("-", WHO, lambda d: d.delete(gone))
    store.change("+", WHO, lambda d: d.put(base.replace(gone, offline=False, drained=True)))
    assert keys(merge(store)["node-3"]) == {"offline": (True, False), "drained": (False, True)}


VALUES = st.one_of(st.none(), st.booleans(), st.integers(0, 5), st.sampled_from(["a", "b"]))
PARAMS = st.dictionaries(st.sampled_from(["x", "y", "z"]), VALUES, max_size=3)


@examples(60, database=None)
@given(steps=st.lists(st.tuples(st.integers(1, 4), st.sampled_from("pppd"), PARAMS), max_size=12))
def test_a_difference_is_what_two_states_differ_in(steps):
    """Whatever happened in between, records alone tell what differs at the end."""
    config = before = Config(data(disks={}, instances={"inst-1": instance(1)}))
    written: list[journal.Record] = []
    for number, what, params in steps:
        draft = Draft(config, 5.0)
        if what == "p":
            draft.put(instance(number, hvparams=params, tags=tuple(sorted(params))))
        elif f"inst-{number}" in config.instances:
            draft.delete(config.instances[f"inst-{number}"])
        if draft.empty:
            continue
        config = draft.result()
        record = {"serial": config.data.serial_no, "time": 5.0, "name": what, **draft.wire()}
        written.append(jsonio.loads(jsonio.dumps(record)))
    found = {item["uuid"]: item for item in differences.merge_records(reversed(written))}
    for uuid in {*before.instances, *config.instances}:
        old, new = before.instances.get(uuid), config.instances.get(uuid)
        item = found.pop(uuid, None)
        if old is None or new is None:
            assert item is not None
            assert item["change"] == ("added" if old is None else "removed")
            continue
        expected = {
            f"hvparams/{key}": (old.hvparams.get(key), new.hvparams.get(key))
            for key in {*old.hvparams, *new.hvparams}
            if differs(old.hvparams.get(key), new.hvparams.get(key))
        }
        if old.tags != new.tags:
            expected["tags"] = (list(old.tags), list(new.tags))
        assert (keys(item) if item else {}) == expected
    assert found == {}


def differs(old: Any, new: Any) -> bool:
    if old is None or new is None:
        return bool(old or new)
    return old != new


# secrets -------------------------------------------------------------------------------------


def test_names_of_private_parameters_stay_and_values_go():
    raw = {
        "osparams": {"mirror": "m"},
        "osparams_private": {"root_pw": "s1", "deep": {"a": ["s2"]}},
        "osparams_private_cluster": {"debian": {"pw": "s3"}},
        "hvparams": {"vnc_password_file": "/etc/vnc", "vnc_password": "s4"},
        "logical_id": ["a", "b", 11000, 0, 1, "s5"],
        "children": [{"logical_id": ["vg", "lv"]}, {"logical_id": ["a", "b", 1, 2, 3, "s6"]}],
        "params": {"access-token": "s7", "pool": "rbd"},
    }
    hidden = redaction.REDACTED
    assert redaction.redact(raw) == {
        "osparams": {"mirror": "m"},
        "osparams_private": {"root_pw": hidden, "deep": {"a": [hidden]}},
        "osparams_private_cluster": {"debian": {"pw": hidden}},
        "hvparams": {"vnc_password_file": "/etc/vnc", "vnc_password": hidden},
        "logical_id": ["a", "b", 11000, 0, 1, hidden],
        "children": [{"logical_id": ["vg", "lv"]}, {"logical_id": ["a", "b", 1, 2, 3, hidden]}],
        "params": {"access-token": hidden, "pool": "rbd"},
    }
    assert raw["osparams_private"]["root_pw"] == "s1"  # the original is untouched


def test_a_private_value_that_changed_is_told_without_it(store):
    for word in ("first", "second"):
        store.change(
            "x",
            WHO,
            lambda d, w=word: d.update(
                store.current.instances["inst-1"], osparams_private={"pw": w, "same": "s"}
            ),
        )
    found = differences.describe(next(differences.find_touched(records(store)[-1])))
    assert found["keys"] == [
        {"key": "osparams_private/pw", "old": "<redacted>", "new": "<redacted>"}
    ]


MARK = "S3CR3T"
SECRETS = st.integers(0, 10**6).map(lambda n: f"{MARK}{n}")
TREES = st.recursive(
    SECRETS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=5,
)
PRIVATE = st.dictionaries(st.sampled_from(["pw", "key", "x/y"]), TREES, max_size=3)


def drbd(uuid: str, secret: str, number: int) -> Any:
    children = (
        disk(
            f"{uuid}-c", "web1", dev_type=DiskTemplate.DRBD, logical_id=("a", "b", 1, 2, 3, secret)
        ),
    )
    return disk(
        uuid,
        "web1",
        dev_type=DiskTemplate.DRBD,
        children=children,
        logical_id=("node-1", "node-2", 11000 + number, 0, 1, secret),
    )


@examples(40, database=None)
@given(steps=st.lists(st.tuples(PRIVATE, PRIVATE, SECRETS, st.booleans()), min_size=1, max_size=6))
def test_no_secret_ever_gets_out(steps):
    """Whatever is changed, no answer contains a value that nobody may see."""
    config = Config(data())
    written: list[journal.Record] = []
    for number, (private, more, secret, remove) in enumerate(steps):
        draft = Draft(config, 5.0)
        draft.put(
            instance(
                1,
                osparams_private=private,
                disks=("disk-1",),
                hvparams={"vnc_password": secret, "acpi": True},
            )
        )
        draft.put(drbd("disk-1", secret, number))
        draft.update_cluster(
            osparams_private_cluster={"debian": more}, hvparams={"kvm": {"spice_password": secret}}
        )
        if remove and "inst-9" in config.instances:
            draft.delete(config.instances["inst-9"])
        else:
            draft.put(instance(9, osparams_private=private))
        config = draft.result()
        record = {"serial": config.data.serial_no, "time": 5.0, "name": "x", **draft.wire()}
        written.append(jsonio.loads(jsonio.dumps(record)))
    assert MARK in jsonio.dumps(written)
    answers = [
        differences.describe(t) for record in written for t in differences.find_touched(record)
    ]
    for count in range(len(written)):
        answers += differences.merge_records(reversed(written[count:]))
    assert MARK not in jsonio.dumps(answers)
    assert answers


def test_every_kind_of_object_is_described():
    config = Config(data())
    draft = Draft(config, 5.0)
    draft.put(FilterRule(uuid="rule-1", watermark=0, priority=1, predicates=(["jobid", True],)))
    draft.put(base.replace(config.networks["net-1"], gateway="10.0.0.1"))
    draft.put(base.replace(config.groups["group-1"], networks={"net-1": {"mode": "bridged"}}))
    draft.put(base.replace(config.disks["disk-1"], size=1024))
    draft.update_cluster(cluster_name="new.example.com")
    record = {"serial": 6, "time": 5.0, "name": "x", **draft.wire()}
    found = {
        item["kind"]: item for item in map(differences.describe, differences.find_touched(record))
    }
    assert found["filter"]["change"] == "added"
    assert keys(found["network"]) == {"gateway": (None, "10.0.0.1")}
    assert keys(found["group"]) == {"networks/net-1/mode": (None, "bridged")}
    assert keys(found["disk"]) == {"size": (512, 1024)}
    assert found["disk"]["name"] == "disk/0"
    assert keys(found["cluster"]) == {"cluster_name": ("cluster.example.com", "new.example.com")}
    assert found["cluster"]["name"] == "new.example.com"
    assert cluster().uuid == found["cluster"]["uuid"]


def test_a_list_of_objects_is_compared_piece_by_piece():
    config = Config(data())
    draft = Draft(config, 5.0)
    item = config.instances["inst-1"]
    draft.put(base.replace(item, nics=(base.replace(item.nics[0], ip="10.0.0.5"),)))
    record = jsonio.loads(jsonio.dumps({"serial": 6, "time": 5.0, "name": "x", **draft.wire()}))
    found = differences.describe(next(differences.find_touched(record)))
    assert keys(found) == {"nics/0/ip": (None, "10.0.0.5")}


def test_reading_where_nothing_was_ever_kept(tmp_path):
    empty = History(Paths(tmp_path))
    assert list(empty.read_newest_first(9, 0.0)) == []
    assert empty.segments() == []
