from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from vivavoce.metrics.result import Details, Evidence, MetricResult


@pytest.mark.parametrize(
    ("given_score", "kept"),
    [(True, True), (1, 1.0), (0.5, 0.5), ("good", "good"), ("yes", "yes"), (0.0, 0.0), (False, False)],
)
def test_a_yes_stays_a_yes_and_a_number_a_number(given_score: Any, kept: object) -> None:
    result = MetricResult(score=given_score)
    assert (type(result.score), result.score) == (type(kept), kept)


def test_a_result_of_score_and_details_alone_takes_what_is_typed_from_them() -> None:
    details = {"is_successful": True, "confidence": 0.7, "reasoning": "Good.", "evidence": ["I did it."]}
    result = MetricResult(score=1.0, details=details)
    assert (result.state, result.passed, result.confidence, result.reasoning) == ("scored", True, 0.7, "Good.")
    assert result.evidence == (Evidence(text="I did it."),)
    assert not result.evidence[0].verified


@pytest.mark.parametrize(
    ("details", "message"),
    [
        ({"error": "boom", "exception_type": "OSError"}, "boom"),
        ({"reasoning": "it broke"}, "it broke"),
        ({"anything": 1}, "the metric gave no reason"),
    ],
)
def test_the_score_error_is_an_error_and_has_not_passed(details: dict[str, Any], message: str) -> None:
    result = MetricResult(score="error", details={**details, "is_successful": True})
    assert (result.state, result.passed) == ("error", None)
    assert result.error is not None
    assert result.error.message == message


@pytest.mark.parametrize(
    ("score", "state"), [(1.0, "error"), (None, "scored"), ("error", "scored"), (0.0, "skipped"), (None, None)]
)
def test_a_state_that_contradicts_the_score_is_refused(score: float | str | None, state: str | None) -> None:
    with pytest.raises(ValidationError):
        MetricResult.model_validate({"score": score, **({"state": state} if state else {})})


@given(st.dictionaries(st.text(max_size=9), st.integers(), max_size=4))
def test_details_are_a_dict_that_can_also_write_the_prompt(values: dict[str, int]) -> None:
    values.pop("prompt", None)
    asked: list[str] = []
    details = Details(values, lambda: asked.append("once") or "the prompt")
    assert dict(details) == values
    assert json.loads(json.dumps(details)) == values
    assert asked == []
    assert "prompt" in details
    assert details.get("prompt") == details["prompt"] == "the prompt"


@given(st.dictionaries(st.text(max_size=9).map("my {}".format), st.integers(), max_size=4))
def test_what_only_a_metric_knows_is_kept_beside_the_score_and_shown_with_it(values: dict[str, int]) -> None:
    result = MetricResult(score=1.0, details={"reasoning": "Good.", **values})
    assert result.extra == values
    assert {name: result.details[name] for name in values} == values
    assert (result.details["score"], result.details["reasoning"]) == (1.0, "Good.")


def test_details_without_a_prompt_have_none() -> None:
    details = Details({"score": 1})
    assert "prompt" not in details
    assert details.get("prompt", "none") == "none"
    with pytest.raises(KeyError):
        details["prompt"]


def test_a_result_survives_a_round_through_json() -> None:
    result = MetricResult(
        score="good", name="tone", passed=True, evidence=(Evidence(text="c1", kind="call", turn=2, verified=True),)
    )
    assert MetricResult.model_validate_json(result.model_dump_json()) == result


@pytest.mark.parametrize("score", [float("nan"), float("inf"), float("-inf")])
def test_a_score_that_is_no_finite_number_is_refused(score: float) -> None:
    with pytest.raises(ValidationError, match="a finite number"):
        MetricResult(score=score)


def test_what_is_sent_to_another_process_takes_its_prompt_along() -> None:
    details = Details({"score": 1.0}, lambda: "the prompt")
    sent = pickle.loads(pickle.dumps(details))
    assert (sent, sent["prompt"], list(sent)) == (details, "the prompt", ["score"])
