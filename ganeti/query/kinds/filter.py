"""Rules that decide which queued jobs may start. Rows are rule objects."""

from __future__ import annotations

from collections.abc import Sequence

from ganeti.filters.answer import FieldKind
from ganeti.model.filter_rule import FilterRule
from ganeti.query.field import Context, Kind

OTHER = FieldKind.OTHER


class FilterKind(Kind[FilterRule]):
    name = "filter"
    name_field = "uuid"
    index_fields = frozenset({"uuid"})

    def rows(self, ctx: Context) -> Sequence[FilterRule]:
        return ctx.tables.filters

    def candidates(self, ctx: Context, values: set[object]) -> Sequence[FilterRule]:
        return [rule for rule in ctx.tables.filters if rule.uuid in values]


KIND = FilterKind()

KIND.attribute("uuid", "UUID", OTHER, "Identity of the rule", "uuid")
KIND.attribute(
    "watermark", "Watermark", OTHER, "Last job that was there when the rule was made", "watermark"
)
KIND.attribute("priority", "Priority", OTHER, "Rules with low numbers are tried first", "priority")
KIND.attribute("action", "Action", OTHER, "What happens to jobs that fit the rule", "action")


@KIND.value("predicates", "Predicates", OTHER, "Conditions that a job must fulfil, all of them")
def _predicates(rule: FilterRule) -> list[object]:
    return list(rule.predicates)


@KIND.value("reason_trail", "ReasonTrail", OTHER, "Who made the rule, when and why")
def _reason_trail(rule: FilterRule) -> list[object]:
    return list(rule.reason_trail)
