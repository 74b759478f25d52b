"""Version numbers of ``config.data``: 1000000 * major + 10000 * minor + revision."""

from __future__ import annotations

from ganeti import constants, errors
from ganeti.base import releases

#: Oldest version that can be brought up.
OLDEST = 2_070_000
#: Versions that can be made of ours, the newest first.
TARGETS = (3_010_000, 3_000_000, 2_130_000)


def text(version: int) -> str:
    """``3.0`` for 3000000; with the revision if there is one."""
    major, rest = divmod(version, 1_000_000)
    minor, revision = divmod(rest, 10_000)
    return f"{major}.{minor}.{revision}" if revision else f"{major}.{minor}"


def find_version(raw: object, *, newer: bool = False) -> int:
    """The version of the content of a ``config.data`` that can be upgraded, or is ours.

    With ``newer`` also of the version after ours, of which what we do not know is left out.

    Raises:
        ConfigurationError: it is not a configuration, or one that is too old or too new.
    """
    version = raw.get("version") if isinstance(raw, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise errors.ConfigurationError(
            "this is not a cluster configuration: it is not a JSON object with a number 'version'"
        )
    if not 1_000_000 <= version < 100_000_000:
        raise errors.ConfigurationError(f"version {version} is not a version of a configuration")
    ours = releases.read_config_number(constants.CONFIG_VERSION)
    found = releases.read_config_number(version)
    if found > ours and not (newer and found.is_beside(ours)):
        raise errors.ConfigurationError(
            f"the configuration is of version {text(version)}, which is newer than this software"
            f" ({text(constants.CONFIG_VERSION)}): use the software of that version"
        )
    if version < OLDEST:
        raise errors.ConfigurationError(
            f"the configuration is of version {text(version)}; upgrades begin at"
            f" {text(OLDEST)}: go there first with the software it is from"
        )
    return version


def target(wanted: str) -> int:
    """The number of a version to go back to, from its text; OpPrereqError for another one."""
    for version in TARGETS:
        if text(version) == wanted:
            return version
    raise errors.make_invalid_error(
        f"cannot downgrade to version '{wanted}'; choose from"
        f" {', '.join(text(version) for version in TARGETS)}",
    )
