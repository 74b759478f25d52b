"""UEFI firmware: the images that a node has, and the variable store of each instance.

The store is ``<data>/kvm-uefi/<uuid of the instance>.fd``, made from the template beside the
firmware when it is missing. It goes with a guest that is moved while it runs. An instance that is
started on another node begins with the template, so its loader must be at the standard place too
(``EFI/BOOT/BOOTX64.EFI``), as installers of the usual systems do for removable media.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from ganeti import errors
from ganeti.base import files
from ganeti.hypervisor.kvm.params import KvmParams
from ganeti.model.ids import InstanceUuid
from ganeti.paths import Paths

#: Paths of (code, template of variables) in distributions: Debian, Fedora, SUSE, Arch.
_PLAIN = (
    ("/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd"),
    ("/usr/share/OVMF/OVMF_CODE.fd", "/usr/share/OVMF/OVMF_VARS.fd"),
    ("/usr/share/edk2/ovmf/OVMF_CODE.fd", "/usr/share/edk2/ovmf/OVMF_VARS.fd"),
    ("/usr/share/qemu/ovmf-x86_64-code.bin", "/usr/share/qemu/ovmf-x86_64-vars.bin"),
    ("/usr/share/edk2/x64/OVMF_CODE.4m.fd", "/usr/share/edk2/x64/OVMF_VARS.4m.fd"),
)
#: The same with the keys of Microsoft, which sign what distributions boot.
_SECURE = (
    ("/usr/share/OVMF/OVMF_CODE_4M.secboot.fd", "/usr/share/OVMF/OVMF_VARS_4M.ms.fd"),
    ("/usr/share/OVMF/OVMF_CODE.secboot.fd", "/usr/share/OVMF/OVMF_VARS.ms.fd"),
    ("/usr/share/edk2/ovmf/OVMF_CODE.secboot.fd", "/usr/share/edk2/ovmf/OVMF_VARS.secboot.fd"),
    ("/usr/share/qemu/ovmf-x86_64-smm-ms-code.bin", "/usr/share/qemu/ovmf-x86_64-smm-ms-vars.bin"),
)


@dataclass(frozen=True)
class Images:
    """Firmware on the node, and the template of its variables."""

    code: str
    template: str


def find(params: KvmParams, root: Path = Path("/")) -> Images | None:
    """The images for the parameter ``firmware``, None for the BIOS that QEMU brings.

    Raises:
        HypervisorError: the node has none.
    """
    if params.firmware == "bios":
        return None
    wanted = _SECURE if params.firmware == "uefi-secure" else _PLAIN
    for pair in wanted:
        code, template = (str(root / path.lstrip("/")) for path in pair)
        if os.path.exists(code) and os.path.exists(template):
            return Images(code, template)
    raise errors.HypervisorError(
        f"firmware is {params.firmware}, but its image (such as {wanted[0][0]}) is missing on this"
        " node; install the package ovmf"
    )


def variables(images: Images, paths: Paths, uuid: InstanceUuid) -> str:
    """The variable store of an instance, made if it is missing.

    Raises:
        HypervisorError: it cannot be made.
    """
    path = paths.kvm_uefi / f"{uuid}.fd"
    if path.exists():
        return str(path)
    fresh = path.with_suffix(".new")
    try:
        files.ensure_dir(path.parent)
        shutil.copyfile(images.template, fresh)
        fresh.chmod(0o600)
        os.rename(fresh, path)
    except OSError as err:
        files.remove(fresh)
        raise errors.HypervisorError(f"cannot make {path}: {err.strerror}") from err
    return str(path)
