"""What the node knows of its guests: files below ``<run>/kvm-hypervisor``, and their processes.

====================  ==========================================================================
``pid/<name>``        written and locked by QEMU, removed when it ends
``conf/<name>.runtime``  :class:`Runtime` as JSON, written before QEMU starts, mode 0600
``ctrl/<name>.qmp``   QEMU's control socket; ``.serial`` and ``.qga`` are the guest's ports
``ctrl/<name>.events.in``, ``.out``  journal of events (only with user_shutdown), see argv
``nic/<name>/<n>``    name of the tap of card n
``uid/<name>``        user that runs QEMU, when it is not root
``chroot/<name>``     empty directory that QEMU is locked into
``keymap/``           reserved
====================  ==========================================================================

Nothing is kept in memory but a cache, so a restarted node daemon finds everything again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ganeti import errors
from ganeti.base import files, jsonio
from ganeti.hypervisor import host
from ganeti.hypervisor.kvm.qemu_process import is_ours
from ganeti.rpc.objects import NodeInstance

_SUFFIX = ".runtime"
_DIRECTORIES = ("pid", "uid", "nic", "conf", "ctrl", "chroot", "keymap")
#: Longest name of a socket file; QEMU opens it by this relative name.
_MAX_SOCKET_NAME = 100
#: Events at the end of the journal that are looked at, in bytes.
_TAIL = 65536


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """A network card of a running guest."""

    uuid: str
    #: network interface of the node, None for a card without one
    tap: str | None
    #: what the tap was attached to
    mode: str
    link: str


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """How a guest was started: enough to go on with it, and to explain it."""

    version: int = 1
    #: without OS parameters, which may be secret
    instance: NodeInstance
    argv: tuple[str, ...]
    accelerator: str
    cards: tuple[Card, ...] = ()
    #: seconds since the epoch
    started: float
    #: MiB that the guest has now (a balloon may have changed it)
    memory: int


@dataclass(frozen=True)
class Guest:
    """A guest and its process, None when that has ended."""

    runtime: Runtime
    pid: int | None


class Store:
    """Reads and writes the files; safe to use from several threads."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        #: name -> (identity of the file, content)
        self._cache: dict[str, tuple[tuple[int, int, int], Runtime]] = {}

    # names of files

    def pid_file(self, name: str) -> Path:
        return self.root / "pid" / name

    def runtime_file(self, name: str) -> Path:
        return self.root / "conf" / (name + _SUFFIX)

    @property
    def ctrl(self) -> Path:
        return self.root / "ctrl"

    def socket(self, name: str, kind: str) -> Path:
        """Socket of a guest; ``kind`` is qmp, serial or qga. A long name is shortened."""
        return self.ctrl / socket_name(name, kind)

    def events(self, name: str) -> Path:
        """Journal of events without ``.in`` and ``.out``."""
        return self.ctrl / f"{name}.events"

    def nic_dir(self, name: str) -> Path:
        return self.root / "nic" / name

    def uid_file(self, name: str) -> Path:
        return self.root / "uid" / name

    def chroot(self, name: str) -> Path:
        return self.root / "chroot" / name

    # what there is

    def prepare(self) -> None:
        """Make the directories."""
        for directory in _DIRECTORIES:
            files.ensure_dir(self.root / directory, 0o750)

    def names(self) -> list[str]:
        """Guests that were started and not cleaned up since, sorted."""
        try:
            found = os.listdir(self.root / "conf")
        except FileNotFoundError:
            return []
        return sorted(name.removesuffix(_SUFFIX) for name in found if name.endswith(_SUFFIX))

    def find(self, name: str) -> Guest | None:
        """A guest that was started and not cleaned up since.

        Raises:
            HypervisorError: its file cannot be read, or was written by something else.
        """
        host.check_instance_name(name)
        runtime = self._load(name)
        return None if runtime is None else Guest(runtime, self.pid(name))

    def _load(self, name: str) -> Runtime | None:
        path = self.runtime_file(name)
        try:
            stat = os.stat(path)
            identity = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            cached = self._cache.get(name)
            if cached is not None and cached[0] == identity:
                return cached[1]
            text = files.read_text(path)
        except FileNotFoundError:
            self._cache.pop(name, None)
            return None
        except OSError as err:
            raise errors.HypervisorError(f"cannot read {path}: {err.strerror}") from err
        try:
            runtime = msgspec.convert(jsonio.loads(text), Runtime)
        except (errors.ParseError, msgspec.ValidationError) as err:
            raise errors.HypervisorError(
                f"{path} is damaged ({err}); shut the guest down by its process and remove the file"
            ) from err
        self._cache[name] = (identity, runtime)
        return runtime

    def save(self, runtime: Runtime) -> None:
        """Remember how a guest runs; replaces what was known of it."""
        instance = msgspec.structs.replace(runtime.instance, osparams={})
        value = msgspec.to_builtins(msgspec.structs.replace(runtime, instance=instance))
        path = self.runtime_file(runtime.instance.name)
        with self._lock:
            files.write_atomic(path, jsonio.dumps(value), mode=0o600, fsync=False)

    def pid(self, name: str) -> int | None:
        """Process of a guest, None when it ended; a number that another process got is noticed."""
        path = self.pid_file(name)
        try:
            text = path.read_bytes().strip()
        except FileNotFoundError:
            return None
        except OSError as err:
            raise errors.HypervisorError(f"cannot read {path}: {err.strerror}") from err
        if not text.isdigit():
            return None
        pid = int(text)
        return pid if is_ours(pid, path) else None

    # the end

    def clear(self, name: str) -> None:
        """Remove everything of a guest that does not run; idempotent."""
        host.check_instance_name(name)
        for path in (
            self.pid_file(name),
            self.uid_file(name),
            self.socket(name, "qmp"),
            self.socket(name, "serial"),
            self.socket(name, "qga"),
        ):
            files.remove(path)
        self.forget_events(name)
        for directory in (self.nic_dir(name), self.chroot(name)):
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(directory)
        # Last, as it is what makes the guest known.
        files.remove(self.runtime_file(name))
        self._cache.pop(name, None)

    def forget_events(self, name: str) -> None:
        """Remove the journal, and with it that the guest shut itself down."""
        for suffix in (".in", ".out"):
            files.remove(Path(f"{self.events(name)}{suffix}"))

    def shut_itself_down(self, name: str) -> bool:
        """Whether the journal says that the guest ended by its own will, not asked by anybody."""
        try:
            with open(f"{self.events(name)}.out", "rb") as stream:
                stream.seek(0, os.SEEK_END)
                stream.seek(max(0, stream.tell() - _TAIL))
                lines = stream.read().splitlines()
        except FileNotFoundError:
            return False
        return _own_will(lines)


def _own_will(lines: Sequence[bytes]) -> bool:
    """Whether the last SHUTDOWN of QEMU's events came from the guest, without a POWERDOWN before.

    A press of the power button belongs to the boot that follows the last RESET.
    """
    pressed = own = False
    for line in lines:
        try:
            event = jsonio.loads(line)
        except errors.ParseError:
            # The first line may be cut, as only the end of the file was read.
            continue
        kind = event.get("event") if isinstance(event, dict) else None
        if kind == "RESET":
            pressed = False
        elif kind == "POWERDOWN":
            pressed = True
        elif kind == "SHUTDOWN":
            data = event.get("data") or {}
            own = bool(data.get("guest")) and data.get("reason") == "guest-shutdown"
            own = own and not pressed
    return own


def socket_name(name: str, kind: str) -> str:
    """File name of a socket; host names may have 253 characters, socket addresses 107."""
    plain = f"{name}.{kind}"
    if len(plain) <= _MAX_SOCKET_NAME:
        return plain
    return f"{name[:48]}~{hashlib.sha256(name.encode()).hexdigest()[:24]}.{kind}"
