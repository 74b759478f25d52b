"""The first configuration of a cluster: builtin values and what was chosen. Pure."""

from __future__ import annotations

import base64
import uuid
from typing import Any

import msgspec

from ganeti import constants, errors
from ganeti.bootstrap.settings import InitSettings
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model import ipolicy, params
from ganeti.model.cluster import Cluster
from ganeti.model.config import ConfigData
from ganeti.model.group import NodeGroup
from ganeti.model.names import DiskTemplate, NodeUuid
from ganeti.model.node import Node
from ganeti.model.params import BackendParams, NicParams, NodeParams, Params
from ganeti.storage.registry import TEMPLATES

DEFAULT_TEMPLATES = ("file", "sharedfile", "diskless")
FILE_STORAGE_DIR = "/srv/ganeti/file-storage"
SHARED_FILE_STORAGE_DIR = "/srv/ganeti/shared-file-storage"
GLUSTER_STORAGE_DIR = "/var/run/ganeti/gluster"
DEFAULT_MAC_PREFIX = "aa:00:00"
COLLECTORS = ("cpu-avg-load", "diskstats", "drbd", "inst-status-xen", "lv", "xen-cpu-avg-load")


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
    group = NodeGroup(uuid=str(uuid.uuid4()), name="default", ctime=now, mtime=now)
    node = Node(
        uuid=str(uuid.uuid4()),
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
        master_netmask=settings.master_netmask or 32,
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


def _choices(settings: InitSettings) -> dict[str, Any]:
    chosen: dict[str, Any] = {
        "rsahostkeypub": base64.b64encode(b"").decode(),
        "enabled_hypervisors": tuple(settings.enabled_hypervisors or ("kvm",)),
        "enabled_disk_templates": _templates(settings),
        "volume_group_name": settings.vg_name or None,
        "drbd_usermode_helper": settings.drbd_helper or None,
        "file_storage_dir": settings.file_storage_dir or FILE_STORAGE_DIR,
        "shared_file_storage_dir": settings.shared_file_storage_dir
        or SHARED_FILE_STORAGE_DIR,
        "gluster_storage_dir": settings.gluster_storage_dir or GLUSTER_STORAGE_DIR,
        "mac_prefix": _mac_prefix(settings.mac_prefix or DEFAULT_MAC_PREFIX),
        "candidate_pool_size": settings.candidate_pool_size or 10,
        "default_iallocator": settings.default_iallocator or "",
        "default_iallocator_params": settings.default_iallocator_params,
        "uid_pool": tuple(settings.uid_pool),
        "primary_ip_family": 2 if settings.primary_ip_version == 4 else 10,
        "data_collectors": {
            name: {"active": True, "interval": 5_000_000} for name in COLLECTORS
        },
        "hv_state_static": settings.hv_state,
        "disk_state_static": settings.disk_state,
        "install_image": settings.install_image or "",
        "zeroing_image": settings.zeroing_image or "",
        "ssh_key_type": settings.ssh_key_type or "rsa",
        "ssh_key_bits": settings.ssh_key_bits or 2048,
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


def _templates(settings: InitSettings) -> tuple[str, ...]:
    chosen = tuple(settings.enabled_disk_templates or DEFAULT_TEMPLATES)
    for name in chosen:
        if name not in set(DiskTemplate):
            raise errors.OpPrereqError(
                f"unknown disk template '{name}'; known are {', '.join(DiskTemplate)}",
                errors.ErrorCode.INVAL,
            )
        if name != DiskTemplate.DISKLESS and name not in TEMPLATES:
            raise errors.OpPrereqError(
                f"disk template '{name}' has no driver in this version; built are"
                f" diskless, {', '.join(TEMPLATES.names())}",
                errors.ErrorCode.INVAL,
            )
    return chosen


def _mac_prefix(text: str) -> str:
    parts = text.lower().split(":")
    good = len(parts) == 3 and all(
        len(p) == 2 and all(c in "0123456789abcdef" for c in p) for p in parts
    )
    if not good:
        raise errors.OpPrereqError(
            f"'{text}' is no prefix of MAC addresses: expected three bytes as in aa:00:00",
            errors.ErrorCode.INVAL,
        )
    return text.lower()


def _parameters(settings: InitSettings) -> dict[str, Any]:
    be = params.check(
        BackendParams, params.expand_backend(settings.beparams), "backend", partial=False
    )
    if be["minmem"] > be["maxmem"]:
        raise errors.OpPrereqError(
            f"minmem {be['minmem']} is larger than maxmem {be['maxmem']}", errors.ErrorCode.INVAL
        )
    return {
        "beparams": {"default": be},
        "nicparams": {
            "default": params.check(NicParams, settings.nicparams, "NIC", partial=False)
        },
        "ndparams": params.check(NodeParams, settings.ndparams, "node", partial=False),
        "hvparams": _hvparams(settings),
        "diskparams": _diskparams(settings),
        "ipolicy": _ipolicy(settings.ipolicy),
    }


def _ipolicy(own: Params) -> Params:
    policy = ipolicy.fill(ipolicy.defaults(), own)
    problems = ipolicy.problems(policy)
    if problems:
        raise errors.OpPrereqError(
            f"instance policy: {'; '.join(problems)}", errors.ErrorCode.INVAL
        )
    return policy


def _hvparams(settings: InitSettings) -> dict[str, Params]:
    """Complete parameters of every hypervisor that has a driver."""
    for name in settings.enabled_hypervisors or ():
        HYPERVISORS.get(name)
    result: dict[str, Params] = {}
    for name in HYPERVISORS.names():
        driver = HYPERVISORS.get(name)
        own = settings.hvparams.get(name, {})
        result[name] = params.check(driver.params, own, f"hypervisor {name}", partial=False)
    unknown = sorted(set(settings.hvparams) - set(result))
    if unknown:
        HYPERVISORS.get(unknown[0])
    return result


def _diskparams(settings: InitSettings) -> dict[str, Params]:
    result = {name: dict(values) for name, values in params.DISK_PARAM_DEFAULTS.items()}
    for name, own in settings.diskparams.items():
        if name not in result:
            raise errors.OpPrereqError(
                f"unknown disk template '{name}' in disk parameters", errors.ErrorCode.INVAL
            )
        for key, value in own.items():
            if key not in result[name]:
                raise errors.ParameterError(
                    f"unknown parameter '{key}' of disk template {name}; known are"
                    f" {', '.join(result[name]) or 'none'}"
                )
            wanted = type(result[name][key])
            try:
                result[name][key] = msgspec.convert(value, wanted, strict=False)
            except msgspec.ValidationError as err:
                raise errors.ParameterError(f"parameter '{key}' of {name}: {err}") from err
    return result
