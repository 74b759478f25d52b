"""DRBD 8.4: commands of its drbdsetup and drbdmeta, and its place for metadata.

Tried with module 8.4.11 (Linux 6.1) and drbd-utils 9.22; the recorded answers are in
``test/recorded/drbd``. Options come after the arguments and are written ``--name=value``.
"""

from __future__ import annotations

import os
from typing import Final

from ganeti import errors
from ganeti.paths import Paths
from ganeti.storage.drbd import proc, show, tool
from ganeti.storage.drbd.dialect import Argv, Dialect, read_proc
from ganeti.storage.drbd.machine import Disk, Step, classify
from ganeti.storage.drbd.states import Live, Setup, Wish

#: Exit code of drbdsetup for what the kernel refuses.
_REFUSED: Final = 10
_NO_MINOR: Final = "(127)"
#: Offset of the magic number of version 08 metadata, and its values when clean and when not.
_MAGIC_AT: Final = 60
_MAGICS: Final = (0x8374026B, 0x8374026C)
#: The current generation in metadata that was just made.
_JUST_CREATED: Final = 4
#: Mutual authentication of the peers; the same on all nodes, also those not yet upgraded.
_HMAC: Final = "md5"
#: Data is only thrown away by itself where nothing was written: else a person decides.
_SPLIT_BRAIN: Final = ("--after-sb-0pri=discard-zero-changes", "--after-sb-1pri=consensus")


class Version84(Dialect):
    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def observe(self, minor: int) -> tuple[Setup | None, Live]:
        try:
            setups = show.parse(tool.run(["drbdsetup", "show", str(minor)]))
        except tool.ToolFailure as err:
            if err.code == _REFUSED and _NO_MINOR in errors.text(err):
                return None, Live()
            raise
        setup = next((found for found in setups if found.minor == minor), None)
        devices = proc.parse(read_proc(self._paths)).devices
        return setup, devices.get(minor, Live())

    def minors(self) -> list[int]:
        return sorted(proc.parse(read_proc(self._paths)).devices)

    def commands(self, step: Step, wish: Wish, setup: Setup | None) -> list[Argv]:
        minor = str(wish.minor)
        resource = setup.resource if setup else _resource(wish)
        if step is Step.NEW:
            name = _resource(wish)
            return [
                ["drbdsetup", "new-resource", name],
                ["drbdsetup", "new-minor", name, minor, "0"],
            ]
        if step is Step.ATTACH:
            return attach(wish)
        if step in (Step.CONNECT, Step.CONNECT_DUAL):
            # A step before may have taken a foreign device away.
            own = setup is not None and classify(setup, Live(), wish).disk is not Disk.FOREIGN
            name = resource if own else _resource(wish)
            return [connect(name, wish, dual=step is Step.CONNECT_DUAL)]
        if step in (Step.DISCONNECT, Step.ALLOW_TWO, Step.FORBID_TWO):
            return [self._make_link_command(step, wish, setup)]
        if step is Step.DOWN:
            return [["drbdsetup", "down", resource]]
        verbs = {Step.DETACH: "detach", Step.PROMOTE: "primary", Step.DEMOTE: "secondary"}
        return [["drbdsetup", verbs[step], minor]]

    @staticmethod
    def _make_link_command(step: Step, wish: Wish, setup: Setup | None) -> Argv:
        ends = [wish.local, wish.remote]
        if setup is not None and setup.local is not None and setup.remote is not None:
            ends = [setup.local, setup.remote]
        words = [end.word for end in ends]
        if step is Step.DISCONNECT:
            return ["drbdsetup", "disconnect", *words]
        value = "yes" if step is Step.ALLOW_TWO else "no"
        return ["drbdsetup", "net-options", *words, f"--allow-two-primaries={value}"]

    def force_first_primary(self, wish: Wish) -> list[Argv]:
        return [["drbdsetup", "primary", str(wish.minor), "--force"]]

    def create_metadata(self, wish: Wish) -> list[Argv]:
        return [["drbdmeta", "--force", str(wish.minor), "v08", wish.meta, "0", "create-md"]]

    def has_metadata(self, device: str) -> bool:
        return int.from_bytes(_head(device)[_MAGIC_AT : _MAGIC_AT + 4], "big") in _MAGICS

    def is_new(self, wish: Wish) -> bool:
        words = ["drbdsetup", "show-gi", str(wish.minor)]
        # The line of the generations: current, bitmap, two of history, then flags.
        lines = [line for line in tool.run(words).splitlines() if line.count(":") >= 4]
        return bool(lines) and int(lines[0].partition(":")[0], 16) & ~1 == _JUST_CREATED

    def refit(self, wish: Wish) -> list[Argv]:
        return [["drbdsetup", "disk-options", str(wish.minor), *wish.disk_options]]

    def resize(self, wish: Wish, size: int) -> list[Argv]:
        return [["drbdsetup", "resize", str(wish.minor), f"--size={size}m"]]

    def pause_resync(self, wish: Wish, *, pause: bool) -> list[Argv]:
        return [["drbdsetup", "pause-sync" if pause else "resume-sync", str(wish.minor)]]

    def await_peer(self, wish: Wish, seconds: int) -> Argv:
        limits = [f"--{kind}wfc-timeout={seconds}" for kind in ("", "degr-", "outdated-")]
        return ["drbdsetup", "wait-connect", str(wish.minor), *limits]


def attach(wish: Wish) -> list[Argv]:
    """Commands that give a minor its disk.

    The module refuses metadata whose activity log was not applied, and even a clean end leaves it
    so; applying it when there is nothing to do does nothing.
    """
    minor = str(wish.minor)
    return [
        ["drbdmeta", minor, "v08", wish.meta, "0", "apply-al"],
        [
            "drbdsetup",
            "attach",
            minor,
            wish.data,
            wish.meta,
            "0",
            *([f"--size={wish.size}m"] if wish.size else []),
            *wish.disk_options,
        ],
    ]


def connect(resource: str, wish: Wish, *, dual: bool) -> Argv:
    """The command that looks for the peer; two primaries are possible with protocol C only."""
    protocol = "C" if dual else wish.protocol
    return [
        "drbdsetup",
        "connect",
        resource,
        wish.local.word,
        wish.remote.word,
        f"--protocol={protocol}",
        f"--cram-hmac-alg={_HMAC}",
        f"{tool.SECRET_OPTION}{wish.secret}",
        *_SPLIT_BRAIN,
        *(["--allow-two-primaries=yes"] if dual else []),
        *wish.net_options,
    ]


def _resource(wish: Wish) -> str:
    return f"resource{wish.minor}"


def _head(device: str) -> bytes:
    try:
        fd = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.pread(fd, 512, 0)
    finally:
        os.close(fd)
