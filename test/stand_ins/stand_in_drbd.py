"""Stand-ins for drbdsetup and drbdmeta (8.4): the rules of the kernel module, on files.

As long as two sides are connected and up to date their data is one file with two names, which is
what synchronous replication looks like from outside. When they part the side that is not primary
gets a copy; when a resync ends its file becomes the other name of the source's again. So a test
can write to ``/dev/drbdN`` of a node, switch roles, and read the bytes on the other side.

Generations (who has newer data) follow the kernel's rules as far as pairs need them: a new one
begins when a side that is alone has written; unrelated or diverged ones end the connection.
"""

from __future__ import annotations

import marshal
import os

from stand_in_world import ToolError, World, copy_sparse, place_link, remove, write_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Generation of metadata that was just made.
JUST_CREATED = "0000000000000004"
NONE = "0000000000000000"
#: Where and what the magic number of version 08 is; the rest is ours, from the next sector on.
_MAGIC_AT, _MAGIC = 60, (0x8374026C).to_bytes(4, "big")
_OURS_AT = 512

Res = dict[str, "Any"]


class Side:
    """One side of a mirror: a resource on a node."""

    def __init__(self, world: World, node: str, name: str) -> None:
        self.world, self.node_name, self.name = world, node, name
        self.node = world.node(node)
        self.res: Res = self.node["drbd"][name]

    @property
    def data(self) -> str:
        return os.path.realpath(self.res["disk"]["data"])

    def peer(self) -> Side | None:
        """The side whose addresses are ours the other way round, however it is connected."""
        net = self.res["net"]
        if net is None:
            return None
        for node, facts in self.world.data["nodes"].items():
            for name, res in facts["drbd"].items():
                other = res["net"]
                if other and (other["local"], other["remote"]) == (net["remote"], net["local"]):
                    return Side(self.world, node, name)
        return None

    def partner(self) -> Side | None:
        """The peer, when the two are connected."""
        return self.peer() if self.res["cs"] == "Connected" else None

    @property
    def state(self) -> str:
        return self.res["disk"]["state"] if self.res["disk"] else "Diskless"

    @property
    def meta(self) -> dict[str, Any]:
        return read_meta(self.res["disk"]["meta"])

    def write_meta(self, **values: Any) -> None:
        write_meta(self.res["disk"]["meta"], {**self.meta, **values})

    def set_state(self, state: str) -> None:
        self.res["disk"]["state"] = state
        self.write_meta(state=state)

    # data

    def note_writes(self) -> None:
        """Begin a new generation if this side wrote while it was alone."""
        disk = self.res["disk"]
        if not disk or disk["alone_since"] is None:
            return
        if os.stat(self.data).st_mtime_ns != disk["alone_since"]:
            disk["alone_since"] = None
            disk["wrote_alone"] = True
            meta = self.meta
            if meta["bitmap"] == NONE:
                self.write_meta(current=generation(), bitmap=meta["current"])

    def watch_writes(self) -> None:
        """From now on a write makes a new generation: nobody else gets it."""
        disk = self.res["disk"]
        if disk and self.res["role"] == "Primary" and not disk["wrote_alone"]:
            disk["alone_since"] = os.stat(self.data).st_mtime_ns

    def part(self, other: Side) -> None:
        """The two sides lose each other: what was one file becomes two."""
        if self.res["disk"] and other.res["disk"]:
            if self.res["sync"] or other.res["sync"]:
                self.res["sync"] = other.res["sync"] = None
            elif os.path.samefile(self.data, other.data):
                keeps = other if other.res["role"] == "Primary" else self
                gets = self if keeps is other else other
                copy_sparse(keeps.data, gets.data)
        for side in (self, other):
            side.watch_writes()

    def join(self, source: Side) -> None:
        """This side has all data of the other: both names lead to one file."""
        if not os.path.samefile(self.data, source.data):
            fresh = f"{self.data}.joining"
            os.link(source.data, fresh)
            os.rename(fresh, self.data)
        for side in (self, source):
            side.res["disk"]["alone_since"] = None
            side.res["disk"]["wrote_alone"] = False


def generation() -> str:
    """A new one, as random as the kernel's."""
    return os.urandom(8).hex().upper()


# metadata -----------------------------------------------------------------------------------


def read_meta(path: str) -> dict[str, Any]:
    """Metadata of a device; ToolError when it has none."""
    try:
        with open(path, "rb") as file:
            head = file.read(4096)
    except OSError as err:
        raise ToolError(20, f"open({path}) failed: {err.strerror}") from err
    if head[_MAGIC_AT : _MAGIC_AT + 4] != _MAGIC:
        raise ToolError(255, "No valid meta data found")
    found: dict[str, Any] = marshal.loads(head[_OURS_AT:])
    return found


def write_meta(path: str, values: dict[str, Any]) -> None:
    head = b"".ljust(_MAGIC_AT, b"\0") + _MAGIC
    text = marshal.dumps(values)
    with open(path, "r+b") as file:
        file.write((head.ljust(_OURS_AT, b"\0") + text).ljust(4096, b"\0"))


def new_meta() -> dict[str, Any]:
    return {
        "current": JUST_CREATED,
        "bitmap": NONE,
        "history": [],
        "state": "Inconsistent",
        "unclean": False,
    }


# what the kernel does by itself -------------------------------------------------------------


def settle(world: World) -> None:
    """Bring everything up to now: ended resyncs, lost and found peers; then publish it."""
    sides = [
        Side(world, node, name)
        for node, facts in world.data["nodes"].items()
        for name in facts["drbd"]
    ]
    for side in sides:
        side.note_writes()
    for side in sides:
        partner = side.partner()
        if side.res["cs"] == "Connected" and (
            partner is None
            or partner.res["cs"] != "Connected"
            or not world.reachable(side.node_name, partner.node_name)
        ):
            if partner is not None:
                side.part(partner)
                partner.res["cs"] = "WFConnection"
            side.res["cs"] = "WFConnection"
    for side in sides:
        _finish_sync(world, side)
    for side in sides:
        peer = side.peer()
        if (
            peer is not None
            and side.res["cs"] == peer.res["cs"] == "WFConnection"
            and world.reachable(side.node_name, peer.node_name)
        ):
            _handshake(side, peer)
    for node in world.data["nodes"]:
        publish(world, node)


def _finish_sync(world: World, side: Side) -> None:
    sync = side.res["sync"]
    if not sync or sync["role"] != "target" or progress(world, sync) < 1.0:
        return
    source = side.partner()
    assert source is not None
    side.join(source)
    newest = source.meta["current"]
    side.set_state("UpToDate")
    side.write_meta(current=newest, bitmap=NONE, history=[source.meta["bitmap"]])
    source.write_meta(bitmap=NONE, history=[source.meta["bitmap"], *source.meta["history"]][:2])
    side.res["sync"] = source.res["sync"] = None


def progress(world: World, sync: dict[str, Any]) -> float:
    """Part of a resync that is done; a paused one is paused."""
    end = sync["paused_at"] or world.now
    if not sync["seconds"]:
        return 1.0 if not sync["paused_at"] else 0.0
    return min(1.0, max(0.0, (end - sync["began"]) / sync["seconds"]))


def _handshake(one: Side, other: Side) -> None:
    """Two sides that wait for each other meet: connected, or both alone."""
    same = ("shared-secret", "cram-hmac-alg", "protocol", "allow-two-primaries")
    mine, theirs = one.res["net"]["options"], other.res["net"]["options"]
    refused = any(mine.get(key) != theirs.get(key) for key in same)
    both_primary = one.res["role"] == other.res["role"] == "Primary"
    if both_primary and mine.get("allow-two-primaries") != "yes":
        refused = True
    verdict = "none" if refused else compare(one, other)
    if refused or verdict == "refused":
        for side in (one, other):
            side.res["cs"], side.res["net"] = "StandAlone", None
        return
    one.res["cs"] = other.res["cs"] = "Connected"
    one.res["net"]["options"].pop("discard-my-data", None)
    other.res["net"]["options"].pop("discard-my-data", None)
    start_sync(one, other, verdict)


def start_sync(one: Side, other: Side, verdict: str) -> None:
    """Begin what a comparison of generations asks for."""
    if not one.res["disk"] or not other.res["disk"]:
        return
    if verdict == "none":
        if one.state == other.state == "UpToDate":
            keeps = other if other.res["role"] == "Primary" else one
            (one if keeps is other else other).join(keeps)
        return
    source, target = (one, other) if verdict == "source" else (other, one)
    target.set_state("Inconsistent")
    seconds = one.world.data["sync_seconds"]
    for side, role in ((source, "source"), (target, "target")):
        side.res["sync"] = {
            "role": role,
            "began": one.world.now,
            "seconds": seconds,
            "paused_at": None,
        }
    _finish_sync(one.world, target)


def compare(one: Side, other: Side) -> str:
    """``none``, ``source`` (one has newer data), ``target`` or ``refused``."""
    if not one.res["disk"] or not other.res["disk"]:
        return "none"
    mine, theirs = one.meta, other.meta
    verdict = _by_generation(mine, theirs)
    if verdict == "split":
        if one.res["net"]["options"].get("discard-my-data") == "yes":
            return "target"
        if other.res["net"]["options"].get("discard-my-data") == "yes":
            return "source"
        return "refused"
    if verdict == "none" and one.state != other.state:
        verdict = "source" if one.state == "UpToDate" else "target"
    target = other if verdict == "source" else one
    if verdict in ("source", "target") and target.res["role"] == "Primary":
        return "refused"
    return verdict


def _by_generation(mine: dict[str, Any], theirs: dict[str, Any]) -> str:
    if mine["current"] == theirs["current"]:
        return "none"
    if theirs["current"] == JUST_CREATED:
        return "source"
    if mine["current"] == JUST_CREATED:
        return "target"
    if mine["bitmap"] == theirs["current"] or theirs["current"] in mine["history"]:
        return "source"
    if theirs["bitmap"] == mine["current"] or mine["current"] in theirs["history"]:
        return "target"
    return "split"


# what a node shows --------------------------------------------------------------------------

#: (partner's role, own state of the resync) in /proc/drbd
_SYNC_WORDS = {"source": "SyncSource", "target": "SyncTarget"}


def connection_word(side: Side) -> str:
    """``cs:`` of /proc/drbd."""
    sync = side.res["sync"]
    if not sync:
        return str(side.res["cs"])
    if sync["paused_at"]:
        return "PausedSyncS" if sync["role"] == "source" else "PausedSyncT"
    return _SYNC_WORDS[sync["role"]]


def publish(world: World, name: str) -> None:
    """Write what the kernel of a node shows: /proc/drbd, /dev/drbdN, /sys/block/drbdN/size."""
    node = world.node(name)
    root: str = node["root"]
    text = f"version: {node['version']} (api:1/proto:86-101)\n"
    text += "srcversion: F73C670A7EC572DB9CF3E5B \n"
    minors: dict[int, Side] = {}
    for resource in node["drbd"]:
        side = Side(world, name, resource)
        if side.res["minor"] is not None:
            minors[side.res["minor"]] = side
    for minor in range(max(minors, default=-1) + 1):
        if minor not in minors:
            text += f"{minor:2}: cs:Unconfigured\n"
            continue
        text += _proc_entry(world, minor, minors[minor])
        _device(root, minor, minors[minor])
    devices = os.listdir(f"{root}/dev") if os.path.isdir(f"{root}/dev") else []
    for link in devices:
        if link.startswith("drbd") and link[4:].isdigit() and int(link[4:]) not in minors:
            os.unlink(f"{root}/dev/{link}")
            remove(f"{root}/sys/block/{link}/size")
    write_text(f"{root}/proc/drbd", text)
    write_text(f"{root}/sys/module/drbd/parameters/usermode_helper", node["helper"] + "\n")


def _device(root: str, minor: int, side: Side) -> None:
    """/dev/drbdN leads to data only where the side is primary, as only there it can be opened."""
    link = f"{root}/dev/drbd{minor}"
    partner = side.partner()
    target = "nowhere: this side is secondary"
    if side.res["role"] == "Primary" and side.state == "UpToDate":
        target = side.data
    elif side.res["role"] == "Primary" and partner is not None and partner.res["disk"]:
        target = partner.data
    if not os.path.islink(link) or os.readlink(link) != target:
        place_link(link, target)
    write_text(f"{root}/sys/block/drbd{minor}/size", f"{side.res['size'] * 2}\n")


def _proc_entry(world: World, minor: int, side: Side) -> str:
    partner = side.partner()
    role = partner.res["role"] if partner else "Unknown"
    state = partner.state if partner else "DUnknown"
    protocol = side.res["net"]["options"].get("protocol", "C") if side.res["net"] else " "
    size = side.res["size"]
    left = size if side.state == "Inconsistent" and not side.res["sync"] else 0
    sync = side.res["sync"]
    if sync:
        left = int(size * (1.0 - progress(world, sync)))
    text = (
        f"{minor:2}: cs:{connection_word(side)} ro:{side.res['role']}/{role}"
        f" ds:{side.state}/{state} {protocol} r-----\n"
        f"    ns:0 nr:0 dw:0 dr:0 al:8 bm:0 lo:0 pe:0 ua:0 ap:0 ep:1 wo:d oos:{left}\n"
    )
    if sync:
        done = 100.0 * progress(world, sync)
        marks = int(done / 5)
        bar = "=" * marks + ">" + "." * (20 - marks)
        rate = int(size / sync["seconds"]) if sync["seconds"] else size
        rest = int(left / rate) if rate else 0
        text += f"\t[{bar}] sync'ed: {done:.1f}% ({left}/{size})K\n"
        text += (
            f"\tfinish: {rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02}"
            f" speed: {rate:,} ({rate:,}) K/sec\n"
        )
    return text
