"""The cluster itself: always one row, the cluster object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ganeti import constants
from ganeti.filters.answer import FieldKind
from ganeti.filters.compile import Column
from ganeti.model.cluster import Cluster
from ganeti.query.field import UNAVAIL, Context, Field, Getter, Kind, Task, optional
from ganeti.query.live import ClusterFacts, Need

TEXT, NUMBER, OTHER = FieldKind.TEXT, FieldKind.NUMBER, FieldKind.OTHER


class ClusterKind(Kind[Cluster]):
    name = "cluster"

    def rows(self, ctx: Context) -> Sequence[Cluster]:
        return [ctx.config.cluster]

    def row_name(self, row: Cluster) -> str:
        return row.cluster_name

    def tasks(
        self, ctx: Context, needs: frozenset[Need], rows: Sequence[Cluster]
    ) -> Mapping[Need, Task]:
        return {Need.FACTS: ctx.sources.cluster_facts}


KIND = ClusterKind()

KIND.attribute("name", "Name", TEXT, "Name of the cluster", "cluster_name")
KIND.alias("cluster_name", "name")
KIND.attribute("ctime", "CTime", FieldKind.TIMESTAMP, "When the cluster was made", "ctime")
KIND.attribute("mtime", "MTime", FieldKind.TIMESTAMP, "When the cluster was last changed", "mtime")


@KIND.value("tags", "Tags", OTHER, "Tags of the cluster, sorted")
def _tags(cluster: Cluster) -> list[str]:
    return list(cluster.tags)


@KIND.value("volume_group_name", "VgName", TEXT, "Volume group for disks")
def _volume_group_name(cluster: Cluster) -> str | None:
    return cluster.volume_group_name or None


@KIND.field("master_node", "Master", TEXT, "Name of the master node")
def _master_node(ctx: Context) -> Column[Cluster]:
    master = ctx.config.nodes.get(ctx.config.cluster.master_node)
    return lambda _: (0, master.name) if master else UNAVAIL


def _constant(value: object) -> Getter[Cluster]:
    return lambda _: lambda _: (0, value)


for _name, _title, _kind, _value, _doc in (
    (
        "config_version",
        "ConfigVersion",
        NUMBER,
        constants.CONFIG_VERSION,
        "Version of the configuration file",
    ),
    (
        "protocol_version",
        "ProtocolVersion",
        NUMBER,
        constants.PROTOCOL_VERSION,
        "Version of the protocols between daemons",
    ),
    ("export_version", "ExportVersion", NUMBER, constants.EXPORT_VERSION, "Format of exports"),
    (
        "os_api_version",
        "OsApiVersion",
        NUMBER,
        max(constants.OS_API_VERSIONS),
        "Newest interface of OS definitions",
    ),
    (
        "software_version",
        "SoftwareVersion",
        TEXT,
        constants.RELEASE_VERSION,
        "Version of the software",
    ),
):
    KIND.add(Field(_name, _title, _kind, _doc, _constant(_value)))


def _facts(ctx: Context) -> ClusterFacts:
    facts: ClusterFacts = ctx.live[Need.FACTS]
    return facts


@KIND.field(
    "drain_flag",
    "QueueDrained",
    FieldKind.BOOL,
    "Whether the job queue takes no new jobs",
    needs=[Need.FACTS],
)
def _drain_flag(ctx: Context) -> Column[Cluster]:
    facts = _facts(ctx)
    return lambda _: (0, facts.drained)


@KIND.field(
    "watcher_pause",
    "WatcherPause",
    FieldKind.TIMESTAMP,
    "Until when the watcher is paused",
    needs=[Need.FACTS],
)
def _watcher_pause(ctx: Context) -> Column[Cluster]:
    facts = _facts(ctx)
    return lambda _: optional(facts.watcher_pause)


@KIND.field(
    "architecture", "ArchInfo", OTHER, "Word size and machine of the master", needs=[Need.FACTS]
)
def _architecture(ctx: Context) -> Column[Cluster]:
    facts = _facts(ctx)
    return lambda _: (0, list(facts.architecture))


@KIND.field(
    "vcs_version", "VCSVersion", TEXT, "Revision the software was built from", needs=[Need.FACTS]
)
def _vcs_version(ctx: Context) -> Column[Cluster]:
    facts = _facts(ctx)
    return lambda _: (0, facts.vcs_version)
