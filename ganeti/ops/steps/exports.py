"""Which exports there are, and what one of them says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ganeti import errors
from ganeti.base.text import nearest
from ganeti.guest_os import export_config
from ganeti.guest_os.export_config import ExportConfig
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.ids import NodeUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import NodeInstance

Found = Mapping[NodeUuid, Sequence[str]]


def find(ctx: Context, nodes: Sequence[Node]) -> tuple[Found, list[Node]]:
    """Names of the exports of each node, and the nodes that did not answer."""
    found: dict[NodeUuid, Sequence[str]] = {}
    silent: list[Node] = []
    for uuid, answer in ctx.rpc.call_many(nodes, NodeCalls.export_list).items():
        if answer.error is None:
            found[uuid] = answer.get()
        else:
            silent.append(answer.node)
    return found, silent


def hint(name: str, found: Found) -> str:
    """The export that was perhaps meant."""
    return nearest(name, sorted({each for names in found.values() for each in names}))


def read(ctx: Context, node: Node, path: str) -> ExportConfig:
    """Read ``config.ini`` of an export on a node; OpPrereqError when that is not possible."""
    try:
        text = ctx.rpc.call_one(node, NodeCalls.export_info, path)
    except errors.RpcError:
        raise
    except errors.GanetiError as err:
        raise errors.make_unknown_error(f"node {node.name}: {errors.text(err)}") from err
    return export_config.parse(text)


def describe(config: Config, instance: Instance, disks: Sequence[Disk]) -> NodeInstance:
    """An instance as an export or a backup describes it: without what belongs to its cluster."""
    wire = annotate.instance(config, instance, disks=list(disks))
    fixed = HYPERVISORS.get(wire.hypervisor).traits.global_params
    return msgspec.structs.replace(
        wire,
        hvparams={key: value for key, value in wire.hvparams.items() if key not in fixed},
        osparams=config.osparams_for(instance.os, instance.osparams),
    )
