"""Adding, changing and deleting job filter rules, on behalf of LUXI clients."""

from __future__ import annotations

import re
import uuid as uuid_module
from collections.abc import Mapping
from typing import Any

from ganeti import errors
from ganeti.base.clock import Clock
from ganeti.config.changes import Author, Draft
from ganeti.config.store import Store
from ganeti.jobs.filter_predicates import Predicates, action_of, check_priority, format_value
from ganeti.model.filter_rule import FilterRule

_UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
#: Source of the entry that the master adds to the reason trail of a rule.
_SOURCE = "luxid"


def replace_rule(
    store: Store, clock: Clock, user: str, args: Mapping[str, Any], *, last_job: int
) -> str:
    """Put the rule of a ReplaceFilter request into the configuration; its uuid.

    Without a uuid it is a new rule; with one, the rule of that uuid is replaced, or made. In both
    cases ``last_job``, the highest job id, becomes its watermark. Blocks for one disk flush.

    Raises:
        OpPrereqError: wrong_input, saying what cannot be understood.
        ConfigurationError: the change cannot be written.
    """
    uuid = str(uuid_module.uuid4()) if args["uuid"] is None else check_uuid(args["uuid"])
    action_of(args["action"])
    Predicates(args["predicates"], last_job)
    trail = _check_trail(args["reason"])
    stamp = int(clock.now() * 1_000_000_000)
    rule = FilterRule(
        uuid=uuid,
        watermark=last_job,
        priority=check_priority(args["priority"]),
        predicates=tuple(args["predicates"]),
        action=args["action"],
        reason_trail=(*trail, [_SOURCE, "", stamp]),
    )
    store.change("replace filter rule", _author(user, trail), lambda draft: draft.put(rule))
    return uuid


def delete_rule(store: Store, user: str, uuid: Any) -> None:
    """Delete a rule. Blocks for one disk flush.

    Raises:
        OpPrereqError: the uuid is malformed, or there is no such rule.
        ConfigurationError: the change cannot be written.
    """
    check_uuid(uuid)

    def edit(draft: Draft) -> None:
        rule = draft.config.data.filters.get(uuid)
        if rule is None:
            raise errors.make_unknown_error(f"there is no filter rule {uuid}; see gnt-filter list")
        draft.delete(rule)

    store.change("delete filter rule", _author(user, []), edit)


def check_uuid(raw: object) -> str:
    """A uuid in its usual form; OpPrereqError for anything else."""
    if not isinstance(raw, str) or not _UUID.fullmatch(raw):
        raise errors.make_invalid_error(
            f"{format_value(raw)} is not a uuid of a filter rule: expected a form like"
            " 3f2c9a10-5b7e-4d68-9c1f-2a6b8e0d4c57",
        )
    return raw


def _check_trail(raw: object) -> list[list[object]]:
    if not isinstance(raw, list) or not all(map(_is_entry, raw)):
        raise errors.make_invalid_error(
            "a reason trail must be a list of [source, text, time in nanoseconds]",
        )
    return raw


def _is_entry(raw: object) -> bool:
    if not isinstance(raw, list) or len(raw) != 3:
        return False
    source, reason, stamp = raw
    return (
        isinstance(source, str)
        and isinstance(reason, str)
        and isinstance(stamp, int)
        and not isinstance(stamp, bool)
    )


def _author(user: str, trail: list[list[Any]]) -> Author:
    reason = next((text for source, text, _time in trail if source == "gnt:user"), "")
    return Author(user=user, reason=reason)
