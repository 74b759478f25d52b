"""Accept what somebody changed in ``config.data`` by hand, while the master daemon does not run."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti import constants, errors
from ganeti.base import daemon, journal, jsonio, sealed_file
from ganeti.base.sealed_file import Seal
from ganeti.config import hand_edits, verify
from ganeti.config.store import read_config
from ganeti.paths import Paths


@dataclass(frozen=True)
class Edit:
    """An edit that is not accepted yet."""

    #: one line for each; None: what was there before is not known
    changes: list[str] | None
    #: defects of the configuration as it would be
    defects: list[str]


def find(where: Paths) -> Edit | None:
    """The edit that waits for acceptance on this node; None without one.

    Raises:
        OpPrereqError: the master daemon runs, or there is no configuration.
        ConfigurationError: the file cannot be used as it is; the text says where.
    """
    pid = daemon.running_pid(where.pid_file(constants.MASTERD))
    if pid is not None:
        raise errors.make_state_error(
            f"the master daemon runs (pid {pid}) and does not read {where.config_file}: it will"
            " replace it. Stop the daemon, edit the file and run this again",
        )
    config = read_config(where, edited=True)
    data = where.config_file.read_bytes()
    try:
        new = jsonio.loads_unique(data)
    except errors.ParseError as err:
        raise errors.ConfigurationError(
            f"{where.config_file} is damaged: {errors.text(err)}"
        ) from err
    if sealed_file.seal(where.config_file, data) is Seal.GOOD:
        return None
    _check_journal(where, new["serial_no"])
    return Edit(hand_edits.describe_edit(where, new), verify.problems(config))


def _check_journal(where: Paths, serial: int) -> None:
    """Changes that are only in the journal must not be taken for older than the edit."""
    raw = sealed_file.read_previous(where.config_file)
    before = serial if raw is None else jsonio.loads(raw)["serial_no"]
    hidden = [
        record["serial"]
        for record in journal.read(where.journal_file)
        if before < record["serial"] <= serial
    ]
    if hidden:
        raise errors.ConfigurationError(
            f"{where.journal_file} has changes (from serial {hidden[0]} on) that"
            f" {where.config_file} would hide with its serial_no {serial}: set that back to"
            f" {before}"
        )


def accept(where: Paths) -> None:
    """Accept ``config.data`` as it is now.

    Raises:
        OSError: the digest cannot be written.
    """
    sealed_file.accept(where.config_file)
