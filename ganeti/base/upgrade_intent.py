"""The file ``intent-to-upgrade`` of the master: an upgrade began and has not come to its end."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti import errors
from ganeti.base import files, process
from ganeti.paths import Paths


@dataclass(frozen=True)
class Intent:
    """Content of the file ``intent-to-upgrade``.

    ``pid`` is of the process that does it, 0 when it gave up with a message.
    """

    old: str
    new: str
    pid: int

    def to_text(self) -> str:
        words = (self.old, self.new, str(self.pid))
        return ",".join(word.replace("\\", "\\\\").replace(",", "\\,") for word in words) + "\n"

    @classmethod
    def from_text(cls, text: str) -> Intent:
        """Inverse of :meth:`to_text`; ParseError for anything else."""
        words, escaped = [""], False
        for letter in text.strip():
            if escaped or letter not in "\\,":
                words[-1] += letter
                escaped = False
            elif letter == ",":
                words.append("")
            else:
                escaped = True
        if len(words) != 3 or not (words[2].isascii() and words[2].isdigit()):
            raise errors.ParseError(f"expected 'old version,new version,pid', found '{text:.60}'")
        return cls(words[0], words[1], int(words[2]))

    @property
    def is_at_work(self) -> bool:
        """Whether the process that does it lives."""
        return self.pid != 0 and process.is_alive(self.pid)


def read(where: Paths) -> Intent | None:
    """The record of an upgrade that has not ended; None without one.

    Raises:
        ConfigurationError: the file is damaged.
    """
    try:
        return Intent.from_text(files.read_text(where.upgrade_intent))
    except FileNotFoundError:
        return None
    except errors.ParseError as err:
        raise errors.ConfigurationError(
            f"{where.upgrade_intent} is damaged: {errors.text(err)}. Remove it, and say where to go"
            " with 'gnt-cluster upgrade --to VERSION'"
        ) from err
