"""Metrics on what an extractor picks, and on each turn alone."""

from __future__ import annotations

import re
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.grading.metrics import metric_grader, with_answer
from vivavoce.messages import read_messages, split_turns
from vivavoce.metrics.factory import Choice, choose_metric
from vivavoce.models.model import Request
from vivavoce.records.score import Score
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.samples.sample import Sample
from vivavoce.testing import ScriptedModel

TALK = [
    {"role": "user", "content": "What is the capital of France?"},
    {"role": "assistant", "content": "Let me think. Answer: Paris"},
    {"role": "user", "content": "And of Italy?"},
    {"role": "assistant", "content": "Answer: Rome, the eternal city"},
]
AFTER: Choice = {"metric": "response_length", "extractor": "after_marker", "extractor_config": {"marker": "Answer:"}}
WORDS: Choice = {**AFTER, "config": {"unit": "words"}, "threshold": 4}


async def graded(choice: Choice, talk: list[dict[str, Any]] = TALK, model: Any = None, **known: Any) -> Score:
    messages = read_messages(talk)
    opening, turns = split_turns(messages)
    held = [Turn(index=index, messages=turn) for index, turn in enumerate(turns)]
    grader = metric_grader("it", choose_metric(choice, model))
    return await grader.grade(Sample(id="s", messages=messages, **known), Trajectory(opening=opening, turns=held))


async def test_a_metric_measures_what_the_extractor_picks() -> None:
    score = await graded(WORDS)
    assert (score.state, score.raw, score.submission) == ("scored", 4.0, "Rome, the eternal city")
    assert (await graded({**WORDS, "extractor": "first_assistant", "extractor_config": {}})).raw == 5.0


async def test_a_judge_sees_the_conversation_with_that_text_as_the_answer() -> None:
    model = ScriptedModel([{"violations": [], "reasoning": "r", "confidence": 1}])
    await graded({**AFTER, "metric": "safety"}, model=model)
    said = model.requests[0].messages[-1].text
    assert 'user: "And of Italy?"\nassistant: "Rome, the eternal city"\n' in said
    assert 'user: "What is the capital of France?"' in said, "the user's side stays"
    assert "Answer:" not in said, "and nothing else of the assistant's"


def judge(request: Request) -> dict[str, Any]:
    """Give 5 to Paris, and 0 to anything else; a judge who sees two turns at once is an error."""
    text = request.messages[-1].text
    assert ("Paris" in text) != ("Rome" in text), "each turn is seen alone"
    assert ('"the French one"' in text) == ("Paris" in text), "with its own truth"
    return {
        "reasoning": "r",
        "evidence": ["Paris"] if "Paris" in text else [],
        "score": 5 if "Paris" in text else 0,
        "confidence": 1,
    }


CRITERIA: Choice = {"metric": "simple_criteria", "config": {"criteria": "Is it right?"}, "threshold": 2.5}


@pytest.mark.parametrize("how", [AFTER, {"extractor": "last_assistant"}])
async def test_it_works_turn_by_turn_where_the_sample_has_a_truth_for_each(how: Choice) -> None:
    choice: Choice = {**how, **CRITERIA}
    score = await graded(choice, model=ScriptedModel(judge), ground_truth=["the French one", "the Roman one"])
    assert [(turn.value, turn.passed, turn.raw) for turn in score.turns or ()] == [(1.0, True, 5.0), (0.0, False, 0.0)]
    assert (score.value, score.passed) == (0.5, True), "the mean reaches the threshold, which is 0.5 of the range"
    score = await graded(choice, model=ScriptedModel(judge), ground_truth=["the French one", None])
    assert [turn.state for turn in score.turns or ()] == ["scored", "skipped"]


async def test_a_scope_says_whether_each_turn_is_measured_or_the_whole() -> None:
    each = await graded({**WORDS, "scope": "turn"})
    assert [turn.raw for turn in each.turns or ()] == [1.0, 4.0]
    whole = await graded({**WORDS, "scope": "conversation"}, ground_truth=["x", "y"])
    assert (whole.turns, whole.raw) == (None, 4.0)
    with pytest.raises(UsageError, match="cannot use windows; remove scope"):
        choose_metric({**WORDS, "scope": "window"})


async def test_its_judge_is_counted_and_can_be_another() -> None:
    sample = Sample(id="s", messages=read_messages(TALK), ground_truth=["x", "y"])
    metric = choose_metric({**AFTER, "metric": "safety"}, ScriptedModel([]))
    assert metric_grader("it", metric).verdicts(sample) == 2, "one for each turn"
    assert metric_grader("it", metric).verdicts(sample.model_copy(update={"ground_truth": None})) == 1
    assert metric_grader("it", choose_metric({**AFTER, "metric": "safety"})).verdicts(sample) == 0


async def test_the_extractor_and_the_scope_are_part_of_the_fingerprint() -> None:
    choices: list[Choice] = [
        WORDS,
        {**WORDS, "scope": "turn"},
        {**WORDS, "extractor_config": {"marker": "x"}},
        {"metric": "response_length", "config": {"unit": "words"}, "threshold": 1},
    ]
    assert len({choose_metric(choice).fingerprint for choice in choices}) == 4


async def test_it_says_the_same_without_a_run() -> None:
    metric = choose_metric(WORDS)
    result = metric.evaluate(TALK)
    assert (result.name, result.score, result.value, result.passed) == ("response_length", 4.0, 1.0, True)


def test_the_text_is_all_that_the_assistant_says() -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
    messages = read_messages([*TALK[:3], call, {"role": "tool", "content": "found"}, TALK[3]])
    assert [message.text for message in with_answer(messages, "Rome")] == [
        "What is the capital of France?",
        "And of Italy?",
        "Rome",
    ]
    assert [message.text for message in with_answer([], "Rome")] == ["Rome"]


@pytest.mark.parametrize(
    ("choice", "complaint"),
    [
        ({"metric": "safety", "extractor": "last_assistnt"}, "no extractor 'last_assistnt'; did you mean"),
        ({"metric": "safety", "extractor": "pattern"}, "'pattern' needs the option 'pattern'"),
        ({"metric": "saftey"}, "no metric 'saftey'; did you mean 'safety'?"),
        ({"metric": "fuzzy_ratio", "threshold": 7}, "scores of 'fuzzy_ratio' are from 0 to 1; got threshold: 7"),
        ({"metric": "fuzzy_ratio", "config": {"tolerance": 1}}, "'fuzzy_ratio' has no option 'tolerance'"),
        ({"metric": "turn_count", "threshold": -1}, "the scores of 'turn_count' go from 0; got threshold: -1"),
        ({"metric": "safety", "treshold": 1}, "no option 'treshold'; did you mean 'threshold'?"),
        ({"metric": "safety", "config": {"model": "openai:x"}}, "model belongs next to config, not in it"),
        ({"threshold": 1}, "metric"),
    ],
)
def test_a_choice_that_cannot_be_used_is_told(choice: Any, complaint: str) -> None:
    with pytest.raises(UsageError, match=re.escape(complaint)):
        choose_metric(choice)
