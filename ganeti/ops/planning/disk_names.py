"""Names of disks: what one may look like, and that no other disk has it."""

from __future__ import annotations

import re

from ganeti import errors
from ganeti.model.config import Config
from ganeti.model.ids import DiskUuid

_NAME = re.compile(r"[\w.+@-]{1,128}")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_INDEX = re.compile(r"-?[0-9]+")

#: Stands for no name.
NONE = "none"


def check(config: Config, name: str | None, *, besides: DiskUuid | None = None) -> str | None:
    """The name to record, None for none; ``besides`` is the uuid of the disk that gets it.

    Raises:
        OpPrereqError: it cannot be told from an index or a uuid, or another disk has it.
    """
    if name is None or name == NONE:
        return None
    if not _NAME.fullmatch(name) or _UUID.fullmatch(name) or _INDEX.fullmatch(name):
        raise errors.make_invalid_error(
            f"'{name[:140]}' cannot be the name of a disk: up to 128 letters, digits and any of"
            " _ . + @ - are allowed, but neither a number nor a uuid"
        )
    if any(disk.name == name and disk.uuid != besides for disk in config.disks.values()):
        # Which one is not said: it may be somebody else's.
        raise errors.make_exists_error(
            f"another disk is called '{name}' already; see gnt-disk list"
        )
    return name
