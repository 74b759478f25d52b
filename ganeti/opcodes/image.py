"""Opcodes for images, from which instances are made."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ganeti.opcodes import params as p
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.enums import ImageFormat
from ganeti.opcodes.scalars import NonEmpty, doc

_DESCRIPTION = doc("What is in the image, for people")


class OpImageAdd(OpCode, tag="OP_IMAGE_ADD", kw_only=True):
    """Add an image, from which instances can be made."""

    summary_field: ClassVar[str | None] = "image_name"
    rest: ClassVar[tuple[str, ...]] = ("POST /2/images",)
    result_type: ClassVar[str] = "nestr"

    image_name: p.ImageName
    source: Annotated[
        NonEmpty,
        doc("URL (https or http), or name of a file in the directory of uploads of the master"),
    ]
    sha256: Annotated[NonEmpty | None, doc("SHA-256 that the source must have, 64 digits")] = None
    format: Annotated[
        ImageFormat | None, doc("Format of the source; by default it is detected")
    ] = None
    description: Annotated[str | None, _DESCRIPTION] = None


class OpImageRemove(OpCode, tag="OP_IMAGE_REMOVE", kw_only=True):
    """Remove an image; instances that were made from it stay."""

    summary_field: ClassVar[str | None] = "image_name"
    rest: ClassVar[tuple[str, ...]] = ("DELETE /2/images/{image_name}",)
    result_type: ClassVar[str] = "null"

    image_name: p.ImageName


class OpImageRename(OpCode, tag="OP_IMAGE_RENAME", kw_only=True):
    """Rename an image."""

    summary_field: ClassVar[str | None] = "image_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/images/{image_name}/rename",)
    result_type: ClassVar[str] = "nestr"

    image_name: p.ImageName
    new_name: p.NewName


class OpImageSetParams(OpCode, tag="OP_IMAGE_SET_PARAMS", kw_only=True):
    """Change the description of an image."""

    summary_field: ClassVar[str | None] = "image_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/images/{image_name}/modify",)
    result_type: ClassVar[str] = "null"

    image_name: p.ImageName
    description: Annotated[str, _DESCRIPTION]
