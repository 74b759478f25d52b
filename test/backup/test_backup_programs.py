"""What happens to backups of restic when something goes wrong; ``make check-backup`` runs it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from archive_bench import CHUNK, NAME, Bench, make_bench
from waiting import wait_for

from ganeti import errors
from ganeti.backup import piping
from ganeti.backup.archive import Archive
from ganeti.backup.definition import Definition
from ganeti.base.clock import SYSTEM
from ganeti.model.backup import make_id


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return make_bench("restic", tmp_path_factory.mktemp("archive") / "restic")


def test_a_backup_that_is_ended_leaves_nothing(bench: Bench) -> None:
    bench.backup()
    before = bench.names()
    bench.disk.write(0, os.urandom(3 * CHUNK))

    def end() -> None:
        raise errors.GenericError("ended as the user requested")

    with pytest.raises(errors.GenericError, match="user requested"):
        bench.backup(after=end)
    assert bench.names() == before
    manifest, content = bench.backup()
    assert bench.restore(manifest.id) == content


def test_what_a_killed_daemon_left_goes_with_the_next_removal(bench: Bench) -> None:
    """The program stores what it got when its input ends, and nobody makes it a backup."""
    lost = f"{NAME}-{make_id(1e9)}-0.diff"
    argv = bench.definition.program.build_put(lost, "")
    with piping.start(bench.definition, argv, lambda: None) as child:
        child.write(b"rbd diff v1\nwcut off")
        child.end()
    assert lost in bench.names()
    bench.backup()
    assert lost not in bench.names()


def test_a_lock_of_somebody_else_is_named(bench: Bench) -> None:
    """Only what changes the repository waits for it."""
    place = Path(bench.definition.environment["RESTIC_REPOSITORY"]) / "locks"
    with piping.start(
        bench.definition, bench.definition.program.build_put("o", ""), lambda: None
    ) as other:
        wait_for(lambda: list(place.iterdir()), "the lock", 60)
        found = bench.archive
        with pytest.raises(errors.GenericError, match="has locked it; try again later"):
            found._remove(found._read_list(wait=False), wait=False)
        other.close()
    assert not list(place.iterdir())


def test_a_missing_stream_is_named_and_not_built_on(bench: Bench) -> None:
    """Somebody removed by hand what a backup needs."""
    bench.backup()
    bench.disk.write(0, b"again")
    manifest, _content = bench.backup()
    found = bench.archive
    with found.lock():
        below = manifest.disks[0].chain[0]
        found._remove([found._find_item(f"{below}.diff")], wait=False)
    with pytest.raises(errors.GenericError, match=rf"has no {NAME}-{below}.diff"):
        bench.restore(manifest.id)
    with pytest.raises(errors.GenericError, match="it was removed"):
        bench.archive.find_base(manifest, 0)


def spoil(known: Definition, **variables: str) -> Definition:
    return Definition("offsite", "FILE", known.program, {**known.environment, **variables})


def test_what_is_wrong_is_named(bench: Bench, tmp_path: Path) -> None:
    known = bench.definition
    (tmp_path / "password").write_text("wrong")
    wrong = {"RESTIC_PASSWORD_FILE": str(tmp_path / "password")}
    for variables, said in (
        (wrong, "correct the password that FILE names"),
        (
            {"RESTIC_REPOSITORY": str(tmp_path / "none")},
            "make it with 'restic init'",
        ),
        ({"PATH": str(tmp_path)}, "apt-get install restic"),
    ):
        bad = Archive(spoil(known, **variables), NAME, SYSTEM, lambda _: None)
        with pytest.raises(errors.GenericError) as caught:
            bad.list_all()
        assert said in str(caught.value), caught.value
    with pytest.raises(errors.OpPrereqError, match="there is no backup 20200101-000000"):
        bench.archive.find("20200101-000000")
