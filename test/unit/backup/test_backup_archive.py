"""Backups kept by a real restic and a real borg in directories."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from archive_bench import NAME, SIZE, make_bench
from msgspec.structs import replace

from ganeti import errors
from ganeti.backup import archive, definition, piping, stream
from ganeti.backup.programs import Item, explain
from ganeti.backup.restic import Restic
from ganeti.backup.sums import CHUNK, Sums, digest
from ganeti.model.backup import BackedUpDisk, Manifest, Mode, Proof

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("program", ["restic", "borg"])
def test_backups_are_restored_and_old_ones_go(program: str, tmp_path: Path) -> None:
    bench = make_bench(program, tmp_path / "place")
    bench.disk.write(3 * CHUNK, os.urandom(3 * CHUNK))
    first, _content = bench.backup()
    bench.disk.write(SIZE - 99, b"new")
    bench.disk.zero(4 * CHUNK, CHUNK)
    second, newer = bench.backup()
    assert second.disks[0].stored == 512
    bench.archive.note(replace(second, proof=Proof(time=5.0, how="checksum", good=True)))
    found = bench.archive
    with found.lock():
        found.remove([first.id], lambda *_: None)
    # what it is built on stays, and nothing else of the first one
    assert bench.names() == [
        f"{NAME}-{first.id}-0.diff",
        *(f"{NAME}-{second.id}{rest}" for rest in ("-0.diff", "-0.sums", "-5.proof", ".json")),
    ]
    assert bench.restore(second.id) == newer
    [left] = archive.list_everything(bench.definition)
    assert (left.id, left.settings, left.proof is not None) == (second.id, "", True)


def test_a_program_that_hangs_is_ended() -> None:
    known = definition.Definition("offsite", "FILE", Restic(), {})

    def abort() -> None:
        raise errors.GenericError("ended as the user requested")

    argv = [sys.executable, "-c", "import time; time.sleep(60)"]
    with (
        pytest.raises(errors.GenericError, match="user requested"),
        piping.start(known, argv, abort) as child,
    ):
        child.write(bytes(1 << 22))


def test_a_stream_is_made_a_disk_by_hand(tmp_path: Path) -> None:
    """The script of the documentation, on two streams, the older one first."""
    content, streams = bytearray(SIZE), []
    for number in (1, 2):
        parts: list[bytes] = []
        writer = stream.Writer(SIZE, parts.append)
        writer.write(number * CHUNK, bytes([number]) * CHUNK)
        writer.zero(5 * CHUNK, CHUNK)
        writer.end()
        content[number * CHUNK : (number + 1) * CHUNK] = bytes([number]) * CHUNK
        streams.append(b"".join(parts))
    disk = tmp_path / "disk.raw"
    for each in streams:
        subprocess.run([str(ROOT / "tools/apply-diff"), str(disk)], input=each, check=True)
    assert disk.read_bytes() == bytes(content)
    cut = subprocess.run(
        [str(ROOT / "tools/apply-diff"), str(disk)],
        input=streams[0][:-1],
        capture_output=True,
        check=False,
    )
    assert cut.returncode == 1
    assert b"cut off" in cut.stderr


def test_no_stream_is_believed_without_its_checksum() -> None:
    table = Sums(SIZE)
    table.set(1, digest(b"\1" * CHUNK))
    parts: list[bytes] = []
    writer = stream.Writer(SIZE, parts.append)
    writer.write(CHUNK, b"\2" * CHUNK)
    writer.end()
    data = b"".join(parts)
    with pytest.raises(errors.GenericError, match="bytes 65536 to 131071 do not match"):
        stream.restore(
            ["a"],
            lambda _: contextlib.nullcontext(io.BytesIO(data)),
            None,
            table,
            "it",
            lambda *_: None,
        )
    for end in (0, 5, 20, 40, len(data) - 1):
        with pytest.raises(errors.GenericError, match="a: it is"):
            stream.restore(
                ["a"],
                lambda _, end=end: contextlib.nullcontext(io.BytesIO(data[:end])),
                None,
                table,
                "it",
                lambda *_: None,
            )


def manifest(backup: str, *chain: str, damage: str = "") -> Manifest:
    disks = (BackedUpDisk(uuid="u", size=1, fingerprint="", chain=chain),)
    return Manifest(
        id=backup,
        instance="a",
        instance_uuid="",
        time=0,
        mode=Mode.FULL,
        disks=disks,
        damage=damage,
    )


DAYS = [f"2026010{day}-000000" for day in range(1, 5)]


def test_what_no_backup_needs_is_garbage() -> None:
    names = [
        f"a-{day}{rest}" for day in DAYS for rest in ("-0.diff", "-0.sums", ".json", "-7.proof")
    ]
    backups = [
        manifest(DAYS[0]),
        manifest(DAYS[1], f"{DAYS[0]}-0"),
        manifest(DAYS[2]),
        manifest(DAYS[3], f"{DAYS[2]}-0"),
    ]

    def list_garbage(gone: list[str], known: list[Manifest] = backups) -> list[str]:
        found = archive.find_garbage(names, known, "a", gone)
        return [name.removeprefix("a-") for name in names if name not in found]

    assert len(list_garbage([])) == 16
    assert f"{DAYS[0]}-0.diff" in list_garbage([DAYS[0]])
    assert f"{DAYS[0]}.json" not in list_garbage([DAYS[0]])
    assert not [name for name in list_garbage(DAYS[:2]) if name < DAYS[2]]
    # one that is not known may need any stream
    unknown = [*backups[:3], manifest(DAYS[3], damage="it is damaged")]
    assert list_garbage(DAYS[:3], unknown)[:3] == [f"{day}-0.diff" for day in DAYS[:3]]
    # others, and what is being made, stay
    names.extend(("b-20260101-000000.json", "a-20270101-000000-0.diff"))
    assert list_garbage(DAYS)[-2:] == ["b-20260101-000000.json", "20270101-000000-0.diff"]


def test_a_damaged_note_fails_only_its_own_backup() -> None:
    items = [
        Item("1", f"a-{DAYS[0]}.json", archive.encode(manifest(DAYS[0]))),
        Item("2", f"a-{DAYS[1]}.json", "what"),
        Item("3", "something else"),
    ]
    good, bad = archive.list_backups(items, "a")
    assert not good.damage
    assert "it is damaged" in bad.damage


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("RESTIC_REPOSITORY=/a\nBORG_REPO=/b\n", "must have one of RESTIC_REPOSITORY, BORG_REPO"),
        ("AWS_KEY=1\n", "must have one of"),
        ("RESTIC_REPOSITORY=/a b\n", "line 1 is not NAME=VALUE"),
        ("RESTIC_REPOSITORY=/a\nrm -rf /\n", "line 2 is not NAME=VALUE"),
    ],
)
def test_a_wrong_description_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "offsite"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(errors.ParameterError, match=said):
        definition.load(file)


def test_a_description_that_others_may_read_is_refused(tmp_path: Path) -> None:
    file, password = tmp_path / "offsite", tmp_path / "password"
    with pytest.raises(errors.ParameterError, match="this node has no repository 'offsite'"):
        definition.load(file)
    password.write_text("secret")
    file.write_text(f"RESTIC_REPOSITORY=/a\nRESTIC_PASSWORD_FILE={password}\n")
    file.chmod(0o644)
    with pytest.raises(errors.ParameterError, match=f"chmod 600 {file}"):
        definition.load(file)
    file.chmod(0o600)
    password.chmod(0o640)
    with pytest.raises(errors.ParameterError, match=f"chmod 600 {password}"):
        definition.load(file)
    password.chmod(0o400)
    known = definition.load(file)
    assert str(password) not in repr(known)


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("Fatal: unable to save snapshot: write /x: no space left on device", "gnt-backup prune"),
        ("Insufficient free space to complete transaction (required: 545.43 MB, available: 3 MB).",
         "gnt-backup prune"),
        ("Fatal: unable to open repository: dial tcp 127.0.0.1:1: connect: connection refused",
         "whether it can be reached"),
        ("ssh: Could not resolve hostname nowhere: Name or service not known", "can be reached"),
        ("Fatal: load <data/12>: invalid data returned", "restic check --read-data"),
        ("Fatal: something new", "Fatal: something new"),
        ("", "it ended without a message"),
    ],
)  # fmt: skip
def test_errors_say_what_to_do(said: str, advice: str) -> None:
    assert advice in explain("restic", said, "FILE")
