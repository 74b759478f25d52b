"""The values of all metrics that the master knows, from its memory: no node is called for them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ganeti import constants
from ganeti.master import health, recovery_status
from ganeti.model.backup import BackupPlan
from ganeti.model.config import Config
from ganeti.model.enums import AdminState
from ganeti.model.instance import Instance
from ganeti.model.metrics import METRICS, Report
from ganeti.model.node import Node
from ganeti.rpc.samples import GuestCounters, MirrorSample

if TYPE_CHECKING:
    from ganeti.master.core import Core

_MIB = 1024 * 1024
#: Metrics of a guest -> member of its counters.
_GUEST = {
    "instance_memory_bytes": "memory",
    "instance_cpu_seconds": "cpu",
    "instance_disk_read_bytes": "disk_read",
    "instance_disk_written_bytes": "disk_write",
    "instance_disk_reads": "disk_read_ops",
    "instance_disk_writes": "disk_write_ops",
    "instance_network_received_bytes": "net_receive",
    "instance_network_sent_bytes": "net_send",
    "instance_network_received_packets": "net_receive_ops",
    "instance_network_sent_packets": "net_send_ops",
}
_HOST = {
    "node_memory_bytes": "memory_total",
    "node_memory_used_bytes": "memory",
    "node_cpus": "cpus",
    "node_load1": "load",
    "node_cpu_seconds": "cpu",
    "node_disk_read_bytes": "disk_read",
    "node_disk_written_bytes": "disk_write",
    "node_disk_reads": "disk_read_ops",
    "node_disk_writes": "disk_write_ops",
    "node_network_received_bytes": "net_receive",
    "node_network_sent_bytes": "net_send",
}


class Sheet:
    """Collects values; what is None is left out, an unknown metric is a bug."""

    def __init__(self) -> None:
        self.values: Report = {}

    def add(self, name: str, labels: Iterable[object], value: float | None) -> None:
        if value is None:
            return
        full = f"ganeti_{name}"
        rows = self.values.get(full)
        if rows is None:
            rows = self.values[full] = []
            assert full in METRICS, full
        rows.append([list(labels), value])

    def add_histogram(self, name: str, labels: Iterable[object], times: Any) -> None:
        counts, total = times.read()
        self.values.setdefault(f"ganeti_{name}", []).append([list(labels), counts, total])


def collect(core: Core) -> Report:
    """All values now."""
    sheet = Sheet()
    config = core.store.current
    _add_cluster(sheet, core, config)
    for node in config.nodes.values():
        _add_node(sheet, core, config, node)
    for instance in config.instances.values():
        if not instance.forthcoming:
            _add_instance(sheet, core, config, instance)
    _add_mirrors(sheet, core, config)
    _add_jobs(sheet, core)
    _add_locks(sheet, core)
    _add_inside(sheet, core)
    _add_room(sheet, core)
    return sheet.values


def _add_cluster(sheet: Sheet, core: Core, config: Config) -> None:
    name, master = config.cluster.cluster_name, config.master.name
    sheet.add("cluster_info", (name, master, constants.RELEASE_VERSION), 1)
    sheet.add("report_timestamp_seconds", (), core.clock.now())
    sheet.add("master_start_timestamp_seconds", (), core.started)
    sheet.add("master_term", (), core.rpc.epoch)
    sheet.add("master_lease_seconds", (), core.lease.count_left())
    sheet.add("watcher_run_timestamp_seconds", (), health.last_watcher_run(core.paths))
    sheet.add("watcher_paused", (), int(core.facts.watcher_pause() is not None))
    paused = config.cluster.find_recovery_pause(core.clock.now()) is not None
    sheet.add("recovery_paused", (), int(paused))
    rows = recovery_status.find_wanted_instances(core, config, core.clock.now())
    by_state = Counter(row["state"] for row in rows)
    for state in recovery_status.State:
        sheet.add("recovery_instances", (state.value,), by_state[state])
    sheet.add("verify_timestamp_seconds", (), health.oldest_verification(core, config))
    counts = Counter(
        (known.finding.severity, known.finding.code) for known in health.list_findings(core, config)
    )
    for labels, count in counts.items():
        sheet.add("verify_findings", labels, count)


def _add_node(sheet: Sheet, core: Core, config: Config, node: Node) -> None:
    name = (node.name,)
    role = node.role(config.cluster.master_node).value
    sheet.add("node_info", (node.name, config.groups[node.group].name, role), 1)
    sheet.add("node_offline", name, int(node.offline))
    sheet.add("node_fenced", name, int(core.fencer.was_fenced(node.uuid)))
    state = None if node.offline else core.survey.nodes.get(node.uuid)
    if state is None:
        return
    if node.uuid != config.cluster.master_node:
        view = core.node_leases.describe(node.uuid)
        sheet.add("node_silence_seconds", name, view.silence)
        sheet.add("node_lease_seconds", name, view.lease_left)
        sheet.add("node_watchdog_on", name, int(view.watchdog))
    sheet.add("node_reachable", name, int(state.reachable))
    sheet.add("node_last_answer_timestamp_seconds", name, state.answered or None)
    samples = state.samples
    sheet.add("node_sample_timestamp_seconds", name, samples.time or None)
    if samples.host is not None:
        for metric, member in _HOST.items():
            sheet.add(metric, name, getattr(samples.host, member))
        sheet.add("node_sampling_cpu_seconds", name, samples.cost)
    for certificate, end in samples.certificates.items():
        sheet.add("certificate_expiry_timestamp_seconds", (node.name, certificate), end)


def _add_instance(sheet: Sheet, core: Core, config: Config, instance: Instance) -> None:
    name = (instance.name,)
    node = config.nodes[instance.primary_node]
    where = (instance.name, node.name, config.groups[node.group].name)
    disks = [config.disks[uuid] for uuid in instance.disks if uuid in config.disks]
    template = str(disks[0].dev_type) if disks else "diskless"
    sheet.add("instance_info", (*where, str(instance.real_hypervisor), template), 1)
    sheet.add("instance_wanted_up", name, int(instance.admin_state is AdminState.UP))
    params = config.beparams(instance)
    sheet.add("instance_vcpus", name, params["vcpus"])
    sheet.add("instance_memory_max_bytes", name, params["maxmem"] * _MIB)
    sheet.add("instance_disk_bytes", name, sum(disk.size for disk in disks) * _MIB)
    if instance.backup is not None:
        add_backup(sheet, instance.name, instance.backup)
    state = None if node.offline else core.survey.nodes.get(node.uuid)
    if state is None or not state.samples.time:
        return
    counters: GuestCounters | None = state.samples.guests.get(instance.name)
    sheet.add("instance_running", name, int(counters is not None))
    if counters is not None:
        for metric, member in _GUEST.items():
            sheet.add(metric, name, getattr(counters, member))


def add_backup(sheet: Sheet, name: str, plan: BackupPlan) -> None:
    """Add the metrics of the backups of an instance; a schedule without a backup has no time."""
    sheet.add("backup_timestamp_seconds", (name,), plan.last_time)
    sheet.add("backup_interval_seconds", (name,), plan.every * 3600 if plan.every else None)
    sheet.add("backup_verified_timestamp_seconds", (name,), plan.verified_time)
    sheet.add("backup_booted_timestamp_seconds", (name,), plan.booted_time)
    hours = plan.verify_every
    sheet.add("backup_verify_interval_seconds", (name,), hours * 3600 if hours else None)


def _add_mirrors(sheet: Sheet, core: Core, config: Config) -> None:
    for instance, disk, node, sample in health.list_mirrors(core, config):
        labels = (instance, disk, node)
        sheet.add("drbd_in_sync", labels, int(health.is_mirrored(sample)))
        sheet.add("drbd_connected", labels, int(_is_connected(sample)))
        sheet.add("drbd_out_of_sync_bytes", labels, sample.out_of_sync)


def _is_connected(sample: MirrorSample) -> bool:
    """The words of the kernel for states without a peer."""
    alone = ("StandAlone", "Disconnecting", "Unconnected", "Timeout", "BrokenPipe")
    lost = ("NetworkFailure", "ProtocolError", "TearDown", "WFConnection", "WFReportParams")
    return sample.connection not in (*alone, *lost)


def _add_jobs(sheet: Sheet, core: Core) -> None:
    for status, count in core.tally.counts().items():
        sheet.add("jobs", (str(status),), count)
    for status, count in core.tally.ended.copy().items():
        sheet.add("jobs_ended", (str(status),), count)
    oldest = core.tally.oldest_waiting()
    age = 0.0 if oldest is None else max(0.0, core.clock.now() - oldest)
    sheet.add("job_oldest_waiting_seconds", (), age)
    sheet.add("queue_drained", (), int(core.queue.drained))
    for name, times in zip(("job_wait_seconds", "job_run_seconds"), core.tally.times()):
        for opcode, histogram in times.items():
            sheet.add_histogram(name, (opcode,), histogram)


def _add_locks(sheet: Sheet, core: Core) -> None:
    there: Counter[str] = Counter()
    waiting: Counter[str] = Counter()
    held: Mapping[str, Counter[str]] = defaultdict(Counter)
    for lock in core.locks.snapshot():
        level, _, _name = lock.name.partition("/")
        there[level] += 1
        waiting[level] += len(lock.pending)
        if lock.mode is not None and lock.owners:
            held[level][str(lock.mode)] += 1
    for level, count in there.items():
        sheet.add("locks", (level,), count)
        sheet.add("lock_waiters", (level,), waiting[level])
        for mode in ("exclusive", "shared"):
            sheet.add("locks_held", (level, mode), held[level][mode])


def _add_inside(sheet: Sheet, core: Core) -> None:
    known = {node.name for node in core.store.current.nodes.values()}
    for node, (times, failures) in core.rpc.tally.read().items():
        if node in known:
            sheet.add_histogram("rpc_duration_seconds", (node,), times)
            sheet.add("rpc_errors", (node,), failures)
    sheet.add_histogram("journal_flush_seconds", ("queue",), core.job_files.flush_times)
    sheet.add_histogram("journal_flush_seconds", ("config",), core.store.flush_times)
    for method, count in core.requests.counts().items():
        sheet.add("luxi_requests", (method,), count)
    sheet.add_histogram("query_duration_seconds", (), core.requests.query_times)


def _add_room(sheet: Sheet, core: Core) -> None:
    room = core.survey.room
    for node, (size, free) in (room.storage or {}).items():
        sheet.add("node_storage_bytes", (node,), None if size is None else size * _MIB)
        sheet.add("node_storage_free_bytes", (node,), None if free is None else free * _MIB)
    if room.groups is None:
        return
    sheet.add("capacity_timestamp_seconds", (), room.time)
    for group in room.groups:
        name = group["group"]
        tiered = sum(size["count"] for size in group["tiered"]["sizes"])
        sheet.add("capacity_instances", (name, "normal"), group["normal"]["count"])
        sheet.add("capacity_instances", (name, "tiered"), tiered)
        sheet.add("n_plus_1_failing_nodes", (name,), len(group["stuck"]))
