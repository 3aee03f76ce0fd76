"""The samples of a run as a table: what is in it, what is left out, and that nothing is left out silently."""

from __future__ import annotations

import io
import time
from collections.abc import Sequence

import pytest
from rich.console import Console

from vivavoce.records.run import Outcome
from vivavoce.records.score import failed, skipped
from vivavoce.report.export import TEXT_FORMATS, export
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.run import by_target
from vivavoce.report.matrix import SAMPLES, cell_text, matrix_of, sample_table
from vivavoce.store.store import Store

from .cases import TIMEOUT, keep, outcome


def lines(graded: GradedRun, width: int = 120) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width).print(sample_table(graded))
    return out.getvalue().splitlines()


def export_text(graded: GradedRun, form: str) -> str:
    out = io.StringIO()
    export(graded.store, graded.run, graded.grading, form, out)
    return out.getvalue()


def grid(samples: int, targets: Sequence[str], trials: int = 1) -> list[Outcome]:
    """Return outcomes of which every third sample fails with the first target."""
    return [
        outcome(
            f"s{i}",
            {"exact": 0.0 if target == targets[0] and i % 3 == 0 else 1.0},
            target=target,
            trial=trial,
        )
        for i in range(samples)
        for target in targets
        for trial in range(trials)
    ]


async def test_several_targets_are_the_columns_with_their_figures_below(store: Store) -> None:
    graded = await keep(store, grid(3, ["old", "new"]))
    assert lines(graded) == [
        "exact of each sample with each target",
        "sample  old          new",
        "s0      0.00 ✗       1.00",
        "s1      1.00         1.00",
        "s2      1.00         1.00",
        "",
        "mean    0.667        1.000",
        "95%     0.21 … 0.94  0.44 … 1.00",
        "passed  66.7%        100.0%",
        "tokens  15           15",
        "",
    ]


async def test_the_best_target_is_marked(store: Store) -> None:
    outcomes = [
        outcome(f"s{i}", {"exact": float(name == "new")}, target=name) for i in range(9) for name in ("old", "new")
    ]
    assert "mean    0.000        1.000 best" in lines(await keep(store, outcomes))


async def test_graders_are_the_columns_of_a_single_target(store: Store) -> None:
    output_lines = lines(await keep(store, [outcome("a", {"exact": 1.0, "judge": 0.25}), outcome("b", {"exact": 0.0})]))
    assert output_lines[:4] == [
        "sample  exact        judge",
        "a       1.00         0.25 ✗",
        "b       0.00 ✗       –",
        "",
    ]


async def test_errors_trials_and_what_does_not_apply_are_told_apart(store: Store) -> None:
    outcomes = [
        outcome("a", {"exact": 1.0}, target="old"),
        outcome("a", {"exact": 0.5}, target="old", trial=1),
        outcome("a", {"exact": skipped("no truth")}, target="new"),
        outcome("b", failure=TIMEOUT, grades={"exact": failed(TIMEOUT)}, target="old"),
        outcome("b", {"exact": 1.0}, target="new"),
        outcome("b", {"exact": failed(TIMEOUT)}, target="new", trial=1),
    ]
    matrix = matrix_of(await keep(store, outcomes), 10)
    texts = [[cell_text(row.cells.get(name)) for name in ("old", "new", "newest")] for row in matrix.rows]
    assert texts == [["0.75 1/2 ✗", "–", "–"], ["error", "1.00 1/2 ✗ (1 error)", "–"]]


async def test_of_many_samples_the_worst_are_shown_in_the_order_of_the_dataset(store: Store) -> None:
    graded = await keep(store, grid(3 * SAMPLES, ["old", "new"]))
    output_lines = lines(graded)
    numbers = [int(line.split()[0][1:]) for line in output_lines if line.startswith("s") and line[1].isdigit()]
    assert numbers == list(range(0, 3 * SAMPLES, 3))
    assert f"{2 * SAMPLES} more samples, none of them worse" in output_lines
    assert f"every score: viva export {graded.run.id} --format csv" in output_lines


async def test_columns_that_do_not_fit_are_counted_and_long_names_are_cut(store: Store) -> None:
    names = [f"a model with quite a long name {i}" for i in range(9)]
    graded = await keep(store, [outcome("x" * 90, {"exact": 1.0}, target=name) for name in names])
    output_lines = lines(graded, 100)
    assert max(map(len, output_lines)) <= 100
    assert "…" in output_lines[1]
    assert "7 more targets in a wider terminal: a model with quite a long name 2, a" in "\n".join(output_lines)
    assert "8 more targets" in " ".join(lines(graded, 30))


async def test_ten_thousand_cells_take_a_moment(store: Store) -> None:
    graded = await keep(store, grid(1000, [f"t{i}" for i in range(10)]))
    start_time = time.process_time()
    output_lines = lines(graded)
    assert time.process_time() - start_time < 3
    assert len(output_lines) < SAMPLES + 15


async def test_names_of_targets_control_nothing(store: Store) -> None:
    outcomes = [outcome("a", {"exact": 1.0}, target=name) for name in ("<blink>\x1b[2J", "new|`")]
    graded = await keep(store, outcomes)
    assert "\x1b" not in "\n".join(lines(graded))
    assert "&lt;blink&gt;" in export_text(graded, "html")
    assert "<blink>" not in export_text(graded, "html")
    assert "| `new∣ˋ` |" in export_text(graded, "markdown")


async def test_every_export_says_which_target(store: Store) -> None:
    graded = await keep(store, grid(2, ["old", "new"]))
    for form in TEXT_FORMATS.keys() - {"recordings"}:  # what tools answered, whoever called them
        text = export_text(graded, form)
        assert "old" in text, form
        assert "new" in text, form
    assert "| `s0` | 0.00 ✗ | 1.00 |" in export_text(graded, "markdown")
    assert "exact: no best target: on the same samples old is not clearly below new" in export_text(graded, "markdown")
    assert "Samples by target" in export_text(graded, "html")
    assert "title=support%3A old%3A s0%3A 0.00::" in export_text(graded, "github")


async def test_the_page_of_a_single_target_or_of_a_run_at_work_has_no_such_table(store: Store) -> None:
    graded = await keep(store, grid(2, ["old"]))
    assert by_target(graded, graded.summary(), lambda sample, target: "") is None
    going = await keep(store, grid(2, ["old", "new"]), "run-2", ended=False)
    assert by_target(going, going.summary(), lambda sample, target: "") is None
    assert "Samples by target" not in export_text(graded, "html")


@pytest.mark.parametrize("attempts", [20_001, 1_000_000])
async def test_a_page_does_not_read_more_scores_than_it_can(store: Store, attempts: int) -> None:
    graded = await keep(store, grid(2, ["old", "new"]))
    large = graded.summary().model_copy(update={"attempts": attempts})
    table = by_target(graded, large, lambda sample, target: "")
    assert table is not None
    assert (table.lines, table.note.split(" ")[0]) == ([], f"{attempts:,}")
