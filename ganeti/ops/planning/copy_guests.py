"""The guest that is started from a copy of a backup, to see whether it boots. Pure."""

from __future__ import annotations

from uuid import uuid4

from ganeti import errors
from ganeti.backup.sign import USUAL, Kind, Sign, parse
from ganeti.config import parameters
from ganeti.guest_os import export_config
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model import base
from ganeti.model.backup import Manifest
from ganeti.model.config import Config
from ganeti.model.enums import HypervisorName, NicMode
from ganeti.model.ids import InstanceUuid, NodeUuid
from ganeti.opcodes.enums import InstCreateMode
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.operation import Context
from ganeti.ops.planning import checks, import_settings
from ganeti.rpc.objects import NodeInstance, NodeNic

#: MiB of a helper guest that reads files: Linux with its modules needs about 200.
_READER_MEMORY = 256


def arrange(ctx: Context, manifest: Manifest) -> NodeInstance:
    """The instance as it was then, without any way to the outside.

    Raises:
        OpPrereqError: its hypervisor is not enabled, or starts no copies.
        ParameterError: a parameter of that time cannot be used any more.
    """
    config = ctx.config
    export = export_config.parse(manifest.settings)
    wanted = import_settings.complete(
        config,
        OpInstanceCreate(
            instance_name=manifest.instance, mode=InstCreateMode.IMPORT, disks=[], nics=[]
        ),
        manifest.instance,
        export,
        lambda _text: None,
    )
    hypervisor = checks.hypervisor_enabled(ctx, str(wanted.hypervisor))
    traits = HYPERVISORS.get(hypervisor).traits
    if not traits.copy_params:
        raise errors.make_invalid_error(
            f"guests of {hypervisor} cannot be started from a copy; verify without --boot"
        )
    own = checks.check_hvparams(ctx, hypervisor, export.os, {}, wanted.hvparams)
    backend = parameters.change_own_backend(config, {}, wanted.beparams)
    return NodeInstance(
        uuid=InstanceUuid(manifest.instance_uuid),
        name=manifest.instance,
        primary_node=NodeUuid(""),
        os=export.os,
        hypervisor=HypervisorName(hypervisor),
        hvparams={**config.hvparams_for(hypervisor, export.os, own), **traits.copy_params},
        beparams=config.beparams_for(backend),
        nics=tuple(
            _isolate(
                config, nic.get("mac", ""), nic.get("ip"), nic.get("network"), traits.isolated_link
            )
            for nic in export.nics
        ),
    )


def arrange_reader(config: Config, name: str) -> NodeInstance:
    """A helper guest without a NIC that reads disks of a backup; OpPrereqError: none can do it."""
    enabled = config.cluster.enabled_hypervisors
    able = [each for each in enabled if HYPERVISORS.get(each).traits.helper_params]
    if not able:
        raise errors.make_state_error(
            "no hypervisor of the cluster has helper guests, which read files; kvm has:"
            " gnt-cluster modify --enabled-hypervisors"
        )
    traits = HYPERVISORS.get(able[0]).traits
    own = {"minmem": _READER_MEMORY, "maxmem": _READER_MEMORY, "vcpus": 1}
    return NodeInstance(
        uuid=InstanceUuid(str(uuid4())),
        name=name,
        primary_node=NodeUuid(""),
        os="files",
        hypervisor=HypervisorName(able[0]),
        hvparams={
            **config.hvparams_for(able[0], "", {}),
            **traits.copy_params,
            **traits.helper_params,
        },
        beparams=config.beparams_for(parameters.change_own_backend(config, {}, own)),
    )


def _isolate(config: Config, mac: str, ip: str | None, network: str | None, link: str) -> NodeNic:
    """A NIC that looks like the one of then, and reaches nobody."""
    known = next((n for n in config.networks.values() if network in (n.uuid, n.name)), None)
    return NodeNic(
        uuid=str(uuid4()),
        mac=mac,
        ip=ip,
        nicparams={"mode": str(NicMode.EXT), "link": link},
        netinfo=None if known is None else base.to_wire(known),
    )


def choose_sign(given: str | None, guest: NodeInstance) -> Sign:
    """By what the copy shows that it works; without a wish by its agent, else by a login prompt.

    Raises:
        OpPrereqError: it is not a sign, or one that this guest cannot give.
    """
    has_agent = bool(guest.hvparams.get("use_guest_agent"))
    sign = parse(given or (str(Kind.AGENT) if has_agent else USUAL))
    if sign.kind is Kind.AGENT and not has_agent:
        raise errors.make_invalid_error(
            f"{guest.name} had no guest agent (-H use_guest_agent=true); wait for another sign"
        )
    if sign.kind is Kind.TCP and not guest.nics:
        raise errors.make_invalid_error(f"{guest.name} had no NIC; wait for another sign")
    return sign
