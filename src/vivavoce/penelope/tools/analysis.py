"""`AnalysisTool`: the common part of the tools that analyse what the target wrote."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Self, TypeVar, cast

from pydantic import BaseModel, ValidationError

from vivavoce.comparing.text import FoldedText, fold
from vivavoce.errors import Fault, UsageError
from vivavoce.messages import HumanMessage
from vivavoce.models.custom import ModelLike, as_model
from vivavoce.models.model import Model, Request
from vivavoce.pacing.loops import in_thread
from vivavoce.penelope.context import TestState
from vivavoce.penelope.prompts import load_prompt
from vivavoce.penelope.tools.tool import Tool, ToolResult
from vivavoce.penelope.turn import Turn
from vivavoce.records.score import Usage, shorten, usage_of
from vivavoce.safe_text import safe

log = logging.getLogger("vivavoce")

RULES_LIMIT = 200_000
"""Characters of a text that rules analyse."""

MODEL_LIMIT = 20_000
"""Characters of a text that a model reads."""

MAX_ITEMS = 30
"""Things of one kind that an output lists."""

MAX_QUOTE_CHARS = 240
"""Characters of a sentence that an output quotes."""

S = TypeVar("S", bound=BaseModel)
Output = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Plan(Generic[S]):
    """How a tool answers one call: the question to a model, how its answer is read, and the rules for when it fails.

    `length` is that of the longest text, of which the rules get `RULES_LIMIT` characters and the model `MODEL_LIMIT`.
    """

    prompt: str
    values: Mapping[str, object]
    shape: type[S]
    read: Callable[[S], Output]
    rules: Callable[[], Output]
    length: int

    def request(self, trial: int) -> Request:
        """Return the question to the model in a trial."""
        words = load_prompt(self.prompt, *self.values).render(self.values)
        return Request([HumanMessage(content=words)], schema=self.shape, settings={"temperature": 0.0}, trial=trial)


class AnalysisTool(Tool):
    """Analyses a reply of the target: by rules, or with a model where it has one.

    The output has `findings` in words, and `method`: `model` or `rules`. Where the model fails, the rules answer and
    `fallback` says why; `usage` is that of the model, whether or not its answer could be used.
    """

    def __init__(self, model: ModelLike | None = None) -> None:
        self.model: Model | None = None if model is None else as_model(model)
        self.state: TestState | None = None

    def begin(self, state: TestState) -> Self:
        """Return a copy that knows the test."""
        tool = copy.copy(self)
        tool.state = state
        return tool

    def reply(self, text: object) -> str:
        """Return the text to analyse: the given one, else the last reply of the target.

        Raises:
            UsageError: there is none, or it is not text.
        """
        if text is not None:
            return text_of("response_text", text)
        if self.state is None or not self.state.turns:
            raise UsageError("the assistant has said nothing yet; give response_text")
        return self.state.last_reply

    async def carry_out(self, plan: Callable[[], Plan[S]]) -> ToolResult:
        """Answer a call by its plan; arguments that cannot be used are an error in the result.

        Raises:
            BudgetExhausted: a limit on calls or cost is reached.
        """
        try:
            planned = plan()
        except UsageError as error:
            return ToolResult(success=False, error=str(error))
        if self.model is None:
            return await _by_rules(planned)
        usage: Usage | None = None
        trial = 0 if self.state is None else self.state.context.trial
        try:
            reply = await self.model.complete(planned.request(trial))
            usage = reply.usage
            answer = planned.shape.model_validate(reply.parsed, strict=True)
        except (Fault, ValidationError) as error:
            log.warning("%s uses rules because its model failed: %s", self.name, " ".join(safe(_why(error)).split()))
            return await _by_rules(planned, {"fallback": _why(error), **_usage_output(usage or usage_of(error))})
        output = await in_thread(partial(planned.read, answer))
        return _result({**output, "method": "model", **_usage_output(usage)}, planned.length, MODEL_LIMIT)


async def _by_rules(plan: Plan[S], more: Mapping[str, object] | None = None) -> ToolResult:
    output = await in_thread(plan.rules)
    return _result({**output, "method": "rules", **(more or {})}, plan.length, RULES_LIMIT)


def _result(output: Output, length: int, limit: int) -> ToolResult:
    if length > limit:
        note = f"Cut: only the first {limit:,} of {length:,} characters were looked at"
        output["findings"] = [*cast("list[str]", output["findings"]), note]
    return ToolResult(success=True, output=output)


def _usage_output(usage: Usage | None) -> Output:
    return {} if usage is None else {"usage": usage.model_dump()}


def _why(error: Fault | ValidationError) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the answer"
        return f"the model answered outside its schema: {place}: {first['msg']}"
    return shorten(str(error), 300) or error.kind


def text_of(name: str, value: object) -> str:
    """Return an argument that must be a text.

    Raises:
        UsageError: it is not a text.
    """
    if not isinstance(value, str):
        raise UsageError(f"{name} is a text, got a {type(value).__name__}")
    return value


def remembered_turns(state: TestState) -> list[Turn]:
    """Return the turns that the target can remember: those of its session that were not taken back."""
    turns = [turn for turn in state.turns if not turn.forgotten]
    began = max((i for i, turn in enumerate(turns) if turn.fresh), default=0)
    return turns[began:]


def excerpt(sentence: str) -> str:
    """Return a sentence as an output quotes it."""
    line = " ".join(sentence[: MAX_QUOTE_CHARS * 4].split())
    return line if len(line) <= MAX_QUOTE_CHARS else f"{line[:MAX_QUOTE_CHARS]}…"


def listing(names: Sequence[str]) -> str:
    """Return a few names for a finding."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


class Source:
    """A text that quotes are looked up in."""

    def __init__(self, text: str) -> None:
        self._text = FoldedText(text)

    def holds(self, quote: str) -> bool:
        """Return whether a quote stands in the text as whole words, without the quotation marks around it."""
        words = fold(quote).strip(" \"'")
        return any(map(str.isalnum, words)) and self._text.contains(words, whole=True)
