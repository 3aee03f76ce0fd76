"""A suite with mistakes in its shape: what is left of it without them, so that one check finds all mistakes."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from vivavoce.errors import Problem, UsageError
from vivavoce.suites.dialects import translate
from vivavoce.suites.document import Described, KeyPath, read_document
from vivavoce.suites.load import Suite, load_suite
from vivavoce.suites.mistakes import mistakes_in, path_in
from vivavoce.suites.spec import SuiteSpec
from vivavoce.suites.variables import filled

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
    data, wrong = _filled(document, problems), set[KeyPath]()
    for _ in range(_MAX_PASSES):
        try:
            spec = SuiteSpec.model_validate(data)
        except ValidationError as error:
            current = copy.copy(document)
            current.data = data
            places = {(problem.line, problem.column) for problem in problems if problem.line is not None}
            mistakes = mistakes_in(current, error)  # one at the place of another only follows from it
            problems += [problem for problem in mistakes if (problem.line, problem.column) not in places]
            data = _mended(data, error.errors(include_url=False), wrong)
            continue
        found = tuple(dict.fromkeys(problems))
        return Suite(spec, document, path.parent, path.name, work.era, tuple(work.notes), found, wrong=frozenset(wrong))
    raise UsageError(*problems)


def _filled(document: Described, problems: list[Problem]) -> dict[str, Any]:
    """Return the data with the values of its variables; where one is not set, the data as it is written."""
    try:
        return filled(document)
    except UsageError as error:
        problems += error.problems
        return copy.deepcopy(document.data)


def _mended(data: dict[str, Any], errors: Sequence[ErrorDetails], wrong: set[KeyPath]) -> dict[str, Any]:
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
        here = here[step]
    cast("dict[str | int, Any]", here).pop(at[-1], None)
