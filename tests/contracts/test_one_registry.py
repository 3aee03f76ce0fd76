"""A name means one thing everywhere: every metric and grading function says the same wherever it is named.

Each is named in a suite, in `evaluate`, in `viva judge`, in a job of the API, in Python alone, and in a test by the
tester; the conversations are the same, and so are the answers of the judge.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from server.live import get, send, serving
from vivavoce import RunResult, Sample, Store, evaluate, run_suite
from vivavoce.cli.main import main
from vivavoce.grading.metrics import FunctionGrader
from vivavoce.metrics import evaluate_conversation
from vivavoce.metrics.factory import Choice, choose_metric, metrics
from vivavoce.metrics.stored_conversation import evaluate_test_result
from vivavoce.records.score import Score
from vivavoce.server.policy import ServerPolicy
from vivavoce.testing import LoopbackServer

Answers = dict[tuple[str, str], tuple[str, float | None, bool | None]]
"""What is said of each conversation by each name: its state, its value, and whether it passes."""

CALL = {"id": "a", "type": "function", "function": {"name": "look_up", "arguments": '{"order": 7}'}}
HELD: list[dict[str, Any]] = [
    {"role": "user", "content": "Where is my good old order 7?"},
    {"role": "assistant", "content": "Let me have a look at it.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "a", "content": '{"status": "on its way"}'},
    {"role": "assistant", "content": "Order 7 is on its way to you."},
    {"role": "user", "content": "Thank you, that is great."},
    {"role": "assistant", "content": "You are welcome."},
]
KNOWN: dict[str, Any] = {
    "goal": "Know where it is",
    "context": {"role": "a clerk", "reference_contexts": ["on its way"]},
    "labels": {"good": 0.5},
    "reference_tool_calls": [{"name": "look_up", "args": {"order": 7}}],
}
WELCOME = "You are welcome, order 7!"
ROWS: list[dict[str, Any]] = [
    {
        "id": "whole",
        "messages": HELD,
        "ground_truth": WELCOME,
        "expect": {"calls": "look_up"},
        **KNOWN,
    },
    {
        "id": "turns",
        "messages": HELD,
        "ground_truth": ["Order 7 is on its way to you.", None],
        "expect": [{"contains": "order 7"}, {"equals": "No."}],
        **KNOWN,
    },
    {"id": "bare", "messages": HELD},
    {
        "id": "handed",
        "messages": [
            HELD[0],
            {**HELD[1], "name": "clerk", "agent_tools": ["look_up"]},
            HELD[2],
            {**HELD[3], "name": "clerk", "handoff_to": "a person"},
        ],
    },
    {"id": "silent", "messages": [HELD[0], {"role": "assistant", "content": ""}], "ground_truth": "Hello 7", **KNOWN},
]
CONFIG: Mapping[str, dict[str, Any]] = {
    "aspect_critic": {"definition": "It is polite."},
    "guidelines": {"guidelines": ["Be kind."]},
    "last_agent": {"expected": "clerk"},
    "rule": {"each": {"call": "look_up"}, "only_after": [{"user_says": "order"}]},
    "rubrics_score": {"rubrics": {"score1_description": "bad", "score2_description": "good"}},
    "simple_criteria": {"criteria": "How kind is it?"},
    "topic_adherence": {"topics": ["orders"]},
    "json_schema": {"schema": {"type": "object"}},
    "recorded": {"path": "labels.good"},
}
OF_TESTS = {"goal_achieved", "target_passed"}
BOT = """\
def reply(message):
    return "Order 7 is on its way to you." if "order" in message else "You are welcome."
"""


def choice(name: str) -> Choice:
    """Return a name with what it cannot be used without, and with a threshold where there may be one."""
    how: Choice = {"metric": name, "config": CONFIG.get(name, {})}
    config = choose_metric(how).config
    if config.score_type == "numeric":
        how["threshold"] = config.minimum + 0.5 if config.maximum is None else (config.minimum + config.maximum) / 2
    return how


CHOICES = {name: choice(name) for name in metrics.names()}


def answer(body: dict[str, Any]) -> Any:
    """Answer whatever a judge is asked by its schema, each thing that it is asked about once."""
    schema = body["response_format"]["json_schema"]["schema"]
    parts = schema.get("$defs", {})
    said = _fitting(schema, parts)
    for name, part, key in (("checks", "Check", "item"), ("calls", "Call", "call")):
        if name in said:
            asked = parts[part]["properties"][key].get("enum", [said[name][0][key]])
            said[name] = [{**said[name][0], key: one} for one in asked]
    if "breaches" in said:
        said["breaches"] = []  # what is false meets no outcome
    return said


def _fitting(schema: dict[str, Any], parts: dict[str, Any]) -> Any:
    if "$ref" in schema:
        return _fitting(parts[schema["$ref"].rpartition("/")[2]], parts)
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    match schema.get("type"):
        case "object":
            return {name: 1 if name == "turn" else _fitting(one, parts) for name, one in schema["properties"].items()}
        case "array":
            return [_fitting(schema["items"], parts)]
        case "string":
            return "Order 7 is on its way to you."
        case "boolean":
            return True
        case _:
            return schema.get("minimum", 0)


@pytest.fixture(scope="module")
def judge() -> Iterator[str]:
    with LoopbackServer(answer) as server:
        yield f"{server.base_url}#judge"


@pytest.fixture(scope="module")
def in_suite(judge: str, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What a suite says, in which each name has the kind that it has."""
    folder = tmp_path_factory.mktemp("suite")
    graders = {name: _grader(name, how, judge) for name, how in CHOICES.items()}
    (folder / "suite.yaml").write_text(
        json.dumps({"name": "all", "driver": "replay", "dataset": {"rows": ROWS}, "graders": graders})
    )
    return _of(run_suite(folder / "suite.yaml", store=str(folder / "kept.db")))


def _grader(name: str, how: Choice, judge: str) -> dict[str, Any]:
    if issubclass(metrics.get(name), FunctionGrader):
        named = {one: value for one, value in how.items() if one != "metric"}
        return {"kind": "function", "function": name, **named}
    return {"kind": "metric", "model": judge, **how}


def _of(result: RunResult) -> Answers:
    return {
        (outcome.attempt.key.sample_id, name): _said(score)
        for outcome in result.outcomes()
        for name, score in outcome.scores.items()
    }


def _stored(place: str, run: str = "latest") -> Answers:
    with Store.open(place) as store:
        outcomes = store.outcomes(store.grading(store.run(run).id).id)
        return {
            (outcome.attempt.key.sample_id, name): _said(score)
            for outcome in outcomes
            for name, score in outcome.scores.items()
        }


def _said(score: Score) -> tuple[str, float | None, bool | None]:
    return score.state, None if score.value is None else round(score.value, 9), score.passed


def test_the_names_say_something(in_suite: Answers) -> None:
    assert {name for _, name in in_suite} == set(metrics.names())
    scored = {name for (_, name), (state, _, _) in in_suite.items() if state == "scored"}
    silent = {"conversation_completeness", "knowledge_retention"}
    lacking = {"contract", "conversation_duration", "response_time", "semantic_retention", "topic_drift"}
    lacking |= {"forgetting", "leaked_to_another_user"}
    assert set(metrics.names()) - scored <= OF_TESTS | silent | lacking, (
        "without a rule, a wish, a fact, seconds, an embedder, sessions"
    )
    functions = {name for name in metrics.names() if issubclass(metrics.get(name), FunctionGrader)} - OF_TESTS
    for name in functions - {"ascii_printable_only", "json_schema"}:
        assert in_suite["bare", name][0] == "skipped", f"{name} has no truth"
    assert in_suite["turns", "exact_match"] == ("scored", 1.0, True)
    assert in_suite["whole", "fuzzy_ratio"] == ("scored", 0.731707317, True)


def test_evaluate_says_what_a_suite_says(in_suite: Answers, judge: str) -> None:
    result = evaluate(ROWS, list(CHOICES.values()), model=judge, store="here.db")
    assert _of(result) == in_suite


def test_viva_judge_says_what_a_suite_says(in_suite: Answers, judge: str) -> None:
    Path("talks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    named = ", ".join(json.dumps(how) for how in CHOICES.values())
    with pytest.raises(SystemExit):
        main(["judge", "talks.jsonl", "--metrics", named, "--judge", judge, "--quiet", "--store", "judged.db"])
    assert _stored("judged.db") == in_suite


def test_a_job_of_the_api_says_what_a_suite_says(in_suite: Answers, judge: str, tmp_path: Path) -> None:
    body = {"kind": "evaluation", "metrics": list(CHOICES.values()), "judge": judge, "conversations": ROWS}
    with Store.open("served.db") as store, serving(store, ServerPolicy(tmp_path, frozenset((judge,)))) as url:
        reply = send("POST", f"{url}/api/v1/jobs", body)
        assert reply.status == 202, reply.text
        job = reply.json()["id"]
        get(f"{url}/api/v1/jobs/{job}/events")  # ends with the job
    assert _stored("served.db") == in_suite


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_python_alone_says_what_a_suite_says(row: dict[str, Any], in_suite: Answers, judge: str) -> None:
    sample = Sample.model_validate(row)
    truth = row.get("ground_truth")
    known: dict[str, Any] = {"reference": truth if isinstance(truth, str) else None, "context": row.get("context")}
    report = evaluate_conversation(
        row["messages"], list(CHOICES.values()), row.get("goal"), model=judge, sample=sample, **known
    )
    assert {(row["id"], name): _said(result) for name, result in report.items()} == {
        key: said for key, said in in_suite.items() if key[0] == row["id"]
    }


def test_a_test_by_the_tester_says_what_its_stored_conversation_says(judge: str) -> None:
    Path("bot.py").write_text(BOT)
    graders = {name: {"kind": "metric", "model": judge, **how} for name, how in CHOICES.items()}
    functions = {f"{name}_function": _grader(name, CHOICES[name], judge) for name in _functions()}
    row = {
        "id": "test",
        "input": [HELD[0]["content"], HELD[4]["content"]],
        "ground_truth": WELCOME,
        **KNOWN,
    }
    suite = {
        "name": "exam",
        "driver": "penelope",
        "dataset": {"rows": [row]},
        "target": {"kind": "function", "function": "bot.py:reply"},
        "tester": {"model": judge, "judge": judge, "max_turns": 2, "review": False},
        "graders": {**graders, **functions},
    }
    Path("exam.yaml").write_text(json.dumps(suite))
    result = run_suite("exam.yaml", store="exam.db")
    said = _of(result)
    assert said["test", "goal_achieved"][0] == said["test", "target_passed"][0] == "scored"
    for name in _functions():
        assert said["test", name] == said["test", f"{name}_function"]
    report = evaluate_test_result(f"{result.run.id}/test", list(CHOICES.values()), model=judge, store="exam.db")
    assert {("test", name): _said(one) for name, one in report.items()} == {
        key: value for key, value in said.items() if not key[1].endswith("_function")
    }


def _functions() -> list[str]:
    return [name for name in metrics.names() if issubclass(metrics.get(name), FunctionGrader)]


def test_a_wrong_name_is_told_the_nearest_of_all() -> None:
    for near, name in (("fuzy_ratio", "fuzzy_ratio"), ("toxcity", "toxicity")):
        with pytest.raises(Exception, match=f"did you mean '{name}'"):
            choose_metric(near)
        suite = {"name": "s", "driver": "replay", "dataset": {"rows": ROWS}}
        for kind in ("function", "metric"):
            grader = {"kind": kind, kind: near}
            Path("suite.yaml").write_text(json.dumps({**suite, "graders": {"it": grader}}))
            with pytest.raises(Exception, match=f"did you mean '{name}'"):
                run_suite("suite.yaml")
