"""What the node daemon measures, keeps in files of fixed size, and tells."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ganeti import errors
from ganeti.base.clock import SYSTEM
from ganeti.hypervisor.kvm.counters import sum_blocks
from ganeti.hypervisor.xen import xl
from ganeti.node import host_counters, rings
from ganeti.node.context import NodeContext
from ganeti.node.rings import DAY, MONTH, SERIES
from ganeti.node.sampler import NODE, Sampler, rates
from ganeti.node.samples import NodeSamples
from ganeti.rpc.samples import GuestCounters

#: The ages of files are those of the machine.
NOW = SYSTEM.now() // 3600 * 3600


class FakeClock:
    """A wall clock that can be set, and one that only grows."""

    def __init__(self) -> None:
        self.wall = NOW
        self.grown = 100.0

    def now(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.grown

    def sleep(self, seconds: float) -> None:
        self.wall += seconds
        self.grown += seconds


@pytest.fixture
def clock(context: NodeContext) -> FakeClock:
    made = FakeClock()
    context.clock = made
    return made


@pytest.fixture
def guests(context: NodeContext) -> Path:
    directory = context.paths.fake_hypervisor
    directory.mkdir(parents=True, exist_ok=True)
    listed = context.paths.ssconf("hypervisor_list")
    listed.parent.mkdir(parents=True, exist_ok=True)
    listed.write_text("fake\n")
    return directory


def row(value: float) -> list[float | None]:
    return [value] * len(SERIES)


def test_a_ring_remembers_its_length_and_no_older_lap(tmp_path: Path) -> None:
    path = tmp_path / "web1.day"
    slot = DAY.slot(NOW)
    rings.write(path, DAY, slot, row(1.0))
    assert rings.read(path, DAY, slot - 1, slot + 1) == [None, row(1.0), None]
    rings.write(path, DAY, slot + DAY.count, row(2.0))
    assert rings.read(path, DAY, slot, slot) == [None]
    assert rings.read(path, DAY, slot + DAY.count, slot + DAY.count) == [row(2.0)]
    assert path.stat().st_size == DAY.size == 8640 * 36 + 20


def test_a_ring_is_read_across_the_end_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "web1.day"
    last = DAY.count * 1000 + 2
    for slot in range(last - 5, last + 1):
        rings.write(path, DAY, slot, row(float(slot % 10)))
    found = rings.read(path, DAY, last - 5, last)
    assert found == [row(float(slot % 10)) for slot in range(last - 5, last + 1)]


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"GNTRING1", os.urandom(5000)])
def test_a_damaged_file_is_begun_again(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "web1.day"
    path.write_bytes(content)
    assert rings.read(path, DAY, 5, 6) == [None, None]
    rings.write(path, DAY, 6, row(3.0))
    assert rings.read(path, DAY, 5, 6) == [None, row(3.0)]


def test_a_file_cut_short_has_no_values_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "web1.day"
    rings.write(path, DAY, 8000, row(1.0))
    os.truncate(path, 1000)
    assert rings.read(path, DAY, 7999, 8000) == [None, None]


def test_a_link_in_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("precious")
    (tmp_path / "web1.day").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="Too many levels"):
        rings.write(tmp_path / "web1.day", DAY, 1, row(1.0))
    assert (tmp_path / "target").read_text() == "precious"


def test_rates_are_per_second_and_memory_is_as_it_is() -> None:
    before = GuestCounters(cpu=10.0, memory=1, disk_read=1000, net_send=50)
    now = GuestCounters(cpu=15.0, memory=64, disk_read=3000, net_send=10)
    found = dict(zip(SERIES, rates(before, now, 10.0), strict=True))
    assert found["cpu"] == 0.5
    assert found["memory"] == 64
    assert found["disk_read"] == 200.0
    assert found["net_send"] is None, "the counter began again"
    assert found["disk_write"] is None, "nobody counts it"
    assert set(rates(None, now, 10.0)) == {64, None}


def test_the_sampler_keeps_guests_and_the_node(
    context: NodeContext, clock: FakeClock, guests: Path
) -> None:
    (guests / "web1.example.com").write_text("0\n128\n2\n")
    sampler = Sampler(context)
    for _ in range(3):
        sampler.take()
        clock.sleep(10)
    node = NodeSamples(context, sampler)
    found = node.samples_read("web1.example.com", int(NOW), int(NOW) + 20, 10)
    assert found.start == NOW
    assert found.series["memory"] == [128 * 2**20] * 3
    assert found.series["cpu"] == [None, 0.0, 0.0]
    own = node.samples_read("", int(NOW), int(NOW) + 20, 10)
    assert all(value > 2**20 for value in own.series["memory"])
    latest = node.samples_latest()
    assert latest.guests["web1.example.com"].memory == 128 * 2**20
    assert latest.host is not None
    assert latest.host.cpus >= 1
    assert latest.time == NOW + 20


def test_a_node_below_which_xen_runs_has_the_memory_of_the_machine(
    context: NodeContext, clock: FakeClock, guests: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = Path(__file__).parents[2] / "recorded" / "xen_xl.json"
    cases = json.loads(recorded.read_text())["cases"]
    printed = {case["argv"][1]: case["stdout"] for case in reversed(cases) if not case["code"]}
    context.paths.ssconf("hypervisor_list").write_text("fake xen-pvm\n")
    monkeypatch.setattr(xl, "run", lambda words, **_how: printed[words[0]])
    sampler = Sampler(context)
    sampler.take()
    host = sampler.latest.host
    assert host is not None
    assert (host.memory_total, host.cpus) == (1279 * 2**20, 1)
    assert host.memory == (1279 - 622) * 2**20


def test_a_node_on_which_xen_does_not_run_has_the_memory_of_its_kernel(
    context: NodeContext, clock: FakeClock, guests: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context.paths.ssconf("hypervisor_list").write_text("xen-pvm\n")
    monkeypatch.setattr(xl, "PROGRAM", "/nonexistent/xl")
    sampler = Sampler(context)
    sampler.take()
    assert sampler.latest.host is not None
    assert sampler.latest.host.memory_total == host_counters.read(context.paths).memory_total


def test_averages_of_five_minutes_survive_a_restart(
    context: NodeContext, clock: FakeClock, guests: Path
) -> None:
    guest = guests / "web1.example.com"
    sampler = Sampler(context)
    for index in range(31):
        guest.write_text(f"0\n{100 if index < 15 else 200}\n1\n")
        if index == 20:
            sampler = Sampler(context)
        sampler.take()
        clock.sleep(10)
    path = rings.path_of(context.paths.samples, "web1.example.com", MONTH)
    [mean] = rings.read(path, MONTH, MONTH.slot(NOW), MONTH.slot(NOW))
    assert mean is not None
    assert mean[SERIES.index("memory")] == 150 * 2**20
    node = NodeSamples(context, sampler)
    month = node.samples_read("web1.example.com", int(NOW) - 30 * 86400, int(NOW), 3600)
    assert month.series["memory"][-1] == 150 * 2**20
    assert len(month.series["memory"]) == 30 * 24 + 1


@pytest.mark.parametrize("step", [3600.0, -3600.0, -90000.0, 40 * 86400.0])
def test_a_clock_that_steps_mixes_up_nothing(
    context: NodeContext, clock: FakeClock, guests: Path, step: float
) -> None:
    (guests / "web1.example.com").write_text("0\n128\n1\n")
    sampler = Sampler(context)
    sampler.take()
    clock.wall += step
    clock.grown += 10
    sampler.take()
    node = NodeSamples(context, sampler)
    after = int(clock.wall)
    found = node.samples_read("web1.example.com", after - 600, after, 10)
    assert [value for value in found.series["memory"] if value is not None] == [128 * 2**20]
    assert found.series["cpu"][-1] == 0.0, "the time that passed is the one of the steady clock"


def test_old_files_are_removed(context: NodeContext, clock: FakeClock, guests: Path) -> None:
    context.paths.samples.mkdir(parents=True)
    old = context.paths.samples / "gone.example.com.day"
    old.write_bytes(b"x")
    os.utime(old, (NOW - 32 * 86400, NOW - 32 * 86400))
    new = context.paths.samples / "stopped.example.com.day"
    new.write_bytes(b"x")
    os.utime(new, (NOW - 30 * 86400, NOW - 30 * 86400))
    Sampler(context).take()
    assert not old.exists()
    assert new.exists()


def test_files_follow_names(context: NodeContext, clock: FakeClock, guests: Path) -> None:
    (guests / "web1.example.com").write_text("0\n128\n1\n")
    sampler = Sampler(context)
    sampler.take()
    node = NodeSamples(context, sampler)
    node.samples_rename([("web1.example.com", "web2.example.com"), ("never.example.com", "")])
    assert not node.samples_read("web1.example.com", int(NOW), int(NOW), 10).series
    assert node.samples_read("web2.example.com", int(NOW), int(NOW), 10).series
    node.samples_rename([("web2.example.com", "")])
    assert [path.name for path in context.paths.samples.iterdir()] == [f"{NODE}.day"]


@pytest.mark.parametrize(
    ("name", "begin", "end", "step"),
    [
        ("../../etc/passwd", 0, 10, 10),
        (".node", 0, 10, 10),
        ("web1", 10, 0, 10),
        ("web1", -5, 0, 10),
        ("web1", 0, 10, 0),
        ("web1", 0, 10, 7),
        ("web1", 0, 10**9, 10),
    ],
)
def test_nonsense_is_refused(
    context: NodeContext, name: str, begin: int, end: int, step: int
) -> None:
    node = NodeSamples(context, Sampler(context))
    with pytest.raises(errors.ParameterError):
        node.samples_read(name, begin, end, step)


def test_a_full_disk_stops_no_measurement(
    context: NodeContext, clock: FakeClock, guests: Path, caplog: pytest.LogCaptureFixture
) -> None:
    context.paths.samples.parent.mkdir(parents=True, exist_ok=True)
    context.paths.samples.write_text("a file where the directory should be")
    sampler = Sampler(context)
    sampler.take()
    sampler.take()
    assert sampler.latest.host is not None
    assert sum("measurements are not kept" in text for text in caplog.messages) == 1


def test_the_kernel_is_read_as_it_writes() -> None:
    stat = "cpu  100 0 50 800 30 0 20 0 0 0\ncpu0 50 0 25 400 15 0 10 0 0 0\ncpu1 1 1 1 1 1 1 1 1\n"
    busy, cpus = host_counters.parse_stat(stat + "intr 5\n")
    assert (busy * os.sysconf("SC_CLK_TCK"), cpus) == (170, 2)
    disks = "   8 0 sda 10 1 80 5 20 2 160 7 0 9 9\n   8 1 sda1 10 1 80 5 20 2 160 7 0 9 9\n"
    assert host_counters.parse_disks(disks, ["sda"]) == (10, 40960, 20, 81920)
    net = (
        "Inter-|   Receive                            |  Transmit\n"
        " face |bytes packets errs drop fifo frame compressed multicast|bytes packets\n"
        "  eth0: 1000 10 0 0 0 0 0 0 2000 20 0 0 0 0 0 0\n    lo: 9 9 0 0 0 0 0 0 9 9 0 0 0 0\n"
    )
    assert host_counters.parse_network(net, {"eth0"}) == (1000, 10, 2000, 20)


def test_mirrors_are_told_in_bytes(context: NodeContext) -> None:
    path = Path(context.paths.local("/proc/drbd"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "version: 8.4.11 (api:1/proto:86-101)\n"
        " 3: cs:SyncSource ro:Primary/Secondary ds:UpToDate/Inconsistent C r-----\n"
        "    ns:0 nr:0 dw:0 dr:0 al:0 bm:0 lo:0 pe:0 ua:0 ap:0 ep:1 wo:f oos:1024\n"
        "\t[=>....] sync'ed: 10.5% (1/2)K\n"
    )
    [found] = host_counters.read_mirrors(context.paths)
    assert (found.minor, found.connection, found.out_of_sync) == (3, "SyncSource", 2**20)
    assert found.percent == 10.5


def test_disks_of_qemu_are_added_up() -> None:
    answer = json.loads(
        '[{"device": "", "qdev": "/machine/disk0", "stats": {"rd_bytes": 100, "wr_bytes": 7,'
        ' "rd_operations": 2, "wr_operations": 1}}, {"node-name": "file", "stats": {}}]'
    )
    assert sum_blocks(answer) == {
        "disk_read": 100,
        "disk_write": 7,
        "disk_read_ops": 2,
        "disk_write_ops": 1,
    }
