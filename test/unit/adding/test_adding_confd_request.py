"""Add a request of ``ganeti-confd`` in the files that ``doc/adding.md`` names, and ask."""

from __future__ import annotations

from pathlib import Path

from own_package import REPOSITORY, OwnPackage

ROWS = ("request of `ganeti-confd`",)

KIND = "    GROUP_NAMES = 12\n"
ANSWER = '''def _groups(view: View, _query: object) -> Reply:
    """Names of all node groups."""
    names = sorted(group.name for group in view.config.groups.values())
    return Reply(status=Status.OK, answer=names, serial=view.cluster_serial)


'''
ENTRY = "    Kind.GROUP_NAMES: _groups,\n"

ASK = f"""
import sys

sys.path[:0] = [{str(REPOSITORY / "test/unit/confd")!r}]
import confd_cluster
from ganeti.confd import answers
from ganeti.confd.messages import Kind, Request
from ganeti.tools import confd_client

asked = Request(protocol=1, type=int(Kind.GROUP_NAMES), query=None, rsalt="a")
reply = answers.answer(answers.View(confd_cluster.config()), asked)
print(reply.status.name, reply.answer)
print(answers.answer(None, asked).status.name)
print("named:", "group-names" in confd_client.parser().format_help())
"""


def test_a_request_in_two_files_is_answered_and_has_a_name(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.insert("confd/messages.py", KIND, before="    PING = 0\n")
    package.insert("confd/answers.py", ANSWER, before="_ANSWERS: Mapping[")
    package.insert("confd/answers.py", ENTRY, before="    Kind.PING: _ping,\n")
    assert package.output(ASK, tmp_path / "root") == [
        "OK ['default']",
        "ERROR",
        "named: True",
    ]
    assert package.touched == {"confd/messages.py", "confd/answers.py"}
