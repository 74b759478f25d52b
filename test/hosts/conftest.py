"""Scenarios on real hosts: emulated machines with this project's daemons, LVM, DRBD and QEMU.

``make check-hosts`` runs all, modules side by side in three processes with machines of their own;
of a plain ``make check`` only the module ``test_one_host.py`` is a part. How to write a scenario:
``doc/design/hosts.md``.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import cluster as lab_cluster
from lab import faults
from lab.place import Unavailable, run_directory

HERE = Path(__file__).parent
#: What a plain run of all tests takes from here, and what runs only when it is named.
SHORT = "test_one_host.py"
LONG = ("test_hosts_burnin.py", "test_hosts_recovery.py")
#: Seconds for one scenario, with the making of the cluster.
LIMIT = 900
#: What each process runs, one after the other and, but for Xen, with the same cluster. While the
#: first one makes a cluster, the others do what needs none.
GROUPS = (
    ("mirrors", "cluster"),
    ("containers", "kvm", "crashes"),
    ("drbd", "lvm", "xen"),
)
GROUP_OF = {
    f"test_hosts_{module}.py": (number, place)
    for number, group in enumerate(GROUPS)
    for place, module in enumerate(group)
}


def is_asked_for(config: pytest.Config) -> bool:
    """Whether this directory, or a file in it, was named on the command line."""
    asked = [(Path.cwd() / word.partition("::")[0]).resolve() for word in config.args]
    return any(path.is_relative_to(HERE) for path in asked)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A run of all tests takes the short module only."""
    if collection_path.parent != HERE or collection_path.suffix != ".py":
        return None
    if any((Path.cwd() / word.partition("::")[0]).resolve() == HERE for word in config.args):
        # The other modules do all of what the short one does.
        return True if collection_path.name in (SHORT, *LONG) else None
    return None if collection_path.name == SHORT or is_asked_for(config) else True


def pytest_configure(config: pytest.Config) -> None:
    if is_asked_for(config):
        faults.begin()
        ending = contextlib.ExitStack()
        os.environ[lab_cluster.MADE] = str(ending.enter_context(run_directory()))
        config.add_cleanup(ending.close)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.timeout(LIMIT))
            # A group is one after the other in the same process.
            group, _place = GROUP_OF.get(item.path.name, (-1, 0))
            item.add_marker(pytest.mark.together(f"hosts {group}"))
    items.sort(key=lambda item: GROUP_OF.get(item.path.name, (-1, 0)))


class Holder:
    """The cluster of this run; made when it is wanted first, and anew after a failure."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._cluster: lab_cluster.Cluster | None = None

    def get(self) -> lab_cluster.Cluster:
        if self._cluster is None:
            self._cluster = self._stack.enter_context(lab_cluster.running())
        return self._cluster

    def drop(self) -> None:
        self._cluster = None
        self._stack.close()


@pytest.fixture(scope="session")
def holder() -> Iterator[Holder]:
    held = Holder()
    try:
        yield held
    finally:
        held.drop()


@pytest.fixture
def cluster(holder: Holder, request: pytest.FixtureRequest) -> Iterator[lab_cluster.Cluster]:
    """A cluster of three nodes without instances; a scenario that passes leaves it like that.

    A scenario that fails leaves it to the bin: the next one gets a new one.
    """
    try:
        made = holder.get()
    except Unavailable as err:
        pytest.skip(str(err))
    failed = request.session.testsfailed
    yield made
    if request.session.testsfailed > failed:
        for node in made.nodes:
            with contextlib.suppress(Exception):  # what cannot be read any more is not told
                print(f"--- {node}\n{node.log('', 60)}")
        holder.drop()


@pytest.fixture(scope="session")
def book() -> Iterator[faults.Book]:
    """Where scenarios write down what a fault did; becomes ``doc/reference/faults.md``."""
    made = faults.Book()
    yield made
    made.close()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Each scenario's name and seconds, at once: a run takes minutes."""
    name = report.nodeid.removeprefix("test/hosts/")
    if name == report.nodeid:
        return
    if report.when == "call" or report.outcome != "passed":
        print(f"\n{report.outcome:8} {report.duration:6.1f} s  {name}", flush=True)
    elif report.duration > 1:
        print(f"\n{report.when:8} {report.duration:6.1f} s  {name}", flush=True)
    if report.failed and (crash := getattr(report.longrepr, "reprcrash", None)) is not None:
        print(crash.message[:1000], flush=True)  # the rest comes at the end


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if not is_asked_for(config):
        return
    counts = {
        name: len(terminalreporter.stats.get(name, []))
        for name in ("passed", "failed", "error", "skipped")
    }
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    failed = counts["failed"] + counts["error"]
    terminalreporter.write_line(f"{counts['passed']} passed, {failed} failed{skipped}")
