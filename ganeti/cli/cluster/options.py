"""Options that ``gnt-cluster init`` and ``modify`` share, and the policy that they describe."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ganeti import errors
from ganeti.base import units
from ganeti.base.text import nearest
from ganeti.cli.option import value, values_of
from ganeti.cli.values import KeyVals

_INVAL = errors.ErrorCode.INVAL

CANDIDATE_POOL_SIZE = value(
    "-C",
    "--candidate-pool-size",
    dest="candidate_pool_size",
    kind="int",
    help="How many nodes keep a copy of the configuration",
)
ENABLED_HYPERVISORS = value(
    "--enabled-hypervisors",
    dest="enabled_hypervisors",
    metavar="<hypervisor>,...",
    help="Hypervisors that instances may use; the first one is the default",
)
MAC_PREFIX = value(
    "-m",
    "--mac-prefix",
    dest="mac_prefix",
    metavar="<aa:00:00>",
    help="First three bytes of generated MAC addresses",
)
MASTER_NETDEV = value(
    "--master-netdev",
    dest="master_netdev",
    metavar="<device>",
    help="Network device that carries the address of the cluster",
)
MASTER_NETMASK = value(
    "--master-netmask",
    dest="master_netmask",
    kind="int",
    metavar="<bits>",
    help="Prefix length of the address of the cluster",
)
NIC_PARAMS = value(
    "-N",
    "--nic-parameters",
    dest="nicparams",
    kind="keyval",
    default={},
    help="Default parameters of NICs, as in mode=bridged,link=br0",
)
VG_NAME = value("--vg-name", dest="vg_name", metavar="<group>", help="LVM volume group for disks")
MAINTAIN_NODE_HEALTH = value(
    "--maintain-node-health",
    dest="maintain_node_health",
    kind="bool",
    help="Whether guests that run where they should not are stopped; without effect so far",
)
UID_POOL = value(
    "--uid-pool",
    dest="uid_pool",
    metavar="<first>-<last>,...",
    help="User ids under which guests run",
)
DRBD_HELPER = value(
    "--drbd-usermode-helper",
    dest="drbd_helper",
    metavar="<path>",
    help="User-mode helper of DRBD",
)
DEFAULT_IALLOCATOR = value(
    "-I",
    "--default-iallocator",
    dest="default_iallocator",
    metavar="<name>",
    help="Allocator that chooses nodes when none is named; empty for none",
)
DEFAULT_IALLOCATOR_PARAMS = value(
    "--default-iallocator-params",
    dest="default_iallocator_params",
    kind="keyval",
    help="Parameters of that allocator",
)
WIPE_DISKS = value(
    "--prealloc-wipe-disks",
    dest="prealloc_wipe_disks",
    kind="bool",
    help="Whether new disks are overwritten before use",
)
EXTERNAL_MIP_SCRIPT = value(
    "--use-external-mip-script",
    dest="use_external_mip_script",
    kind="bool",
    help="Whether a script of the administrator sets the address of the cluster",
)
DISK_PARAMS = values_of(
    "-D",
    "--disk-parameters",
    dest="diskparams",
    kind="identkeyval",
    metavar="<template>:<key>=<value>,...",
    help="Parameters of a disk template",
)
ENABLED_DISK_TEMPLATES = value(
    "--enabled-disk-templates",
    dest="enabled_disk_templates",
    metavar="<template>,...",
    help="Disk templates that instances may use; the first one is the default",
)
FILE_DIR = value(
    "--file-storage-dir",
    dest="file_storage_dir",
    metavar="<directory>",
    help="Directory for disks that are files",
)
SHARED_FILE_DIR = value(
    "--shared-file-storage-dir",
    dest="shared_file_storage_dir",
    metavar="<directory>",
    help="Directory for disks that are files on shared storage",
)
INSTALL_IMAGE = value(
    "--install-image",
    dest="install_image",
    metavar="<path>|<url>",
    help="Image of the helper guest that installs",
)
ZEROING_IMAGE = value(
    "--zeroing-image",
    dest="zeroing_image",
    metavar="<path>|<url>",
    help="Image of the helper guest that zeroes disks",
)
COMPRESSION_TOOLS = value(
    "--compression-tools",
    dest="compression_tools",
    metavar="<program>,...",
    help="Programs that may compress transfers",
)
USER_SHUTDOWN = value(
    "--user-shutdown",
    dest="enabled_user_shutdown",
    kind="bool",
    help="Whether a guest that stops itself stays stopped",
)

STD_SPECS = value(
    "--ipolicy-std-specs",
    dest="ipolicy_std_specs",
    kind="keyval",
    help="Standard size of instances",
)
BOUNDS_SPECS = value(
    "--ipolicy-bounds-specs",
    dest="ipolicy_bounds_specs",
    kind="multilistidentkeyval",
    help="Smallest and largest instances; several pairs are separated by //",
)
POLICY_TEMPLATES = value(
    "--ipolicy-disk-templates",
    dest="ipolicy_disk_templates",
    kind="list",
    metavar="<template>,...",
    help="Disk templates that the instance policy allows",
)
VCPU_RATIO = value(
    "--ipolicy-vcpu-ratio",
    dest="ipolicy_vcpu_ratio",
    kind="maybefloat",
    help="Most virtual processors for each real one",
)
SPINDLE_RATIO = value(
    "--ipolicy-spindle-ratio",
    dest="ipolicy_spindle_ratio",
    kind="maybefloat",
    help="Most instances for each spindle",
)
POLICY_OPTIONS = (STD_SPECS, BOUNDS_SPECS, POLICY_TEMPLATES, VCPU_RATIO, SPINDLE_RATIO)

#: Key of a size in the policy -> destination of the option that sets its three limits at once.
_SPLIT = {
    "cpu-count": "ispecs_cpu_count",
    "disk-count": "ispecs_disk_count",
    "disk-size": "ispecs_disk_size",
    "memory-size": "ispecs_mem_size",
    "nic-count": "ispecs_nic_count",
}
SPLIT_SPECS = tuple(
    value(
        f"--{dest.removeprefix('i').replace('_', '-')}",
        dest=dest,
        kind="keyval",
        default={},
        metavar="min=<size>,std=<size>,max=<size>",
        help=f"Limits of {key}; not together with the options for all sizes",
    )
    for key, dest in _SPLIT.items()
)
_IN_MIB = ("disk-size", "memory-size")


def policy(opts: SimpleNamespace) -> dict[str, Any]:
    """The keys of the instance policy that options name.

    Raises:
        OpPrereqError: an unknown size or limit, or both ways of giving sizes at once.
    """
    from ganeti.model.params import VALUE_DEFAULT  # only policies need it

    result: dict[str, Any] = {}
    if opts.ipolicy_bounds_specs == [{VALUE_DEFAULT: {}}]:
        result["minmax"] = VALUE_DEFAULT
    elif opts.ipolicy_bounds_specs:
        result["minmax"] = [
            {_limit(limit): _specs(keys) for limit, keys in pair.items()}
            for pair in opts.ipolicy_bounds_specs
        ]
    if opts.ipolicy_std_specs:
        result["std"] = _specs(opts.ipolicy_std_specs)
    split = {key: getattr(opts, dest, None) for key, dest in _SPLIT.items()}
    if any(split.values()):
        if result:
            raise errors.OpPrereqError(
                "--specs-... cannot be used together with --ipolicy-bounds-specs and"
                " --ipolicy-std-specs",
                _INVAL,
            )
        result = _from_split(split)
    for key, found in (
        ("disk-templates", opts.ipolicy_disk_templates),
        ("vcpu-ratio", opts.ipolicy_vcpu_ratio),
        ("spindle-ratio", opts.ipolicy_spindle_ratio),
    ):
        if found is not None:
            result[key] = VALUE_DEFAULT if found == [VALUE_DEFAULT] else found
    return result


def _limit(name: str) -> str:
    if name not in ("min", "max"):
        raise errors.OpPrereqError(
            f"--ipolicy-bounds-specs takes min:... and max:..., not '{name}'", _INVAL
        )
    return name


def _specs(keys: KeyVals) -> dict[str, int]:
    return {key: _size(key, found) for key, found in keys.items()}


def _size(key: str, text: str | bool | None) -> int:
    from ganeti.model import ipolicy  # only policies need it, every command reads this module

    if key not in ipolicy.SPEC_KEYS:
        raise errors.OpPrereqError(
            f"the instance policy has no size '{key}'{nearest(key, ipolicy.SPEC_KEYS)};"
            f" known are {', '.join(ipolicy.SPEC_KEYS)}",
            _INVAL,
        )
    try:
        return units.parse_size(str(text)) if key in _IN_MIB else int(str(text))
    except (errors.UnitParseError, ValueError):
        raise errors.OpPrereqError(
            f"'{text}' cannot be used for {key} of the instance policy", _INVAL
        ) from None


def _from_split(split: dict[str, KeyVals | None]) -> dict[str, Any]:
    limits: dict[str, dict[str, int]] = {"min": {}, "max": {}, "std": {}}
    for key, given in split.items():
        for limit, text in (given or {}).items():
            if limit not in limits:
                raise errors.OpPrereqError(
                    f"'{limit}' of {key} is none of min, std and max", _INVAL
                )
            limits[limit][key] = _size(key, text)
    return {"minmax": [{"min": limits["min"], "max": limits["max"]}], "std": limits["std"]}
