"""What holds for the result of each metric that has a name."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from vivavoce.grading.metrics import FunctionGrader
from vivavoce.metrics.factory import create_metric, metrics
from vivavoce.metrics.result import MetricResult
from vivavoce.models.model import Request
from vivavoce.models.structured import allows_strict, wire_schema
from vivavoce.testing import ScriptedModel

CALL = {"id": "a", "type": "function", "function": {"name": "look_up", "arguments": '{"order":7}'}}
CONVERSATION: list[dict[str, Any]] = [
    {"role": "system", "content": "You are a clerk."},
    {"role": "user", "content": "Where is my good old order 7?"},
    {"role": "assistant", "content": "Let me have a look at it.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "a", "content": '{"status": "on its way"}'},
    {"role": "assistant", "content": "Order 7 is on its way to you."},
    {"role": "user", "content": "Thank you, that is great to hear from you."},
    {"role": "assistant", "content": "You are very welcome, have a nice day."},
]
OPTIONS: dict[str, dict[str, Any]] = {
    "aspect_critic": {"definition": "It is polite.", "strictness": 3},
    "guidelines": {"guidelines": ["Be kind."]},
    "last_agent": {"expected": "clerk"},
    "rule": {"each": {"call": "look_up"}, "only_after": [{"user_says": "never said"}]},
    "rubrics_score": {"rubrics": {"score1_description": "bad", "score2_description": "good"}},
    "simple_criteria": {"criteria": "How kind is it?"},
    "topic_adherence": {"topics": ["orders"]},
}


def fitting(schema: dict[str, Any], parts: dict[str, Any]) -> Any:
    """Return something that matches a schema."""
    if "$ref" in schema:
        return fitting(parts[schema["$ref"].rpartition("/")[2]], parts)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return fitting(schema["anyOf"][0], parts)
    match schema["type"]:
        case "object":
            return {name: fitting(part, parts) for name, part in schema["properties"].items()}
        case "array":
            return [fitting(schema["items"], parts)]
        case "string":
            return "Order 7 is on its way to you."
        case "boolean":
            return True
        case _:
            return schema.get("minimum", 0)


METRICS = [name for name in metrics.names() if not issubclass(metrics.get(name), FunctionGrader)]


def answer(request: Request) -> dict[str, Any]:
    """Answer what any judge is asked; the class of the answer knows which items or calls it is about."""
    assert request.schema is not None
    schema = dict(wire_schema(request.schema))
    assert allows_strict(schema)
    said = fitting(schema, schema.get("$defs", {}))
    for criterion in said.get("criteria", ()):
        criterion["kind"] = "fact"  # a change needs a call
    if "breaches" in said:
        said["breaches"] = []  # what is false meets no outcome
    count: int = getattr(request.schema, "asked", (0, 0))[1]
    if count:
        said["rules"] = [{**said["rules"][0], "rule": number} for number in range(1, count + 1)]
    expected: Any = getattr(request.schema, "expected", ())
    for name, key in (("checks", "item"), ("calls", "call")):
        if name in said and expected:
            said[name] = [{**said[name][0], key: one} for one in expected]
    return said


def results(name: str, scope: str) -> list[MetricResult]:
    """Return the results for a conversation, for one of nothing but a question, and for none."""
    options: dict[str, Any] = {"scope": scope, **OPTIONS.get(name, {})}
    if metrics.get(name).judged:
        options["model"] = ScriptedModel(answer)
    metric = create_metric(name, **options)
    lengths = (len(CONVERSATION), 2, 0)
    return [
        metric.evaluate(CONVERSATION[:n], goal="Know where it is", reference="On its way", must=("told",))
        for n in lengths
    ]


@pytest.mark.parametrize("scope", ["conversation", "turn", "window"])
@pytest.mark.parametrize("name", METRICS)
def test_a_result_can_be_written_read_copied_and_sent_elsewhere(name: str, scope: str) -> None:
    for result in results(name, scope):
        # the evidence is not in the conversation of a question alone
        assert result.state in ("scored", "skipped") or (result.failure and result.failure.kind == "evidence")
        written = json.dumps(result.model_dump(mode="json"), allow_nan=False)
        assert MetricResult.model_validate_json(written) == result
        assert MetricResult.model_validate_json(result.model_dump_json()) == result
        for other in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result), result.model_copy()):
            assert other == result
            assert other.details.get("prompt") == result.details.get("prompt")


@pytest.mark.parametrize("name", [name for name in metrics.names() if metrics.get(name).judged])
def test_each_judge_scores_an_answer_of_its_shape_and_shows_what_it_asked(name: str) -> None:
    result, *_ = results(name, "conversation")
    assert result.state == "scored"
    assert "Order 7 is on its way" in result.details["prompt"]
