"""Add a node call in the two files that ``doc/adding.md`` names, and make it over real TLS."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_package import OwnPackage

ROWS = ("node call",)

CONTRACT = '''
    @abstractmethod
    @call(timeout=FAST)
    def node_greet(self, guests: list[str], times: int) -> dict[str, int]:
        """How often each guest was greeted."""
'''
IMPLEMENTATION = """    def node_greet(self, guests: list[str], times: int) -> dict[str, int]:
        if times > 9:
            raise errors.HypervisorError("my voice is gone")
        if times == 9:
            return {"all": "of them"}  # not what was promised
        return {name: times for name in guests}

"""

#: A node daemon and a master in one process; every wire is real.
CLUSTER = """
import logging, socket, sys
from pathlib import Path

from ganeti import errors, paths
from ganeti.base.log_lines import CALL
from ganeti.model.node import Node
from ganeti.net import certs
from ganeti.net.http_server.server import HttpServer
from ganeti.net.tls.contexts import Identity
from ganeti.node.context import NodeContext
from ganeti.node.families import Families
from ganeti.rpc import wire
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import NodeRpc
from ganeti.rpc.server import RpcApp

where = paths.current()
for directory in (where.data, where.run, where.log, where.services.parent):
    directory.mkdir(parents=True, exist_ok=True)
name = "node1.example.com"
authority = certs.create_ca("test cluster")
certs.write_authority(authority, where.ca_key, where.ca_cert)
certs.write(where.server_cert, certs.issue_server(authority, name, ["127.0.0.1"]))
certs.write(where.client_cert, certs.issue_client(authority, name))


class Trace(logging.Handler):
    def emit(self, record):
        if record.name == "ganeti.rpc.server" and "took" in record.getMessage():
            print("log:", CALL.get(), record.getMessage().rsplit(" ", 2)[0])


logging.getLogger().addHandler(Trace())
logging.getLogger().setLevel(logging.DEBUG)

families = Families(NodeContext(where, name))
app = RpcApp(families.all, lambda environ: None)
identity = Identity(where.server_cert, where.ca_cert)
server = HttpServer(("127.0.0.1", 0), app, identity.server_context(), threads=2, name="rpc")
where.services.write_text(f"ganeti-noded {server.start()}/tcp\\n")
rpc = NodeRpc(Identity(where.client_cert, where.ca_cert).client_context())
node = Node(uuid="u", name=name, primary_ip="127.0.0.1", secondary_ip="127.0.0.1", group="g")

try:
    print("answer:", rpc.call_one(node, NodeCalls.node_greet, ["web", "db"], 2))
    for arguments in ((["web"], "twice"), (["web"],), (["web"], 10), (["web"], 9)):
        try:
            rpc.call_one(node, NodeCalls.node_greet, *arguments)
        except errors.GanetiError as err:
            print(f"{type(err).__name__}:", errors.text(err))
    print("time-out:", wire.specs()["node_greet"].timeout)
finally:
    rpc.stop()
    server.stop()
    families.stop()
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> OwnPackage:
    made = OwnPackage(tmp_path_factory.mktemp("node-call") / "package", *ROWS)
    made.insert("rpc/calls/system.py", CONTRACT)
    made.insert("node/system.py", IMPLEMENTATION, before="    def test_delay(")
    return made


def test_a_node_call_in_two_files_is_made_checked_and_traced(
    package: OwnPackage, tmp_path: Path
) -> None:
    lines = package.output(CLUSTER, tmp_path / "root")
    assert "answer: {'web': 2, 'db': 2}" in lines
    said = [line for line in lines if "Error: " in line]
    assert [line.partition(":")[0] for line in said] == [
        "ParameterError",
        "ParameterError",
        "HypervisorError",
        "RemoteError",
    ]
    assert all("node node1.example.com: node_greet: " in line for line in said)
    assert "$[1]" in said[0]  # the second argument has the wrong type
    assert "my voice is gone" in said[2]
    assert "unexpected answer" in said[3]
    assert lines.count("log: node_greet call node_greet took") == 5
    assert "time-out: 300.0" in lines
    assert len(package.touched) == 2


@pytest.mark.parametrize("left_out", ["    @abstractmethod\n", "    @call(timeout=FAST)\n"])
def test_a_node_call_without_a_decorator_does_not_start(tmp_path: Path, left_out: str) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.insert("rpc/calls/system.py", CONTRACT.replace(left_out, ""))
    package.insert("node/system.py", IMPLEMENTATION, before="    def test_delay(")
    done = package.run(CLUSTER, tmp_path / "root")
    assert done.returncode == 1
    assert "SystemCalls.node_greet needs @abstractmethod and @call(timeout=...)" in done.stderr


def test_a_node_call_without_its_node_side_does_not_start(tmp_path: Path) -> None:
    """The class of the family stays abstract, which mypy reports as well."""
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.insert("rpc/calls/system.py", CONTRACT)
    done = package.run(CLUSTER, tmp_path / "root")
    assert done.returncode == 1
    assert "abstract class System" in done.stderr
    assert "node_greet" in done.stderr
