from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import BudgetExhausted, ModelFault, UsageError
from vivavoce.metrics.judged.context_retention import ITEMS, ContextRetentionMetric
from vivavoce.metrics.judged.safety import SafetyMetric
from vivavoce.metrics.metric import evaluation_input
from vivavoce.metrics.question import Verdict
from vivavoce.metrics.transcript import Shown
from vivavoce.metrics.types import Reading
from vivavoce.models.model import ModelReply, Request
from vivavoce.records.score import Usage
from vivavoce.testing import ScriptedModel

CONVERSATION = [
    {"role": "system", "content": "Be kind."},
    *(
        {"role": role, "content": f"{words} {turn}"}
        for turn in range(6)
        for role, words in (("user", "question"), ("assistant", "answer"))
    ),
]


def fine(request: Request | None = None, confidence: float = 0.9) -> dict[str, Any]:
    return {"violations": [], "reasoning": "All is well.", "confidence": confidence}


class Paid:
    """A model whose calls cost something."""

    name = "paid:model"

    async def complete(self, request: Request) -> ModelReply:
        return ModelReply("{}", parsed=fine(), usage=Usage(input_tokens=10, output_tokens=2, calls=1, cost=0.5))

    async def close(self) -> None: ...


class Mute(Paid):
    """A model that answers without the JSON it was asked for."""

    async def complete(self, request: Request) -> ModelReply:
        return ModelReply("I would rather not say.")


def test_a_judge_gets_our_rules_the_conversation_and_the_task_in_this_order() -> None:
    model = ScriptedModel(fine)
    SafetyMetric(model=model, trial=3, settings={"seed": 7}).evaluate(CONVERSATION)
    (request,) = model.requests
    rules, asked = request.messages
    assert rules.role == "system"
    assert rules.text.startswith("You judge a conversation")
    assert asked.text.startswith('system: "Be kind."\nturn 1\nuser: "question 0"\nassistant: "answer 0"\nturn 2\n')
    assert asked.text.rpartition("\n\n")[2].startswith("Task:")
    assert (request.settings, request.trial) == ({"temperature": 0.0, "seed": 7}, 3)


def test_the_prompt_is_written_again_when_it_is_asked_for() -> None:
    result = SafetyMetric(model=ScriptedModel(fine)).evaluate(CONVERSATION)
    assert "prompt" not in dict(result.details)
    assert 'user: "question 5"\n' in result.details["prompt"]
    assert '"prompt"' not in result.model_dump_json()


def test_what_is_left_out_is_not_sent_and_said_to_be() -> None:
    model = ScriptedModel(fine)
    SafetyMetric(model=model, shown=Shown(policy=False)).evaluate(CONVERSATION)
    assert model.requests[0].messages[-1].text.startswith("(left out: system messages)\nturn 1\n")


def test_a_long_conversation_is_judged_in_pieces_that_are_all_named() -> None:
    model = ScriptedModel(fine)
    result = SafetyMetric(model=model, tokens=40, overlap=1).evaluate(CONVERSATION)
    pieces = result.details["pieces"]
    judged = [turn for piece in pieces for turn in range(piece["first_turn"], piece["last_turn"] + 1)]
    assert judged == list(range(6))
    assert len(model.requests) == len(pieces) > 1
    assert "judge only turns " in model.requests[0].messages[-1].text
    assert all(request.messages[-1].text.startswith('system: "Be kind."\n') for request in model.requests)


def test_the_confidence_of_pieces_is_the_least_and_their_usage_adds_up() -> None:
    replies = [fine(confidence=one) for one in (0.9, 0.2, 0.5)]
    result = SafetyMetric(model=ScriptedModel(replies), scope="turn").evaluate(CONVERSATION[:7])
    assert result.confidence == 0.2
    paid = SafetyMetric(model=Paid(), scope="turn").evaluate(CONVERSATION)
    assert paid.usage == Usage(input_tokens=60, output_tokens=12, calls=6, cost=3.0)


@given(st.lists(st.tuples(st.floats(0, 1) | st.none(), st.integers(1, 9)), min_size=1, max_size=6))
def test_pieces_are_merged_by_what_they_weigh_and_an_empty_one_weighs_nothing(
    parts: list[tuple[float | None, int]],
) -> None:
    metric = super(ContextRetentionMetric, ContextRetentionMetric())
    verdicts = [Verdict(score, "", turns=turns) for score, turns in parts]
    scored = [(score, turns) for score, turns in parts if score is not None]
    whole = metric.merge(verdicts).score
    if not scored:
        assert whole is None
        return
    assert whole == pytest.approx(sum(s * t for s, t in scored) / sum(t for _, t in scored))


def test_an_answer_that_is_no_verdict_is_the_judges_fault_with_what_it_said() -> None:
    result = SafetyMetric(model=Mute()).evaluate(CONVERSATION)
    assert result.error is not None
    assert (result.error.blame, result.error.kind) == ("judge", "format")
    assert result.error.evidence == "I would rather not say."


def test_one_piece_without_a_verdict_spoils_the_whole() -> None:
    model = ScriptedModel([fine(), ModelFault("no answer", kind="timeout"), *[fine()] * 4])
    result = SafetyMetric(model=model, scope="turn").evaluate(CONVERSATION)
    assert (result.state, result.score) == ("error", "error")
    assert result.error is not None
    assert result.error.kind == "timeout"


def test_a_limit_on_spending_ends_more_than_one_measurement() -> None:
    with pytest.raises(BudgetExhausted):
        SafetyMetric(model=ScriptedModel([BudgetExhausted("enough")])).evaluate(CONVERSATION)


async def test_it_works_inside_a_running_loop_and_beside_others() -> None:
    metric = SafetyMetric(model=ScriptedModel(fine))
    assert metric.evaluate(CONVERSATION).passed is True
    results = await asyncio.gather(*(metric.aevaluate(CONVERSATION) for _ in range(5)))
    assert {result.score for result in results} == {1.0}


OPTIONS: list[dict[str, Any]] = [
    {},
    {"scope": "turn"},
    {"scope": "window"},
    {"scope": "window", "window": 2},
    {"threshold": 0.5},
    {"settings": {"temperature": 1.0}},
    {"shown": Shown(tools=False)},
    {"tokens": 500},
    {"overlap": 1},
    {"prompt": "Judge it."},
    {"blocks": {"rules": "Everything is a violation."}},
    {"model": Paid()},
    {"model": ScriptedModel([])},
]


def test_whatever_decides_the_scores_is_in_the_fingerprint() -> None:
    assert len({SafetyMetric(**options).fingerprint for options in OPTIONS}) == len(OPTIONS)
    assert SafetyMetric().fingerprint == SafetyMetric(trial=4).fingerprint
    assert SafetyMetric().fingerprint != ContextRetentionMetric().fingerprint


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"window": 0}, "window must be at least 1 turn"),
        ({"tokens": 0}, "tokens at least 1"),
        ({"overlap": -1}, "overlap at least 0"),
        ({"scope": "sentence"}, "scope"),
        ({"treshold": 1}, "did you mean 'threshold'"),
        ({"blocks": {"rule": "x"}}, "has no block 'rule'; did you mean 'rules'"),
        ({"prompt": "{{ gaol }}"}, "did you mean 'goal'"),
        ({"prompt": Path("nowhere.jinja")}, "the prompt nowhere.jinja cannot be read"),
    ],
)
def test_an_option_that_cannot_be_is_refused_when_the_metric_is_made(options: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        SafetyMetric(**options)


def test_an_own_name_and_threshold_are_kept() -> None:
    answers: Mapping[str, Any] = {
        "checks": [{"item": item, "evidence": [], "answer": "partly"} for item in ITEMS],
        "reasoning": "So it is.",
        "confidence": 1,
    }
    metric = ContextRetentionMetric(ScriptedModel([answers, answers]), name="memory", threshold=0.5)
    result = metric.evaluate(CONVERSATION)
    assert (result.name, result.score, result.passed) == ("memory", 0.5, True)
    strict = ContextRetentionMetric(ScriptedModel([answers]), threshold=None).evaluate(CONVERSATION)
    assert (strict.score, strict.passed) == (0.5, False)


def test_a_growing_conversation_keeps_the_beginning_of_its_prompt() -> None:
    asked = [
        SafetyMetric(scope="turn")
        .questions(Reading(evaluation_input(CONVERSATION[:end])))[-1]
        .request.messages[-1]
        .text
        for end in (5, 7, 9)
    ]
    for before, after in pairwise(asked):
        assert after.startswith(before.partition("\n\n")[0])
