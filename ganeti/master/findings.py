"""Findings of the last verification of each part of the cluster, in a file of this node.

Another master has none until the cluster is verified there. A finding that was there before keeps
the time since when it is known.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Mapping, Sequence

import msgspec

from ganeti import errors
from ganeti.base import files, jsonio
from ganeti.base.clock import SYSTEM, Clock
from ganeti.model.finding import Finding
from ganeti.paths import Paths

_LOG = logging.getLogger(__name__)

#: Findings of one part that are kept.
MOST = 1000


class Known(msgspec.Struct, frozen=True):
    """A finding, and since when it is known (Unix time)."""

    finding: Finding
    since: float


class Verdict(msgspec.Struct, frozen=True):
    """The last verification of a part: when it ended, and what it found."""

    time: float
    findings: list[Known] = []


class Findings:
    """By uuid of the node group; empty: the configuration. Thread-safe."""

    def __init__(self, paths: Paths, clock: Clock = SYSTEM) -> None:
        self._path = paths.findings
        self._clock = clock
        self._mutex = threading.Lock()
        self.parts: Mapping[str, Verdict] = self._read()

    def _read(self) -> dict[str, Verdict]:
        try:
            found = jsonio.loads(self._path.read_bytes())
            return msgspec.convert(found, dict[str, Verdict])
        except FileNotFoundError:
            return {}
        except (OSError, errors.ParseError, ValueError) as err:
            _LOG.warning("%s is not used: %s", self._path, err)
            return {}

    def note(self, part: str, findings: Sequence[Finding]) -> None:
        """Replace what is known of a part; if the file cannot be written, the log says so."""
        with self._mutex:
            now = self._clock.now()
            former = self.parts.get(part)
            made = merge(() if former is None else former.findings, findings, now)
            self.parts = {**self.parts, part: Verdict(now, made[:MOST])}
            try:
                text = jsonio.dumps(msgspec.to_builtins(self.parts))
                files.write_atomic(self._path, text, mode=0o600)
            except (OSError, errors.GanetiError) as err:
                _LOG.warning("findings are not kept in %s: %s", self._path, err)


def merge(before: Sequence[Known], findings: Sequence[Finding], now: float) -> list[Known]:
    """Findings with the time since when they are known, whatever numbers changed in their text."""
    since = {_key(known.finding): known.since for known in before}
    return [Known(finding, since.get(_key(finding), now)) for finding in findings]


def _key(finding: Finding) -> tuple[str, ...]:
    plain = re.sub(r"[0-9]+", "0", finding.text)
    return finding.code, finding.kind, finding.object, plain
