"""The part of the cluster to which a user is limited, and how much of it the user may use."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

_Most = Annotated[int, Meta(ge=0)] | None


class Quota(
    msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The most that all instances in the limits may have together; None: no limit."""

    instances: _Most = None
    #: MiB, as the instances may use at most (``maxmem``)
    memory: _Most = None
    vcpus: _Most = None
    #: MiB as the guests see it, whatever copies there are
    disk: _Most = None


class Limits(
    msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A user, and the objects that the user may use: of a node group, with a tag, or both."""

    name: str
    group: str | None = None
    tag: str | None = None
    quota: Quota | None = None

    def __str__(self) -> str:
        ends = [
            f"{word} '{value}'"
            for word, value in (("group", self.group), ("tag", self.tag))
            if value is not None
        ]
        return f"{self.name} is limited to {' and '.join(ends)}"
