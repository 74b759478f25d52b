"""Commands of the stand-in drbdsetup and drbdmeta."""

from __future__ import annotations

import os

from stand_in_drbd import (
    NONE,
    Side,
    compare,
    connection_word,
    generation,
    new_meta,
    progress,
    read_meta,
    settle,
    start_sync,
    write_meta,
)
from stand_in_world import MIB, ToolError, World

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: Settings that are not shown because they are what the kernel has anyway.
_DEFAULTS = {
    "protocol": "C",
    "on-io-error": "detach",
    "disk-barrier": "no",
    "disk-flushes": "yes",
    "md-flushes": "yes",
    "resync-rate": "250k",
    "c-plan-ahead": "20",
    "c-fill-target": "100s",
    "c-max-rate": "102400k",
    "c-min-rate": "250k",
    "c-delay-target": "10",
    "allow-two-primaries": "no",
    "max-buffers": "2048",
    "timeout": "60",
}
_QUOTED = {"cram-hmac-alg", "shared-secret", "verify-alg", "csums-alg"}


class Drbdsetup:
    """The tool on one node."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.table: dict[str, Any] = world.node(name)["drbd"]

    def run(self, words: list[str]) -> str:
        """Do one command; the state is settled before and after."""
        settle(self.world)
        options = dict(_option(word) for word in words if word.startswith("--"))
        command, *arguments = [word for word in words if not word.startswith("--")]
        found = self._commands().get(command)
        if found is None:
            raise ToolError(20, f"drbdsetup: unknown command '{command}'")
        try:
            return found(arguments, options)
        finally:
            settle(self.world)

    def _commands(self) -> dict[str, Callable[[list[str], dict[str, str]], str]]:
        return {
            "new-resource": self.new_resource,
            "new-minor": self.new_minor,
            "attach": self.attach,
            "detach": self.detach,
            "connect": self.connect,
            "disconnect": self.disconnect,
            "net-options": self.net_options,
            "disk-options": self.disk_options,
            "primary": self.primary,
            "secondary": self.secondary,
            "resize": self.resize,
            "down": self.down,
            "del-minor": self.del_minor,
            "del-resource": self.del_resource,
            "invalidate": self.invalidate,
            "pause-sync": self.pause_sync,
            "resume-sync": self.resume_sync,
            "role": self.role,
            "cstate": self.cstate,
            "dstate": self.dstate,
            "status": self.status,
            "show": self.show,
            "events2": self.events2,
            "show-gi": self.show_gi,
        }

    # resources and disks

    def new_resource(self, arguments: list[str], _options: dict[str, str]) -> str:
        self.table.setdefault(
            arguments[0],
            {
                "minor": None,
                "role": "Secondary",
                "disk": None,
                "net": None,
                "cs": "StandAlone",
                "sync": None,
                "size": 0,
            },
        )
        return ""

    def new_minor(self, arguments: list[str], _options: dict[str, str]) -> str:
        name, minor, _volume = arguments
        if name not in self.table:
            raise _kernel("??", 158, "Unknown resource", "unknown resource")
        for other, res in self.table.items():
            if res["minor"] == int(minor) and other != name:
                raise _kernel(minor, 161, "Minor or volume exists already (delete it first)")
        self.table[name]["minor"] = int(minor)
        return ""

    def attach(self, arguments: list[str], options: dict[str, str]) -> str:
        minor, data, meta, _index = arguments
        side = self._by_minor(minor)
        if side.res["disk"]:
            raise _kernel(minor, 124, "Device is attached to a disk (use detach first)")
        for name, res in self.table.items():
            if res["disk"] and {res["disk"]["data"], res["disk"]["meta"]} & {data, meta}:
                raise _kernel(minor, 104, f"Can not open backing device. ({name} uses it)")
        for path in (data, meta):
            if not os.path.exists(path):
                raise ToolError(20, f"open({path}) failed: No such file or directory")
        try:
            found = read_meta(meta)
        except ToolError as err:
            raise _kernel(minor, 119, "No valid meta-data signature found.") from err
        if found["unclean"]:
            text = f"{minor}: Failure: (165) Unclean meta-data found."
            raise ToolError(10, f"{text}\nYou need to 'drbdadm apply-al res'\n")
        side.res["disk"] = {
            "data": data,
            "meta": meta,
            "state": found["state"],
            "options": options,
            "alone_since": None,
            "wrote_alone": found["bitmap"] != NONE,
        }
        sizes = [os.path.getsize(data) // 1024]
        if "size" in options:
            sizes.append(_kib(options["size"]))
        side.res["size"] = min(sizes)
        if side.res["role"] == "Primary":
            side.write_meta(unclean=True)
        partner = side.partner()
        if partner is not None:
            start_sync(side, partner, compare(side, partner))
        return ""

    def detach(self, arguments: list[str], _options: dict[str, str]) -> str:
        side = self._by_minor(arguments[0])
        partner = side.partner()
        usable = partner is not None and partner.state == "UpToDate"
        if side.res["role"] == "Primary" and not usable:
            raise _make_refusal(arguments[0], -2, "Need access to UpToDate data")
        if partner is not None:
            side.part(partner)
        side.res["disk"] = None
        return ""

    def disk_options(self, arguments: list[str], options: dict[str, str]) -> str:
        side = self._by_minor(arguments[0])
        if not side.res["disk"]:
            raise _kernel(arguments[0], 138, "Device does not have a disk-config")
        side.res["disk"]["options"].update(options)
        return ""

    def resize(self, arguments: list[str], options: dict[str, str]) -> str:
        side = self._by_minor(arguments[0])
        partner = side.partner()
        if not side.res["disk"]:
            raise _kernel(arguments[0], 138, "Device does not have a disk-config")
        if side.res["sync"]:
            raise _kernel(arguments[0], 130, "Resize not allowed during resync.")
        both = [side, partner] if partner is not None else [side]
        sizes = [self._lower_size(item) for item in both if item.res["disk"]]
        if "size" in options:
            sizes.append(_kib(options["size"]))
        for item in both:
            item.res["size"] = min(sizes)
        return ""

    def _lower_size(self, side: Side) -> int:
        """KiB of the volume below a side, as its own volume group counts them."""
        from stand_in_lvm import EXTENT

        *_, group, name = side.res["disk"]["data"].split("/")
        lv = side.node["vgs"].get(group, {"lvs": {}})["lvs"].get(name)
        if lv is None:
            return os.path.getsize(side.data) // 1024
        return int(sum(count for _pv, _start, count in lv["extents"])) * EXTENT // 1024

    def down(self, arguments: list[str], _options: dict[str, str]) -> str:
        for name in list(self.table) if arguments[0] == "all" else arguments:
            if name not in self.table:
                raise ToolError(
                    10,
                    f"{name}: Failure: (158) Unknown resource\nadditional info from kernel:\n"
                    "unknown resource",
                )
            side = Side(self.world, self.name, name)
            self._part(side)
            self._clean(side)
            del self.table[name]
        return ""

    def del_minor(self, arguments: list[str], _options: dict[str, str]) -> str:
        side = self._by_minor(arguments[0])
        if side.res["disk"] or side.res["net"]:
            raise _kernel(arguments[0], 159, "Device is configured!")
        side.res["minor"] = None
        return ""

    def del_resource(self, arguments: list[str], _options: dict[str, str]) -> str:
        res = self.table.get(arguments[0])
        if res is None:
            raise _kernel(arguments[0], 158, "Unknown resource", "unknown resource")
        if res["minor"] is not None:
            raise _kernel(arguments[0], 160, "Resource has volumes")
        del self.table[arguments[0]]
        return ""

    # network

    def connect(self, arguments: list[str], options: dict[str, str]) -> str:
        name, local, remote = arguments
        if name not in self.table:
            raise _kernel(name, 158, "Unknown resource", "unknown resource")
        if any(res["net"] and res["net"]["local"] == local for res in self.table.values()):
            raise _kernel(name, 102, "Local address(port) already in use.")
        self.table[name]["net"] = {"local": local, "remote": remote, "options": options}
        self.table[name]["cs"] = "WFConnection"
        return ""

    def disconnect(self, arguments: list[str], _options: dict[str, str]) -> str:
        side = self._by_addresses(arguments)
        partner = side.partner()
        if partner is not None and side.res["role"] == "Primary" and side.state != "UpToDate":
            raise _make_refusal("??", -2, "Need access to UpToDate data", 17)
        self._part(side)
        return ""

    def net_options(self, arguments: list[str], options: dict[str, str]) -> str:
        side = self._by_addresses(arguments)
        partner = side.partner()
        if (
            options.get("allow-two-primaries") == "no"
            and partner is not None
            and side.res["role"] == partner.res["role"] == "Primary"
        ):
            raise _kernel("??", 139, "Multiple primaries not allowed by config")
        side.res["net"]["options"].update(options)
        return ""

    def _part(self, side: Side) -> None:
        """Give up the network; the peer waits for it."""
        partner = side.partner()
        if partner is not None:
            side.part(partner)
            partner.res["cs"] = "WFConnection"
        side.res["net"], side.res["cs"], side.res["sync"] = None, "StandAlone", None

    # roles

    def primary(self, arguments: list[str], options: dict[str, str]) -> str:
        side = self._by_minor(arguments[0])
        partner = side.partner()
        if side.res["role"] == "Primary":
            return ""
        second = partner is not None and partner.res["role"] == "Primary"
        if second and side.res["net"]["options"].get("allow-two-primaries") != "yes":
            raise _make_refusal(arguments[0], -1, "Multiple primaries not allowed by config")
        states = [side.state, partner.state if partner is not None else "DUnknown"]
        if "UpToDate" not in states:
            if "force" not in options or not side.res["disk"]:
                raise _make_refusal(arguments[0], -2, "Need access to UpToDate data")
            side.write_meta(current=generation(), bitmap=side.meta["current"])
            side.set_state("UpToDate")
        side.res["role"] = "Primary"
        if side.res["disk"]:
            side.write_meta(unclean=True)
        if partner is None:
            side.watch_writes()
        elif partner.res["disk"] and partner.state != "UpToDate" and not side.res["sync"]:
            start_sync(side, partner, "source")
        return ""

    def secondary(self, arguments: list[str], _options: dict[str, str]) -> str:
        side = self._by_minor(arguments[0])
        side.note_writes()
        self._clean(side)
        side.res["role"] = "Secondary"
        return ""

    @staticmethod
    def _clean(side: Side) -> None:
        if side.res["disk"]:
            side.note_writes()
            side.res["disk"]["alone_since"] = None
            side.write_meta(unclean=False)

    # resync

    def invalidate(self, arguments: list[str], _options: dict[str, str]) -> str:
        side = self._by_minor(arguments[0])
        partner = side.partner()
        if partner is None or partner.state != "UpToDate":
            raise _make_refusal(arguments[0], -2, "Need access to UpToDate data")
        start_sync(partner, side, "source")
        return ""

    def pause_sync(self, arguments: list[str], _options: dict[str, str]) -> str:
        return self._pause(arguments[0], self.world.now)

    def resume_sync(self, arguments: list[str], _options: dict[str, str]) -> str:
        return self._pause(arguments[0], None)

    def _pause(self, minor: str, when: float | None) -> str:
        side = self._by_minor(minor)
        for item in (side, side.partner()):
            sync = item.res["sync"] if item is not None else None
            if sync is None:
                continue
            if when is None and sync["paused_at"]:
                sync["began"] += self.world.now - sync["paused_at"]
            sync["paused_at"] = when
        return ""

    # reports

    def role(self, arguments: list[str], _options: dict[str, str]) -> str:
        side = self._by_minor(arguments[0])
        partner = side.partner()
        return f"{side.res['role']}/{partner.res['role'] if partner else 'Unknown'}\n"

    def cstate(self, arguments: list[str], _options: dict[str, str]) -> str:
        return connection_word(self._by_minor(arguments[0])) + "\n"

    def dstate(self, arguments: list[str], _options: dict[str, str]) -> str:
        side = self._by_minor(arguments[0])
        partner = side.partner()
        return f"{side.state}/{partner.state if partner else 'DUnknown'}\n"

    def status(self, arguments: list[str], options: dict[str, str]) -> str:
        verbose = "verbose" in options or "statistics" in options
        return "".join(self._status(side, verbose) + "\n" for side in self._select(arguments))

    def _status(self, side: Side, verbose: bool) -> str:
        partner, sync = side.partner(), side.res["sync"]
        replication = _SYNC_WORD.get(connection_word(side), "Established")
        done = f" done:{100 * progress(self.world, sync):.2f}" if sync else ""
        first = f"{side.name} role:{side.res['role']}" + (" suspended:no" if verbose else "")
        disk = f"volume:0 minor:{side.res['minor']} disk" if verbose else "disk"
        lines = [first, f"  {disk}:{side.state}"]
        if verbose:
            lines.append(f"      size:{side.res['size']} read:0 written:0")
        if side.res["net"] is not None:
            word = "Connected" if partner else "Connecting"
            role = partner.res["role"] if partner else "Unknown"
            plain = f"role:{role}" if partner else f"connection:{word}"
            lines.append("  peer " + (f"connection:{word} role:{role}" if verbose else plain))
        if partner is not None:
            lines.append(f"    replication:{replication} peer-disk:{partner.state}{done}")
        return "".join(f"{line}\n" for line in lines)

    def events2(self, arguments: list[str], _options: dict[str, str]) -> str:
        return "".join(f"exists {line}\n" for line in self.facts(arguments)) + "exists -\n"

    def facts(self, arguments: list[str]) -> list[str]:
        """What ``events2`` tells of each object, without the kind of event."""
        lines: list[str] = []
        for side in self._select(arguments):
            partner = side.partner()
            name = f"name:{side.name}"
            conn = "peer-node-id:0" + (" conn-name:peer" if side.res["net"] else "")
            word = {"Connected": "Connected", "WFConnection": "Connecting"}.get(
                side.res["cs"], side.res["cs"]
            )
            replication = "Off"
            if partner is not None:
                replication = _SYNC_WORD.get(connection_word(side), "Established")
            lines += [
                f"resource {name} role:{side.res['role']} suspended:no",
                f"connection {name} {conn} connection:{word}"
                f" role:{partner.res['role'] if partner else 'Unknown'}",
                f"device {name} volume:0 minor:{side.res['minor']} disk:{side.state}",
                f"peer-device {name} {conn} volume:0 replication:{replication}"
                f" peer-disk:{partner.state if partner else 'DUnknown'} resync-suspended:no",
            ]
        return lines

    def show(self, arguments: list[str], _options: dict[str, str]) -> str:
        if arguments and arguments[0].isdigit():
            sides = [self._by_minor(arguments[0])]
        else:
            sides = self._select(arguments)
        return "".join(_show(side) for side in sides)

    def show_gi(self, arguments: list[str], _options: dict[str, str]) -> str:
        side = self._by_minor(arguments[0])
        if not side.res["disk"]:
            raise ToolError(1, "Device has no disk")
        meta = side.meta
        history = [*meta["history"], NONE, NONE][:2]
        flags = "1:1" if side.state == "UpToDate" else "0:0"
        return f"\n{meta['current']}:{meta['bitmap']}:{':'.join(history)}:{flags}:0:0:0:0:0\n"

    # finding

    def _select(self, arguments: list[str]) -> list[Side]:
        names = list(self.table)
        if arguments and arguments[0] != "all":
            names = [name for name in names if name == arguments[0]]
            if not names:
                raise ToolError(10, f"{arguments[0]}: No such resource")
        return [Side(self.world, self.name, name) for name in names]

    def _by_minor(self, minor: str) -> Side:
        for name, res in self.table.items():
            if str(res["minor"]) == minor:
                return Side(self.world, self.name, name)
        raise _kernel(minor, 127, "Device minor not allocated", "unknown minor")

    def _by_addresses(self, arguments: list[str]) -> Side:
        for name, res in self.table.items():
            if res["net"] and [res["net"]["local"], res["net"]["remote"]] == arguments:
                return Side(self.world, self.name, name)
        raise _kernel("??", 162, "Invalid configuration request", "unknown connection")


_SYNC_WORD = {word: word for word in ("SyncSource", "SyncTarget", "PausedSyncS", "PausedSyncT")}


def drbdmeta(world: World, name: str, words: list[str]) -> str:
    """``drbdmeta [--force] MINOR v08 DEVICE INDEX create-md|apply-al|wipe-md|dump-md``."""
    minor, _version, device, _index, command = [w for w in words if not w.startswith("--")]
    for res in world.node(name)["drbd"].values():
        if str(res["minor"]) == minor and res["disk"]:
            raise ToolError(20, f"Device '{minor}' is configured!")
    if not os.path.exists(device):
        raise ToolError(20, f"open({device}) failed: No such file or directory")
    if command == "create-md":
        if os.path.getsize(device) < 128 * MIB:
            raise ToolError(20, f"{device} is too small: 128 MiB are needed")
        write_meta(device, new_meta())
        return "initializing activity log\nWriting meta data...\nNew drbd meta data block" + (
            " successfully created.\n"
        )
    found = read_meta(device)
    if command == "apply-al":
        write_meta(device, {**found, "unclean": False})
    elif command == "wipe-md":
        with open(device, "r+b") as file:
            file.write(b"\0" * 4096)
    return ""


def _option(word: str) -> tuple[str, str]:
    name, is_set, value = word[2:].partition("=")
    return name, value if is_set else "yes"


def _kib(text: str) -> int:
    """KiB of a size as drbdsetup takes it: sectors (s), k, m, g; none: KiB."""
    factor = {"s": 0.5, "k": 1, "m": 1024, "g": 1024 * 1024}.get(text[-1].lower())
    return int(text) if factor is None else int(float(text[:-1]) * factor)


def _kernel(what: str, number: int, text: str, more: str = "") -> ToolError:
    added = f"\nadditional info from kernel:\n{more}" if more else ""
    return ToolError(10, f"{what}: Failure: ({number}) {text}{added}")


def _make_refusal(what: str, number: int, text: str, code: int = 11) -> ToolError:
    code = 17 if number == -2 and code == 11 else code
    return ToolError(code, f"{what}: State change failed: ({number}) {text}")


def _show(side: Side) -> str:
    """A resource as ``drbdsetup show`` prints it."""
    res = side.res
    text = f"resource {side.name} {{\n    options {{\n    }}\n"
    if res["net"]:
        text += "    net {\n"
        text += _settings(res["net"]["options"], 8)
        text += "    }\n    _remote_host {\n"
        text += f"        address\t\t\t{_address(res['net']['remote'])};\n    }}\n"
    text += "    _this_host {\n"
    if res["net"]:
        text += f"        address\t\t\t{_address(res['net']['local'])};\n"
    if res["minor"] is not None:
        text += f"        volume 0 {{\n            device\t\t\tminor {res['minor']};\n"
        if res["disk"]:
            text += f'            disk\t\t\t"{res["disk"]["data"]}";\n'
            text += f'            meta-disk\t\t\t"{res["disk"]["meta"]}" [ 0 ];\n'
            text += "            disk {\n" + _settings(res["disk"]["options"], 16)
            text += "            }\n"
        text += "        }\n"
    return text + "    }\n}\n"


def _settings(options: dict[str, str], indent: int) -> str:
    text = ""
    for name, value in options.items():
        if name == "discard-my-data" or _DEFAULTS.get(name) == value:
            continue
        shown = f'"{value}"' if name in _QUOTED else value
        if name == "size":
            shown = f"{_kib(value) * 2}s"
        text += f"{' ' * indent}{name:15} \t{shown};\n"
    return text


def _address(text: str) -> str:
    family, _, rest = text.partition(":")
    return f"{family} {rest}"
