"""Gates compare decimals as decimals: their verdicts are those of exact arithmetic."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import combinations_with_replacement, product
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.comparing.thresholds import Operator
from vivavoce.grading.gates import GateResult, SimpleGate, Threshold, WeightedGate
from vivavoce.grading.scores import Scores
from vivavoce.records.run import Aggregation, Reason
from vivavoce.report.verdict import reason_text

TRUTH: Mapping[Operator, Callable[[Fraction, Fraction], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "eq": operator.eq,
}
OPERATORS = tuple(TRUTH)


def scores(values: list[float], passed: list[bool] | None = None, errors: int = 0) -> Scores:
    decided = [value >= 1 for value in values] if passed is None else passed
    return Scores(values, decided, [f"s{i}" for i in range(len(values))], [f"e{i}" for i in range(errors)])


def verdict(result: GateResult) -> str:
    [reason] = result.reasons
    assert reason.verdict == result.verdict
    return result.verdict


def test_100_000_random_gates_agree_with_exact_arithmetic() -> None:
    random, wrong = Random(7), list[object]()
    for number in range(100_000):
        op, scale = OPERATORS[number % 5], 10 ** random.randint(1, 4)
        match number // 5 % 8:
            case 0 | 1 | 2:
                gate, known, truth = _mean_gate(random, op, scale)
            case 3 | 4 | 5:
                gate, known, truth = _rate_gate(random, op)
            case 6:
                gate, known, truth = _weighted_gate(random, op, scale)
            case _:
                gate, known, truth = _equal_gate(random, op, scale)
        if verdict(gate.decide(known)) != ("pass" if truth else "fail"):
            wrong.append((gate, known))
    assert not wrong


Case = tuple[SimpleGate | WeightedGate, Mapping[str, Scores], bool]


def _limit(random: Random, whole: Fraction, scale: int) -> int:
    """Return a limit, in parts of a scale, that is at a number or near it."""
    return min(scale, max(0, round(whole * scale) + random.choice((0, 0, 0, -1, 1))))


def _mean_gate(random: Random, op: Operator, scale: int) -> Case:
    parts = [random.randint(0, scale) for _ in range(random.randint(1, 11))]
    whole = Fraction(sum(parts), len(parts) * scale)
    limit = _limit(random, whole, scale)
    gate = SimpleGate("a", Threshold("avg_score", op, limit / scale))
    return gate, {"a": scores([part / scale for part in parts])}, TRUTH[op](whole, Fraction(limit, scale))


def _rate_gate(random: Random, op: Operator) -> Case:
    count = random.randint(1, 60)
    passed = random.randint(0, count)
    limit = _limit(random, Fraction(passed, count), 1000)
    gate = SimpleGate("a", Threshold("accuracy", op, limit / 10))
    known = scores([0.5] * count, [place < passed for place in range(count)])
    return gate, {"a": known}, TRUTH[op](Fraction(100 * passed, count), Fraction(limit, 10))


def _weighted_gate(random: Random, op: Operator, scale: int) -> Case:
    weights = {name: random.randint(1, 500) for name in "abc"[: random.randint(2, 3)]}
    parts = {name: [random.randint(0, scale) for _ in range(random.randint(1, 4))] for name in weights}
    means = {name: Fraction(sum(mine), len(mine) * scale) for name, mine in parts.items()}
    whole = Fraction(sum(weights[name] * means[name] for name in weights), sum(weights.values()))
    limit = _limit(random, whole, scale)
    known = {name: scores([part / scale for part in mine]) for name, mine in parts.items()}
    heavy = {name: weight / 100 for name, weight in weights.items()}
    return (
        WeightedGate(heavy, Threshold("avg_score", op, limit / scale)),
        known,
        TRUTH[op](whole, Fraction(limit, scale)),
    )


def _equal_gate(random: Random, op: Operator, scale: int) -> Case:
    value, weights = random.randint(0, scale) / scale, {name: random.randint(1, 5000) / 1000 for name in "abc"}
    known = {name: scores([value] * random.randint(1, 9)) for name in weights}
    return WeightedGate(weights, Threshold("avg_score", op, value)), known, op in ("gte", "lte", "eq")


@pytest.mark.parametrize(
    ("op", "expected"), [("gte", "pass"), ("lte", "pass"), ("eq", "pass"), ("gt", "fail"), ("lt", "fail")]
)
def test_three_scores_at_the_value_are_not_above_or_below_it(op: Operator, expected: str) -> None:
    result = SimpleGate("s", Threshold("avg_score", op, 0.7)).decide({"s": scores([0.7] * 3)})
    assert verdict(result) == expected


def test_weights_that_are_no_binary_fractions_do_not_lower_a_pass_rate() -> None:
    gate = WeightedGate({"a": 0.6, "b": 0.5, "c": 0.05}, Threshold("accuracy", "gte", 100))
    assert verdict(gate.decide({name: scores([1.0]) for name in "abc"})) == "pass"


@given(st.floats(0, 1), st.integers(1, 30), st.sampled_from(["avg_score", "min", "max", "median", "p95"]), st.data())
def test_scores_that_equal_the_value_are_equal_to_it(
    value: float, count: int, aggregation: Aggregation, data: st.DataObject
) -> None:
    op = data.draw(st.sampled_from(OPERATORS))
    result = SimpleGate("a", Threshold(aggregation, op, value)).decide({"a": scores([value] * count)})
    assert verdict(result) == ("pass" if op in ("gte", "lte", "eq") else "fail")


@pytest.mark.parametrize(
    ("values", "value"),
    [
        ([1 / 3] * 3, 1 / 3),
        ([1 / 3, 2 / 3], 0.5),
        ([1 / 3, 1 / 3, 1 / 3, 1.0], 0.5),
        ([1 / 7, 2 / 7, 3 / 7, 1 / 7], 0.25),
        ([2 / 3, 1.0, 0.0], 5 / 9),
        ([0.1 + 0.2, 0.3], 0.3),
    ],
)
def test_scores_that_are_no_decimals_are_the_fractions_they_stand_for(values: list[float], value: float) -> None:
    operators = {
        op
        for op in OPERATORS
        if verdict(SimpleGate("a", Threshold("avg_score", op, value)).decide({"a": scores(values)})) == "pass"
    }
    assert operators == {"gte", "lte", "eq"}


@pytest.mark.parametrize("count", range(1, 201))
def test_a_share_of_scores_that_is_demanded_is_enough(count: int) -> None:
    for scored in range(1, count + 1):
        if scored * 100 % count == 0:
            known = {"a": scores([1.0] * scored, errors=count - scored)}
            gate = SimpleGate("a", Threshold("avg_score", "gte", 0.0), min_scored=scored * 100 // count / 100)
            assert verdict(gate.decide(known)) == "pass"


def test_two_passes_and_two_errors_can_come_to_75_percent() -> None:
    known = {"a": scores([1.0, 1.0], errors=2)}
    rates = {
        value: verdict(SimpleGate("a", Threshold("accuracy", "eq", value)).decide(known))
        for value in (25, 50, 60, 75, 100)
    }
    assert rates == {25: "fail", 50: "inconclusive", 60: "fail", 75: "inconclusive", 100: "inconclusive"}


RATES = st.tuples(st.lists(st.booleans(), min_size=1, max_size=4), st.integers(0, 3))


def _completions(known: tuple[list[bool], int]) -> list[Scores]:
    """Return the scores with every outcome that their errors could have had."""
    passed, errors = known
    missing = combinations_with_replacement((True, False), errors)
    return [scores([0.5] * (len(passed) + errors), [*passed, *more]) for more in missing]


@given(RATES, RATES, st.integers(0, 100), st.sampled_from(OPERATORS))
def test_a_rate_is_undecided_if_and_only_if_some_completion_decides_otherwise(
    first: tuple[list[bool], int], second: tuple[list[bool], int], value: int, op: Operator
) -> None:
    gate = WeightedGate({"a": 2, "b": 1}, Threshold("accuracy", op, value))
    known = [scores([0.5] * len(passed), passed, errors) for passed, errors in (first, second)]
    every = product(_completions(first), _completions(second))
    verdicts = {verdict(gate.decide({"a": one, "b": other})) for one, other in every}
    expected = verdicts.pop() if len(verdicts) == 1 else "inconclusive"
    assert verdict(gate.decide(dict(zip("ab", known, strict=True)))) == expected


@given(st.lists(st.integers(0, 10), min_size=1, max_size=4), st.integers(1, 3), st.integers(0, 100))
def test_a_mean_may_equal_what_lies_between_its_ends(tenths: list[int], errors: int, value: int) -> None:
    known = {"a": scores([tenth / 10 for tenth in tenths], errors=errors)}
    count = len(tenths) + errors
    low, high = Fraction(sum(tenths), 10 * count), Fraction(sum(tenths) + 10 * errors, 10 * count)
    reachable = low <= Fraction(value, 100) <= high
    found = verdict(SimpleGate("a", Threshold("avg_score", "eq", value / 100)).decide(known))
    assert found == ("inconclusive" if reachable else "fail")


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=3),
    st.integers(0, 12),
    st.sampled_from(["pass^k", "pass@k"]),
)
def test_a_chance_of_trials_is_undecided_if_some_completion_equals_the_value(
    samples: list[tuple[int, int]], twelfths: int, aggregation: Aggregation
) -> None:
    gate = SimpleGate("a", Threshold(aggregation, "eq", twelfths / 12, k=2))

    def trials(extra: tuple[int, ...] | None) -> dict[str, Scores]:
        passed: list[bool] = []
        names: list[str] = []
        missing: list[str] = []
        for place, (passes, errors) in enumerate(samples):
            more = [] if extra is None else [True] * extra[place] + [False] * (errors - extra[place])
            mine = [True] * passes + [False] * (2 - passes) + more
            passed += mine
            names += [f"s{place}"] * len(mine)
            missing += [f"s{place}"] * (errors if extra is None else 0)
        return {"a": Scores([float(one) for one in passed], passed, names, missing)}

    verdicts = {verdict(gate.decide(trials(extra))) for extra in product(*(range(errors + 1) for _, errors in samples))}
    assert verdict(gate.decide(trials(None))) == (verdicts.pop() if len(verdicts) == 1 else "inconclusive")


@pytest.mark.parametrize("op", OPERATORS)
def test_a_score_of_a_half_may_count_where_the_gate_counts_halves(op: Operator) -> None:
    gate = SimpleGate("a", Threshold("accuracy", "gte", 60, pass_threshold=0.5, pass_op="eq"))
    assert verdict(gate.decide({"a": scores([0.5], errors=1)})) == "inconclusive"
    counts = SimpleGate("a", Threshold("accuracy", op, 50, pass_threshold=0.5, pass_op="eq"))
    assert verdict(counts.decide({"a": scores([0.5, 0.4])})) == ("pass" if op in ("gte", "lte", "eq") else "fail")


def _of(threshold: Threshold, values: list[float]) -> Reason:
    [reason] = SimpleGate("s", threshold).decide({"s": scores(values)}).reasons
    return reason


@pytest.mark.parametrize(
    ("op", "values", "text"),
    [
        ("gte", [0.7, 0.69999], "fail · s: mean must be ≥ 0.7; it is 0.699995"),
        ("gte", [0.6999999999], "fail · s: mean must be ≥ 0.7; it is 0.6999999999"),
        ("gt", [0.7], "fail · s: mean must be > 0.7; it is 0.7"),
        ("lt", [0.69999], "pass · s: mean must be < 0.7; it is 0.69999"),
        ("eq", [0.70001], "fail · s: mean must be = 0.7; it is 0.70001"),
    ],
)
def test_what_is_printed_never_contradicts_the_verdict(op: Operator, values: list[float], text: str) -> None:
    reason = _of(Threshold("avg_score", op, 0.7), values)
    assert f"{reason.verdict} · {reason_text(reason)}" == text


@given(
    st.lists(st.decimals(0, 1, places=6).map(float), min_size=1, max_size=9),
    st.decimals(0, 1, places=4).map(float),
    st.sampled_from(OPERATORS),
)
def test_the_words_of_a_reason_hold_if_and_only_if_it_passes(values: list[float], value: float, op: Operator) -> None:
    reason = _of(Threshold("avg_score", op, value), values)
    words: Any = reason_text(reason).split()
    limit, known = Fraction(words[5].rstrip(";")), Fraction(words[-1])
    assert TRUTH[op](known, limit) is (reason.verdict == "pass")


def test_a_gate_that_counts_by_a_threshold_of_its_own_names_it() -> None:
    reason = _of(Threshold("accuracy", "gte", 100, pass_threshold=0.6), [0.5])
    assert reason_text(reason) == "s: share of scores ≥ 0.6 must be ≥ 100%; it is 0%"


def test_errors_that_a_limit_allows_still_lack_a_score_for_min_scored() -> None:
    gate = SimpleGate("g", Threshold("avg_score", "gte", 0.5), min_scored=0.9)
    assert gate.decide({"g": Scores([1.0], [True], ["a"], allowed=("b", "c"))}).verdict == "inconclusive"
    assert gate.decide({"g": Scores([1.0], [True], ["a"])}).verdict == "pass"
