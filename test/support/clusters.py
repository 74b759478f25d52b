"""Clusters for tests of placement: consistent, and different for every seed."""

from __future__ import annotations

import random

from ganeti.placement.facts import Cluster, Group, Instance, Node, Policy, Spec

POLICY = Policy(
    standard=Spec(1024, 1, 10240, 1, 1, 1),
    bounds=((Spec(128, 1, 1024, 1, 1, 1), Spec(8192, 8, 204800, 16, 8, 12)),),
    templates=("drbd", "plain", "ext"),
    vcpu_ratio=4.0,
    spindle_ratio=32.0,
)


def cluster(
    seed: int,
    nodes: int = 5,
    instances: int = 20,
    *,
    templates: tuple[str, ...] = ("drbd",),
    tags: bool = False,
    reserved: float = 0.0,
    down: float = 0.1,
    offline: int = 0,
    spare: int = 8192,
    memory: int = 65536,
) -> Cluster:
    """One group, unevenly filled; ``spare`` is the memory that is left on every node at least.

    ``reserved`` is the share of reservations, ``down`` that of instances that do not run.
    """
    random_ = random.Random(seed)
    names = [f"node{i}" for i in range(1, nodes + 1)]
    disk, cpus = 4_000_000, 32
    left = dict.fromkeys(names, memory - 1024)
    free = dict.fromkeys(names, memory - 1024)
    room = dict.fromkeys(names, disk)
    used = dict.fromkeys(names, 1)
    items = []
    for number in range(1, instances + 1):
        size = random_.choice([512, 1024, 2048, 4096])
        gib = random_.choice([10240, 20480, 51200])
        vcpus = random_.choice([1, 2, 4])
        able = [n for n in names if left[n] - size > spare and used[n] + vcpus < cpus * 3]
        if len(able) < 2:
            break
        first = able[min(int(random_.expovariate(2.0) * len(able)), len(able) - 1)]
        template = random_.choice(templates)
        second = random_.choice([n for n in able if n != first]) if template == "drbd" else ""
        future = random_.random() < reserved
        status = "ADMIN_down" if random_.random() < down else "running"
        left[first] -= size
        used[first] += vcpus
        if not future:
            if status == "running":
                free[first] -= size
            if template != "ext":
                room[first] -= gib
            if second:
                room[second] -= gib
        items.append(
            Instance(
                name=f"inst{number}",
                memory=size,
                disk=gib,
                vcpus=vcpus,
                status=status,
                auto_balance=True,
                primary=first,
                secondary=second,
                template=template,
                tags=(f"service:{random_.randrange(max(2, instances // 3))}",) if tags else (),
                forthcoming=future,
            )
        )
    made = [
        Node(
            name=name,
            group="uuid-1",
            memory=memory,
            node_memory=1024,
            free_memory=free[name],
            disk=disk,
            free_disk=room[name],
            cpus=cpus,
            offline=position >= nodes - offline,
            master=position == 0,
            spindles=16,
        )
        for position, name in enumerate(names)
    ]
    return Cluster(
        groups=(Group("group1", "uuid-1"),),
        nodes=tuple(made),
        instances=tuple(items),
        tags=("htools:iextags:service",) if tags else (),
        policy=POLICY,
        policies={"group1": POLICY},
    )
