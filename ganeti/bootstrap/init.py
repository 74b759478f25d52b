"""Make a cluster out of this server."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ganeti import constants, errors, paths
from ganeti.base import files, sealed_file, services
from ganeti.base.clock import SYSTEM
from ganeti.bootstrap import defaults
from ganeti.bootstrap.settings import InitSettings
from ganeti.config import ssconf
from ganeti.config.store import write_checkpoint
from ganeti.doctor import examine, needs
from ganeti.model import ssconf_keys
from ganeti.model.cluster import Cluster
from ganeti.model.config import Config
from ganeti.net import certs, hosts_file, pem, resolve
from ganeti.paths import Paths
from ganeti.storage import file_paths
from ganeti.storage.registry import file_settings, traits_of


def init_cluster(settings: InitSettings) -> list[str]:
    """Write certificates and the first configuration, then start the daemons.

    Blocks until they serve requests. Returns a text for each daemon that did not start but is not
    needed. If anything fails, what was made is removed again.

    Raises:
        OpPrereqError: a cluster exists here, a name has no address, a choice makes no sense.
        OpExecError: a daemon does not start.
    """
    where, host = paths.current(), paths.hostname()
    _check_new(where)
    examine.refuse(examine.before_joining(where))
    address = resolve.address(host)
    master_ip = _cluster_address(settings.cluster_name)
    make_directories(where)
    with _mark(where), ExitStack() as undo:
        undo.callback(remove_files, where)
        digest = _certificates(where, host, settings.cluster_name, address, master_ip)
        data = defaults.configuration(
            settings,
            host=host,
            address=address,
            master_ip=master_ip,
            certificate_digest=digest,
            now=SYSTEM.now(),
        )
        cluster = data.cluster
        examine.refuse(examine.before_cluster(where, needs.derive(Config(data))))
        _storage(where, cluster)
        file_paths.write_default(where, (getattr(cluster, key) for key in file_settings()))
        write_ssconf(where, ssconf.values(Config(data)))
        if cluster.modify_ssh_setup:
            files.write_atomic(where.ssh_managed, "", mode=0o644)
        problems = _list_in_hosts(where, host, address) if cluster.modify_etc_hosts else []
        write_checkpoint(Config(data), where)
        # From here on it is a cluster, even if this command is killed.
        files.remove(where.init_mark)
        undo.callback(services.stop, constants.NODED, where)
        services.start(constants.NODED, where)
        undo.callback(services.stop_master, where)
        problems += services.start_master(where)
        undo.pop_all()
    return problems


def _list_in_hosts(where: Paths, host: str, address: str) -> list[str]:
    """Begin the list of nodes in ``/etc/hosts``; a text if that is not possible."""
    files.write_atomic(where.hosts_managed, "", mode=0o644)
    try:
        hosts_file.change(where, "add", host, address)
    except errors.GanetiError as err:
        return [f"{where.hosts} does not list the nodes: {errors.text(err)}"]
    return []


def _check_new(where: Paths) -> None:
    if where.config_file.exists():
        raise errors.make_state_error(
            f"this node belongs to a cluster already ({where.config_file} exists); to start its"
            " daemons: ganeti-daemon-util start-all",
        )
    if where.server_cert.exists() and not where.init_mark.exists():
        raise errors.make_state_error(
            f"this node was prepared for a cluster ({where.server_cert} exists); remove it from"
            " there, or run ganeti-node-cleanup --yes-do-it if the cluster is gone",
        )


@contextmanager
def _mark(where: Paths) -> Iterator[None]:
    """Mark that what is here is not complete yet, until the block ends or removes the mark.

    The lock on it ends with the process, so a mark without a lock is that of a process that was
    killed: what that one left is written again.

    Raises:
        OpPrereqError: somebody else does it at the same time.
    """
    lock = files.FileLock(where.init_mark)
    try:
        lock.acquire()
    except errors.LockError as err:
        raise errors.make_state_error(
            "another gnt-cluster init is at work on this server; wait for its end",
        ) from err
    try:
        _check_new(where)  # another one may have ended just now
        files.fsync_dir(where.data)
        sweep(where)
        yield
    finally:
        files.remove(where.init_mark)
        lock.release()


def sweep(where: Paths) -> None:
    """Remove halves of files that a killed set-up has left; some have secrets."""
    names = [path.name for path in _own_files(where)]
    files.sweep(where.data, [*names, *(where.ssconf(key).name for key in ssconf_keys.KEYS)])


def _cluster_address(name: str) -> str:
    try:
        return resolve.address(name)
    except errors.ResolverError as err:
        raise errors.make_unresolved_error(
            f"the cluster is called {name}, which has no address: put it into DNS or /etc/hosts",
        ) from err


def make_directories(where: Paths) -> None:
    for directory, mode in (
        (where.data, 0o755),
        (where.queue, 0o750),
        (where.rapi, 0o750),
        (where.run, 0o775),
        (where.socket_dir, 0o770),
        (where.log, 0o770),
        (where.os_log, 0o750),
        (where.conf, 0o755),
        (where.locks, 0o755),
    ):
        files.ensure_dir(directory, mode)


def _certificates(where: Paths, host: str, cluster_name: str, address: str, master_ip: str) -> str:
    """Make the authority, this node's certificates and the secrets; digest of the client one."""
    authority = certs.create_ca(cluster_name)
    certs.write_authority(authority, where.ca_key, where.ca_cert)
    certs.write(where.server_cert, certs.issue_server(authority, host, [address]))
    certs.write(where.client_cert, certs.issue_client(authority, host, [address]))
    rapi = certs.self_signed(cluster_name, [master_ip, address], more_names=[host])
    certs.write(where.rapi_cert, rapi, mode=certs.GROUP_MODE)
    for path, mode in ((where.hmac_key, 0o440), (where.domain_secret, 0o440)):
        files.write_atomic(path, f"{secrets.token_hex(32)}\n", mode=mode)
    return pem.digest_of_file(where.client_cert)


def _storage(where: Paths, cluster: Cluster) -> None:
    """Make the directories for file disks."""
    for template in cluster.enabled_disk_templates:
        traits = traits_of(template)
        if traits.file_based:
            files.ensure_dir(Path(where.local(getattr(cluster, traits.directory))), 0o750)


def write_ssconf(where: Paths, values: dict[str, str]) -> None:
    """Write ``ssconf_<key>`` files of this node; they are on disk at return."""
    for key, value in values.items():
        files.write_atomic(where.ssconf(key), ssconf_keys.content(value), mode=ssconf_keys.MODE)


def _own_files(where: Paths) -> Iterator[Path]:
    """The files of a new cluster, besides facts for scripts."""
    yield from (where.config_file, *sealed_file.companions(where.config_file))
    yield from (where.journal_file, where.ca_key, where.ca_cert, where.server_cert)
    yield from (where.client_cert, where.hmac_key, where.domain_secret, where.rapi_cert)
    yield from (where.ssh_managed, where.ssh_public_keys, where.known_hosts)


def remove_files(where: Paths) -> None:
    """Remove what makes this node a part of a cluster; disks of instances stay. Idempotent."""
    hosts_file.leave(where)
    for path in (*_own_files(where), *where.rapi.glob("*")):
        files.remove(path)
    for path in (*where.data.glob("ssconf_*"), *where.history.glob("*"), where.epoch_file):
        files.remove(path)
