"""Grading functions: text against a ground truth, structure, numbers, tool calls, and user-defined ones.

A user's grader is a function `(sample, submission)`, sync or async; it may also take `trajectory` (a list of turns,
each a list of messages) and `config` (the options of the suite) by those names. It returns a number between 0 and 1,
a bool, a `GradeResult`, a dict with `score` and perhaps `rationale` and `metadata`, or an object with these attributes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, cast

from pydantic import JsonValue, PlainValidator

from vivavoce.comparing.numbers import Locale, all_numbers_in
from vivavoce.comparing.text import contains_words, encoding_note, fold, is_blank
from vivavoce.errors import GraderFault, UsageError
from vivavoce.grading.extractors import View
from vivavoce.grading.functions import JsonSchema, Pattern
from vivavoce.grading.texts import (
    Distance,
    Take,
    differs,
    differs_as_json,
    lacks,
    lacks_json,
    lacks_number,
    misfits,
    mismatches,
    misses,
    name_answer,
)
from vivavoce.lazy_names import lazy
from vivavoce.messages import ToolCall
from vivavoce.metrics.exact.arguments import ArgumentRule
from vivavoce.metrics.exact.tool_calls import (
    EXACT_ARGUMENTS,
    CallF1,
    CallOptions,
    CallScore,
    TrajectoryMode,
    match_trajectory,
)
from vivavoce.metrics.exact.tool_calls import tool_call_accuracy as accuracy_of_calls
from vivavoce.metrics.exact.tool_calls import tool_call_f1 as f1_of_calls
from vivavoce.metrics.factory import metrics
from vivavoce.models.json_schema import check_test_schema
from vivavoce.records.score import Score, skipped
from vivavoce.safe_regex import expression
from vivavoce.samples.sample import Sample
from vivavoce.user_code import name_of

Truth = Literal["ground_truth", "reference_tool_calls", "none", "conversation"]
"""What a grader compares with: `none` follows the ground truth of the sample, `conversation` never works per turn."""


@dataclass(frozen=True, slots=True)
class Case:
    """The input of a grading function: the sample as this scope sees it, the submission, and the turns in view."""

    sample: Sample
    submission: str
    view: View

    @property
    def truth(self) -> str:
        """The ground truth as text.

        Raises:
            GraderFault: it is empty, so every text would contain it.
        """
        value = self.sample.ground_truth
        if isinstance(value, str) and is_blank(value):
            raise GraderFault(_EMPTY_TRUTH, kind="options")
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def exact_match(case: Case) -> Score:
    """Score 1 when the submission equals the ground truth, ignoring encoding and whitespace at the ends.

    A ground truth that is not text is compared as a JSON value.
    """
    truth = case.sample.ground_truth
    if not isinstance(truth, str):
        return _verdict(differs_as_json(case.submission, truth))
    note = "" if case.submission.strip() == case.truth.strip() else "only the encoding differs"
    return _verdict_on(case, differs(case.submission, case.truth), note)


def contains(case: Case) -> Score:
    """Score 1 when the submission contains the ground truth, ignoring case, encoding, and whitespace at its ends.

    A ground truth that is an object or a list is looked for as a JSON value, a number as a whole number, and `true` and
    `false` as whole words.
    """
    truth = case.sample.ground_truth
    if isinstance(truth, bool):
        return _verdict_on(
            case, "" if contains_words(case.submission, case.truth) else f"does not contain {case.truth}"
        )
    if isinstance(truth, dict | list):
        return _verdict(lacks_json(case.submission, truth))
    if isinstance(truth, int | float) and not isinstance(truth, bool):
        return _verdict_on(case, lacks_number(case.submission, truth))
    return _verdict_on(case, lacks(case.submission, case.truth), encoding_note(case.submission, case.truth))


def regex_match(case: Case) -> Score:
    """Score 1 when the ground truth, a regular expression, matches anywhere in the submission.

    An expression that matches every text, such as `.*`, is an error.
    """
    if problem := _pattern_problem(case.truth):
        raise GraderFault(problem, kind="options")
    return _verdict_on(case, mismatches(case.submission, case.truth))


def ascii_printable_only(case: Case) -> Score:
    """Score 1 when every character is printable ASCII or a line break."""
    odd = dict.fromkeys(_NOT_PRINTABLE.findall(case.submission))
    return _verdict(f"contains {', '.join(repr(c) for c in list(odd)[:5])}" if odd else "")


def json_schema(case: Case, *, schema: JsonSchema | None = None) -> Score:
    """Score 1 when the submission is JSON that fits a schema; without the option, the ground truth is the schema."""
    expected = schema if schema is not None else case.sample.ground_truth
    if not isinstance(expected, dict):
        raise GraderFault("json_schema needs a schema, as an option or as the ground truth", kind="options")
    if schema is None:
        try:
            check_test_schema(expected)
        except UsageError as error:
            raise GraderFault(f"the ground truth is not a usable schema: {error}", kind="options") from error
    return _verdict(misfits(case.submission, expected))


def numeric(
    case: Case,
    *,
    tolerance: Distance = 0.0,
    relative: Distance = 0.0,
    take: Take = "last",
    locale: Locale | None = None,
) -> Score:
    """Score 1 when a number in the submission equals the ground truth within a tolerance.

    `tolerance` is in the unit of the number, `relative` is a share of the ground truth; the larger one counts.
    `locale`, such as `de`, says how numbers like 1,234 are read, in the submission and in the ground truth.
    """
    if problem := _number_problem(case.truth, locale):
        raise GraderFault(problem, kind="options")
    [expected] = all_numbers_in(case.truth, locale)
    return _verdict_on(case, misses(case.submission, expected.value, tolerance, relative, take, locale))


def fuzzy_ratio(case: Case) -> Score:
    """Score the similarity of submission and ground truth, 0 to 1.

    The similarity is the normalised indel similarity of the folded texts: without differences in case, encoding, and
    the amount of whitespace (rapidfuzz `fuzz.ratio` / 100). Texts of more than 100,000 characters are an error.
    """
    value: float = lazy("vivavoce.comparing.similarity:similarity")(fold(case.submission), fold(case.truth))
    return Score(value=value, reason=f"similarity {value:.2f} to {case.truth!r}")


def _read_rule(spec: Any) -> ArgumentRule:
    return spec if isinstance(spec, ArgumentRule) else ArgumentRule.read(spec)


Arguments = Annotated[ArgumentRule, PlainValidator(_read_rule)]


def trajectory_match(
    case: Case,
    *,
    mode: TrajectoryMode = "strict",
    arguments: Arguments = EXACT_ARGUMENTS,
    only: list[str] | None = None,
    ignore: list[str] | None = None,
    failed_when: Pattern | None = None,
) -> Score:
    """Score 1 when the tool calls match `reference_tool_calls`, as `mode` defines it.

    `only` and `ignore` choose tools by name; a call whose result matches `failed_when` does not count.
    """
    options = CallOptions(only, ignore or (), arguments, mode, failed_when)
    return _compared(case, options, partial(match_trajectory, mode=mode, arguments=arguments))


def tool_call_accuracy(
    case: Case,
    *,
    order: bool = False,
    arguments: Arguments = EXACT_ARGUMENTS,
    only: list[str] | None = None,
    ignore: list[str] | None = None,
    failed_when: Pattern | None = None,
) -> Score:
    """Score how much of `reference_tool_calls` was called, with partial credit for arguments."""
    options = CallOptions(only, ignore or (), arguments, failed_when=failed_when)
    return _compared(case, options, partial(accuracy_of_calls, arguments=arguments, order=order))


def tool_call_f1(
    case: Case,
    *,
    arguments: Arguments = EXACT_ARGUMENTS,
    only: list[str] | None = None,
    ignore: list[str] | None = None,
    failed_when: Pattern | None = None,
) -> Score:
    """Score the F1 of the tool calls against `reference_tool_calls`, ignoring order."""
    options = CallOptions(only, ignore or (), arguments, failed_when=failed_when)
    return _compared(case, options, partial(f1_of_calls, arguments=arguments))


def recorded(case: Case, *, path: str) -> Score:
    """Score a value that the dataset has for this conversation: a number or a bool at a dotted path of the sample."""
    value: Any = {"labels": case.sample.labels, "metadata": case.sample.metadata}
    for part in path.split("."):
        if not isinstance(value, dict) or part not in value:
            return skipped(f"the sample has no {path}")
        value = cast("dict[str, Any]", value)[part]
    if not isinstance(value, bool | int | float) or not 0 <= value <= 1:
        raise GraderFault(f"{path} is {value!r}, not a number between 0 and 1", kind="format")
    return Score(value=float(value), reason=f"{path} is {value}")


def truth_problem(function: str, truth: JsonValue, options: Mapping[str, Any]) -> str:
    """Return why a built-in grader cannot use a ground truth, in words; empty where it can, and where there is none."""
    if truth is None:
        return ""
    if function == "json_schema" and options.get("schema") is None:
        return _schema_problem(truth)
    if _TRUTHS.get(function) != "ground_truth":
        return ""
    if isinstance(truth, str) and is_blank(truth):
        return _EMPTY_TRUTH
    text = truth if isinstance(truth, str) else json.dumps(truth, ensure_ascii=False)
    if function == "regex_match":
        return _pattern_problem(text)
    return _number_problem(text, options.get("locale")) if function == "numeric" else ""


def _pattern_problem(pattern: str) -> str:
    try:
        found = expression(pattern)
    except UsageError as error:
        return f"the ground truth {error}"
    if (impossibility := found.impossibility) is not None:
        return f"the ground truth /{pattern}/ {impossibility}"
    return f"the ground truth '{pattern}' matches every text, so it cannot fail" if found.matches_everything else ""


def _number_problem(text: str, locale: str | None) -> str:
    numbers = all_numbers_in(text, locale)
    is_number = len(numbers) == 1 and not numbers[0].is_scaled
    return "" if is_number else f"the ground truth {text!r} is not one number"


def _schema_problem(schema: JsonValue) -> str:
    if not isinstance(schema, dict):
        return "json_schema needs a schema, as an option or as the ground truth"
    try:
        check_test_schema(schema)
    except UsageError as error:
        return f"the ground truth {error}"
    return ""


_EMPTY_TRUTH = "the ground truth is empty; remove it, or write null"

Grade = Callable[..., Any]

_TRUTHS: dict[str, Truth] = {
    "exact_match": "ground_truth",
    "contains": "ground_truth",
    "regex_match": "ground_truth",
    "ascii_printable_only": "none",
    "json_schema": "none",
    "numeric": "ground_truth",
    "fuzzy_ratio": "ground_truth",
    "trajectory_match": "reference_tool_calls",
    "tool_call_accuracy": "reference_tool_calls",
    "tool_call_f1": "reference_tool_calls",
    "recorded": "conversation",
}

_VERSIONS: Mapping[str, str] = {
    "contains": "4",
    "exact_match": "3",
    "expect": "4",
    "fuzzy_ratio": "2",
    "goal_achieved": "2",
    "json_schema": "2",
    "numeric": "4",
    "target_passed": "2",
    "tool_call_accuracy": "3",
    "tool_call_f1": "3",
    "trajectory_match": "3",
}
"""Versions of built-in graders whose scores changed; the others are at 1."""

_OF_TESTS = "vivavoce.grading.outcomes"
_OF_ROWS = "vivavoce.grading.expect"


def grader(function: Grade | None = None, *, name: str | None = None) -> Any:
    """Register a function as a grader, under its own name or another."""

    def register(found: Grade) -> Grade:
        metrics.add_function(name or name_of(found), found)
        return found

    return register if function is None else register(function)


def truth_of(function: Grade) -> Truth | None:
    """Return what a built-in grader compares with, None for a user's function."""
    if of_tests(function) or _module_of(function) == _OF_ROWS:
        return "conversation"
    return _TRUTHS.get(function.__name__) if _module_of(function) == __name__ else None


def version_of(function: Grade) -> str:
    """Return the version of a built-in grader, which is part of its fingerprint."""
    return _VERSIONS.get(function.__name__, "1")


def reads_no_rules(function: str) -> bool:
    """Return whether a function of that name is built in and compares with a truth, so reads no rules of a row."""
    return function in _TRUTHS


def of_tests(function: Grade) -> bool:
    """Return whether a function reads the record of the tester that led the conversation."""
    return _module_of(function) == _OF_TESTS


def _module_of(function: Grade) -> str | None:
    return getattr(function, "__module__", None)


def _verdict(complaint: str) -> Score:
    return Score(value=0.0, reason=complaint) if complaint else _MATCHES


def _verdict_on(case: Case, complaint: str, note: str = "") -> Score:
    """Return the verdict on an answer: a miss names a refusal or an empty answer, a match has a note."""
    if complaint:
        kind = name_answer(case.submission)
        return _verdict(f"{complaint}; {kind}" if kind else complaint)
    return Score(value=1.0, reason=f"matches; {note}") if note else _MATCHES


_NOT_PRINTABLE = re.compile(r"[^\x20-\x7e\n\r]")
_MATCHES = Score(value=1.0, reason="matches")


def _from_calls(found: CallScore) -> Score:
    details = {"precision": found.precision, "recall": found.recall} if isinstance(found, CallF1) else {}
    reason = "; ".join(found.reasons) or "the calls match"
    return Score(value=found.score, reason=reason, extra=details)


def _compared(
    case: Case, options: CallOptions, compare: Callable[[list[list[ToolCall]], list[ToolCall]], CallScore]
) -> Score:
    """Return the score of the calls that count; a row with nothing to compare is skipped."""
    reference = cast("list[ToolCall]", case.sample.reference_tool_calls or [])
    made = options.select(case.view.messages)
    if reason := options.idle_reason(reference, made):
        return skipped(reason)
    return _from_calls(compare(made, [call for call in reference if options.counts(call.name)]))


def call_options(function: Grade, options: Mapping[str, Any]) -> CallOptions | None:
    """Return which calls a grader compares, None for a grader that compares none; `options` have been checked.

    Raises:
        UsageError: the options leave nothing to compare.
    """
    if truth_of(function) != "reference_tool_calls":
        return None
    names = ("only", "ignore", "arguments", "mode", "failed_when")
    fields: dict[str, Any] = {"mode": "strict"} if function is trajectory_match else {}
    return CallOptions(**fields | {name: options[name] for name in names if options.get(name) is not None})
