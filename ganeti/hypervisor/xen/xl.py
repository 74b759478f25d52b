"""Running ``xl``, and reading what it prints.

Readers are pure; they are tested on recorded output of Xen 4.17.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ganeti import errors
from ganeti.base import process
from ganeti.hypervisor.interface import NodeInfo

PROGRAM = "xl"
DOM0 = "Domain-0"
#: Seconds for questions, and for what builds or ends a domain.
QUICK = 30.0
SLOW = 300.0

#: ``xl list``: name, id, memory (MiB), processors, six letters of state, seconds.
_ROW = re.compile(
    r"(?P<name>\S.*?)\s+(?P<id>\d+)\s+(?P<memory>\d+)\s+(?P<vcpus>\d+)\s+(?P<state>[rbpscd-]{6})"
    r"\s+(?P<time>\d+\.\d+)"
)
_HEADER = re.compile(r"Name\s+ID\s+Mem\s+VCPUs\s+State\s+Time\(s\)")
#: Ends of names while a domain is moved. xl calls one that comes INCOMING, and one AWAY while it is
#: unknown whether it has arrived; one that is moved while it is paused is called LEAVING.
INCOMING = "--incoming"
AWAY = "--migratedaway"
LEAVING = "--leaving"
_MOVING = (INCOMING, AWAY, LEAVING)
_NO_SUCH_DOMAIN = "is an invalid domain identifier"


@dataclass(frozen=True)
class Domain:
    """One line of ``xl list``."""

    name: str
    id: int
    memory: int
    vcpus: int
    #: letters: running, blocked, paused, shut down, crashed, dying
    state: frozenset[str]
    time: float

    @property
    def ended(self) -> bool:
        """It ended by itself, and only its remains are there."""
        return bool(self.state & {"s", "c", "d"})

    @property
    def paused(self) -> bool:
        return "p" in self.state


def attempt(words: Sequence[str], *, timeout: float, before: Sequence[str] = ()) -> process.Result:
    """Run ``xl WORDS``, which may fail; blocks up to ``timeout`` seconds.

    ``before`` is a program with its options that runs xl.

    Raises:
        HypervisorError: it cannot be started.
    """
    try:
        return process.run([*before, PROGRAM, *words], timeout=timeout)
    except errors.CommandError as err:
        raise errors.HypervisorError(
            f"{errors.text(err)}; is this node booted into Xen, with xen-utils installed?"
        ) from err


def run(words: Sequence[str], *, timeout: float = QUICK, before: Sequence[str] = ()) -> str:
    """Output of ``xl WORDS``; blocks up to ``timeout`` seconds.

    Raises:
        HypervisorError: it failed, in its own words, or hangs.
    """
    result = attempt(words, timeout=timeout, before=before)
    if not result.ok:
        raise errors.HypervisorError(result.explain())
    return result.stdout


def is_moving(name: str) -> bool:
    """Whether a domain has this name because it is just coming or leaving."""
    return name.endswith(_MOVING) or name == "(null)"


def is_unknown(err: errors.HypervisorError) -> bool:
    """Whether xl failed because there is no such domain."""
    return _NO_SUCH_DOMAIN in errors.text(err)


def parse_list(text: str) -> list[Domain]:
    """Domains of ``xl list``, Domain-0 first.

    Raises:
        HypervisorError: a line has another form.
    """
    lines = text.splitlines()
    if not lines or not _HEADER.match(lines[0]):
        raise errors.HypervisorError(f"xl list printed something unknown: {text[:80]!r}")
    return [_row(line) for line in lines[1:] if line.strip()]


def _row(line: str) -> Domain:
    match = _ROW.fullmatch(line.strip())
    if match is None:
        raise errors.HypervisorError(f"xl list printed a line of an unknown form: {line[:120]!r}")
    return Domain(
        name=match["name"],
        id=int(match["id"]),
        memory=int(match["memory"]),
        vcpus=int(match["vcpus"]),
        state=frozenset(match["state"]) - {"-"},
        time=float(match["time"]),
    )


def parse_info(text: str) -> dict[str, str]:
    """Keys and values of ``xl info``."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, colon, value in pairs if colon}


def node_info(info: dict[str, str], domains: Sequence[Domain]) -> NodeInfo:
    """Resources of a node.

    Raises:
        HypervisorError: a value of ``xl info`` is missing.
    """
    dom0 = next((domain for domain in domains if domain.name == DOM0), None)
    try:
        cpus = int(info["nr_cpus"])
        per_socket = int(info["cores_per_socket"]) * int(info["threads_per_core"])
        return NodeInfo(
            memory_total=int(info["total_memory"]),
            memory_free=int(info["free_memory"]),
            memory_dom0=dom0.memory if dom0 else 0,
            cpu_total=cpus,
            cpu_nodes=int(info["nr_nodes"]),
            cpu_sockets=max(1, cpus // max(1, per_socket)),
            cpu_dom0=dom0.vcpus if dom0 else 0,
            hv_version=(int(info["xen_major"]), int(info["xen_minor"])),
        )
    except (KeyError, ValueError) as err:
        raise errors.HypervisorError(f"a value of xl info is missing or invalid: {err}") from err


def has_shadow(info: dict[str, str]) -> bool:
    """Whether this Xen can follow what a PV guest writes, as its live migration needs.

    Debian builds Xen without shadow paging since XSA-495.
    """
    return "shadow" in info.get("virt_caps", "").split()
