"""A filter rule as code: its predicates as functions, its action as a value. Pure.

A predicate is ``[kind, filter]``; the filter has the JSON form of ``ganeti.filters``. The
kinds compare:

``jobid``
    the field ``id``, compared with a number or with the word ``watermark``;
``opcode``
    the parameters of each opcode, of which one must match. Dots go into objects
    (``beparams.memory``), ``OP_ID`` is the name of the opcode;
``reason``
    ``source``, ``reason`` and ``timestamp`` of each entry of the reason trails, of which one
    must match.

In ``jobid`` and ``reason`` only comparisons can hold. A condition on a parameter that an opcode
does not have, or that has another type, does not hold either.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeAlias, TypeVar

from ganeti import errors
from ganeti.base.text import nearest
from ganeti.filters import compile, tree
from ganeti.filters.answer import FieldKind
from ganeti.filters.compile import Cell, Column, Operand
from ganeti.filters.patterns import Budget
from ganeti.model.job import JobRecord

R = TypeVar("R")
Op: TypeAlias = Mapping[str, Any]
Get: TypeAlias = Callable[[Any], Any]

_LOG = logging.getLogger(__name__)

KINDS = ("jobid", "opcode", "reason")
WORDS = ("ACCEPT", "CONTINUE", "PAUSE", "REJECT")
RATE_LIMIT = "RATE_LIMIT"
#: Stands for the highest job id at the time when the rule was made.
WATERMARK = "watermark"
#: Seconds that the regular expressions of one predicate may take for one job.
MATCH_LIMIT = 0.2
#: The greatest priority and rate limit.
HIGHEST = 2**31 - 1

_REASON_FIELDS = {"source": 0, "reason": 1, "timestamp": 2}


@dataclass(frozen=True, slots=True)
class JobFacts:
    """Facts for the rules: the id of a job and its opcodes in stored form, reasons included."""

    id: int
    ops: Sequence[Op]

    @classmethod
    def from_record(cls, record: JobRecord) -> JobFacts:
        return cls(record.id, [op.input for op in record.ops])


@dataclass(frozen=True, slots=True)
class Action:
    """The action of a rule; ``limit`` is that of RATE_LIMIT, 0 for the others."""

    name: str
    limit: int = 0


def action_of(raw: object) -> Action:
    """The action of a rule from its JSON form.

    Raises:
        OpPrereqError: there is no such action, or a limit that is not a number above 0.
    """
    if isinstance(raw, str) and raw in WORDS:
        return Action(raw)
    if isinstance(raw, list | tuple) and len(raw) == 2 and raw[0] == RATE_LIMIT:
        limit = raw[1]
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= HIGHEST:
            raise _make_error(
                f"{RATE_LIMIT} needs an integer from 1 on, not {format_value(raw[1])}"
            )
        return Action(RATE_LIMIT, limit)
    hint = nearest(raw, WORDS) if isinstance(raw, str) else ""
    raise _make_error(
        f"{format_value(raw)} is not an action of a filter rule{hint}: expected {', '.join(WORDS)}"
        f' or ["{RATE_LIMIT}", <number>]'
    )


def check_priority(raw: object) -> int:
    """The priority of a rule; OpPrereqError unless it is a number from 0 on."""
    if isinstance(raw, bool) or not isinstance(raw, int) or not 0 <= raw <= HIGHEST:
        raise _make_error(
            f"the priority of a filter rule must be an integer from 0 to {HIGHEST},"
            f" not {format_value(raw)}"
        )
    return raw


class Predicates:
    """All predicates of one rule, compiled; a job must fulfil each of them."""

    def __init__(self, raw: object, watermark: int) -> None:
        """Compile the JSON form.

        Raises:
            OpPrereqError: what is wrong with which predicate.
        """
        if not isinstance(raw, list | tuple):
            raise _make_error(
                f"the predicates of a filter rule must be a list, not {format_value(raw)}"
            )
        self._budget = Budget(MATCH_LIMIT)
        self._tests: list[Callable[[JobFacts], bool]] = []
        for number, item in enumerate(raw, 1):
            try:
                self._tests.append(self._compile(item, watermark))
            except (errors.QueryFilterParseError, errors.ParameterError) as err:
                raise _make_error(f"predicate {number} is wrong: {errors.text(err)}") from err
        self._warned = False

    def _compile(self, item: object, watermark: int) -> Callable[[JobFacts], bool]:
        if not (isinstance(item, list | tuple) and len(item) == 2 and isinstance(item[0], str)):
            raise errors.ParameterError(
                f"expected [kind, filter] with one of the kinds {', '.join(KINDS)},"
                f" not {format_value(item)}"
            )
        kind, raw = item
        if kind == "jobid":
            of_id = _Compiler[int](_id_getter, comparisons_only=True, watermark=watermark)
            test = of_id.compile(raw, self._budget)
            return lambda job: test(job.id)
        if kind == "opcode":
            of_op = _Compiler[Op](_parameter_getter)
            matches = of_op.compile(raw, self._budget)
            return lambda job: any(map(matches, job.ops))
        if kind == "reason":
            of_entry = _Compiler[Sequence[Any]](_reason_getter, comparisons_only=True)
            fits = of_entry.compile(raw, self._budget)
            return lambda job: any(fits(entry) for op in job.ops for entry in _trail(op))
        raise errors.ParameterError(
            f"unknown kind {kind!r:.40}{nearest(kind, KINDS)}; choose from {', '.join(KINDS)}"
        )

    def match(self, job: JobFacts) -> bool:
        """Whether the job fulfils all of them; True when there are none.

        A regular expression that takes longer than ``MATCH_LIMIT`` counts as not matching, and
        the log tells it once.
        """
        for test in self._tests:
            self._budget.start()
            try:
                if not test(job):
                    return False
            except errors.ParameterError as err:
                if not self._warned:
                    _LOG.warning("job %s: a filter rule was left out: %s", job.id, err)
                self._warned = True
                return False
        return True


class _Compiler(Generic[R]):
    """Compiles one filter over rows of a kind.

    Each condition gets a column of its own, under the number of the condition as a name, which
    returns nothing when the value does not have the type that the condition needs.
    """

    def __init__(
        self,
        getter: Callable[[str], Callable[[R], object]],
        *,
        comparisons_only: bool = False,
        watermark: int | None = None,
    ) -> None:
        self._getter = getter
        self._comparisons_only = comparisons_only
        self._watermark = watermark
        self._columns: list[Column[R]] = []

    def compile(self, raw: object, budget: Budget) -> Callable[[R], bool]:
        """A test of a row; null as a filter is true for every row.

        Raises:
            QueryFilterParseError, ParameterError: the filter is wrong, or its field unknown.
        """
        read = tree.from_wire(raw)
        if read is None:
            return lambda _row: True
        placed = self._place(read)
        return compile.predicate(
            placed,
            lambda name: Operand(name, FieldKind.OTHER),
            lambda name: self._columns[int(name)],
            budget,
        )

    def _place(self, node: tree.Filter) -> tree.Filter:
        if isinstance(node, tree.And | tree.Or):
            return replace(node, operands=tuple(map(self._place, node.operands)))
        if isinstance(node, tree.Not):
            return tree.Not(self._place(node.operand))
        get = self._getter(node.field)
        if self._comparisons_only and not isinstance(node, tree.Compare):
            return tree.Or(())
        if isinstance(node, tree.Compare) and self._watermark is not None:
            node = replace(node, value=self._job_id(node.value))
        self._columns.append(_make_column(get, _fits(node)))
        return replace(node, field=str(len(self._columns) - 1))

    def _job_id(self, value: tree.Value) -> int:
        if value == WATERMARK and self._watermark is not None:
            return self._watermark
        if isinstance(value, str):
            if not (value.isascii() and value.isdigit() and len(value) <= 18):
                raise errors.ParameterError(
                    f"{value!r:.40} is not a job ID: expected a number or '{WATERMARK}'"
                )
            return int(value)
        return value


def _make_column(get: Callable[[R], object], fits: Callable[[object], bool]) -> Column[R]:
    def column(row: R) -> Cell:
        value = get(row)
        return 0, value if fits(value) else None

    return column


def _fits(condition: tree.Condition) -> Callable[[object], bool]:
    """Whether a value has the type that a condition can be asked of."""
    if isinstance(condition, tree.Truth):
        return lambda value: isinstance(value, bool)
    if isinstance(condition, tree.Contains):
        of_item = _is_text if isinstance(condition.value, str) else _is_number
        return lambda value: isinstance(value, list | tuple) and all(map(of_item, value))
    if isinstance(condition, tree.Match) or isinstance(condition.value, str):
        return _is_text
    return _is_number


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _id_getter(name: str) -> Get:
    if name != "id":
        raise errors.ParameterError(f"a job id has no field '{name:.60}', only 'id'")
    return lambda job_id: job_id


def _parameter_getter(name: str) -> Get:
    path = name.split(".")

    def get(op: object) -> object:
        value = op
        for key in path:
            if not isinstance(value, dict):
                return None
            value = value.get(key)
        return value

    return get


def _reason_getter(name: str) -> Get:
    index = _REASON_FIELDS.get(name)
    if index is None:
        raise errors.ParameterError(
            f"a reason has no field '{name:.60}'{nearest(name[:60], _REASON_FIELDS)};"
            f" choose from {', '.join(_REASON_FIELDS)}"
        )
    place = index
    return lambda entry: entry[place]


def _trail(op: Op) -> Sequence[Sequence[object]]:
    return op.get("reason") or ()


def format_value(value: object) -> str:
    """A JSON value in a message: short, and whatever is nested only as a list or an object."""
    if isinstance(value, list | tuple):
        parts = [
            "[...]" if isinstance(part, list | tuple) else format_value(part) for part in value[:4]
        ]
        return f"[{', '.join(parts + ['...'] * (len(value) > 4))}]"
    if isinstance(value, dict):
        return "an object"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int) and value.bit_length() > 100:
        return "a huge number"
    return repr(value) if len(str(value)) <= 60 else f"{str(value)[:60]!r}..."


def _make_error(text: str) -> errors.OpPrereqError:
    return errors.make_invalid_error(text)
