"""Which filter rule decides over a queued job, and how. Pure.

Rules are tried in the order of priority, watermark and uuid. The first one that fits the job and
whose action is not CONTINUE decides; without one the job may run.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ganeti import errors
from ganeti.base.text import join_names
from ganeti.jobs.filter_predicates import Action, JobFacts, Predicates, action_of
from ganeti.model.filter_rule import FilterRule

__all__ = ["Accept", "JobFacts", "Limited", "Pause", "Reject", "Rules", "Verdict"]

_LOG = logging.getLogger(__name__)
_USER = "gnt:user"


@dataclass(frozen=True, slots=True)
class Accept:
    """The job may run.

    ``limit`` is the uuid of the RATE_LIMIT rule among whose jobs it counts while it runs.
    """

    limit: str | None = None
    explanation: str = "no filter rule holds the job"


@dataclass(frozen=True, slots=True)
class Pause:
    """The job stays in the queue until the rule is changed or deleted."""

    rule: FilterRule

    @property
    def explanation(self) -> str:
        return f"{_describe(self.rule)} pauses the job until the rule is changed or deleted"


@dataclass(frozen=True, slots=True)
class Limited:
    """The job stays in the queue until one of the ``running`` jobs of the rule has ended."""

    rule: FilterRule
    limit: int
    running: tuple[int, ...]

    @property
    def explanation(self) -> str:
        ids = join_names(str(job_id) for job_id in self.running)
        return f"{_describe(self.rule)} lets {self.limit} such jobs run at a time, now {ids}"


@dataclass(frozen=True, slots=True)
class Reject:
    """The job is canceled."""

    rule: FilterRule

    @property
    def explanation(self) -> str:
        return f"{_describe(self.rule)} rejects the job"

    @property
    def error(self) -> errors.JobCanceled:
        """The result of the job's opcodes."""
        return errors.JobCanceled(f"The job was not run: {self.explanation}")


Verdict: TypeAlias = Accept | Pause | Limited | Reject

ACCEPTED = Accept()


@dataclass(frozen=True, slots=True)
class _Compiled:
    rule: FilterRule
    action: Action
    predicates: Predicates


class Rules:
    """The rules of a configuration, compiled. Immutable; false when there are none."""

    def __init__(self, rules: Iterable[FilterRule] = (), previous: Rules | None = None) -> None:
        """Compile rules; those that ``previous`` has, as the very same objects, are taken over.

        A rule of the configuration that makes no sense (no rule that was checked does) is left
        out, and the log says so.
        """
        known = previous._compiled if previous is not None else {}
        self._compiled: dict[str, _Compiled] = {}
        for rule in sorted(rules, key=lambda r: (r.priority, r.watermark, r.uuid)):
            old = known.get(rule.uuid)
            if old is not None and old.rule is rule:
                self._compiled[rule.uuid] = old
                continue
            try:
                action = action_of(rule.action)
                predicates = Predicates(rule.predicates, rule.watermark)
            except errors.OpPrereqError as err:
                _LOG.error("filter rule %s has no effect: %s", rule.uuid, errors.text(err))
                continue
            self._compiled[rule.uuid] = _Compiled(rule, action, predicates)
        self._deciding = [
            item for item in self._compiled.values() if item.action.name != "CONTINUE"
        ]

    def __bool__(self) -> bool:
        return bool(self._deciding)

    def decide(self, job: JobFacts, running: Mapping[str, Collection[int]]) -> Verdict:
        """The verdict of the rules on a queued job.

        ``running`` has for the uuid of a RATE_LIMIT rule the ids of the jobs that run under it;
        rules may be missing. An id that is the job's own does not count.
        """
        found = self._find_first(job)
        if found is None:
            return ACCEPTED
        rule, action = found.rule, found.action
        if action.name == "PAUSE":
            return Pause(rule)
        if action.name == "REJECT":
            return Reject(rule)
        if action.name == "ACCEPT":
            return Accept(None, f"{_describe(rule)} accepts the job")
        others = tuple(sorted(set(running.get(rule.uuid, ())) - {job.id}))
        if len(others) >= action.limit:
            return Limited(rule, action.limit, others)
        text = f"{_describe(rule)} has room for the job: {len(others)} of {action.limit} run"
        return Accept(rule.uuid, text)

    def limit_of(self, job: JobFacts) -> str | None:
        """Uuid of the RATE_LIMIT rule that decides over a job, None when no such rule does."""
        found = self._find_first(job)
        return found.rule.uuid if found is not None and found.action.limit else None

    def count(self, running: Iterable[JobFacts]) -> dict[str, set[int]]:
        """Which running jobs belong to which RATE_LIMIT rule; for use after rules changed.

        Jobs that ran before a rule was made count for it.
        """
        result: dict[str, set[int]] = {}
        if not any(item.action.limit for item in self._deciding):
            return result
        for job in running:
            uuid = self.limit_of(job)
            if uuid is not None:
                result.setdefault(uuid, set()).add(job.id)
        return result

    def _find_first(self, job: JobFacts) -> _Compiled | None:
        for item in self._deciding:
            if item.predicates.match(job):
                return item
        return None


def _describe(rule: FilterRule) -> str:
    """The rule for people, with the reason that its author gave."""
    texts = [entry[1] for entry in rule.reason_trail if entry[0] == _USER]
    return f"filter rule {rule.uuid}{f' ({texts[0]:.200})' if texts else ''}"
