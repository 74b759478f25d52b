"""hsqueeze switches off what is not needed, and brings nodes back when room is short."""

from pathlib import Path

import pytest

from ganeti.htools import hsqueeze, program, text

POLICY = "|2048,2,1024,1,1,1|128,1,1024,1,1,1;32768,8,1048576,16,8,12|ext,drbd,plain|4.0|32.0"
HEAD = "group1|uuid-1|preferred||\ngroup2|uuid-2|preferred||\n"


def node(number: int, free: int, tags: str = "htools:standby:a", more: str = "N|uuid-1") -> str:
    return f"node{number}|16384|1024|{free}|500000|500000|8|{more}|4|{tags}"


def item(name: str, where: str, template: str = "ext", memory: int = 2048) -> str:
    return f"{name}|{memory}|40000|4|running|Y|{where}|{template}|"


#: node1 is the master; node5 runs most
BUSY = (
    [
        node(1, 15360, "", "M|uuid-1"),
        node(2, 13312),
        node(3, 11264),
        node(4, 15360),
        node(5, 9216),
    ],
    [item(f"db{n}", f"node{where}|") for n, where in ((1, 2), (2, 3), (3, 3), (5, 5), (6, 5))]
    + [item("db7", "node5|")],
)


def write(tmp_path: Path, nodes: list[str], items: list[str]) -> str:
    path = tmp_path / "cluster.data"
    parts = [HEAD, "\n".join(nodes) + "\n", "\n".join(items) + "\n", "", POLICY + "\n"]
    path.write_text("\n".join(parts))
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert program.run(hsqueeze.PROGRAM, arguments) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("target", "gone"),
    [
        ("2", ["node3", "node2", "node4"]),
        ("4", ["node3", "node2", "node4"]),
        ("5", ["node2", "node4"]),
        ("6", []),
    ],
)
def test_more_room_to_keep_switches_fewer_nodes_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str, gone: list[str]
) -> None:
    """These are the answers of Debian's hsqueeze."""
    file = write(tmp_path, *BUSY)
    lines = run(capsys, "-t", file, "--target-resources", target)
    assert lines == (["'Nodes to offline'", *gone] if gone else ["'No action'"])


def test_commands_empty_a_node_before_it_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = run(capsys, "-t", write(tmp_path, *BUSY), "-C", "-S", str(tmp_path / "state"))
    commands = [line.strip() for line in lines]
    order = [
        "gnt-instance migrate -f -n node1 db3",
        "gnt-node add-tags node3 htools:standby:auto",
        "gnt-node modify -O yes node3",
        "gnt-node power -f off node3",
    ]
    assert [commands.index(command) for command in order] == sorted(map(commands.index, order))
    after = text.load((tmp_path / "state.squeezed").read_text(), "squeezed")
    assert {n.name for n in after.nodes if n.offline} == {"node2", "node3", "node4"}
    assert {i.primary for i in after.instances} == {"node1", "node5"}


def test_only_nodes_whose_instances_can_go_anywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [node(1, 15360, "", "M|uuid-1"), *(node(n, 13312) for n in (2, 3, 4)), node(5, 15360)]
    items = [
        item("db1", "node2|node5", "drbd"),
        item("db2", "node3|", "plain"),
        item("db3", "node4|"),
    ]
    lines = run(capsys, "-t", write(tmp_path, nodes, items), "-v")
    assert lines == ["Offline candidates: node4", "Online candidates: ", *_off("node4")]


def _off(*names: str) -> list[str]:
    return ["'Nodes to offline'", *names]


def test_nodes_come_back_in_their_own_group(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [
        node(1, 1024, "", "M|uuid-1"),
        node(2, 15360, "htools:standby:auto", "Y|uuid-2"),
        node(3, 15360, more="Y|uuid-1"),
        node(4, 15360, more="Y|uuid-1"),
    ]
    items = [item("big", "node1|", memory=14336)]
    file = write(tmp_path, nodes, items)
    assert run(capsys, "-t", file, "--no-headers") == ["node3", "node4"]
    assert program.run(hsqueeze.PROGRAM, ["-t", file]) == 0
    shown = capsys.readouterr()
    assert "will not yield enough capacity (group group1)" in shown.err
    assert shown.out.splitlines() == ["'Nodes to online'", "node3", "node4"]


def test_the_last_node_of_a_group_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [node(1, 15360, "", "M|uuid-1"), node(2, 13312, more="N|uuid-2")]
    file = write(tmp_path, nodes, [item("db1", "node2|")])
    assert run(capsys, "-t", file) == ["'No action'"]


def test_emptying_a_node_breaks_no_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Instances that must stay apart keep a node busy: it is not lost, only not needed."""
    nodes = [node(1, 13312, "", "M|uuid-1"), node(2, 13312)]
    items = [item("db1", "node1|") + "service:db", item("db2", "node2|") + "service:db"]
    file = write(tmp_path, nodes, items)
    assert run(capsys, "-t", file, "--no-headers") == ["node2"]
    content = Path(file).read_text().replace("\n\n\n|", "\n\nhtools:iextags:service\n\n|")
    Path(file).write_text(content)
    assert run(capsys, "-t", file) == ["'No action'"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-X"], "-X (--exec) submits jobs to the master daemon; it needs -L"),
        (["--target-resources", "-1"], "--target-resources: -1.0 is not an amount"),
        (["--minimal-resources", "inf"], "--minimal-resources: inf is not an amount"),
    ],
)
def test_wrong_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert program.run(hsqueeze.PROGRAM, ["-t", write(tmp_path, *BUSY), *arguments]) == 1
    assert message in capsys.readouterr().err
