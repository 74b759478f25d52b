"""Add a method to the Python client of the remote API, and call it over TLS."""

from __future__ import annotations

from pathlib import Path

from own_package import OwnPackage

ROWS = ("method of the Python client of the remote API",)

METHOD = '''
    def RestartNode(
        self, node: str, force: bool, dry_run: bool = False, reason: Reason = None
    ) -> int:
        """Restart a node at once."""
        query = [("force", int(force)), *dry(dry_run)]
        return int(self._change("POST", f"/nodes/{node}/powercycle", query, reason))
'''
CALL = f"""
import sys

sys.path[:0] = [{str(Path(__file__).parent)!r}]
from own_api import OwnApi
from ganeti.rapi.client import GanetiApiError

api = OwnApi()
try:
    with api.client("anna") as client:
        print("job:", client.RestartNode("n1", True, dry_run=True, reason="why"))
    with api.client("reader") as client:
        try:
            client.RestartNode("n1", True)
        except GanetiApiError as err:
            print(err.code, err)
    (op,) = api.master.ops
    print(op)
    print("reason:", api.master.jobs[0][0]["reason"][0][:2])
finally:
    api.stop()
"""


def test_a_method_in_one_file_is_called(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.insert("rapi/client_nodes.py", METHOD)
    assert package.output(CALL, tmp_path / "root") == [
        "job: 1",
        "403 HTTP 403: User 'reader' has none of the permissions: node.powercycle, write",
        "{'OP_ID': 'OP_NODE_POWERCYCLE', 'node_name': 'n1', 'force': True, 'dry_run': True}",
        "reason: ['gnt:user', 'why']",
    ]
    assert package.touched == {"rapi/client_nodes.py"}
