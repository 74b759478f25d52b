"""Records of guests on a node: files below ``<run>/kvm-hypervisor``, and their processes.

====================  ==========================================================================
``pid/<name>``        written and locked by QEMU, removed when it ends
``conf/<name>.runtime``  :class:`Runtime` as JSON, written before QEMU starts, mode 0600
``ctrl/<name>.qmp``   QEMU's control socket; ``.serial`` and ``.qga`` are the guest's ports
``ctrl/<name>.events.in``, ``.out``  journal of events, see argv and journal
``nic/<name>/<n>``    name of the tap of card n
``uid/<name>``        user that runs QEMU, when it is not root
``chroot/<name>``     empty directory that QEMU is locked into
``keymap/``           reserved
``seed/<name>.iso``   disk for cloud-init, mode 0600: it may have secrets
``key/<name>/``       key of a migration, while it is going on
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
from typing import TYPE_CHECKING, Literal

import msgspec

from ganeti import errors
from ganeti.base import files, jsonio, patience, typed
from ganeti.hypervisor import host
from ganeti.hypervisor.kvm import journal
from ganeti.hypervisor.kvm.accel import Accelerator
from ganeti.hypervisor.kvm.devices import Drive, Processor
from ganeti.hypervisor.kvm.params import KvmParams, load
from ganeti.hypervisor.kvm.qemu_process import is_ours
from ganeti.model.ids import DiskUuid
from ganeti.rpc.objects import NodeInstance

if TYPE_CHECKING:
    from ganeti.hypervisor.kvm.qmp import Qmp

_SUFFIX = ".runtime"
_DIRECTORIES = ("pid", "uid", "nic", "conf", "ctrl", "chroot", "keymap", "key", "seed")
#: Longest name of a socket file; QEMU opens it by this relative name.
_MAX_SOCKET_NAME = 100


def qmp_timeout() -> float:
    """Seconds for an answer on the control socket."""
    return patience.scale(10.0)


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """A NIC of a running guest."""

    uuid: str
    #: network interface of the node, None for a card without one
    tap: str | None
    #: what the tap was attached to
    mode: str
    link: str


#: ``in``: it is awaited here; ``out``: it is sent to another node.
Move = Literal["none", "in", "out"]


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """How a guest was started: enough to go on with it, and to explain it."""

    version: int = 1
    #: without OS parameters, which may be secret
    instance: NodeInstance
    argv: tuple[str, ...]
    accelerator: Accelerator
    cards: tuple[Card, ...] = ()
    #: seconds since 1970
    started: float
    #: MiB that the guest has now (a balloon may have changed it)
    memory: int
    #: machine type with its version; empty: unknown, so the guest can be neither moved nor changed
    machine: str = ""
    #: software that started it, when it was not this one (see adoption)
    software: str = ""
    #: device id -> place, see places
    places: dict[str, str] = {}
    drives: tuple[Drive, ...] = ()
    #: those that were added since QEMU began, as it was told
    processors: tuple[Processor, ...] = ()
    #: user that runs QEMU, empty: root
    user: str = ""
    #: whether it is between two nodes
    move: Move = "none"
    #: size of the journal when that began
    mark: int = 0
    #: whether it was paused before that
    paused: bool = False
    #: disks that move with it
    sent_disks: tuple[DiskUuid, ...] = ()
    #: disks that take the place of its own
    successors: tuple[Drive, ...] = ()

    @property
    def params(self) -> KvmParams:
        """Parameters that the guest was started with, however they were changed since."""
        return load(self.instance.hvparams)

    @property
    def copied_disks(self) -> tuple[DiskUuid, ...]:
        """Disks that are copied while it runs."""
        return self.sent_disks or tuple(drive.uuid for drive in self.successors)

    @property
    def restricted(self) -> bool:
        """Whether QEMU cannot open files of the node any more."""
        return bool(self.user) or self.params.use_chroot


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

    def seed(self, name: str) -> Path:
        """Disk for cloud-init of a guest that has one."""
        return self.root / "seed" / f"{name}.iso"

    def events(self, name: str) -> Path:
        """Journal of events without ``.in`` and ``.out``."""
        return self.ctrl / f"{name}.events"

    def nic_dir(self, name: str) -> Path:
        return self.root / "nic" / name

    def uid_file(self, name: str) -> Path:
        return self.root / "uid" / name

    def chroot(self, name: str) -> Path:
        return self.root / "chroot" / name

    def key_dir(self, name: str) -> Path:
        return self.root / "key" / name

    # what there is

    def prepare(self) -> None:
        """Make the directories."""
        for directory in _DIRECTORIES:
            # A QEMU that is not root has to get through to its key.
            files.ensure_dir(self.root / directory, 0o711 if directory == "key" else 0o750)

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
            runtime = typed.convert(jsonio.loads(text), Runtime)
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
            self.seed(name),
        ):
            files.remove(path)
        self.forget_events(name)
        for directory in (self.nic_dir(name), self.chroot(name), self.key_dir(name)):
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(directory)
        # Last, as it is what makes the guest known.
        files.remove(self.runtime_file(name))
        self._cache.pop(name, None)

    def note_cards(self, name: str, cards: Sequence[Card]) -> None:
        """Write ``nic/<name>/<n>`` for every tap, and only for those."""
        directory = self.nic_dir(name)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(directory)
        for index, card in enumerate(cards):
            if card.tap is not None:
                files.ensure_dir(directory)
                (directory / str(index)).write_text(card.tap + "\n")

    def control(self, name: str, timeout: float | None = None) -> Qmp:
        """A connection to QEMU.

        It blocks ``timeout`` seconds at most (:func:`qmp_timeout`), as each command on it does.

        Raises:
            HypervisorError: nobody answers there.
        """
        # Imported here, as it is slow and most calls do not need it.
        from ganeti.hypervisor.kvm.qmp import Qmp

        return Qmp.connect(self.socket(name, "qmp"), timeout or qmp_timeout())

    def forget_events(self, name: str) -> None:
        """Remove the journal, and with it that the guest shut itself down."""
        for suffix in (".in", ".out"):
            files.remove(Path(f"{self.events(name)}{suffix}"))

    def runs(self, guest: Guest) -> bool:
        """Whether the guest runs here: its process does, and it is not at the other node.

        While it moves, the process of either node may wait without the guest: QEMU's own journal
        tells when the guest was handed over.
        """
        if guest.pid is None:
            return False
        move = guest.runtime.move
        if move == "none":
            return True
        lines = self.journal(guest.runtime.instance.name).lines(guest.runtime.mark)
        return journal.was_resumed(lines) if move == "in" else not journal.handed_over(lines)

    def journal(self, name: str) -> journal.Journal:
        """The journal of QEMU events of a guest."""
        return journal.Journal(Path(f"{self.events(name)}.out"))

    def shut_itself_down(self, name: str) -> bool:
        """Whether the guest ended by its own will, not asked by anybody."""
        return journal.was_own_will(self.journal(name).tail())


def socket_name(name: str, kind: str) -> str:
    """File name of a socket; host names may have 253 characters, socket addresses 107."""
    plain = f"{name}.{kind}"
    if len(plain) <= _MAX_SOCKET_NAME:
        return plain
    return f"{name[:48]}~{hashlib.sha256(name.encode()).hexdigest()[:24]}.{kind}"
