"""Nothing acknowledged is lost, nothing is half done: the configuration through crashes.

The model is a list of states; the store is cut, copied, damaged and opened again.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from examples import examples
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from small_config import make_config

from ganeti import errors
from ganeti.base import journal
from ganeti.config import store
from ganeti.config.changes import Author, Draft
from ganeti.config.store import Store
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.group import NodeGroup
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.paths import Paths

#: A file system in memory, where flushing costs nothing; the default place if there is none.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class Ticking:
    """Each look at the clock is a second later than the one before."""

    def __init__(self) -> None:
        self.time = 1_700_000_000.0

    def now(self) -> float:
        self.time += 1.0
        return self.time

    def monotonic(self) -> float:
        return self.time


def wire(config: Config) -> dict[str, Any]:
    return base.to_wire(config.data)


class Lab:
    """A store in a directory, and the list of states that it acknowledged."""

    def __init__(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="config-store-", dir=MEMORY))
        self.copies = 0
        self.paths = self._room()
        store.write_checkpoint(make_config(), self.paths)
        self.clock = Ticking()
        self.store = Store(self.paths, self.clock)
        #: every acknowledged state, and the length of the journal that ends with it
        self.states = [wire(self.store.current)]
        self.lengths = [0]

    def _room(self) -> Paths:
        self.copies += 1
        paths = Paths(self.top / str(self.copies))
        paths.data.mkdir(parents=True)
        return paths

    def close(self) -> None:
        self.store.close()
        shutil.rmtree(self.top)

    # changes -----------------------------------------------------------------------------

    def change(self, edit) -> None:
        before = self.store.current
        self.store.change("test", Author(job=len(self.states), user="alice", reason="why"), edit)
        now = wire(self.store.current)
        if self.store.current is before:
            return
        assert now["serial_no"] == self.states[-1]["serial_no"] + 1
        self.states.append(now)
        self.lengths.append(self.paths.journal_file.stat().st_size)

    def pick(self, container: str, number: int) -> Any:
        found = sorted(getattr(self.store.current.data, container).items())
        return found[number % len(found)][1] if found else None

    # crashes -----------------------------------------------------------------------------

    def copy(self, journal_bytes: bytes) -> Paths:
        """What the disk would hold after a crash, with this journal."""
        paths = self._room()
        shutil.copyfile(self.paths.config_file, paths.config_file)
        paths.journal_file.write_bytes(journal_bytes)
        return paths

    def journal_bytes(self) -> bytes:
        return self.paths.journal_file.read_bytes()

    def expected_after(self, size: int) -> dict[str, Any]:
        """The state whose record is the last whole one in ``size`` bytes of journal."""
        base_state = next(i for i in reversed(range(len(self.lengths))) if self.lengths[i] == 0)
        last = base_state
        for index in range(base_state, len(self.states)):
            if self.lengths[index] <= size:
                last = index
        return self.states[last]

    def move_to(self, paths: Paths, kept: dict[str, Any]) -> None:
        """Go on with a copy, as after a reboot; what was lost with it is forgotten."""
        self.store.close()
        self.paths = paths
        self.store = Store(paths, self.clock)
        keep = self.states.index(kept) + 1
        self.states, self.lengths = self.states[:keep], self.lengths[:keep]


@examples(
    30,
    stateful_step_count=40,
    database=None,
    suppress_health_check=list(HealthCheck),
)
class StoreLife(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.lab = Lab()
        self.number = 0

    # changes that succeed

    @rule()
    def add_instance(self):
        self.number += 1
        new = Instance(uuid=f"inst-{self.number}", name=f"web{self.number}", primary_node="node-0")
        self.lab.change(lambda draft: draft.add_instance(new, []))

    @rule()
    def add_node(self):
        self.number += 1
        new = Node(
            uuid=f"node-{self.number}",
            name=f"node{self.number}",
            primary_ip="192.0.2.3",
            secondary_ip="192.0.2.3",
            group="group-0",
        )
        self.lab.change(lambda draft: draft.put(new))

    @rule(number=st.integers(0, 99), tag=st.text(min_size=1, max_size=4))
    def tag_something(self, number, tag):
        for container in ("instances", "nodes"):
            found = self.lab.pick(container, number)
            if found is not None:
                before = found.serial_no
                self.lab.change(lambda draft, obj=found: draft.update(obj, tags=(tag,)))
                current = getattr(self.lab.store.current.data, container)[found.uuid]
                assert current.serial_no == before + 1
                assert current.tags == (tag,)
                return

    @rule(number=st.integers(0, 99))
    def remove_instance(self, number):
        found = self.lab.pick("instances", number)
        if found is not None:
            self.lab.change(lambda draft: draft.remove_instance(found))
            assert found.uuid not in self.lab.store.current.instances

    @rule()
    def take_port(self):
        ports = []
        self.lab.change(lambda draft: ports.append(draft.allocate_port()))
        assert self.lab.store.current.cluster.highest_used_port == ports[0]

    @rule(number=st.integers(0, 99))
    def change_several(self, number):
        found = self.lab.pick("nodes", number)

        def edit(draft: Draft) -> None:
            draft.update_cluster(tags=(f"t{number}",))
            draft.update(found, tags=(f"t{number}",))

        self.lab.change(edit)

    # changes that do not

    @rule(kind=st.sampled_from(["raise", "nothing", "gone"]))
    def no_change(self, kind):
        lab, before = self.lab, self.lab.journal_bytes()

        def edit(draft: Draft) -> None:
            if kind == "nothing":
                return
            draft.update_cluster(tags=("never",))
            if kind == "gone":
                draft.update(NodeGroup(uuid="gone", name="gone"), tags=("x",))
            raise errors.OpPrereqError("second thoughts")

        if kind == "nothing":
            lab.change(edit)
        else:
            with pytest.raises((errors.OpPrereqError, errors.ConfigurationError)):
                lab.store.change("test", Author(), edit)
        assert lab.journal_bytes() == before
        assert wire(lab.store.current) == lab.states[-1]

    # what happens to disks

    @rule()
    def checkpoint(self):
        self.lab.store.checkpoint()
        self.lab.lengths[-1] = 0
        assert self.lab.journal_bytes() == b""

    @rule()
    def stop_and_start(self):
        lab = self.lab
        lab.store.close()
        assert lab.journal_bytes() == b""
        lab.store = Store(lab.paths, lab.clock)
        lab.lengths[-1] = 0

    @rule()
    def kill(self):
        """The process dies between two changes: all of them are there."""
        paths = self.lab.copy(self.lab.journal_bytes())
        assert wire(store.read_config(paths)) == self.lab.states[-1]
        self.lab.move_to(paths, self.lab.states[-1])
        assert wire(self.lab.store.current) == self.lab.states[-1]

    @rule(part=st.floats(0, 1), zeros=st.integers(0, 50))
    def kill_while_writing(self, part, zeros):
        """A record that was never acknowledged is torn anywhere: it did not happen."""
        lab = self.lab
        record = {
            "serial": lab.states[-1]["serial_no"] + 1,
            "time": 1.0,
            "name": "torn",
            "delete": {"nodes": ["node-0"]},
        }
        torn = journal.encode(record)[:-1]
        whole = lab.journal_bytes()
        paths = lab.copy(whole + torn[: int(part * len(torn))] + b"\0" * zeros)
        lab.move_to(paths, lab.states[-1])
        assert lab.journal_bytes() == whole  # the rest is cut off
        assert wire(lab.store.current) == lab.states[-1]

    @rule(part=st.floats(0, 1), go_on=st.booleans())
    def cut_anywhere(self, part, go_on):
        """Whatever byte the journal ends with, the state is one that there was."""
        lab = self.lab
        whole = lab.journal_bytes()
        size = int(part * len(whole))
        expected = lab.expected_after(size)
        paths = lab.copy(whole[:size])
        assert wire(store.read_config(paths)) == expected
        assert paths.journal_file.read_bytes() == whole[:size]  # reading changes nothing
        if go_on:
            lab.move_to(paths, expected)

    @rule()
    def old_journal_beside_a_newer_checkpoint(self):
        """A crash between writing the checkpoint and emptying the journal."""
        lab = self.lab
        paths = lab.copy(lab.journal_bytes())
        store.write_checkpoint(lab.store.current, paths)
        assert wire(store.read_config(paths)) == lab.states[-1]

    @rule(where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
    def damage(self, where, bit):
        """One flipped bit in what was acknowledged: refused, and nothing is touched."""
        lab = self.lab
        raw = bytearray(lab.journal_bytes()[:-1])
        if not raw:
            return
        position = int(where * len(raw))
        raw[position] ^= 1 << bit
        paths = lab.copy(bytes(raw) + b"\n")
        if bytes(raw).count(b"\n") < lab.journal_bytes().count(b"\n") - 1 or b"\0" in raw:
            return  # two lines became one, or it looks like a hole in the last one
        before = (paths.config_file.read_bytes(), paths.journal_file.read_bytes())
        if bytes(raw).lower() == lab.journal_bytes()[:-1].lower():
            return  # a letter of a checksum in upper case is not a damage
        with pytest.raises(errors.ConfigurationError, match="is damaged at line"):
            Store(paths, lab.clock)
        assert (paths.config_file.read_bytes(), paths.journal_file.read_bytes()) == before

    @rule(number=st.integers(0, 9))
    def drop_record(self, number):
        """A whole line is gone from the middle: refused, as later changes build on it."""
        lab = self.lab
        lines = lab.journal_bytes().splitlines(keepends=True)
        if len(lines) < 2:
            return
        del lines[number % (len(lines) - 1)]
        paths = lab.copy(b"".join(lines))
        with pytest.raises(errors.ConfigurationError, match="continues with serial"):
            store.read_config(paths)

    @invariant()
    def acknowledged(self):
        if hasattr(self, "lab"):
            lab = self.lab
            assert wire(lab.store.current) == lab.states[-1]
            serials = [state["serial_no"] for state in lab.states]
            assert serials == sorted(set(serials))

    def teardown(self):
        if hasattr(self, "lab"):
            lab = self.lab
            # the documented file alone is enough after a clean stop
            lab.store.close()
            lab.paths.journal_file.unlink()
            assert wire(store.read_config(lab.paths)) == lab.states[-1]
            shutil.rmtree(lab.top)


TestStoreLife = StoreLife.TestCase
