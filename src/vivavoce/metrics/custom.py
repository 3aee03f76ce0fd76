"""Metrics of your own without a class: from a function, or from a prompt alone."""

from __future__ import annotations

import hashlib
import inspect
import json
import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self, Unpack, cast, overload

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter, ValidationError, model_validator
from typing_extensions import TypedDict

from vivavoce.errors import GraderFault, UsageError, did_you_mean
from vivavoce.metrics.config import Direction, MetricConfig, read_options
from vivavoce.metrics.judging import GIVEN
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.prompts import Wording, read_prompt
from vivavoce.metrics.rating import RatingMetric, RatingOptions
from vivavoce.metrics.result import About, MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike
from vivavoce.pacing.loops import call, wait_for
from vivavoce.records.score import shorten
from vivavoce.user_code import name_of, plain_number, source_of
from vivavoce.validation import shows_options

Function = Callable[..., Any]


class ScoreKind(BaseModel):
    """What kind of score a prompt asks for."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class NumericScore(ScoreKind):
    """A number from `min` to `max`; one on the right side of `threshold` passes."""

    kind: Literal["numeric"] = "numeric"
    min: FiniteFloat = 0.0
    max: FiniteFloat = 1.0
    threshold: FiniteFloat | None = None
    direction: Direction = "higher_is_better"

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min >= self.max:
            raise ValueError(f"min must be below max; got {self.min:g} and {self.max:g}")
        if self.threshold is not None and not self.min <= self.threshold <= self.max:
            raise ValueError(f"threshold must be from {self.min:g} to {self.max:g}; got {self.threshold:g}")
        return self


class CategoricalScore(ScoreKind):
    """One of `categories`, given worst first; those in `passing` pass."""

    kind: Literal["categorical"] = "categorical"
    categories: tuple[str, ...] = Field(min_length=2)
    passing: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_categories(self) -> Self:
        if len(set(self.categories)) < len(self.categories):
            raise ValueError("a category is listed twice")
        for name in self.passing:
            if name not in self.categories:
                raise ValueError(f"passing: no category '{name}'{did_you_mean(name, self.categories)}")
        return self


class BinaryScore(ScoreKind):
    """A yes or no; yes passes, unless lower is better."""

    kind: Literal["binary"] = "binary"
    direction: Direction = "higher_is_better"


AnyScoreKind = Annotated[NumericScore | CategoricalScore | BinaryScore, Field(discriminator="kind")]
_score_kind: TypeAdapter[NumericScore | CategoricalScore | BinaryScore] = TypeAdapter(AnyScoreKind)


class PromptMetric(RatingMetric):
    """A judged metric made of a prompt: it needs a `name`, a `prompt`, as text or as a path, and the kind of `score`.

    The prompt says what is judged, and nothing else: the conversation comes before it, the scores to choose from after
    it. It is a Jinja template that may ask for `goal`, `instructions`, `context`, `reference`, `must` and
    `must_not`; an unknown variable is an error at once. An answer outside the kind of score is an error.

    Raises:
        UsageError: the name or the prompt is missing, or one of the three cannot be used.
    """

    template: ClassVar[str] = "custom.jinja"
    own_variables: ClassVar[frozenset[str]] = frozenset(("kind", "minimum", "maximum", "best", "categories"))

    def __init__(
        self,
        model: ModelLike | None = None,
        *,
        score: AnyScoreKind | Mapping[str, Any],
        description: str = "",
        **options: Unpack[RatingOptions],
    ) -> None:
        options = read_options(RatingOptions, options)
        name, prompt = options.get("name"), options.pop("prompt", None)
        if not name or prompt is None:
            raise UsageError("a prompt metric needs a name and a prompt")
        task = read_prompt("", GIVEN, prompt, {}).text.strip()
        if not task:
            raise UsageError(f"the prompt of {name} is empty")
        options["blocks"] = {**options.get("blocks", {}), "task": task}
        config = MetricConfig(class_name=type(self).__name__, description=description, **_configured(score))
        super().__init__(config, model, **options)

    def variables(self, metric_input: MultiTurnEvaluationInput) -> Mapping[str, object]:
        """Return the scores to choose from."""
        del metric_input
        config = self.config
        best = config.maximum if config.direction == "higher_is_better" else config.minimum
        return {
            "kind": config.score_type,
            "minimum": Wording(f"{config.minimum:g}"),
            "maximum": Wording(f"{config.maximum:g}"),
            "best": Wording(f"{best:g}"),
            "categories": Wording(", ".join(config.categories)),
        }


def _configured(score: AnyScoreKind | Mapping[str, Any]) -> dict[str, Any]:
    """Return a kind of score in the words of a metric's configuration."""
    try:
        kind = _score_kind.validate_python(score)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(["score", *(str(part) for part in first["loc"][1:])])
        raise UsageError(f"{place}: {first['msg'].removeprefix('Value error, ')}") from error
    if isinstance(kind, CategoricalScore):
        fields = {"categories": kind.categories, "passing_categories": kind.passing}
    elif isinstance(kind, NumericScore):
        fields = {"minimum": kind.min, "maximum": kind.max, "threshold": kind.threshold, "direction": kind.direction}
    else:
        fields = {"direction": kind.direction}
    return {"score_type": kind.kind, **fields}


class FunctionOptions(TypedDict, total=False):
    """What a metric made of a function may say about itself, in the words of `MetricConfig`."""

    name: str
    """What its results are called, the name of the function unless given."""
    description: str
    """What it measures."""
    minimum: float
    """The lowest score, 0 unless given."""
    maximum: float | None
    """The highest score, 1 unless given; None where there is none."""
    threshold: float | None
    """The score from which it passes."""
    direction: Direction
    """Whether higher or lower scores are better."""
    categories: tuple[str, ...]
    """The labels that it gives, the worst first."""
    passing_categories: tuple[str, ...]
    """The labels that pass."""


INPUTS = ("conversation", "messages", *(MultiTurnEvaluationInput.model_fields.keys() - {"conversation_history"}))
"""The names that parameters of a function may have."""


class FunctionMetric(BaseMultiTurnMetric):
    """A metric made of a function, sync or async, whose parameters are filled by their names.

    `conversation` is a `ConversationHistory`, `messages` its messages; the others are the fields of
    `MultiTurnEvaluationInput`. Where a parameter without a default is not known, the metric is skipped. The
    function returns a number from `minimum`, 0, to `maximum`, 1; a bool; one of `categories`; a `MetricResult`; or None
    where it does not apply.
    Anything else, and an exception, is an error and never a score.

    Raises:
        UsageError: a parameter has an unknown name, or the options contradict each other.
    """

    def __init__(self, function: Function, **options: Unpack[FunctionOptions]) -> None:
        options = read_options(FunctionOptions, options)
        self.function = function
        self._needs = _parameters(function)
        fields = {"name": name_of(function), "description": _first_line(function), **options}
        kind = "categorical" if options.get("categories") else "binary" if _returns_bool(function) else "numeric"
        config = MetricConfig(class_name=type(self).__name__, score_type=kind, **cast("dict[str, Any]", fields))
        _check_config(config)
        super().__init__(config)

    def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        """Measure a conversation."""
        return wait_for(self.aevaluate_conversation(evaluation_input))

    async def aevaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        """Measure a conversation.

        Raises:
            GraderFault: what the function returned is not a score.
        """
        if missing := self.unmet(evaluation_input):
            return self.skipped(missing)
        values = {
            "conversation": evaluation_input.conversation_history,
            "messages": evaluation_input.messages,
            **dict(evaluation_input),
        }
        returned = await call(self.function, **{name: values[name] for name in self._needs})
        if returned is None:
            return self.skipped(f"{self.name} returned None: it does not apply")
        return self._result(returned, evaluation_input)

    def unmet(self, metric_input: MultiTurnEvaluationInput) -> str | None:
        """Return the required parameter that is missing."""
        values = {
            "conversation": metric_input.conversation_history,
            "messages": metric_input.messages,
            **dict(metric_input),
        }
        missing = next((name for name, needed in self._needs.items() if needed and values[name] is None), None)
        return missing and f"needs a {missing}, and none is given"

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that decides the scores: the source of the function, and the configuration."""
        text = json.dumps([source_of(self.function), self.config.model_dump(mode="json")])
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    def _result(self, returned: object, metric_input: MultiTurnEvaluationInput) -> MetricResult:
        result = returned if isinstance(returned, MetricResult) else MetricResult(raw=self._score(returned))
        about = About(self.config.score_type, len(metric_input.messages))
        fields: dict[str, Any] = {"fingerprint": self.fingerprint, "about": about}
        if result.raw is not None and result.value is None:
            fields["raw"] = self._score(result.raw)
        return self.finished(result.model_copy(update=fields))

    def _score(self, returned: object) -> bool | float | str:
        """Return the value that a function returned, checked.

        Raises:
            GraderFault: it is not a score.
        """
        config, value = self.config, plain_number(returned)
        if isinstance(returned, str):
            if returned in config.categories:
                return returned
        elif isinstance(value, bool):
            if not config.categories:
                return value
        elif value is not None and config.score_type == "numeric":
            number = float(value)
            if math.isfinite(number) and config.minimum <= number <= self._highest:
                return number
        text = shorten(repr(returned), 80)
        raise GraderFault(f"{self.name} returned {text}; it returns {self._expected}", kind="format", evidence=text)

    @property
    def _highest(self) -> float:
        return math.inf if self.config.maximum is None else self.config.maximum

    @property
    def _expected(self) -> str:
        if self.config.categories:
            return f"one of {', '.join(self.config.categories)}"
        if self.config.score_type == "binary":
            return "a bool"
        span = f"a number from {self.config.minimum:g} to {self._highest:g}, a bool or a MetricResult"
        return f"{span}; minimum=, maximum= and categories= change that"


@overload
def function_metric(function: Function, /, **options: Unpack[FunctionOptions]) -> FunctionMetric: ...
@overload
def function_metric(**options: Unpack[FunctionOptions]) -> Callable[[Function], FunctionMetric]: ...
@shows_options
def function_metric(
    function: Function | None = None, /, **options: Unpack[FunctionOptions]
) -> FunctionMetric | Callable[[Function], FunctionMetric]:
    """Make a metric of a function: `@function_metric`, `@function_metric(name=…)` or `function_metric(function, …)`.

    Raises:
        UsageError: a parameter has an unknown name, or the options contradict each other.
    """
    if function is None:
        return lambda decorated: FunctionMetric(decorated, **options)
    return FunctionMetric(function, **options)


def _parameters(function: Function) -> dict[str, bool]:
    """Return the names of a function's parameters, and whether each is required."""
    name, needs = name_of(function), dict[str, bool]()
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise UsageError(f"{name}: '{parameter.name}' cannot be passed as a keyword argument")
        if parameter.name not in INPUTS:
            raise UsageError(
                f"{name} takes '{parameter.name}', which is not an input{did_you_mean(parameter.name, INPUTS)}"
            )
        needs[parameter.name] = parameter.default is parameter.empty
    return needs


def _check_config(config: MetricConfig) -> None:
    if config.maximum is not None and config.minimum >= config.maximum:
        raise UsageError(f"{config.name}: minimum must be below maximum; got {config.minimum:g} and {config.maximum:g}")
    for name in config.passing_categories:
        if name not in config.categories:
            raise UsageError(f"{config.name}: no category '{name}'{did_you_mean(name, config.categories)}")


def _returns_bool(function: Function) -> bool:
    return getattr(function, "__annotations__", {}).get("return") in (bool, "bool")


def _first_line(function: Function) -> str:
    return (inspect.getdoc(function) or "").partition("\n")[0]
