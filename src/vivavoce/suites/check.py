"""Checking a suite: every file, name, option and row, and the calls of a run, before anything is called."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from vivavoce.errors import Problem, UsageError
from vivavoce.extensions import needed_answer
from vivavoce.grading.asked import Asked
from vivavoce.grading.call_mistakes import unknown_paths
from vivavoce.grading.grader import Grader
from vivavoce.models.json_schema import ignored_keywords, unchecked_formats
from vivavoce.models.schema_texts import FORMATS
from vivavoce.pacing.limits import Budget
from vivavoce.plugins import lazy, load_object
from vivavoce.run.experiment import Scoring
from vivavoce.run.gc_tuning import tuned_gc
from vivavoce.run.options import RunOptions
from vivavoce.samples.rows import SampleCount, UnusableRows, read_samples
from vivavoce.samples.sample import Sample
from vivavoce.suites.build import Builder
from vivavoce.suites.dataset import check_dataset, dataset_source
from vivavoce.suites.expectations import Assertions, check_rules_of_rows, with_expect
from vivavoce.suites.grading_spec import (
    AnyGraderSpec,
    FunctionGraderSpec,
    JudgeGraderSpec,
    MetricGraderSpec,
    RecordingGraderSpec,
)
from vivavoce.suites.judges import JudgeOpener, judges_in_batches
from vivavoce.suites.load import Suite
from vivavoce.suites.plan import Plan, Sampler, plan_of
from vivavoce.suites.spec import TesterSpec
from vivavoce.suites.targets import at_most, build_targets, check_rows, has_client, known_tools

if TYPE_CHECKING:
    from vivavoce.run.tester import Tester


@dataclass(frozen=True, slots=True)
class Forecast:
    """How many calls a run would make: `messages` to targets and `verdicts` of judges, without retries.

    `fewer` are the targets with fewer conversations at a time than the others, and how many.
    For conversations led by a tester both are upper limits, and the tester is called at least once for each message.
    Where a second judge is asked depending on the first, or the recorded side of a conversation is judged where it
    differs (`depends`), `verdicts` is one; where trials may end `early`,
    all but `samples` and `targets` are.
    """

    samples: int
    targets: int
    trials: int
    conversations: int
    turns: int
    messages: int
    verdicts: int
    concurrency: int
    led: bool = False
    fewer: Mapping[str, int] = field(default_factory=dict[str, int])
    depends: bool = False
    early: bool = False


def forecast(
    suite: Suite, plan: Plan, verdicts_on: Callable[[Sample, int], int] | None, sample_count: SampleCount
) -> Forecast:
    """Return how many calls a run would make.

    `verdicts_on` gives the number of verdicts for a number of turns, None where nobody judges: then what was counted in
    the dataset says all, if every sample of it runs as it is written.
    """
    samples = turns = verdicts = 0
    tester = (suite.spec.tester or TesterSpec()) if suite.spec.driver == "penelope" else None
    known = tester is None and verdicts_on is None and plan.takes_all
    if known:
        samples, turns = sample_count.samples, sample_count.turns
    for sample in () if known else plan.samples():
        samples += 1
        scripted = sample.turn_count - sample.history_turns
        most = scripted if tester is None else sample.max_turns or tester.max_turns
        turns += most
        verdicts += 0 if verdicts_on is None else verdicts_on(sample, most)
        verdicts += 0 if tester is None else -(-most // tester.evaluate_every)
    specs = suite.spec.all_targets.values()
    at_once = {name: at_most(spec, plan.concurrency) for spec in specs for name, _ in spec.names_and_models}
    times = max(len(at_once), 1) * plan.trials
    graders = suite.spec.graders.values()
    compares = suite.spec.recording is not None or any(isinstance(grader, RecordingGraderSpec) for grader in graders)
    return Forecast(
        samples=samples,
        targets=len(at_once),
        trials=plan.trials,
        conversations=samples * times,
        turns=turns * times,
        messages=0 if plan.replays else turns * times,
        verdicts=verdicts * times,
        concurrency=plan.concurrency,
        led=tester is not None,
        fewer={name: most for name, most in at_once.items() if most < plan.concurrency},
        depends=any(_depends(grader) for grader in suite.spec.graders.values()) or (compares and verdicts > 0),
        early=plan.until is not None,
    )


def _depends(grader: AnyGraderSpec) -> bool:
    judged = isinstance(grader, JudgeGraderSpec | MetricGraderSpec)
    return judged and (grader.confirm is not None or grader.cascade is not None)


GRADER = "json_schema"


def schema_notes(suite: Suite, in_rows: Iterable[str], ignored_in_rows: Iterable[str]) -> list[str]:
    """Return notes on the formats in schemas that accept any text, and on keywords that nothing knows.

    `in_rows` and `ignored_in_rows` are those of assertions.
    """
    names, ignored = set(in_rows), set(ignored_in_rows)
    for spec in suite.spec.graders.values():
        schema = _schema_of(spec)
        if schema is None:
            continue
        names.update(unchecked_formats(schema))
        ignored.update(ignored_keywords(schema))
    unknown = ", ".join(f"'{name}'" for name in sorted(ignored))
    notes = [f"JSON schemas: unknown keywords are ignored: {unknown}"] if unknown else []
    if not names:
        return notes
    is_single = len(names) == 1
    formats, verb = (
        ("the format", "is not checked and accepts") if is_single else ("the formats", "are not checked and accept")
    )
    names_text = ", ".join(f"'{name}'" for name in sorted(names))
    return [*notes, f"JSON schemas: {formats} {names_text} {verb} any text; checked: {', '.join(sorted(FORMATS))}"]


def _schema_of(spec: object) -> dict[str, Any] | None:
    """Return the schema that a grader has as an option, None if it has none."""
    name = spec.function if isinstance(spec, FunctionGraderSpec) else None
    name = spec.metric if isinstance(spec, MetricGraderSpec) else name
    if name != GRADER or not isinstance(spec, FunctionGraderSpec | MetricGraderSpec):
        return None
    schema: object = spec.config.get("schema")
    return cast("dict[str, Any]", schema) if isinstance(schema, dict) else None


def output_of(suite: Suite) -> Path | None:
    """Return the output folder that a suite names, None if it names none."""
    output = suite.spec.output
    return suite.base / output if output else None


def check_output(suite: Suite, instead: Path | None = None) -> None:
    """Check that the output folder of a suite, or the one named `instead`, can be written.

    Raises:
        UsageError: it cannot be written; the problem has its place in the suite.
    """
    if instead is not None:
        return check_folder(instead)
    folder = output_of(suite)
    try:
        if folder is not None:
            check_folder(folder)
    except UsageError as error:
        raise UsageError(*suite.document.problems_at(("output",), error)) from error


def check_folder(folder: Path) -> None:
    """Check that a folder, which may not exist yet, can be created and written; nothing is left behind.

    Raises:
        UsageError: it cannot be written, or a file has its name.
    """
    place = folder.resolve()
    existing = next(path for path in (place, *place.parents) if path.exists())
    if not existing.is_dir():
        raise UsageError(f"{folder} cannot be written: {existing} is a file, not a folder")
    beside = place.parent if place.exists() else existing  # where the files are made before they are moved in
    for directory in {existing, beside}:
        try:
            with tempfile.TemporaryDirectory(prefix=".", dir=directory):
                pass
        except OSError as error:  # permissions alone do not say it: a file system may be read-only, or no real one
            raise UsageError(f"{folder} cannot be written: {error.strerror or error}") from error


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a run needs of a suite: the suite with all its graders, the scoring, and the count of its samples.

    `metric_assertions` is what assertions of the rows ask of metrics, and `plan` has what was drawn where not all are
    to run.
    """

    suite: Suite
    scoring: Scoring
    dataset: SampleCount
    metric_assertions: Mapping[str, Asked]
    plan: Plan


@dataclass(frozen=True, slots=True)
class Checked:
    """A suite without mistakes: what a run needs of it, and how many calls that would make."""

    prepared: Prepared
    forecast: Forecast


def tester_of(suite: Suite, judges: JudgeOpener) -> Tester | None:
    """Return the tester that leads the conversations of a suite, None where none does; nothing is called yet.

    Raises:
        UsageError: a name, a file or an API key is missing; the problem names its place in the suite.
    """
    if suite.spec.driver != "penelope":
        return None
    return cast("Tester", lazy("vivavoce.suites.testers:build_tester")(suite, judges))


def check_tester(suite: Suite, tester: Tester) -> list[str]:
    """Check that every row can become a test, and return notes on rows whose brief may keep the target from passing.

    Raises:
        UsageError: with every row that cannot, such as a row with a persona that does not exist.
    """
    return cast("list[str]", lazy("vivavoce.suites.testers:check_tests")(suite, tester))


def prepare(suite: Suite, plan: Plan, judges: JudgeOpener, tester: str = "") -> Prepared:
    """Return what a run needs of a suite; `tester` is the fingerprint of the tester, if any.

    Raises:
        UsageError: with every problem found in the suite, in its files and in its dataset.
    """
    problems, assertions = list(suite.problems), Assertions(tools=known_tools(suite))
    sampler = _collect(problems, lambda: _sampler(suite, plan))
    samples: list[Sample] = []
    seen = sampler.add if sampler is not None else samples.append if plan.is_small else None
    sample_count = usable = None
    if ("dataset",) not in suite.wrong:
        try:
            sample_count = usable = check_dataset(suite, plan.tags, assertions, seen)
        except UsageError as error:
            problems += error.problems
            usable = error.usable if isinstance(error, UnusableRows) else None
    _collect(problems, lambda: _check_setup(suite))
    if ("target",) not in suite.wrong:
        _collect(problems, lambda: _with_recording("check_live", None, suite))
    metric_assertions, trials = assertions.metric_assertions, None if plan.replays else plan.trials
    complete = (
        suite
        if sample_count is None
        else _collect(problems, lambda: with_expect(suite, sample_count, metric_assertions)) or suite
    )
    complete = _collect(problems, lambda: _with_recording("with_recording", complete, complete)) or complete
    if sample_count is not None:
        checked_count = sample_count
        _collect(problems, lambda: check_rules_of_rows(complete, checked_count, metric_assertions))
    covers = (
        None
        if sample_count is None
        else _collect(problems, lambda: _with_recording("coverage", list[str](), suite, plan))
    )
    known = {"metric_assertions": metric_assertions, "trials": trials, "until": plan.until, "usable": usable}
    build = partial(Builder, complete, judges.open, sample_count, tester, **known)
    scoring = _collect(problems, lambda: build().scoring())
    formats = _collect(problems, lambda: schema_notes(complete, assertions.formats, assertions.ignored_keywords))
    if problems or scoring is None or sample_count is None:
        raise UsageError(*dict.fromkeys(problems))
    check_argument_paths(complete, scoring.graders)
    notes = (*complete.notes, *sample_count.notes, *(covers or ()), *(formats or ()))
    if sampler is not None:
        sampler.check_gate(scoring.gate)
        plan = replace(plan, draw=sampler.draw(plan.dataset))
        notes = notes if plan.draw is not None else (*notes, sampler.note)
    return Prepared(
        replace(complete, notes=notes), scoring, sample_count, metric_assertions, replace(plan, ready_samples=samples)
    )


def _with_recording(function: str, otherwise: T, suite: Suite, *arguments: Any) -> T:
    """Return what a function of `suites.recording` says of a suite, or `otherwise` where it has no recording."""
    if suite.spec.recording is None:
        return otherwise
    return cast("T", lazy(f"vivavoce.suites.recording:{function}")(suite, *arguments))


def check_argument_paths(suite: Suite, graders: Sequence[Grader]) -> None:
    """Check that the arguments that graders of tool calls name are in an expected call of the dataset.

    Raises:
        UsageError: with a problem for each that is in none.
    """
    spec = suite.spec.dataset
    read = partial(read_samples, dataset_source(suite), fields=spec.fields, base=suite.base, format=spec.format)
    problems = [
        suite.document.problem(("graders", grader.name, "config", mistake.option), mistake.message)
        for grader in graders
        for options in grader.calls
        if options.arguments.has_paths
        for mistake in unknown_paths(options, read())
    ]
    if problems:
        raise UsageError(*problems)


def _sampler(suite: Suite, plan: Plan) -> Sampler | None:
    """Return what draws the conversations, None where all of them run.

    Raises:
        UsageError: what is named does not distinguish conversations, or no plugin draws.
    """
    if plan.sample is None:
        return None
    arguments = {"size": plan.sample, "by": plan.sample_by, "weight_by": plan.weight_by, "base": suite.base}
    sampler: Sampler = needed_answer("sample", "sampling", "open_sampler", **arguments)
    return sampler


def check_suite(suite: Suite, options: RunOptions | None = None, *, keys_needed: bool = False) -> Forecast:
    """Check everything that can be checked without any call, and return how many calls a run would make.

    With `keys_needed`, a missing environment variable for an API key is a problem, too.

    Raises:
        UsageError: with every problem found.
    """
    return run_checks(suite, options, keys_needed=keys_needed).forecast


@tuned_gc()
def run_checks(suite: Suite, options: RunOptions | None = None, *, keys_needed: bool = False) -> Checked:
    """Return what `check_suite` finds out.

    Raises:
        UsageError: with every problem found.
    """
    plan = plan_of(suite, options or RunOptions())
    _with_recording("check_readable", None, suite)
    problems: list[Problem] = []
    targets = None
    if ("target",) not in suite.wrong:
        targets = _collect(problems, lambda: build_targets(suite, plan.concurrency, keys_needed=keys_needed))
    replays = options is not None and options.replay
    _collect(problems, lambda: check_output(suite))
    budget = Budget(max_cost=options.max_cost if options and not replays else None)
    batches = judges_in_batches(budget, None) if options and options.batch else None
    judges = JudgeOpener(budget, keys_needed=keys_needed and not replays, base=suite.base, batches=batches)
    tester = _collect(problems, lambda: tester_of(suite, judges))
    prepared = _collect(problems, lambda: prepare(suite, plan, judges))
    if tester is not None and prepared is not None:
        notes = _collect(problems, lambda: check_tester(suite, tester)) or []
        noted = replace(prepared.suite, notes=(*prepared.suite.notes, *notes))
        prepared = replace(prepared, suite=noted)
    if targets is not None and prepared is not None and suite.spec.driver != "replay":
        _collect(problems, lambda: check_rows(suite, targets, prepared.dataset))
    if prepared is None or problems:
        raise UsageError(*sorted(dict.fromkeys(problems), key=_place))
    graders = prepared.scoring.graders
    asks_judges = any(grader.judged or grader.verdicts_on is not None for grader in graders)

    def verdicts_on(sample: Sample, turns: int) -> int:
        del turns
        return sum(grader.verdicts(sample) for grader in graders)

    return Checked(prepared, forecast(suite, prepared.plan, verdicts_on if asks_judges else None, prepared.dataset))


def _place(problem: Problem) -> tuple[str, int, int]:
    return str(problem.file), problem.line or 0, problem.column or 0


def missing_keys(prepared: Prepared) -> list[Problem]:
    """Return which API keys a run would lack; the rows are not read again."""
    suite, judges = prepared.suite, JudgeOpener(Budget(), base=prepared.suite.base)
    problems: list[Problem] = []
    _collect(problems, lambda: build_targets(suite, suite.spec.max_concurrent))
    _collect(problems, lambda: tester_of(suite, judges))
    _collect(
        problems,
        lambda: Builder(suite, judges.open, prepared.dataset, metric_assertions=prepared.metric_assertions).scoring(),
    )
    return problems


def _collect(problems: list[Problem], step: Callable[[], T]) -> T | None:
    try:
        return step()
    except UsageError as error:
        problems += error.problems
        return None


def _check_setup(suite: Suite) -> None:
    reference = suite.spec.setup_script
    if reference is None:
        return
    try:
        check = lazy("vivavoce.suites.hooks:check_setup")
        check(load_object(reference, suite.base), reference, has_client=has_client(suite))
    except UsageError as error:
        raise UsageError(*suite.document.problems_at(("setup_script",), error)) from error
