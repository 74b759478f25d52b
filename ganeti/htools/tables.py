"""Tables of nodes and of instances, and the names that fit into them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ganeti.placement.facts import RUNNING
from ganeti.placement.layout import Layout
from ganeti.placement.use import Use


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Names without the domain that all of them share."""
    domains = {name.partition(".")[2] for name in names}
    if len(domains) != 1 or not next(iter(domains)):
        return {name: name for name in names}
    domain = "." + next(iter(domains))
    return {name: name.removesuffix(domain) for name in names}


def _grid(titles: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    lines = [titles, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(titles))]

    def cell(text: str, i: int) -> str:
        return text.rjust(widths[i]) if right[i] else text.ljust(widths[i])

    return "\n".join(" " + " ".join(cell(text, i) for i, text in enumerate(line)) for line in lines)


class _NodeRow:
    """The values that the table of nodes can show of one node."""

    def __init__(self, layout: Layout, index: int, name: str) -> None:
        self.layout, self.index, self.name = layout, index, name
        self.node = layout.board.nodes[index]

    def measure_used(self, use: Use) -> float:
        return float(self.layout.used[use][self.index])

    @property
    def flag(self) -> str:
        if self.node.offline:
            return "-"
        return "*" if self.layout.fails[self.index] else " "

    @property
    def unallocated(self) -> int:
        return int(self.layout.memory_left[self.index])

    @property
    def free_disk(self) -> int:
        return int(self.layout.board.disk_room[self.index] - self.measure_used(Use.DISK))

    @property
    def vcpus(self) -> int:
        return int(self.measure_used(Use.CPU) + self.node.node_cpus)


def _share(part: float, whole: float) -> str:
    return f"{part / whole if whole else 0:.4f}"


#: Fields of nodes: name, title, whether it is a number, and its text.
NODE_FIELDS: dict[str, tuple[str, bool, Callable[[_NodeRow], str]]] = {
    "status": ("F", False, lambda r: r.flag),
    "name": ("Name", False, lambda r: r.name),
    "tmem": ("t_mem", True, lambda r: str(r.node.memory)),
    "nmem": ("n_mem", True, lambda r: str(r.node.node_memory)),
    "imem": ("i_mem", True, lambda r: str(int(r.measure_used(Use.MEMORY)))),
    "xmem": ("x_mem", True, lambda r: str(int(r.layout.board.missing[r.index]))),
    "fmem": ("f_mem", True, lambda r: str(r.node.free_memory)),
    "umem": ("u_mem", True, lambda r: str(r.unallocated)),
    "rmem": ("r_mem", True, lambda r: str(int(r.layout.reserved[r.index]))),
    "tdsk": ("t_dsk", True, lambda r: str(round(r.node.disk / 1024))),
    "fdsk": ("f_dsk", True, lambda r: str(r.free_disk // 1024)),
    "tcpu": ("pcpu", True, lambda r: str(r.node.cpus)),
    "ucpu": ("vcpu", True, lambda r: str(r.vcpus)),
    "pcnt": ("pcnt", True, lambda r: str(int(r.layout.seats[0][r.index]))),
    "scnt": ("scnt", True, lambda r: str(int(r.layout.seats[1][r.index]))),
    "pfmem": ("p_fmem", True, lambda r: _share(r.unallocated, r.node.memory)),
    "pfdsk": ("p_fdsk", True, lambda r: _share(r.free_disk, r.node.disk)),
    "rcpu": (
        "r_cpu",
        True,
        lambda r: f"{r.vcpus / (r.node.cpus * r.node.cpu_speed) if r.node.cpus else 0:.2f}",
    ),
    "cload": ("lCpu", True, lambda r: f"{r.measure_used(Use.LOAD_CPU):.3f}"),
    "mload": ("lMem", True, lambda r: f"{r.measure_used(Use.LOAD_MEMORY):.3f}"),
    "dload": ("lDsk", True, lambda r: f"{r.measure_used(Use.LOAD_DISK):.3f}"),
    "nload": ("lNet", True, lambda r: f"{r.measure_used(Use.LOAD_NET):.3f}"),
    "ptags": ("PrimaryTags", False, lambda r: ",".join(r.node.tags)),
    "spindle_count": ("NodeSpindles", True, lambda r: str(r.node.spindles)),
    "group.uuid": ("group.uuid", False, lambda r: r.node.group),
}
#: Those that are printed when nothing else is requested.
USUAL_NODE_FIELDS = tuple(list(NODE_FIELDS)[:-3])


def nodes(layout: Layout, wanted: str) -> str:
    """The table of nodes; ``wanted``: fields with commas, ``+`` first adds to the usual ones."""
    fields = [name for name in wanted.removeprefix("+").split(",") if name]
    if not wanted or wanted.startswith("+"):
        fields = [*USUAL_NODE_FIELDS, *fields]
    unknown = ("<unknown field>", False, lambda _row: "<unknown field>")
    shown = [NODE_FIELDS.get(name, unknown) for name in fields]
    short = short_names([node.name for node in layout.board.nodes])
    rows = [_NodeRow(layout, i, short[node.name]) for i, node in enumerate(layout.board.nodes)]
    return _grid(
        [title for title, _, _ in shown],
        [[show(row) for _, _, show in shown] for row in rows],
        [right for _, right, _ in shown],
    )


_INSTANCE_TITLES = ("F", "Name", "Pri_node", "Sec_node", "Auto_bal", "vcpu", "mem", "dsk")
_LOAD_TITLES = ("lCpu", "lMem", "lDsk", "lNet")


def instances(layout: Layout) -> str:
    """The table of instances; ``R``: is to run."""
    board = layout.board
    node_names = short_names([node.name for node in board.nodes])
    names = short_names([item.name for item in board.instances])
    rows = []
    for i, item in enumerate(board.instances):
        first, second = layout.place(i)
        load = item.load
        rows.append(
            [
                "R" if item.status in RUNNING else " ",
                names[item.name],
                node_names.get(first, ""),
                node_names.get(second, ""),
                "Y" if item.auto_balance else "N",
                str(item.vcpus),
                f"{item.memory:5}",
                f"{item.disk // 1024:5}",
                *(f"{value:.3f}" for value in (load.cpu, load.memory, load.disk, load.net)),
            ]
        )
    return _grid([*_INSTANCE_TITLES, *_LOAD_TITLES], rows, [False] * 5 + [True] * 7)


def inconsistencies(layout: Layout) -> list[str]:
    """Nodes on which much more memory or disk is used than the instances explain."""
    lines = []
    board = layout.board
    used = dict.fromkeys(board.node_index, 0)
    for item in board.instances:
        for name in {item.primary, item.secondary} & used.keys():
            used[name] += 0 if item.forthcoming else item.disk
    for i, node in enumerate(board.nodes):
        if node.offline:
            continue
        memory = int(board.missing[i])
        disk = node.disk - node.free_disk - used[node.name]
        if memory > 512 or disk > 1024:
            lines.append(
                f"  - node {node.name} is missing {memory} MB ram and {disk // 1024} GB disk"
            )
    return lines
