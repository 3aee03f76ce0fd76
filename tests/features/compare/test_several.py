from __future__ import annotations

import io

import pytest
from rich.console import Console, RenderableType

from report.cases import keep, outcome
from vivavoce.errors import UsageError
from vivavoce.features.compare.several import MAX_RUNS, SeveralComparisons, compare_several, markdown_several, several
from vivavoce.records.run import Grading, Outcome
from vivavoce.report.comparison.comparison import Comparison
from vivavoce.report.comparison.pairing import compare
from vivavoce.report.comparison.regressions import Tolerance, add_ruling
from vivavoce.store.store import Store


def outcomes_of(*scores: float) -> list[Outcome]:
    return [outcome(f"s{place}", {"exact": score}) for place, score in enumerate(scores)]


def print_part(part: RenderableType) -> str:
    out = io.StringIO()
    Console(file=out, width=160).print(part)
    return out.getvalue()


async def compare_runs(store: Store, *runs: list[Outcome], decides: bool = False) -> SeveralComparisons:
    gradings = [(await keep(store, run, f"run-{place}")).grading for place, run in enumerate(runs)]

    def one_with(grading: Grading, other: Grading, level: float) -> Comparison:
        comparison = compare(store, grading, other, level=level)
        return add_ruling(comparison, Tolerance()) if decides else comparison

    return compare_several(gradings[0], gradings[1:], "support", one_with)


async def test_each_run_is_compared_with_the_first_with_intervals_that_hold_together(store: Store) -> None:
    a, b, c = outcomes_of(*[1] * 8, 0.5), outcomes_of(0, 0, 0.5, *[0] * 6), outcomes_of(*[1] * 8, 0.5)
    result = await compare_runs(store, a, b, c)
    assert (result.run, result.level) == ("run-0", 0.975)
    assert [(line.letter, line.grader.reading) for line in result.lines] == [("B", "worse"), ("C", "same")]
    alone = compare(store, store.grading("run-0"), store.grading("run-1")).targets[0].graders[0]
    wider = result.lines[0].grader
    assert wider.difference == alone.difference
    assert wider.high is not None
    assert alone.high is not None
    assert wider.high > alone.high


async def test_the_terminal_and_the_markdown_name_the_same_readings(store: Store) -> None:
    result = await compare_runs(
        store, outcomes_of(*[1] * 9), outcomes_of(*[0] * 9), outcomes_of(*[1] * 9), decides=True
    )
    text, markdown = print_part(several(result)), markdown_several(result)
    assert "exact   B" in text
    assert "worse" in text
    assert "9 worse, 0 better" in text
    assert "97.5% interval" in text
    assert "FAIL: worse than before" in text
    assert "| `exact` | B | 9 | 1.000 | 0.000 | -1.000 |" in markdown
    assert "**worse**" in markdown
    assert result.verdict == "fail"


async def test_what_is_undecided_for_one_run_is_undecided_for_all(store: Store) -> None:
    result = await compare_runs(store, outcomes_of(1, 1), outcomes_of(1, 1), outcomes_of(0, 1), decides=True)
    assert result.verdict == "inconclusive"


async def test_the_same_scores_twice_and_too_many_runs_are_refused(store: Store) -> None:
    grading = (await keep(store, outcomes_of(1), "run-0")).grading
    many = [grading.model_copy(update={"id": f"g{i}"}) for i in range(MAX_RUNS)]
    for others, why in (
        ([grading], "run-0-g1 is named twice"),
        (many, f"at most {MAX_RUNS} runs at a time, got {MAX_RUNS + 1}"),
    ):
        with pytest.raises(UsageError, match=why):
            compare_several(grading, others, "support", lambda a, b, level: compare(store, a, b, level=level))
