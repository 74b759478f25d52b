"""Backups in repositories. Rows are pairs of a repository and what it says of one backup.

The repositories are those that plans of instances name, and the default one. The master node reads
them; one that cannot be read is one row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ganeti.filters.answer import FieldKind
from ganeti.filters.compile import Cell, Column
from ganeti.model.backup import Manifest
from ganeti.query.field import NODATA, UNAVAIL, Context, Kind, Task, make_failed_cell
from ganeti.query.live import NO_ANSWER, Need, NodeState

TEXT, NUMBER, UNIT, TIME = FieldKind.TEXT, FieldKind.NUMBER, FieldKind.UNIT, FieldKind.TIMESTAMP
_MIB = 1024 * 1024
#: Name of the default repository of nodes.
_DEFAULT = "default"
#: Fields that are known of a backup whose file cannot be read.
_OF_DAMAGED = ("instance", "id", "time", "proof")


class Row(NamedTuple):
    repository: str
    backup: Manifest | None = None


class BackupKind(Kind[Row]):
    name = "backup"
    name_field = "repository"
    index_fields = frozenset({"repository"})

    def rows(self, ctx: Context) -> Sequence[Row]:
        return [Row(name) for name in _repositories(ctx)]

    def lookup(self, ctx: Context, names: Sequence[object]) -> Sequence[Row]:
        return [row for row in self.rows(ctx) if (row.repository or _DEFAULT) in names]

    def candidates(self, ctx: Context, values: set[object]) -> Sequence[Row]:
        return [row for row in self.rows(ctx) if (row.repository or _DEFAULT) in values]

    def tasks(
        self, ctx: Context, needs: frozenset[Need], rows: Sequence[Row]
    ) -> Mapping[Need, Task]:
        names = [row.repository for row in rows]
        return {Need.BACKUPS: lambda: ctx.sources.backups(names)}

    def choose_rows(self, ctx: Context, rows: Sequence[Row], named: bool) -> Sequence[Row]:
        answers = ctx.live.get(Need.BACKUPS)
        if answers is None:
            return rows
        found: list[Row] = []
        for row in rows:
            backups = answers.get(row.repository, NO_ANSWER).payload
            if backups is None:
                found.append(row)
                continue
            found.extend(Row(row.repository, each) for each in backups)
        return found


def _repositories(ctx: Context) -> list[str]:
    plans = (instance.backup for instance in ctx.tables.instances)
    named = {plan.repository or "" for plan in plans if plan is not None}
    return sorted({"", *named})


KIND = BackupKind()

KIND.value(
    "repository", "Repository", TEXT, "Repository of the backup: a directory, a name, or default"
)(lambda row: row.repository or _DEFAULT)


def _add(
    name: str,
    title: str,
    kind: FieldKind,
    doc: str,
    read: Callable[[Manifest], object],
    *,
    hostname: bool = False,
) -> None:
    """A field of what the repository says of a backup."""

    @KIND.field(name, title, kind, doc, needs=[Need.BACKUPS], hostname=hostname)
    def _field(ctx: Context) -> Column[Row]:
        answers = ctx.live[Need.BACKUPS]

        def column(row: Row) -> Cell:
            answer = answers.get(row.repository, NO_ANSWER)
            if answer.state is not NodeState.OK:
                return make_failed_cell(answer)
            if row.backup is None:
                return NODATA
            if row.backup.damage and name not in _OF_DAMAGED:
                return UNAVAIL
            value = read(row.backup)
            return UNAVAIL if value is None else (0, value)

        return column


def _proof(manifest: Manifest) -> str | None:
    proof = manifest.proof
    if manifest.damage or (proof is not None and not proof.good):
        return f"bad: {manifest.damage or (proof.text if proof else '')}"
    return None if proof is None else proof.how


_add(
    "instance", "Instance", TEXT, "Name that the instance had", lambda b: b.instance, hostname=True
)
_add("instance_uuid", "InstanceUUID", TEXT, "UUID of the instance", lambda b: b.instance_uuid)
_add("id", "Backup", TEXT, "Id of the backup", lambda b: b.id)
_add("time", "Time", TIME, "When it was made", lambda b: b.time)
_add(
    "mode",
    "Mode",
    TEXT,
    'How it found what to store: "full", "dirty" (only what the guest has written), "compare"',
    lambda b: str(b.mode),
)
_add(
    "consistency",
    "Consistency",
    TEXT,
    'State of the disks: "clean" (the instance was stopped), "frozen" (its guest agent had written'
    ' everything), "crash" (as after a power cut)',
    lambda b: None if b.consistency is None else str(b.consistency),
)
_add("base", "Base", TEXT, "Id of the backup that it was compared with", lambda b: b.base)
_add("disks", "Disks", NUMBER, "Number of disks", lambda b: len(b.disks))
_add("size", "Size", UNIT, "Size of all disks", lambda b: -(-b.size // _MIB))
_add("read", "Read", UNIT, "What was read from disks, rounded up", lambda b: -(-b.read // _MIB))
_add("stored", "Stored", UNIT, "What was stored, rounded up", lambda b: -(-b.stored // _MIB))
_add("read_bytes", "ReadBytes", NUMBER, "Bytes that were read from disks", lambda b: b.read)
_add("stored_bytes", "StoredBytes", NUMBER, "Bytes that were stored", lambda b: b.stored)
_add("proof", "Verified", TEXT, "How it was verified, or what is wrong with it", _proof)
_add(
    "proof_time",
    "VerifiedTime",
    TIME,
    "When it was verified last",
    lambda b: None if b.proof is None else b.proof.time,
)
_add(
    "booted",
    "Booted",
    TIME,
    "When a copy of it has booted last",
    lambda b: None if b.proof is None else b.proof.booted,
)
