"""The first configuration of a cluster: builtin values and what was chosen. Pure."""

from __future__ import annotations

import base64
import uuid

from ganeti import constants, errors
from ganeti.base.json_types import JsonObject
from ganeti.bootstrap.settings import InitSettings
from ganeti.config import drbd, parameters, policy_parameters
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.images import location
from ganeti.model import ipolicy, uid_pool
from ganeti.model.cluster import DATA_COLLECTORS, Cluster
from ganeti.model.config import ConfigData
from ganeti.model.group import NodeGroup
from ganeti.model.ids import GroupUuid, NodeUuid
from ganeti.model.node import Node
from ganeti.net import ssh_files

DEFAULT_TEMPLATES = ("file", "sharedfile", "diskless")
FILE_STORAGE_DIR = "/srv/ganeti/file-storage"
SHARED_FILE_STORAGE_DIR = "/srv/ganeti/shared-file-storage"
GLUSTER_STORAGE_DIR = "/var/run/ganeti/gluster"
DEFAULT_POOL_SIZE = 10
DEFAULT_MAC_PREFIX = "aa:00:00"


def configuration(
    settings: InitSettings,
    *,
    host: str,
    address: str,
    master_ip: str,
    certificate_digest: str,
    now: float,
) -> ConfigData:
    """Configuration with one node, the master, in the group ``default``.

    Raises:
        OpPrereqError, ParameterError: a choice that makes no sense.
    """
    group = NodeGroup(uuid=GroupUuid(str(uuid.uuid4())), name="default", ctime=now, mtime=now)
    node = Node(
        uuid=NodeUuid(str(uuid.uuid4())),
        name=host,
        primary_ip=address,
        secondary_ip=settings.secondary_ip or address,
        master_candidate=True,
        group=group.uuid,
        ctime=now,
        mtime=now,
    )
    cluster = Cluster(
        uuid=str(uuid.uuid4()),
        ctime=now,
        mtime=now,
        master_node=NodeUuid(node.uuid),
        master_ip=master_ip,
        master_netdev=settings.master_netdev or "lo",
        master_netmask=_netmask(settings),
        cluster_name=settings.cluster_name,
        candidate_certs={node.uuid: certificate_digest},
        **_choices(settings),
        **_parameters(settings),
    )
    return ConfigData(
        version=constants.CONFIG_VERSION,
        cluster=cluster,
        nodes={node.uuid: node},
        nodegroups={group.uuid: group},
        ctime=now,
        mtime=now,
    )


def _choices(settings: InitSettings) -> JsonObject:
    chosen: JsonObject = {
        "rsahostkeypub": base64.b64encode(b"").decode(),
        "enabled_hypervisors": parameters.hypervisors(settings.enabled_hypervisors or ["kvm"]),
        "enabled_disk_templates": parameters.templates(
            settings.enabled_disk_templates or DEFAULT_TEMPLATES
        ),
        "volume_group_name": settings.vg_name or None,
        "drbd_usermode_helper": settings.drbd_helper or _default_helper(settings),
        "file_storage_dir": settings.file_storage_dir or FILE_STORAGE_DIR,
        "shared_file_storage_dir": settings.shared_file_storage_dir or SHARED_FILE_STORAGE_DIR,
        "gluster_storage_dir": settings.gluster_storage_dir or GLUSTER_STORAGE_DIR,
        "mac_prefix": parameters.mac_prefix(settings.mac_prefix or DEFAULT_MAC_PREFIX),
        "candidate_pool_size": _pool_size(settings.candidate_pool_size),
        "default_iallocator": (
            constants.BUILT_IN_ALLOCATOR
            if settings.default_iallocator is None
            else settings.default_iallocator
        ),
        "default_iallocator_params": settings.default_iallocator_params,
        "uid_pool": uid_pool.check(settings.uid_pool),
        "primary_ip_family": 2 if settings.primary_ip_version == 4 else 10,
        "data_collectors": {
            name: {"active": True, "interval": 5_000_000} for name in DATA_COLLECTORS
        },
        "hv_state_static": parameters.hv_state({}, settings.hv_state),
        "disk_state_static": parameters.disk_state({}, settings.disk_state),
        "install_image": _helper_image(settings.install_image),
        "zeroing_image": _helper_image(settings.zeroing_image),
        "ssh_key_type": settings.ssh_key_type or "rsa",
        "ssh_key_bits": ssh_files.choose_length(
            settings.ssh_key_type or "rsa", settings.ssh_key_bits
        ),
    }
    if settings.compression_tools:
        chosen["compression_tools"] = tuple(settings.compression_tools)
    for name in (
        "prealloc_wipe_disks",
        "maintain_node_health",
        "use_external_mip_script",
        "modify_etc_hosts",
        "modify_ssh_setup",
        "enabled_user_shutdown",
    ):
        chosen[name] = getattr(settings, name)
    return chosen


def _default_helper(settings: InitSettings) -> str | None:
    """A program that does nothing: the cluster manager decides, not the kernel."""
    return "/bin/true" if drbd.is_enabled(settings.enabled_disk_templates or ()) else None


def _parameters(settings: InitSettings) -> JsonObject:
    return {
        "beparams": {"default": parameters.backend({}, settings.beparams)},
        "nicparams": {"default": parameters.nic({}, settings.nicparams)},
        "ndparams": parameters.cluster_node({}, settings.ndparams),
        "hvparams": _hvparams(settings),
        "diskparams": parameters.cluster_disk({}, settings.diskparams),
        "ipolicy": _policy(settings),
    }


def _policy(settings: InitSettings) -> JsonObject:
    """Allows the enabled disk templates, unless others are named."""
    enabled = list(settings.enabled_disk_templates or DEFAULT_TEMPLATES)
    start = {**ipolicy.defaults(), "disk-templates": enabled}
    return policy_parameters.cluster_policy(start, settings.ipolicy)


def _hvparams(settings: InitSettings) -> dict[str, JsonObject]:
    """Complete parameters of every hypervisor that has a driver."""
    for name in settings.hvparams:
        HYPERVISORS.get(name)
    return {
        name: parameters.hypervisor(name, {}, settings.hvparams.get(name, {}))
        for name in HYPERVISORS.names()
    }


def _netmask(settings: InitSettings) -> int:
    longest = 32 if settings.primary_ip_version == 4 else 128
    wanted = settings.master_netmask
    if wanted is not None and not 0 < wanted <= longest:
        raise errors.make_invalid_error(
            f"prefix length {wanted} of the cluster's address is not between 1 and {longest}",
        )
    return wanted or longest


def _helper_image(text: str | None) -> str:
    """The path of the image of helper guests; ``gnt-image`` has no images yet."""
    if not text:
        return ""
    if not location.is_location(text):
        raise errors.make_invalid_error(
            f"'{text[:80]}' is neither a URL nor an absolute path; to name an image of gnt-image,"
            " set it later with gnt-cluster modify"
        )
    location.check(text)
    return text


def _pool_size(wanted: int | None) -> int:
    if wanted is not None and wanted < 1:
        raise errors.make_invalid_error(
            f"a candidate pool of {wanted} nodes makes no sense: the master is a candidate",
        )
    return wanted or DEFAULT_POOL_SIZE
