"""Every option of what the package offers stands in its signature with a type, and in its help with a line about it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

import vivavoce
import vivavoce.client
import vivavoce.metrics
import vivavoce.models
import vivavoce.penelope
from vivavoce.metrics.custom import FunctionOptions
from vivavoce.metrics.evaluation import Known
from vivavoce.metrics.judging import JudgingOptions
from vivavoce.metrics.measuring import MeasuringOptions
from vivavoce.models.model import Pacing
from vivavoce.penelope.options import About, AgentOptions
from vivavoce.signatures import meanings

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


def offered(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in module.__all__:
        thing = getattr(module, name)
        if callable(thing):
            yield name, thing
        if inspect.isclass(thing):
            methods = (one for one in vars(thing) if not one.startswith("_") and inspect.isfunction(vars(thing)[one]))
            yield from ((f"{name}.{method}", getattr(thing, method)) for method in methods)


PARTS = (vivavoce, vivavoce.metrics, vivavoce.penelope, vivavoce.models, vivavoce.client)
OFFERED = dict(one for part in PARTS for one in offered(part))


@pytest.mark.parametrize("name", OFFERED)
def test_no_option_is_hidden(name: str) -> None:
    if isinstance(OFFERED[name], type) and issubclass(OFFERED[name], Exception):  # type: ignore[arg-type]
        return
    hidden = [
        one for one in inspect.signature(OFFERED[name]).parameters.values() if one.kind is inspect.Parameter.VAR_KEYWORD
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
    help(OFFERED[name])
    text = capsys.readouterr().out
    assert line in text
    assert f"{line.partition(':')[0]}: '" in text.replace("\n", " "), "its type"


def test_what_shows_its_options_refuses_others_as_before() -> None:
    with pytest.raises(vivavoce.UsageError, match="did you mean 'max_turns'"):
        vivavoce.PenelopeAgent(lambda: "", max_turn=3)  # type: ignore[call-arg]
