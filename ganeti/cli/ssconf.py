"""Facts about the cluster that this node has in its ``ssconf_*`` files."""

from __future__ import annotations

from ganeti import paths
from ganeti.luxi import absence


def lines(key: str) -> list[str]:
    """Lines of one file; none when it is missing."""
    try:
        return paths.current().ssconf(key).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def mapping(key: str) -> dict[str, str]:
    """A file of ``name=value`` or ``name value`` lines."""
    pairs = (line.replace("=", " ", 1).split(maxsplit=1) for line in lines(key))
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def read_contents() -> dict[str, str]:
    """Contents of all files by key, as a new node is to get them."""
    data = paths.current().data
    return {
        path.name.removeprefix("ssconf_"): path.read_text(encoding="utf-8")
        for path in sorted(data.glob("ssconf_*"))
    }


def master() -> str:
    """Name of the master node.

    Raises:
        NotClusterError: this machine belongs to no cluster.
    """
    where = paths.current()
    name = absence.master_name(where)
    if name is None:
        raise absence.explain_absence(where.luxi_socket, where)
    return name


def ssh_ports() -> dict[str, int]:
    """SSH port of each node."""
    return {name: int(port) for name, port in mapping("ssh_ports").items() if port.isdigit()}
