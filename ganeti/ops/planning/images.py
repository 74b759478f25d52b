"""Names of images, their hooks, and the image of a new instance. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from ganeti import errors
from ganeti.base.text import plural
from ganeti.images import source
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.ids import ImageUuid
from ganeti.model.image import Image
from ganeti.opcodes.enums import InstCreateMode
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.operation import Hooks

#: Kind of the claims of jobs that make or rename an image.
NAMES = "image name"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}")


def check_name(name: str) -> None:
    """OpPrereqError for what cannot be the name of an image."""
    if not _NAME.fullmatch(name):
        raise errors.make_invalid_error(
            f"invalid name '{name[:80]}' of an image: letters, digits and ._+- are allowed,"
            " a letter or digit first, 128 at most"
        )


def check_sha256(text: str | None) -> None:
    """OpPrereqError for what cannot be a SHA-256."""
    if text is not None and not re.fullmatch("[0-9a-fA-F]{64}", text):
        raise errors.make_invalid_error(
            f"'{text[:80]}' is not a SHA-256, which has 64 hexadecimal digits; see sha256sum"
        )


def check_new_name(config: Config, name: str) -> None:
    """OpPrereqError for a name that is invalid or taken."""
    check_name(name)
    for image in config.images.values():
        if image.name == name:
            text = f"image '{name}' exists already"
            if not image.ready:
                text = (
                    f"image '{name}' is incomplete: job {image.creating} makes it, or was"
                    f" interrupted; if it was, run gnt-image remove {name} first"
                )
            raise errors.make_exists_error(text)


def choose(config: Config, name: str) -> Image:
    """The image that an instance is made from; OpPrereqError without one that is ready."""
    image = config.image(name)
    if not image.ready:
        raise errors.make_state_error(
            f"image '{image.name}' is incomplete: job {image.creating} makes it, or was interrupted"
        )
    return image


def check_removable(image: Image, working: Collection[int]) -> None:
    """OpPrereqError for an image that a job makes; ``working`` are the jobs that run."""
    if image.creating in working:
        raise errors.make_state_error(
            f"job {image.creating} is making image '{image.name}'; wait for it, or cancel it"
            f" first: gnt-job cancel {image.creating}"
        )


def find_uuid(config: Config, op: OpInstanceCreate) -> ImageUuid | None:
    """The image that a request names; OpPrereqError for one that cannot be used."""
    return choose(config, op.image).uuid if op.image else None


def choose_for(
    config: Config, op: OpInstanceCreate, disks: Sequence[Disk], *, adopts: bool
) -> Image | None:
    """The image that is written to the first of these disks; OpPrereqError when it cannot be."""
    if not op.image:
        return None
    if op.mode is not InstCreateMode.CREATE:
        raise errors.make_invalid_error(
            f"--image is for new disks; mode {op.mode} brings the content of its disks"
        )
    if op.os_type or op.no_install:
        what = "--os-type" if op.os_type else "--no-install"
        raise errors.make_invalid_error(f"--image and {what} exclude each other; give one of them")
    if adopts:
        raise errors.make_invalid_error("an adopted disk keeps its content; it gets no image")
    image = choose(config, op.image)
    check_fits(image, disks)
    return image


def check_sources(op: OpInstanceCreate, disks: Sequence[Disk], *, adopts: bool) -> None:
    """OpPrereqError when the sources of a request cannot be written to these disks."""
    if not op.disk_sources:
        return
    if op.mode is not InstCreateMode.CREATE:
        raise errors.make_invalid_error(
            f"disk_sources are for new disks; mode {op.mode} brings the content of its disks"
        )
    if op.image or op.no_install:
        what = "image" if op.image else "no_install"
        raise errors.make_invalid_error(
            f"disk_sources and {what} exclude each other; give one of them"
        )
    if adopts:
        raise errors.make_invalid_error("an adopted disk keeps its content; omit disk_sources")
    if len(op.disk_sources) > len(disks):
        raise errors.make_invalid_error(
            f"{plural(len(op.disk_sources), 'source')} for {plural(len(disks), 'disk')}: give a"
            " disk for each source"
        )
    for each in op.disk_sources:
        source.check(each.source)


def check_fits(image: Image, disks: Sequence[Disk]) -> None:
    """OpPrereqError when the first disk cannot hold the image."""
    if not disks:
        raise errors.make_invalid_error(
            f"image '{image.name}' needs a disk of at least {image.disk_size} MiB; give --disk"
        )
    if disks[0].size < image.disk_size:
        raise errors.make_invalid_error(
            f"disk 0 has {disks[0].size} MiB, image '{image.name}' needs at least"
            f" {image.disk_size} MiB"
        )


def hooks(config: Config, path: str, image: Image, **more: object) -> Hooks:
    """Hooks of an operation on an image, on the master."""
    env = {
        "IMAGE_NAME": image.name,
        "IMAGE_UUID": image.uuid,
        "IMAGE_SOURCE": image.source,
        **more,
    }
    nodes = [config.cluster.master_node]
    return Hooks(path, "IMAGE", env, nodes, nodes)
