"""Commands that change logical volumes, and names that LVM takes. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ganeti import errors

#: Names that a group or volume may have (lvm(8)).
_NAME = re.compile(r"[a-zA-Z0-9+_.][a-zA-Z0-9+_.-]{0,126}")

_RESERVED = re.compile(
    r"\.{1,2}\Z|snapshot|pvmove|.*_(cdata|cmeta|corig|cpool|cvol|iorig|mimage|mlog|pmspare|rimage|"
    r"rmeta|tdata|tmeta|vdata|vorigin|wcorig)"
)

_NOT_IN_TAG = re.compile(r"[^A-Za-z0-9_+.\-/=!:&#]")

#: Longest tag that LVM takes.
_TAG_LENGTH = 1024


def create_argv(
    group: str, name: str, size: int, stripes: int, tag: str, disks: Sequence[str]
) -> list[str]:
    """``lvcreate`` for ``size`` MiB on ``disks``. Pure.

    What a disk held before must neither show in the new volume nor make the tool ask a question.
    """
    argv = ["lvcreate", "--yes", "--wipesignatures", "y", "--zero", "y"]
    argv += ["--size", f"{size}m", "--name", name]
    if stripes > 1:
        argv += ["--stripes", str(stripes)]
    if tag:
        argv += ["--addtag", tag]
    return [*argv, group, *disks]


def grow_argv(
    full_name: str, amount: int, policy: str, disks: Sequence[str], *, test: bool
) -> list[str]:
    """``lvextend`` by ``amount`` MiB. Pure."""
    argv = ["lvextend", *(["--test"] if test else []), "--alloc", policy]
    return [*argv, "--size", f"+{amount}m", full_name, *disks]


def snapshot_argv(group: str, origin: str, name: str, size: int, tags: Sequence[str]) -> list[str]:
    """``lvcreate`` for a snapshot with the tags of its origin. Pure."""
    argv = ["lvcreate", "--yes", "--snapshot", "--size", f"{size}m", "--name", name]
    return [*argv, *(word for tag in tags for word in ("--addtag", tag)), f"{group}/{origin}"]


def tag_of(text: str) -> str:
    """The text as a tag of LVM: what a tag may not have becomes ``_``. Pure."""
    return _NOT_IN_TAG.sub("_", text).lstrip("-")[:_TAG_LENGTH]


def check_name(name: str, what: str) -> str:
    """The name of a group or volume; ParameterError when LVM would not take it. Pure."""
    if (
        not _NAME.fullmatch(name)
        or (what != "volume group" and _RESERVED.match(name))
        or name
        in (
            ".",
            "..",
        )
    ):
        raise errors.ParameterError(f"'{name[:130]}' cannot be the name of a {what}")
    return name
