"""Parameters of lxc: types, defaults, descriptions, and what their texts mean.

Names and defaults are an interface.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from ganeti import errors
from ganeti.hypervisor import typed_params
from ganeti.hypervisor.kvm import pinning
from ganeti.model.marks import Mark

_DEVICE = re.compile(r"a|[abc] (\d{1,5}|\*):(\d{1,7}|\*) (?!.*(.).*\3)[rwm]{1,3}")
_WORD = re.compile(r"[a-z][a-z0-9_]*")
_EXTRA = re.compile(r"(lxc\.[A-Za-z0-9_.-]+)\s*=\s*([^\n\r\0]*)")
#: A comma that another line of the configuration follows.
_NEXT_EXTRA = re.compile(r",\s*(?=lxc\.[A-Za-z0-9_.-]+\s*=)")


class LxcParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Limits of a container, and how it is started."""

    cpu_mask: Annotated[
        str,
        Meta(
            description="Processors of the node that the container may use, such as 0-3,6;"
            " empty: all"
        ),
    ] = ""
    devices: Annotated[
        str,
        Meta(
            description="Devices that the container may use, separated by commas: c (character) or"
            " b (block), major:minor, and r (read), w (write), m (make)"
        ),
    ] = (
        "c 1:3 rw,c 1:5 rw,c 1:7 rw,c 1:8 rw,c 1:9 rw,c 1:10 rw,c 5:0 rw,c 5:1 rw,c 5:2 rw,"
        "c 136:* rw"
    )
    drop_capabilities: Annotated[
        str,
        Meta(description="Capabilities that the container does not get, separated by commas"),
    ] = "mac_override,sys_boot,sys_module,sys_time,sys_admin"
    extra_cgroups: Annotated[
        str,
        Meta(
            description="Controllers of control groups, separated by commas, that the node must"
            " have besides those that limits need"
        ),
    ] = ""
    extra_config: Annotated[
        str,
        Meta(
            description="Lines added to the configuration of the container, separated by commas:"
            " lxc.KEY=VALUE,lxc.KEY=VALUE"
        ),
        Mark.SENSITIVE,
    ] = ""
    num_ttys: Annotated[int, Meta(ge=0, description="Terminals in the container")] = 6
    startup_timeout: Annotated[
        int, Meta(ge=0, description="Seconds until the container must run, 0: no own limit")
    ] = 30


def load(values: Mapping[str, object]) -> LxcParams:
    """Typed parameters of which every text is understood; HypervisorError."""
    params = typed_params.load(LxcParams, values, "lxc")
    processors(params)
    devices(params)
    capabilities(params)
    parse_extra_cgroups(params)
    parse_extra_config(params)
    return params


def processors(params: LxcParams) -> str:
    """The mask as the kernel takes it, empty for no limit; HypervisorError."""
    mask = params.cpu_mask
    if mask in ("", "all"):
        return ""
    if ":" in mask:
        raise errors.HypervisorError(
            f"cpu_mask '{mask}' has more than one mask; a container has one, such as 0-3,6"
        )
    pinning.parse(mask)
    return mask


def devices(params: LxcParams) -> list[str]:
    """Rules of the devices controller; HypervisorError."""
    found = _split(params.devices)
    for rule in found:
        if not _DEVICE.fullmatch(rule):
            raise errors.HypervisorError(
                f"devices: '{rule[:60]}' is not a rule such as 'c 1:3 rw' (c or b, major:minor,"
                " letters of rwm)"
            )
    return found


def capabilities(params: LxcParams) -> list[str]:
    """Names of capabilities as LXC wants them; HypervisorError."""
    found = [name.lower().removeprefix("cap_") for name in _split(params.drop_capabilities)]
    return _words("drop_capabilities", found, "capability such as sys_boot")


def parse_extra_cgroups(params: LxcParams) -> list[str]:
    """Names of controllers; HypervisorError."""
    return _words("extra_cgroups", _split(params.extra_cgroups), "controller such as pids")


def parse_extra_config(params: LxcParams) -> list[tuple[str, str]]:
    """Keys and values; a value may have commas in it. HypervisorError."""
    text = params.extra_config.strip()
    found = []
    for line in _NEXT_EXTRA.split(text) if text else []:
        match = _EXTRA.fullmatch(line.strip())
        if match is None:
            raise errors.HypervisorError(
                f"extra_config: '{line.strip()[:60]}' is not a line such as"
                " lxc.environment=TERM=linux (lxc.KEY=VALUE, separated by commas)"
            )
        found.append((match[1], match[2].strip()))
    return found


def _split(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _words(parameter: str, words: list[str], what: str) -> list[str]:
    for word in words:
        if not _WORD.fullmatch(word):
            raise errors.HypervisorError(f"{parameter}: '{word[:60]}' is not a name of a {what}")
    return words
