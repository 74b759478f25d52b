"""Decide whose keys of SSH are let in, and what clients know of the servers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ganeti.model.config import Config
from ganeti.model.ids import NodeUuid
from ganeti.net.ssh_files import identify

#: Node uuid -> (public key of root, public keys of its SSH server).
Answers = Mapping[NodeUuid, tuple[str, list[str]]]
#: Node uuid -> public keys of root, as in ``ganeti_pub_keys``.
Keys = Mapping[NodeUuid, list[str]]


@dataclass(frozen=True)
class SshPlan:
    #: the keys in use, by the uuid of their node
    public: dict[NodeUuid, list[str]]
    #: keys of the master candidates, which may log in everywhere as root
    allowed: list[str]
    #: keys of other nodes, and keys that were replaced or whose node is gone
    refused: list[str]

    def list_all(self) -> dict[NodeUuid, list[str]]:
        """The keys in use and those that are refused; the latter belong to nobody."""
        gone = [key for key in self.refused if not self._in_use(key)]
        return {**self.public, **({GONE: gone} if gone else {})}

    def _in_use(self, key: str) -> bool:
        return any(identify(key) == identify(own) for keys in self.public.values() for own in keys)


#: Port of SSH servers if no other one is set; known_hosts does not name it.
_PORT = 22
#: Stands for the uuid of the node of keys that are not in use any more.
GONE = NodeUuid("gone")


def decide(config: Config, stored: Keys, answers: Answers) -> SshPlan:
    """A node that did not answer keeps the keys that are stored for it."""
    public: dict[NodeUuid, list[str]] = {}
    for uuid in config.nodes:
        keys = [answers[uuid][0]] if uuid in answers else list(stored.get(uuid, []))
        if keys:
            public[uuid] = keys
    candidates = {node.uuid for node in config.candidates()}
    allowed = {identify(key): key for uuid in public if uuid in candidates for key in public[uuid]}
    known = {
        identify(key): key
        for keys in (*stored.values(), *public.values())
        for key in keys
        if identify(key) not in allowed
    }
    return SshPlan(public, list(allowed.values()), list(known.values()))


def known_hosts(config: Config, old: list[str], answers: Answers) -> list[str]:
    """Lines of ``known_hosts``: each key under the name of the cluster, and of its node.

    Lines of nodes that did not answer stay.
    """
    cluster = config.cluster.cluster_name
    before: dict[str, list[str]] = {}
    for line in old:
        names, _, key = line.partition(" ")
        before.setdefault(names.split(",")[0], []).append(key)
    found: list[tuple[str, str]] = []
    for node in sorted(config.nodes.values(), key=lambda node: node.name):
        port = config.ndparams(node).get("ssh_port", _PORT)
        own = [
            name if port == _PORT else f"[{name}]:{port}"
            for name in dict.fromkeys((node.name, node.primary_ip, node.secondary_ip))
        ]
        names = ",".join(own)
        keys = answers[node.uuid][1] if node.uuid in answers else before.get(own[0], [])
        found += [(names, key) for key in keys]
    shared = dict.fromkeys(key for _names, key in found)
    return [f"{cluster} {key}" for key in shared] + [f"{names} {key}" for names, key in found]
