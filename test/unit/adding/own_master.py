"""A master daemon's inside for a package of a test: one node, nobody is called, nothing runs.

It is imported by a program that :meth:`OwnPackage.run` runs, and lies below its root directory.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "master"))
from conftest import first_state

from ganeti import paths
from ganeti.config import store
from ganeti.master.core import Core
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.net import certs


def make() -> Core:
    """The core of a master that was not started; its node is online."""
    where = paths.current()
    for directory in (where.data, where.socket_dir, where.log, where.hooks, where.run):
        directory.mkdir(parents=True, exist_ok=True)
    authority = certs.create_ca("cluster.example.com")
    certs.write_authority(authority, where.ca_key, where.ca_cert)
    certs.write(where.client_cert, certs.issue_client(authority, "node1.example.com", []))
    state = first_state()
    nodes = {uuid: base.replace(node, offline=False) for uuid, node in state.nodes.items()}
    store.write_checkpoint(Config(base.replace(state.data, nodes=nodes)), where)
    return Core(where)
