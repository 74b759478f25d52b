"""Images that are named as Ganeti does: ``os-image``, and those of helper guests. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ganeti import errors
from ganeti.constants import OS_IMAGE
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.images import location
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.image import Image
from ganeti.ops.planning import images


def find(config: Config, text: str) -> Image | str:
    """The image of this name, or the location, which is a URL or a path.

    Raises:
        OpPrereqError: no node would read it from there, or there is no image of this name.
    """
    if location.is_location(text):
        location.check(text)
        return text
    try:
        return images.choose(config, text)
    except errors.OpPrereqError as err:
        raise errors.make_invalid_error(
            f"{errors.text(err)}; a URL, an absolute path or the name of an image is expected"
        ) from err


def find_for_disk(
    config: Config, osparams: Mapping[str, object], disks: Sequence[Disk]
) -> Image | str | None:
    """Find the image that ``os-image`` puts on the first disk; None without it.

    Raises:
        OpPrereqError: as :func:`find`; or there is no disk that can hold it.
    """
    text = osparams.get(OS_IMAGE)
    if not text:
        return None
    found = find(config, str(text))
    if isinstance(found, Image):
        images.check_fits(found, disks)
    elif not disks:
        raise errors.make_invalid_error(f"{OS_IMAGE} needs a disk; give --disk")
    return found


def find_helper(config: Config, hypervisor: str, parameter: str) -> Image | str:
    """Find the image from which a helper guest of a hypervisor is started.

    ``parameter`` is that of the cluster, ``install_image`` or ``zeroing_image``.

    Raises:
        OpPrereqError: it is not set, cannot be used, or the hypervisor has no helper guests.
    """
    if not HYPERVISORS.get(hypervisor).traits.helper_params:
        raise errors.make_invalid_error(f"hypervisor {hypervisor} has no helper guests; kvm has")
    text = getattr(config.cluster, parameter)
    if not text:
        option = f"--{parameter.replace('_', '-')}"
        raise errors.make_state_error(
            f"the cluster has no image for helper guests: make one and name it with"
            f" gnt-cluster modify {option}"
        )
    return find(config, text)
