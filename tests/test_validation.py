"""Every option of what the package offers stands in its signature with a type, and in its help with a line about it."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError

import vivavoce
import vivavoce.client
import vivavoce.metrics
import vivavoce.models
import vivavoce.penelope
from vivavoce.messages import AIMessage, HumanMessage, Message, SystemMessage, ToolMessage, read_messages
from vivavoce.metrics.custom import FunctionOptions
from vivavoce.metrics.evaluation import Known
from vivavoce.metrics.judging import JudgingOptions
from vivavoce.metrics.measuring import MeasuringOptions
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.model import Pacing
from vivavoce.penelope.options import About, AgentOptions
from vivavoce.records.score import Evidence, Usage
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.validation import StrictInput, construct, meanings

RECORDS: list[tuple[type[BaseModel], dict[str, Any]]] = [
    (HumanMessage, {"role": "user", "content": "hello"}),
    (AIMessage, {"content": "hello", "role": "assistant"}),
    (SystemMessage, {"role": "developer", "content": "be kind"}),
    (ToolMessage, {"role": "tool", "content": "42"}),
    (Evidence, {"text": "hello", "turn": 1, "verified": True}),
    (Usage, {"calls": 1}),
    (Turn, {"index": 3, "messages": [HumanMessage(content="hello")]}),
    (Trajectory, {"turns": [Turn(index=0, messages=[HumanMessage(content="hello")])]}),
    (Trajectory, {}),
]


@pytest.mark.parametrize(("kind", "fields"), RECORDS)
def test_a_record_is_the_one_that_validation_makes(kind: type[BaseModel], fields: dict[str, Any]) -> None:
    record, validated = construct(kind, fields), kind.model_validate(fields)
    assert record == validated
    assert (record.model_fields_set, record.model_extra) == (validated.model_fields_set, validated.model_extra)
    assert list(vars(record)) == list(vars(validated))
    assert record.model_dump_json() == validated.model_dump_json()
    assert record.model_dump_json(exclude_unset=True) == validated.model_dump_json(exclude_unset=True)
    assert pickle.loads(pickle.dumps(record)) == copy.deepcopy(record) == record.model_copy() == validated


def test_what_is_made_anew_for_each_is_not_shared() -> None:
    assert construct(Trajectory, {}).turns is not construct(Trajectory, {}).turns


def test_the_input_of_a_metric_has_its_defaults() -> None:
    conversation = {"messages": [{"role": "user", "content": "hello"}]}
    validated = MultiTurnEvaluationInput.model_validate({"conversation_history": conversation})
    record = construct(MultiTurnEvaluationInput, {"conversation_history": validated.conversation_history})
    assert record == validated


ROWS: list[dict[str, Any]] = [
    {"role": "user", "content": "hello"},
    {"content": "grüß dich", "role": "assistant"},
    {"role": "developer", "content": ""},
    {"role": "tool", "content": "42"},
    {"role": "user", "content": None},
    {"role": "user", "content": [{"type": "text", "text": "hello"}]},
    {"role": "assistant", "content": "hello", "refusal": None},
    {"role": "assistant", "content": "hello", "seen": 1},
    {"type": "human", "content": "hello"},
]


@pytest.mark.parametrize("row", ROWS)
def test_a_message_of_role_and_text_is_read_like_any_other(row: dict[str, Any]) -> None:
    kinds: dict[str, type[Message]] = {
        "user": HumanMessage,
        "assistant": AIMessage,
        "developer": SystemMessage,
        "tool": ToolMessage,
    }
    role = row.get("role", "user")
    validated = kinds[role].model_validate(
        {"role": role, **{k: v for k, v in row.items() if k not in ("role", "type")}}
    )
    for read in (read_messages([row])[0], read_messages([row, row])[1]):
        assert read == validated
        assert (read.model_fields_set, read.model_extra) == (validated.model_fields_set, validated.model_extra)
        assert read.to_dict() == validated.to_dict()


@pytest.mark.parametrize(
    "row",
    [
        {"role": "nobody", "content": "hello"},
        {"role": ["user"], "content": "hello"},
        {"role": "user", "content": 7},
        {"role": "user", "text": "hello"},
    ],
)
def test_what_is_no_message_is_refused_whatever_it_looks_like(row: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="message 1"):
        read_messages([{"role": "user", "content": "hello"}, row])


def test_half_a_character_may_be_in_a_message() -> None:
    row = {"role": "user", "content": "half \ud83d"}
    assert read_messages([row]) == [HumanMessage(content="half \ud83d")]


class Options(StrictInput):
    share: float = 1.0
    most: Annotated[int, Field(ge=1)] | None = None
    on: bool = False
    either: int | bool = 0
    kind: Literal[1, "one"] = 1
    anything: Any = None


@pytest.mark.parametrize("field", ["share", "most", "kind"])
@pytest.mark.parametrize("value", [True, False])
def test_true_and_false_are_no_numbers(field: str, value: bool) -> None:
    with pytest.raises(ValidationError, match=f"{field}\n.*must be a number, got {str(value).lower()}"):
        Options.model_validate({field: value})


def test_they_stand_where_they_may() -> None:
    options = Options.model_validate({"on": True, "either": True, "anything": True, "share": "0.5", "most": 2})
    assert (options.on, options.either, options.anything) == (True, True, True)
    assert (options.share, options.most) == (0.5, 2)


class Nested(StrictInput):
    weights: dict[str, float] | None = None
    limits: list[int] | None = None
    levels: dict[str, list[int]] | None = None
    flags: dict[str, bool] | None = None
    anything: dict[str, Any] | None = None


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"weights": {"a": 1, "b": True}}, "weights.b"),
        ({"limits": [1, False]}, "limits.1"),
        ({"levels": {"a": [1, True]}}, "levels.a.1"),
    ],
)
def test_they_are_no_numbers_inside_of_others_either(fields: dict[str, Any], place: str) -> None:
    with pytest.raises(ValidationError, match=f"{place}\n.*must be a number"):
        Nested.model_validate(fields)


def test_they_stand_inside_of_others_where_they_may() -> None:
    nested = Nested.model_validate({"flags": {"a": True}, "anything": {"a": True}, "weights": {"a": 1}})
    assert (nested.flags, nested.anything, nested.weights) == ({"a": True}, {"a": True}, {"a": 1.0})


OPEN = {
    "create_metric": "its options are those of the metric that is named",
    "Client.submit": "a job of each kind is asked something else; the API says what",
    "AsyncClient.submit": "a job of each kind is asked something else; the API says what",
    "OpenAILLM": "settings of the provider, sent as they are",
    "AnthropicLLM": "settings of the provider, sent as they are",
    "VertexAILLM": "settings of the provider, sent as they are",
    "TestResult.model_dump_json": "pydantic's own options",
    "Target": "a protocol",
    "Model": "a protocol",
    "BaseMultiTurnMetric.failed": "fields of the result",
    "BaseMultiTurnMetric.skipped": "fields of the result",
}
"""What has options without names, and why."""


def list_offered(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in module.__all__:
        thing = getattr(module, name)
        if callable(thing):
            yield name, thing
        if inspect.isclass(thing):
            methods = (var for var in vars(thing) if not var.startswith("_") and inspect.isfunction(vars(thing)[var]))
            yield from ((f"{name}.{method}", getattr(thing, method)) for method in methods)


PARTS = (vivavoce, vivavoce.metrics, vivavoce.penelope, vivavoce.models, vivavoce.client)
OFFERED_FUNCTIONS = dict(pair for part in PARTS for pair in list_offered(part))


@pytest.mark.parametrize("name", OFFERED_FUNCTIONS)
def test_no_option_is_hidden(name: str) -> None:
    if isinstance(OFFERED_FUNCTIONS[name], type) and issubclass(OFFERED_FUNCTIONS[name], Exception):  # type: ignore[arg-type]
        return
    hidden = [
        parameter
        for parameter in inspect.signature(OFFERED_FUNCTIONS[name]).parameters.values()
        if parameter.kind is inspect.Parameter.VAR_KEYWORD
    ]
    assert bool(hidden) is (name in OPEN)


@pytest.mark.parametrize(
    "options", [AgentOptions, About, Known, JudgingOptions, MeasuringOptions, FunctionOptions, Pacing]
)
def test_every_option_has_a_line_that_says_what_it_means(options: type) -> None:
    assert meanings(options).keys() == {*options.__annotations__}


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("PenelopeAgent", "max_steps: Steps in one turn."),
        ("PenelopeAgent.execute_test", "must_not: What must never happen."),
        ("SafetyMetric", "window: Turns in a window."),
        ("TurnCountMetric", "threshold: The score, in the metric's own terms"),
        ("evaluate_conversation", "must: What has to happen."),
        ("open_model", "tries: How often"),
        ("function_metric", "categories: The labels"),
        ("evaluate", "max_concurrent: how many"),
        ("run_suite", "store: where records go"),
        ("Client.label", "turn: A turn, from 0"),
    ],
)
def test_help_has_a_line_about_an_option_and_its_type(capsys: pytest.CaptureFixture[str], name: str, line: str) -> None:
    help(OFFERED_FUNCTIONS[name])
    text = capsys.readouterr().out
    assert line in text
    assert f"{line.partition(':')[0]}: '" in text.replace("\n", " "), "its type"


def test_what_shows_its_options_refuses_others_as_before() -> None:
    with pytest.raises(vivavoce.UsageError, match="did you mean 'max_turns'"):
        vivavoce.PenelopeAgent(lambda: "", max_turn=3)  # type: ignore[call-arg]
