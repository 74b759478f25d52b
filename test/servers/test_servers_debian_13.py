"""One server of Debian 13 becomes a cluster with a guest; the package is built for that release."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import story
from lab.server import Servers


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    yield from story.servers("debian-13", 1, "trixie")


def test_from_bare_debian_to_a_guest_with_a_console(servers: Servers) -> None:
    story.check_beats_on(story.make_first_guest(servers))
    assert "VERSION_CODENAME=trixie" in servers.servers[0].sh("cat /etc/os-release")
    servers.type(servers.servers[0], "gnt-cluster verify")
