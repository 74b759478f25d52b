"""The journal file: whole lines or nothing."""

from __future__ import annotations

import pytest
from config_samples import full_disk

from ganeti import errors
from ganeti.base import journal
from ganeti.base.journal import Journal

RECORDS = [{"serial": n, "name": f"change {n}", "put": {"n": {"ü": "€" * n}}} for n in (1, 2, 3)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "config.journal"


@pytest.fixture
def open_journal(path):
    made = Journal(path)
    made.open()
    yield made
    made.close()


def test_what_is_appended_is_read(open_journal, path):
    open_journal.append(RECORDS[:2])
    open_journal.append(RECORDS[2:])
    assert list(journal.read(path)) == RECORDS
    assert open_journal.size == path.stat().st_size
    assert path.stat().st_mode & 0o777 == 0o600


def test_no_file_is_an_empty_journal(tmp_path):
    assert list(journal.read(tmp_path / "none")) == []


def test_it_goes_on_after_it_was_closed(open_journal, path):
    open_journal.append(RECORDS[:1])
    open_journal.close()
    open_journal.close()
    again = Journal(path)
    again.open()
    again.append(RECORDS[1:])
    again.close()
    assert list(journal.read(path)) == RECORDS


@pytest.mark.parametrize(
    "tail",
    [
        b"1",
        b"00000000 {",
        journal.encode(RECORDS[2])[:-1],
        b"\0" * 4096,
        b"\0" * 100 + b'rest of a line"}\n',
    ],
)
def test_a_torn_end_is_dropped_and_written_over(open_journal, path, tail):
    open_journal.append(RECORDS[:2])
    open_journal.close()
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    assert list(journal.read(path)) == RECORDS[:2]
    assert path.read_bytes() == whole + tail
    again = Journal(path)
    again.open()
    assert path.read_bytes() == whole
    again.append(RECORDS[2:])
    again.close()
    assert list(journal.read(path)) == RECORDS


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_damaged_line_is_told_by_its_number(open_journal, path, number):
    """The last one too: its end is there, so somebody was told that it is safe."""
    open_journal.append(RECORDS)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[number] = lines[number].replace(b"change", b"chance")
    damaged = b"".join(lines)
    path.write_bytes(damaged)
    with pytest.raises(errors.ConfigurationError, match=f"damaged at line {number + 1};"):
        list(journal.read(path))
    with pytest.raises(errors.ConfigurationError, match="nothing was changed"):
        Journal(path).open()
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("line", [b"", b"hello", b"zzzzzzzz {}", b"00000000 {}", b"\xff\xfe"])
def test_foreign_lines_are_refused(path, line):
    path.write_bytes(line + b"\n" + journal.encode(RECORDS[0]))
    with pytest.raises(errors.ConfigurationError, match="damaged at line 1;"):
        list(journal.read(path))


def test_a_line_that_is_json_but_no_record_is_refused(path):
    path.write_bytes(journal.encode([1, 2]) + journal.encode(RECORDS[0]))  # type: ignore[arg-type]
    with pytest.raises(errors.ConfigurationError, match="line 1"):
        list(journal.read(path))


def test_a_full_disk_leaves_the_file_as_it_was(open_journal, path):
    open_journal.append(RECORDS[:1])
    whole = path.read_bytes()
    with full_disk(path), pytest.raises(errors.FileError, match="File too large"):
        open_journal.append(RECORDS[1:])
    assert path.read_bytes() == whole
    open_journal.append(RECORDS[2:])
    assert list(journal.read(path)) == [RECORDS[0], RECORDS[2]]


def test_after_a_checkpoint_it_begins_anew(open_journal, path):
    open_journal.append(RECORDS[:2])
    open_journal.restart()
    assert open_journal.size == 0
    assert list(journal.read(path)) == []
    open_journal.append(RECORDS[2:])
    assert list(journal.read(path)) == RECORDS[2:]
