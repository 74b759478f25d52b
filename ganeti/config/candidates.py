"""Which nodes keep a copy of the configuration: promotion, demotion, what is missing. Pure.

The master is always a candidate. Drained and offline nodes and those that may not become master
never are. Witnesses go first, then the natural order of names decides, so that the same
configuration always leads to the same choice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ganeti.base.text import natural_key
from ganeti.model.config import Config
from ganeti.model.ids import NodeUuid
from ganeti.model.node import Node

#: Behind a uuid in the list of accepted certificates: what the node had before a renewal.
OLD_CERTIFICATE = "-OLD"


def is_witness(config: Config, node: Node) -> bool:
    """Whether a master candidate keeps a copy and votes, but does not take over by itself."""
    return bool(config.ndparams(node).get("witness"))


def without_old_certificates(accepted: Mapping[NodeUuid, str]) -> dict[NodeUuid, str]:
    """The list of accepted certificates as it is when no renewal is going on."""
    return {uuid: text for uuid, text in accepted.items() if not uuid.endswith(OLD_CERTIFICATE)}


def may_be_candidate(node: Node) -> bool:
    return node.master_capable and not node.offline and not node.drained


def _sorted(config: Config, nodes: list[Node]) -> list[Node]:
    return sorted(nodes, key=lambda node: (not is_witness(config, node), natural_key(node.name)))


def choose_promotions(
    config: Config, *, size: int | None = None, without: Collection[NodeUuid] = ()
) -> list[Node]:
    """The nodes to promote so that there are as many candidates as wanted, or as possible.

    ``size`` is the wanted number, by default that of the cluster; the nodes ``without`` (uuids)
    do not count and are not taken.
    """
    wanted = config.cluster.candidate_pool_size if size is None else size
    others = [node for node in config.nodes.values() if node.uuid not in without]
    have = sum(node.master_candidate for node in others)
    free = [node for node in others if not node.master_candidate and may_be_candidate(node)]
    return _sorted(config, free)[: max(0, wanted - have)]


def choose_demotions(config: Config, *, size: int) -> list[Node]:
    """The nodes to demote so that no more than ``size`` candidates are left; never the master."""
    others = [n for n in config.candidates() if n.uuid != config.cluster.master_node]
    return _sorted(config, others)[max(0, size - 1) :]
