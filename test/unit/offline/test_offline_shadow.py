"""shadow: answers from files of all versions, and leaves them as they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import old_configs
import pytest

from ganeti import constants
from ganeti.base import jsonio
from ganeti.offline import shadow

REPOSITORY = Path(__file__).parents[3]
RECORDED = REPOSITORY / "test" / "recorded" / "config_3_0_2.json"


def ask(capsys: pytest.CaptureFixture[str], *words: str, path: Path = RECORDED) -> list[str]:
    """Lines of a successful answer."""
    code = shadow.main([str(path), *words])
    said = capsys.readouterr()
    assert code == 0, said.err
    return said.out.splitlines()


def test_instances_with_fields_filter_and_separator(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("list", "instances", "--no-headers", "--separator=|", "-o", "name,be/maxmem,status")
    assert ask(capsys, *words) == ["inst1.example.com|256|?", "inst2.example.com|128|?"]
    assert ask(capsys, *words, "be/maxmem > 200") == ["inst1.example.com|256|?"]
    assert ask(capsys, *words, "--filter", '"t1" in tags') == ["inst1.example.com|256|?"]
    assert ask(capsys, *words, "inst2") == ["inst2.example.com|128|?"]


def test_nodes_groups_networks_and_filters(capsys: pytest.CaptureFixture[str]) -> None:
    bare = ("--no-headers", "--separator=|")
    assert ask(capsys, "list", "nodes", *bare) == [
        "node1.example.com|192.0.2.11|192.0.2.11|M|default|2|0"
    ]
    assert ask(capsys, "list", "group", *bare) == ["default|1|2|preferred"]
    assert ask(capsys, "list", "networks", *bare, "-o", "name,network") == ["net1|198.51.100.0/28"]
    assert ask(capsys, "list", "filters", *bare) == []
    assert ask(capsys, "list", "disks", *bare, "-o", "name,size", "root") == ["root|20"]
    assert ask(capsys, "list", "nodes", *bare, "-o", "name,mfree,dtotal") == [
        "node1.example.com|?|?"
    ]


def test_info(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ask(capsys, "info", "instance", "inst1")
    assert "- Instance name: inst1.example.com" in lines
    assert "  State: configured to be down" in lines
    assert any("f5827f29-1fc8-4835-bde5-f903743eb105.file.disk0" in line for line in lines)
    assert "Cluster name: cluster.example.com" in ask(capsys, "info", "cluster")
    assert "- Node name: node1.example.com" in ask(capsys, "info", "node", "node1")
    assert "- Node group: default" in ask(capsys, "info", "groups")
    network = ask(capsys, "info", "network", "net1")
    assert "  Subnet: 198.51.100.0/28" in network
    assert any("inst1.example.com" in line for line in network)
    assert len([line for line in ask(capsys, "info", "disks") if line.startswith("- Disk:")]) == 2


@pytest.mark.parametrize("version", old_configs.VERSIONS)
def test_every_version_answers(
    version: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = old_configs.facts(11)
    path = tmp_path / "config.data"
    path.write_text(jsonio.dumps(old_configs.render(known, version)))
    fields = "name,disk_template,snodes"
    words = ("list", "instances", "--no-headers", "--separator=|", "-o", fields)
    wanted = [
        f"{one.name}|{one.template}|{known.nodes[one.secondary]['name'] if one.secondary else ''}"
        for one in known.instances
    ]
    assert ask(capsys, *words, path=path) == sorted(wanted)
    assert ask(capsys, "verify", path=path)[-1].endswith("0 problems.")
    for kind in ("cluster", "instances", "nodes", "groups"):
        assert ask(capsys, "info", kind, path=path)


#: Runs shadow in a process that ends at once when it writes, makes a socket or starts a program.
WATCHED = """
import os, sys

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
CHANGING = ("os.mkdir", "os.remove", "os.rename", "os.link", "os.symlink", "os.truncate",
            "os.chmod", "os.utime", "socket.", "subprocess.Popen", "os.fork", "os.exec", "shutil.")

def hook(event, args):
    if (event == "open" and args[2] & WRITING) or event.startswith(CHANGING):
        os.write(2, f"FORBIDDEN {event} {args[:1]}".encode())
        os._exit(99)

sys.addaudithook(hook)
from ganeti.offline.shadow import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    "words",
    [
        ["list", "instances"],
        ["list", "nodes", "-o", "name,mfree"],
        ["info", "instance"],
        ["info", "cluster"],
        ["verify", "-v"],
    ],
)
def test_nothing_is_written_or_asked(tmp_path: Path, words: list[str]) -> None:
    """The file is a read-only one in a read-only directory."""
    (tmp_path / "root/var/log/ganeti").mkdir(parents=True)
    path = tmp_path / "read-only" / "config.data"
    path.parent.mkdir()
    path.write_bytes(RECORDED.read_bytes())
    path.chmod(0o400)
    path.parent.chmod(0o500)
    before = path.stat()
    names = sorted(str(name) for name in tmp_path.rglob("*"))
    ran = subprocess.run(
        [sys.executable, "-B", "-c", WATCHED, str(path), *words],
        env=os.environ | {"GANETI_ROOTDIR": str(tmp_path / "root")},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_ctime_ns, after.st_mode) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_ctime_ns,
        before.st_mode,
    )
    assert path.read_bytes() == RECORDED.read_bytes()
    assert sorted(str(name) for name in tmp_path.rglob("*")) == names


def test_the_watch_of_the_test_above_sees_what_is_forbidden(tmp_path: Path) -> None:
    code = WATCHED.replace("from ganeti", "open(sys.argv[1], 'w')\nfrom ganeti")
    ran = subprocess.run(
        [sys.executable, "-B", "-c", code, str(tmp_path / "x")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 99
    assert "FORBIDDEN open" in ran.stderr


def check_failure(capsys: pytest.CaptureFixture[str], code: int, *words: str) -> str:
    assert shadow.main(list(words)) == code
    said = capsys.readouterr()
    assert "Traceback" not in said.err + said.out
    return said.err


def test_what_cannot_be_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(RECORDED)
    assert "Unknown kind 'jobs'; list knows" in check_failure(capsys, 1, path, "list", "jobs")
    assert "Of what?" in check_failure(capsys, 1, path, "info")
    assert "'nope' is not known" in check_failure(capsys, 1, path, "list", "instances", "nope")
    assert "unknown fields x" in check_failure(
        capsys, constants.EXIT_UNKNOWN_FIELD, path, "list", "nodes", "-o", "name,x"
    )
    assert "there is no file" in check_failure(capsys, 1, str(tmp_path / "nothing"), "verify")
    broken = tmp_path / "config.data"
    broken.write_bytes(RECORDED.read_bytes()[:900])
    assert "half written" in check_failure(capsys, 2, str(broken), "verify")
    broken.write_text('{"version": 2060000}')
    assert "upgrades begin at 2.7" in check_failure(capsys, 2, str(broken), "list", "nodes")


def test_defects_are_errors_and_unknown_keys_warnings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = jsonio.loads(RECORDED.read_bytes()) | {"disks": {}, "shiny": 1}
    path = tmp_path / "config.data"
    path.write_text(jsonio.dumps(raw))
    assert shadow.main([str(path), "verify", "-v"]) == 1
    said = capsys.readouterr()
    assert "ERROR: instance inst1.example.com has the missing disk" in said.out
    assert "changed version: 3.0 becomes 3.2" in said.out
    assert "Warning: no version knows shiny; it is left out" in said.err


def test_programs_that_work_offline_load_no_network_libraries() -> None:
    """They are started once for each file; TLS alone would take a quarter of their time."""
    code = (
        "import sys, ganeti.offline.shadow, ganeti.offline.cfgupgrade\n"
        "sys.exit([name for name in ('OpenSSL', 'ssl', 'pyparsing') if name in sys.modules] or 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, f"loaded: {ran.stderr}"
