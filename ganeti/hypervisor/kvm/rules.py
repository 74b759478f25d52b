"""Rules about kvm parameters: which exclude each other, and their values; pure."""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Iterator

from ganeti import errors
from ganeti.constants import VNC_BASE_PORT
from ganeti.hypervisor.kvm import pinning
from ganeti.hypervisor.kvm.params import NODE_DIRECTORIES, NODE_FILES, KvmParams

_URL = re.compile(r"(https?|ftps?)://", re.IGNORECASE)
_CAPABILITY = re.compile(r"[a-z0-9][a-z0-9-]*")
#: Parameters that mean nothing without SPICE.
_NEED_SPICE = (
    "spice_ip_version",
    "spice_password_file",
    "spice_image_compression",
    "spice_jpeg_wan_compression",
    "spice_zlib_glz_wan_compression",
    "spice_streaming_video",
    "spice_use_tls",
)
_INTERFACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,14}")


def is_url(path: str) -> bool:
    """Whether QEMU is to fetch an image by itself."""
    return _URL.match(path) is not None


def is_interface(address: str) -> bool:
    """Whether a display address is neither an IP address nor a directory."""
    return not address.startswith("/") and not _is_ip(address)


def problems(params: KvmParams) -> list[str]:
    """Parameters that exclude each other or are not supported, a sentence each; reads no file.

    The sources are QEMU's rules, and Ganeti's where it refuses a combination.
    """
    found: list[str] = []
    for rule in (_boot, _accelerator, _disks, _paths, _display, _spice, _security, _check_others):
        found.extend(rule(params))
    return found


def _boot(params: KvmParams) -> Iterator[str]:
    if params.boot_order == "cdrom" and not params.cdrom_image_path:
        yield "boot_order is cdrom, so cdrom_image_path must name an image"
    if params.boot_order == "floppy" and not params.floppy_image_path:
        yield "boot_order is floppy, so floppy_image_path must name an image"
    if params.kernel_path and not params.root_path:
        yield (
            "kernel_path is set, so root_path must name the root device;"
            " to boot from a disk, set kernel_path to nothing"
        )
    if params.serial_console and not params.serial_speed:
        yield "serial_console is on, so serial_speed must not be 0"
    try:
        shlex.split(params.kvm_extra)
    except ValueError as err:
        yield f"kvm_extra cannot be split into arguments: {err}"


def _accelerator(params: KvmParams) -> Iterator[str]:
    wanted = {"enabled": "kvm", "disabled": "tcg"}.get(params.kvm_flag)
    if wanted and params.accelerator not in ("auto", wanted):
        yield (
            f"kvm_flag is {params.kvm_flag} but accelerator is {params.accelerator};"
            " leave kvm_flag empty"
        )


def _disks(params: KvmParams) -> Iterator[str]:
    if params.disk_aio == "native" and params.disk_cache != "none":
        yield "disk_aio is native, so disk_cache must be none"
    for name, value in (
        ("disk_type", params.disk_type),
        ("cdrom_disk_type", params.cdrom_disk_type),
    ):
        if value in ("mtd", "pflash", "sd"):
            yield f"{name} {value} is not possible: no PC machine has a bus for it"


def _paths(params: KvmParams) -> Iterator[str]:
    for name, may_be_url in NODE_FILES:
        value = getattr(params, name)
        if value and not value.startswith("/") and not (may_be_url and is_url(value)):
            yield f"{name} must be an absolute path{' or a URL' * may_be_url}, not '{value}'"
    for name in NODE_DIRECTORIES:
        value = getattr(params, name)
        if value and not value.startswith("/"):
            yield f"{name} must be an absolute path, not '{value}'"


def _display(params: KvmParams) -> Iterator[str]:
    address = params.vnc_bind_address
    if address and is_interface(address) and not _INTERFACE.fullmatch(address):
        yield (
            f"vnc_bind_address must be an IP address, an interface or an absolute directory,"
            f" not '{address}'"
        )
    for name in ("vnc_tls", "vnc_password_file", "vnc_x509_verify"):
        if getattr(params, name) and not address:
            yield f"{name} is set, so vnc_bind_address must say where the display is"
    if params.vnc_x509_path and not params.vnc_tls:
        yield "vnc_x509_path is set, so vnc_tls must be on"
    if params.vnc_x509_verify and not params.vnc_x509_path:
        yield "vnc_x509_verify is on, so vnc_x509_path must name the directory of certificates"
    if address and params.spice_bind:
        yield "vnc_bind_address and spice_bind exclude each other"


def _spice(params: KvmParams) -> Iterator[str]:
    address = params.spice_bind
    if not address:
        for name in _NEED_SPICE:
            if getattr(params, name):
                yield f"{name} is set, so spice_bind must say where the display is"
        return
    if not _is_ip(address):
        if not _INTERFACE.fullmatch(address):
            yield f"spice_bind must be an IP address or an interface, not '{address}'"
    elif params.spice_ip_version not in (0, ipaddress.ip_address(address).version):
        yield f"spice_bind {address} is not an address of IP version {params.spice_ip_version}"


def _security(params: KvmParams) -> Iterator[str]:
    if params.security_model == "user" and not params.security_domain:
        yield "security_model is user, so security_domain must name the user"
    if params.security_model != "user" and params.security_domain:
        yield "security_domain is only used with security_model user"


def _check_others(params: KvmParams) -> Iterator[str]:
    machine = params.machine_version
    if params.firmware == "uefi-secure" and "q35" not in machine:
        yield "firmware is uefi-secure, so machine_version must be a machine of type q35"
    try:
        pinning.parse(params.cpu_mask)
    except errors.HypervisorError as err:
        yield errors.text(err)
    for word in filter(None, params.migration_caps.split(":")):
        if not _CAPABILITY.fullmatch(word):
            yield (
                f"migration_caps has '{word}', which cannot be the name of a capability;"
                " separate them by colons, as in xbzrle:postcopy-ram"
            )


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def vnc_display(port: int | None) -> int:
    """Display number of a TCP port.

    Raises:
        HypervisorError: the instance has no port, or one below 5900.
    """
    if port is None or port < VNC_BASE_PORT:
        raise errors.HypervisorError(
            f"vnc_bind_address is set but the instance has no port for a display"
            f" (port {port}, expected at least {VNC_BASE_PORT})"
        )
    return port - VNC_BASE_PORT
