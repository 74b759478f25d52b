"""Which filter rule decides over a job."""

from __future__ import annotations

import logging
import operator
import re
from typing import Any

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from ganeti import errors
from ganeti.jobs.filter_predicates import Predicates, action_of, check_priority
from ganeti.jobs.filters import Accept, JobFacts, Limited, Pause, Reject, Rules
from ganeti.model.filter_rule import FilterRule
from ganeti.model.job import JobRecord, OpRecord

ADD = {
    "OP_ID": "OP_INSTANCE_CREATE",
    "instance_name": "web1.example.com",
    "beparams": {"memory": 512, "always_failover": True},
    "force": False,
    "nodes": ["a", "b"],
    "reason": [["gnt:user", "new shop", 100], ["gnt:opcode:instance_create", "job=7;index=0", 200]],
}
DELAY = {"OP_ID": "OP_TEST_DELAY", "duration": 1.5, "reason": []}
JOB = JobFacts(7, [ADD, DELAY])


def rule(uuid: str, action: Any, *predicates: Any, priority: int = 0, **more: Any) -> FilterRule:
    more.setdefault("watermark", 10)
    return FilterRule(uuid=uuid, action=action, predicates=predicates, priority=priority, **more)


def matches(*predicates: Any, job: JobFacts = JOB, watermark: int = 10) -> bool:
    return Predicates(list(predicates), watermark).match(job)


class TestPredicates:
    def test_all_must_match_and_none_is_every_job(self) -> None:
        yes, no = ["jobid", ["==", "id", 7]], ["jobid", ["==", "id", 8]]
        assert matches()
        assert matches(yes, yes)
        assert not matches(yes, no)
        assert not matches(no, yes)

    @pytest.mark.parametrize(
        ("condition", "expected"),
        [
            (["<", "id", "watermark"], True),
            ([">", "id", "watermark"], False),
            ([">=", "id", "7"], True),
            (["!=", "id", 7], False),
            (["|", ["==", "id", 1], ["==", "id", 7]], True),
            (["&"], True),
            (["|"], False),
            (None, True),
            (["=~", "id", "7"], False),
            (["?", "id"], False),
            (["=[]", "id", 7], False),
            (["!", ["?", "id"]], True),
        ],
    )
    def test_job_ids(self, condition: Any, expected: bool) -> None:
        assert matches(["jobid", condition]) is expected

    @pytest.mark.parametrize(
        ("condition", "expected"),
        [
            (["=", "OP_ID", "OP_TEST_DELAY"], True),
            (["=", "OP_ID", "OP_TEST_DUMMY"], False),
            (["&", ["=", "OP_ID", "OP_TEST_DELAY"], ["=~", "instance_name", "^web"]], False),
            (["&", ["=", "OP_ID", "OP_INSTANCE_CREATE"], ["=~", "instance_name", "^web"]], True),
            ([">", "beparams.memory", 256], True),
            (["?", "beparams.always_failover"], True),
            (["?", "force"], False),
            (["=[]", "nodes", "b"], True),
            (["=[]", "nodes", "c"], False),
            ([">", "duration", 1], True),
            # what is not there or has another type
            (["==", "colour", "red"], False),
            (["==", "beparams.memory.unit", "M"], False),
            (["==", "beparams", "M"], False),
            (["=~", "beparams.memory", "5"], False),
            (["?", "instance_name"], False),
            (["=[]", "nodes", 1], False),
            (["=[]", "instance_name", "w"], False),
            (["<", "force", 1], False),
            (["!", ["==", "colour", "red"]], True),
            (["|", ["==", "beparams", 1], ["==", "beparams.memory", 512]], True),
            (None, True),
        ],
    )
    def test_parameters_of_one_opcode(self, condition: Any, expected: bool) -> None:
        assert matches(["opcode", condition]) is expected

    @pytest.mark.parametrize(
        ("condition", "expected"),
        [
            (["==", "source", "gnt:user"], True),
            (["&", ["==", "source", "gnt:user"], ["==", "reason", "new shop"]], True),
            (["&", ["==", "source", "gnt:user"], [">", "timestamp", 150]], False),
            ([">", "timestamp", 150], True),
            (["==", "timestamp", "100"], False),
            (["=~", "reason", "shop"], False),
        ],
    )
    def test_one_entry_of_the_reasons(self, condition: Any, expected: bool) -> None:
        assert matches(["reason", condition]) is expected

    def test_reasons_of_a_job_without_any(self) -> None:
        assert not matches(["reason", None], job=JobFacts(1, [DELAY]))
        assert not matches(["reason", None], job=JobFacts(1, [{"OP_ID": "OP_X"}]))

    @pytest.mark.parametrize(
        ("predicates", "text"),
        [
            ({"jobid": 1}, "must be a list"),
            ("jobid", "must be a list, not 'jobid'"),
            ([["jobid"]], "predicate 1"),
            ([["jobid", None], "opcode"], "predicate 2"),
            ([["job", None]], "did you mean jobid"),
            ([[["jobid"], None]], "expected [kind, filter]"),
            ([["jobid", ["==", "number", 1]]], "only 'id'"),
            ([["jobid", ["==", "id", "watermarks"]]], "'watermark'"),
            ([["jobid", ["==", "id", "-1"]]], "'-1' is not a job ID"),
            ([["jobid", ["==", "id", True]]], "true"),
            ([["reason", ["==", "sources", "x"]]], "did you mean source"),
            ([["reason", ["=~", "sources", "x"]]], "did you mean source"),
            ([["opcode", ["~", "OP_ID", "x"]]], "not a filter operator"),
            ([["opcode", ["==", "OP_ID"]]], "takes 2 operands"),
            ([["opcode", ["=~", "OP_ID", "("]]], "missing )"),
            ([["opcode", "OP_ID"]], "must be a list such as"),
        ],
    )
    def test_what_is_wrong(self, predicates: Any, text: str) -> None:
        with pytest.raises(errors.OpPrereqError) as caught:
            Predicates(predicates, 1)
        assert text in caught.value.args[0]
        assert caught.value.args[1] == "wrong_input"

    def test_deep_nesting_is_refused_in_one_short_line(self) -> None:
        deep: list[Any] = []
        for _ in range(5000):
            deep = [deep]
        for wrong in (deep, [["opcode", deep]], [["opcode", ["!", deep]]]):
            with pytest.raises(errors.OpPrereqError) as caught:
                Predicates(wrong, 1)
            assert len(str(caught.value.args[0])) < 300

    def test_slow_expression_counts_as_not_matching_and_is_told_once(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        slow = Predicates([["opcode", ["=~", "name", "(a|aa)+(a|aa)+(a|aa)+$"]]], 1)
        job = JobFacts(3, [{"name": "a" * 4000 + "b"}])
        with caplog.at_level(logging.WARNING):
            assert not slow.match(job)
            assert not slow.match(job)
        assert len(caplog.records) == 1
        assert "job 3" in caplog.text


@pytest.mark.parametrize("word", ["ACCEPT", "CONTINUE", "PAUSE", "REJECT"])
def test_action_words(word: str) -> None:
    assert (action_of(word).name, action_of(word).limit) == (word, 0)


def test_rate_limit() -> None:
    assert action_of(["RATE_LIMIT", 3]).limit == 3


@pytest.mark.parametrize(
    "raw",
    [
        "accept",
        "RATE_LIMIT",
        ["RATE_LIMIT"],
        ["RATE_LIMIT", 0],
        ["RATE_LIMIT", True],
        None,
        5,
        {},
        ["RATE_LIMIT", 1.0],
        ["RATE_LIMIT", "2"],
        ["PAUSE"],
        ["RATE_LIMIT", 1, 2],
        [[[]]],
        pytest.param(["RATE_LIMIT", 10**5000], id="huge"),
    ],
)
def test_no_actions(raw: Any) -> None:
    with pytest.raises(errors.OpPrereqError, match="RATE_LIMIT"):
        action_of(raw)


@pytest.mark.parametrize(
    "raw", [-1, True, 1.5, "1", None, 10**30, pytest.param(10**5000, id="huge")]
)
def test_no_priorities(raw: Any) -> None:
    with pytest.raises(errors.OpPrereqError, match="from 0 to"):
        check_priority(raw)


class TestDecision:
    def test_without_rules(self) -> None:
        rules = Rules()
        assert not rules
        assert rules.decide(JOB, {}) == Accept()
        assert rules.count([JOB]) == {}

    def test_order_is_priority_then_watermark_then_uuid(self) -> None:
        last = rule("a", "ACCEPT", priority=2, watermark=1)
        made = [
            rule("c", "REJECT", priority=1, watermark=6),
            last,
            rule("b", "PAUSE", priority=1, watermark=5),
            rule("a2", "REJECT", priority=1, watermark=6),
        ]
        for expected in ("b", "a2", "c", "a"):
            verdict = Rules(made).decide(JOB, {})
            assert f"filter rule {expected} " in verdict.explanation
            made = [item for item in made if item.uuid != expected]
        assert Rules(made).decide(JOB, {}) == Accept()

    def test_continue_and_rules_that_do_not_match_decide_nothing(self) -> None:
        rules = Rules(
            [
                rule("a", "CONTINUE"),
                rule("b", "REJECT", ["jobid", [">", "id", "watermark"]]),
                rule("c", "PAUSE"),
            ]
        )
        assert isinstance(rules.decide(JOB, {}), Pause)
        assert isinstance(rules.decide(JobFacts(11, []), {}), Reject)
        assert not Rules([rule("a", "CONTINUE")])

    def test_rate_limit_counts_the_running_jobs_of_the_rule(self) -> None:
        rules = Rules([rule("r", ["RATE_LIMIT", 2]), rule("z", "REJECT", priority=1)])
        assert rules
        for running in ({}, {"r": [3]}, {"other": [1, 2, 3]}, {"r": {3, 7}}):
            verdict = rules.decide(JOB, running)
            assert isinstance(verdict, Accept)
            assert verdict.limit == "r"
        held = rules.decide(JOB, {"r": {5, 3}})
        assert isinstance(held, Limited)
        assert (held.limit, held.running) == (2, (3, 5))
        assert held.explanation == "filter rule r lets 2 such jobs run at a time, now 3, 5"

    def test_running_jobs_are_assigned_to_the_rule_that_decides(self) -> None:
        delays = ["opcode", ["==", "OP_ID", "OP_TEST_DELAY"]]
        rules = Rules(
            [
                rule("first", "ACCEPT", ["jobid", ["==", "id", 1]]),
                rule("slow", ["RATE_LIMIT", 1], delays, priority=1),
                rule("rest", ["RATE_LIMIT", 5], priority=2),
            ]
        )
        delay, other = [DELAY], [{"OP_ID": "OP_TEST_DUMMY"}]
        jobs = [JobFacts(n, ops) for n, ops in enumerate((delay, delay, delay, other), 1)]
        assert rules.count(jobs) == {"slow": {2, 3}, "rest": {4}}
        assert [rules.limit_of(job) for job in jobs] == [None, "slow", "slow", "rest"]

    def test_error_of_a_rejected_job_names_the_rule_and_its_reason(self) -> None:
        trail = (["gnt:user", "power is out", 1], ["luxid", "", 2])
        named = Rules([rule("u-1", "REJECT", reason_trail=trail)])
        verdict = named.decide(JOB, {})
        assert isinstance(verdict, Reject)
        assert errors.encode(verdict.error) == [
            "JobCanceled",
            ["The job was not run: filter rule u-1 (power is out) rejects the job"],
        ]

    def test_facts_of_a_record(self) -> None:
        record = JobRecord(id=4, ops=[OpRecord(input=ADD)])
        rules = Rules([rule("r", "PAUSE", ["opcode", ["==", "OP_ID", "OP_INSTANCE_CREATE"]])])
        assert isinstance(rules.decide(JobFacts.from_record(record), {}), Pause)

    def test_compiled_rules_are_taken_over_unless_they_changed(self) -> None:
        kept, old = rule("a", "PAUSE"), rule("b", "PAUSE")
        before = Rules([kept, old])
        after = Rules([kept, rule("b", "ACCEPT", priority=0)], before)
        assert after._compiled["a"] is before._compiled["a"]
        assert isinstance(after.decide(JOB, {}), Pause)
        gone = Rules([rule("b", "ACCEPT")], after)
        assert isinstance(gone.decide(JOB, {}), Accept)

    def test_stored_rule_without_sense_is_left_out(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.ERROR):
            rules = Rules([rule("bad", "REJECT", ["colour", None]), rule("good", "PAUSE")])
        assert isinstance(rules.decide(JOB, {}), Pause)
        assert "bad" in caplog.text


# against a naive evaluator ---------------------------------------------------------------------

FIELDS = ("OP_ID", "a", "b", "b.c", "b.d", "nix")
WORDS = ("x", "y", "xy")
values = st.one_of(st.sampled_from(WORDS), st.integers(0, 3))
leaves = st.one_of(
    st.tuples(
        st.sampled_from(["==", "=", "!=", "<", "<=", ">", ">="]), st.sampled_from(FIELDS), values
    ),
    st.tuples(st.just("=~"), st.sampled_from(FIELDS), st.sampled_from(["x", "^y", "."])),
    st.tuples(st.just("=[]"), st.sampled_from(FIELDS), values),
    st.tuples(st.just("?"), st.sampled_from(FIELDS)),
).map(list)
filters = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: ["&", *parts]),
        st.lists(inner, max_size=3).map(lambda parts: ["|", *parts]),
        inner.map(lambda part: ["!", part]),
    ),
    max_leaves=6,
)
contents = st.one_of(
    values,
    st.booleans(),
    st.none(),
    st.lists(values, max_size=2),
    st.dictionaries(st.sampled_from("cd"), st.one_of(values, st.booleans())),
)
opcodes = st.fixed_dictionaries({"OP_ID": st.sampled_from(WORDS), "a": contents, "b": contents})
ids = st.one_of(st.integers(0, 5), st.just("watermark"))
id_filters = st.tuples(st.sampled_from(["==", "!=", "<", ">="]), st.just("id"), ids).map(list)
rule_values = st.tuples(
    st.integers(0, 2),
    st.integers(0, 4),
    st.one_of(
        st.sampled_from(["ACCEPT", "CONTINUE", "PAUSE", "REJECT"]),
        st.integers(1, 3).map(lambda n: ["RATE_LIMIT", n]),
    ),
    st.lists(
        st.one_of(filters.map(lambda f: ["opcode", f]), id_filters.map(lambda f: ["jobid", f])),
        max_size=2,
    ),
)
ORDERS = {
    "==": operator.eq,
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def naive(condition: list[Any], op: dict[str, Any]) -> bool:
    word, *rest = condition
    if word in "&|":
        return (all if word == "&" else any)([naive(part, op) for part in rest])
    if word == "!":
        return not naive(rest[0], op)
    if word == "!=":
        return not naive(["==", *rest], op)
    got: Any = op
    for key in rest[0].split("."):
        got = got.get(key) if isinstance(got, dict) else None
    if word == "?":
        return got is True
    wanted = rest[1]
    if word == "=~":
        return isinstance(got, str) and re.search(wanted, got) is not None
    if word == "=[]":
        alike = isinstance(got, list) and all(type(item) is type(wanted) for item in got)
        return alike and wanted in got
    return type(got) is type(wanted) and ORDERS[word](got, wanted)


def naive_verdict(rules: list[FilterRule], job: JobFacts, running: dict[str, set[int]]) -> str:
    for item in sorted(rules, key=lambda r: (r.priority, r.watermark, r.uuid)):
        fits = True
        for kind, condition in item.predicates:
            if kind == "jobid":
                word, name, value = condition
                wanted = item.watermark if value == "watermark" else value
                fits = fits and naive([word, name, wanted], {"id": job.id})
            else:
                fits = fits and any(naive(condition, dict(op)) for op in job.ops)
        if not fits or item.action == "CONTINUE":
            continue
        if isinstance(item.action, list):
            full = len(running.get(item.uuid, set()) - {job.id}) >= item.action[1]
            return f"Limited {item.uuid}" if full else f"Accept {item.uuid}"
        return f"{item.action.capitalize()} {'' if item.action == 'ACCEPT' else item.uuid}"
    return "Accept "


def summary(verdict: Any) -> str:
    uuid = (verdict.limit or "") if isinstance(verdict, Accept) else verdict.rule.uuid
    return f"{type(verdict).__name__} {uuid}"


@examples(150)
@given(
    made=st.lists(rule_values, max_size=4),
    job_id=st.integers(0, 5),
    ops=st.lists(opcodes, max_size=2),
    running=st.dictionaries(
        st.sampled_from("0123"), st.sets(st.integers(0, 5), max_size=3), max_size=3
    ),
)
def test_like_the_naive_evaluator(
    made: list[Any], job_id: int, ops: list[dict[str, Any]], running: dict[str, set[int]]
) -> None:
    rules = [
        rule(str(number), action, *predicates, priority=priority, watermark=watermark)
        for number, (priority, watermark, action, predicates) in enumerate(made)
    ]
    job = JobFacts(job_id, ops)
    verdict = Rules(rules).decide(job, running)
    assert summary(verdict) == naive_verdict(rules, job, running)
    assert verdict.explanation
