"""A sample of Ragas in one call: everything that can be measured on it is, by name."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from vivavoce import EvaluationDataset, MultiTurnSample, SingleTurnSample, evaluate
from vivavoce.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from vivavoce.models.model import Request
from vivavoce.testing import ScriptedModel

CALL = ToolCall(name="Weather", args={"place": "NYC"})
TALK = [
    HumanMessage(content="What's the weather?"),
    AIMessage(content="", tool_calls=[CALL]),
    ToolMessage(content="sunny"),
    AIMessage(content="Sunny."),
]
RUBRICS = {"score1_description": "wrong", "score5_description": "right"}
WHOLE = MultiTurnSample(
    user_input=TALK,
    reference="Sunny.",
    reference_tool_calls=[CALL],
    reference_topics=["weather"],
    rubrics=RUBRICS,
)
BARE = MultiTurnSample(user_input=[HumanMessage(content="Hi"), AIMessage(content="Hello.")])
NEEDING = ("tool_call_accuracy", "tool_call_f1", "trajectory_match", "topic_adherence", "rubrics_score", "exact_match")
METRICS = [*NEEDING, "agent_goal_accuracy"]


def judge_request(request: Request) -> dict[str, Any]:
    assert isinstance(request.schema, type)
    answer = {"reasoning": "So it is.", "confidence": 0.9}
    fields = request.schema.model_fields
    if "requests" in fields:
        question_fields = {
            "turn": 1,
            "request": "the weather",
            "evidence": ["Sunny.", "Hello.", "Paris."],
            "on_topic": True,
            "answered": True,
        }
        return {**answer, "requests": [question_fields]}
    if "outcomes" in fields:
        return {
            **answer,
            "outcomes": [{"outcome": "told", "evidence": ["Sunny.", "Hello.", "Paris."], "reached": True}],
        }
    return {**answer, "evidence": ["Sunny.", "Hello.", "Paris."], "score": 5}


def test_every_metric_that_a_sample_has_the_reference_for_scores_it_and_no_other() -> None:
    result = evaluate(EvaluationDataset([WHOLE, BARE]), METRICS, model=ScriptedModel(judge_request))
    whole, bare = [outcome.scores for outcome in result.outcomes()]
    assert {name: (score.state, score.value) for name, score in whole.items()} == dict.fromkeys(
        METRICS, ("scored", 1.0)
    )
    assert whole["rubrics_score"].raw == 5
    assert {name: bare[name].state for name in METRICS} == {
        **dict.fromkeys(NEEDING, "skipped"),
        "agent_goal_accuracy": "scored",
    }
    assert {grader.errors for grader in result.summary.graders} == {0}


def test_each_row_is_judged_by_its_own_rubrics_also_a_single_turn() -> None:
    rows = [
        SingleTurnSample(user_input="Capital?", response="Paris.", rubrics=RUBRICS),
        SingleTurnSample(
            user_input="Capital?", response="Paris.", rubrics={**RUBRICS, "score9_description": "perfect"}
        ),
    ]
    result = evaluate(
        EvaluationDataset(rows), {"metric": "rubrics_score", "threshold": 4}, model=ScriptedModel(judge_request)
    )
    scores = [outcome.scores["rubrics_score"] for outcome in result.outcomes()]
    assert [(score.raw, score.value, score.passed) for score in scores] == [(5.0, 1.0, True), (5.0, 0.5, True)]


def test_samples_of_ragas_itself_are_read_by_their_shape() -> None:
    class Said(BaseModel):
        content: str
        type: str
        tool_calls: list[dict[str, Any]] | None = None

    class TheirSample(BaseModel):
        user_input: list[Said]
        reference_tool_calls: list[dict[str, Any]] | None = None
        reference: str | None = None

    call = {"name": "Weather", "args": {"place": "NYC"}}
    talk = [Said(content="Weather?", type="human"), Said(content="", type="ai", tool_calls=[call])]
    theirs: Any = [TheirSample(user_input=talk, reference_tool_calls=[call])]
    for inputs in (theirs, theirs[0]):
        assert evaluate(inputs, "tool_call_f1").summary.grader("tool_call_f1").mean == 1.0
