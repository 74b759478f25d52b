"""Opcodes for tags."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ganeti.model.marks import Mark
from ganeti.opcodes import params as p
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.scalars import NonEmpty, doc


class OpTagsGet(OpCode, tag="OP_TAGS_GET", kw_only=True):
    """Return the tags of an object."""

    summary_field: ClassVar[str | None] = "name"
    result_type: ClassVar[str] = "[nestr]"

    kind: p.TagKindParam
    use_locking: p.UseLocking = False
    name: p.TagObject = None


class OpTagsSearch(OpCode, tag="OP_TAGS_SEARCH", kw_only=True):
    """Find all tags that match a pattern, with the objects that carry them."""

    summary_field: ClassVar[str | None] = "pattern"
    result_type: ClassVar[str] = "[(nestr,nestr)]"

    pattern: Annotated[NonEmpty, doc("Regular expression, found anywhere in a tag")]


class OpTagsSet(OpCode, tag="OP_TAGS_SET", kw_only=True):
    """Add tags to an object."""

    rest: ClassVar[tuple[str, ...]] = (
        "PUT /2/tags",
        "PUT /2/disks/{name}/tags",
        "PUT /2/groups/{name}/tags",
        "PUT /2/instances/{name}/tags",
        "PUT /2/networks/{name}/tags",
        "PUT /2/nodes/{name}/tags",
    )
    result_type: ClassVar[str] = "null"
    within: ClassVar[Mark | None] = Mark.INSTANCE

    kind: p.TagKindParam
    tags: p.TagList
    name: p.TagObject = None


class OpTagsDel(OpCode, tag="OP_TAGS_DEL", kw_only=True):
    """Remove tags from an object."""

    rest: ClassVar[tuple[str, ...]] = (
        "DELETE /2/tags",
        "DELETE /2/disks/{name}/tags",
        "DELETE /2/groups/{name}/tags",
        "DELETE /2/instances/{name}/tags",
        "DELETE /2/networks/{name}/tags",
        "DELETE /2/nodes/{name}/tags",
    )
    result_type: ClassVar[str] = "null"
    within: ClassVar[Mark | None] = Mark.INSTANCE

    kind: p.TagKindParam
    tags: p.TagList
    name: p.TagObject = None
