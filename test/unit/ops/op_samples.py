"""Configurations for tests of decisions: as a new cluster has them, with more nodes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ganeti.base.clock import SYSTEM
from ganeti.bootstrap import defaults
from ganeti.bootstrap.settings import InitSettings
from ganeti.config.job_claims import JobClaims
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate, HypervisorName
from ganeti.model.group import NodeGroup
from ganeti.model.instance import Instance
from ganeti.model.nic import Nic
from ganeti.model.node import Node
from ganeti.ops.operation import Context
from ganeti.ops.verification.report import Report
from ganeti.paths import Paths


def node(number: int, group: str = "", **more: Any) -> Node:
    values: dict[str, Any] = {
        "uuid": f"node-{number}",
        "name": f"node{number}.example.com",
        "group": group,
        "primary_ip": f"192.0.2.{number}",
        "secondary_ip": f"192.0.2.{number}",
    }
    return Node(**{**values, **more})


def config(*nodes: Node, pool: int = 10, **cluster: Any) -> Config:
    """A new cluster whose master is node1; ``nodes`` are further ones in its group."""
    data = defaults.configuration(
        InitSettings(cluster_name="cluster.example.com", enabled_hypervisors=["fake"]),
        host="node1.example.com",
        address="192.0.2.1",
        master_ip="192.0.2.254",
        certificate_digest="AA",
        now=1.0,
    )
    [master] = data.nodes.values()
    table = {master.uuid: master}
    table |= {n.uuid: base.replace(n, group=n.group or master.group) for n in nodes}
    changed = base.replace(data.cluster, candidate_pool_size=pool, **cluster)
    return Config(base.replace(data, cluster=changed, nodes=table))


def with_group(of: Config, name: str, **more: Any) -> Config:
    group = NodeGroup(uuid=f"group-{name}", name=name, **more)
    return of.apply([("nodegroups", group.uuid, group)], [], None, mtime=2.0)


def with_instance(of: Config, name: str, *places: str, **more: Any) -> Config:
    """An instance with one disk: mirrored with two places (node uuids), else a file."""
    kind = DiskTemplate.DRBD if len(places) > 1 else DiskTemplate.FILE
    disk = Disk(
        uuid=f"disk-{name}",
        dev_type=kind,
        logical_id=("loop", f"/srv/{name}"),
        nodes=places,
        iv_name="disk/0",
        size=2048,
    )
    instance = Instance(
        uuid=f"inst-{name}",
        name=name,
        primary_node=places[0],
        os="noop",  # type: ignore[arg-type]
        hypervisor=HypervisorName.FAKE,
        disks=(disk.uuid,),  # type: ignore[arg-type]
        nics=(Nic(uuid=f"nic-{name}", mac="aa:00:00:00:00:01"),),
        **more,
    )
    return of.apply(
        [("disks", disk.uuid, disk), ("instances", instance.uuid, instance)], [], None, mtime=2.0
    )


def put(of: Config, table: str, *items: Any) -> Config:
    """The configuration with other or further objects of one table."""
    return of.apply([(table, item.uuid, item) for item in items], [], None, mtime=2.0)


def change(of: Config, name: str = "web1", **changes: Any) -> Config:
    """The configuration with another state of an instance that :func:`with_instance` made."""
    return put(of, "instances", base.replace(of.instances[f"inst-{name}"], **changes))


def with_cluster(of: Config, **changes: Any) -> Config:
    return of.apply([], [], base.replace(of.cluster, **changes), mtime=2.0)


def with_web1(*more: Node, **changes: Any) -> Config:
    """A cluster of three nodes, and ``more``, with the instance ``web1`` on ``node2``."""
    return change(with_instance(config(node(2), node(3), *more), "web1", "node-2"), **changes)


def context(of: Config, job_id: int = 7) -> Context:
    """What a decision reads: this configuration, nothing reserved; ``log`` of the job is a list."""
    log: list[str] = []
    none: Any = None
    job: Any = SimpleNamespace(job_id=job_id, log=log.append, lines=log, submitter=None)
    store: Any = SimpleNamespace(current=of)
    return Context(
        job=job,
        store=store,
        rpc=none,
        locks=none,
        claims=JobClaims(),
        clock=SYSTEM,
        paths=Paths(Path("/nowhere")),
        services=none,
    )


class Findings:
    """The report of a verification, as lines with level, code and subject."""

    def __init__(self) -> None:
        self._ctx = context(config())
        self.report = Report(self._ctx, error_codes=True, ignored=())

    @property
    def lines(self) -> list[str]:
        lines: list[str] = self._ctx.job.lines  # type: ignore[attr-defined]
        return [line.removeprefix("  - ") for line in lines]
