"""The dataset of a suite: where it is, and whether every row can be used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from vivavoce.errors import Problem, UsageError
from vivavoce.files.paths import check_text
from vivavoce.grading.graders import truth_problem
from vivavoce.samples.dataset_file import (
    Content,
    difference,
    kept_versions,
    read_content,
    read_version,
    unknown_version,
)
from vivavoce.samples.rows import SampleCount, UnusableRows, check_samples, read_samples, unusable_rows
from vivavoce.samples.sample import Sample
from vivavoce.suites.expectations import EXPECT, Assertions
from vivavoce.suites.grading_spec import FunctionGraderSpec, MetricGraderSpec
from vivavoce.suites.load import Suite
from vivavoce.suites.targets import ABOUT_TOOLS, row_check


def check_pinned(suite: Suite) -> None:
    """Check that the dataset has the content that the suite pins, if it pins any.

    Raises:
        UsageError: it differs; the text says in what, and how to accept it.
    """
    spec = suite.spec.dataset
    if spec.path is None or spec.version is None:
        return
    place = suite.base / spec.path
    content = read_content(place)
    if content.version != spec.version:
        rule = f"'{spec.path}' is not the pinned {spec.version}: {_how_it_differs(place, spec.version, content)}"
        accept = f"To accept it: viva dataset keep {quote(str(place))}, and write version: {content.version}"
        raise UsageError(suite.document.problem(("dataset", "version"), f"{rule}. {accept}"))


def _how_it_differs(place: Path, version: str, content: Content) -> str:
    if all(record.version != version for record in kept_versions(place)):
        return f"{unknown_version(place, version)}; so what changed cannot be said"
    words = difference(read_version(place, version), content).describe()
    return f"{words}. See it with: viva dataset diff {quote(str(place))} {version}"


TAGS_SHOWN = 40
"""Tags that an error lists."""


def dataset_source(suite: Suite) -> Path | list[dict[str, Any]]:
    """Return the file of the dataset, or its rows if they are written in the suite."""
    spec = suite.spec.dataset
    return suite.base / spec.path if spec.path is not None else list(spec.rows or ())


def policy_of(suite: Suite) -> str | None:
    """Return the policy of the rows without one, None if there is none.

    Raises:
        UsageError: its file cannot be read, or is empty.
    """
    spec = suite.spec.dataset
    if spec.policy is not None:
        try:
            check_text(spec.policy, suite.base, "policy_path")
        except ValueError as error:
            raise UsageError(suite.document.problem(("dataset", "policy"), str(error))) from error
    if spec.policy_path is None:
        return spec.policy
    where = ("dataset", "policy_path")
    try:
        policy = (suite.base / spec.policy_path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(suite.document.problem(where, f"'{spec.policy_path}' is not UTF-8")) from error
    except OSError as error:
        why = f"'{spec.policy_path}' cannot be read: {error.strerror}"
        raise UsageError(suite.document.problem(where, why)) from error
    if not policy.strip():
        raise UsageError(suite.document.problem(where, f"'{spec.policy_path}' is empty"))
    return policy


def with_policy(samples: Iterable[Sample], policy: str | None) -> Iterator[Sample]:
    """Yield samples, each with its own policy or else this one."""
    for sample in samples:
        own = policy is None or sample.policy is not None
        yield sample if own else sample.model_copy(update={"policy": policy})


def check_dataset(
    suite: Suite,
    tags: Sequence[str] | None = None,
    assertions: Assertions | None = None,
    seen: Callable[[Sample], None] | None = None,
) -> SampleCount:
    """Read every row once and return the counts; `tags` filters the samples.

    What the assertions of the rows ask of metrics is kept in `assertions`. `seen` is given each sample that can be
    used.

    Raises:
        UnusableRows: with every problem found, each at its line of the file.
        UsageError: there is no file, or its rows do not fit the suite.
    """
    source, check = dataset_source(suite), _check_row(suite, assertions or Assertions(), seen)
    if isinstance(source, Path) and not source.exists():
        raise UsageError(_here(suite, f"there is no file {suite.spec.dataset.place}"))
    try:
        fields = suite.spec.dataset.fields
        counts = check_samples(
            source,
            fields=fields,
            base=suite.base,
            tags=tags,
            format=suite.spec.dataset.format,
            check=check,
            log=suite.judges_a_log,
        )
    except UnusableRows as error:
        raise UnusableRows([_in_suite(suite, problem) for problem in error.problems], error.usable) from error
    except UsageError as error:
        raise UsageError(*(_in_suite(suite, problem) for problem in error.problems)) from error
    what = suite.spec.dataset.place.replace("the rows of the suite", "the list of rows")
    if unknown := [tag for tag in tags or () if tag not in counts.tags]:
        rule = f"{what} has no samples with the tags {', '.join(unknown)}; {_tags_of(suite)}"
        raise UsageError(_here(suite, rule))
    if not counts.samples:
        raise UsageError(_here(suite, f"{what} has no samples"))
    _check_driver(suite, counts)
    check_pinned(suite)
    return counts


def unusable(suite: Suite) -> list[Problem]:
    """Return a problem for each row of the dataset that cannot be used, at its line."""
    spec, check_row = suite.spec, _check_row(suite, Assertions())

    def check(sample: Sample) -> None:
        check_row(sample)
        sample_count = SampleCount(
            samples=1,
            turns=0,
            per_turn=0,
            recorded=sample.messages is not None,
            silent=sample.messages is None and sample.input is None,
            goals=sample.goal is not None,
        )
        _check_driver(suite, sample_count)

    fields, format_of_rows = spec.dataset.fields, spec.dataset.format
    return unusable_rows(
        dataset_source(suite),
        fields=fields,
        base=suite.base,
        format=format_of_rows,
        check=check,
        log=suite.judges_a_log,
    )


def _check_row(
    suite: Suite, assertions: Assertions, seen: Callable[[Sample], None] | None = None
) -> Callable[[Sample], None]:
    check_tools = row_check(suite)
    graders = [
        (name, spec.function if isinstance(spec, FunctionGraderSpec) else spec.metric, spec.config)
        for name, spec in suite.spec.graders.items()
        if isinstance(spec, FunctionGraderSpec | MetricGraderSpec)
    ]

    def check(sample: Sample) -> None:
        assertions.check(sample)
        check_tools(sample)
        _check_truths(sample, graders)
        if seen is not None:
            seen(sample)

    return check


def _check_truths(sample: Sample, graders: Sequence[tuple[str, str, Mapping[str, Any]]]) -> None:
    """Check that graders can use the ground truths of a row.

    Raises:
        UsageError: one cannot be used, which would be an error only after the target was asked.
    """
    truths = [turn.ground_truth for turn in sample.turns] if sample.per_turn else [sample.ground_truth]
    problems = (
        f"ground_truth: {problem}; the grader '{name}' needs it"
        for name, function, options in graders
        for truth in truths
        if (problem := truth_problem(function, truth, options))
    )
    if unique_problems := list(dict.fromkeys(problems)):
        raise UsageError(*unique_problems)


def _tags_of(suite: Suite) -> str:
    """Return which tags the rows have, in words."""
    spec = suite.spec.dataset
    samples = read_samples(dataset_source(suite), fields=spec.fields, base=suite.base, format=spec.format)
    tags = sorted({tag for sample in samples for tag in sample.tags})
    more = f" and {len(tags) - TAGS_SHOWN} more" if len(tags) > TAGS_SHOWN else ""
    return f"the tags are {', '.join(tags[:TAGS_SHOWN])}{more}" if tags else "no row has tags"


def _in_suite(suite: Suite, problem: Problem) -> Problem:
    """Return a problem with a row; where the suite holds the rows, at its place there, or that of its assertion."""
    if problem.file is not None or problem.line is None:
        return problem
    path, colon, rule = problem.message.partition(": ")
    steps = [int(step) if step.isdecimal() else step for step in path.split(".")]
    row = ("dataset", "rows", problem.line - 1)
    rows = suite.spec.dataset.rows or ()
    if colon and (steps[0] in (EXPECT, *ABOUT_TOOLS) or steps[0] in rows[problem.line - 1]):
        return suite.document.problem((*row, *steps), rule)
    return suite.document.problem(row, problem.message)


def _check_driver(suite: Suite, counts: SampleCount) -> None:
    driver = suite.spec.driver
    if driver == "replay" and counts.recorded < counts.samples:
        raise UsageError(_here(suite, f"{counts.samples - counts.recorded} rows have no 'messages' to replay"))
    if driver != "replay" and counts.recorded:
        rule = "use driver: replay, or give 'input'" if driver == "scripted" else "use driver: replay"
        raise UsageError(_here(suite, f"{counts.recorded} rows are recorded conversations; {rule}"))
    if driver == "scripted" and counts.silent:
        rule = "give 'input', or use driver: penelope to have a tester work towards the goal"
        raise UsageError(_here(suite, f"{counts.silent} rows have nothing to ask; {rule}"))
    if driver == "penelope" and counts.returning:
        rule = "a tester leads one session; use driver: scripted for them, or give them no 'sessions'"
        several = f"{counts.returning} row{'s have' if counts.returning != 1 else ' has'} several sessions"
        raise UsageError(_here(suite, f"{several}; {rule}"))
    if driver == "penelope" and counts.goals < counts.samples:
        raise UsageError(
            _here(suite, f"{counts.samples - counts.goals} rows have no 'goal' for the tester to work towards")
        )


def _here(suite: Suite, message: str) -> Problem:
    return suite.document.problem(("dataset",), message)
