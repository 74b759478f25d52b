"""``config.data`` of this node for another version, while no master daemon runs.

The version that is to read it makes it (see :mod:`ganeti.config.upgrade.accept`); the one before is
kept beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ganeti import constants, errors
from ganeti.base import files, journal, jsonio, process, releases, sealed_file
from ganeti.base.clock import SYSTEM
from ganeti.base.json_types import JsonObject
from ganeti.base.releases import Version
from ganeti.config import hand_edits, store
from ganeti.config.upgrade import accept
from ganeti.config.upgrade.accept import Accepted
from ganeti.model import base
from ganeti.paths import Paths

#: Seconds in which another version must make a configuration of its own.
_TIMEOUT = 120.0


def read_version(where: Paths) -> Version:
    """The version of ``config.data``.

    Raises:
        ConfigurationError: there is none, or it is damaged.
    """
    return _version_of(_read_checkpoint(where), where)


def preview(where: Paths, target: Version) -> Accepted:
    """The configuration as another version would convert it; changes nothing.

    While a master daemon runs, the latest changes may be missing.

    Raises:
        ConfigurationError: it cannot use it; the text says why.
        OpPrereqError: it is not installed.
    """
    return _convert(_read_checkpoint(where), where, target)


def convert(where: Paths, target: Version) -> Callable[[], None]:
    """Write the configuration for a version; returns what puts the former one back.

    Nobody may be writing it. Nothing is done when it is of that version already.

    Raises:
        ConfigurationError, OpPrereqError: as of :func:`preview`; nothing was changed.
        OSError: disk full, no permission; nothing was changed.
    """
    before = where.config_file.read_bytes()
    raw = _read_checkpoint(where)
    version = _version_of(raw, where)
    if version == target:
        return lambda: None
    hand_edits.check(where, before)
    raw = _read_whole(where, raw)
    found = _convert(raw, where, target)
    moment = time.strftime("%Y%m%dT%H%M%S", time.localtime(SYSTEM.now()))
    label = f"backup-{version}-{moment}"
    files.set_aside(where.config_file, label, keep=True)
    _write(where, jsonio.dumps_bytes(found.config))
    if any(journal.read(where.journal_file)):
        files.set_aside(where.journal_file, label)
    return lambda: _write(where, jsonio.dumps_bytes(raw))


def _read_checkpoint(where: Paths) -> JsonObject:
    path = where.config_file
    try:
        raw = jsonio.loads(path.read_bytes())
    except FileNotFoundError as err:
        raise errors.ConfigurationError(f"there is no configuration at {path}") from err
    except errors.ParseError as err:
        raise errors.ConfigurationError(f"{path} is damaged: {errors.text(err)}") from err
    if not isinstance(raw, dict):
        raise errors.ConfigurationError(f"{path} is not a cluster configuration")
    return raw


def _version_of(raw: JsonObject, where: Paths) -> Version:
    number = raw.get("version")
    if not isinstance(number, int):
        raise errors.ConfigurationError(f"{where.config_file} is not a cluster configuration")
    return releases.read_config_number(number)


def _read_whole(where: Paths, raw: JsonObject) -> JsonObject:
    """The configuration with what the journal has beyond the checkpoint.

    A stopped master daemon leaves nothing there. After a kill, only the version that wrote the
    journal reads it.
    """
    if raw["version"] == constants.CONFIG_VERSION:
        return base.to_wire(store.read_config(where).data)
    serial = raw.get("serial_no", 0)
    if any(record.get("serial", 0) > serial for record in journal.read(where.journal_file)):
        raise errors.ConfigurationError(
            f"{where.journal_file} has changes that are not in {where.config_file}: start the"
            " master daemon once more with 'ganeti-daemon-util start-master', and try again"
        )
    return raw


def _convert(raw: JsonObject, where: Paths, target: Version) -> Accepted:
    if target == releases.OWN:
        found = accept.accept(raw)
    else:
        python = releases.python_of(target, where)
        words = releases.isolate(python, accept.__name__)
        result = process.run(words, timeout=_TIMEOUT, input=jsonio.dumps_bytes(raw))
        if not result.ok:
            raise errors.ConfigurationError(
                f"version {target} cannot use the configuration:"
                f" {result.stderr.strip() or result.explain()}"
            )
        found = accept.decode(result.stdout)
    if found.problems:
        raise errors.ConfigurationError(
            f"the configuration has defects, so version {target} does not get it:\n"
            + "\n".join(f"  {text}" for text in found.problems)
        )
    return found


def _write(where: Paths, data: bytes) -> None:
    state = where.config_file.stat()
    owner = {"uid": state.st_uid, "gid": state.st_gid}
    sealed_file.write(where.config_file, data, mode=0o640, **owner)
