"""Add requests of the remote API: by an opcode, with differences, and one that only reads."""

from __future__ import annotations

from pathlib import Path

from own_package import OwnPackage

ROWS = ("request of the remote API",)

REST = """    rest: ClassVar[tuple[str, ...]] = ("PUT /2/delays",)
"""
DIFFERENCE = """    "PUT /2/delays": Difference(
        query=(_flag("on-master", "1 to wait on the master"), DRY_RUN),
        rename={"nodes": "on_nodes"},
        forbidden=frozenset({"interruptible"}),
        access=("read",),
    ),
"""
ROUTE = '''"""What the sky is like."""

from ganeti.rapi import schemas
from ganeti.rapi.route import ANYBODY, Call, Route


def _sky(call: Call) -> dict[str, str]:
    return {call.path["name"]: "blue"}


ROUTES = (
    Route("GET", "/2/skies/{name}", "The colour of a sky", _sky, access=("read",),
          answer=schemas.OBJECT),
    Route("GET", "/2/weather", "What the weather is like", lambda _call: "fine", access=ANYBODY,
          answer=schemas.TEXT),
)
'''

START = f"""
import sys

sys.path[:0] = [{str(Path(__file__).parent)!r}]
from own_api import OwnApi
from ganeti.rapi import openapi, reference, routes

api = OwnApi()
document, page = openapi.document(routes.ROUTES)["paths"], reference.page(routes.ROUTES)
"""
WRITES = """
request = "PUT /2/delays"
try:
    for user in ("anna", "reader", "nobody", None):
        print(api.ask(user, request, {"duration": 5, "nodes": ["n"]}, on_master=0))
    for body in ({"interruptible": True, "duration": 5}, {"repeat": -1, "duration": 5}):
        print(api.ask("anna", request, body))
    print(api.ask("anna", request, {"duration": 5, "on_nodes": ["n"], "on_master": False}))
    for op in api.master.ops:
        print(op)
finally:
    api.stop()
(found,) = document["/2/delays"].values()
print("OpenAPI:", [item["name"] for item in found["parameters"] if item["in"] == "query"])
print("reference:", "/2/delays" in page)
"""
READS = """
try:
    for user in ("anna", "nobody", None):
        print(api.ask(user, "GET /2/skies/west"), api.ask(user, "GET /2/weather"))
finally:
    api.stop()
print("OpenAPI:", sorted(document["/2/skies/{name}"]), sorted(document["/2/weather"]))
print("reference:", "/2/skies/{name}" in page, "/2/weather" in page)
"""


SUBMITTED = "{'OP_ID': 'OP_TEST_DELAY', 'duration': 5, 'on_nodes': ['n'], 'on_master': False}"


def test_a_request_in_one_file_follows_the_rule(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.insert("opcodes/test.py", REST, before="    duration: Annotated[Number")
    assert package.output(START + WRITES, tmp_path / "root") == [
        "HTTP 400: Unknown query argument 'on-master'; choose from dry-run, reason",
        "HTTP 403: User 'reader' has none of the permissions: cluster.delays, write",
        "HTTP 403: User 'nobody' has none of the permissions: cluster.delays, write",
        "HTTP 401: This resource needs a user name and a password",
        "1",
        "HTTP 400: OP_TEST_DELAY: parameter repeat: expected an integer of at least 0, got -1",
        "2",
        "{'OP_ID': 'OP_TEST_DELAY', 'interruptible': True, 'duration': 5}",
        SUBMITTED,
        "OpenAPI: ['dry-run', 'reason']",
        "reference: True",
    ]
    assert package.touched == {"opcodes/test.py"}


def test_a_request_differs_from_the_rule(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.insert("opcodes/test.py", REST, before="    duration: Annotated[Number")
    package.insert("rapi/differences.py", DIFFERENCE, before="    # groups")
    assert package.output(START + WRITES, tmp_path / "root") == [
        "1",
        "2",
        "HTTP 403: User 'nobody' has none of the permissions: cluster.delays, read",
        "HTTP 401: This resource needs a user name and a password",
        "HTTP 403: parameter interruptible cannot be set by the remote API",
        "HTTP 400: OP_TEST_DELAY: parameter repeat: expected an integer of at least 0, got -1",
        "HTTP 400: parameter on_master is set by the argument 'on-master' of the query, not by the"
        " body",
        SUBMITTED,
        SUBMITTED,
        "OpenAPI: ['on-master', 'dry-run', 'reason']",
        "reference: True",
    ]
    assert package.touched == {"opcodes/test.py", "rapi/differences.py"}


def test_a_request_that_reads_is_a_route(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.write("rapi/weather.py", ROUTE)
    package.insert("rapi/routes.py", "    weather,\n", before="    writes,\n")
    package.insert("rapi/routes.py", "    *weather.ROUTES,\n", before="    *writes.ROUTES,")
    assert package.output(START + READS, tmp_path / "root") == [
        "{'west': 'blue'} fine",
        "HTTP 403: User 'nobody' has none of the permissions: cluster.read, read fine",
        "HTTP 401: This resource needs a user name and a password fine",
        "OpenAPI: ['get'] ['get']",
        "reference: True True",
    ]
    assert package.touched == {"rapi/weather.py", "rapi/routes.py"}
