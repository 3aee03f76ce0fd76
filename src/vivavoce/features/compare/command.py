"""`viva compare`: what changed between runs, and how certain that is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vivavoce.cli.options import BaselineOption, FailOnBreakOption, SmallestEffectOption
from vivavoce.cli.output import StoreOption, files, out, print_json, store_of
from vivavoce.errors import UsageError
from vivavoce.features.compare.markdown import markdown_comparison
from vivavoce.features.compare.several import SeveralComparisons, compare_several, markdown_several, several
from vivavoce.features.compare.terminal import comparison
from vivavoce.features.compare.words import with_words
from vivavoce.records.run import Grading
from vivavoce.report.comparison.comparison import Comparison
from vivavoce.report.comparison.pairing import compare
from vivavoce.report.comparison.regressions import Tolerance, add_ruling, check_two_runs
from vivavoce.report.comparison.sides import GradedSide, read_baseline
from vivavoce.report.text import record_json
from vivavoce.run.summary import EXIT_CODES
from vivavoce.store.store import Store


def command(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            help="The earlier and the later run: ids, the beginning or end of an id, or 'latest~1'; default: the two "
            "newest runs. 'latest' alone means the same. With more runs, each is compared "
            "with the first. With --baseline, only the later run.",
            show_default=False,
        ),
    ] = None,
    *,
    baseline: BaselineOption = None,
    fail_on_worse: Annotated[
        bool,
        typer.Option("--fail-on-worse", help="Exit with 1 if the later run is worse, 3 if undecided."),
    ] = False,
    smallest_effect: SmallestEffectOption = None,
    fail_on_break: FailOnBreakOption = False,
    grading_a: Annotated[str | None, typer.Option(help="The grading of run a; default: the newest.")] = None,
    grading_b: Annotated[str | None, typer.Option(help="The grading of run b; default: the newest.")] = None,
    target_a: Annotated[str | None, typer.Option(help="The target of run a to compare.")] = None,
    target_b: Annotated[str | None, typer.Option(help="The target of run b to compare.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the comparison as Markdown, for a pull request.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Compare runs, sample by sample; only samples that are identical in both runs are compared.

    For each grader, shows the difference of the means with its 95% interval, the samples that flipped between pass and
    fail, and what could not be compared. If a grader itself changed between the runs, its difference does not count.
    With more than two runs, each is compared with the first; the intervals are wider, so that all hold jointly at
    95%. With --fail-on-worse, --fail-on-break or --baseline, decides whether a later run is worse, by one-sided tests
    at 5%. Exit codes: 0 no loss shown, 1 worse, 2 wrong usage, 3 undecided: a likely but uncertain loss, too few
    samples, errors, or different graders or samples.
    """
    decides = fail_on_worse or fail_on_break or smallest_effect is not None or baseline is not None
    tolerance = Tolerance(smallest_effect, fail_on_break) if decides else None
    names = list(runs or [])
    if len(names) > 2:
        if baseline is not None or any((grading_a, grading_b, target_a, target_b)):
            raise UsageError("--baseline, --grading-a, --grading-b, --target-a and --target-b are for two runs")
        with Store.open(store_of(store), create=False) as opened:
            comparisons = _several(opened, names, tolerance)
        _show(comparisons, as_json=as_json, as_markdown=as_markdown)
        if tolerance is not None:
            raise typer.Exit(EXIT_CODES[comparisons.verdict])
        return
    if names == ["latest"] and not (grading_a or grading_b or target_a or target_b):
        names = []
    first, second = _runs(names, baseline, grading_a)
    earlier = None if baseline is None else read_baseline(baseline).side
    with Store.open(store_of(store), create=False) as opened:
        side: Grading | GradedSide = earlier or _scores(opened, first, grading_a)
        later = _scores(opened, second, grading_b)
        both = compare(opened, side, later, target_a, target_b)
        both = with_words(opened, both, side if isinstance(side, Grading) else None, later)
    if tolerance is not None:
        if baseline is None:
            check_two_runs(both)
        both = add_ruling(both, tolerance)
    _show(both, as_json=as_json, as_markdown=as_markdown)
    if both.ruling is not None:
        raise typer.Exit(EXIT_CODES[both.ruling.verdict])


def _several(store: Store, names: list[str], tolerance: Tolerance | None) -> SeveralComparisons:
    def compare_at(grading: Grading, other: Grading, level: float) -> Comparison:
        result = compare(store, grading, other, level=level)
        if tolerance is None:
            return result
        check_two_runs(result)
        return add_ruling(result, tolerance)

    first, *others = (_scores(store, name, None) for name in names)
    return compare_several(first, others, store.run(first.run_id).suite, compare_at)


def _runs(names: list[str], baseline: Path | None, grading_a: str | None) -> tuple[str, str]:
    """Return the earlier and the later run; with a baseline, the only run named is the later one."""
    if baseline is None:
        return names[0] if names else "latest~1", names[1] if len(names) > 1 else "latest"
    if len(names) > 1 or grading_a is not None:
        raise UsageError("--baseline takes the place of the earlier run; name only the later one")
    return "", names[0] if names else "latest"


def _show(result: Comparison | SeveralComparisons, *, as_json: bool, as_markdown: bool) -> None:
    if as_json:
        print_json(record_json(result))
    elif as_markdown:
        files().write(markdown_comparison(result) if isinstance(result, Comparison) else markdown_several(result))
    else:
        out().print(comparison(result) if isinstance(result, Comparison) else several(result))


def _scores(store: Store, run: str, grading: str | None) -> Grading:
    stored_grading = store.grading(store.run(run, whole=True).id, grading)
    if stored_grading.finished_at is None:
        raise UsageError(
            f"the scores {stored_grading.id} are not complete; continue with: viva run --resume {stored_grading.run_id}"
        )
    return stored_grading
