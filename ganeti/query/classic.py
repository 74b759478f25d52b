"""The old query calls: bare values instead of values with a status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ganeti.errors import ErrorCode, OpPrereqError
from ganeti.model.config import Config
from ganeti.query.engine import Query, QueryAnswer, kind_of
from ganeti.query.field import Kind
from ganeti.query.live import Sources

#: The fields that QueryExports answers with.
EXPORT_FIELDS = ("node", "export")


def classic(
    sources: Sources,
    what: str,
    names: Sequence[object] | None,
    fields: Sequence[str],
    *,
    redacted: bool = False,
) -> list[list[object]]:
    """Rows of bare values at once; see :func:`compile_query` and :func:`strip_statuses`."""
    return strip_statuses(
        compile_query(sources, what, names, fields, redacted=redacted).run(sources)
    )


def strip_statuses(answer: QueryAnswer) -> list[list[object]]:
    """Rows of bare values, None where a value has a status other than normal."""
    return [[value for _, value in row] for row in answer["data"]]


def compile_query(
    sources: Sources,
    what: str,
    names: Sequence[Any] | None,
    fields: Sequence[str],
    use_locking: bool = False,
    *,
    redacted: bool = False,
) -> Query:
    """The query that an old call means.

    ``names`` may be full names, short names or uuids; nothing or an empty list means all. They
    select: a name that matches nothing is silently absent. Jobs are looked up by id instead: one
    row for each id in the given order, of None after the id for a job that does not exist.

    Raises OpPrereqError (wrong_input) for unknown fields, which it lists, and for locking.
    """
    kind = kind_of(what)
    if use_locking:
        raise OpPrereqError("Queries do not take locks; ask again without locking", ErrorCode.INVAL)
    wrong = [name for name in fields if kind.find(name) is None]
    if wrong:
        raise OpPrereqError(f"Unknown output fields selected: {', '.join(wrong)}", ErrorCode.INVAL)
    if names and what == "export":
        nodes = sources.config.nodes
        names = [nodes[name].name if name in nodes else name for name in names]
    if names and what == "disk":
        names = [_disk_uuid(sources.config, str(name)) for name in names]
    qfilter = name_filter(kind, names) if names else None
    return Query(kind, fields, qfilter, look_up=what == "job", redacted=redacted)


def _disk_uuid(config: Config, name: str) -> str:
    """Uuid of a disk by any of its names, of which a filter knows only the uuid.

    Raises OpPrereqError (resource_not_unique) for a name that several disks have.
    """
    try:
        return config.disk(name).uuid
    except OpPrereqError as err:
        if err.args[1:] == (str(ErrorCode.NOENT),):
            return name
        raise


def name_filter(kind: Kind[object], names: Sequence[object]) -> list[object]:
    """The filter that selects by name or uuid."""
    fields = [kind.name_field]
    if "uuid" in kind.fields and kind.name_field != "uuid":
        fields.append("uuid")
    return ["|", *(["==", field, name] for field in fields for name in names)]
