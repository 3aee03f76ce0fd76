"""Names of letta-evals and of the older client of Letta, for files of users that import them.

Its decorators, the classes of its results, and its functions that pick messages; an extractor that uses them gets
Letta's messages. Its runner and its graders are not among them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, Field

from vivavoce.grading.extractors import extractor as our_extractor
from vivavoce.grading.functions import LETTA
from vivavoce.grading.graders import grader as our_grader
from vivavoce.grading.rewards import RewardContext, RewardOutput
from vivavoce.grading.rewards import reward_composer as our_reward_composer
from vivavoce.plugins import lazy
from vivavoce.samples.sample import Sample
from vivavoce.suites.hooks import agent_factory, suite_setup
from vivavoce.targets.letta_server import BaseTool

F = TypeVar("F", bound=Callable[..., Any])
Turns = Sequence[Sequence[Any]]


class PerTurnGrade(BaseModel):
    """The grade of one turn, which counts from 0."""

    turn: int
    score: float
    rationale: str | None = None
    submission: str


class GradeResult(BaseModel):
    """What a grader returns: a score between 0 and 1."""

    score: float = Field(ge=0, le=1)
    rationale: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    per_turn_grades: list[PerTurnGrade] | None = None


GradeResult.__module__ = PerTurnGrade.__module__ = "letta_evals.models"


def _mark(register: Callable[..., Any], parameters: tuple[tuple[str, ...], ...]) -> Callable[..., Any]:
    """Return a decorator that checks the parameters of a function, registers it, and marks it as Letta's."""

    def decorator(func: Callable[..., Any] | None = None, *, name: str | None = None) -> Any:
        def mark(function: F) -> F:
            names = tuple(inspect.signature(function).parameters)
            if names not in parameters:
                rule = " or ".join(f"({', '.join(parameter)})" for parameter in parameters)
                raise TypeError(f"{function.__name__} takes ({', '.join(names)}); letta-evals calls it with {rule}")
            setattr(function, LETTA, True)
            register(function) if name is None else register(function, name=name)
            return function

        return mark if func is None else mark(func)

    return decorator


grader = _mark(our_grader, (("sample", "submission"),))
extractor = _mark(our_extractor, (("trajectory", "config"), ("trajectory", "config", "agent_state")))
reward_composer = _mark(our_reward_composer, (("ctx",),))


def flatten_content(content: Any) -> str:
    """Return the text of a message's content, its parts joined by a space."""
    return content if isinstance(content, str) else " ".join(part.text for part in content)


def get_assistant_messages(trajectory: Turns) -> list[Any]:
    """Return the assistant messages of all turns."""
    return [message for turn in trajectory for message in turn if _is(message, "assistant_message")]


def get_tool_calls(trajectory: Turns) -> list[tuple[Any, Any]]:
    """Return each tool call together with the next result in its turn."""
    pairs: list[tuple[Any, Any]] = []
    for turn in trajectory:
        for place, message in enumerate(turn):
            if _is(message, "tool_call_message"):
                pairs += [(message, later) for later in turn[place + 1 :] if _is(later, "tool_return_message")][:1]
    return pairs


def get_messages_by_type(trajectory: Turns, message_type: type) -> list[Any]:
    """Return the messages of a class."""
    return [message for turn in trajectory for message in turn if isinstance(message, message_type)]


def get_last_turn_messages(trajectory: Turns, message_type: type | None = None) -> list[Any]:
    """Return the messages of a class in the last turn, by default those of the assistant."""
    last: Sequence[Any] = trajectory[-1] if trajectory else ()
    if message_type is None:
        return [message for message in last if _is(message, "assistant_message")]
    return [message for message in last if isinstance(message, message_type)]


def _is(message: Any, kind: str) -> bool:
    return getattr(message, "message_type", None) == kind


_MESSAGE_FUNCTIONS = {
    function.__name__: function
    for function in (
        flatten_content,
        get_assistant_messages,
        get_tool_calls,
        get_messages_by_type,
        get_last_turn_messages,
    )
}
for _function in _MESSAGE_FUNCTIONS.values():
    _function.__module__ = "letta_evals.extractors"

_DECORATORS = {
    "grader": grader,
    "extractor": extractor,
    "reward_composer": reward_composer,
    "agent_factory": agent_factory,
    "suite_setup": suite_setup,
}
_MODELS = {
    "Sample": Sample,
    "SampleId": int | str,
    "GradeResult": GradeResult,
    "PerTurnGrade": PerTurnGrade,
    "RewardOutput": RewardOutput,
    "AgentState": Any,
    "LettaMessageUnion": Any,
}
EVALS_MODULES: Mapping[str, Mapping[str, Any]] = {
    "letta_evals": {**_DECORATORS, **_MODELS, "RewardContext": RewardContext},
    "letta_evals.decorators": _DECORATORS,
    "letta_evals.models": _MODELS,
    "letta_evals.models.sample": _MODELS,
    "letta_evals.models.results": _MODELS,
    "letta_evals.rewards": {"RewardContext": RewardContext},
    "letta_evals.extractors": _MESSAGE_FUNCTIONS,
    "letta_evals.extractors.utils": _MESSAGE_FUNCTIONS,
}
"""The names in each module."""


CLIENT_MODULES: Mapping[str, Mapping[str, Any]] = {"letta_client.client": {"BaseTool": BaseTool}}
"""Modules that it no longer has."""
_PLACES = ("letta_client.types", "letta_client.types.agents")
_ANY = ("LettaMessageUnion",)
"""Names that are only ever written in annotations."""


def find_name(name: str) -> Any:
    """Return what a name at the top of the client meant: a type that is elsewhere now, or the form of a parameter.

    Raises:
        AttributeError: there is no such name any more.
    """
    if name in _ANY:
        return Any
    for place in _PLACES:
        for candidate in (name, f"{name}Param"):
            try:
                return lazy(f"{place}:{candidate}")
            except AttributeError:
                continue
    raise AttributeError(f"module 'letta_client' has no attribute '{name}'")
