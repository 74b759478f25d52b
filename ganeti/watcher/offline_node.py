"""On a node that is marked offline, guests and DRBD devices end: they belong elsewhere now.

Only where the cluster wants it (``maintain_node_health``), and ganeti-confd of a master candidate
says that this node is offline: nobody calls such a node, so it has to ask by itself. To stop a
guest is always safe; nothing is started here.
"""

from __future__ import annotations

import logging
import os
import sys

from ganeti import constants, errors, paths
from ganeti.base import files, process
from ganeti.confd import client
from ganeti.confd.messages import Kind, Status
from ganeti.net import resolve
from ganeti.upkeep.round import Here

_LOG = logging.getLogger(__name__)
#: Seconds for answers of candidates, and until everything has ended.
_ANSWER, _LIMIT = 5.0, 900.0
_OFFLINE = 2


def run(here: Here) -> None:
    """Ask about this node, and end what runs here if it is offline.

    Raises:
        OpExecError: something could not be ended.
    """
    if _read(here, "maintain_node_health") != "True":
        return
    # What is listed before the answer is what the answer is about.
    found = _call("list")
    if found.code != constants.EXIT_SUCCESS:
        raise errors.OpExecError(f"what runs here is not known: {found.explain()}")
    listed = found.stdout.split()
    if not listed or not _is_offline(here):
        return
    _LOG.warning("this node is offline; ending %s", ", ".join(listed))
    done = _call("end", *listed)
    for line in done.stdout.splitlines():
        _LOG.info("%s", line)
    if done.code != constants.EXIT_SUCCESS:
        raise errors.OpExecError(done.stderr.strip() or f"exit code {done.code}")


def _read(here: Here, key: str) -> str:
    try:
        return files.read_text(here.paths.ssconf(key)).strip()
    except FileNotFoundError:
        return ""


def _call(*words: str) -> process.Result:
    argv = [sys.executable, "-m", "ganeti.node.offline_node", *words]
    return process.run(argv, timeout=_LIMIT, env=dict(os.environ))


def _is_offline(here: Here) -> bool:
    """Whether the newest answer says that this node is offline; False when nobody answers."""
    candidates = _read(here, "master_candidates_ips").split()
    if not candidates or not here.paths.hmac_key.exists():
        return False
    try:
        reply = client.ask(
            candidates,
            resolve.port(constants.CONFD),
            here.paths.hmac_key.read_bytes(),
            Kind.NODE_ROLE,
            paths.hostname(),
            timeout=_ANSWER,
            everybody=True,
            clock=here.clock,
        )
    except (errors.RpcError, OSError) as err:
        _LOG.info("node maintenance: whether this node is offline is not known: %s", err)
        return False
    return reply.status == Status.OK and reply.answer == _OFFLINE
