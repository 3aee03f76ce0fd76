"""What `evaluate` and its kin take besides lists: one conversation, one metric, and a store that is a path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vivavoce import ConversationHistory, MultiTurnSample, Sample, Store, UsageError, evaluate, run_suite
from vivavoce.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from vivavoce.metrics import evaluate_conversation, evaluate_test_result
from vivavoce.settings import settings
from vivavoce.testing import ScriptedModel

from .talks import scores, talk

FIRST: dict[str, Any] = {
    "messages as dicts": talk(),
    "messages": ConversationHistory.from_dict_list(talk()).messages,
    "a tuple": tuple(talk()),
    "a history": ConversationHistory.from_dict_list(talk()),
    "a row": {"messages": talk()},
    "a sample": Sample(id="0", messages=ConversationHistory.from_dict_list(talk()).messages),
    "a sample of Ragas": MultiTurnSample.model_validate({"user_input": talk()}),
}


@pytest.mark.parametrize("form", FIRST)
def test_one_conversation_is_a_run_of_one(form: str) -> None:
    assert scores(evaluate(FIRST[form], "refusal"), "refusal") == {"0": ("scored", 1.0)}


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([1], "a row is a dict with 'messages', a sample or a ConversationHistory; got int"),
        ([{"role": "user", "content": "Hi."}, {"id": "a", "input": "Hi."}], "and this one is a single message"),
        ([[1, 2]], "got list"),
    ],
)
def test_rows_of_a_wrong_kind_begin_no_run(rows: Any, complaint: str) -> None:
    with pytest.raises(UsageError, match="row 0") as caught:
        evaluate(rows, "refusal")
    assert complaint in str(caught.value)
    assert not Path(settings().store).exists()


def test_one_metric_may_stand_alone(tmp_path: Path) -> None:
    with_options = {"metric": "refusal", "name": "no"}
    assert list(evaluate_conversation(talk(), "refusal")) == ["refusal"]
    assert list(evaluate_conversation(talk(), with_options)) == ["no"]
    run = evaluate(talk(), with_options, store=tmp_path / "kept.db").run.id
    assert list(evaluate_test_result(f"{run}/0", "refusal", store=tmp_path / "kept.db")) == ["refusal"]
    with pytest.raises(UsageError, match="no metric 'refusl'; did you mean 'refusal'"):
        evaluate(talk(), "refusl")


def test_a_store_may_be_a_path(tmp_path: Path) -> None:
    place = tmp_path / "kept.db"
    (tmp_path / "bot.py").write_text("def reply(message: str) -> str:\n    return message\n")
    (tmp_path / "suite.yaml").write_text(
        "name: echo\ndataset:\n  rows: [{input: Hi, ground_truth: Hi}]\n"
        "target: {kind: function, function: 'bot.py:reply'}\ngraders: {same: {kind: function, function: exact_match}}\n"
    )
    result = run_suite(tmp_path / "suite.yaml", store=place)
    assert [outcome.scores["same"].value for outcome in result.outcomes()] == [1.0]
    with Store.open(place) as store:
        assert store.run("latest").id == result.run.id


def test_what_a_sample_of_ragas_knows_is_scored_in_one_call() -> None:
    sample = MultiTurnSample(
        user_input=[
            HumanMessage(content="Book a table."),
            AIMessage(content="", tool_calls=[ToolCall(name="book", args={"guests": 2})]),
            ToolMessage(content="done"),
            AIMessage(content="It is booked."),
        ],
        reference="It is booked.",
        reference_topics=["tables"],
        reference_tool_calls=[ToolCall(name="book", args={"guests": 2})],
    )
    judge = ScriptedModel(
        [
            {
                "requests": [
                    {"turn": 1, "request": "a table", "evidence": ["It is booked."], "on_topic": True, "answered": True}
                ]
            }
            | {"reasoning": "It was booked.", "confidence": 1}
        ]
    )
    result = evaluate(sample, ["tool_call_accuracy", "contains", "topic_adherence"], model=judge)
    for name in ("tool_call_accuracy", "contains", "topic_adherence"):
        assert scores(result, name) == {"0": ("scored", 1.0)}, name
    assert "tables" in str(judge.requests[0])
