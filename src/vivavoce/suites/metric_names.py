"""From a grader of a suite to its metric: by name, as `file.py:name`, or from a `.yaml` file."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self, cast

from pydantic import Field, StringConstraints, ValidationError, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from vivavoce.errors import UsageError
from vivavoce.files.paths import check_text
from vivavoce.grading.metrics import FunctionGrader, FunctionGrading, GraderMetric, extracted, is_grading_function
from vivavoce.metrics.composition import Cascade
from vivavoce.metrics.config import Scope
from vivavoce.metrics.custom import AnyScoreKind, PromptMetric, function_metric
from vivavoce.metrics.factory import Choice, choose_metric, make_chosen, named_metric, passing_from
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.panel import asking, copy_of, with_judges
from vivavoce.metrics.transcript import Shown
from vivavoce.models.custom import ModelLike
from vivavoce.models.model import Model
from vivavoce.models.names import open_model
from vivavoce.plugins import is_file_reference, load_object
from vivavoce.suites.document import Address, Document, SettingsOfModel, Spec, read_document
from vivavoce.suites.grading_spec import CascadeSpec, JudgeGraderSpec, MetricGraderSpec
from vivavoce.suites.load import mistakes_in
from vivavoce.user_code import check_callable, text_of

_OPTIONS = ("settings", "scope", "window", "tokens", "overlap")
"""Fields that every judged metric has, in the same form."""


class ShownSpec(Spec):
    """Which parts of the conversation the judge sees."""

    policy: bool = True
    tools: bool = True
    retrieved: bool = True


class MetricSpec(Spec):
    """A metric defined by a prompt; `prompt_path` is a file next to this one, `model` the default judge."""

    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    description: str = ""
    prompt: str | None = None
    prompt_path: str | None = None
    score: AnyScoreKind
    model: Address | None = None
    settings: SettingsOfModel = Field(default_factory=dict)
    scope: Scope = "conversation"
    window: int = Field(default=5, ge=1)
    shown: ShownSpec = ShownSpec()
    tokens: int = Field(default=100_000, ge=1)
    overlap: int = Field(default=2, ge=0)

    @model_validator(mode="after")
    def _one_prompt(self) -> Self:
        if (self.prompt is None) == (self.prompt_path is None):
            raise ValueError("needs exactly one of prompt and prompt_path")
        return self


def load_metric(
    path: str | Path, model: ModelLike | None = None, *, opening: Callable[[str], Model] = open_model
) -> PromptMetric:
    """Read a metric from a YAML file; `model` replaces the file's own judge, which `opening` opens.

    Raises:
        UsageError: the file does not describe a metric, its prompt cannot be used, or its model cannot be opened; each
            mistake has its place in the file.
    """
    document = read_document(Path(path), kind="metric", keys="name, prompt and score")
    try:
        spec = MetricSpec.model_validate(document.data)
    except ValidationError as error:
        raise UsageError(*mistakes_in(document, error, MetricSpec)) from error
    if model is None and spec.model is not None:
        try:
            model = opening(spec.model)
        except UsageError as error:
            raise UsageError(*document.problems_at(("model",), error)) from error
    return _metric(document, spec, model)


def _metric(document: Document, spec: MetricSpec, model: ModelLike | None) -> PromptMetric:
    if spec.prompt is not None:
        try:
            check_text(spec.prompt, document.path.parent, "prompt_path")
        except ValueError as error:
            raise UsageError(document.problem(("prompt",), str(error))) from error
    prompt = document.path.parent / spec.prompt_path if spec.prompt_path is not None else spec.prompt
    options: dict[str, Any] = {name: getattr(spec, name) for name in _OPTIONS if name in spec.model_fields_set}
    options["shown"] = Shown(**dict(spec.shown))
    try:
        return PromptMetric(
            model, name=spec.name, prompt=prompt, score=spec.score, description=spec.description, **options
        )
    except UsageError as error:
        at = "prompt" if spec.prompt_path is None else "prompt_path"
        raise UsageError(*document.problems_at((at,), error)) from error


MetricRef = str | Mapping[str, object]
"""A metric by name, or as a mapping with the keys of a grader of a suite and a `name` for its scores."""

_FORM = "write a metric with options as {metric: fuzzy_ratio, threshold: 0.9}"


def read_metrics(text: str) -> list[MetricRef]:
    """Return the metrics of a command line: names separated by commas, or YAML mappings on one line.

    Raises:
        UsageError: a mapping cannot be read, or does not name a metric.
    """
    if "{" not in text:
        return [name.strip() for name in text.split(",") if name.strip()]
    try:
        document: Any = YAML(typ="safe", pure=True).load(f"[{text}]")  # pyright: ignore[reportUnknownMemberType]
    except YAMLError as error:
        raise UsageError(f"'{text}' cannot be read; {_FORM}") from error
    metric_refs = cast("list[object]", document)
    for entry in metric_refs:
        metric = cast("dict[str, object]", entry).get("metric") if isinstance(entry, dict) else entry
        if not isinstance(metric, str):
            raise UsageError(f"'{entry}' does not name a metric; {_FORM}")
    return cast("list[MetricRef]", metric_refs)


def metric_graders(metrics: Sequence[MetricRef], **shared: Any) -> dict[str, dict[str, Any]]:
    """Return metrics as graders of a suite, by the names of their scores; `shared` are fields of all of them.

    Raises:
        UsageError: two have the same name.
    """
    graders: dict[str, dict[str, Any]] = {}
    for metric in metrics:
        how = {"metric": metric} if isinstance(metric, str) else dict(metric)
        name = str(how.pop("name", None) or short_name(str(how["metric"])))
        if name in graders:
            got = ", ".join(metric if isinstance(metric, str) else str(metric["metric"]) for metric in metrics)
            hint = f"; {{metric: {name}, name: …}} gives its scores a different name"
            raise UsageError(f"each metric needs a different name; got {got}{hint}")
        graders[name] = {"kind": "metric", **shared, **how}
    return graders


def short_name(metric: str) -> str:
    """Return the name for the scores of a metric: its own name, its name in its file, or the name of its file."""
    return Path(metric).stem if metric.endswith((".yaml", ".yml")) else metric.rpartition(":")[2]


Opening = Callable[[str | Model], Model]
"""Opens a judge by its name, or prepares a model object."""
_MADE_WITH = ("config", "settings", "temperature")
"""Options that are already decided for a metric object."""
_CHOICE_FIELDS = ("metric", "config", "scope", "threshold", "extractor", "extractor_config", "temperature", "settings")


def metric_of(
    name: str, spec: MetricGraderSpec, base: Path, opening: Opening, default: str | None = None
) -> BaseMultiTurnMetric:
    """Return the metric of a grader; a metric created here has the name of the grader.

    Its judge is the one that the suite names, else the metric's own, else the `default`.

    Raises:
        UsageError: there is no such metric or option, or the file has no metric of that name.
    """
    model = spec.model or default

    def choose(own: Model | None) -> Model | None:
        if own is not None:
            return opening(own)
        return None if model is None else opening(model)

    if grading := grading_of(spec, base):
        return GraderMetric(grading.grader(name, base))
    if spec.metric.endswith((".yaml", ".yml")):
        _check_made(spec)
        loaded = load_metric(base / spec.metric, spec.model and opening(spec.model), opening=opening)
        metric = _configure_metric(loaded, spec, base)
        return metric if loaded.model is not None else with_judges(metric, choose)
    metric = _make_metric(name, spec, base)
    own = [judged_metric.model is not None for judged_metric in asking(metric)]
    if spec.model is not None and own and all(own):
        raise UsageError(f"'{spec.metric}' already has a judge; remove model")
    return with_judges(metric, choose)


def grading_of(spec: MetricGraderSpec, base: Path) -> FunctionGrading | None:
    """Return the grading function that a suite uses as a metric, None if it names a metric.

    Raises:
        UsageError: there is none of that name, or the scope is a window.
    """
    if is_file_reference(spec.metric):
        function: object = load_object(spec.metric, base)
        if (
            isinstance(function, type | BaseMultiTurnMetric)
            or not callable(function)
            or not is_grading_function(function)
        ):
            return None
    elif spec.metric.endswith((".yaml", ".yml")) or not issubclass(named_metric(spec.metric), FunctionGrader):
        return None
    if spec.scope == "window":
        raise UsageError(
            f"'{spec.metric}' is a grading function, which cannot grade windows; scope must be turn or conversation"
        )
    return FunctionGrading(
        function=spec.metric,
        config=spec.config,
        extractor=spec.extractor or "last_assistant",
        extractor_config=spec.extractor_config,
        scope=spec.scope,
        threshold=spec.threshold,
        scores_errors=spec.scores_errors,
        display_name=spec.display_name,
    )


def written_in(spec: MetricGraderSpec, base: Path) -> str:
    """Return the code and options of a user-defined metric as text; "" for all other metrics."""
    if not is_file_reference(spec.metric):
        return ""
    code = text_of((base / spec.metric.rpartition(":")[0]).resolve())
    return json.dumps([spec.metric, code, spec.config], sort_keys=True, default=str)


def _make_metric(name: str, spec: MetricGraderSpec, base: Path) -> BaseMultiTurnMetric:
    how = cast("Choice", {"name": name, **{field: getattr(spec, field) for field in _CHOICE_FIELDS}})
    if not is_file_reference(spec.metric):
        return choose_metric(how, base=base)
    kind: object = load_object(spec.metric, base)
    if isinstance(kind, BaseMultiTurnMetric):
        _check_made(spec)
        return _configure_metric(kind, spec, base)
    if inspect.isclass(kind) and issubclass(kind, BaseMultiTurnMetric):
        return make_chosen(kind, how, base)
    if not callable(kind):
        raise UsageError(f"'{spec.metric}' is not a metric, a metric class or a function")
    function = check_callable(kind, spec.metric, "a metric")
    options: dict[str, Any] = {"name": name, **spec.config} | ({"scope": "window"} if spec.scope == "window" else {})
    metric = function_metric(function, **options)
    return _configure_metric(metric, spec, base)


def _configure_metric(metric: BaseMultiTurnMetric, spec: MetricGraderSpec, base: Path) -> BaseMultiTurnMetric:
    """Return a metric object with the threshold and extractor of a suite, if the suite has these."""
    if spec.threshold is not None:
        config, metric = passing_from(metric, spec.threshold), copy_of(metric)
        metric.config = config
    if spec.extractor is None and spec.scope != "turn":
        return metric
    how = Choice(metric=spec.metric, scope=spec.scope, extractor=spec.extractor, extractor_config=spec.extractor_config)
    return extracted(metric, how, base)


def _check_made(spec: MetricGraderSpec) -> None:
    fields = MetricGraderSpec.model_fields
    options = [
        option
        for option in _MADE_WITH
        if getattr(spec, option) != fields[option].get_default(call_default_factory=True)
    ]
    if spec.extractor is None and spec.scope in ("turn", "window"):
        options.append("scope")
    if options:
        raise UsageError(f"'{spec.metric}' already has its options; remove {options[0]}")


OpenFirst = Callable[[str | Model], Model]
"""Opens the judge that is asked first."""


def add_cascade(
    metric: BaseMultiTurnMetric,
    spec: JudgeGraderSpec | MetricGraderSpec,
    cascade: CascadeSpec,
    base: Path,
    opening: OpenFirst,
) -> Cascade:
    """Return a metric that is asked only where the first one of its `cascade:` is unsure.

    Raises:
        UsageError: single turns are graded, or there is no such first metric.
    """
    if spec.scope == "turn":
        raise UsageError("a cascade judges whole conversations; remove scope: turn")
    rubric = isinstance(spec, JudgeGraderSpec)
    return Cascade(
        _first(metric, spec, cascade, base, opening),
        metric,
        fails_below=cascade.fails_below,
        passes_from=cascade.passes_from,
        passing=spec.threshold if rubric else None,
        by_threshold=not rubric and spec.threshold is not None,
    )


def _first(
    metric: BaseMultiTurnMetric,
    spec: JudgeGraderSpec | MetricGraderSpec,
    cascade: CascadeSpec,
    base: Path,
    opening: OpenFirst,
) -> BaseMultiTurnMetric:
    if cascade.metric is None:
        if not metric.judged:
            raise UsageError("this metric uses no model, so another model changes nothing; name a metric instead")
        cheap = opening(cascade.model or "")
        return with_judges(metric, lambda _: cheap)
    settings = spec.model_dump(include={"temperature", "settings"}) if cascade.model else {}
    first_spec = MetricGraderSpec(
        kind="metric", metric=cascade.metric, model=cascade.model, config=cascade.config, **settings
    )
    first = metric_of(cascade.metric, first_spec, base, opening)
    if any(judged_metric.model is None for judged_metric in asking(first)):
        raise UsageError(f"'{cascade.metric}' needs a judge: write model next to metric")
    return first
