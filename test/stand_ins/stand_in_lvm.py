"""Stand-ins for the LVM tools: volumes are sparse files, groups are numbers."""

from __future__ import annotations

import os

from stand_in_world import MIB, STORE, ToolError, World, copy_sparse, place_link, remove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

EXTENT = 4 * MIB
_UNITS = {"b": 1, "s": 512, "k": 1024, "m": MIB, "g": 1024 * MIB, "t": 1024 * 1024 * MIB}
#: Options with a value; the others are flags.
_SHORT = {
    "L": "size",
    "n": "name",
    "i": "stripes",
    "I": "stripesize",
    "o": "options",
    "W": "wipe",
    "S": "select",
    "a": "activate",
    "l": "extents",
    "Z": "zero",
    "x": "allocatable",
    "A": "autobackup",
    "K": "ignoreskip",
}
_SHORT_FLAGS = {"y": "yes", "f": "force", "s": "snapshot", "t": "test", "q": "quiet", "v": "v"}
_LONG = {
    "size",
    "name",
    "stripes",
    "stripesize",
    "options",
    "select",
    "activate",
    "extents",
    "zero",
    "wipesignatures",
    "allocatable",
    "addtag",
    "deltag",
    "separator",
    "units",
    "reportformat",
    "alloc",
    "type",
    "sort",
    "config",
    "allocation",
    "metadatacopies",
    "autobackup",
}
_SEGMENT_FIELDS = {"devices", "seg_pe_ranges", "stripes", "seg_size", "seg_start"}

Options = dict[str, list[str]]
Row = dict[str, "Any"]


def parse(words: list[str]) -> tuple[Options, list[str]]:
    """Options by long name (a flag has one empty value each), and arguments."""
    options: Options = {}
    arguments: list[str] = []
    todo = list(words)
    while todo:
        word = todo.pop(0)
        if word.startswith("--"):
            name, is_set, value = word[2:].partition("=")
            if name in _LONG and not is_set:
                value = todo.pop(0)
            options.setdefault(name, []).append(value)
        elif word.startswith("-") and len(word) > 1:
            letter, rest = word[1], word[2:]
            if letter in _SHORT:
                options.setdefault(_SHORT[letter], []).append(rest or todo.pop(0))
            else:
                for flag in word[1:]:
                    options.setdefault(_SHORT_FLAGS.get(flag, flag), []).append("")
        else:
            arguments.append(word)
    return options, arguments


def size_of(text: str) -> int:
    """Bytes of ``512m`` or ``+1g``."""
    number = text.lower().removeprefix("+").rstrip("bskmgt")
    unit = text.lower()[-1:] if text[-1:].isalpha() else "m"
    try:
        return int(float(number) * _UNITS[unit])
    except (ValueError, KeyError):
        raise ToolError(3, f"  Invalid argument for --size: {text}") from None


class Lvm:
    """The tools of one node."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.node = world.node(name)
        self.root: str = self.node["root"]
        self.groups: dict[str, Any] = self.node["vgs"]

    def run(self, tool: str, words: list[str]) -> str:
        options, arguments = parse(words)
        return self.tools()[tool](options, arguments)

    @classmethod
    def names(cls) -> list[str]:
        return [
            "lvs",
            "vgs",
            "pvs",
            "lvcreate",
            "lvremove",
            "lvchange",
            "lvextend",
            "lvrename",
            "vgchange",
            "vgck",
            "vgreduce",
            "pvchange",
        ]

    def tools(self) -> dict[str, Callable[[Options, list[str]], str]]:
        return {
            "lvs": self.lvs,
            "vgs": self.vgs,
            "pvs": self.pvs,
            "lvcreate": self.lvcreate,
            "lvremove": self.lvremove,
            "lvchange": self.lvchange,
            "lvextend": self.lvextend,
            "lvrename": self.lvrename,
            "vgchange": self.vgchange,
            "vgck": self.vgck,
            "vgreduce": self.vgreduce,
            "pvchange": self.pvchange,
        }

    # reports

    def vgs(self, options: Options, arguments: list[str]) -> str:
        rows = [self._vg_row(name) for name in self._select_groups(arguments)]
        default = "vg_name,pv_count,lv_count,snap_count,vg_attr,vg_size,vg_free"
        return self._report("vg", rows, options, default)

    def lvs(self, options: Options, arguments: list[str]) -> str:
        fields = ",".join(options.get("options", ["lv_name,vg_name,lv_attr,lv_size"]))
        by_segment = bool(_SEGMENT_FIELDS.intersection(fields.split(",")))
        rows: list[Row] = []
        named = self._select_volumes([word for word in arguments if "/" in word])
        whole = [word for word in arguments if "/" not in word]
        for group in self._select_groups(whole) if whole or not named else []:
            named += [(group, name) for name in sorted(self.groups[group]["lvs"])]
        for group, name in named:
            rows += self._lv_rows(group, name, by_segment)
        return self._report("lv", rows, options, fields)

    def pvs(self, options: Options, arguments: list[str]) -> str:
        rows: list[Row] = []
        for group, vg in self.groups.items():
            for pv in sorted(vg["pvs"]):
                if arguments and pv not in arguments:
                    continue
                rows += self._pv_rows(group, pv, by_segment="segments" in options)
        key = "pvseg" if "segments" in options else "pv"
        return self._report(key, rows, options, "pv_name,vg_name,pv_attr,pv_size,pv_free")

    def _vg_row(self, name: str) -> Row:
        vg = self.groups[name]
        total = sum(pv["extents"] for pv in vg["pvs"].values())
        missing = sum(1 for pv in vg["pvs"].values() if pv["missing"])
        return {
            "vg_name": name,
            "pv_count": len(vg["pvs"]),
            "lv_count": len(vg["lvs"]),
            "snap_count": 0,
            "vg_attr": "wz-pn-" if missing else "wz--n-",
            "vg_size": total * EXTENT,
            "vg_free": (total - self._count_used(vg)) * EXTENT,
            "vg_extent_size": EXTENT,
            "vg_extent_count": total,
            "vg_free_count": total - self._count_used(vg),
            "vg_missing_pv_count": missing,
            "vg_tags": "",
            "vg_uuid": f"uuid-{name}",
        }

    def _lv_rows(self, group: str, name: str, by_segment: bool) -> list[Row]:
        lv = self.groups[group]["lvs"][name]
        common = {
            "lv_name": name,
            "vg_name": group,
            "lv_attr": self._attr(group, name),
            "lv_size": sum(count for _pv, _start, count in lv["extents"]) * EXTENT,
            "lv_tags": ",".join(lv["tags"]),
            "lv_path": f"/dev/{group}/{name}",
            "vg_extent_size": EXTENT,
            "origin": lv["origin"] or "",
            "stripes": lv["stripes"],
            "lv_kernel_major": 253,
            "lv_kernel_minor": 0,
            "lv_uuid": f"uuid-{group}-{name}",
            "snap_percent": "0.00" if lv["origin"] else "",
            "copy_percent": "",
            "lv_active": "active" if lv["active"] else "",
            "lv_layout": "linear",
            "segtype": "linear",
            "pool_lv": "",
            "data_percent": "",
            "lv_health_status": "",
            "lv_device_open": "open" if self._is_open(group, name) else "",
        }
        segments = lv["extents"] if by_segment else lv["extents"][:1]
        return [
            {
                **common,
                "devices": f"{pv}({start})",
                "seg_size": count * EXTENT,
                "seg_start": 0,
                "seg_pe_ranges": f"{pv}:{start}-{start + count - 1}",
            }
            for pv, start, count in segments
        ]

    def _pv_rows(self, group: str, name: str, by_segment: bool) -> list[Row]:
        vg = self.groups[group]
        pv = vg["pvs"][name]
        runs = sorted(
            (start, count, lv)
            for lv, volume in vg["lvs"].items()
            for on, start, count in volume["extents"]
            if on == name
        )
        used = sum(count for _start, count, _lv in runs)
        attr = ("a" if pv["allocatable"] else "u") + "-" + ("m" if pv["missing"] else "-")
        common = {
            "pv_name": "[unknown]" if pv["missing"] else name,
            "vg_name": group,
            "pv_size": pv["extents"] * EXTENT,
            "pv_free": (pv["extents"] - used) * EXTENT,
            "pv_used": used * EXTENT,
            "pv_attr": attr,
            "pv_tags": "",
            "vg_extent_size": EXTENT,
            "pv_allocatable": "allocatable" if pv["allocatable"] else "",
            "pv_missing": "missing" if pv["missing"] else "",
            "pv_uuid": f"uuid-{name}",
            "lv_name": "",
            "lv_tags": "",
        }
        if not by_segment:
            return [common]
        rows, place = [], 0
        for start, count, lv in [*runs, (pv["extents"], 0, "")]:
            if start > place:
                row = {"pvseg_start": place, "pvseg_size": start - place, "segtype": "free"}
                rows.append({**common, **row})
            if count:
                tags = ",".join(vg["lvs"][lv]["tags"])
                row = {"pvseg_start": start, "pvseg_size": count, "lv_name": lv, "lv_tags": tags}
                rows.append({**common, **row})
            place = start + count
        return rows

    def _report(self, key: str, rows: list[Row], options: Options, fields: str) -> str:
        names = ",".join(options.get("options", [fields])).split(",")
        for condition in options.get("select", []):
            name, value = _condition(condition)
            rows = [row for row in rows if str(row.get(name)) == value]
        unit = options.get("units", ["m"])[0]
        table = [{name: _cell(name, row, unit, options) for name in names} for row in rows]
        if options.get("reportformat") == ["json"]:
            return _json(key, table)
        separator = options.get("separator", [" "])[0]
        lines = [] if "noheadings" in options else [separator.join(names)]
        lines += [separator.join(row.values()) for row in table]
        return "".join(f"  {line}\n" for line in lines)

    # changes

    def lvcreate(self, options: Options, arguments: list[str]) -> str:
        name = options["name"][0]
        group, _, origin = arguments[0].removeprefix("/dev/").partition("/")
        vg = self._vg(group)
        if name in vg["lvs"]:
            raise ToolError(
                5, f'  Logical Volume "{name}" already exists in volume group "{group}"'
            )
        if "snapshot" in options and origin not in vg["lvs"]:
            raise ToolError(5, f'  Failed to find logical volume "{group}/{origin}"')
        count = -(-size_of(options["size"][0]) // EXTENT)
        stripes = int(options.get("stripes", ["1"])[0])
        count += -count % stripes
        vg["lvs"][name] = {
            "extents": self._allocate(group, count, arguments[1:]),
            "active": True,
            "tags": list(options.get("addtag", [])),
            "stripes": stripes,
            "origin": origin or None,
        }
        file = self.file(group, name)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        if origin:
            copy_sparse(self.file(group, origin), file)
        else:
            with open(file, "wb") as new:
                new.truncate(count * EXTENT)
        os.chmod(file, 0o600)
        self._show(group, name)
        return f'  Logical volume "{name}" created.\n'

    def lvremove(self, _options: Options, arguments: list[str]) -> str:
        said = ""
        for group, name in self._select_volumes(arguments):
            if self._is_open(group, name):
                raise ToolError(5, f"  Logical volume {group}/{name} is used by another device.")
            del self.groups[group]["lvs"][name]
            remove(self.file(group, name))
            remove(self._device(group, name))
            said += f'  Logical volume "{name}" successfully removed.\n'
        return said

    def lvchange(self, options: Options, arguments: list[str]) -> str:
        said = ""
        for group, name in self._select_volumes(arguments):
            lv = self.groups[group]["lvs"][name]
            lv["tags"] = [tag for tag in lv["tags"] if tag not in options.get("deltag", [])]
            lv["tags"] += [tag for tag in options.get("addtag", []) if tag not in lv["tags"]]
            for how in options.get("activate", []):
                if "n" in how and self._is_open(group, name):
                    raise ToolError(5, f"  Logical volume {group}/{name} in use.")
                lv["active"] = "n" not in how
                self._show(group, name)
            if "addtag" in options or "deltag" in options:
                said += f"  Logical volume {group}/{name} changed.\n"
        return said

    def lvextend(self, options: Options, arguments: list[str]) -> str:
        group, name = self._select_volumes(arguments[:1])[0]
        lv = self.groups[group]["lvs"][name]
        old = sum(count for _pv, _start, count in lv["extents"])
        text = options["size"][0]
        count = -(-size_of(text) // EXTENT)
        more = count if text.startswith("+") else count - old
        if more <= 0:
            raise ToolError(5, f"  New size ({count} extents) matches existing size.")
        extents = self._allocate(group, more, arguments[1:])
        if "test" not in options:
            lv["extents"] += extents
            size = (old + more) * EXTENT
            file = self.file(group, name)
            if os.path.getsize(file) < size:
                os.truncate(file, size)
        return (
            f"  Size of logical volume {group}/{name} changed from {old * 4}.00 MiB"
            f" ({old} extents) to {(old + more) * 4}.00 MiB ({old + more} extents).\n"
            f"  Logical volume {group}/{name} successfully resized.\n"
        )

    def lvrename(self, _options: Options, arguments: list[str]) -> str:
        if len(arguments) == 3:
            group, old, new = arguments
        else:
            (group, old), (_group, new) = (self._split(word) for word in arguments)
        old, new = old.rpartition("/")[2], new.rpartition("/")[2]
        self._lv(group, old)
        if new in self.groups[group]["lvs"]:
            raise ToolError(5, f'  Logical Volume "{new}" already exists in volume group "{group}"')
        table = self.groups[group]["lvs"]
        table[new] = table.pop(old)
        os.rename(self.file(group, old), self.file(group, new))
        remove(self._device(group, old))
        self._show(group, new)
        self._rename_users(group, old, new)
        return f'  Renamed "{old}" to "{new}" in volume group "{group}"\n'

    def vgchange(self, options: Options, arguments: list[str]) -> str:
        active = "n" not in options.get("activate", ["y"])[0]
        for group in self._select_groups(arguments):
            for name, lv in self.groups[group]["lvs"].items():
                lv["active"] = active or self._is_open(group, name)
                self._show(group, name)
        return ""

    def vgck(self, _options: Options, arguments: list[str]) -> str:
        self._select_groups(arguments)
        return ""

    def vgreduce(self, options: Options, arguments: list[str]) -> str:
        vg = self._vg(arguments[0])
        gone = [pv for pv, facts in vg["pvs"].items() if facts["missing"]]
        lost = [
            name
            for name, lv in vg["lvs"].items()
            if any(pv in gone for pv, _start, _count in lv["extents"])
        ]
        if lost and "force" not in options:
            raise ToolError(5, f"  WARNING: Partial LV {lost[0]} needs to be repaired or removed.")
        self.lvremove({}, [f"{arguments[0]}/{name}" for name in lost])
        for pv in gone:
            del vg["pvs"][pv]
        return f"  Wrote out consistent volume group {arguments[0]}.\n"

    def pvchange(self, options: Options, arguments: list[str]) -> str:
        for vg in self.groups.values():
            for name, pv in vg["pvs"].items():
                if name in arguments:
                    pv["allocatable"] = options["allocatable"][0] == "y"
        return f"  {len(arguments)} physical volume changed / 0 physical volumes not changed\n"

    # parts

    def file(self, group: str, name: str) -> str:
        """Where the data of a volume is."""
        return f"{self.root}/{STORE}/{group}/{name}"

    def _device(self, group: str, name: str) -> str:
        return f"{self.root}/dev/{group}/{name}"

    def _show(self, group: str, name: str) -> None:
        if self.groups[group]["lvs"][name]["active"]:
            place_link(self._device(group, name), self.file(group, name))
        else:
            remove(self._device(group, name))

    def _vg(self, name: str) -> dict[str, Any]:
        name = name.removeprefix("/dev/")
        if name not in self.groups:
            text = f'  Volume group "{name}" not found\n  Cannot process volume group {name}'
            raise ToolError(5, text)
        found: dict[str, Any] = self.groups[name]
        return found

    def _lv(self, group: str, name: str) -> dict[str, Any]:
        found = self._vg(group)["lvs"].get(name)
        if found is None:
            raise ToolError(5, f'  Failed to find logical volume "{group}/{name}"')
        result: dict[str, Any] = found
        return result

    def _select_groups(self, arguments: list[str]) -> list[str]:
        for name in arguments:
            self._vg(name)
        return [name.removeprefix("/dev/") for name in arguments] or sorted(self.groups)

    def _split(self, word: str) -> tuple[str, str]:
        word = word.removeprefix(self.root).removeprefix("/dev/")
        group, _, name = word.partition("/")
        return group, name

    def _select_volumes(self, arguments: list[str]) -> list[tuple[str, str]]:
        found = [self._split(word) for word in arguments]
        for group, name in found:
            self._lv(group, name)
        return found

    @staticmethod
    def _count_used(vg: dict[str, Any]) -> int:
        return sum(c for lv in vg["lvs"].values() for _pv, _start, c in lv["extents"])

    def _allocate(self, group: str, wanted: int, on: list[str]) -> list[list[Any]]:
        """First free runs of the physical volumes."""
        vg = self._vg(group)
        found: list[list[Any]] = []
        left = wanted
        for name in on or list(vg["pvs"]):
            pv = vg["pvs"][name.partition(":")[0]]
            if not pv["allocatable"] or pv["missing"]:
                continue
            for start, count in self._free(vg, name, pv["extents"]):
                take = min(left, count)
                if take:
                    found.append([name, start, take])
                    left -= take
        if left:
            free = wanted - left
            raise ToolError(
                5,
                f'  Volume group "{group}" has insufficient free space ({free} extents):'
                f" {wanted} required.",
            )
        return found

    @staticmethod
    def _free(vg: dict[str, Any], pv: str, extents: int) -> list[tuple[int, int]]:
        taken = sorted(
            (start, count)
            for lv in vg["lvs"].values()
            for on, start, count in lv["extents"]
            if on == pv
        )
        found, place = [], 0
        for start, count in [*taken, (extents, 0)]:
            if start > place:
                found.append((place, start - place))
            place = start + count
        return found

    def _users(self) -> list[dict[str, Any]]:
        return [r["disk"] for r in self.node["drbd"].values() if r["disk"]]

    def _is_open(self, group: str, name: str) -> bool:
        path = self._device(group, name)
        return any(path in (disk["data"], disk["meta"]) for disk in self._users())

    def _rename_users(self, group: str, old: str, new: str) -> None:
        """A DRBD device keeps the volume that it is attached to when that is renamed."""
        for disk in self._users():
            for part in ("data", "meta"):
                if disk[part] == self._device(group, old):
                    disk[part] = self._device(group, new)

    def _attr(self, group: str, name: str) -> str:
        vg = self.groups[group]
        lv = vg["lvs"][name]
        kind, target = "-", "-"
        if lv["origin"]:
            kind, target = "s", "s"
        elif any(other["origin"] == name for other in vg["lvs"].values()):
            kind, target = "o", "s"
        partial = any(vg["pvs"][pv]["missing"] for pv, _s, _c in lv["extents"])
        active = "a" if lv["active"] else "-"
        is_open = "o" if self._is_open(group, name) else "-"
        return f"{kind}wi-{active}{is_open}{target}-{'p' if partial else '-'}-"


def _condition(text: str) -> tuple[str, str]:
    name, is_set, value = text.partition("=")
    if not is_set:
        raise ToolError(3, f"  Selection syntax error: {text}")
    return name.strip(), value.strip().strip('"')


def _json(key: str, table: list[dict[str, str]]) -> str:
    """The report in the form of LVM; no value has a character that needs more than this."""
    rows = [
        "{" + ", ".join(f'"{name}":"{value}"' for name, value in row.items()) + "}" for row in table
    ]
    inner = ",\n                  ".join(rows)
    return (
        '  {\n      "report": [\n          {\n              "'
        f'{key}": [\n                  {inner}\n              ]\n          }}\n      ]\n  }}\n'
    )


def _cell(name: str, row: Row, unit: str, options: Options) -> str:
    if name not in row:
        raise ToolError(3, f"  Unrecognised field: {name}")
    value = row[name]
    if name.endswith(("_size", "_free", "_used")) and name != "pvseg_size":
        size = value / _UNITS[unit.lower()]
        text = f"{size:.0f}" if unit.lower() == "b" else f"{size:.2f}"
        if value == 0:
            text = "0"
        return text if "nosuffix" in options else text + unit
    return str(value)
