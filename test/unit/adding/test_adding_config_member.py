"""Add a member to an object of the configuration in its one file; follow it everywhere."""

from __future__ import annotations

from pathlib import Path

from own_package import REPOSITORY, OwnPackage

ROWS = ("member of an object of the configuration",)

MEMBER = """    landlord: Annotated[str | None, doc("Who owns the servers")] = None
"""

EVERYWHERE = f"""
import json, sys, tempfile
from pathlib import Path

sys.path[:0] = [{str(REPOSITORY / "test/support")!r}]
from one_process import OneProcess
from ganeti.base import jsonio
from ganeti.config.changes import Author
from ganeti.config.upgrade import downgrade, versions
from ganeti.config.upgrade.upgrade import upgrade
from ganeti.master import history
from ganeti.model import base

cluster = OneProcess(Path(tempfile.mkdtemp()) / "cluster", count=2)
where = cluster.paths["node1"]
try:
    (group,) = cluster.config.groups.values()
    print("before:", group.landlord)
    changed = base.replace(group, landlord="anna")
    cluster.store.change("sell", Author(), lambda draft: draft.put(changed))
    line = where.journal_file.read_text().splitlines()[-1]
    print("in the journal:", '"landlord":"anna"' in line)
    cluster.new_master()
    print("after a restart:", cluster.config.groups[group.uuid].landlord)
    config = cluster.config
    past = history.query(config, cluster.store.history, {{"object": group.name, "kind": "group"}})
    print("history:", past["changes"][-1]["objects"][0]["keys"])
finally:
    cluster.close()
raw = jsonio.loads(where.config_file.read_bytes())
print("in config.data:", raw["nodegroups"][group.uuid].get("landlord"))
found = downgrade.downgrade(config, versions.TARGETS[0])
print("dropped:", "landlord" not in found.raw["nodegroups"][group.uuid])
print("said:", found.report.warnings)
older = upgrade(found.raw).config
print("after an upgrade:", older.groups[group.uuid].landlord)
from ganeti.config import reference
print(*[line for line in reference.page().splitlines() if "landlord" in line])
"""


def test_a_member_in_one_file_is_kept_and_followed(tmp_path: Path) -> None:
    package = OwnPackage(tmp_path / "package", *ROWS)
    package.insert("model/group.py", MEMBER, before="    hv_state_static:")
    assert package.output(EVERYWHERE, tmp_path / "root") == [
        "before: None",
        "in the journal: True",
        "after a restart: anna",
        "history: [{'key': 'landlord', 'old': None, 'new': 'anna'}]",
        "in config.data: anna",
        "dropped: True",
        "said: ['nodegroups/default/landlord will be forgotten: only this software has it']",
        "after an upgrade: None",
        "| `landlord` * | text | unset | Who owns the servers |",
    ]
    assert package.touched == {"model/group.py"}
