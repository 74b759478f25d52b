"""Which accelerator runs guests on this node: found out by trying, once per boot.

That /dev/kvm exists says little: hosts that are themselves guests of certain hypervisors offer a
/dev/kvm which interprets code in software. Firmware runs there, a stock kernel does not. So
``auto`` runs :mod:`ganeti.hypervisor.kvm.probe_image` and takes kvm only when that ends well.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from ganeti import errors
from ganeti.base import boot, files, jsonio, patience, process, typed
from ganeti.base.clock import SYSTEM, Deadline
from ganeti.hypervisor.kvm import probe_image
from ganeti.hypervisor.kvm.binary import Binary
from ganeti.hypervisor.kvm.params import KvmParams

log = logging.getLogger(__name__)

Accelerator = Literal["kvm", "tcg"]

#: Seconds the probe may take; on a processor it needs 0.1 s.
PROBE_TIMEOUT = 2.0
#: How much longer the second one may take. A host that has just booted can be so busy, and its
#: guests would run in software until the next boot.
_LONGER = 8
_DEVICE = Path("/dev/kvm")
#: QEMU reports this error and then hangs, with the guest stopped.
_STUCK = b"KVM internal error"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a probe; ``key`` says for which QEMU, boot and device it holds."""

    key: str
    accelerator: Accelerator
    #: why kvm cannot be used, empty when it can
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Choice:
    """The accelerator for a guest."""

    accelerator: Accelerator
    #: for the administrator; set by the one call that found out that kvm cannot be used
    warning: str | None = None


@dataclass(frozen=True)
class Chooser:
    """Chooses, and remembers in ``cache`` (``<run>/kvm-hypervisor/accel.json``)."""

    cache: Path
    device: Path = _DEVICE

    def choose(self, params: KvmParams, binary: Binary) -> Choice:
        """The accelerator for these parameters.

        ``auto`` may probe for up to 18 s the first time after a boot or a new QEMU; callers at the
        same time wait for that one probe. An explicit kvm or tcg is obeyed without any probe.
        """
        wanted = wish(params)
        if wanted != "auto":
            return Choice(wanted)
        key = self._key(binary)
        known = self._read_cache(key)
        if known is not None:
            return Choice(known.accelerator)
        files.ensure_dir(self.cache.parent)
        lock = files.FileLock(self.cache.with_suffix(".lock"))
        with lock.hold():
            known = self._read_cache(key)
            if known is not None:
                return Choice(known.accelerator)
            return self._find_out(key, binary)

    def _find_out(self, key: str, binary: Binary) -> Choice:
        start = SYSTEM.monotonic()
        reason = self._explain_missing() or probe(binary.path, "kvm") or ""
        verdict = Verdict(
            key=key,
            accelerator="tcg" if reason else "kvm",
            reason=reason,
            seconds=round(SYSTEM.monotonic() - start, 3),
        )
        files.write_atomic(self.cache, jsonio.dumps(msgspec.to_builtins(verdict)), fsync=False)
        if not reason:
            return Choice("kvm")
        warning = (
            f"guests run in software emulation (tcg), which is slow, because {reason};"
            f" delete {self.cache} to try again, or set the parameter accelerator"
        )
        log.warning("%s", warning)
        return Choice("tcg", warning)

    def _explain_missing(self) -> str | None:
        try:
            os.close(os.open(self.device, os.O_RDWR | os.O_CLOEXEC))
        except OSError as err:
            return f"{self.device} cannot be opened: {err.strerror}"
        return None

    def _key(self, binary: Binary) -> str:
        """Changes with QEMU, at a boot, and when the device appears or is replaced.

        Its times do not count: udev sets them whenever a virtual machine begins or ends.
        """
        try:
            stat = os.stat(self.device)
            device = f"{stat.st_rdev}:{stat.st_ino}:{stat.st_mode:o}"
        except OSError:
            device = "none"
        version = ".".join(map(str, binary.version))
        return f"{binary.path} {version} {binary.stamp} {_boot_id()} {device}"

    def _read_cache(self, key: str) -> Verdict | None:
        try:
            found = typed.convert(jsonio.loads(files.read_text(self.cache)), Verdict)
        except FileNotFoundError:
            return None
        except (OSError, errors.ParseError, msgspec.ValidationError):
            # Only a cache, perhaps of another version: it is written again.
            return None
        return found if found.key == key else None


def wish(params: KvmParams) -> Literal["auto", "kvm", "tcg"]:
    """Return the accelerator that the parameters ask for; ``kvm_flag`` is the older spelling."""
    if params.accelerator == "auto" and params.kvm_flag:
        return "kvm" if params.kvm_flag == "enabled" else "tcg"
    return params.accelerator


def probe(qemu: str, accelerator: Accelerator, timeout: float = PROBE_TIMEOUT) -> str | None:
    """Run the probe image: None when it ended well, else what happened instead.

    Blocks ``timeout`` seconds at most, and once more 8 times as long when that was too short (the
    node may have been busy); ends at once when QEMU reports that the guest is stuck.
    """
    with tempfile.TemporaryDirectory(prefix="ganeti-probe-") as directory:
        image = Path(directory, "probe.bin")
        image.write_bytes(probe_image.build())
        argv = [
            *(qemu, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
            *("-machine", "pc", "-accel", accelerator, "-m", "4", "-bios", str(image)),
            *("-device", f"isa-debug-exit,iobase={probe_image.EXIT_PORT:#x},iosize=4"),
        ]
        for limit in (timeout, timeout * _LONGER):
            status, output = _run(argv, limit)
            if status >= 0:
                break
            if _STUCK in output:
                return (
                    f"accelerator {accelerator} cannot execute what a kernel needs"
                    f" ({_STUCK.decode()})"
                )
        else:
            return f"accelerator {accelerator} did not end a small test in {limit:g} s"
    if status == probe_image.EXIT_STATUS:
        return None
    last = output.decode("utf-8", "replace").strip().splitlines()[-1:]
    return f"accelerator {accelerator} failed a small test" + (f": {last[0]}" if last else "")


def _run(argv: list[str], timeout: float) -> tuple[int, bytes]:
    """Exit status (negative: it had to be killed) and the messages of QEMU."""
    end = Deadline(patience.scale(timeout))
    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={"PATH": process.SAFE_PATH, "LC_ALL": "C"},
            start_new_session=True,
        )
    except OSError as err:
        return 127, f"{argv[0]} cannot be started: {err.strerror}".encode()
    try:
        output = _listen(child, end)
    finally:
        process.kill_group(child.pid)
        status = child.wait()
        if child.stderr is not None:
            child.stderr.close()
    return status, output


def _listen(child: subprocess.Popen[bytes], end: Deadline) -> bytes:
    """Messages of QEMU until it ends, is stuck, or the time is over; reaps nothing."""
    output = b""
    if child.stderr is None:
        return output
    fd = child.stderr.fileno()
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while _STUCK not in output:
        if end.has_passed or not poll.poll(end.left * 1000):
            return output
        data = os.read(fd, 65536)
        if not data:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(max(0.1, end.left))
            return output
        output += data
    return output


def _boot_id() -> str:
    try:
        return boot.read_id()
    except OSError:
        # Without it the answer is kept as long as the run directory, which a boot empties.
        return "unknown"
