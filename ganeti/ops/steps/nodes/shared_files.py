"""The files that the master sends to other nodes, and sending them.

Every node gets what daemons need to trust each other and to let users in; master candidates get
besides what is needed to become master. A file that the master itself does not have is left out.
"""

from __future__ import annotations

import grp
import pwd
import stat
from collections.abc import Iterable
from pathlib import Path

from ganeti import errors
from ganeti.model.node import Node
from ganeti.ops.operation import Context
from ganeti.paths import Paths
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.wire import encode_content


def list_for_all(paths: Paths) -> list[Path]:
    """Files of every node."""
    return [
        paths.ca_cert,
        paths.hmac_key,
        paths.domain_secret,
        paths.known_hosts,
        paths.spice_cert,
        paths.spice_ca_cert,
        paths.conf / "vnc-cluster-password",
    ]


def list_for_candidates(paths: Paths) -> list[Path]:
    """Files that only master candidates have; configuration and jobs are replicated to them."""
    return [
        paths.ca_key,
        paths.rapi_cert,
        paths.rapi_users,
        paths.rapi_tokens,
        paths.rapi_login,
        paths.ssh_public_keys,
    ]


def send(ctx: Context, nodes: Iterable[Node], files: Iterable[Path]) -> list[str]:
    """Copy files of the master to other nodes; returns a text for each failure."""
    targets = _list_other_nodes(ctx, nodes)
    failures: list[str] = []
    for path in files if targets else ():
        try:
            text, facts = path.read_text(encoding="utf-8"), path.stat()
        except FileNotFoundError:
            continue
        except OSError as err:
            failures.append(f"{path} cannot be read: {err.strerror}")
            continue
        failures += _upload(
            ctx,
            targets,
            path,
            text,
            stat.S_IMODE(facts.st_mode),
            (_user(facts.st_uid), _group(facts.st_gid)),
            (facts.st_atime, facts.st_mtime),
        )
    return failures


def _list_other_nodes(ctx: Context, nodes: Iterable[Node]) -> list[Node]:
    master = ctx.config.cluster.master_node
    return [node for node in nodes if node.uuid != master and not node.offline]


def _upload(
    ctx: Context,
    nodes: list[Node],
    path: Path,
    text: str,
    mode: int,
    owner: tuple[str, str],
    times: tuple[float, float],
) -> list[str]:
    answers = ctx.rpc.call_many(
        nodes,
        NodeCalls.upload_file_single,
        f"/{path.relative_to(ctx.paths.root)}",
        encode_content(text),
        mode,
        *owner,
        *times,
    )
    return [
        f"{path.name} was not sent: {errors.text(answer.error)}"
        for answer in answers.values()
        if answer.error is not None
    ]


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return "root"


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return "root"
