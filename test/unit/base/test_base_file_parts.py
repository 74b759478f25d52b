"""Changes of a few members of a JSON file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ganeti import errors
from ganeti.base import file_parts
from ganeti.base.file_journal import NAME, FileJournal
from ganeti.base.file_parts import Contents
from ganeti.base.journal import encode

FILE = b'{"id":7,"ops":[{"status":"queued","log":[]},{"status":"queued"}],"end":null}'


def test_members_of_an_object_get_other_values_and_the_rest_stays():
    parts = {"ops/1": {"status": "running", "log": [[1, "x"]]}, "": {"end": [5, 6]}}
    assert json.loads(file_parts.apply(FILE, parts)) == {
        "id": 7,
        "ops": [{"status": "queued", "log": []}, {"status": "running", "log": [[1, "x"]]}],
        "end": [5, 6],
    }


@pytest.mark.parametrize("path", ["ops", "ops/2", "ops/x", "id", "id/0", "nothing", "ops/0/status"])
def test_a_path_that_leads_nowhere_is_told(path):
    with pytest.raises(errors.ParseError, match=f"no object '{path}'"):
        file_parts.apply(FILE, {path: {"a": 1}})


def test_what_is_later_wins():
    contents = Contents({"a": {"ops/0": {"status": "waiting", "log": [1]}}})
    contents.add({"a": {"ops/0": {"status": "running"}, "ops/1": {"log": [2]}}})
    assert contents.parts == {
        "a": {"ops/0": {"status": "running", "log": [1]}, "ops/1": {"log": [2]}}
    }
    contents.add({"a": b"whole"})
    assert (contents.whole, contents.parts) == ({"a": b"whole"}, {})
    contents.add({"a": {"": {"end": 1}}})
    assert (contents.whole, contents.parts) == ({"a": b"whole"}, {"a": {"": {"end": 1}}})


@pytest.fixture
def journal(tmp_path: Path):
    (tmp_path / "job-7").write_bytes(FILE)
    journal = FileJournal(tmp_path)
    journal.open()
    yield journal
    journal.close()


def status(directory: Path) -> list[str]:
    return [op["status"] for op in json.loads((directory / "job-7").read_bytes())["ops"]]


def test_parts_reach_the_file_when_it_follows(journal, tmp_path):
    journal.write(Contents({"job-7": {"ops/0": {"status": "running"}}}))
    journal.write(Contents({"job-7": {"ops/0": {"status": "success"}, "ops/1": {"status": "w"}}}))
    assert status(tmp_path) == ["queued", "queued"]
    assert b'"success"' in journal.read_pending()["job-7"]
    journal.catch_up()
    assert status(tmp_path) == ["success", "w"]
    assert journal.size == 0


def test_a_whole_and_what_follows_it_in_one_write(journal, tmp_path):
    contents = Contents({"job-7": FILE.replace(b"queued", b"waiting"), "job-8": FILE})
    contents.add({"job-7": {"ops/1": {"status": "running"}}})
    journal.write(contents)
    journal.catch_up()
    assert status(tmp_path) == ["waiting", "running"]
    assert (tmp_path / "job-8").read_bytes() == FILE


def test_a_crash_after_the_file_was_written_does_no_harm(journal, tmp_path):
    """The journal still has what the file has already."""
    journal.write(Contents({"job-7": {"ops/0": {"status": "running"}}}))
    left = (tmp_path / NAME).read_bytes()
    journal.catch_up()
    journal.close()
    (tmp_path / NAME).write_bytes(left)
    journal.open()
    assert status(tmp_path) == ["running", "queued"]


def test_the_journal_of_an_older_version_is_read(tmp_path):
    (tmp_path / NAME).write_bytes(encode({"job-7": FILE.decode(), "serial": "7\n"}))
    journal = FileJournal(tmp_path)
    journal.open()
    journal.close()
    assert (tmp_path / "job-7").read_bytes() == FILE


@pytest.mark.parametrize("content", [None, b"", b"[1", b'{"ops": []}'])
def test_a_damaged_or_missing_file_keeps_no_other_from_following(
    journal, tmp_path, caplog, content
):
    (tmp_path / "job-7").unlink()
    if content is not None:
        (tmp_path / "job-7").write_bytes(content)
    journal.write(Contents({"job-7": {"ops/0": {"status": "running"}}, "job-8": b"{}"}))
    journal.catch_up()
    assert (tmp_path / "job-8").read_bytes() == b"{}"
    assert "job-7 cannot be brought up to date" in caplog.text
    assert (tmp_path / "job-7").exists() == (content is not None)
    if content is not None:
        assert (tmp_path / "job-7").read_bytes() == content
