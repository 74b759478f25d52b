"""What protects the node from a guest, a guest from others, and a node call from a hung QEMU."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import struct
import time
from pathlib import Path
from typing import Any

import boot_sectors
import msgspec
import pytest
from test_kvm_options import free_port, has_spice

from ganeti import errors
from ganeti.base import retry
from ganeti.hypervisor.kvm import firmware
from ganeti.hypervisor.kvm.params import load
from ganeti.net import certs

pytestmark = pytest.mark.qemu


def facts(pid: int) -> dict[str, list[str]]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.split() for key, _, value in (line.partition(":") for line in lines)}


def test_qemu_gives_up_system_calls(kvm: Any) -> None:
    if "Seccomp" not in facts(os.getpid()):
        pytest.skip("this kernel has no seccomp")
    instance = kvm.instance()
    kvm.start(instance, booted=False)
    assert facts(kvm.driver.store.pid(instance.name))["Seccomp"] == ["2"]
    own = kvm.instance("own", kvm_extra="-sandbox off")
    kvm.start(own, booted=False)
    assert facts(kvm.driver.store.pid("own"))["Seccomp"] != ["2"]


@pytest.mark.root
def test_every_guest_has_a_user_of_its_own(kvm: Any) -> None:
    if os.geteuid():
        pytest.skip("only root can give up privileges")
    kvm.paths.data.mkdir(parents=True)
    kvm.paths.ssconf("uid_pool").write_text("987100-987101\n")
    pool = {"security_model": "pool"}
    for name in ("web1", "web2"):
        kvm.start(kvm.instance(name, **pool), booted=False)
    pids = [kvm.driver.store.pid(name) for name in ("web1", "web2")]
    assert [set(facts(pid)["Uid"]) for pid in pids] == [{"987100"}, {"987101"}]
    assert kvm.driver.store.uid_file("web2").read_text() == "987101:65534\n"
    with pytest.raises(errors.HypervisorError, match="all users of the cluster's pool"):
        kvm.start(kvm.instance("web3", **pool))
    kvm.driver.stop("web1", force=True)
    kvm.driver.cleanup("web1")
    kvm.start(kvm.instance("web3", **pool))
    assert set(facts(kvm.driver.store.pid("web3"))["Uid"]) == {"987100"}


def credentials(directory: Path) -> ssl.SSLContext:
    """Certificates as QEMU wants them, and how a client checks them."""
    directory.mkdir(parents=True, exist_ok=True)
    authority = certs.create_ca("ca", key_type=certs.KeyType.RSA)
    server = certs.issue_server(authority, "localhost", ["127.0.0.1"], key_type=certs.KeyType.RSA)
    (directory / "ca-cert.pem").write_bytes(authority.cert)
    (directory / "server-cert.pem").write_bytes(server.cert)
    (directory / "server-key.pem").write_bytes(server.key)
    context = ssl.create_default_context(cadata=authority.cert.decode())
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def test_vnc_is_encrypted_and_knows_itself(kvm: Any, tmp_path: Path) -> None:
    context = credentials(tmp_path / "x509")
    port = free_port()
    instance = kvm.instance(
        port=port,
        vnc_bind_address="127.0.0.1",
        vnc_tls=True,
        vnc_x509_path=str(tmp_path / "x509"),
    )
    kvm.start(instance, booted=False)
    with socket.create_connection(("127.0.0.1", port), 5) as sock:
        sock.settimeout(10)
        sock.sendall(sock.recv(12))
        # One way in: VeNCrypt 0.2, and in that TLS with certificates.
        assert sock.recv(2) == b"\x01\x13"
        sock.sendall(b"\x13")
        assert sock.recv(2) == b"\x00\x02"
        sock.sendall(b"\x00\x02")
        assert sock.recv(1) == b"\x00"
        (count,) = sock.recv(1)
        kind = sock.recv(4 * count)[:4]
        assert struct.unpack(">I", kind) == (260,)
        sock.sendall(kind)
        assert sock.recv(1) == b"\x01"
        with context.wrap_socket(sock, server_hostname="localhost") as secure:
            assert secure.version() in ("TLSv1.2", "TLSv1.3")


def test_spice_is_encrypted_and_knows_itself(kvm: Any, tmp_path: Path) -> None:
    if not has_spice(kvm):
        pytest.skip("this QEMU has no SPICE: install qemu-system-modules-spice")
    context = credentials(tmp_path / "x509")
    kvm.paths.data.mkdir(parents=True, exist_ok=True)
    pem = b"".join(
        (tmp_path / "x509" / f"server-{part}.pem").read_bytes() for part in ("key", "cert")
    )
    (kvm.paths.data / "spice.pem").write_bytes(pem)
    authority = (tmp_path / "x509" / "ca-cert.pem").read_bytes()
    (kvm.paths.data / "spice-ca.pem").write_bytes(authority)
    port = free_port()
    instance = kvm.instance(
        port=port, spice_bind="127.0.0.1", spice_use_tls=True, spice_tls_ciphers="HIGH"
    )
    kvm.start(instance, booted=False)
    with (
        socket.create_connection(("127.0.0.1", port), 5) as sock,
        context.wrap_socket(sock, server_hostname="localhost") as secure,
    ):
        assert secure.cipher() is not None


@pytest.mark.parametrize(("kind", "machine"), [("uefi", ""), ("uefi-secure", "q35")])
def test_guest_boots_by_uefi(kvm: Any, kind: str, machine: str) -> None:
    try:
        firmware.find(load({"firmware": kind}))
    except errors.HypervisorError as err:
        pytest.skip(errors.text(err))
    instance = kvm.instance(firmware=kind, machine_version=machine)
    instance = msgspec.structs.replace(
        instance, beparams={"maxmem": 128, "minmem": 128, "vcpus": 1}
    )
    kvm.start(instance, booted=False)
    assert retry.retry_until(
        lambda: "BdsDxe" in kvm.serial_log(instance) or None, timeout=90, largest=0.2
    )
    assert (kvm.paths.data / "kvm-uefi" / f"{instance.uuid}.fd").exists()


def test_a_hung_qemu_delays_nobody_for_long(kvm: Any, monkeypatch: Any) -> None:
    """Whatever is asked of it ends soon, with words that tell what happened."""
    monkeypatch.setattr("ganeti.hypervisor.kvm.power.qmp_timeout", lambda: 0.3)
    monkeypatch.setattr("ganeti.hypervisor.kvm.runtime.qmp_timeout", lambda: 0.3)
    instance = kvm.instance()
    disks = kvm.start(instance, boot_sectors.deaf)
    pid = kvm.driver.store.pid(instance.name)
    os.kill(pid, signal.SIGSTOP)
    begin = time.monotonic()
    try:
        for call in (
            lambda: kvm.driver.stop(instance.name, timeout=1),
            lambda: kvm.driver.reboot(instance, disks),
            lambda: kvm.driver.balloon(instance, 8),
            lambda: kvm.driver.plug_disk(instance, disks[0]),
            lambda: kvm.driver.migration_info(instance),
            lambda: kvm.driver.migration_status(instance),
        ):
            with pytest.raises(errors.HypervisorError, match=r"did not answer|takes no further"):
                call()
    finally:
        os.kill(pid, signal.SIGCONT)
    assert time.monotonic() - begin < 30
    assert kvm.driver.info(instance.name) is not None


def test_messages_of_qemu_are_kept(kvm: Any) -> None:
    instance = kvm.instance()
    kvm.start(instance, booted=False)
    log = kvm.paths.kvm_log / f"{instance.name}-qemu.log"
    assert log.exists()
    with pytest.raises(errors.HypervisorError, match="no-such-cpu"):
        kvm.start(kvm.instance("web2", cpu_type="no-such-cpu"))
    assert "no-such-cpu" in (kvm.paths.kvm_log / "web2-qemu.log").read_text()
