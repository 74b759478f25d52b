"""The health of the cluster: findings, nodes, mirrors, room; from memory, no node is called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from ganeti.base.json_types import JsonObject
from ganeti.config import drbd
from ganeti.master.findings import Known
from ganeti.model.config import Config
from ganeti.model.ids import DiskUuid
from ganeti.paths import Paths
from ganeti.rpc.samples import MirrorSample

if TYPE_CHECKING:
    from ganeti.master.core import Core

#: Certificates of all nodes are told when they end within this time, in seconds.
SOON = 30 * 86400.0


def find_health(core: Core) -> JsonObject:
    """The answer of QueryHealth."""
    config, now = core.store.current, core.clock.now()
    core.survey.note_interest()
    room = core.survey.room
    return {
        "time": now,
        "findings": [
            {**msgspec.structs.asdict(known.finding), "since": known.since}
            for known in list_findings(core, config)
        ],
        "verified": oldest_verification(core, config),
        "watcher_run": last_watcher_run(core.paths),
        "watcher_paused_until": core.facts.watcher_pause(),
        "queue_drained": core.queue.drained,
        "capacity": None if room.groups is None else {"time": room.time, "groups": room.groups},
        "certificates": list_certificates(core, config, now),
        "unreachable_nodes": [
            {"node": config.nodes[uuid].name, "since": state.since, "problem": state.problem}
            for uuid, state in core.survey.nodes.items()
            if not state.reachable and uuid in config.nodes and not config.nodes[uuid].offline
        ],
        "offline_nodes": sorted(node.name for node in config.nodes.values() if node.offline),
        "degraded_mirrors": [
            {
                "instance": instance,
                "disk": disk,
                "node": node,
                "state": f"{sample.connection}, {sample.disk}/{sample.peer_disk}",
                "out_of_sync": sample.out_of_sync,
                "percent": sample.percent,
            }
            for instance, disk, node, sample in list_mirrors(core, config)
            if not is_mirrored(sample)
        ],
    }


def list_certificates(core: Core, config: Config, now: float) -> list[JsonObject]:
    """Each certificate of the master, and those of other nodes that end soon."""
    found = []
    for uuid, state in core.survey.nodes.items():
        for name, end in state.samples.certificates.items():
            if uuid in config.nodes and (uuid == config.master.uuid or end - now < SOON):
                found.append({"node": config.nodes[uuid].name, "certificate": name, "ends": end})
    return found


def list_findings(core: Core, config: Config) -> list[Known]:
    """Findings of the last verifications of the configuration and of all node groups."""
    parts = core.findings.parts
    wanted = ["", *config.groups]
    return [known for part in wanted if part in parts for known in parts[part].findings]


def oldest_verification(core: Core, config: Config) -> float | None:
    """When the part that was verified longest ago was; None while one never was on this master."""
    parts = core.findings.parts
    if any(part not in parts for part in ("", *config.groups)):
        return None
    return min(parts[part].time for part in ("", *config.groups))


def last_watcher_run(paths: Paths) -> float | None:
    """When the watcher last wrote the status of all instances; None: never on this node."""
    try:
        return paths.instance_status.stat().st_mtime
    except OSError:
        return None


def list_mirrors(core: Core, config: Config) -> Iterator[tuple[str, str, str, MirrorSample]]:
    """Instance, disk number, node and state of each side of a mirror that a node told of."""
    for uuid, minors in drbd.minor_map(config).items():
        state = core.survey.nodes.get(uuid)
        if state is None or uuid not in config.nodes:
            continue
        for sample in state.samples.mirrors:
            for disk in map(DiskUuid, minors.get(sample.minor, ())):
                owner = config.owner(disk)
                if owner is not None:
                    index = list(owner.disks).index(disk)
                    yield owner.name, str(index), config.nodes[uuid].name, sample


def is_mirrored(sample: MirrorSample) -> bool:
    """Both sides have the same data, and it stays so."""
    states = (sample.connection, sample.disk, sample.peer_disk)
    return states == ("Connected", "UpToDate", "UpToDate")
