"""Make a cluster out of this server."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from pathlib import Path

from ganeti import constants, errors, paths
from ganeti.base import files, sealed_file, services
from ganeti.base.clock import SYSTEM
from ganeti.base.text import join_names
from ganeti.bootstrap import defaults
from ganeti.bootstrap.settings import InitSettings
from ganeti.config import drbd, ssconf
from ganeti.config.store import write_checkpoint
from ganeti.model import ssconf_keys
from ganeti.model.cluster import Cluster
from ganeti.model.config import Config
from ganeti.net import certs, pem, resolve
from ganeti.paths import Paths
from ganeti.storage import file_paths
from ganeti.storage.drbd import host as host_drbd
from ganeti.storage.lvm import report
from ganeti.storage.registry import file_settings, traits_of, volume_templates


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
    address = _address(host, "this node")
    master_ip = _address(settings.cluster_name, "the cluster")
    with ExitStack() as undo:
        make_directories(where)
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
        _volume_group(cluster.volume_group_name, cluster.enabled_disk_templates)
        _storage(where, cluster)
        file_paths.write_default(where, (getattr(cluster, key) for key in file_settings()))
        _mirrors(where, cluster)
        write_ssconf(where, ssconf.values(Config(data)))
        write_checkpoint(Config(data), where)
        undo.callback(services.stop, constants.NODED, where)
        services.start(constants.NODED, where)
        undo.callback(services.stop_master, where)
        problems = services.start_master(where)
        undo.pop_all()
    return problems


def _mirrors(where: Paths, cluster: Cluster) -> None:
    """With template drbd the module must be loaded here and call the chosen program."""
    if not drbd.is_enabled(cluster.enabled_disk_templates):
        return
    try:
        found = host_drbd.helper(where)
    except errors.BlockDeviceError as err:
        raise errors.OpPrereqError(errors.text(err), errors.ErrorCode.ENVIRON) from err
    wanted = cluster.drbd_usermode_helper
    if found != wanted:
        raise errors.OpPrereqError(
            f"the DRBD module of this node has the user-mode helper {found}, not {wanted}: load it"
            f" with usermode_helper={wanted}, or choose another with --drbd-usermode-helper",
            errors.ErrorCode.ENVIRON,
        )


def _check_new(where: Paths) -> None:
    if where.config_file.exists():
        raise errors.OpPrereqError(
            f"this node belongs to a cluster already ({where.config_file} exists)",
            errors.ErrorCode.STATE,
        )
    if where.server_cert.exists():
        raise errors.OpPrereqError(
            f"this node was prepared for a cluster ({where.server_cert} exists); remove it from"
            " there, or remove that file if the cluster is gone",
            errors.ErrorCode.STATE,
        )


def _address(name: str, what: str) -> str:
    try:
        return resolve.address(name)
    except errors.ResolverError as err:
        raise errors.OpPrereqError(
            f"{what} is called {name}, which has no address: put it into DNS or /etc/hosts",
            errors.ErrorCode.RESOLVER,
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


def _volume_group(name: str | None, templates: tuple[str, ...]) -> None:
    """Refuse a volume group that this node does not have; OpPrereqError."""
    if not name or not volume_templates() & set(templates):
        return
    try:
        found = [group.vg_name for group in report.groups()]
    except errors.BlockDeviceError as err:
        raise errors.OpPrereqError(
            f"the volume groups of this node cannot be listed: {errors.text(err)}",
            errors.ErrorCode.ENVIRON,
        ) from err
    if name not in found:
        raise errors.OpPrereqError(
            f"there is no volume group '{name}' on this node; it has {join_names(found) or 'none'}",
            errors.ErrorCode.ENVIRON,
        )


def _storage(where: Paths, cluster: Cluster) -> None:
    """Make the directories for file disks."""
    for template in cluster.enabled_disk_templates:
        traits = traits_of(template)
        if traits.file_based:
            files.ensure_dir(Path(where.local(getattr(cluster, traits.directory))), 0o750)


def write_ssconf(where: Paths, values: dict[str, str]) -> None:
    """Write ``ssconf_<key>`` files of this node."""
    for key, value in values.items():
        files.write_atomic(
            where.ssconf(key), ssconf_keys.content(value), mode=ssconf_keys.MODE, fsync=False
        )


def remove_files(where: Paths) -> None:
    """Remove what makes this node a part of a cluster; disks of instances stay. Idempotent."""
    for path in (
        where.config_file,
        *sealed_file.companions(where.config_file),
        where.journal_file,
        where.ca_key,
        where.ca_cert,
        where.server_cert,
        where.client_cert,
        where.hmac_key,
        where.domain_secret,
        where.rapi_cert,
        *where.rapi.glob("*"),
    ):
        files.remove(path)
    for path in (*where.data.glob("ssconf_*"), *where.history.glob("*"), where.epoch_file):
        files.remove(path)
