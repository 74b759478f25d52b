"""Stand-ins for the programs of Pacemaker that nodes ask: ``crm_node`` and ``cibadmin``.

What they say is in files, so that a test says what Pacemaker is like: whether it runs, whether it
has quorum, and what its configuration is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_PROGRAM = """\
#!/bin/sh
# Stands in for a program of Pacemaker.
case "${{0##*/}} $*" in
"crm_node --quorum") answer='{place}/quorum' ;;
"cibadmin --query --local") answer='{place}/cib.xml' ;;
*) echo "unknown words: $*" >&2; exit 64 ;;
esac
if [ ! -e "$answer" ]; then
    echo "error: Could not connect to cluster: Connection refused" >&2
    exit 102
fi
exec cat "$answer"
"""
#: Configuration of a cluster with STONITH and the resource.
_CIB = """\
<cib validate-with="pacemaker-3.9" have-quorum="1">
  <configuration>
    <crm_config><cluster_property_set id="options">{options}</cluster_property_set></crm_config>
    <nodes/>
    <resources>{resources}</resources>
    <constraints/>
  </configuration>
  <status/>
</cib>
"""
ROLE = '<primitive id="role" class="ocf" provider="ganeti" type="ganeti-master-role"/>'
FENCE = '<primitive id="fence" class="stonith" type="fence_ipmilan"/>'


def write_cib(options: Mapping[str, str] | None = None, resources: str = ROLE + FENCE) -> str:
    """A configuration of Pacemaker."""
    pairs = "".join(
        f'<nvpair id="o-{name}" name="{name}" value="{value}"/>'
        for name, value in (options or {}).items()
    )
    return _CIB.format(options=pairs, resources=resources)


class StandInPacemaker:
    """Pacemaker on the nodes with these root directories; it runs, and has quorum."""

    def __init__(self, place: Path, *roots: Path) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self._quorum = place / "quorum"
        self._cib = place / "cib.xml"
        self.set_quorum(True)
        self.configure(write_cib())
        for root in roots:
            directory = root / "usr/local/sbin"
            directory.mkdir(parents=True, exist_ok=True)
            for name in ("crm_node", "cibadmin"):
                program = directory / name
                program.write_text(_PROGRAM.format(place=place))
                program.chmod(0o755)

    def set_quorum(self, has_quorum: bool | None) -> None:
        """What ``crm_node`` says; None: Pacemaker does not run."""
        if has_quorum is None:
            self._quorum.unlink()
            return
        new = self._quorum.with_suffix(".new")
        new.write_text(f"{int(has_quorum)}\n")
        new.rename(self._quorum)

    def configure(self, cib: str | None) -> None:
        """What ``cibadmin`` says; None: Pacemaker does not run."""
        if cib is None:
            self._cib.unlink()
        else:
            self._cib.write_text(cib)
