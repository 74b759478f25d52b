"""Named changes: what readers see, what the disk has, and what happens when it is full."""

from __future__ import annotations

import json
import threading

import pytest
from config_samples import disk, full_disk, instance, node

from ganeti import constants, errors
from ganeti.config import store as store_module
from ganeti.config.changes import Author
from ganeti.config.store import Store, read_config
from ganeti.model.group import NodeGroup

WHO = Author(job=12, user="alice", reason="moving house")


def records(root) -> list[dict]:
    lines = root.journal_file.read_bytes().splitlines()
    return [json.loads(line.partition(b" ")[2]) for line in lines]


def test_a_change_is_seen_at_once_and_says_who_made_it(store, root):
    before = store.current
    given = store.change("rename", WHO, lambda d: d.put(node(4)) or "returned")
    assert given == "returned"
    assert store.current.node("node4").uuid == "node-4"
    assert "node-4" not in before.nodes  # who read before sees what was before
    (record,) = records(root)
    assert {k: record[k] for k in ("serial", "name", "job", "user", "reason", "time")} == {
        "serial": 6,
        "name": "rename",
        "job": 12,
        "user": "alice",
        "reason": "moving house",
        "time": 1_700_000_000.5,
    }


def test_serials_and_times_tell_what_changed(store, clock):
    store.change("add", WHO, lambda d: d.put(node(4)))
    added = store.current.nodes["node-4"]
    assert (added.serial_no, added.ctime, added.mtime) == (1, clock.time, clock.time)
    clock.time += 10
    untouched = store.current.nodes["node-1"]
    store.change("tag", WHO, lambda d: d.update(added, tags=("x",)))
    changed = store.current.nodes["node-4"]
    assert (changed.serial_no, changed.ctime, changed.mtime) == (2, added.ctime, clock.time)
    assert store.current.nodes["node-1"] is untouched
    assert store.current.data.serial_no == 7


def test_two_changes_of_one_object_in_one_go_count_once(store):
    def edit(draft):
        draft.update(store.current.nodes["node-2"], tags=("a",))
        draft.update(store.current.nodes["node-2"], drained=True)
        draft.update_cluster(tags=("a",))
        draft.update_cluster(mac_prefix="aa:00:01")

    store.change("both", WHO, edit)
    changed = store.current.nodes["node-2"]
    assert (changed.tags, changed.drained, changed.serial_no) == (("a",), True, 2)
    assert store.current.cluster.serial_no == 2
    assert store.current.cluster.tags == ("a",)


def test_an_update_builds_on_the_newest_version(store):
    old = store.current.nodes["node-2"]
    store.change("one", WHO, lambda d: d.update(old, tags=("a",)))
    store.change("two", WHO, lambda d: d.update(old, drained=True))
    assert store.current.nodes["node-2"].tags == ("a",)


def test_what_is_gone_cannot_be_updated(store):
    gone = store.current.nodes["node-2"]
    with pytest.raises(errors.ConfigurationError, match="node-2 was removed meanwhile"):
        store.change("x", WHO, lambda d: (d.delete(gone), d.update(gone, tags=("a",))))
    store.change("delete", WHO, lambda d: d.delete(gone))
    with pytest.raises(errors.ConfigurationError, match="node-2 was removed meanwhile"):
        store.change("x", WHO, lambda d: d.update(gone, tags=("a",)))


def test_a_change_that_raises_changes_nothing(store, root):
    def edit(draft):
        draft.put(node(4))
        raise errors.OpPrereqError("no")

    before = store.current
    with pytest.raises(errors.OpPrereqError):
        store.change("x", WHO, edit)
    assert store.current is before
    assert records(root) == []
    store.change("x", WHO, lambda d: None)  # nothing to do leaves no trace either
    assert store.current is before


def test_an_instance_comes_and_goes_with_its_disks_and_port(store):
    made = instance(2, disks=("disk-2",), network_port=11003)
    store.change("add", WHO, lambda d: d.add_instance(made, [disk("disk-2", "web2")]))
    assert store.current.disks["disk-2"].serial_no == 1
    with pytest.raises(errors.ConfigurationError, match=r"web2\.example\.com exists already"):
        store.change("again", WHO, lambda d: d.add_instance(instance(9, name=made.name), []))
    store.change("remove", WHO, lambda d: d.remove_instance(store.current.instances["inst-2"]))
    assert "inst-2" not in store.current.instances
    assert "disk-2" not in store.current.disks
    assert store.current.cluster.tcpudp_port_pool == (11003,)
    ports = [store.change("port", WHO, lambda d: d.allocate_port()) for _ in range(3)]
    assert ports == [11003, 11000, 11001]


def test_ports_come_to_an_end(store):
    store.change(
        "x", WHO, lambda d: d.update_cluster(highest_used_port=constants.LAST_DRBD_PORT - 1)
    )
    assert store.change("x", WHO, lambda d: d.allocate_port()) == constants.LAST_DRBD_PORT
    with pytest.raises(errors.ConfigurationError, match="no TCP port is left"):
        store.change("x", WHO, lambda d: d.allocate_port())


def test_a_node_leaves_with_its_certificate(store):
    store.change("x", WHO, lambda d: d.remove_node(store.current.nodes["node-1"]))
    assert store.current.cluster.candidate_certs == {}


def test_many_threads_change_and_nothing_is_lost(store, root):
    """Every change sees all before it; every reader sees whole changes only."""
    torn: list[object] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            now = store.current
            tags = now.cluster.tags
            if now.nodes["node-2"].tags != tags and now.data.serial_no > 5:
                torn.append((now.data.serial_no, tags))

    def change(number: int) -> None:
        for turn in range(25):

            def edit(draft, tag=f"{number}-{turn}"):
                draft.update_cluster(tags=(tag,), highest_used_port=draft.allocate_port())
                draft.update(draft.config.nodes["node-2"], tags=(tag,))

            store.change("tag", Author(job=number), edit)

    threads = [threading.Thread(target=change, args=(n,)) for n in range(1, 9)]
    reader = threading.Thread(target=read)
    for thread in (*threads, reader):
        thread.start()
    for thread in threads:
        thread.join(30)
    stop.set()
    reader.join(5)
    assert torn == []
    assert store.current.cluster.highest_used_port == 10999 + 200
    assert store.current.data.serial_no == 205
    assert [r["serial"] for r in records(root)] == list(range(6, 206))
    assert read_config(root).data == store.current.data


def test_listeners_hear_of_each_round(store):
    heard: list[tuple[int, int]] = []
    store.add_listener(lambda a, b: heard.append((a.data.serial_no, b.data.serial_no)))
    store.change("one", WHO, lambda d: d.put(node(4)))
    store.change("two", WHO, lambda d: d.put(node(5)))
    assert heard == [(5, 6), (6, 7)]


def test_a_full_disk_refuses_the_change_and_the_next_one_works(store, root):
    store.change("one", WHO, lambda d: d.put(node(4)))
    before, size = store.current, root.journal_file.stat().st_size
    with (
        full_disk(root.journal_file),
        pytest.raises(errors.FileError, match="nothing was changed: cannot write"),
    ):
        store.change("two", WHO, lambda d: d.put(node(5)))
    assert store.current is before
    assert root.journal_file.stat().st_size == size
    store.change("three", WHO, lambda d: d.put(node(6)))
    assert "node-5" not in store.current.nodes
    assert read_config(root).data == store.current.data
    assert store.current.data.serial_no == 7


def test_changes_built_on_a_lost_one_are_lost_too_and_told_so(store, root):
    """Many threads change while the disk is full, then it is not: the journal has no gap."""
    ends: list[str] = []

    def change(number: int) -> None:
        try:
            store.change("x", WHO, lambda d: d.put(node(number)))
            ends.append(f"node-{number}")
        except (errors.ConfigurationError, errors.FileError):
            pass

    with full_disk(root.journal_file):
        threads = [threading.Thread(target=change, args=(n,)) for n in range(10, 30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert ends == []
    assert store.current.data.serial_no == 5
    for number in range(30, 33):
        change(number)
    assert ends == ["node-30", "node-31", "node-32"]
    assert set(read_config(root).nodes) == {"node-1", "node-2", "node-3", *ends}


# checkpoints -------------------------------------------------------------------------------


def test_a_clean_stop_leaves_one_documented_file(root, clock):
    store = Store(root, clock)
    store.change("x", WHO, lambda d: d.put(node(4)))
    store.close()
    assert root.journal_file.read_bytes() == b""
    stored = json.loads(root.config_file.read_text())
    assert stored["nodes"]["node-4"]["name"] == "node4.example.com"
    assert stored["serial_no"] == 6
    assert "rsahostkeypub" in stored["cluster"]
    assert "dsahostkeypub" not in stored["cluster"]  # unset, so left out
    assert root.config_file.stat().st_mode & 0o777 == 0o640


def test_a_long_journal_becomes_a_checkpoint_by_itself(root, clock, monkeypatch):
    monkeypatch.setattr(store_module, "CHECKPOINT_AFTER", 1000)
    store = Store(root, clock)
    for number in range(10, 40):
        store.change("x", WHO, lambda d, n=number: d.put(node(n)))
    for thread in threading.enumerate():
        if thread.name == "checkpoint":
            thread.join(10)
    assert json.loads(root.config_file.read_text())["serial_no"] > 5
    assert read_config(root).data == store.current.data
    store.close()


def test_checkpoints_while_others_change_lose_nothing(store, root):
    done = threading.Event()

    def checkpoints() -> None:
        while not done.is_set():
            store.checkpoint()

    thread = threading.Thread(target=checkpoints)
    thread.start()
    for number in range(10, 110):
        store.change("x", WHO, lambda d, n=number: d.put(node(n)))
    done.set()
    thread.join(10)
    assert read_config(root).data == store.current.data
    assert store.current.data.serial_no == 105


def test_a_checkpoint_that_cannot_be_written_leaves_the_journal(root, clock, caplog):
    store = Store(root, clock)
    store.change("x", WHO, lambda d: d.put(node(4)))
    with full_disk(root.journal_file, more=0):
        store.close()
    assert "the journal has everything" in caplog.text
    assert "node-4" in read_config(root).nodes


# refusals ----------------------------------------------------------------------------------


def check_refused(root, kind=errors.ConfigurationError) -> str:
    before = {p: p.read_bytes() for p in root.data.iterdir()}
    with pytest.raises(kind) as caught:
        Store(root)
    assert {p: p.read_bytes() for p in root.data.iterdir()} == before
    return errors.text(caught.value)


def test_no_configuration(root):
    root.config_file.unlink()
    assert "not a master candidate of any cluster" in check_refused(root)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": "3"}', '"text"'])
def test_a_file_that_is_no_configuration(root, content):
    root.config_file.write_text(content)
    assert str(root.config_file) in check_refused(root)


def test_a_configuration_of_another_version(root):
    raw = json.loads(root.config_file.read_text())
    raw["version"] = 2_090_000
    root.config_file.write_text(json.dumps(raw))
    assert check_refused(root, errors.ConfigVersionMismatch) == (
        "the configuration is of version 2.9, this software needs 3.2; cfgupgrade brings it there"
    )


def test_a_configuration_of_a_version_that_can_be_beside_this_one(root):
    raw = json.loads(root.config_file.read_text())
    raw["version"] = 3_030_000
    root.config_file.write_text(json.dumps(raw))
    said = check_refused(root, errors.ConfigVersionMismatch)
    assert said.endswith("'ganeti-daemon-util switch-version 3.3' uses that version on this node")


def test_a_configuration_with_a_wrong_value_is_told_where(root):
    raw = json.loads(root.config_file.read_text())
    raw["nodes"]["node-2"]["offline"] = "maybe"
    root.config_file.write_text(json.dumps(raw))
    text = check_refused(root)
    assert "node" in text
    assert "offline" in text


def write_journal(root, *changes: dict) -> None:
    from ganeti.base import journal

    root.journal_file.write_bytes(b"".join(journal.encode(change) for change in changes))


def test_a_journal_of_another_state(root):
    write_journal(root, {"serial": 9, "time": 1.0, "name": "x"})
    assert "continues with serial 9" in check_refused(root)


def test_a_journal_of_a_newer_version(root):
    write_journal(root, {"serial": 6, "time": 1.0, "name": "x", "put": {"dreams": {"a": {}}}})
    assert "'dreams', which this version does not know" in check_refused(root)
    write_journal(root, {"serial": 6, "time": 1.0, "name": "x", "delete": {"dreams": ["a"]}})
    assert "'dreams', which this version does not know" in check_refused(root)


def test_a_journal_with_a_wrong_object(root):
    write_journal(
        root, {"serial": 6, "time": 1.0, "name": "x", "put": {"nodes": {"a": {"uuid": 5}}}}
    )
    assert "nodes a" in check_refused(root)


def test_reading_needs_no_lock_and_changes_nothing(store, root):
    store.change("x", WHO, lambda d: d.put(NodeGroup(uuid="group-2", name="second")))
    whole = root.journal_file.read_bytes()
    with root.journal_file.open("ab") as journal:
        journal.write(b'12345678 {"half')
    assert "group-2" in read_config(root).groups
    assert root.journal_file.read_bytes().startswith(whole + b"1234")
    with root.journal_file.open("r+b") as journal:
        journal.truncate(len(whole))
