"""QEMU arguments for the display of a guest, VNC or SPICE; pure.

No password is among them, as every user of the node sees arguments: one is set through the control
socket before the guest runs, and until then nobody is let in.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator

import msgspec

from ganeti import errors
from ganeti.hypervisor.kvm.devices import escape
from ganeti.hypervisor.kvm.params import KvmParams
from ganeti.hypervisor.kvm.rules import vnc_display


class Screen(msgspec.Struct, frozen=True, kw_only=True):
    """Address and certificates of the display."""

    #: name of the instance, for a Unix socket
    name: str
    #: TCP port
    port: int | None = None
    #: IP address, or for VNC a directory; empty: what the parameter says
    address: str = ""
    #: certificate with key, and certificate of its authority, for SPICE over TLS
    spice_cert: str = ""
    spice_ca: str = ""


def arguments(params: KvmParams, screen: Screen) -> Iterator[str]:
    """Graphics card and server.

    Raises:
        HypervisorError: the port of the display is missing.
    """
    yield from ("-display", "none")
    vga = params.vga
    if not vga and params.spice_bind:
        vga = "qxl"
    if not vga and params.vnc_bind_address:
        vga = "std"
    if vga:
        yield from ("-vga", vga)
    if params.vnc_bind_address:
        yield from _vnc(params, screen)
    elif params.spice_bind:
        yield from ("-spice", ",".join(_spice(params, screen)))
    if params.keymap and (params.vnc_bind_address or params.spice_bind):
        yield from ("-k", params.keymap)


def password_protocol(params: KvmParams) -> str:
    """``vnc``, ``spice`` or empty: for what QEMU has to be told a password."""
    if params.vnc_bind_address and params.vnc_password_file:
        return "vnc"
    if params.spice_bind and params.spice_password_file:
        return "spice"
    return ""


def _vnc(params: KvmParams, screen: Screen) -> Iterator[str]:
    options = [_vnc_listen(params, screen)]
    if params.vnc_password_file:
        options.append("password=on")
    if params.vnc_tls:
        yield from ("-object", _tls_object(params))
        options.append("tls-creds=vnctls")
    yield from ("-vnc", ",".join(options))


def _vnc_listen(params: KvmParams, screen: Screen) -> str:
    address = screen.address or params.vnc_bind_address
    if address.startswith("/"):
        return "unix:" + escape(os.path.join(address, f"{screen.name}.vnc"))
    host = f"[{address}]" if ipaddress.ip_address(address).version == 6 else address
    return f"{host}:{vnc_display(screen.port)}"


def _tls_object(params: KvmParams) -> str:
    if not params.vnc_x509_path:
        return "tls-creds-anon,id=vnctls,endpoint=server"
    verify = "on" if params.vnc_x509_verify else "off"
    return (
        f"tls-creds-x509,id=vnctls,endpoint=server,dir={escape(params.vnc_x509_path)},"
        f"verify-peer={verify}"
    )


def _spice(params: KvmParams, screen: Screen) -> Iterator[str]:
    if screen.port is None:
        raise errors.HypervisorError("spice_bind is set but the instance has no port for a display")
    address = screen.address or params.spice_bind
    yield f"addr={address}"
    if ipaddress.ip_address(address).version == 6:
        yield "ipv6=on"
    else:
        yield "ipv4=on"
    if params.spice_use_tls:
        yield f"tls-port={screen.port}"
        yield f"x509-key-file={escape(screen.spice_cert)}"
        yield f"x509-cert-file={escape(screen.spice_cert)}"
        yield f"x509-cacert-file={escape(screen.spice_ca)}"
        if params.spice_tls_ciphers:
            yield f"tls-ciphers={escape(params.spice_tls_ciphers)}"
    else:
        yield f"port={screen.port}"
    if not params.spice_password_file:
        yield "disable-ticketing=on"
    for option, value in (
        ("image-compression", params.spice_image_compression),
        ("jpeg-wan-compression", params.spice_jpeg_wan_compression),
        ("zlib-glz-wan-compression", params.spice_zlib_glz_wan_compression),
        ("streaming-video", params.spice_streaming_video),
    ):
        if value:
            yield f"{option}={value}"
    if not params.spice_playback_compression:
        yield "playback-compression=off"
    if not params.spice_use_vdagent:
        yield "disable-copy-paste=on"
