"""The suites in the served folder, and what can be shown of one without running any of it.

A page that shows a suite changes nothing: its Python files are imported when it is started, never before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from vivavoce.errors import Problem, UsageError
from vivavoce.metrics.factory import named_metric
from vivavoce.plugins import is_file_reference
from vivavoce.run.options import RunOptions
from vivavoce.samples.sample import Sample
from vivavoce.server.policy import ServerPolicy, is_suite
from vivavoce.suites.check import Forecast, forecast
from vivavoce.suites.dataset import check_dataset, dataset_source
from vivavoce.suites.document import MAX_BYTES
from vivavoce.suites.expectations import questions
from vivavoce.suites.grading_spec import (
    AnyGraderSpec,
    FunctionGraderSpec,
    JudgeGraderSpec,
    MetricGraderSpec,
    RecordingGraderSpec,
    RuleGraderSpec,
)
from vivavoce.suites.load import Suite, load_suite
from vivavoce.suites.plan import plan_of

MOST = 300
"""Suites that are listed."""

LOOKED_AT = 20_000
"""Files and folders that are searched for them."""

COUNTED = 10_000_000
"""Maximum size of a dataset, in bytes, whose rows are counted before a run."""

PROBLEMS_SHOWN = 20
"""Problems of a suite that are shown."""

_OTHERS = frozenset(("node_modules", "__pycache__", "venv", "site-packages"))


@dataclass(frozen=True, slots=True)
class Look:
    """A suite as it is: the text of its file, its problems, and the forecast of a run.

    `asking` are the graders that call a judge. There is no forecast for a suite with problems or a very large dataset.
    """

    text: str
    problems: list[str]
    notes: tuple[str, ...] = ()
    forecast: Forecast | None = None
    asking: tuple[str, ...] = ()


def suite_files(workspace: Path) -> list[str]:
    """Return the suites in a folder by their relative paths, without hidden folders and those of packages."""
    found: list[str] = []
    for path in _files(workspace):
        if not path.is_symlink() and is_suite(path):
            found.append(path.relative_to(workspace).as_posix())
            if len(found) == MOST:
                break
    return sorted(found)


def look_at(policy: ServerPolicy, name: str) -> Look:
    """Return what can be shown of a suite before it runs.

    Raises:
        UsageError: there is no suite of that name in the served folder, or it cannot be read.
    """
    path = policy.suite(name)
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"suite '{name}' cannot be read: {error.strerror}") from error
    try:
        suite = load_suite(path)
        if suite.problems:
            raise UsageError(*suite.problems)
        forecast = _forecast(suite)
    except UsageError as error:
        lines = [_problem_line(problem, policy) for problem in error.problems[:PROBLEMS_SHOWN]]
        more = len(error.problems) - len(lines)
        return Look(text, [*lines, *([f"and {more:,} more; viva validate lists all"] if more else [])])
    asking = tuple(one for one, grader in suite.spec.graders.items() if _asks(grader))
    return Look(text, [], suite.notes, forecast, asking)


def _files(workspace: Path) -> Iterator[Path]:
    seen = 0
    for folder, folders, files in os.walk(workspace):
        folders[:] = sorted(one for one in folders if not one.startswith(".") and one not in _OTHERS)
        seen += len(files) + len(folders)
        yield from (Path(folder, file) for file in sorted(files) if file.endswith((".yaml", ".yml")))
        if seen > LOOKED_AT:
            return


def _forecast(suite: Suite) -> Forecast | None:
    source = dataset_source(suite)
    if isinstance(source, Path) and source.exists() and (not source.is_file() or source.stat().st_size > COUNTED):
        return None
    plan = plan_of(suite, RunOptions())
    dataset = check_dataset(suite, plan.tags)
    asking = [grader for grader in suite.spec.graders.values() if _asks(grader)]

    def verdicts(sample: Sample, turns: int) -> int:
        return sum(turns if one.scope == "turn" else 1 for one in asking) + questions(sample)

    return forecast(suite, plan, verdicts, dataset)


def _asks(grader: AnyGraderSpec) -> TypeGuard[JudgeGraderSpec | MetricGraderSpec]:
    """Return whether a grader calls a judge; a grader from a file is assumed to."""
    if isinstance(grader, FunctionGraderSpec | RuleGraderSpec | RecordingGraderSpec):
        return False
    if not isinstance(grader, MetricGraderSpec) or is_file_reference(grader.metric):
        return True
    return named_metric(grader.metric).judged


def _problem_line(problem: Problem, policy: ServerPolicy) -> str:
    """Return a problem with its file, relative to the served folder, and its line."""
    if problem.file is None:
        return policy.shown(problem.message)
    file = Path(problem.file).resolve()
    workspace = policy.workspace.resolve()
    name = file.relative_to(workspace).as_posix() if file.is_relative_to(workspace) else file.name
    line = "" if problem.line is None else f", line {problem.line}"
    return f"{name}{line}: {policy.shown(problem.message)}"
