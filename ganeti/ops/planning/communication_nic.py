"""The NIC by which a guest talks to its node. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ganeti import constants, errors
from ganeti.model.config import Config
from ganeti.model.instance import Instance
from ganeti.model.nic import Nic
from ganeti.model.params import VALUE_GENERATE, VALUE_POOL
from ganeti.opcodes.devices import NicChange, NicParams
from ganeti.opcodes.enums import DdmFull
from ganeti.opcodes.instance import OpInstanceSetParams
from ganeti.opcodes.instance_create import OpInstanceCreate


def is_communication(nic: Nic) -> bool:
    """Whether a guest talks to its node by a NIC."""
    return (nic.name or "").startswith(constants.COMMUNICATION_NIC)


def all_nics(config: Config, op: OpInstanceCreate) -> list[NicParams]:
    """NICs of a new instance, with that for communication if it is requested.

    Raises:
        OpPrereqError: the cluster has no network for it.
    """
    if not op.instance_communication:
        return op.nics
    return [*op.nics, _make_nic(config, op.instance_name)]


def changes(config: Config, instance: Instance, op: OpInstanceSetParams) -> Sequence[NicChange]:
    """Changes of the NICs, with what a switch of the communication comes to.

    Raises:
        OpPrereqError: the cluster has no network for it.
    """
    has = next(filter(is_communication, instance.nics), None)
    if op.instance_communication is None or op.instance_communication == (has is not None):
        return op.nics
    if has is not None:
        return [*op.nics, NicChange(DdmFull.REMOVE, has.uuid, NicParams())]
    return [*op.nics, NicChange(DdmFull.ADD, -1, _make_nic(config, instance.name))]


def _make_nic(config: Config, instance: str) -> NicParams:
    network = config.cluster.instance_communication_network
    if not network:
        raise errors.make_state_error(
            "the cluster has no network for the communication of instances; set it with"
            " gnt-cluster modify --instance-communication-network NAME"
        )
    return NicParams(
        name=f"{constants.COMMUNICATION_NIC}{instance}",
        network=network,
        ip=VALUE_POOL,
        mac=VALUE_GENERATE,
    )
