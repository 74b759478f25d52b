"""ganeti-mond: what collectors report, and which requests are answered."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import contract
import loop_lvm
import pytest
from forms import find_difference

from ganeti import errors
from ganeti.htools import mond as htools_mond
from ganeti.mond import disks, processor, registry
from ganeti.mond.app import MonitorApp
from ganeti.mond.cluster import ClusterFacts
from ganeti.mond.collector import Code, Node, NothingMeasured, SamplingCollector, find_worst, status
from ganeti.mond.sampler import Sampler
from ganeti.net.http_server.server import HttpServer
from ganeti.paths import Paths

RECORDED = Path(__file__).parents[2] / "recorded" / "drbd"
STAT = """\
cpu  100 0 100 800 0 0 0 0 0 0
cpu0 50 0 50 300 100 0 0 0 0 0
cpu1 50 0 50 400 0 0 0 0 7 7
intr 12345
"""


class SetClock:
    def __init__(self) -> None:
        self.time = 1_700_000_000.0

    def now(self) -> float:
        return self.time

    monotonic = now

    def sleep(self, seconds: float) -> None:
        self.time += seconds


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def node(tmp_path: Path, clock: SetClock, monkeypatch: pytest.MonkeyPatch) -> Node:
    """A node whose kernel is files below a directory, and which has no LVM."""
    monkeypatch.setenv("GANETI_ROOTDIR", str(tmp_path))
    paths = Paths(tmp_path)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "stat").write_text(STAT)
    (tmp_path / "proc" / "diskstats").write_text("   8 0 sda 1 2 3 4 5 6 7 8 9 10 11 0 0 0 0\n")
    paths.data.mkdir(parents=True)
    return Node(paths, ClusterFacts(paths, "node1.example.com"), clock, tmp_path / "proc")


# processors --------------------------------------------------------------------------------------


def test_ticks_of_processors() -> None:
    busy, passed = processor.parse_stat(STAT)
    assert passed == {"cpu0": 500.0, "cpu1": 500.0}
    assert busy == {"cpu0": 100.0, "cpu1": 100.0}


def test_the_average_of_the_last_minute(node: Node, clock: SetClock) -> None:
    collector = processor.CpuAverageLoad(node)
    with pytest.raises(NothingMeasured, match="no two measurements"):
        collector.data()
    for step in range(25):
        busy = 10 * step if step > 10 else 0
        line = f"{busy} 0 0 {100 * step - busy} 0 0 0 0"
        (node.proc / "stat").write_text(f"cpu0 {line}\ncpu1 {0} 0 0 {100 * step} 0 0 0 0\n")
        collector.sample()
        clock.time += 5
    found = collector.data()
    assert found["cpu_number"] == 2
    assert found["cpus"] == [pytest.approx(0.1, abs=0.01), 0.0]
    assert found["cpu_total"] == sum(found["cpus"])
    assert len(collector._kept) <= 14


def test_domains_of_xen(node: Node, clock: SetClock, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter((("10.0", "5.0"), ("12.5", "6.0")))

    def answer(_words: list[str]) -> str:
        web, root = next(times)
        head = "Name                                        ID   Mem VCPUs\tState\tTime(s)\n"
        return (
            f"{head}Domain-0      0  2048     4     r-----     {root}\n"
            f"web1.example.com      1  512     1     -b----     {web}\n"
        )

    monkeypatch.setattr(processor.xl, "run", answer)
    collector = processor.XenCpuAverageLoad(node)
    assert not collector.is_useful()
    (node.proc / "xen").mkdir()
    (node.proc / "xen" / "capabilities").write_text("control_d\n")
    assert collector.is_useful()
    collector.sample()
    clock.time += 5
    collector.sample()
    assert collector.data() == {"Domain-0": 0.2, "web1.example.com": 0.5}


def test_instances_of_xen(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = (
        "Name                                        ID   Mem VCPUs\tState\tTime(s)\n"
        "Domain-0      0  2048     4     r-----     5.0\n"
        "web1      1  512     1     -b----     1.0\n"
    )
    uptime = "Name                                ID Uptime\nweb1      1 2:03:04\n"
    monkeypatch.setattr(processor.xl, "run", lambda words: listed if words == ["list"] else uptime)
    node.facts.instances = (
        {"name": "web1", "uuid": "u1", "admin_state": "up", "hypervisor": "xen-pvm", "mtime": 7.5},
        {"name": "web2", "uuid": "u2", "admin_state": "up", "hypervisor": "xen-hvm", "mtime": 8.5},
        {"name": "web3", "uuid": "u3", "admin_state": "down", "hypervisor": "xen-pvm"},
        {"name": "other", "uuid": "u4", "admin_state": "up", "hypervisor": "kvm"},
    )
    reasons = node.paths.instance_reason
    reasons.mkdir(parents=True)
    (reasons / "web1").write_text('[["gnt:user", "test", 1]]')
    [report] = [one for one in registry.create(node).values() if one.name == "inst-status-xen"]
    data = report.data()
    assert data["status"]["code"] == Code.BAD
    assert data["status"]["message"] == "instance web2 is shutdown, and should be up"
    first, second, third = data["instances"]
    assert first == {
        "name": "web1",
        "uuid": "u1",
        "adminState": "up",
        "actualState": "blocked",
        "uptime": "2:03:04",
        "mtime": 7.5,
        "stateReason": [["gnt:user", "test", 1]],
        "status": {"code": 0, "message": ""},
    }
    assert (second["actualState"], second["uptime"], second["stateReason"]) == (
        "shutdown",
        None,
        [],
    )
    assert third["status"]["code"] == Code.OK


# disks -------------------------------------------------------------------------------------------


def test_counters_of_disks(node: Node) -> None:
    [row] = disks.DiskStatistics(node).data()
    assert row == {
        "major": 8, "minor": 0, "name": "sda", "readsNum": 1, "mergedReads": 2, "secRead": 3,
        "timeRead": 4, "writes": 5, "mergedWrites": 6, "secWritten": 7, "timeWrite": 8, "ios": 9,
        "timeIO": 10, "wIOmillis": 11,
    }  # fmt: skip


def test_logical_volumes() -> None:
    row = dict.fromkeys(disks._TEXTS, "x") | dict.fromkeys(disks._NUMBERS, "3")
    row |= {"lv_tags": "a,originstname+web1.example.com", "lv_size": "1073741824", "lv_major": "-1"}
    bare = {**row, "lv_tags": "", "lv_kernel_major": ""}
    text = json.dumps({"report": [{"seg": [row]}, {"seg": [bare]}]})
    first, second = disks.parse_volumes(text)
    assert (first["instance"], first["size"], first["major"]) == ("web1.example.com", 2**30, -1)
    assert (second["instance"], second["kernel_major"]) == (None, 0)
    assert set(first) == {
        "uuid", "name", "attr", "major", "minor", "kernel_major", "kernel_minor", "size",
        "seg_count", "tags", "modules", "vg_uuid", "vg_name", "segtype", "seg_start",
        "seg_start_pe", "seg_size", "seg_tags", "seg_pe_ranges", "devices", "instance",
    }  # fmt: skip
    for wrong in ("", "{}", '{"report": [7]}', '{"report": [{"seg": [{}]}]}'):
        with pytest.raises(errors.BlockDeviceError):
            disks.parse_volumes(wrong)


def test_volumes_of_real_lvm(node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop_lvm.skip_if_unavailable()
    with loop_lvm.loop_disks(tmp_path / "lvm", 24) as found:
        found.group()
        tag = ("--addtag", "originstname+web1.example.com")
        found.lvm("lvcreate", "-n", "disk0", "-L", "8m", "-Zn", "-Wn", *tag, "xenvg")
        monkeypatch.setenv("LVM_SYSTEM_DIR", str(found.home))
        [volume] = disks.LogicalVolumes(node).data()
    assert (volume["name"], volume["vg_name"], volume["size"]) == ("disk0", "xenvg", 8 * 2**20)
    assert (volume["instance"], volume["segtype"]) == ("web1.example.com", "linear")


def read_recorded(file: str) -> list[str]:
    return [item["text"] for item in json.loads((RECORDED / file).read_text())["proc"]]


def test_every_recorded_state_of_drbd_is_understood() -> None:
    for text in (*read_recorded("8.4.11.json"), *read_recorded("older.json")):
        found = disks.parse_drbd(text, {})
        assert found["versionInfo"]["version"]
        assert len(found["device"]) == text.count(" cs:")


def test_a_mirror_that_is_well_and_one_that_is_copied() -> None:
    text = next(text for text in read_recorded("8.4.11.json") if "SyncTarget" in text)
    found = disks.parse_drbd(text, {2: "web1.example.com"})
    assert found["versionInfo"] == {
        "version": "8.4.11",
        "api": "1",
        "proto": "86-101",
        "srcversion": "F73C670A7EC572DB9CF3E5B",
    }
    well, bare, copied = found["device"]
    assert well["status"] == {"code": 0, "message": ""}
    assert well["perfIndicators"]["writeOrder"] == "f"
    assert bare == {
        "minor": 1,
        "connectionState": "Unconfigured",
        "status": {"code": 0, "message": ""},
        "instance": None,
    }
    assert (copied["instance"], copied["replicationProtocol"]) == ("web1.example.com", "C")
    assert (copied["localRole"], copied["remoteRole"]) == ("Secondary", "Primary")
    assert copied["perfIndicators"]["outOfSync"] == 40960
    assert copied["syncStatus"] == {
        "percentage": 60.0,
        "progress": "40960/98304",
        "unit": "KB",
        "timeToFinish": "0:00:07",
        "speed": 57344,
    }
    text = "minor 2 is SyncTarget, Inconsistent/UpToDate"
    assert found["status"] == copied["status"] == {"code": Code.REPAIRING, "message": text}


def test_a_mirror_that_is_alone_is_bad() -> None:
    text = next(text for text in read_recorded("8.4.11.json") if "StandAlone" in text)
    assert disks.parse_drbd(text, {})["status"]["code"] == Code.BAD


def test_the_worst_part_counts() -> None:
    parts = [status(Code.OK), status(Code.REPAIRING, "a"), status(Code.BAD, "b")]
    assert find_worst(parts) == {"code": 4, "message": "a; b"}
    assert find_worst([]) == {"code": 0, "message": ""}


# requests ----------------------------------------------------------------------------------------


@pytest.fixture
def app(node: Node) -> MonitorApp:
    collectors = registry.create(node)
    cpu = collectors["cpu-avg-load"]
    assert isinstance(cpu, SamplingCollector)
    cpu.sample()
    (node.proc / "stat").write_text(STAT.replace(" 300 ", " 350 ").replace(" 400 ", " 425 "))
    cpu.sample()
    return MonitorApp(collectors, node.facts)


def get(app: MonitorApp, path: str, method: str = "GET") -> tuple[str, Any]:
    seen: list[Any] = []
    environ = {"REQUEST_METHOD": method, "PATH_INFO": path}
    body = b"".join(app(environ, lambda line, headers: seen.append((line, dict(headers)))))
    [(line, headers)] = seen
    assert "Content-Type" not in headers
    if line.startswith("200"):
        return line[:3], json.loads(body)
    return line[:3], body.decode()


def test_the_documented_paths(app: MonitorApp) -> None:
    assert get(app, "/") == ("200", [1])
    assert get(app, "/1/") == get(app, "/1") == ("200", None)
    listed = [["cpu-avg-load", "default", 0], ["diskstats", "storage", 0], ["lv", "storage", 0]]
    assert get(app, "/1/list/collectors") == ("200", listed)
    code, report = get(app, "/1/report/default/cpu-avg-load")
    assert (code, set(report)) == (
        "200",
        {"name", "version", "format_version", "timestamp", "category", "kind", "data"},
    )
    assert (report["version"], report["category"], report["kind"]) == ("B", None, 0)
    assert report["timestamp"] == 1_700_000_000 * 10**9
    assert report["data"] == {"cpu_number": 2, "cpus": [0.0, 0.0], "cpu_total": 0.0}
    code, reports = get(app, "/1/report/all")
    assert [item["name"] for item in reports] == ["cpu-avg-load", "diskstats"]  # no LVM here
    assert get(app, "/1/report/storage/diskstats")[1]["data"][0]["name"] == "sda"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/2/", "404"),
        ("/1/list", "404"),
        ("/1/report", "404"),
        ("/1/report/default", "404"),
        ("/1/report/default/cpu-avg-load/x", "404"),
        ("/1/report/default/nosuch", "500"),
        ("/1/report/storage/cpu-avg-load", "500"),
        ("/1/report/storage/drbd", "500"),
        ("/1/report/storage/lv", "500"),
        ("/../etc/passwd", "404"),
    ],
)
def test_other_paths(app: MonitorApp, path: str, code: str) -> None:
    found, text = get(app, path)
    assert (found, bool(text)) == (code, True)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "NOSUCH"])
def test_nothing_can_be_changed(app: MonitorApp, method: str) -> None:
    assert get(app, "/1/list/collectors", method)[0] == "405"


def test_what_the_cluster_switches_off(app: MonitorApp, node: Node) -> None:
    node.facts._settings = {
        "diskstats": {"active": False},
        "cpu-avg-load": {"active": True, "interval": 250000},
        "lv": 7,
    }
    assert [row[0] for row in get(app, "/1/list/collectors")[1]] == ["cpu-avg-load", "lv"]
    assert get(app, "/1/report/storage/diskstats")[0] == "500"
    assert node.facts.interval("cpu-avg-load") == 0.25
    assert node.facts.interval("lv") == 5.0
    assert [row["name"] for row in get(app, "/1/report/all")[1]] == ["cpu-avg-load"]


def test_measurements_are_taken_at_their_intervals(node: Node, clock: SetClock) -> None:
    collectors = registry.create(node)
    sampler = Sampler(collectors, node.facts, clock)
    cpu = collectors["cpu-avg-load"]
    assert isinstance(cpu, processor.CpuAverageLoad)
    taken = []
    for _ in range(12):
        wait = sampler.take_samples()
        assert 0 < wait <= 1.0
        taken.append(len(cpu._kept))
        clock.time += 1
    assert taken == [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3]
    (node.proc / "stat").unlink()
    clock.time += 5
    sampler.take_samples()  # is logged, and tried again


def test_data_collector_interval_says_how_often_is_measured(node: Node, clock: SetClock) -> None:
    node.facts._settings = {"cpu-avg-load": {"active": True, "interval": 2000000}}
    collectors = registry.create(node)
    cpu = collectors["cpu-avg-load"]
    assert isinstance(cpu, processor.CpuAverageLoad)
    sampler = Sampler(collectors, node.facts, clock)
    for _ in range(11):
        sampler.take_samples()
        clock.time += 1
    assert len(cpu._kept) == 6


def test_htools_read_the_reports(app: MonitorApp) -> None:
    reports = get(app, "/1/report/all")[1]
    known = htools_mond._index_by_collector(reports, "node1")
    assert known["cpu-avg-load"]["cpu_total"] == 0.0


@pytest.fixture
def port(app: MonitorApp) -> Iterator[int]:
    server = HttpServer(("127.0.0.1", 0), app, threads=2, max_body=0, name="mond")
    yield server.start()
    server.stop(5)


def test_over_http(port: int) -> None:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    link.request("GET", "/1/list/collectors")
    answer = link.getresponse()
    assert (answer.status, answer.getheader("Content-Type")) == (200, None)
    assert len(json.loads(answer.read())) == 3
    link.close()


def test_without_confd_everything_is_active(node: Node) -> None:
    node.facts.refresh()
    assert node.facts.is_active("drbd")
    assert node.facts.minors == {}


def test_reports_field_by_field(
    app: MonitorApp, node: Node, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each collector has the recorded category and kind, and its data the recorded members."""
    forms = contract.read_recorded("monitoring")["mond"]
    row = dict.fromkeys(disks._TEXTS, "x") | dict.fromkeys(disks._NUMBERS, "3") | {"lv_tags": ""}
    mirrors = next(text for text in read_recorded("8.4.11.json") if "SyncTarget" in text)
    listed = (
        "Name                                        ID   Mem VCPUs\tState\tTime(s)\n"
        "Domain-0      0  2048     4     r-----     5.0\n"
    )
    monkeypatch.setattr(processor.xl, "run", lambda words: listed if words == ["list"] else "")
    node.facts.instances = (
        {"name": "web2", "uuid": "u2", "admin_state": "up", "hypervisor": "xen-hvm", "mtime": 8.5},
    )
    domains = processor.XenCpuAverageLoad(node)
    domains.sample()
    clock.time += 5
    domains.sample()
    made = registry.create(node)
    found = {
        "cpu-avg-load": get(app, "/1/report/default/cpu-avg-load")[1]["data"],
        "xen-cpu-avg-load": domains.data(),
        "diskstats": made["diskstats"].data(),
        "drbd": disks.parse_drbd(mirrors, {}),
        "lv": disks.parse_volumes(json.dumps({"report": [{"seg": [row]}]})),
        "inst-status-xen": made["inst-status-xen"].data(),
    }
    assert set(found) == set(forms["collectors"]) == set(made)
    for name, form in forms["collectors"].items():
        collector = made[name]
        assert (collector.category, int(collector.kind)) == (form["category"], form["kind"]), name
        monkeypatch.setattr(collector, "data", lambda name=name: found[name])
        report = json.loads(json.dumps(collector.report()))
        assert find_difference(report, forms["report"], name) == ""
        assert find_difference(report["data"], form["data"], name, status=forms["status"]) == ""
        assert report["data"], name
