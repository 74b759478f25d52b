"""The input of the placement model about a cluster: plain values, nothing computed.

Memory and disk are in MiB. Objects name each other by name, groups by UUID.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from ganeti.placement.generated import TEMPLATES

#: Status words of instances that use their memory now.
RUNNING = frozenset({"running", "ERROR_up", "ERROR_wrongnode"})


class Mirror(StrEnum):
    """Nodes that have the data of an instance besides its primary node."""

    NONE = "none"
    SECONDARY = "secondary"
    EVERY_NODE = "every node"


#: Disk templates by where their data is. An unknown template is taken for one that cannot move.
MIRRORS = {name: Mirror(mirror) for name, (mirror, _, _) in TEMPLATES.items()}
#: Templates whose disks take room on the node; "mixed" stands for several, some of them local.
LOCAL = frozenset(name for name, (_, local, _) in TEMPLATES.items() if local) | {"mixed"}
#: Those among them whose disks turn spindles: volumes.
TURNING = frozenset(name for name, (_, _, turning) in TEMPLATES.items() if turning)


@dataclass(frozen=True, slots=True)
class Spec:
    """The size of an instance."""

    memory: int
    cpus: int
    disk: int
    disk_count: int
    nics: int
    spindles: int


#: The members of a size, and what they are called in instance policies.
SPEC_KEYS = {
    "memory": "memory-size",
    "cpus": "cpu-count",
    "disk": "disk-size",
    "disk_count": "disk-count",
    "nics": "nic-count",
    "spindles": "spindle-use",
}


@dataclass(frozen=True, slots=True)
class Policy:
    """Which sizes a group accepts, and how far its processors and spindles are over-committed."""

    standard: Spec
    #: pairs of smallest and largest size; an instance fits when it is within one of them
    bounds: tuple[tuple[Spec, Spec], ...]
    templates: tuple[str, ...]
    vcpu_ratio: float
    spindle_ratio: float


#: The policy of a cluster that says nothing.
BUILTIN_POLICY = Policy(
    standard=Spec(128, 1, 1024, 1, 1, 1),
    bounds=((Spec(128, 1, 1024, 1, 1, 1), Spec(32768, 8, 1024 * 1024, 16, 8, 12)),),
    templates=tuple(MIRRORS),
    vcpu_ratio=4.0,
    spindle_ratio=32.0,
)


@dataclass(frozen=True, slots=True)
class Group:
    """A node group; ``alloc_policy`` is preferred, last_resort or unallocable."""

    name: str
    uuid: str
    alloc_policy: str = "preferred"
    tags: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """A node and what it has; ``offline`` also stands for a node that nothing is known about."""

    name: str
    group: str
    memory: int
    #: used by the node itself
    node_memory: int
    #: as the hypervisor reports it, without what the running instances may still take
    free_memory: int
    disk: int
    free_disk: int
    cpus: int
    offline: bool = False
    master: bool = False
    spindles: int = 1
    tags: tuple[str, ...] = ()
    exclusive_storage: bool = False
    free_spindles: int = 0
    node_cpus: int = 1
    cpu_speed: float = 1.0
    #: ``offline`` only because it is drained: what runs there can migrate away
    drained: bool = False


@dataclass(frozen=True, slots=True)
class Load:
    """How much an instance uses of each resource, in any unit that all instances share."""

    cpu: float = 1.0
    memory: float = 1.0
    disk: float = 1.0
    net: float = 1.0


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance or, when ``forthcoming``, a reservation; no ``primary``: it has no place yet."""

    name: str
    memory: int
    disk: int
    vcpus: int
    status: str
    auto_balance: bool
    primary: str
    secondary: str
    template: str
    tags: tuple[str, ...] = ()
    spindle_use: int = 1
    #: spindles its disks have on nodes with exclusive storage; None: unknown
    spindles: int | None = None
    forthcoming: bool = False
    load: Load = Load()
    #: sizes of single disks where they are known; otherwise ``disk`` is one disk
    disks: tuple[int, ...] = ()
    nics: int = 1

    @property
    def mirror(self) -> Mirror:
        return MIRRORS.get(self.template, Mirror.NONE)

    @property
    def runs(self) -> bool:
        return self.status in RUNNING and not self.forthcoming


@dataclass(frozen=True, slots=True)
class Cluster:
    """Everything the model knows; names of nodes and of instances are unique."""

    groups: tuple[Group, ...]
    nodes: tuple[Node, ...]
    instances: tuple[Instance, ...]
    tags: tuple[str, ...] = ()
    policy: Policy = BUILTIN_POLICY
    #: policies of groups by name
    policies: dict[str, Policy] = field(default_factory=dict)

    def policy_of(self, group: Group) -> Policy:
        return self.policies.get(group.name, self.policy)
