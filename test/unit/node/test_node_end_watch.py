"""Guests that are real processes end, and the node daemon sees it or expected it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_for

from ganeti import errors
from ganeti.base import process
from ganeti.hypervisor.fake import FakeHypervisor
from ganeti.hypervisor.xen import domain_ends
from ganeti.model.enums import RunState
from ganeti.node import end_watch
from ganeti.node.context import NodeContext
from ganeti.node.end_watch import EndWatch
from ganeti.rpc.objects import InstanceInfo


class Sleepers:
    """A hypervisor whose guests are processes that sleep."""

    def __init__(self) -> None:
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.broken = ""
        #: Guests that run, but whose process is not known yet.
        self.beginning: set[str] = set()

    def begin(self, name: str) -> None:
        self.children[name] = subprocess.Popen(["sleep", "1000"])

    def end(self, name: str) -> None:
        self.children[name].kill()
        self.children[name].wait()

    def guest_process(self, name: str) -> int | None:
        child = self.children.get(name)
        if child is None or child.poll() is not None or name in self.beginning:
            return None
        return child.pid

    def info(self, name: str) -> InstanceInfo | None:
        if self.broken:
            raise errors.HypervisorError(self.broken)
        child = self.children.get(name)
        if child is None or child.poll() is not None:
            return None
        return InstanceInfo(memory=1, vcpus=1, state=RunState.RUNNING)

    def info_all(self) -> dict[str, InstanceInfo]:
        infos = ((name, self.info(name)) for name in self.children)
        return {name: info for name, info in infos if info is not None}


@pytest.fixture
def guests(context: NodeContext) -> Iterator[Sleepers]:
    made = Sleepers()
    driver: Any = made
    context._hypervisors["kvm"] = driver
    context.paths.ssconf("hypervisor_list").write_text("kvm\n")
    yield made
    for name in made.children:
        made.end(name)


@pytest.fixture
def reports() -> list[str]:
    return []


@pytest.fixture
def watch(context: NodeContext, guests: Sleepers, reports: list[str]) -> Iterator[EndWatch]:
    made = EndWatch(context, reports.append)
    yield made
    made.stop()
    made.stop()


def test_it_tells_of_what_ran_before_and_of_what_began_later(
    watch: EndWatch, guests: Sleepers, reports: list[str]
) -> None:
    guests.begin("old")
    watch.start()
    with watch.expect("new", "kvm", begins=True):
        guests.begin("new")
    assert watch.names() == ["new", "old"]
    os.kill(guests.children["old"].pid, signal.SIGKILL)
    wait_for(lambda: reports == ["old"], "the old one")
    guests.end("new")
    wait_for(lambda: reports == ["old", "new"], "the new one")
    assert watch.names() == []


def test_what_a_node_call_does_is_expected(
    watch: EndWatch, guests: Sleepers, reports: list[str]
) -> None:
    guests.begin("a")
    guests.begin("b")
    watch.start()
    with watch.expect("a", "kvm"):
        guests.end("a")
    with watch.expect("b", "kvm", begins=True):
        guests.end("b")
        guests.begin("b")
    assert watch.names() == ["b"]
    watch.forget("b")
    guests.end("b")
    guests.begin("c")
    with watch.expect("c", "kvm"):
        pass
    guests.end("c")
    wait_for(lambda: reports, "the one that nobody expected")
    assert reports == ["c"]


def test_one_that_ends_within_its_start_is_told_unless_the_start_failed(
    watch: EndWatch, guests: Sleepers, reports: list[str]
) -> None:
    watch.start()
    with watch.expect("a", "kvm", begins=True):
        guests.begin("a")
        guests.end("a")
    assert reports == ["a"]
    with (
        pytest.raises(errors.HypervisorError),
        watch.expect("b", "kvm", begins=True),
    ):
        raise errors.HypervisorError("no memory")
    with watch.expect("c", "kvm"):
        pass
    assert reports == ["a"]


def test_one_whose_process_is_not_known_at_its_start_is_watched(
    watch: EndWatch, guests: Sleepers, reports: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(end_watch, "_PAUSE", 0.01)
    watch.start()
    guests.beginning = {"a", "b"}
    for name in ("a", "b"):
        with watch.expect(name, "kvm", begins=True):
            guests.begin(name)
    guests.end("a")
    wait_for(lambda: reports == ["a"], "the one whose process was never known")
    guests.beginning.clear()
    wait_for(lambda: watch._watched["b"].fd is not None, "its process to be known")
    guests.end("b")
    wait_for(lambda: reports == ["a", "b"], "the other")


def test_a_call_that_works_on_the_guest_goes_first(
    watch: EndWatch, guests: Sleepers, reports: list[str], context: NodeContext
) -> None:
    guests.begin("a")
    watch.start()
    with context.instance("a", "change of memory"):
        guests.end("a")
        wait_for(lambda: len(watch._heard) == 1, "it was heard")
        assert reports == []
    wait_for(lambda: reports == ["a"], "it is told after the call")


def test_one_that_cannot_be_looked_at_is_looked_at_again(
    watch: EndWatch, guests: Sleepers, reports: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(end_watch, "_PAUSE", 0.01)
    guests.begin("a")
    watch.start()
    guests.broken = "busy"
    guests.end("a")
    wait_for(lambda: any(each.looks > 2 for each in watch._heard), "some looks")
    assert reports == []
    guests.broken = ""
    wait_for(lambda: reports == ["a"], "it is told")


def test_a_host_that_is_shut_down_tells_nothing(
    watch: EndWatch,
    guests: Sleepers,
    reports: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(end_watch, "is_host_stopping", lambda _context: True)
    caplog.set_level("INFO")
    guests.begin("a")
    watch.start()
    guests.end("a")
    wait_for(lambda: "host is being shut down" in caplog.text, "it is seen")
    assert reports == []


def test_a_hypervisor_that_cannot_be_asked_hinders_no_other(
    context: NodeContext, guests: Sleepers, watch: EndWatch, reports: list[str]
) -> None:
    context.paths.ssconf("hypervisor_list").write_text("nonsense fake kvm\n")
    guests.begin("a")
    watch.start()
    fake = context.hypervisor("fake")
    assert isinstance(fake, FakeHypervisor)
    fake.guests.write("web1", 1, 1)
    with watch.expect("web1", "fake", begins=True):
        pass
    guests.end("a")
    fake.guests.path("web1").unlink()
    wait_for(lambda: sorted(reports) == ["a", "web1"], "both")


class TestXen:
    @pytest.fixture
    def tool(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> Callable[[str], Sequence[str]]:
        monkeypatch.setattr(process, "SAFE_PATH", f"{tmp_path}:/usr/bin:/bin")
        monkeypatch.setattr(domain_ends, "SETTLE", 0.0)

        def install(text: str) -> Sequence[str]:
            script = tmp_path / "xenstore-watch"
            script.write_text(f"#!/bin/sh\n{text}\n")
            script.chmod(0o755)
            return domain_ends.ARGV

        return install

    def test_each_line_of_the_store_is_a_reason_to_look(
        self, tool: Callable[[str], Sequence[str]]
    ) -> None:
        looks: list[int] = []
        tool('[ "$1" = @releaseDomain ] && echo "$1"; echo "$1"; exec sleep 1000')
        stop = domain_ends.watch(lambda: looks.append(1))
        wait_for(lambda: len(looks) == 2, "two looks")
        stop()

    def test_without_the_program_it_says_what_to_install(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(process, "SAFE_PATH", str(tmp_path))
        with pytest.raises(errors.HypervisorError, match="install xen-utils-common"):
            domain_ends.watch(lambda: None)

    def test_its_end_is_said(
        self, tool: Callable[[str], Sequence[str]], caplog: pytest.LogCaptureFixture
    ) -> None:
        tool("exit 0")
        stop = domain_ends.watch(lambda: None)
        wait_for(lambda: "the watcher restarts domains" in caplog.text, "a line of the log")
        stop()
