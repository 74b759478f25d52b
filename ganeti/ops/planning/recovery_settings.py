"""Whether the cluster's limits for silent masters and nodes make sense together. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ganeti.base.json_types import JsonObject
from ganeti.base.text import join_names
from ganeti.config import parameters
from ganeti.config.candidates import is_witness
from ganeti.model.config import Config
from ganeti.model.enums import MasterVote
from ganeti.opcodes.cluster import OpClusterSetParams
from ganeti.recovery import bounds
from ganeti.recovery.ladder import list_devices

#: Longest silence in seconds that somebody may be allowed.
_LONGEST_SILENCE = 3600
#: Shortest silence of the master: it calls candidates every 5 seconds, and some must have failed.
_SHORTEST_FAILOVER = 15

#: Seconds from the end of its patience until a candidate is the master and has called all nodes.
_NEW_MASTER = 25


def limits(config: Config, op: OpClusterSetParams, notes: list[str]) -> JsonObject:
    """Settings of recovery for a silent master or node, from a request.

    0 is stored as None, and so is a vote of the nodes.
    """
    values: JsonObject = {}
    shortest_silence = (
        ("auto_failover_after", _SHORTEST_FAILOVER),
        ("auto_fence_after", bounds.SHORTEST_NODE_LEASE),
    )
    for name, shortest in shortest_silence:
        limit = getattr(op, name)
        if limit is None:
            continue
        if limit and not shortest <= limit <= _LONGEST_SILENCE:
            raise parameters.refuse(
                f"{name} is {limit}; choose 0 for never, or from {shortest} to"
                f" {_LONGEST_SILENCE} seconds"
            )
        values[name] = limit or None
    if op.master_vote is not None:
        values["master_vote"] = None if op.master_vote is MasterVote.NODES else op.master_vote
    _check_deciders(config, values)
    nodes = [node for node in config.nodes.values() if not node.offline]
    candidates = [node for node in nodes if node.master_candidate]
    witnesses = sum(is_witness(config, node) for node in candidates)
    replaced = op.auto_failover_after or op.master_vote is MasterVote.PACEMAKER
    if replaced and (len(candidates) < 3 or len(candidates) - witnesses < 2):
        notes.append(
            "WARNING: no candidate can take over by itself: that needs at least 3 master candidates"
            f" that are not offline, and there are {len(candidates)}"
            + (f" ({witnesses} of them only vote)" if witnesses else "")
        )
    blind = [
        node.name for node in nodes if node.vm_capable and not _can_be_fenced(config.ndparams(node))
    ]
    if op.auto_fence_after and blind:
        notes.append(
            "WARNING: nodes without a fence agent, an out-of-band helper or a watchdog are never"
            f" fenced: {join_names(sorted(blind))} (gnt-node modify --node-parameters"
            " fence_agent=NAME, oob_program=PATH or watchdog=DEVICE)"
        )
    fence = values.get("auto_fence_after", config.cluster.auto_fence_after)
    failover = values.get("auto_failover_after", config.cluster.auto_failover_after)
    if values and fence and bounds.count_acting(fence) < (failover or 0) + _NEW_MASTER:
        notes.append(_warn_of_short_leases(fence, failover))
    return values


def _check_deciders(config: Config, values: JsonObject) -> None:
    before = config.cluster.master_vote
    after = values.get("master_vote", before)
    if before is not None and after not in (None, before):
        raise parameters.refuse(
            f"master_vote is {before}: change it to {MasterVote.NODES} first, and then to {after}"
        )
    failover = values.get("auto_failover_after", config.cluster.auto_failover_after)
    if values and after is MasterVote.PACEMAKER and failover:
        raise parameters.refuse(
            f"auto_failover_after is {failover}, and Pacemaker replaces a master by its own rules:"
            " add --auto-failover-after=0"
        )


def _can_be_fenced(params: Mapping[str, object]) -> bool:
    return bool(list_devices(params) or params.get("watchdog"))


def _warn_of_short_leases(fence: float, failover: float | None) -> str:
    acts = bounds.count_acting(fence)
    if not failover:
        return (
            f"WARNING: when the master is down for {acts:.0f} s, all nodes are without a lease:"
            " instances that may fail over are ended, and watchdogs reset their nodes"
        )
    shortest = (failover + _NEW_MASTER) / bounds.PART
    return (
        f"WARNING: nodes act for {acts:.0f} s without a master, and a new one may need"
        f" {failover + _NEW_MASTER:.0f} s: choose auto_fence_after={shortest:.0f} or more, or else"
        " instances that may fail over are ended when the master dies"
    )
