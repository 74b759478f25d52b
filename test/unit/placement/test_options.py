"""Every option of the contract does something, or the program says why not."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from clusters import cluster

from ganeti import constants
from ganeti.htools import hail, hbal, hcheck, hinfo, hroller, hspace, program, text

POLICY = "2048,2,1024,1,1,1|128,1,1024,1,1,1;4096,8,4096,16,8,12|ext,drbd,plain|4.0|32.0"


def node(number: int, free: int, group: int = 1) -> str:
    return f"node{number}|16384|1024|{free}|500000|500000|8|N|uuid-{group}|4"


def write(tmp_path: Path, nodes: list[str], items: list[str], second: str = POLICY) -> str:
    path = tmp_path / "cluster.data"
    groups = "group1|uuid-1|preferred||\ngroup2|uuid-2|preferred||\n"
    policies = f"|{POLICY}\ngroup1|{POLICY}\ngroup2|{second}\n"
    lines = ["".join(f"{line}\n" for line in section) for section in (nodes, items)]
    parts = [groups, *lines, "", policies]
    path.write_text("\n".join(parts))
    return str(path)


def space(capsys: pytest.CaptureFixture[str], file: str, *options: str) -> tuple[int, str]:
    """How many fit, and why not more."""
    assert program.run(hspace.PROGRAM, ["-t", file, "--machine-readable", *options]) == 0
    keys = dict(line.split("=", 1) for line in capsys.readouterr().out.splitlines())
    return int(keys["HTS_ALLOC_INSTANCES"]), keys["HTS_ALLOC_FAIL_REASON"]


#: node1 runs something that fits on no other node of its group
STUCK = (
    [node(1, 3360), node(2, 7360), node(3, 7360), *(node(n, 15360, 2) for n in (6, 7, 8))],
    [
        "big|12000|4000|4|running|Y|node1||ext|",
        "s2|8000|4000|4|running|Y|node2||ext|",
        "s3|8000|4000|4|running|Y|node3||ext|",
    ],
)


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ([], (0, "FAILN1")),
        (["--independent-groups"], (14, "FAILN1")),
        (["--no-capacity-checks"], (28, "FAILMEM")),
    ],
)
def test_a_node_that_cannot_fail_closes_its_cluster_or_its_group(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    answer: tuple[int, str],
) -> None:
    """These are the answers of Debian's hspace."""
    file = write(tmp_path, *STUCK)
    assert space(capsys, file, "--disk-template", "ext", *options) == answer


def test_existing_errors_can_be_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Debian's hspace finds nothing for instances on shared storage even then."""
    file = write(tmp_path, *STUCK)
    fits, _ = space(capsys, file, "--disk-template", "ext", "--accept-existing-errors")
    assert 14 < fits < 28


def test_each_group_keeps_its_own_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [node(1, 15360), node(2, 15360), node(6, 15360, 2), node(7, 15360, 2)]
    free = space(capsys, write(tmp_path, nodes, []), "--no-capacity-checks")
    half = POLICY.replace("4096,8,4096", "1024,8,4096", 1)
    file = write(tmp_path, nodes, [], half)
    assert space(capsys, file, "--no-capacity-checks") == (free[0] // 2, "FAILMEM")
    other = POLICY.replace("ext,drbd,plain", "drbd")
    file = write(tmp_path, nodes, [], other)
    assert space(capsys, file, "--no-capacity-checks")[0] == free[0] // 2


def test_hcheck_can_leave_out_the_loss_of_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, *STUCK)
    assert program.run(hcheck.PROGRAM, ["-t", file, "--machine-readable"]) == 1
    assert "HCHECK_INIT_CLUSTER_GN1_FAIL=3" in capsys.readouterr().out
    options = ["-t", file, "--machine-readable", "--no-capacity-checks"]
    assert program.run(hcheck.PROGRAM, options) == 0
    out = capsys.readouterr().out
    assert "GN1_FAIL" not in out
    assert "HCHECK_INIT_CLUSTER_NEED_REBALANCE=0" in out


def test_hroller_saves_what_it_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.data"
    made = cluster(1, 5, 20)
    file.write_text(text.dump(made))
    assert program.run(hroller.PROGRAM, ["-t", str(file), "-S", str(tmp_path / "s")]) == 0
    assert text.load((tmp_path / "s.original").read_text(), "s") == made
    assert "s.original" in capsys.readouterr().err


# the monitoring daemon


def report(total: float) -> dict[str, object]:
    return {"name": "cpu-avg-load", "data": {"cpu_total": total, "cpu_number": 8, "cpus": []}}


def domains(**loads: float) -> dict[str, object]:
    return {"name": "xen-cpu-avg-load", "data": loads}


LOADED = (
    [node(1, 9216), node(2, 13312), node(3, 11264)],
    [
        "db1|2048|40000|4|running|Y|node2||ext|",
        "db2|2048|40000|4|running|Y|node3||ext|",
        "x8|1024|100|2|running|Y|node3||ext|",
        "x9|1024|100|1|ADMIN_down|Y|node3||ext|",
    ],
)


def mond_file(tmp_path: Path, *entries: tuple[int, dict[str, object]]) -> str:
    path = tmp_path / "mond.json"
    raw = [{"node": f"node{number}", "reports": [one]} for number, one in entries]
    path.write_text(json.dumps(raw))
    return str(path)


EVERY = ((1, report(4.0)), (2, report(2.0)), (3, report(1.0)))


def options(tmp_path: Path, *more: str) -> list[str]:
    return ["-t", write(tmp_path, *LOADED), "-G", "group1", *more]


def read_loads(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """The processor loads of db1, db2, x8 and x9."""
    assert program.run(hbal.PROGRAM, ["--print-instances", *arguments]) == 0
    err = capsys.readouterr().err
    rows = err.partition("Initial instance map:\n")[2].splitlines()[1:5]
    return [row.split()[-4] for row in rows]


def test_the_load_of_a_node_is_shared_by_processors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """These are the loads that Debian's hbal takes from the same file."""
    file = mond_file(tmp_path, *EVERY)
    given = options(tmp_path, "--mond", "--mond-data", file)
    assert read_loads(capsys, *given) == ["1.600", "0.500", "0.250", "0.125"]
    assert program.run(hinfo.PROGRAM, ["-t", given[1], "--mond", "--mond-data", file]) == 0
    assert read_loads(capsys, *given, "--ignore-dynu") == ["0.000"] * 4


def test_domains_of_xen_have_their_own_load(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = ((1, domains()), (2, domains(db1=1.5)), (3, domains(db2=0.25, x8=2)))
    given = options(tmp_path, "--mond", "--mond-xen", "--mond-data", mond_file(tmp_path, *entries))
    assert read_loads(capsys, *given) == ["1.500", "0.250", "2.000", "0.000"]


def test_without_all_reports_nothing_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = options(tmp_path, "--mond", "--mond-data", mond_file(tmp_path, *EVERY[:2]))
    assert read_loads(capsys, *given) == ["1.000"] * 4
    assert program.run(hbal.PROGRAM, [*given, "--exit-on-missing-mond-data"]) == 1
    assert "Error: node node3 has no report cpu-avg-load" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("{}", "is not a list of nodes"),
        ("[1]", "entry 0: must have 'node' and a list 'reports'"),
        ('[{"node":"a","reports":[{}]}]', "node a: a report has no 'name' or no 'data'"),
        (
            '[{"node":"node1","reports":[{"name":"cpu-avg-load","data":{"cpu_total":-1}}]}]',
            "the report of node node1 has no load 'cpu_total'",
        ),
    ],
)
def test_broken_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, message: str
) -> None:
    path = tmp_path / "mond.json"
    path.write_text(content)
    more = ["--mond", "--mond-data", str(path), "--exit-on-missing-mond-data"]
    assert program.run(hbal.PROGRAM, options(tmp_path, *more)) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", ["mond-data=x", "mond-xen", "exit-on-missing-mond-data"])
def test_options_without_effect_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert program.run(hbal.PROGRAM, options(tmp_path, f"--{name}")) == 1
    only = name.partition("=")[0]
    assert f"option --{only} has no effect without --mond" in capsys.readouterr().err


class Daemon(BaseHTTPRequestHandler):
    """Answers as a monitoring daemon."""

    asked: list[str] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = json.dumps(report(2.5)).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), Daemon)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    ports = {**constants.DEFAULT_PORTS, constants.MOND: server.server_port}
    monkeypatch.setattr(constants, "DEFAULT_PORTS", ports)
    monkeypatch.setattr("socket.getservbyname", lambda *_: (_ for _ in ()).throw(OSError()))
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_monitoring_daemons_are_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], daemon: HTTPServer
) -> None:
    nodes = [node(1, 9216).replace("node1", "127.0.0.1")]
    items = ["db1|2048|40000|4|running|Y|127.0.0.1||ext|"]
    file = write(tmp_path, nodes, items)
    Daemon.asked.clear()
    assert read_loads(capsys, "-t", file, "-G", "group1", "--mond") == ["2.000"]
    assert Daemon.asked == ["/1/report/default/cpu-avg-load"]


# hail


def request(tmp_path: Path, **more: object) -> str:
    """A request for an instance, in a cluster of one small node."""
    sizes = {
        "memory-size": 1, "cpu-count": 1, "disk-size": 1, "disk-count": 0, "nic-count": 0,
        "spindle-use": 1,
    }  # fmt: skip
    most = {**dict.fromkeys(sizes, 1 << 20), "disk-count": 16}
    raw = {
        "nodegroups": {"uuid-1": {"name": "group1", "alloc_policy": "preferred"}},
        "nodes": {
            "tiny": {
                "group": "uuid-1", "total_memory": 512, "reserved_memory": 0, "free_memory": 512,
                "total_disk": 1000, "free_disk": 1000, "total_cpus": 1,
            },
        },
        "instances": {},
        "ipolicy": {
            "minmax": [{"min": sizes, "max": most}], "std": sizes,
            "disk-templates": ["ext"], "vcpu-ratio": 4.0, "spindle-ratio": 32.0,
        },
        "request": {
            "type": "allocate", "name": "new1", "memory": 2048, "vcpus": 1, "disk_template": "ext",
            "disk_space_total": 1024, "disks": [{"size": 1024}], "nics": [{}], "required_nodes": 1,
            **more,
        },
    }  # fmt: skip
    path = tmp_path / "request.json"
    path.write_text(json.dumps(raw))
    return str(path)


@pytest.mark.parametrize(("options", "moved"), [([], 0), (["--ignore-soft-errors"], 1)])
def test_hail_breaks_soft_rules_only_when_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], moved: int
) -> None:
    """The only other node has the memory, but not the virtual processors."""
    asked = request(tmp_path, type="node-evacuate", instances=["web"], evac_mode="primary-only")
    items = ["web|1024|0|8|running|Y|node1||ext|", "full|1024|0|30|running|Y|node2||ext|"]
    file = write(tmp_path, [node(1, 14336), node(2, 14336)], items)
    assert program.run(hail.PROGRAM, [asked, "-t", file, *options]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (len(answer["result"][0]), len(answer["result"][1])) == (moved, 1 - moved)


def test_hail_answers_for_another_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = request(tmp_path)
    assert program.run(hail.PROGRAM, [asked]) == 0
    assert json.loads(capsys.readouterr().out)["success"] is False
    file = write(tmp_path, [node(1, 15360), node(2, 9000)], [])
    save = str(tmp_path / "s")
    assert program.run(hail.PROGRAM, [asked, "-t", file, "-S", save, "-p"]) == 0
    shown = capsys.readouterr()
    answer = json.loads(shown.out)
    assert answer["result"] == ["node1"]
    assert "Initial cluster status:" in shown.err
    assert "Final cluster status:" in shown.err
    before = text.load(Path(f"{save}.pre-ialloc").read_text(), "before")
    after = text.load(Path(f"{save}.post-ialloc").read_text(), "after")
    assert before.instances == ()
    assert [(item.name, item.primary) for item in after.instances] == [("new1", "node1")]
    assert [n.free_memory for n in after.nodes] == [15360 - 2048, 9000]
    assert program.run(hail.PROGRAM, [asked, "--simulate", "p,2,1000000,65536,16"]) == 0
    assert json.loads(capsys.readouterr().out)["success"] is True


def test_hspace_saves_what_it_put(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was saved has no room for one more, and no memory that nobody accounts for."""
    nodes = [node(number, 15360) for number in (1, 2, 3)]
    file = write(tmp_path, nodes, ["web|2048|4000|1|running|Y|node1|node2|drbd|"])
    save = str(tmp_path / "full")
    count, _why = space(capsys, file, "-S", save)
    full = text.load(Path(f"{save}.standard").read_text(), "full")
    new = [item for item in full.instances if item.name.startswith("new-")]
    assert (len(new), len({item.name for item in new})) == (count, count)
    assert all(item.primary for item in new)
    assert program.run(hinfo.PROGRAM, ["-t", f"{save}.standard"]) == 0
    assert "inconsistent" not in capsys.readouterr().err
    assert space(capsys, f"{save}.standard")[0] == 0
