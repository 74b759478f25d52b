"""Data that the master makes for a node: certificates, facts, and its instances."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ganeti import errors
from ganeti.base import jsonio, typed
from ganeti.config import ssconf
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.node import Node
from ganeti.net import certs, pem
from ganeti.offline.takeover.guest_findings import own_instances
from ganeti.ops import annotate
from ganeti.rpc.objects import NodeInstance


class Kit(msgspec.Struct, frozen=True, kw_only=True):
    """For one node; holds private keys."""

    cluster: str
    node: str
    ca_pem: str
    #: of master candidates
    ca_key: str = ""
    server_pem: str
    client_pem: str
    ssconf: dict[str, str]
    instances: tuple[NodeInstance, ...] = ()


def load(data: bytes) -> Kit:
    """Raises ParseError for anything else."""
    try:
        return typed.convert(jsonio.loads(data), Kit)
    except msgspec.ValidationError as err:
        raise errors.ParseError(f"this is not a kit of ganeti-takeover: {err}") from err


def dump(kit: Kit) -> bytes:
    return jsonio.dumps_bytes(msgspec.to_builtins(kit))


def make(config: Config) -> tuple[Config, dict[str, Kit]]:
    """An authority, and a kit for each node by its name.

    Also returns the configuration in which the new certificates of the candidates are accepted.
    """
    authority = certs.create_ca(config.cluster.cluster_name)
    pairs = {
        node.uuid: (
            certs.issue_server(authority, node.name, [node.primary_ip]).pem.decode("ascii"),
            certs.issue_client(authority, node.name, [node.primary_ip]).pem.decode("ascii"),
        )
        for node in config.nodes.values()
    }
    accepted = {
        node.uuid: pem.digest(pairs[node.uuid][1])
        for node in config.nodes.values()
        if node.master_candidate
    }
    cluster = base.replace(config.cluster, candidate_certs=accepted)
    made = Config(base.replace(config.data, cluster=cluster))
    facts = ssconf.values(made)
    cert, key = authority.cert.decode("ascii"), authority.key.decode("ascii")
    kits = {
        node.name: Kit(
            cluster=config.cluster.cluster_name,
            node=node.name,
            ca_pem=cert,
            ca_key=key if node.master_candidate else "",
            server_pem=pairs[node.uuid][0],
            client_pem=pairs[node.uuid][1],
            ssconf=facts,
            instances=tuple(_instances(made, node)),
        )
        for node in config.nodes.values()
    }
    return made, kits


def _instances(config: Config, node: Node) -> list[NodeInstance]:
    """Without OS parameters, which may be secret."""
    found: Mapping[str, object] = own_instances(config, node.name)
    items = [item for item in config.instances.values() if str(item.name) in found]
    return [msgspec.structs.replace(annotate.instance(config, item), osparams={}) for item in items]
