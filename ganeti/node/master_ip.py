"""The address of the cluster on this node: a script puts it on and takes it off.

The script gets ``start`` or ``stop`` and an environment; it must be idempotent. Sites have scripts
of their own, so both stay as they are. The one that comes with us is ``tools/master-ip-setup``.
Below a root of its own (``GANETI_ROOTDIR``) it leaves the host's interfaces alone and keeps the
state in a file.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from ganeti import constants, errors, paths
from ganeti.base import process
from ganeti.base.run_parts import Result
from ganeti.model.ids import NodeUuid
from ganeti.net import interfaces, resolve
from ganeti.node.context import NodeContext
from ganeti.node.hooks import Hooks
from ganeti.rpc.calls.master_ip import MasterIpCalls
from ganeti.rpc.objects import MasterNetwork

log = logging.getLogger(__name__)

#: Seconds the script gets; it may announce the address to the network.
SCRIPT_TIMEOUT = 120.0
_PATH = "/sbin:/bin:/usr/sbin:/usr/bin"
_INSTALLED = ("/usr/local/lib/ganeti/tools", "/usr/lib/ganeti/tools")
_SCRIPT = "master-ip-setup"
_IPV6 = 10


def find_shipped_script() -> Path:
    """The script that comes with this version: beside the sources, or where it is installed.

    Raises:
        GenericError: it is not installed.
    """
    beside = Path(__file__).resolve().parents[2] / "tools"
    for directory in (beside, *map(Path, _INSTALLED)):
        if (directory / _SCRIPT).is_file():
            return directory / _SCRIPT
    raise errors.GenericError(
        f"the script {_SCRIPT} is in none of {', '.join(_INSTALLED)}; install it there"
    )


class MasterIp(MasterIpCalls):
    """Activates and releases the address of the cluster."""

    def __init__(self, context: NodeContext, hooks: Hooks) -> None:
        self._context = context
        self._hooks = hooks

    def node_activate_master_ip(
        self, master_params: MasterNetwork, use_external_mip_script: bool
    ) -> None:
        """Put the address on this node, with the hooks ``master-ip-turnup`` around it.

        Raises:
            CommandError: the script failed; the text carries its output.
            HooksAbort: a pre hook refused.
        """
        self._change(master_params, "start", "turnup", external=use_external_mip_script)

    def node_deactivate_master_ip(
        self, master_params: MasterNetwork, use_external_mip_script: bool
    ) -> None:
        """Take the address off this node, with the hooks ``master-ip-turndown`` around it."""
        self._change(master_params, "stop", "turndown", external=use_external_mip_script)

    def node_change_master_netmask(
        self, old_netmask: int, netmask: int, master_ip: str, master_netdev: str
    ) -> None:
        """Take the address off with one prefix length and put it on with the other.

        Nothing happens when this node does not have the address.
        """
        if not self._has(master_ip):
            return
        family = _IPV6 if ":" in master_ip else 2
        before, after = (
            MasterNetwork(
                uuid=NodeUuid(""),
                ip=master_ip,
                netmask=mask,
                netdev=master_netdev,
                ip_family=family,
            )
            for mask in (old_netmask, netmask)
        )
        for wanted in (before, after):
            _check(wanted)
        script = find_shipped_script()
        self._run(script, "stop", _environment(before))
        self._run(script, "start", _environment(after))

    def _has(self, ip: str) -> bool:
        if not paths.is_rooted():
            return interfaces.has_address(ip)
        try:
            return self._context.paths.master_ip_state.read_text().split()[:1] == [ip]
        except FileNotFoundError:
            return False

    def _change(self, wanted: MasterNetwork, verb: str, word: str, *, external: bool) -> None:
        _check(wanted)
        script = self._context.paths.master_ip_script if external else find_shipped_script()
        if external and not os.access(script, os.X_OK):
            raise errors.GenericError(
                f"{script} is missing or not executable, but the cluster is set to use it;"
                " install it, or use gnt-cluster modify --use-external-mip-script=no"
            )
        env = _environment(wanted)
        self._run_hooks(word, "pre", env)
        self._run(script, verb, env)
        self._run_hooks(word, "post", env)

    def _run(self, script: Path, verb: str, env: dict[str, str]) -> None:
        full = {"PATH": _PATH, **env}
        if paths.is_rooted():
            full[paths.ROOTDIR_VARIABLE] = str(self._context.paths.root)
        result = process.run([str(script), verb], timeout=SCRIPT_TIMEOUT, env=full, cwd=Path("/"))
        output = f"{result.stdout}\n{result.stderr}".strip()
        if not result.ok:
            raise errors.CommandError(f"{script} {verb} failed: {output or result.explain()}")
        log.info("%s %s: %s", script, verb, output or "done")

    def _run_hooks(self, word: str, phase: str, env: dict[str, str]) -> None:
        """Local hooks of this change; a pre hook that fails ends it."""
        name = f"master-ip-{word}"
        variables = {
            "PATH": _PATH,
            "GANETI_HOOKS_VERSION": str(constants.HOOKS_VERSION),
            "GANETI_HOOKS_PHASE": phase,
            "GANETI_HOOKS_PATH": name,
            "GANETI_OP_CODE": f"OP_CLUSTER_IP_{word.upper()}",
            "GANETI_OBJECT_TYPE": "CLUSTER",
            "GANETI_DATA_DIR": str(self._context.paths.data),
            "GANETI_CLUSTER": self._context.ssconf("cluster_name") or "",
            "GANETI_MASTER": self._context.ssconf("master_node") or self._context.name,
            **{f"GANETI_{key}": value for key, value in env.items()},
        }
        refused: list[list[str]] = []
        for script, code, output in self._hooks.hooks_runner(name, phase, variables):
            if code == Result.FAIL:
                refused.append([self._context.name, script, output])
        if refused and phase == "pre":
            raise errors.HooksAbort(refused)
        for _node, script, output in refused:
            log.warning("post hook %s failed: %s", script, output)


def _environment(wanted: MasterNetwork) -> dict[str, str]:
    return {
        "MASTER_NETDEV": wanted.netdev,
        "MASTER_IP": wanted.ip,
        "MASTER_NETMASK": str(wanted.netmask),
        "CLUSTER_IP_VERSION": "6" if wanted.ip_family == _IPV6 else "4",
    }


def _check(wanted: MasterNetwork) -> None:
    """Refuse what cannot be an address, a prefix length or a device; ParameterError."""
    longest = 128 if ":" in wanted.ip else 32
    if not resolve.is_address(wanted.ip):
        raise errors.ParameterError(f"{wanted.ip[:80]!r} is not an IP address")
    if not 0 < wanted.netmask <= longest:
        raise errors.ParameterError(f"the prefix length of {wanted.ip} cannot be {wanted.netmask}")
    if not wanted.netdev or len(wanted.netdev) > 15 or "/" in wanted.netdev or " " in wanted.netdev:
        raise errors.ParameterError(f"{wanted.netdev[:80]!r} is not a network device")
