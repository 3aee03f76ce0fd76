"""`check_metric` says what a metric lacks, and nothing of one that is whole."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from vivavoce.messages import AIMessage
from vivavoce.metrics import BaseMultiTurnMetric, MetricConfig, MetricResult, MultiTurnEvaluationInput, PromptMetric
from vivavoce.testing import ScriptedModel, check_metric

WHOLE: dict[str, Any] = {
    "name": "brevity",
    "description": "share of short replies",
    "direction": "higher_is_better",
    "threshold": 0.5,
}


def metric_class(
    measure: Callable[[MultiTurnEvaluationInput], Any] = lambda _: MetricResult(score=1.0), **config: Any
) -> Callable[[], BaseMultiTurnMetric]:
    """Return the class of a metric with a configuration; an option that is None is left out of it."""

    class Brevity(BaseMultiTurnMetric):
        def __init__(self) -> None:
            options = {name: value for name, value in {**WHOLE, **config}.items() if value is not None}
            super().__init__(MetricConfig(**options))

        def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
            return measure(evaluation_input)

    return Brevity


def share_of_short_replies(metric_input: MultiTurnEvaluationInput) -> MetricResult:
    replies = [message for message in metric_input.messages if isinstance(message, AIMessage)]
    return MetricResult(score=sum(len(reply.text) < 20 for reply in replies) / len(replies))


def test_a_whole_metric_lacks_nothing() -> None:
    assert check_metric(metric_class()) == []
    assert check_metric(metric_class()()) == []
    categories: dict[str, Any] = {
        "score_type": "categorical",
        "categories": ("bad", "good"),
        "passing_categories": ("good",),
    }
    assert check_metric(metric_class(lambda _: MetricResult(score="good"), **categories)) == []
    assert check_metric(metric_class(lambda _: MetricResult(score=True), score_type="binary", threshold=None)) == []


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"name": None}, "has no name: set name="),
        ({"name": "  "}, "has no name: set name="),
        ({"description": None}, "has no description: set description="),
        ({"threshold": None}, "has no threshold: set threshold="),
        ({"threshold": 2.0}, "has a threshold of 2, which is outside the range of its scores"),
        ({"threshold": 0.0}, "has a threshold of 0, with which every score passes"),
        ({"threshold": 1.0, "direction": "lower_is_better"}, "has a threshold of 1, with which every score passes"),
        ({"direction": None}, "does not say whether high scores are good: set direction="),
        ({"minimum": 3.0, "maximum": 2.0, "threshold": 3.0}, "has scores from 3 to 2: minimum must be below maximum"),
    ],
)
def test_a_part_of_the_configuration_that_is_missing_or_wrong_is_told(config: dict[str, Any], sentence: str) -> None:
    sentences = check_metric(metric_class(**config))
    assert any(sentence in text for text in sentences), sentences
    assert all(sentence.startswith("Brevity ") and sentence.endswith(".") for sentence in sentences)


def test_categories_need_an_order_and_those_that_pass() -> None:
    sentences = check_metric(metric_class(lambda _: MetricResult(score="good"), score_type="categorical"))
    assert "has no categories" in sentences[0]
    assert "does not say which categories pass" in sentences[1]


FAILING: list[tuple[Callable[[MultiTurnEvaluationInput], Any], str]] = [
    (lambda _: 1 / 0, "fails on a small conversation: ZeroDivisionError: division by zero."),
    (lambda _: {"score": 1}, "fails on a small conversation: brevity returned a dict, not a MetricResult."),
    (lambda _: MetricResult(score=7.0), "fails on a small conversation: brevity returned 7.0"),
    (
        share_of_short_replies,
        "fails on a conversation without a reply: ZeroDivisionError: division by zero. Return self.skipped(",
    ),
    (
        lambda _: MetricResult(state="skipped", reason="no tools"),
        "does not apply to a small conversation: no tools.",
    ),
]


@pytest.mark.parametrize(("measure", "sentence"), FAILING)
def test_what_goes_wrong_when_it_measures_is_told(measure: Callable[[Any], Any], sentence: str) -> None:
    sentences = check_metric(metric_class(measure))
    assert len(sentences) == 1
    assert sentence in sentences[0]


def test_a_score_that_changes_is_told() -> None:
    scores = itertools.cycle((0.25, 0.75, 0.5))
    [sentence] = check_metric(metric_class(lambda _: MetricResult(score=next(scores))))
    assert "gives 0.25 and then 0.75 for the same conversation" in sentence


def test_a_conversation_to_which_it_applies_may_be_given() -> None:
    def ends(metric_input: MultiTurnEvaluationInput) -> MetricResult:
        if metric_input.messages[0].text != "bye":
            return MetricResult(state="skipped", reason="nobody says bye")
        return MetricResult(score=1.0)

    assert check_metric(metric_class(ends), conversation=[{"role": "user", "content": "bye"}]) == []


def test_a_class_that_cannot_be_made_is_told() -> None:
    class Unfinished(BaseMultiTurnMetric):
        def __init__(self) -> None: ...

    class Bare(BaseMultiTurnMetric):
        def __init__(self, words: list[str]) -> None:  # pyright: ignore[reportMissingSuperCall]
            self.words = words

        def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
            return MetricResult(score=1.0)

    assert check_metric(Unfinished) == ["Unfinished does not define evaluate_conversation."]
    assert "missing 1 required positional argument: 'words'" in check_metric(Bare)[0]
    assert "has no config: call super().__init__" in check_metric(Bare, words=[])[0]
    assert check_metric(metric_class()(), words=[]) == ["Brevity is made already and takes no options: give its class."]
    for thing in (3, "contains", dict):
        assert "is not a metric: derive it from BaseMultiTurnMetric" in check_metric(thing)[0]


def test_functions_are_checked_as_the_metrics_that_they_become() -> None:
    def greets(conversation: Any) -> bool:
        """Say whether the first answer greets."""
        return "arrives" in conversation.messages[-1].text or len(conversation.messages) > 1

    def says_so(sample: Any, submission: str) -> float:
        """Score whether the reply welcomes."""
        return float("welcome" in submission)

    def wordless(sample: Any, submission: str) -> float:
        return 1.0

    def takes_mood(mood: str) -> bool:
        return bool(mood)

    assert check_metric(says_so) == []
    assert check_metric(greets) == []
    assert check_metric(wordless) == [
        "wordless has no description: write a docstring whose first line says what it measures."
    ]
    assert "takes 'mood', which is not an input" in check_metric(takes_mood)[0]


def test_a_judge_is_asked_only_where_one_is_given() -> None:
    options: dict[str, Any] = {"prompt": "Is the assistant polite?", "name": "polite", "score": {"kind": "binary"}}
    sentences = check_metric(PromptMetric, **options)
    assert any("asks a judge, so nothing was measured" in sentence for sentence in sentences)
    model = ScriptedModel(lambda _: ValueError("no answer"))
    sentences = check_metric(PromptMetric, model=model, **options)
    assert any("fails on a small conversation: " in sentence for sentence in sentences)
    assert model.requests
