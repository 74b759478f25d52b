"""Which certificates are accepted, by the files of a node."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from ganeti.net import certs, pem
from ganeti.node.authorise import Authoriser, parse
from ganeti.paths import Paths

FIRST = ":".join(["AB"] * 20)
SECOND = ":".join(["CD"] * 20)


def accepts(authoriser: Authoriser, digest: str | None) -> bool:
    return authoriser({"ganeti.peer_digest": digest}) is None


def own_digest(path: Path) -> str:
    certs.write(path, certs.self_signed("node1"))
    return pem.digest_of_file(path)


def test_lines_that_are_no_digest_are_skipped_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    text = f"u1={FIRST}\n\nu2 = {SECOND.lower()} \nu3=\nu4={FIRST[:-2]}\nnonsense\n"
    with caplog.at_level(logging.WARNING):
        assert parse(text) == {"u1": FIRST, "u2": SECOND}
    assert len(caplog.records) == 3


def test_exactly_the_listed_certificates_are_accepted(paths: Paths) -> None:
    own = own_digest(paths.client_cert)
    paths.ssconf("master_candidates_certs").write_text(f"u1={FIRST}\nu2={SECOND}\n")
    authoriser = Authoriser(paths)
    assert accepts(authoriser, FIRST)
    assert accepts(authoriser, SECOND)
    for digest in (own, FIRST.lower(), FIRST[:-1], "", None):
        assert not accepts(authoriser, digest)


@pytest.mark.parametrize("content", [None, "", "\n", "broken\n"])
def test_without_a_list_only_the_own_certificate_is_accepted(
    paths: Paths, content: str | None
) -> None:
    server, client = own_digest(paths.server_cert), own_digest(paths.client_cert)
    if content is not None:
        paths.ssconf("master_candidates_certs").write_text(content)
    authoriser = Authoriser(paths)
    assert accepts(authoriser, client)
    assert not accepts(authoriser, server)
    assert not accepts(authoriser, FIRST)


def test_a_node_without_client_certificate_accepts_its_server_certificate(paths: Paths) -> None:
    server = own_digest(paths.server_cert)
    assert accepts(Authoriser(paths), server)


def test_without_any_certificate_nobody_is_accepted(paths: Paths) -> None:
    authoriser = Authoriser(paths)
    for digest in (FIRST, "", None):
        assert not accepts(authoriser, digest)


def test_an_unreadable_list_leaves_the_old_one_in_force(paths: Paths) -> None:
    file = paths.ssconf("master_candidates_certs")
    file.write_text(f"u1={FIRST}\n")
    authoriser = Authoriser(paths)
    file.unlink()
    file.mkdir()
    authoriser.reload()
    assert accepts(authoriser, FIRST)
    assert not accepts(authoriser, SECOND)


def test_any_node_that_is_listed_may_make_the_calls_of_all_nodes(paths: Paths) -> None:
    authoriser = Authoriser(paths)

    def refusal(name: str | None, digest: str | None = FIRST) -> str | None:
        return authoriser.refuse_stranger({"ganeti.peer_cn": name, "ganeti.peer_digest": digest})

    assert "list of nodes cannot be read" in str(refusal("node2"))
    paths.ssconf("node_list").write_text("node1\nnode2\n")
    assert refusal("node2") is None
    for stranger in ("node3", "node", "", None):
        assert "is not a node of this cluster" in str(refusal(stranger))
    assert refusal("node2", None) is not None
