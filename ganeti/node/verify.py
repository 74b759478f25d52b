"""Checks of a node that the master asks for together (``node_verify``).

Each check has a name and its own argument; its answer is under the same name. A check that is
not known here, or that failed itself, is answered with a text.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ganeti import constants, errors
from ganeti.base import clock, programs, remote_shell, typed
from ganeti.base.json_types import JsonObject
from ganeti.images import shelf
from ganeti.net import etcd_health, interfaces, pacemaker, probe, resolve
from ganeti.node import distributed, fence_agents
from ganeti.node.certificates import Certificates
from ganeti.node.context import NodeContext
from ganeti.node.disks import Disks
from ganeti.node.exports import Exports
from ganeti.node.guest_os import GuestOs
from ganeti.node.instances import Instances
from ganeti.node.ssh import Ssh
from ganeti.node.storage import Storage
from ganeti.node.system import System
from ganeti.rpc.calls.verify import VerifyCalls
from ganeti.rpc.wire import encode
from ganeti.storage import file, file_paths
from ganeti.storage.drbd import host

#: Seconds until a node must have answered over the remote shell.
LOG_IN_TIMEOUT: Final = 20.0

Check = Callable[[Any, dict[str, JsonObject]], Any]


class Verifier(VerifyCalls):
    """Answers the checks of one node."""

    def __init__(
        self,
        context: NodeContext,
        system: System,
        instances: Instances,
        disks: Disks,
        storage: Storage,
        guest_os: GuestOs,
        ssh: Ssh,
        find_watchdog_flaw: Callable[[str], str],
    ) -> None:
        """``find_watchdog_flaw``: why a device would not reset this host, or an empty text."""
        self._context = context
        self._system = system
        self._instances = instances
        self._disks = disks
        self._certificates = Certificates(context)
        self._find_watchdog_flaw = find_watchdog_flaw
        self._checks: Mapping[str, Check] = {
            "allowed-file-storage-paths": self._allowed_paths,
            "bridges": lambda names, _hv: interfaces.find_missing_bridges(_texts(names)),
            "certificates": lambda ca, _hv: self._certificates.problems(_convert(ca, str)),
            "client-cert": lambda _arg, _hv: self._client_certificate(),
            "drbd-helper": lambda _arg, _hv: self._drbd_helper(),
            "drbd-list": lambda _arg, _hv: host.minors(context.paths),
            "drbd-version": lambda _arg, _hv: host.version_text(context.paths),
            "etcd": lambda asked, _hv: etcd_health.find_flaws(
                context.paths.etcd_settings, *_convert(asked, tuple[str, str])
            ),
            "exclusive-pvs": lambda names, _hv: storage.shared_physicals(_texts(names)),
            "fence-agents": lambda pairs, _hv: fence_agents.find_flaws(
                context.paths, _convert(pairs, list[tuple[str, str]])
            ),
            "file-disks": lambda _arg, _hv: file.find_files(disks.environment()),
            "file-storage-bounds": self._storage_bounds,
            "file-storage-path": self._own_path,
            "filelist": lambda names, _hv: distributed.checksums(_texts(names), context.paths),
            "gluster-storage-path": self._mount_point,
            "guest-disks": lambda names, _hv: instances.plugged_disks(_texts(names)),
            "hvinfo": self._hypervisor_info,
            "hvparms": self._hypervisor_params,
            "hypervisor": self._hypervisors,
            "images": lambda _arg, _hv: shelf.Shelf(context.paths.images).sizes(),
            "instancelist": lambda names, _hv: instances.instance_list(_texts(names), {}),
            "lvlist": lambda names, _hv: storage.lv_list(_texts(names)),
            "master-ip": self._master_ip,
            "node-net-test": self._reach_nodes,
            "nodelist": lambda ports, _hv: _log_in(_convert(ports, dict[str, int])),
            "nodesetup": lambda _arg, _hv: self._node_setup(),
            "oob-paths": lambda paths, _hv: [programs.flaw(path) for path in _texts(paths)],
            "oslist": lambda _arg, _hv: guest_os.os_diagnose(),
            "pacemaker": lambda master, _hv: pacemaker.find_flaws(
                context.paths, context.name, _convert(master, str)
            ),
            "pvlist": lambda names, _hv: storage.physicals(_texts(names)),
            "shared-file-storage-path": self._shared_path,
            "ssh-clutter": lambda keys, _hv: ssh.find_clutter(_convert(keys, dict[str, str])),
            "ssh-setup": lambda keys, _hv: ssh.find_flaws(
                *_convert(keys, tuple[dict[str, str], dict[str, str]])
            ),
            "time": lambda _arg, _hv: clock.split(context.clock.now()),
            "unfinished-exports": lambda _arg, _hv: Exports(context).list_unfinished(),
            "user-scripts": self._user_scripts,
            "watchdogs": self._watchdog,
            "vglist": lambda _arg, _hv: storage.vg_list(),
            "version": lambda _arg, _hv: [
                constants.PROTOCOL_VERSION,
                constants.RELEASE_VERSION,
            ],
        }

    def node_verify(
        self, checkdict: JsonObject, cluster_name: str, all_hvparams: dict[str, JsonObject]
    ) -> JsonObject:
        """Answers by check; see the functions below for their shapes.

        Blocks for the tools it asks, and up to 5 s for nodes that cannot be reached.
        """
        return {name: self._run_one(name, checkdict[name], all_hvparams) for name in checkdict}

    def _run_one(self, name: str, argument: object, hvparams: dict[str, JsonObject]) -> Any:
        check = self._checks.get(name)
        if check is None:
            return _describe_unknown_check(name)
        try:
            return encode(check(argument, hvparams))
        except (errors.GanetiError, OSError) as err:
            reason = errors.text(err) if isinstance(err, errors.GanetiError) else str(err)
            return f"check {name} failed: {reason}"

    # hypervisors: the argument is a list of names, of (source, name, params) for hvparms

    def _hypervisors(self, names: object, hvparams: dict[str, JsonObject]) -> dict[str, str | None]:
        """``{hypervisor: null or what is missing}``"""
        result: dict[str, str | None] = {}
        for name in _texts(names):
            try:
                result[name] = self._context.hypervisor(name).verify(hvparams.get(name, {}))
            except errors.GanetiError as err:
                result[name] = errors.text(err)
        return result

    def _hypervisor_params(self, sets: object, _hv: dict[str, JsonObject]) -> list[list[str]]:
        """``[[source, hypervisor, text]]`` of those parameter sets that cannot be used"""
        problems: list[list[str]] = []
        for source, name, params in _convert(sets, list[tuple[str, str, JsonObject]]):
            try:
                self._instances.hypervisor_validate_params(name, params)
            except errors.GanetiError as err:
                problems.append([source, name, errors.text(err)])
        return problems

    def _hypervisor_info(self, name: object, hvparams: dict[str, JsonObject]) -> JsonObject:
        """Resources as in ``node_info``; the argument is one hypervisor"""
        hypervisor = _convert(name, str)
        return self._system.hypervisor_info(hypervisor, hvparams.get(hypervisor, {}))

    # storage

    def _own_path(self, path: object, _hv: dict[str, JsonObject]) -> str | None:
        """null, or why the directory cannot be used for file disks; a missing one is made on use"""
        directory, problem = self._storage_root(path)
        if problem is None and not directory.is_dir():
            above = next(each for each in directory.parents if each.exists())
            if directory.exists() or not os.access(above, os.W_OK | os.X_OK):
                return f"directory {directory} does not exist and cannot be made"
        return problem

    def _shared_path(self, path: object, _hv: dict[str, JsonObject]) -> str | None:
        """null, or why the directory cannot be used; a missing one is a mount that is missing"""
        directory, problem = self._storage_root(path)
        if problem is None and not directory.is_dir():
            return f"directory {directory} does not exist; mount the shared file system there"
        return problem

    def _storage_root(self, path: object) -> tuple[Path, str | None]:
        directory = Path(self._context.paths.local(_convert(path, str)))
        try:
            file_paths.check_root(directory, self._disks.environment())
        except errors.FileStoragePathError as err:
            return directory, errors.text(err)
        return directory, None

    def _mount_point(self, path: object, _hv: dict[str, JsonObject]) -> str | None:
        """null, or why the Gluster volume cannot be mounted there"""
        directory = Path(self._context.paths.local(_convert(path, str)))
        if not directory.is_absolute():
            return f"{directory} is not a full path"
        if directory.exists() and not directory.is_dir():
            return f"{directory} is not a directory"
        return None

    def _allowed_paths(self, _arg: object, _hv: dict[str, JsonObject]) -> list[str]:
        """Directories in the node's list that may not be used"""
        paths = self._context.paths
        return [
            str(directory)
            for directory in file_paths.load_allowed(paths) or ()
            if file_paths.root_problem(directory, paths) is not None
        ]

    def _storage_bounds(self, _arg: object, _hv: dict[str, JsonObject]) -> list[str] | None:
        """The node's list of directories for file disks; null: it has none"""
        listed = file_paths.load_allowed(self._context.paths)
        return None if listed is None else [str(directory) for directory in listed]

    def _drbd_helper(self) -> tuple[bool, str]:
        """(true, path of the helper), or false and why there is none"""
        try:
            return True, host.helper(self._context.paths)
        except errors.BlockDeviceError as err:
            return False, errors.text(err)

    # network

    def _master_ip(self, what: object, _hv: dict[str, JsonObject]) -> bool:
        """Whether the master's address answers; the argument is (master node, address).

        A refused connection is an answer: the address is up.
        """
        _node, address = _convert(what, tuple[str, str])
        target = probe.Target(address, resolve.port(constants.NODED))
        failure = probe.find_unreachable([target]).get(target)
        return failure is None or isinstance(failure, ConnectionRefusedError)

    def _reach_nodes(self, nodes: object, _hv: dict[str, JsonObject]) -> dict[str, str]:
        """``{node: text}`` of the nodes that this one cannot reach by TCP.

        The argument is ``[[node, primary address, secondary address]]`` with this node in it, or
        a pair of that and the names of the nodes to try.
        """
        listed, wanted = _nodes_to_reach(nodes)
        known = {name: (primary, secondary) for name, primary, secondary in listed}
        own = known.get(self._context.name)
        if own is None:
            return {self._context.name: "this node is not in the list of nodes to reach"}
        port = resolve.port(constants.NODED)
        targets: dict[probe.Target, tuple[str, str]] = {}
        for name in wanted:
            primary, secondary = known[name]
            targets[probe.Target(primary, port, own[0])] = (name, "primary")
            if secondary != primary:
                targets[probe.Target(secondary, port, own[1])] = (name, "secondary")
        problems: dict[str, list[str]] = {}
        for target, failure in probe.find_unreachable(list(targets)).items():
            name, which = targets[target]
            problems.setdefault(name, []).append(
                f"{which} address {target.host}:{target.port}: {failure.strerror}"
            )
        return {name: "; ".join(texts) for name, texts in problems.items()}

    # the host

    def _client_certificate(self) -> list[str] | None:
        """null, or ``[warning or error, what is wrong]`` of this node's own certificate"""
        problem = self._certificates.client()
        return None if problem is None else [problem[1], problem[2]]

    def _node_setup(self) -> list[str]:
        """Return the problems of the host and of the directories of the daemons, one text each."""
        needed = {"/sys/class/net": "sysfs is not mounted", "/proc/meminfo": "/proc is missing"}
        problems = [text for path, text in needed.items() if not os.path.exists(path)]
        paths = self._context.paths
        directories = (paths.data, paths.queue, paths.run, paths.log, paths.conf)
        return problems + [text for text in map(_directory_problem, directories) if text]

    def _watchdog(self, pairs: object, _hv: dict[str, JsonObject]) -> str:
        """What is wrong with the watchdog of this node, of those that are given with their nodes"""
        for device, node in _convert(pairs, list[tuple[str, str]]):
            if node == self._context.name:
                return self._find_watchdog_flaw(device)
        return ""

    def _user_scripts(self, paths: object, _hv: dict[str, JsonObject]) -> list[str]:
        """Those programs that are not there or cannot be run"""
        local = self._context.paths.local
        return [path for path in _texts(paths) if programs.flaw(local(path)) is not None]


def _describe_unknown_check(name: str) -> str:
    return f"not checked: check {name[:80]!r} is unknown to this node daemon"


def _directory_problem(path: Path) -> str | None:
    """Why daemons cannot rely on a directory of theirs; a missing one is made when needed."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISDIR(found.st_mode):
        return f"{path} is not a directory"
    if found.st_mode & stat.S_IWOTH:
        mode = stat.S_IMODE(found.st_mode)
        return f"everybody may write to {path} (mode {mode:04o}); to end that: chmod o-w {path}"
    if not os.access(path, os.W_OK | os.X_OK):
        return f"the node daemon may not write to {path}"
    return None


def _log_in(ports: Mapping[str, int]) -> dict[str, str]:
    """``{node: text}`` of the nodes that this one cannot log in to without being asked anything.

    The argument is ``{node: SSH port}``; the remote shell is that of ``gnt-cluster command``.
    """
    results = remote_shell.run_everywhere(
        list(ports), ["true"], timeout=LOG_IN_TIMEOUT, ports=ports
    )
    return {
        name: " | ".join(filter(None, map(str.strip, result.stderr.splitlines()[-3:])))
        or result.explain()
        for name, result in zip(ports, results, strict=True)
        if not result.ok
    }


def _nodes_to_reach(argument: object) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Nodes (name, primary, secondary address), and the names of those to try."""
    nodes = list[tuple[str, str, str]]
    try:
        listed, wanted = typed.convert(argument, tuple[nodes, list[str]])
    except msgspec.ValidationError:
        listed = _convert(argument, nodes)
        return listed, [name for name, _primary, _secondary in listed]
    missing = sorted(set(wanted) - {name for name, _primary, _secondary in listed})
    if missing:
        raise errors.ParameterError(f"no address is given for {', '.join(missing)}")
    return listed, wanted


def _texts(value: object) -> list[str]:
    return list(_convert(value, list[str]))


def _convert(value: object, shape: object) -> Any:
    """The argument of a check in its type; ParameterError."""
    try:
        return typed.convert(value, shape)
    except msgspec.ValidationError as err:
        raise errors.ParameterError(f"its argument cannot be used: {err}") from err
