"""A row with a history: the target gets it, and the inputs or the tester go on from there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.records.run import Outcome
from vivavoce.run.summary import RunResult
from vivavoce.samples.row import read_sample
from vivavoce.samples.sample import Sample
from vivavoce.suites.experiment import run_suite

TALK = [{"role": "user", "content": "I am Ada."}, {"role": "assistant", "content": "Hello Ada, a refund?"}]
CALL = [
    {"role": "assistant", "tool_calls": [{"id": "1", "name": "refund", "arguments": {}}]},
    {"role": "tool", "tool_call_id": "1", "content": "paid"},
]
CODE = """\
from vivavoce.messages import ToolCall
from vivavoce.testing import ScriptedModel

def reply(messages):
    return f"{len(messages)} messages, the first is: {messages[0]['content']}"

def forget(messages):
    return "I do not know."

def latest(message):
    return "Yes."

def speak(request):
    return [ToolCall(name="send_message_to_target", args={"message": "Who am I?", "reasoning": "because"})]

def examine(request):
    if "faults" in request.schema.model_fields:
        return {"faults": [], "obstacle": "none", "obstacle_evidence": [], "reasoning": "fine", "confidence": 0.9}
    return {"achievement_level": "not_achieved", "confidence": 0.9, "reasoning": "as read", "evidence": []}

customer, examiner = ScriptedModel(speak, "customer"), ScriptedModel(examine, "examiner")
"""


@pytest.fixture(autouse=True)
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bot.py").write_text(CODE)


def _run(row: dict[str, Any], bot: str = "reply", **suite: Any) -> RunResult:
    graders = {"says": {"kind": "function", "function": "contains"}}
    spec = {"name": "goes on", "target": {"kind": "function", "function": f"bot.py:{bot}"}, "graders": graders}
    Path("suite.yaml").write_text(json.dumps({**spec, "dataset": {"rows": [{"id": "a", **row}]}, **suite}))
    return run_suite("suite.yaml", store="kept.db")


def _only(result: RunResult) -> Outcome:
    (outcome,) = result.outcomes()
    return outcome


def _replies(outcome: Outcome) -> list[str]:
    return [turn.messages[-1].text for turn in outcome.attempt.trajectory.turns]


def test_the_inputs_go_on_from_the_history() -> None:
    result = _run({"history": TALK, "input": ["What is my name?", "Sure?"], "ground_truth": "I am Ada"})
    outcome = _only(result)
    assert _replies(outcome) == [
        "Hello Ada, a refund?",
        "3 messages, the first is: I am Ada.",
        "5 messages, the first is: I am Ada.",
    ]
    assert outcome.scores["says"].value == 1


def test_a_history_may_begin_with_a_greeting_and_hold_calls() -> None:
    greeting = {"role": "assistant", "content": "Good morning!"}
    outcome = _only(_run({"history": [greeting, TALK[0], *CALL, TALK[1]], "input": "And?", "ground_truth": "6"}))
    assert _replies(outcome)[-1] == "6 messages, the first is: Good morning!"


def test_what_is_listed_for_turns_is_about_the_inputs() -> None:
    row = {"history": TALK, "input": ["One?", "Two?"], "ground_truth": ["3 messages", "5 messages"]}
    result = _run({**row, "expect": [{"contains": "3 messages"}, {"contains": "5 messages"}]})
    outcome = _only(result)
    turns = outcome.scores["says"].turns or ()
    assert [turn.state for turn in turns] == ["skipped", "scored", "scored"]
    assert outcome.scores["says"].passed
    assert outcome.scores["expect"].passed
    assert [finding.turn for finding in outcome.scores["expect"].findings] == [1, 2]


@pytest.mark.parametrize(
    ("assertion", "passes"),
    [
        ({"contains": "refund"}, False),
        ({"not_contains": "refund"}, True),
        ({"calls": [{"name": "refund"}]}, False),
        ({"no_call": "refund"}, True),
        ({"latency": 60}, True),
    ],
)
def test_the_history_fulfils_and_breaks_no_assertion(assertion: dict[str, Any], passes: bool) -> None:
    row = {"history": [TALK[0], *CALL, TALK[1]], "input": "And?", "expect": {"all": [assertion]}}
    assert _only(_run({**row, "ground_truth": "x"})).scores["expect"].passed is passes


def test_calls_of_the_history_are_not_those_of_the_target() -> None:
    row = {"history": [TALK[0], *CALL, TALK[1]], "input": "And?", "reference_tool_calls": [{"name": "refund"}]}
    graders = {"calls": {"kind": "function", "function": "tool_call_f1"}}
    assert _only(_run(row, graders=graders)).scores["calls"].value == 0


def test_a_tester_goes_on_from_the_history_with_all_its_turns() -> None:
    tester = {"model": "bot.py:customer", "judge": "bot.py:examiner", "max_turns": 2, "review": False}
    graders = {"goal": {"kind": "tool", "function": "goal_achieved"}}
    row = {"history": TALK, "goal": "The user is told their name."}
    outcome = _only(_run(row, driver="penelope", tester=tester, graders=graders))
    turns = outcome.attempt.trajectory.turns
    assert [turn.messages[0].text for turn in turns] == ["I am Ada.", "Who am I?", "Who am I?"]
    assert _replies(outcome)[1:] == ["3 messages, the first is: I am Ada.", "5 messages, the first is: I am Ada."]


def test_a_target_that_keeps_the_conversation_is_refused() -> None:
    with pytest.raises(UsageError, match=r"1 row has a 'history', and bot\.latest keeps the conversation itself"):
        _run({"history": TALK, "input": "And?"}, "latest")


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"input": "a", "history": TALK[:1]}, "'history' ends with a user message; move it to"),
        ({"input": "a", "history": TALK[1:]}, "'history' has no user message"),
        ({"input": "a", "history": []}, "'history' has no user message"),
        ({"input": "a", "history": [{"role": "system", "content": "x"}, *TALK]}, "'history' has a system message"),
        ({"messages": TALK, "history": TALK}, "'history' needs an 'input' or a 'goal'"),
        ({"messages": TALK, "input": "a"}, "put earlier messages in 'history'"),
        (
            {"input": ["a", "b"], "history": TALK, "ground_truth": ["x", "y", "z"]},
            "2 turns after the history",
        ),
        ({"input": [{"content": "a", "session": 1}], "history": TALK}, "use either 'history' or sessions, not both"),
        ({"history": TALK}, "a sample needs 'input'"),
    ],
)
def test_a_history_that_cannot_be_gone_on_from_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        read_sample(fields, line=1, position=0, base=Path())


def test_a_sample_reads_its_own_text() -> None:
    sample = Sample.model_validate({"id": "a", "history": TALK, "input": ["x", "y"], "ground_truth": ["1", "2"]})
    again = Sample.model_validate_json(sample.row_text())
    assert (again, again.history_turns, again.turn_count) == (sample, 1, 3)
    assert [turn.ground_truth for turn in again.turns] == [None, "1", "2"]


KNOWS_NOTHING = {"kind": "function", "function": "bot.py:forget"}
ANA = [TALK[0], *CALL, {"role": "assistant", "content": "Hello Ada."}]


@pytest.mark.parametrize(
    ("grader", "value"),
    [
        ({"function": "contains", "extractor": "all_assistant"}, 0),
        ({"function": "contains", "extractor": "first_assistant"}, 0),
        ({"function": "contains", "extractor": "tool_output", "extractor_config": {"tool_name": "refund"}}, 0),
        ({"function": "contains", "extractor": "tool_calls"}, 0),
        ({"function": "contains", "extractor": "transcript"}, 1),
    ],
)
def test_extractors_look_at_what_comes_after_the_history(grader: dict[str, Any], value: int) -> None:
    truth = {"tool_output": "paid", "tool_calls": "refund"}.get(grader["extractor"], "Hello Ada")
    row = {"history": ANA, "input": "What is my name?", "ground_truth": truth}
    result = _run(row, graders={"found": {"kind": "function", **grader}}, target=KNOWS_NOTHING)
    assert _only(result).scores["found"].value == value


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ({"always": {"call": "refund"}}, 0),
        ({"always": {"assistant_says": "Ada"}}, 0),
        ({"never": {"call": "refund"}}, 1),
        ({"never": {"assistant_says": "know"}, "after": {"call": "refund"}}, 0),
        ({"each": {"assistant_says": "know"}, "only_after": [{"call": "refund"}]}, 1),
        ({"each": {"call": "refund"}, "only_after": [{"call": "look"}]}, None),
        ({"at_most": 1, "of": {"call": "refund"}}, 1),
        ({"at_most": 1, "of": {"assistant_says": "."}}, 0),
    ],
)
def test_a_rule_is_about_what_comes_after_the_history(rule: dict[str, Any], value: int | None) -> None:
    row = {"history": ANA, "input": "What is my name?"}
    result = _run(row, graders={"rule": {"kind": "rule", **rule}}, target=KNOWS_NOTHING)
    assert _only(result).scores["rule"].value == value
