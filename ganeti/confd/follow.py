"""The configuration of this node as it is now, for a reader that must not stop anybody."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from ganeti import errors
from ganeti.base import journal
from ganeti.base.clock import SYSTEM, Clock
from ganeti.confd.answers import View
from ganeti.config import changes, store
from ganeti.model.config import Config
from ganeti.paths import Paths

log = logging.getLogger(__name__)

#: Shortest time between two checks of the files, in seconds.
INTERVAL = 0.25

#: Which file it is, how long, and when it was written.
_Stamp = tuple[int, int, int]


class Follower:
    """Reads ``config.data`` once, and then only what is new in the journal. For one thread."""

    def __init__(self, paths: Paths, clock: Clock = SYSTEM) -> None:
        self._paths = paths
        self._clock = clock
        self._next_look = float("-inf")
        self._stamps: tuple[_Stamp | None, _Stamp | None] = (None, None)
        self._view: View | None = None
        self._logged = ""

    def view(self) -> View | None:
        """The configuration, a quarter of a second old at most; None without one.

        While the files do not fit together, as in the moment of a checkpoint, it is the last one.
        """
        now = self._clock.monotonic()
        if now < self._next_look:
            return self._view
        self._next_look = now + INTERVAL
        paths = self._paths
        stamps = _stamp(paths.config_file), _stamp(paths.journal_file)
        if stamps == self._stamps:
            return self._view
        if stamps[0] is None:
            self._take(None, stamps, "this node has no configuration: it answers nothing")
            return None
        try:
            config = self._read_growth(stamps) or store.read_config(paths)
        except (errors.GanetiError, OSError) as err:
            text = errors.text(err) if isinstance(err, errors.GanetiError) else str(err)
            self._say(f"the configuration cannot be read: {text}")
            return self._view
        self._take(View(config), stamps, "")
        return self._view

    def _take(
        self, view: View | None, stamps: tuple[_Stamp | None, _Stamp | None], text: str
    ) -> None:
        self._view, self._stamps = view, stamps
        self._say(text)

    def _say(self, text: str) -> None:
        """Log a state once."""
        if text and text != self._logged:
            log.warning("%s", text)
        self._logged = text

    def _read_growth(self, stamps: tuple[_Stamp | None, _Stamp | None]) -> Config | None:
        """The last configuration with the lines that the journal has got; None: read it all."""
        (old_file, old), (file, new) = self._stamps, stamps
        if self._view is None or file != old_file or old is None or new is None:
            return None
        if new[0] != old[0] or new[1] < old[1]:
            return None
        with self._paths.journal_file.open("rb") as stream:
            stream.seek(old[1])
            data = stream.read(new[1] - old[1])
        config = self._view.config
        if not data.endswith(b"\n"):
            return None
        for line in data.splitlines():
            record = journal.decode(line)
            if record is None or record.get("serial") != config.data.serial_no + 1:
                return None
            config = changes.replay(config, record, mtime=record["time"])
        return config


def _stamp(path: Path) -> _Stamp | None:
    try:
        facts = os.stat(path)
    except FileNotFoundError:
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns
