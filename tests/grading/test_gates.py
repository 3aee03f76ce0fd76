"""Gates: verdicts from scores, and what errors do to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.grading.gates import LogicalGate, SamplesGate, SimpleGate, Threshold, WeightedGate
from vivavoce.grading.scores import Scores
from vivavoce.report.verdict import reason_text


def scores(*values: float, errors: int = 0, passed: Sequence[bool] | None = None) -> Scores:
    decided = [value >= 1 for value in values] if passed is None else passed
    return Scores(list(values), decided, [f"s{i}" for i in range(len(values))], [f"e{i}" for i in range(errors)])


def gate(value: float, op: Any = "gte", aggregation: Any = "avg_score", **more: Any) -> SimpleGate:
    least = more.pop("min_scored", 0.0)
    return SimpleGate("g", Threshold(aggregation, op, value, **more), least)


@pytest.mark.parametrize(
    ("aggregation", "found"),
    [
        ("avg_score", 0.5),
        ("min", 0.0),
        ("max", 1.0),
        ("median", 0.5),
        ("p50", 0.5),
        ("p95", 0.95),
        ("accuracy", 100 / 3),
    ],
)
def test_aggregations(aggregation: Any, found: float) -> None:
    assert Threshold(aggregation, "gte", 0).aggregate(scores(0, 0.5, 1)) == pytest.approx(found)


@pytest.mark.parametrize(
    ("op", "verdict"), [("gt", "fail"), ("gte", "pass"), ("lt", "fail"), ("lte", "pass"), ("eq", "pass")]
)
def test_operators(op: Any, verdict: str) -> None:
    assert gate(0.5, op).decide({"g": scores(0, 1)}).verdict == verdict


def test_accuracy_counts_the_scores_that_passed_whatever_their_value() -> None:
    found = scores(0.2, 0.5, 0.9, passed=[True, True, False])
    assert Threshold("accuracy", "gte", 0).aggregate(found) == pytest.approx(200 / 3)


def test_accuracy_counts_from_a_threshold_of_the_gate_s_own_in_percent() -> None:
    found = {"g": scores(0.2, 0.5, 0.9)}
    assert gate(66, aggregation="accuracy", pass_threshold=0.5).decide(found).verdict == "pass"
    assert gate(66, aggregation="accuracy").decide(found).verdict == "fail"


def test_a_missing_score_may_have_passed_or_not() -> None:
    found = {"g": scores(0.6, 0.6, 0.6, errors=1, passed=[True, True, True])}
    assert gate(75, aggregation="accuracy").decide(found).verdict == "pass"
    assert gate(90, aggregation="accuracy").decide(found).verdict == "inconclusive"


def test_errors_that_cannot_turn_the_verdict_leave_it_standing() -> None:
    assert gate(0.5).decide({"g": scores(*[1.0] * 9, errors=1)}).verdict == "pass"
    assert gate(0.9).decide({"g": scores(*[0.0] * 9, errors=1)}).verdict == "fail"


def test_errors_that_could_turn_it_make_it_inconclusive() -> None:
    result = gate(0.75).decide({"g": scores(*[0.9] * 8, errors=2)})
    assert result.verdict == "inconclusive"
    said = "g: mean must be ≥ 0.75; it is 0.9; 2 errors could change the result"
    assert [(reason.verdict, reason_text(reason)) for reason in result.reasons] == [("inconclusive", said)]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.integers(0, 4), st.floats(0, 1), st.data())
def test_whatever_the_missing_scores_were_a_conclusive_verdict_holds(
    values: list[float], errors: int, value: float, data: st.DataObject
) -> None:
    found = gate(value).decide({"g": scores(*values, errors=errors)}).verdict
    truth = data.draw(st.lists(st.floats(0, 1), min_size=errors, max_size=errors))
    if found != "inconclusive":
        assert gate(value).decide({"g": scores(*values, *truth)}).verdict == found


def test_nothing_scored_is_inconclusive() -> None:
    assert gate(0.0).decide({"g": scores(errors=3)}).verdict == "inconclusive"


def test_min_scored_demands_a_share_of_scores() -> None:
    assert gate(0.1, min_scored=0.95).decide({"g": scores(1, 1, 1, errors=1)}).verdict == "inconclusive"
    assert gate(0.1, min_scored=0.75).decide({"g": scores(1, 1, 1, errors=1)}).verdict == "pass"


def test_the_lower_bound_is_harder_to_pass_than_the_mean() -> None:
    few = {"g": scores(1, 1, 1, 0)}
    assert gate(0.6).decide(few).verdict == "pass"
    assert gate(0.6, on="lower").decide(few).verdict == "fail"
    many = {"g": scores(*[1.0] * 300, *[0.0] * 100)}
    assert gate(0.6, on="lower").decide(many).verdict == "pass"


def test_weights_are_normalised() -> None:
    both = {"a": scores(1, 1), "b": scores(0, 0)}
    weighted = WeightedGate({"a": 7, "b": 3}, Threshold("avg_score", "gte", 0.7))
    assert weighted.decide(both).verdict == "pass"
    assert WeightedGate({"a": 6, "b": 4}, Threshold("avg_score", "gte", 0.7)).decide(both).verdict == "fail"


@pytest.mark.parametrize(
    ("operator", "verdicts", "found"),
    [
        ("and", ["pass", "pass"], "pass"),
        ("and", ["pass", "fail"], "fail"),
        ("and", ["inconclusive", "fail"], "fail"),
        ("and", ["inconclusive", "pass"], "inconclusive"),
        ("or", ["fail", "pass"], "pass"),
        ("or", ["fail", "fail"], "fail"),
        ("or", ["inconclusive", "pass"], "pass"),
        ("or", ["inconclusive", "fail"], "inconclusive"),
    ],
)
def test_logic_with_three_values(operator: Any, verdicts: list[str], found: str) -> None:
    values = {"pass": scores(1), "fail": scores(0), "inconclusive": scores(errors=1)}
    named = {f"g{i}": values[v] for i, v in enumerate(verdicts)}
    conditions = [SimpleGate(name, Threshold("avg_score", "gte", 0.5)) for name in named]
    result = LogicalGate(operator, conditions).decide(named)
    assert result.verdict == found
    assert [reason.verdict for reason in result.reasons] == verdicts


def trials(**samples: str) -> Scores:
    """Trials of samples: `y` passed, `n` did not, `e` is an error."""
    scored = [(name, one == "y") for name, all_of_it in samples.items() for one in all_of_it if one != "e"]
    missing = [name for name, all_of_it in samples.items() for one in all_of_it if one == "e"]
    return Scores([float(p) for _, p in scored], [p for _, p in scored], [name for name, _ in scored], missing)


@pytest.mark.parametrize(
    ("found", "verdict", "words"),
    [
        (trials(a="yyyyy", b="yynyy"), "pass", "all 2 did"),
        (trials(a="yyyyy", b="ynnyy"), "fail", "1 of 2 did not: b (3 of 5)"),
        (trials(a="yyyyy", b="yyyee"), "inconclusive", "errors could change the result of 1 of 2: b (3 of 5)"),
        (trials(a="yyyye", b="yyyyy"), "pass", "all 2 did"),
        (trials(a="yyeee", b="nnyyy"), "fail", "1 of 2 did not: b (3 of 5)"),
        (trials(a="yyyyy", b="ynnee"), "fail", "1 of 2 did not: b (1 of 5)"),
        (
            trials(a="yyyyy", b="yyy"),
            "inconclusive",
            "1 sample with fewer than the 4 trials that the gate needs: b (3 of 3)",
        ),
        (trials(a="eeeee"), "inconclusive", "nothing was scored (5 errors)"),
    ],
)
def test_each_sample_passes_so_many_of_its_trials(found: Scores, verdict: str, words: str) -> None:
    result = SamplesGate("g", 4).decide({"g": found})
    assert result.verdict == verdict
    assert words in reason_text(result.reasons[0])


def test_a_reason_names_the_first_of_many_samples() -> None:
    found = SamplesGate("g", 2).decide({"g": trials(**{f"s{i}": "yn" for i in range(50)})})
    assert (len(found.reasons[0].samples), found.reasons[0].samples_in_all) == (20, 50)
    assert reason_text(found.reasons[0]).endswith("s9 (1 of 2) and 40 more")


@pytest.mark.parametrize(
    ("found", "verdict", "value"),
    [
        (trials(a="yyy", b="yyn"), "pass", 2 / 3),  # 1 and 1/3
        (trials(a="yyn", b="yyn"), "fail", 1 / 3),
        (trials(a="yyy", b="yye"), "pass", 1.0),  # at worst 1 and 1/3
        (trials(a="yyn", b="yye"), "inconclusive", 2 / 3),
        (trials(a="yyn", b="nne"), "fail", 1 / 6),
        (trials(a="yee", b="nee"), "inconclusive", None),
        (trials(a="nne", b="nee"), "fail", 0.0),
        (trials(a="nee", b="nee"), "fail", None),  # at best 1/3, whatever the errors had been
        (trials(a="yyy", b="y"), "inconclusive", None),
    ],
)
def test_pass_hat_k_is_over_the_trials_of_each_sample(found: Scores, verdict: str, value: float | None) -> None:
    result = gate(0.6, aggregation="pass^k", k=2).decide({"g": found})
    assert (result.verdict, result.reasons[0].found) == (verdict, value and pytest.approx(value))
    if result.reasons[0].code == "threshold":
        assert "pass^2 must be ≥ 0.6" in reason_text(result.reasons[0])


def test_pass_at_k_needs_one_of_them() -> None:
    result = gate(1.0, aggregation="pass@k", k=2).decide({"g": trials(a="yny", b="ynn")})
    assert (result.verdict, result.reasons[0].found) == ("fail", pytest.approx(5 / 6))
    assert gate(1.0, aggregation="pass@k", k=2).decide({"g": trials(a="yny", b="yyn")}).verdict == "pass"


@pytest.mark.parametrize(("limit", "verdict"), [(None, "pass"), (3, "pass"), (2, "fail")])
def test_a_limit_on_unverified_verdicts_holds_for_every_kind_of_gate(limit: int | None, verdict: str) -> None:
    samples = ["s", "t", "u"]
    scores = {
        "a": Scores([1.0] * 3, [True] * 3, samples, unverified=2),
        "b": Scores([1.0] * 3, [True] * 3, samples, unverified=1),
    }
    threshold = Threshold("avg_score", "gte", 1.0)
    plain = [SimpleGate("a", threshold), WeightedGate({"b": 1.0}, threshold), SamplesGate("a", 1)]
    weighted = WeightedGate({"a": 1.0, "b": 2.0}, threshold, max_unverified=limit)
    for gate in (weighted, LogicalGate("and", plain, limit), LogicalGate("or", plain, limit)):
        result = gate.decide(scores)
        assert result.verdict == verdict
        reasons = [reason for reason in result.reasons if reason.code == "unverified"]
        assert [(reason.errors, reason.scored, set(reason.graders)) for reason in reasons] == (
            [(3, 6, {"a", "b"})] if verdict == "fail" else []
        )
    single = None if limit is None else limit - 1
    for gate in (SimpleGate("a", threshold, max_unverified=single), SamplesGate("a", 1, max_unverified=single)):
        assert gate.decide(scores).verdict == verdict
