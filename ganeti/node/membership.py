"""The files that make this host a member of a cluster, or a master candidate."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

from ganeti import errors
from ganeti.base import files, sealed_file
from ganeti.paths import Paths

log = logging.getLogger(__name__)


def remove(paths: Iterable[Path]) -> None:
    """Remove files, those that exist; GenericError when one cannot be removed."""
    try:
        for path in paths:
            if files.remove(path):
                log.info("removed %s", path)
    except OSError as err:
        raise errors.GenericError(f"cannot remove {err.filename}: {err.strerror}") from err


def candidate_files(paths: Paths) -> Iterator[Path]:
    """The files that a node needs to become the master."""
    yield from (paths.position_file, paths.config_file, paths.journal_file, paths.ca_key)
    yield paths.master_stopped_file
    yield from sealed_file.companions(paths.config_file)
    yield from (paths.rapi_cert, paths.rapi_users, paths.rapi_tokens, paths.rapi_login)
    yield paths.rapi_sessions
    yield paths.ssh_public_keys
    yield from paths.history.glob("*")
    for pattern in ("job-*", "archive/*/job-*", "keys/*"):
        yield from (path for path in paths.queue.glob(pattern) if not path.is_dir())
    yield from (paths.queue / name for name in ("serial", "version", "drain", "journal"))


def cluster_files(paths: Paths) -> Iterator[Path]:
    """The files that make this server a member of a cluster; none of an instance."""
    data = paths.data
    yield from candidate_files(paths)
    yield from (
        paths.init_mark,
        paths.epoch_file,
        paths.domain_secret,
        paths.hmac_key,
        paths.watcher_pause,
    )
    yield from data.glob("watcher.*.data")
    yield from data.glob("watcher.*.instance-status")
    yield from (paths.known_hosts, paths.ssh_managed, paths.hosts_managed)
    yield from data.glob("ssconf_*")
    yield from (paths.spice_cert, paths.spice_ca_cert)
    yield from paths.previous_crypto.glob("*/*")
    yield from (paths.client_cert, paths.ca_cert, paths.server_cert)
