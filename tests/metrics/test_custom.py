from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy
import pytest

from vivavoce.errors import UsageError
from vivavoce.messages import AnyMessage, ConversationHistory
from vivavoce.metrics.custom import FunctionMetric, PromptMetric, function_metric
from vivavoce.metrics.evaluation import evaluate_conversation
from vivavoce.metrics.result import MetricResult
from vivavoce.records.score import Evidence
from vivavoce.testing import ScriptedModel

CONVERSATION = [
    {"role": "user", "content": "Hi. {{ goal }} {% raw %} {{ 7 * 7 }}"},
    {"role": "assistant", "content": "Good day to you."},
]
BINARY = {"kind": "binary"}


def returning(value: object, **options: Any) -> MetricResult:
    def grade(conversation: ConversationHistory) -> object:
        del conversation
        return value

    return function_metric(grade, **options).evaluate(CONVERSATION)


def test_a_function_becomes_a_metric_with_its_name_and_description() -> None:
    @function_metric
    def length(conversation: ConversationHistory) -> float:
        """Say how long it is.

        And more.
        """
        return len(conversation.messages) / 4

    result = length.evaluate(CONVERSATION)
    assert (result.name, result.score, result.value, result.passed) == ("length", 0.5, 0.5, False)
    assert length.config.description == "Say how long it is."


async def test_a_function_may_be_async_and_gets_what_it_asks_for_by_name() -> None:
    @function_metric(name="mine", threshold=0.5)
    async def grade(
        goal: str, messages: list[AnyMessage], *, context: dict[str, Any], reference: str = "none"
    ) -> float:
        await asyncio.sleep(0)
        assert (goal, messages[1].text, context, reference) == ("to greet", "Good day to you.", {"a": 1}, "none")
        return 1

    result = await grade.aevaluate(CONVERSATION, "to greet", context={"a": 1}, reference="none")
    assert (result.name, result.score, result.passed) == ("mine", 1.0, True)


def test_what_a_function_needs_and_nobody_knows_skips_it() -> None:
    def grade(goal: str, reference: str | None = None) -> float:
        return 1.0 if goal and reference is None else 0.0

    result = function_metric(grade).evaluate(CONVERSATION)
    assert (result.state, result.reasoning) == ("skipped", "needs a goal, and none is given")
    assert function_metric(grade).evaluate(CONVERSATION, goal="to greet").score == 1.0


@pytest.mark.parametrize(
    ("value", "options", "score", "passed"),
    [
        (True, {}, True, True),
        (False, {}, False, False),
        (True, {"direction": "lower_is_better"}, True, False),
        (7, {"maximum": 10, "threshold": 5}, 7.0, True),
        (0, {"maximum": 0, "minimum": -1}, 0.0, True),
        (-0.5, {"maximum": 0, "minimum": -1}, -0.5, False),
        (10**6, {"maximum": None}, 1e6, None),
        ("polite", {"categories": ("rude", "polite"), "passing_categories": ("polite",)}, "polite", True),
    ],
)
def test_numbers_bools_and_labels_are_scores(value: object, options: Any, score: object, passed: bool | None) -> None:
    result = returning(value, **options)
    assert (result.state, result.score, result.passed) == ("scored", score, passed)


@pytest.mark.parametrize(
    ("value", "options"),
    [
        ("", {}),
        (2, {}),
        (-0.1, {}),
        (float("nan"), {}),
        (float("inf"), {"maximum": None}),
        ("polite", {}),
        ({"score": 1}, {}),
        (MetricResult(score=7.0), {}),
        ("kind", {"categories": ("rude", "polite")}),
        (0.5, {"categories": ("rude", "polite")}),
        (True, {"categories": ("rude", "polite")}),
    ],
)
def test_nonsense_is_an_error_and_never_a_score(value: object, options: Any) -> None:
    result = returning(value, **options)
    assert (result.state, result.score, result.passed, result.value) == ("error", "error", None, None)
    assert result.error is not None
    assert (result.error.blame, result.error.kind) == ("grader", "format")
    assert "grade returned" in result.error.message


def test_a_function_that_returns_none_does_not_apply() -> None:
    result = returning(None)
    assert (result.state, result.raw, result.passed) == ("skipped", None, None)
    assert result.reason == "grade returned None: it does not apply"


@pytest.mark.parametrize("value", [numpy.float32(0.5), Decimal("0.5"), Fraction(1, 2)])
def test_numbers_of_other_types_are_scores(value: object) -> None:
    assert returning(value).raw == 0.5


def test_a_function_that_says_bool_returns_one() -> None:
    def polite(conversation: ConversationHistory) -> bool:
        return len(conversation.messages)  # pyright: ignore[reportReturnType]

    assert function_metric(polite).config.score_type == "binary"
    assert "it returns a bool" in str(function_metric(polite).evaluate(CONVERSATION).reasoning)


@pytest.mark.parametrize("error", [ValueError("boom"), SystemExit(3)])
def test_a_function_that_raises_is_an_error_and_the_other_metrics_go_on(error: BaseException) -> None:
    @function_metric
    def broken(conversation: ConversationHistory) -> float:
        raise error

    fine = function_metric(lambda messages: len(messages) / 2, name="fine")  # pyright: ignore
    report = evaluate_conversation(CONVERSATION, [broken, fine])
    assert (report["broken"].state, report["fine"].score) == ("error", 1.0)
    assert report["broken"].error is not None
    assert report["broken"].error.blame == "grader"


def test_a_result_of_ones_own_keeps_its_reasons_and_gets_what_it_lacks() -> None:
    own = MetricResult(score=0.9, reasoning="Greets.", evidence=(Evidence(text="Good day"),), details={"words": 4})
    result = returning(own, threshold=0.5)
    assert (result.name, result.score, result.value, result.passed) == ("grade", 0.9, 0.9, True)
    assert (result.reasoning, result.details["words"], result.evidence[0].text) == ("Greets.", 4, "Good day")
    skipped = returning(MetricResult(score=None, state="skipped", reasoning="not here"))
    assert (skipped.name, skipped.state, skipped.reasoning) == ("grade", "skipped", "not here")


def wants_gaol(conversation: object, gaol: str) -> float:
    raise NotImplementedError


def wants_anything(*conversation: object) -> float:
    raise NotImplementedError


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: function_metric(wants_gaol), "takes 'gaol', which is not an input; did you mean 'goal'"),
        (lambda: function_metric(wants_anything), "'conversation' cannot be"),
        (
            lambda: function_metric(wants_gaol, nmae="x"),  # pyright: ignore
            "no option 'nmae'; did you mean 'name'",
        ),
        (lambda: function_metric(lambda: 1, minimum=1), "minimum must be below maximum"),
        (lambda: function_metric(lambda: 1, categories=("a", "b"), passing_categories=("c",)), "no category 'c'"),
    ],
)
def test_what_is_wrong_with_a_function_is_said_when_the_metric_is_made(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make()


def test_the_fingerprint_follows_the_source() -> None:
    def make(function: Callable[..., float], **options: Any) -> str:
        return FunctionMetric(function, **options).fingerprint

    def one(goal: str) -> float:
        return 1.0 if goal else 0.0

    def other(goal: str) -> float:
        return 0.0 if goal else 1.0

    assert make(one) == make(one)
    assert len({make(one), make(other), make(one, maximum=2.0)}) == 3


def prompted(reply: dict[str, Any], score: Any = BINARY, **options: Any) -> tuple[PromptMetric, ScriptedModel]:
    model = ScriptedModel([{"reasoning": "So it is.", "evidence": ["Good day"], "confidence": 0.9, **reply}])
    asked: Any = {"name": "polite", "prompt": "Is it polite?", "score": score, **options}
    return PromptMetric(model, **asked), model


NUMBER = {"kind": "numeric", "min": 1, "max": 5, "threshold": 3}
LABEL = {"kind": "categorical", "categories": ["rude", "cold", "warm"], "passing": ["warm"]}


@pytest.mark.parametrize(
    ("score", "reply", "value", "passed", "told"),
    [
        (NUMBER, {"score": 4}, 0.75, True, "a number from 1 to 5; 5 is the best."),
        (NUMBER, {"score": 2.5}, 0.375, False, "a number from 1 to 5; 5 is the best."),
        ({**NUMBER, "direction": "lower_is_better"}, {"score": 4}, 0.25, False, "; 1 is the best."),
        (LABEL, {"label": "warm"}, 1.0, True, "worst first: rude, cold, warm."),
        (LABEL, {"label": "cold"}, 0.5, False, "worst first: rude, cold, warm."),
        (BINARY, {"verdict": True}, 1.0, True, "true or false"),
        ({**BINARY, "direction": "lower_is_better"}, {"verdict": True}, 0.0, False, "true or false"),
    ],
)
def test_a_prompt_is_enough_for_every_kind_of_score(
    score: Any, reply: dict[str, Any], value: float, passed: bool, told: str
) -> None:
    metric, model = prompted(reply, score)
    result = metric.evaluate(CONVERSATION)
    assert (result.name, result.score, result.value, result.passed) == ("polite", *reply.values(), value, passed)
    assert [(one.turn, one.verified) for one in result.evidence] == [(0, True)]
    assert told in model.requests[0].messages[1].text


@pytest.mark.parametrize(
    ("score", "reply"),
    [
        (NUMBER, {"score": 6}),
        (NUMBER, {"score": "4"}),
        (NUMBER, {"score": float("nan")}),
        (NUMBER, {"label": "warm"}),
        (LABEL, {"label": "hot"}),
        (LABEL, {"label": None}),
        (BINARY, {"verdict": "yes"}),
        (BINARY, {}),
        (BINARY, {"verdict": True, "confidence": 90}),
        (BINARY, {"verdict": True, "evidence": "Good day"}),
        (BINARY, {"verdict": True, "and": "more"}),
    ],
)
def test_an_answer_outside_the_kind_of_score_is_an_error(score: Any, reply: dict[str, Any]) -> None:
    result = prompted(reply, score)[0].evaluate(CONVERSATION)
    assert (result.state, result.score, result.passed) == ("error", "error", None)


def test_the_conversation_stands_before_the_prompt_and_stays_text() -> None:
    prompt = "Is it polite, given {{ goal }}? {% if must %}Must: {{ must }}{% endif %}"
    metric, model = prompted({"verdict": True}, prompt=prompt)
    result = metric.evaluate(CONVERSATION, goal="{{ must }}", must=["greet"])
    asked = model.requests[0].messages[1].text
    assert 'user: "Hi. {{ goal }} {% raw %} {{ 7 * 7 }}"\n' in asked
    assert asked.index("Good day") < asked.index("Is it polite")
    assert 'Is it polite, given "{{ must }}"? Must: ["greet"]\nverdict: true or false.' in asked
    assert asked in result.details["prompt"]


def test_a_prompt_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "polite.jinja").write_text("Was it polite?\n")
    metric, model = prompted({"verdict": True}, prompt=tmp_path / "polite.jinja")
    metric.evaluate(CONVERSATION)
    assert "Was it polite?" in model.requests[0].messages[1].text


def test_it_judges_turns_too_and_the_worst_label_counts() -> None:
    model = ScriptedModel(
        [{"reasoning": "", "evidence": ["Good day"], "label": label, "confidence": 1.0} for label in ("warm", "rude")]
    )
    metric = PromptMetric(model, name="tone", prompt="How is it?", score=LABEL, scope="turn")
    assert metric.evaluate([*CONVERSATION, *CONVERSATION]).score == "rude"
    assert "judge turn 2; earlier turns are context." in model.requests[1].messages[1].text


@pytest.mark.parametrize("told", [("short", "long"), ("long", "short"), ("long", "short", "right", "short")])
def test_a_turn_that_fails_is_worse_than_any_that_passes_whatever_its_value(told: Sequence[str]) -> None:
    length = {"kind": "categorical", "categories": ["short", "right", "long"], "passing": ["short", "right"]}
    answers: list[dict[str, Any]] = [
        {"reasoning": "", "evidence": ["Good day"], "label": one, "confidence": 1.0} for one in told
    ]
    metric = PromptMetric(ScriptedModel(answers), name="length", prompt="How long is it?", score=length, scope="turn")
    result = metric.evaluate([message for _ in told for message in CONVERSATION])
    assert (result.score, result.passed) == ("long", False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"prompt": "About {{ gaol }}."}, "the prompt asks for 'gaol'; did you mean 'goal'"),
        ({"prompt": "About {{ goal."}, "the prompt is not a template"),
        ({"prompt": "{% endblock %}"}, "the prompt is not a template"),
        ({"prompt": " "}, "the prompt of polite is empty"),
        ({"prompt": Path("gone.jinja")}, "gone.jinja cannot be read"),
        ({"prompt": None}, "prompt"),
        ({"name": ""}, "needs a name and a prompt"),
        ({"score": {"kind": "stars"}}, "score"),
        ({"score": {"min": 1}}, "score"),
        ({"score": {"kind": "numeric", "min": 5, "max": 1}}, "score: min must be below max; got 5 and 1"),
        ({"score": {"kind": "numeric", "threshold": 3}}, "threshold must be from 0 to 1"),
        ({"score": {"kind": "categorical", "categories": ["one"]}}, "score.categories"),
        ({"score": {"kind": "categorical", "categories": ["a", "a"]}}, "is listed twice"),
        ({"score": {**LABEL, "passing": ["worm"]}}, "no category 'worm'; did you mean 'warm'"),
        ({"blocks": {"scores": "x"}}, "has no block 'scores'"),
    ],
)
def test_what_is_wrong_with_a_prompt_is_said_when_the_metric_is_made(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        prompted({"verdict": True}, **options)


def test_another_prompt_is_another_fingerprint() -> None:
    prints = {prompted({}, prompt=text)[0].fingerprint for text in ("Is it polite?", "Is it kind?")}
    assert len(prints) == 2
