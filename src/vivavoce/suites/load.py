"""What a command line changes in a suite: the model, the address, the key of its targets, and the recording."""

from __future__ import annotations

import copy
import difflib
import json
import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from vivavoce.errors import Problem, UsageError, did_you_mean
from vivavoce.plugins import is_file_reference
from vivavoce.records.redaction import without_keys
from vivavoce.records.run import REQUEST, Run, described_targets, is_from_python, reading_record
from vivavoce.settings import VARIABLE
from vivavoce.suites.document import Described, KeyPath, SuiteRecord, as_written, fill_variables, read_document
from vivavoce.suites.letta_suite import Era, targets_of, translate
from vivavoce.suites.spec import NUMBER, UNTIL, WITH_OPTIONS, SuiteSpec
from vivavoce.suites.target_spec import PLUGIN_KIND, target_kinds
from vivavoce.validation import AS_WRITTEN
from vivavoce.wire.http import holds_user

_LETTA = frozenset(("letta", "letta_code"))
_MODELS = _LETTA | {"openai"}


@dataclass(frozen=True, slots=True)
class TargetChanges:
    """Another model, address or key for the targets of a suite, or a recording, each None where its own stays.

    `live` names what the recording does not answer.
    """

    model_handle: str | None = None
    base_url: str | None = None
    api_key: str | None = None
    recording: str | None = None
    live: Sequence[str] = ()

    def __bool__(self) -> bool:
        return self != TargetChanges()

    def apply(self, data: dict[str, Any]) -> None:
        """Change a suite, which is described with our keys.

        Raises:
            UsageError: a target has no such field, or something is live and there is no recording.
        """
        self._apply_recording(data)
        for target in targets_of(data).values():
            kind = str(target.get("kind"))
            for option, (kinds, field, value) in self._fields().items():
                if value is not None and kind not in kinds:
                    raise UsageError(
                        f"{option}: a target of kind '{kind}' has no {field}{_INSTEAD.get((option, kind), '')}"
                    )
                if value is not None:
                    target[field] = value

    def _apply_recording(self, data: dict[str, Any]) -> None:
        setting: Any = data.get("recording")
        own: dict[str, Any] = {"path": setting} if isinstance(setting, str) else dict(setting or {})
        options: dict[str, Any] = {} if self.recording is None else {"path": self.recording}
        if self.live:
            options["live"] = [*own.get("live", ()), *self.live]
        if options and "path" not in {**own, **options}:
            raise UsageError("--live needs --recording FILE")
        if options:
            data["recording"] = {**own, **options}

    def _fields(self) -> Mapping[str, tuple[frozenset[str], str, Any]]:
        """Return for each option the kinds of targets that have its field, the field, and what it becomes."""
        handles = None if self.model_handle is None else [self.model_handle]
        return {
            "--model-handle": (_MODELS, "model_handles", handles),
            "--base-url": (_MODELS, "base_url", self.base_url),
            "--api-key": (_LETTA, "api_key", self.api_key),
        }


_INSTEAD = {("--api-key", "openai"): "; set the environment variable that its api_key_env names"}
"""What to do instead, by option and kind."""


_SIGNS = {">": "gt", ">=": "gte", "≥": "gte", "<": "lt", "<=": "lte", "≤": "lte", "==": "eq", "=": "eq"}
_NEEDS = {
    "string_type": "a text",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a number",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
}
_MAPPINGS = ("model_type", "model_attributes_type", "dict_type")
_SECRET = {"api_key", "headers"}
_EMPTY = ("too_short", "string_too_short")


def mistakes_in(document: Described, error: ValidationError, schema: type[BaseModel] = SuiteSpec) -> list[Problem]:
    """Return the mistakes that validation found, each with its place in data that must match `schema`."""
    return [_problem(document, details, schema) for details in error.errors(include_url=False)]


def _problem(document: Described, details: ErrorDetails, schema: type[BaseModel]) -> Problem:
    at = path_in(document.data, details["loc"])
    kind = details["type"]
    if kind == "extra_forbidden":
        known = _known_keys(details["loc"], schema)
        return document.problem(at, f"unknown key{did_you_mean(str(at[-1]), known)}")
    if kind == "missing":
        return document.problem(at[:-1], f"the key '{at[-1]}' is missing")
    if kind == "union_tag_not_found":
        value = details["input"]
        missing = "the key 'kind' is missing"
        return document.problem(at, missing if isinstance(value, dict) else f"needs a mapping{_such_as(at, value)}")
    if kind == "union_tag_invalid":
        context = details["ctx"]  # pyright: ignore[reportTypedDictNotRequiredAccess]
        tags = [tag.strip("' ") for tag in str(context["expected_tags"]).split(",")]
        if PLUGIN_KIND in tags:
            tags = target_kinds.names()
        return document.problem((*at, "kind"), f"no kind '{context['tag']}'{did_you_mean(str(context['tag']), tags)}")
    return document.problem(at, _rule(at, details, _variable_at(document.data, at)))


def _rule(at: KeyPath, details: ErrorDetails, source_text: str | None) -> str:
    """Say what is needed, what was found instead, and how to write it if that can be guessed.

    `source_text` is what the suite has in place of a value of the environment, which is never shown.
    """
    kind, value = details["type"], details["input"]
    got = "" if _SECRET & {*at} else _got(value if source_text is None else source_text)
    if kind == "value_error":
        return details["msg"].removeprefix("Value error, ")
    if kind in _MAPPINGS:
        return f"needs a mapping{_such_as(at, value)}"
    if kind in _EMPTY:
        return "is empty; it needs at least one" if kind == "too_short" else "is empty"
    if kind == "literal_error":
        known = re.findall(r"'([^']*)'", str(details.get("ctx", {}).get("expected")))
        close = _SIGNS.get(str(value)) or next(iter(difflib.get_close_matches(str(value), known, n=1)), None)
        return f"needs one of {', '.join(known)}{got}" + (f"; did you mean {close}?" if close else "")
    if kind in _NEEDS:
        return f"needs {_NEEDS[kind]}{got}{_spelling(kind, value)}"
    return f"{details['msg'].removeprefix('Input ')}{got}"


def _variable_at(data: Any, at: KeyPath) -> str | None:
    """Return the text with variables that stands at a place, None if there is another value."""
    for step in at:
        if isinstance(data, dict):
            data = cast("dict[str | int, Any]", data).get(step)
        else:
            items = cast("list[Any]", data) if isinstance(data, list) else []
            data = items[step] if isinstance(step, int) and step < len(items) else None
    return data if isinstance(data, str) and VARIABLE.search(data) else None


def _such_as(at: KeyPath, value: object) -> str:
    match at:
        case ("target",) | ("targets", _):
            example = value if isinstance(value, str) and is_file_reference(value) else "bot.py:reply"
            return f", such as {{kind: function, function: {example}}}"
        case ("graders",):
            return " of names to graders, such as {right: {kind: function, function: contains}}"
        case ("graders", _):
            return ", such as {kind: function, function: contains}"
        case ("gate", *_):
            return ", such as {kind: simple, metric_key: NAME, op: gte, value: 0.9}"
        case _:
            return ""


def _spelling(kind: str, value: object) -> str:
    """Return a hint for a value that YAML read as another type."""
    if kind == "string_type" and isinstance(value, bool | int | float):
        return "; put it in quotes"
    if kind.startswith("float") and isinstance(value, str) and (number := re.fullmatch(r"\s*([\d.]+)\s*%\s*", value)):
        return (
            f"; write {number[1]} where a percentage is meant (aggregation: accuracy), else {float(number[1]) / 100:g}"
        )
    return "; write [x] for a list of one" if kind == "list_type" and isinstance(value, str | dict) else ""


def _got(value: object) -> str:
    """Return the value as it was read, shortened; empty for a structure or for a value that may contain a password."""
    if value is None:
        return ", got nothing"
    if isinstance(value, dict | list) or (isinstance(value, str) and holds_user(value)):
        return ""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return f", got {text if len(text) <= 60 else f'{text[:57]}...'}"


def path_in(data: Any, loc: Sequence[str | int]) -> KeyPath:
    """Return the path in the file: the tags of unions are steps of the schema, not of the file."""
    at: list[str | int] = []
    tagged = False
    for part in loc:
        if part in (WITH_OPTIONS, NUMBER, UNTIL, PLUGIN_KIND):
            continue
        here = cast("dict[str | int, Any]", data) if isinstance(data, dict) else {}
        if not tagged and here.get("kind") == part:
            tagged = True
            continue
        tagged = False
        at.append(part)
        items = cast("list[Any]", data) if isinstance(data, list) else []
        data = items[part] if isinstance(part, int) and part < len(items) else here.get(part)
    return tuple(at)


def _known_keys(loc: Sequence[str | int], schema: type[BaseModel]) -> list[str]:
    """Return the keys that the schema allows at the place of an unknown one."""
    models = [schema]
    for part in loc[:-1]:
        models = _step(models, part)
    return [name for model in models for name in model.model_fields]


def _step(models: list[type[BaseModel]], part: str | int) -> list[type[BaseModel]]:
    next_models: list[type[BaseModel]] = []
    for model in models:
        if part in model.model_fields:
            next_models += _models(model.model_fields[str(part)].annotation)
        elif _tag(model) == part or not model.model_fields.get("kind"):
            next_models.append(model)
    return next_models or [model for model in models if _tag(model) in (part, None)] or models


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (Union, types.UnionType, list, dict, Annotated):
        return [model for arg in get_args(annotation) for model in _models(arg)]
    return []


def _tag(model: type[BaseModel]) -> str | None:
    kind = model.model_fields.get("kind")
    return next(iter(get_args(kind.annotation)), PLUGIN_KIND) if kind else None


JUDGE = "judge"
"""The source of a suite that the command of this name describes."""

TEST = "test"
"""The source of a suite that the command of this name describes."""

_WITHOUT_FILE = frozenset((JUDGE, TEST))
"""Sources of suites that no file describes."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite as it was described; `problems` are unsupported requests in it, `notes` are keys that were renamed.

    `base` is the folder where its paths start, `source` its file in that folder or the command that describes it.
    `wrong` are the parts with mistakes in their shape; `spec` has something else in their place.
    `judge` is whom judged assertions of rows ask where no grader names one, by default that of VIVAVOCE_JUDGE.
    """

    spec: SuiteSpec
    document: Described
    base: Path
    source: str
    era: Era | None = None
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    judge: str | None = None
    wrong: frozenset[KeyPath] = frozenset()

    @property
    def judges_a_log(self) -> bool:
        """Whether a command judges its rows, which are a log and were not written as tests."""
        return self.source == JUDGE


def load_suite(path: Path, targets: Sequence[Mapping[str, Any]] = (), changes: TargetChanges | None = None) -> Suite:
    """Read a suite, with the values of its variables; `targets` replace the suite's own, `changes` are made in them.

    Unsupported requests are collected in `problems`, so that a check can name all of them at once.

    Raises:
        UsageError: the file does not describe a suite.
    """
    work = translate(read_document(path), targets)
    document = work.document
    if changes is not None:
        changes.apply(document.data)
    try:
        spec = SuiteSpec.model_validate(fill_variables(document), context=AS_WRITTEN)
    except ValidationError as error:
        raise UsageError(*work.problems, *mistakes_in(document, error)) from error
    except UsageError as error:
        raise UsageError(*work.problems, *error.problems) from error
    return Suite(spec, document, path.parent, path.name, work.era, tuple(work.notes), tuple(work.problems))


def described_suite(data: Mapping[str, Any], base: Path, source: str) -> Suite:
    """Return the suite that a command describes; paths in it start at `base`.

    Raises:
        UsageError: something in it cannot be used.
    """
    return filled_suite(Described(dict(data)), base, source)


def filled_suite(document: Described, base: Path, source: str) -> Suite:
    """Return the suite of a document, with the values of its variables.

    Raises:
        UsageError: something in it cannot be used, or a variable is not set.
    """
    try:
        return Suite(SuiteSpec.model_validate(fill_variables(document)), document, base, source)
    except ValidationError as error:
        raise UsageError(*mistakes_in(document, error)) from error


def dump_spec(suite: Suite) -> dict[str, Any]:
    """Return a suite as data with our keys, without values of variables; what looks like a secret is cut out."""
    keys: dict[str, Any] = {"target": {"api_key"}, "targets": {"__all__": {"api_key"}}}
    data = as_written(suite.spec.model_dump(mode="json", exclude_none=True, exclude=keys), suite.document)
    for target in described_targets(data):
        target |= {part: json.loads(without_keys(json.dumps(target[part]))) for part in REQUEST if part in target}
    return data


def stored_suite(run: Run) -> Suite:
    """Return the suite of a run, from its own record.

    Raises:
        UsageError: a variable in it is not set now.
        UnreadableRun: the record cannot be read.
    """
    with reading_record(run, "spec"):
        document = suite_record(run.spec, run)
        return Suite(SuiteSpec.model_validate(fill_variables(document)), document, Path(run.base), run.option("suite"))


def suite_record(spec: Mapping[str, Any], run: Run) -> SuiteRecord:
    """Return the suite of a run, or a part of it, as its record has it."""
    return suite_record_from(spec, "" if is_from_python(run) else str(run.options.get("suite", "")))


def suite_record_from(spec: Mapping[str, Any], source: str) -> SuiteRecord:
    """Return a suite as a record has it; `source` is that of the suite, empty where it was made in Python."""
    return SuiteRecord(dict(spec), bool(source) and source not in _WITHOUT_FILE)


_STAND_IN: dict[str, Any] = {
    "name": "suite",
    "dataset": {"rows": [{"input": "-"}]},
    "target": {"kind": "function", "function": "bot.py:reply"},
    "grader": {"kind": "function", "function": "contains"},
}
"""What takes the place of a part with a mistake; nothing about it is checked."""
_MAX_PASSES = 20
"""How often a suite is read without its mistakes: one mistake may hide another."""


def load_for_check(path: Path, targets: Sequence[dict[str, Any]] = ()) -> Suite:
    """Read a suite for a check; where parts of it have mistakes, return the others, with the mistakes as its problems.

    `targets` replace the suite's own. The `wrong` parts of the suite are those that the check must leave alone.

    Raises:
        UsageError: the file cannot be read as data, or nothing of it can be checked.
    """
    try:
        return load_suite(path, targets)
    except UsageError as error:
        try:
            return _without_mistakes(path, targets)
        except UsageError:
            raise error from None


def _without_mistakes(path: Path, targets: Sequence[dict[str, Any]]) -> Suite:
    work = translate(read_document(path), targets)
    document, problems = work.document, list[Problem](work.problems)
    data, wrong = _fill_variables(document, problems), set[KeyPath]()
    for _ in range(_MAX_PASSES):
        try:
            spec = SuiteSpec.model_validate(data, context=AS_WRITTEN)
        except ValidationError as error:
            current = copy.copy(document)
            current.data = data
            places = {(problem.line, problem.column) for problem in problems if problem.line is not None}
            mistakes = mistakes_in(current, error)  # one at the place of another only follows from it
            problems += [problem for problem in mistakes if (problem.line, problem.column) not in places]
            data = _remove_mistakes(data, error.errors(include_url=False), wrong)
            continue
        unique_problems = tuple(dict.fromkeys(problems))
        return Suite(
            spec, document, path.parent, path.name, work.era, tuple(work.notes), unique_problems, wrong=frozenset(wrong)
        )
    raise UsageError(*problems)


def _fill_variables(document: Described, problems: list[Problem]) -> dict[str, Any]:
    """Return the data with the values of its variables; where one is not set, the data as it is written."""
    try:
        return fill_variables(document)
    except UsageError as error:
        problems += error.problems
        return copy.deepcopy(document.data)


def _remove_mistakes(data: dict[str, Any], errors: Sequence[ErrorDetails], wrong: set[KeyPath]) -> dict[str, Any]:
    """Return the data without what has a mistake, and note in `wrong` which parts that were."""
    mended = copy.deepcopy(data)
    for details in errors:
        at = path_in(data, details["loc"])
        if not at:
            _mend_whole(mended, wrong)
        elif details["type"] == "extra_forbidden":
            _remove(mended, at)
        elif len(at) > 1 and at[:1] == ("graders",):
            wrong.add(at[:2])
            cast("dict[str, Any]", mended["graders"])[str(at[1])] = dict(_STAND_IN["grader"])
        else:
            _replace(mended, str(next(iter(at))), wrong)
    return mended


def _mend_whole(data: dict[str, Any], wrong: set[KeyPath]) -> None:
    """Change one thing of a suite whose parts do not go together."""
    graders = data.get("graders")
    if isinstance(graders, dict) and "reward" in graders:
        del graders["reward"]
        wrong.add(("graders", "reward"))
    elif data.get("tester") is not None and data.get("driver") != "penelope":
        _replace(data, "tester", wrong)
    else:
        _replace(data, "target", wrong)


def _replace(data: dict[str, Any], part: str, wrong: set[KeyPath]) -> None:
    """Put something in place of a part of the suite that cannot be left out; remove any other."""
    wrong.add((part,))
    data.pop(part, None)
    if part in ("target", "targets"):
        wrong.update((("target",), ("targets",)))
        data.pop("target", None)
        data.pop("targets", None)
        if data.get("driver") != "replay":
            data["target"] = dict(_STAND_IN["target"])
    elif part in _STAND_IN:
        data[part] = copy.deepcopy(_STAND_IN[part])


def _remove(data: dict[str, Any], at: KeyPath) -> None:
    """Remove a key from where it stands."""
    here: Any = data
    for step in at[:-1]:
        if isinstance(here, dict) and step not in cast("dict[Any, Any]", here):
            return  # a part around it is removed already
        here = cast("Any", here)[step]
    cast("dict[str | int, Any]", here).pop(at[-1], None)
