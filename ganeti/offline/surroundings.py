"""Changes beside ``config.data`` when the data directory of another version becomes ours."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ganeti import constants, errors
from ganeti.base import files
from ganeti.bootstrap import init
from ganeti.config import ssconf
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.net import certs, pem
from ganeti.offline.data_directory import DataDirectory
from ganeti.paths import Paths


@dataclass(frozen=True)
class Step:
    """Something to do with files, and what it is for people. May be done again after a crash."""

    text: str
    do: Callable[[], None]


def check(directory: DataDirectory) -> None:
    """Refuse what a step could not do; OpPrereqError."""
    where = directory.paths
    old = _find_old_users(where)
    if _is_file(old) and where.rapi_users.exists():
        raise errors.make_state_error(
            f"there are users of the remote API in {old} and in {where.rapi_users}: put all of"
            " them into the second file and remove the first",
        )
    version = where.queue / "version"
    found = version.read_bytes().strip() if version.exists() else b""
    if found not in (b"", str(constants.JOB_QUEUE_VERSION).encode()):
        raise errors.make_state_error(
            f"{version} says {found.decode('ascii', 'replace')}; only job queues of format"
            f" {constants.JOB_QUEUE_VERSION} can be taken over",
        )


def steps(directory: DataDirectory, config: Config, label: str) -> Iterator[Step]:
    """The steps of an upgrade; ``label`` is part of the names of files that are set aside."""
    where = directory.paths
    old = _find_old_users(where)
    if _is_file(old):
        yield Step(f"{old} becomes {where.rapi_users}", lambda: _move_users(old, where))
    for name in ("watcher.data", where.journal_file.name):
        path = where.data / name
        if path.exists():
            yield Step(f"{path} is set aside", _setting_aside(path, label))
    if where.queue.is_dir() and not (where.queue / "version").exists():
        version = where.queue / "version"
        text = f"{constants.JOB_QUEUE_VERSION}\n"
        yield Step(f"{version} is written", lambda: files.write_atomic(version, text))
    yield Step(
        f"the ssconf files in {where.data} are written",
        lambda: init.write_ssconf(where, ssconf.values(config)),
    )


def _find_old_users(where: Paths) -> Path:
    return where.data / "rapi_users"


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _move_users(old: Path, where: Paths) -> None:
    files.ensure_dir(where.rapi, 0o750)
    old.rename(where.rapi_users)
    where.rapi_users.chmod(0o640)
    old.symlink_to(where.rapi_users.relative_to(where.data))


def _setting_aside(path: Path, label: str) -> Callable[[], None]:
    def do() -> None:
        files.set_aside(path, label)

    return do


# certificates ----------------------------------------------------------------------------------


def lacks_authority(directory: DataDirectory) -> bool:
    """Whether the certificates there were made by software that had no authority for them."""
    return directory.whole and not directory.paths.ca_cert.exists()


def make_certificates(where: Paths, config: Config, label: str) -> None:
    """Make an authority, and certificates of the master.

    Certificates that exist are set aside. Other nodes get theirs with ``gnt-node add --readd``.

    Raises:
        OSError: a file cannot be written.
    """
    master = config.master
    for path in (where.server_cert, where.client_cert, where.ca_key):
        if path.exists():
            files.set_aside(path, label)
    authority = certs.create_ca(config.cluster.cluster_name)
    names = [master.primary_ip]
    certs.write(where.server_cert, certs.issue_server(authority, master.name, names))
    certs.write(where.client_cert, certs.issue_client(authority, master.name, names))
    if not where.rapi_cert.exists():
        addresses = [config.cluster.master_ip, master.primary_ip]
        rapi = certs.self_signed(config.cluster.cluster_name, addresses, more_names=[master.name])
        certs.write(where.rapi_cert, rapi, mode=certs.GROUP_MODE)
    for path in (where.hmac_key, where.domain_secret):
        if not path.exists():
            files.write_atomic(path, f"{secrets.token_hex(32)}\n", mode=0o440)
    # The last one, as it says that all others are there.
    certs.write_authority(authority, where.ca_key, where.ca_cert)


def accept_master(where: Paths, config: Config) -> Config:
    """The configuration in which the certificate that the master has here is accepted.

    Raises:
        X509CertError: the file holds none.
    """
    master = config.master
    digest = pem.digest_of_file(where.client_cert)
    accepted = {**config.cluster.candidate_certs, master.uuid: digest}
    cluster = base.replace(config.cluster, candidate_certs=accepted)
    return Config(base.replace(config.data, cluster=cluster))
