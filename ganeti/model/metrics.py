"""Every metric of ``/metrics``: its name, its labels, what it means.

The master measures, the remote API writes the text; both know the metrics by this table only.
Names of instances, nodes and groups have labels of their own (``instance_name``), as Prometheus
itself uses the label ``instance``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ganeti.base.group_commit import BOUNDS

#: Upper bounds in seconds of what takes from moments to hours, and of calls.
LONG = (0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800, 7200)
CALL = (0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60)


class Kind(StrEnum):
    """How a value behaves; a counter only grows, until its daemon or its guest starts again."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class Metric:
    """``name`` is without the endings ``_total`` and ``_bucket``, which Prometheus shows."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str
    bounds: tuple[float, ...] = ()

    @property
    def shown(self) -> str:
        """The name in queries; of a histogram that of its counts."""
        ending = {Kind.COUNTER: "_total", Kind.HISTOGRAM: "_bucket"}.get(self.kind, "")
        return self.name + ending


#: Values by metric: label values and the value; of a histogram counts up to each bound, and sum.
Report = dict[str, list[list[Any]]]

_NODE = ("node_name",)
_GUEST = ("instance_name",)
_GROUP = ("group_name",)
_MIRROR = ("instance_name", "disk", "node_name")


def _gauge(name: str, labels: Sequence[str], text: str) -> Metric:
    return Metric(f"ganeti_{name}", Kind.GAUGE, tuple(labels), text)


def _counter(name: str, labels: Sequence[str], text: str) -> Metric:
    return Metric(f"ganeti_{name}", Kind.COUNTER, tuple(labels), text)


def _histogram(name: str, labels: Sequence[str], text: str, bounds: Sequence[float]) -> Metric:
    return Metric(f"ganeti_{name}", Kind.HISTOGRAM, tuple(labels), text, tuple(bounds))


_TABLE = (
    # the cluster
    _gauge(
        "cluster_info",
        ("cluster_name", "master", "version"),
        "Always 1; the cluster, its master node and version",
    ),
    _gauge("report_timestamp_seconds", (), "Unix time at which the master made this report"),
    _gauge("master_start_timestamp_seconds", (), "Unix time at which the master daemon started"),
    _gauge("master_term", (), "Number of the master term; grows with each change of the master"),
    _gauge("master_lease_seconds", (), "Seconds the master may go on without its majority"),
    _gauge("watcher_run_timestamp_seconds", (), "Unix time of the last run of the watcher"),
    _gauge("watcher_paused", (), "1 while the watcher pauses"),
    _gauge("recovery_paused", (), "1 while no node is fenced and no master replaced"),
    _gauge(
        "recovery_instances",
        ("state",),
        "Instances of dead nodes that should run: recovered, starting, failed, waiting, or left",
    ),
    _gauge("verify_timestamp_seconds", (), "Unix time of the oldest last verification of a part"),
    _gauge(
        "verify_findings",
        ("severity", "code"),
        "Findings of the last verification by severity (error, warning) and code",
    ),
    # nodes
    _gauge("node_info", ("node_name", "group_name", "role"), "Always 1; group and role of a node"),
    _gauge("node_reachable", _NODE, "Whether the node daemon answers; missing while offline"),
    _gauge("node_offline", _NODE, "Whether the node is marked offline"),
    _gauge("node_fenced", _NODE, "Whether the master fenced the node since the daemon started"),
    _gauge("node_silence_seconds", _NODE, "Time since a call that the node answered"),
    _gauge("node_lease_seconds", _NODE, "Time until the lease of a node ends without renewal"),
    _gauge("node_watchdog_on", _NODE, "Whether a watchdog resets the node without a lease"),
    _gauge("node_last_answer_timestamp_seconds", _NODE, "Unix time of the last answer of the node"),
    _gauge("node_sample_timestamp_seconds", _NODE, "Unix time of the last measurement of a node"),
    _gauge("node_memory_bytes", _NODE, "Memory of a node"),
    _gauge("node_memory_used_bytes", _NODE, "Memory in use on a node"),
    _gauge("node_cpus", _NODE, "Processors of a node"),
    _gauge("node_load1", _NODE, "Load of a node in the last minute"),
    _gauge("node_storage_bytes", _NODE, "Size of the storage for disks of the default template"),
    _gauge("node_storage_free_bytes", _NODE, "Free space of that storage"),
    _counter("node_cpu_seconds", _NODE, "Processor time spent on a node"),
    _counter("node_disk_read_bytes", _NODE, "Bytes read from the disks of a node"),
    _counter("node_disk_written_bytes", _NODE, "Bytes written to the disks of a node"),
    _counter("node_disk_reads", _NODE, "Read operations on the disks of a node"),
    _counter("node_disk_writes", _NODE, "Write operations on the disks of a node"),
    _counter("node_network_received_bytes", _NODE, "Bytes received by the NICs of a node"),
    _counter("node_network_sent_bytes", _NODE, "Bytes sent by the NICs of a node"),
    _counter("node_sampling_cpu_seconds", _NODE, "Processor time that measuring has cost a node"),
    _gauge(
        "certificate_expiry_timestamp_seconds",
        ("node_name", "certificate"),
        "Unix time at which a certificate ends (ca, server, client, rapi)",
    ),
    # instances
    _gauge(
        "instance_info",
        ("instance_name", "node_name", "group_name", "hypervisor", "disk_template"),
        "Always 1; where an instance is and what it is made of",
    ),
    _gauge("instance_wanted_up", _GUEST, "Whether the instance should run"),
    _gauge("instance_running", _GUEST, "Whether it runs; missing while its node does not answer"),
    _gauge("instance_vcpus", _GUEST, "Virtual processors of an instance"),
    _gauge("instance_memory_max_bytes", _GUEST, "Memory that an instance may have"),
    _gauge("instance_memory_bytes", _GUEST, "Memory that a running instance has"),
    _gauge("instance_disk_bytes", _GUEST, "Size of all disks of an instance"),
    _counter("instance_cpu_seconds", _GUEST, "Processor time of an instance since it started"),
    _counter("instance_disk_read_bytes", _GUEST, "Bytes that an instance read from its disks"),
    _counter("instance_disk_written_bytes", _GUEST, "Bytes that it wrote to its disks"),
    _counter("instance_disk_reads", _GUEST, "Read operations of an instance"),
    _counter("instance_disk_writes", _GUEST, "Write operations of an instance"),
    _counter("instance_network_received_bytes", _GUEST, "Bytes that an instance received"),
    _counter("instance_network_sent_bytes", _GUEST, "Bytes that an instance sent"),
    _counter("instance_network_received_packets", _GUEST, "Packets that an instance received"),
    _counter("instance_network_sent_packets", _GUEST, "Packets that an instance sent"),
    # backups
    _gauge("backup_timestamp_seconds", _GUEST, "Unix time of the last good backup of an instance"),
    _gauge("backup_interval_seconds", _GUEST, "Time between two backups, of those with a schedule"),
    _gauge("backup_verified_timestamp_seconds", _GUEST, "Unix time at which one was proven good"),
    _gauge("backup_booted_timestamp_seconds", _GUEST, "Unix time at which a copy of one booted"),
    _gauge(
        "backup_verify_interval_seconds",
        _GUEST,
        "Time between two verifications, of those with a schedule",
    ),
    # mirrors
    _gauge("drbd_in_sync", _MIRROR, "Whether both sides of a DRBD disk have the same data"),
    _gauge("drbd_connected", _MIRROR, "Whether a side of a DRBD disk is connected to the other"),
    _gauge("drbd_out_of_sync_bytes", _MIRROR, "Data that a side of a DRBD disk has to copy"),
    # jobs
    _gauge("jobs", ("status",), "Jobs that are not archived, by status"),
    _counter("jobs_ended", ("status",), "Jobs that ended since the master daemon started"),
    _gauge("job_oldest_waiting_seconds", (), "Age of the oldest job that has not begun"),
    _gauge("queue_drained", (), "Whether the job queue takes no jobs"),
    _histogram("job_wait_seconds", ("opcode",), "Time from submission to the begin", LONG),
    _histogram("job_run_seconds", ("opcode",), "Time from the begin to the end", LONG),
    # locks
    _gauge("locks", ("level",), "Locks by level"),
    _gauge("locks_held", ("level", "mode"), "Locks that somebody holds, by level and mode"),
    _gauge("lock_waiters", ("level",), "Requests that wait for a lock, by level"),
    # inside of the master
    _histogram("rpc_duration_seconds", _NODE, "Duration of calls to a node", CALL),
    _counter("rpc_errors", _NODE, "Calls that a node did not answer"),
    _histogram("journal_flush_seconds", ("journal",), "Time to flush a journal", BOUNDS),
    _counter("luxi_requests", ("method",), "LUXI requests by method, those from memory excepted"),
    _histogram("query_duration_seconds", (), "Duration of queries", CALL),
    # placement
    _gauge(
        "capacity_instances",
        ("group_name", "size"),
        "Instances that still fit (normal: of the standard size; tiered: of falling sizes)",
    ),
    _gauge("n_plus_1_failing_nodes", _GROUP, "Nodes whose instances could not all start elsewhere"),
    _gauge("capacity_timestamp_seconds", (), "Unix time at which the capacity was computed"),
    # the remote API, measured by itself
    _counter("api_requests", ("method", "path", "status"), "Requests to the remote API"),
    _histogram("api_request_duration_seconds", ("method",), "Duration of requests", CALL),
)
METRICS = {metric.name: metric for metric in _TABLE}
