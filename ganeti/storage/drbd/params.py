"""Parameters of template ``drbd``: what an administrator sets, and what the driver makes of it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

import msgspec

from ganeti.base.json_types import JsonObject

PROTOCOLS = ("A", "B", "C")
#: Letters of ``disk-barriers``: each names a way of ordering writes that is switched off.
BARRIERS = {"b": "disk-barrier", "f": "disk-flushes", "d": "disk-drain"}
#: Parameter -> smallest and largest value that DRBD takes (drbdsetup 8.4 help).
_RANGES = {
    "resync-rate": (1, 4194304),
    "c-plan-ahead": (0, 300),
    "c-delay-target": (1, 100),
    "c-fill-target": (0, 1048576),
    "c-max-rate": (250, 4194304),
    "c-min-rate": (0, 4194304),
    "data-stripes": (1, 128),
    "meta-stripes": (1, 128),
}
#: Options that may stand in ``disk-custom`` and ``net-custom`` (drbdsetup 8.4 help).
DISK_OPTIONS = frozenset(
    {
        "max-bio-bvecs", "on-io-error", "fencing", "disk-barrier", "disk-flushes", "disk-drain",
        "md-flushes", "resync-rate", "resync-after", "al-extents", "al-updates",
        "discard-zeroes-if-aligned", "disable-write-same", "c-plan-ahead", "c-delay-target",
        "c-fill-target", "c-max-rate", "c-min-rate", "disk-timeout", "read-balancing",
        "rs-discard-granularity",
    }
)  # fmt: skip
NET_OPTIONS = frozenset(
    {
        "timeout", "max-epoch-size", "max-buffers", "unplug-watermark", "connect-int", "ping-int",
        "sndbuf-size", "rcvbuf-size", "ko-count", "after-sb-0pri", "after-sb-1pri",
        "after-sb-2pri", "always-asbp", "rr-conflict", "ping-timeout", "data-integrity-alg",
        "tcp-cork", "on-congestion", "congestion-fill", "congestion-extents", "csums-alg",
        "csums-after-crash-only", "verify-alg", "use-rle", "socket-check-timeout",
    }
)  # fmt: skip
_VALUE = re.compile(r"[A-Za-z0-9_.,/-]+")


class DrbdParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """Names and defaults as in ``gnt-cluster modify -D drbd:...``; rates in KiB/s."""

    c_delay_target: int = 1
    c_fill_target: int = 0
    c_max_rate: int = 61440
    c_min_rate: int = 4096
    c_plan_ahead: int = 20
    data_stripes: int = 1
    disk_barriers: str = "n"
    disk_custom: str = ""
    dynamic_resync: bool = False
    meta_barriers: bool = False
    meta_stripes: int = 1
    metavg: str = "xenvg"
    net_custom: str = ""
    protocol: str = "C"
    resync_rate: int = 61440

    def __post_init__(self) -> None:
        for name, (lowest, highest) in _RANGES.items():
            value = getattr(self, name.replace("-", "_"))
            if not lowest <= value <= highest:
                raise ValueError(f"'{name}' must be between {lowest} and {highest}, not {value}")
        if self.protocol not in PROTOCOLS:
            raise ValueError(f"'protocol' must be A, B or C, not '{self.protocol}'")
        letters = set(self.disk_barriers)
        if self.disk_barriers != "n" and (
            not letters or letters - set(BARRIERS) or len(letters) != len(self.disk_barriers)
        ):
            raise ValueError(
                "'disk-barriers' must be n, or some of the letters b (barriers), d (drain) and"
                f" f (flushes), not '{self.disk_barriers}'"
            )
        custom("disk-custom", self.disk_custom, DISK_OPTIONS)
        custom("net-custom", self.net_custom, NET_OPTIONS)


def custom(name: str, text: str, known: frozenset[str]) -> list[str]:
    """Words ``--option=value`` of a custom parameter, as they go to drbdsetup. Pure.

    Raises:
        ValueError: a word that is not an option, an option that DRBD does not have there or that
            the cluster manager sets itself, or a value with odd characters.
    """
    try:
        words = shlex.split(text)
    except ValueError as err:
        raise ValueError(f"'{name}' cannot be split into words: {err}") from err
    found: list[str] = []
    for word in words:
        option, is_set, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not is_set:
            raise ValueError(f"'{name}': write --option=value, not '{word}'")
        if option not in known:
            raise ValueError(
                f"'{name}': '--{option}' cannot be set; choose from {', '.join(sorted(known))}"
            )
        if not _VALUE.fullmatch(value):
            raise ValueError(f"'{name}': '{value}' is not a value for --{option}")
        found.append(f"--{option}={value}")
    return found


def logical(params: JsonObject) -> JsonObject:
    """Complete parameters as a node gets them: two names differ, those of children are out."""
    kept = {
        key: value
        for key, value in params.items()
        if key not in ("metavg", "disk-barriers", "meta-barriers", "data-stripes", "meta-stripes")
    }
    return {
        **kept,
        "default-metavg": params["metavg"],
        "disabled-barriers": params["disk-barriers"],
        "disable-meta-flush": params["meta-barriers"],
    }


def children(params: JsonObject) -> tuple[JsonObject, JsonObject]:
    """Parameters of the data volume and of the metadata volume."""
    return {"stripes": params["data-stripes"]}, {"stripes": params["meta-stripes"]}


def sync_options(logical_params: Mapping[str, object]) -> list[str]:
    """How fast a resync may be: at a fixed rate, or steered by how full the network is. Pure.

    ``c-plan-ahead=0`` is what makes the rate fixed (drbd.conf 8.4).
    """
    if not logical_params.get("dynamic-resync"):
        return [f"--resync-rate={logical_params.get('resync-rate', 61440)}k", "--c-plan-ahead=0"]
    names = ("c-plan-ahead", "c-delay-target", "c-fill-target", "c-max-rate", "c-min-rate")
    units = {"c-fill-target": "s", "c-max-rate": "k", "c-min-rate": "k"}
    return [f"--{name}={logical_params[name]}{units.get(name, '')}" for name in names]


def disk_options(logical_params: JsonObject) -> list[str]:
    """Options of the lower disk besides its size. Pure."""
    off = logical_params.get("disabled-barriers", "n")
    words = [f"--{option}=no" for letter, option in BARRIERS.items() if letter in off]
    if logical_params.get("disable-meta-flush"):
        words.append("--md-flushes=no")
    own = custom("disk-custom", logical_params.get("disk-custom", ""), DISK_OPTIONS)
    return ["--on-io-error=detach", *words, *sync_options(logical_params), *own]
