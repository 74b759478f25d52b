"""Names of images, and which image a new instance or a helper guest gets."""

from __future__ import annotations

from typing import Any

import pytest
from op_samples import config, node, put, with_cluster

from ganeti import errors
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate
from ganeti.model.image import Image
from ganeti.opcodes import wire
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.planning import images, os_images

DEBIAN = Image(uuid="uuid-1", name="debian", disk_size=100, source="https://example.com/d")
HALF = Image(uuid="uuid-2", name="half", creating=7)
SMALL = Disk(uuid="a", dev_type=DiskTemplate.FILE, size=99)
FITTING = Disk(uuid="b", dev_type=DiskTemplate.FILE, size=100)


def sample() -> Config:
    return put(config(), "images", DEBIAN, HALF)


def creation(**given: Any) -> OpInstanceCreate:
    needed = {"instance_name": "web1", "mode": "create", "disks": [], "nics": []}
    return wire.decode(OpInstanceCreate, {**needed, **given})


@pytest.mark.parametrize("name", ["a", "debian-13", "a" * 128, "9.x_y+z"])
def test_names_that_can_be(name: str) -> None:
    images.check_new_name(sample(), name)


@pytest.mark.parametrize("name", ["", "-a", "a b", "a/b", "a" * 129])
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(errors.OpPrereqError, match=r"invalid name"):
        images.check_new_name(sample(), name)


def test_a_name_is_used_once() -> None:
    with pytest.raises(errors.OpPrereqError, match=r"image 'debian' exists already"):
        images.check_new_name(sample(), "debian")
    with pytest.raises(errors.OpPrereqError, match=r"incomplete: job 7 .* gnt-image remove half"):
        images.check_new_name(sample(), "half")


def test_what_is_a_sha256() -> None:
    images.check_sha256(None)
    images.check_sha256("0123456789abcdefABCDEF" + "0" * 42)
    for text in ("", "0" * 63, "0" * 65, "g" * 64):
        with pytest.raises(errors.OpPrereqError, match=r"is not a SHA-256"):
            images.check_sha256(text)


def test_long_texts_are_quoted_in_part() -> None:
    with pytest.raises(errors.OpPrereqError, match=f"name '{'-' * 80}' of an image"):
        images.check_name("-" * 81)
    with pytest.raises(errors.OpPrereqError, match=f"'{'a' * 80}' is not a SHA-256"):
        images.check_sha256("a" * 81)


def test_only_a_complete_image_can_be_used() -> None:
    assert images.choose(sample(), "debian") == DEBIAN
    with pytest.raises(errors.OpPrereqError, match=r"'half' is incomplete: job 7"):
        images.choose(sample(), "half")
    with pytest.raises(errors.OpPrereqError, match=r"nosuch"):
        images.choose(sample(), "nosuch")


def test_an_image_in_the_making_is_not_removed() -> None:
    images.check_removable(DEBIAN, [7])
    images.check_removable(HALF, [8])
    with pytest.raises(errors.OpPrereqError, match=r"job 7 is making .*gnt-job cancel 7"):
        images.check_removable(HALF, [7, 8])


def test_the_image_of_a_request() -> None:
    assert images.find_uuid(sample(), creation()) is None
    assert images.find_uuid(sample(), creation(image="debian")) == "uuid-1"
    assert images.choose_for(sample(), creation(), [], adopts=False) is None
    op = creation(image="debian")
    assert images.choose_for(sample(), op, [FITTING, SMALL], adopts=False) == DEBIAN


@pytest.mark.parametrize(
    ("given", "disks", "adopts", "text"),
    [
        ({"mode": "import"}, [FITTING], False, "--image is for new disks; mode import"),
        ({"os_type": "noop"}, [FITTING], False, "--image and --os-type exclude"),
        ({"no_install": True}, [FITTING], False, "--image and --no-install exclude"),
        ({}, [FITTING], True, "an adopted disk keeps its content"),
        ({}, [], False, "needs a disk of at least 100 MiB; give --disk"),
        ({}, [SMALL, FITTING], False, "disk 0 has 99 MiB, image 'debian' needs at least 100"),
    ],
)
def test_what_cannot_be_made_from_an_image(
    given: dict[str, Any], disks: list[Disk], adopts: bool, text: str
) -> None:
    with pytest.raises(errors.OpPrereqError, match=text):
        images.choose_for(sample(), creation(image="debian", **given), disks, adopts=adopts)


def test_hooks_of_images_run_on_the_master() -> None:
    of = sample()
    found = images.hooks(of, "image-rename", DEBIAN, IMAGE_NEW_NAME="d13")
    assert (found.path, found.object_type) == ("image-rename", "IMAGE")
    assert found.env == {
        "IMAGE_NAME": "debian",
        "IMAGE_UUID": "uuid-1",
        "IMAGE_SOURCE": "https://example.com/d",
        "IMAGE_NEW_NAME": "d13",
    }
    assert list(found.pre_nodes) == list(found.post_nodes) == [of.cluster.master_node]


@pytest.mark.parametrize("text", ["/srv/images/a.img", "https://example.com/a.img"])
def test_a_location_is_used_as_it_is(text: str) -> None:
    assert os_images.find(sample(), text) == text


@pytest.mark.parametrize("text", ["/srv/../etc/shadow", "nosuch", "half"])
def test_what_is_neither_a_location_nor_an_image(text: str) -> None:
    with pytest.raises(errors.OpPrereqError):
        os_images.find(sample(), text)


def test_the_refusal_of_a_name_says_what_is_expected() -> None:
    assert os_images.find(sample(), "debian") == DEBIAN
    with pytest.raises(
        errors.OpPrereqError, match=r"nosuch.*; a URL, an absolute path or the name"
    ):
        os_images.find(sample(), "nosuch")


def test_the_parameter_os_image_needs_a_disk() -> None:
    of = sample()
    assert os_images.find_for_disk(of, {}, []) is None
    assert os_images.find_for_disk(of, {"os-image": ""}, []) is None
    assert os_images.find_for_disk(of, {"os-image": "/a.img"}, [SMALL]) == "/a.img"
    assert os_images.find_for_disk(of, {"os-image": "debian"}, [FITTING]) == DEBIAN
    with pytest.raises(errors.OpPrereqError, match=r"os-image needs a disk"):
        os_images.find_for_disk(of, {"os-image": "/a.img"}, [])
    with pytest.raises(errors.OpPrereqError, match=r"disk 0 has 99 MiB"):
        os_images.find_for_disk(of, {"os-image": "debian"}, [SMALL])


def test_the_image_of_a_helper_guest() -> None:
    of = with_cluster(config(node(2)), install_image="/helper.img")
    assert os_images.find_helper(of, "kvm", "install_image") == "/helper.img"
    with pytest.raises(errors.OpPrereqError, match=r"gnt-cluster modify --zeroing-image"):
        os_images.find_helper(of, "kvm", "zeroing_image")
    with pytest.raises(errors.OpPrereqError, match=r"hypervisor fake has no helper guests"):
        os_images.find_helper(of, "fake", "install_image")
