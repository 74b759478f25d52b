"""Keys that clients choose for jobs: the same key never makes a second job."""

from __future__ import annotations

import hashlib

from ganeti import errors
from ganeti.jobs import files as job_files
from ganeti.jobs.files import JobFiles
from ganeti.model.job import JobRecord

#: Longest key.
MAX_KEY = 256


def check_key(key: str | None) -> None:
    """OpPrereqError for a key that is empty or too long."""
    if key is not None and not 0 < len(key) <= MAX_KEY:
        raise errors.make_invalid_error(f"the key of a job must have 1 to {MAX_KEY} characters")


class Keys:
    """Which job was submitted with a key. Not thread-safe.

    The keys of live jobs are in their records; each key of an archived job has a file.
    """

    def __init__(self, files: JobFiles) -> None:
        self._files = files
        self._live: dict[str, int] = {}

    def find(self, key: str | None) -> int | None:
        """Id of the job that was submitted with a key."""
        return None if key is None else self._live.get(key) or self._files.key(_file(key))

    def note(self, record: JobRecord) -> None:
        """Remember the key of a live job, if it has one."""
        if record.key is not None:
            self._live[record.key] = record.id

    def forget(self, record: JobRecord) -> None:
        """Forget the key of a job that is no longer live."""
        if record.key is not None:
            self._live.pop(record.key, None)

    def list_archived(self, record: JobRecord) -> dict[str, bytes]:
        """The file, with its content, that remembers the key of a job in the archive."""
        return {} if record.key is None else {_file(record.key): b"%d\n" % record.id}


def _file(key: str) -> str:
    return f"{job_files.KEYS}/{hashlib.sha256(key.encode('utf-8')).hexdigest()}"
