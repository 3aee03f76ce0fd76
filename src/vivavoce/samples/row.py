"""One row of a dataset, in any of the shapes people have, read as a `Sample`.

Our own fields are read as they are. Beside them:

| shape | is read as |
|---|---|
| letta-evals | `prompt` → `input`; `sample_id` before `id`; `rubric_path` → `rubric`; `agent_args` … in `metadata` |
| Ragas | `user_input` → `input`, or `messages` when it is a list; `reference` → `ground_truth` |
| Rhesis | a test of a test set: see `samples.rhesis_row` |
| recorded conversations | `messages`, in the OpenAI shape or with flat tool calls; `goal`, `labels` |
| several sessions | `sessions` → `input` or `messages` with marks: see `exchange.sessions` |

Where a row holds two of the names for one field, the one that wins is first in `_NAMES`, and the other value is kept in
the metadata, as is every key that we do not know; `row.x` there is a key `x` of the row that the metadata has too.

Other tools have other names for assertions and for what is known about the right answer. A row with such a key would
run without its test, so the key is refused. A key that is meant as data goes under `metadata`.

| there | here |
|---|---|
| `prompt.content`, `prompt_content` | `input` |
| `prompt.expected_response`, `expected_response` | `ground_truth` |
| `test_configuration`, or its keys next to the others | `goal`, `instructions`, `scenario`, `min_turns`, `max_turns` |
| `restrictions` in it, what the target must not do, a line each | `must_not` |

Everything else, such as `category`, `topic` and `behavior`, stays where it is and so becomes metadata.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from vivavoce.comparing.json_values import BrokenJson, parse
from vivavoce.comparing.negations import forbidden_act
from vivavoce.conversations.own_rows import SESSIONS, with_sessions_joined
from vivavoce.errors import Problem, UsageError, did_you_mean
from vivavoce.files.paths import check_text
from vivavoce.messages import describe
from vivavoce.plugins import check_may_name_file, lazy
from vivavoce.samples.sample import Sample
from vivavoce.samples.table import read_text

_ASSERTION_NAMES = """
contains not_contains equals regex numeric one_of json_schema state final_state calls no_call latency judged metric all
any not
"""
ASSERTIONS = frozenset(_ASSERTION_NAMES.split())
"""The names of the assertions that `expect` may hold."""

_OPTIONS = frozenset(
    ("weight", "severity", "tolerance", "relative", "take", "mode", "arguments", "outcome", "threshold", "config")
) | {"type", "value"}
_PLAIN_WORDS = frozenset(("state", "final_state", "calls", "latency", "metric", "all", "any", "not"))
"""Names of assertions that are keys of plain data as well."""

_ASSERTIONS_ELSEWHERE = """
assert asserts assertion assertions check checks expects expectation expectations tests evaluations should_contain
should_not_contain must_contain must_not_contain should criteria criterion verify verification verifications validate
validates validation validations validator validators forbidden forbid forbids metric metrics evaluator evaluators
required_tools success_criteria pass_criteria acceptance_criteria guidelines blocklist match matches default_test
assertion_template contains_any contains_all icontains is_json llm_rubric forbidden_tools forbidden_words banned
nl_assertions constraint constraints grader graders scorer scorers eval evals rule rules never always at_most
requirement requirements evaluation_steps evaluation_criteria grading_criteria grading_notes grading pass_threshold
prohibited disallowed includes excludes never_say do_not_say similar g_eval
"""
_OF_ASSERTIONS = frozenset(_ASSERTIONS_ELSEWHERE.split()) | (ASSERTIONS - _PLAIN_WORDS)
_TRUTHS_ELSEWHERE = """
expected expected_output expected_outputs expected_answer expected_answers expected_response expected_responses
expected_outcome expected_outcomes expected_result expected_results expected_value expected_text expected_completion
answer answers ideal ideal_answer ideal_output ideal_response gold gold_answer gold_label golden golden_answer
golden_output golden_response groundtruth correct
ground_truths truth desired_output desired_answer best_answer
reference_answer reference_answers reference_output reference_outputs reference_response
reference_text references correct_answer correct_answers solution label target targets
"""
_OF_TRUTHS = frozenset(_TRUTHS_ELSEWHERE.split())
_CALLS_ELSEWHERE = """
expected_tools expected_tool_calls expected_calls expected_functions expected_function_calls expected_trajectory
expect_tools reference_tools reference_calls reference_trajectory reference_actions
"""
_OF_CALLS = frozenset(_CALLS_ELSEWHERE.split())
_BEGINNINGS: Mapping[str, str] = {
    **dict.fromkeys(("expected_", "desired_"), "ground_truth"),
    **dict.fromkeys(("must_", "should_", "not_", "forbidden_", "prohibited_", "disallowed_", "banned_"), "expect"),
}
"""Beginnings of names of truths and assertions that no list has, with the field that each means."""
_CONTAINERS = frozenset(
    ("vars", "variables", "default_test", "test", "tests", "case", "cases", "evaluation", "item", "options", "inputs")
)
"""Names under which other tools keep a test, or the variables of one."""
_NESTED_NAMES = frozenset(("assert", "asserts", "assertion", "assertions", "expect", "expects", "expected"))
"""Names that mean a test under any name."""
_MAX_LEVELS = 5
"""Levels of a value in which tests are looked for."""
_ANSWERS = frozenset(("output", "outputs", "response", "responses"))
"""Names of the recorded answer in logs; next to an input that is to be asked, they look like the truth."""
_OF_DATA_TOO = frozenset(("label", "target", "targets", "answer", "answers", "contexts"))
"""Names that other tools export as plain data; they are data where the row says otherwise what is right."""
_OF_OBJECTS_TOO = frozenset(("label", "target", "targets"))
"""Names of truths under which an object is data."""
_CALLS_MADE = frozenset(("actions", "tool_calls"))
"""Names of calls, which were made or should have been; they are data where the row says otherwise what is right."""
_TRUTHS = ("ground_truth", "reference", "expect", "reference_tool_calls")


@dataclass(slots=True)
class UnknownKeys:
    """Keys of rows that are not fields, by name; a row with one that looks like a test is refused.

    In rows of a `log`, which is judged and was not written as a test, names such as `answer` are data; only what can be
    nothing but an assertion is refused. Rows may be `recorded` as a question and the `response` to it.
    """

    log: bool = False
    recorded: bool = False
    names: dict[str, None] = field(default_factory=dict[str, None])

    def problem(self, key: str, value: object, row: Mapping[str, Any]) -> str | None:
        """Return why a key cannot be kept as data, None where it can; `row` is the whole row."""
        if key == "response" and (self.recorded or "user_input" in row):
            return None
        path, field = key, _guess_field(_snake_case(key), value, row, log=self.log)
        if field is None and not self.log:
            path, field = _find_nested(key, value, row) or (key, None)
        if field is None:
            self.names[key] = None
            return None
        return f"{path}: unknown key, which would be ignored; did you mean '{field}'? {_kept_as_data(key)}"


def _kept_as_data(key: str) -> str:
    """Return how a key is kept that is not a test."""
    return f"If it is data, write it as metadata: {{{json.dumps(key, ensure_ascii=False)}: …}}"


def _find_nested(key: str, value: object, row: Mapping[str, Any], levels: int = _MAX_LEVELS) -> tuple[str, str] | None:
    """Return the path of what looks like a test inside the value of a key, and the field that it seems to mean."""
    if isinstance(value, list) and levels:
        each = (
            _find_nested(f"{key}.{place}", item, row, levels - 1)
            for place, item in enumerate(cast("list[object]", value))
        )
        return next(filter(None, each), None)
    if not isinstance(value, Mapping) or not levels:
        return None
    is_container = any(_snake_case(part) in _CONTAINERS for part in key.split("."))
    for name, item in cast("Mapping[object, object]", value).items():
        path, plain = f"{key}.{name}", _snake_case(str(name))
        is_test = plain in _NESTED_NAMES or plain.startswith("expected_") or looks_like_assertions(item)
        field = "expect" if plain == "expect" else _guess_field(plain, item, row, log=False)
        if field is not None and item not in (None, "", [], {}) and (is_container or is_test):
            return path, field
        if (deeper := _find_nested(path, item, row, levels - 1)) is not None:
            return deeper
    return None


def _guess_field(key: str, value: object, row: Mapping[str, Any], *, log: bool) -> str | None:
    """Return the field that a key seems to mean, None where it seems to be data."""
    if value is None or value in ("", [], {}):
        return None
    if looks_like_assertions(value, log=log):
        return "expect"
    if log:
        return None
    if _demands(key, value) and not (key == "metrics" and isinstance(value, Mapping) and _has_truth(row)):
        return "expect"
    if key in _OF_CALLS or (key in _CALLS_MADE and isinstance(value, list) and not _has_truth(row)):
        return "reference_tool_calls"
    if key in _ANSWERS and row.get("messages") is None and not _has_truth(row):
        return "ground_truth"
    if key not in _OF_TRUTHS and (field := _meant_by_beginning(key)) is not None:
        return field
    if key not in _OF_TRUTHS or (key in _OF_DATA_TOO and _has_truth(row)):
        return None
    if key in _OF_OBJECTS_TOO and isinstance(value, Mapping):
        return None
    return "ground_truth"


def _demands(key: str, value: object) -> bool:
    """Return whether a key is a word for assertions; one that is a word for data as well has the value of a test."""
    match key:
        case "calls":
            return isinstance(value, str | list | Mapping)
        case "latency":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "state" | "final_state" | "not":
            return isinstance(value, Mapping)
        case "all" | "any":
            return isinstance(value, list)
        case _:
            return key in _OF_ASSERTIONS


def _meant_by_beginning(key: str) -> str | None:
    """Return the field that a key such as `must_call`, `expected_sum` or `retrieval_ground_truth` seems to mean."""
    if key.endswith("_ground_truth"):
        return "ground_truth"
    field = next((field for start, field in _BEGINNINGS.items() if key.startswith(start)), None)
    return "reference_tool_calls" if field == "ground_truth" and _ABOUT_CALLS.search(key) else field


_ABOUT_CALLS = re.compile(r"_(?:tools?|calls?|functions?|trajectory|trajectories)(?:_|$)")


def _snake_case(key: str) -> str:
    """Return a key as the lists here have it: `expectedOutput` and `__expected1` of other tools too."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key)
    return words.lower().replace("-", "_").replace(" ", "_").strip("_").rstrip("0123456789").rstrip("_") or key


def _has_truth(row: Mapping[str, Any]) -> bool:
    return any(row.get(name) is not None for name in _TRUTHS)


def is_known_elsewhere(key: str) -> bool:
    """Return whether a key is a word of other tools, and so no misspelt field."""
    return _snake_case(key) in _OF_ASSERTIONS - {"expects"} | _OF_TRUTHS - {"label", "groundtruth"} | _OF_CALLS


def looks_like_assertions(value: object, *, log: bool = False) -> bool:
    """Return whether a value is an assertion, or a list of some; a text may hold it as JSON.

    In a `log`, keys that plain data has as well say nothing.
    """
    if isinstance(value, str):
        if value.lstrip()[:1] not in ("[", "{"):
            return False
        try:
            return looks_like_assertions(parse(value), log=log)
        except BrokenJson:
            return False
    if isinstance(value, Mapping):
        return _is_assertion(cast("Mapping[object, object]", value), alone=True, log=log)
    return _are_assertions(value, log=log)


def _are_assertions(value: object, *, log: bool) -> bool:
    """Return whether a value is a list of assertions, of lists of them for each turn, and of nothing else."""
    items = [item for item in cast("list[object]", value) if item is not None] if isinstance(value, list) else []
    return bool(items) and all(
        _is_assertion(cast("Mapping[object, object]", item), alone=log, log=log)
        if isinstance(item, Mapping)
        else _are_assertions(item, log=log)
        for item in items
    )


def _is_assertion(value: Mapping[object, object], *, alone: bool, log: bool) -> bool:
    """Return whether a mapping is an assertion of ours, or one such as `{type: contains, value: …}`."""
    keys = {str(key) for key in value}
    kinds = keys & ASSERTIONS
    if not keys <= ASSERTIONS | _OPTIONS:
        return False
    if not kinds:
        return "type" in keys and _plain_kind(value["type"]) in ASSERTIONS - _PLAIN_WORDS
    if len(kinds) > 1:
        return False
    (kind,) = kinds
    if kind in ("all", "any", "not"):
        inner = value[kind]
        items = [inner] if kind == "not" else inner
        return _are_assertions(items, log=log)
    return not (alone and kind in _PLAIN_WORDS)


def _plain_kind(kind: object) -> str:
    """Return the kind of an assertion of another tool by our name: `not-icontains` is `contains`."""
    plain = str(kind).lower().replace("-", "_").removeprefix("not_")
    return "contains" if plain == "icontains" else plain


_TYPES = ("Single-Turn", "Multi-Turn")
_BULLET = re.compile(r"^\s*(?:[-*•–]|\d+[.)])\s+")


def is_test(row: Mapping[str, Any]) -> bool:
    """Say whether a row is a test of Rhesis."""
    prompt = row.get("prompt")
    return (
        row.get("test_type") in _TYPES
        or isinstance(row.get("test_configuration"), Mapping)
        or (isinstance(prompt, Mapping) and "content" in prompt)
        or "prompt_content" in row
    )


def as_row(test: Mapping[str, Any], *, cells: bool) -> dict[str, Any]:
    """Return a test as a row of ours; in the `cells` of a table the rules are JSON text."""
    prompt = _without_empty(test.get("prompt"))
    row = {**_without_empty(test), **_without_empty(test.get("test_configuration"))}
    if prompt:
        del row["prompt"]
    row |= prompt
    row.pop("test_configuration", None)
    renames = {"content": "input", "prompt_content": "input", "expected_response": "ground_truth"}
    row = {renames.get(key, key): value for key, value in row.items()}
    if isinstance(restrictions := row.pop("restrictions", None), str):
        rules = [rule for line in restrictions.splitlines() if (rule := _BULLET.sub("", line).strip())]
        row["must_not"] = json.dumps(rules) if cells else rules
    elif restrictions is not None:
        row["must_not"] = restrictions
    return row


def _without_empty(value: object) -> dict[str, Any]:
    """Return what a mapping holds, without what is empty; nothing of anything else."""
    if not isinstance(value, Mapping):
        return {}
    items = cast("Mapping[str, Any]", value).items()
    return {key: entry for key, entry in items if entry is not None and entry != ""}


_NAMES: dict[str, tuple[str, ...]] = {
    "id": ("sample_id", "id"),
    "input": ("input", "prompt"),
    "ground_truth": ("ground_truth", "reference"),
}
PATHS = ("rubric_path", "policy_path")
"""Names of text files in a row; each is read as the field of that name without `_path`."""
_FIELDS = frozenset(Sample.model_fields) - {"metadata"}
_NESTED = ("agent_args", "rubric_vars", "extra_vars")
_KNOWN_KEYS = sorted({*Sample.model_fields, *chain(*_NAMES.values()), "user_input", SESSIONS, *PATHS})
_TEXTS = frozenset(
    (*"id sample_id trial goal instructions policy scenario persona min_turns max_turns rubric".split(), *PATHS)  # noqa: SIM905
)
_TEXTS_OR_LISTS = frozenset(("input", "prompt", "user_input", "ground_truth", "reference"))
_AS_THEY_ARE = _FIELDS - {"rubric", "policy"}
"""Fields that a row may hold under their own name and as they are."""
OPTIONAL = "?"
"""What ends a key of `fields` whose place a row may lack."""
_NOTHING = object()
_JSON = frozenset(_KNOWN_KEYS) - _TEXTS - _TEXTS_OR_LISTS


def read_sample(
    row: Mapping[str, Any],
    *,
    line: int,
    position: int,
    base: Path,
    fields: Mapping[str, str] | None = None,
    file: Path | None = None,
    cells: bool = False,
    unknown: UnknownKeys | None = None,
) -> Sample:
    """Read a row as a sample.

    Args:
        row: the row as the file gives it; it is not changed.
        line: where the row begins in the file, for errors.
        position: which row it is, from 0; the id of a row that has none.
        base: the folder that a `rubric_path` or `policy_path` is relative to.
        fields: where the row keeps what a sample needs, as dotted paths: `{"id": "metadata.task_id"}`. A name with a
            question mark, `{"goal?": "metadata.wish"}`, is of rows that may lack it.
        file: the file, for errors.
        cells: the row comes from a table (CSV, Parquet), whose cells are text.
        unknown: what becomes of keys that are not fields; by default the row is a log, whose other keys are data.

    Raises:
        UsageError: the row is not a sample; the text says why in one line, with file and line.
    """
    try:
        plain = not fields and not cells and row.keys() <= _AS_THEY_ARE
        keys = unknown or UnknownKeys(log=True)
        values = _as_it_is(row, position) if plain else _values(row, position, base, fields or {}, cells, keys)
        return _with_whole_rules(Sample.model_validate(values))
    except ValidationError as error:
        raise UsageError(Problem(describe(error), file, line)) from error
    except _WrongKeys as error:
        raise UsageError(*(Problem(problem, file, line) for problem in error.problems)) from error
    except ValueError as error:
        raise UsageError(Problem(str(error), file, line)) from error


def check_fields(fields: Mapping[str, str]) -> None:
    """Check that a mapping of fields names fields of a sample.

    Raises:
        UsageError: it names another.
    """
    names = Sample.model_fields
    unknown = [name for name in fields if _field(name) not in names]
    if unknown:
        known = (f"fields.{name}: a sample has no such field{did_you_mean(_field(name), names)}" for name in unknown)
        raise UsageError(*known)
    if twice := [name for name in fields if f"{name}{OPTIONAL}" in fields]:
        raise UsageError(f"fields.{twice[0]}: is defined twice, also as '{twice[0]}{OPTIONAL}'")


def _with_whole_rules(sample: Sample) -> Sample:
    for name, rules in (("must", sample.must), ("must_not", sample.must_not)):
        if not all(map(str.strip, rules)):
            raise ValueError(f"'{name}' has an empty rule")
    for rule in sample.must_not:
        try:
            forbidden_act(rule)
        except ValueError as error:
            raise ValueError(f"must_not: {error}") from None
    return sample


def _as_it_is(row: Mapping[str, Any], position: int) -> dict[str, Any]:
    """Return what the constructor of `Sample` takes, of a row that holds nothing else."""
    values = {name: value for name, value in row.items() if value is not None}
    _identify(values, position)
    values["metadata"] = {}
    return values


def _values(
    row: Mapping[str, Any],
    position: int,
    base: Path,
    fields: Mapping[str, str],
    cells: bool,
    unknown: UnknownKeys,
) -> dict[str, Any]:
    """Return what the constructor of `Sample` takes."""
    if "role" in row and "content" in row and not fields:
        raise ValueError('a row is a whole conversation, {"messages": […]}, and this one is a single message')
    if not fields and is_test(row):
        row = as_row(row, cells=cells)
    remaining = with_sessions_joined(_from_cells(row, fields) if cells else dict(row))
    values = _map_fields(remaining, fields)
    metadata = _metadata(values.pop("metadata", None) or remaining.pop("metadata", None))
    for name in _FIELDS & remaining.keys() - values.keys():
        if name not in _NAMES and (value := remaining.pop(name)) is not None:
            values[name] = value
    for name, spellings in _NAMES.items():
        _take_first(values, remaining, name, spellings)
    _read_ragas(values, remaining)
    for name in PATHS:
        _read_file(name, values, remaining, base)
    for name in _NESTED:
        if name not in values and isinstance(metadata.get(name), Mapping):
            values[name] = metadata.pop(name)
    _identify(values, position)
    read = {path.partition(".")[0] for path in fields.values()} | set(fields.values())
    values["metadata"] = _with_rest(metadata, remaining, read, {**row, **values}, unknown)
    return values


def _from_cells(row: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
    """Read the cells of a table, each as the field it is for; what is empty is not there."""
    field_by_path = {path: _field(name) for name, path in fields.items()}
    filled = {key: value for key, value in row.items() if value is not None or key in field_by_path}
    return {key: _cell(key, field_by_path.get(key, key), value) for key, value in filled.items()}


def _cell(column: str, field: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if field not in _JSON:
        return read_text(value, lists=field in _TEXTS_OR_LISTS)
    try:
        return parse(value)
    except BrokenJson as error:
        raise ValueError(f"column '{column}' holds JSON, and this cell is {error}") from error


def _field(name: str) -> str:
    """Return the field that a key of `fields` is for."""
    return name.removesuffix(OPTIONAL)


def _map_fields(row: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
    """Return what stands at the places of `fields`; an optional one of which the row has nothing is left out."""
    values: dict[str, Any] = {}
    for name, path in fields.items():
        cell = _at(row, path)
        if name.endswith(OPTIONAL) and (cell is None or cell is _NOTHING):
            continue
        if cell is _NOTHING:
            rule = f"write {name}{OPTIONAL} where a row may lack it"
            raise ValueError(f"this row has no '{path}', where fields.{name} says to look; {rule}")
        values[_field(name)] = cell
    return values


def _at(row: Mapping[str, Any], path: str) -> Any:
    """Return what stands at a dotted path, `_NOTHING` where the row does not have it; a number steps into a list."""
    if path in row:
        return row[path]
    value: Any = row
    for step in path.split("."):
        if isinstance(value, Mapping) and step in value:
            value = cast("Mapping[str, Any]", value)[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(cast("list[Any]", value)):
            value = cast("list[Any]", value)[int(step)]
        else:
            return _NOTHING
    return value


def _metadata(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"metadata: must be an object, got {type(value).__name__}")
    return dict(cast("Mapping[str, Any]", value))


def _take_first(values: dict[str, Any], remaining: dict[str, Any], name: str, spellings: tuple[str, ...]) -> None:
    """Take a field from the first of its spellings that holds something, unless it has been found already."""
    if name in values:
        return
    present = next((spelling for spelling in spellings if remaining.get(spelling) is not None), None)
    if present is not None:
        values[name] = remaining.pop(present)
    for spelling in spellings:
        if spelling in remaining and remaining[spelling] is None:
            del remaining[spelling]


def _read_ragas(values: dict[str, Any], remaining: dict[str, Any]) -> None:
    user_input = remaining.get("user_input")
    name = "messages" if isinstance(user_input, list) else "input"
    if user_input is not None and name not in values:
        values[name] = remaining.pop("user_input")
    if isinstance(values.get("rubric"), Mapping):
        remaining.setdefault("rubrics", values.pop("rubric"))


def _read_file(name: str, values: dict[str, Any], remaining: dict[str, Any], base: Path) -> None:
    path, field = remaining.pop(name, None), name.removesuffix("_path")
    if path is not None:
        check_may_name_file()
    text = values.get(field)
    if isinstance(text, str):
        try:
            check_text(text, base, name)
        except ValueError as error:
            raise ValueError(f"{field}: {error}") from error
    if path is None:
        return
    if values.get(field) is not None:
        raise ValueError(f"a row has a '{field}' or a '{name}', not both")
    if not isinstance(path, str):
        raise ValueError(f"{name}: must be the path of a text file, got {path!r}")
    try:
        values[field] = (base / path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}: '{path}' is not UTF-8") from error
    except OSError as error:
        raise ValueError(f"{name}: '{path}' cannot be read: {error.strerror}") from error
    if not values[field].strip():
        raise ValueError(f"{name}: '{path}' is empty")


def _identify(values: dict[str, Any], position: int) -> None:
    if values.get("input") is not None and values.get("messages") is not None:
        raise ValueError(
            "a row has both 'input' (to send) and 'messages' (to replay); keep one, and put earlier messages "
            "in 'history'"
        )
    if values.get("history") is not None and values.get("messages") is not None:
        raise ValueError("'history' needs an 'input' or a 'goal'; this row has 'messages' to replay")
    values["id"] = _id(values.get("id"), position)


def _id(value: Any, position: int) -> Any:
    """Return an id as text; what is neither text nor a number is left for the sample to refuse."""
    if value is None:
        return str(position)
    if value == "":
        raise ValueError("'id' is empty; remove it to number the rows")
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


class _WrongKeys(ValueError):
    """Keys of a row are not fields and not data; `problems` has a line for each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def _with_rest(
    metadata: dict[str, Any],
    remaining: Mapping[str, Any],
    read: set[str],
    row: Mapping[str, Any],
    unknown: UnknownKeys,
) -> dict[str, Any]:
    """Keep in the metadata what no field took; a key that looks like a test or a misspelt field is an error."""
    problems = [problem for key in remaining if key not in read and (problem := _wrong_key(key, row, unknown))]
    if problems:
        raise _WrongKeys(problems)
    for key, value in remaining.items():
        metadata[f"row.{key}" if key in metadata and metadata[key] != value else key] = value
    return metadata


def _wrong_key(key: str, row: Mapping[str, Any], unknown: UnknownKeys) -> str | None:
    """Return what is wrong with a key that is not a field, None where it may be data."""
    if key in _names_of_other_tools():
        return None
    if (problem := unknown.problem(key, row.get(key), row)) is not None:
        return problem
    if key == "response" or is_known_elsewhere(key) or (suggestion := _misspelt(key)) is None:
        return None
    if _snake_case(key) in _OF_DATA_TOO and _has_truth(row):
        return None
    return f"unknown key '{key}'; did you mean '{suggestion}'? {_kept_as_data(key)}"


@cache
def _names_of_other_tools() -> frozenset[str]:
    """Return names that mean something of their own; `instruction` is what tau-bench tells its simulated user."""
    kinds: list[type[BaseModel]] = [
        lazy(f"vivavoce.samples.evaluation:{name}") for name in ("MultiTurnSample", "SingleTurnSample")
    ]
    fields = {name for kind in kinds for name in kind.model_fields}
    return frozenset({*fields, "instruction", "session", "secret"}) - {"response"}


@lru_cache(maxsize=4096)
def _misspelt(key: str) -> str | None:
    """Return the field that a key seems to mean; a longer name such as `prompt_id` means something of its own."""
    plain = key.lower()
    close = difflib.get_close_matches(plain, _KNOWN_KEYS, n=1, cutoff=0.8 if len(key) > 3 else 0.85)
    return None if not close or close[0] == key or plain.startswith(f"{close[0]}_") else close[0]
