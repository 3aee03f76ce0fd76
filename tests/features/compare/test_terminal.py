from __future__ import annotations

import io

import pytest
from rich.console import Console

from report.cases import FINGERPRINTS, grade, keep, outcome
from vivavoce.features.compare.terminal import comparison
from vivavoce.records.run import Outcome
from vivavoce.report.comparison.pairing import compare
from vivavoce.store.store import Store


async def print_comparison(
    store: Store, a: list[Outcome], b: list[Outcome], width: int = 120, *, changed: bool = False
) -> list[str]:
    earlier = await keep(store, a, "capitals-1867a4")
    prints = {**FINGERPRINTS, "exact": "another"} if changed else FINGERPRINTS
    other = await keep(store, b, "capitals-5f3c9e", fingerprints=prints)
    out = io.StringIO()
    Console(file=out, width=width).print(comparison(compare(store, earlier.grading, other.grading)))
    return out.getvalue().splitlines()


def some(count: int, score: float) -> list[Outcome]:
    return [outcome(f"sample-{i}", {"exact": grade(score, "said Rome")}) for i in range(count)]


async def test_the_head_names_scores_suite_and_target(store: Store) -> None:
    lines = await print_comparison(store, some(2, 1.0), some(2, 0.5))
    assert lines[:2] == ["a  capitals-1867a4-g1 · support · bot", "b  capitals-5f3c9e-g1 · support · bot"]


@pytest.mark.parametrize(
    ("samples", "sentence"),
    [
        (3, "3 samples cannot show a change of exact: at least 6 are needed."),
        (5, "5 samples cannot show a change of exact: at least 6 are needed."),
        (12, None),
    ],
)
async def test_too_few_samples_are_said_to_show_nothing(store: Store, samples: int, sentence: str | None) -> None:
    lines = await print_comparison(store, some(samples, 0.0), some(samples, 1.0))
    assert not any("would have shown" in line for line in lines)
    assert [line for line in lines if "cannot show" in line] == ([] if sentence is None else [sentence])


async def test_a_p_value_is_never_0(store: Store) -> None:
    lines = await print_comparison(store, some(40, 0.0), some(40, 1.0))
    assert [line.split()[-4] for line in lines if line.startswith("exact ") and "…" in line] == ["0.001"]
    assert any("< 0.001" in line for line in lines)


async def test_what_flipped_is_shown_with_its_reason_and_the_others_are_counted(store: Store) -> None:
    lines = await print_comparison(store, some(12, 1.0), some(12, 0.5))
    assert "exact: pass on a, fail on b (12)" in lines
    assert lines.count("  and 2 more") == 1
    assert "  sample-9  1.00 → 0.50  exact: said Rome" in lines
    assert lines[-1] == "12 matched samples"


async def test_a_note_says_the_name_of_its_grader_once(store: Store) -> None:
    lines = await print_comparison(store, some(2, 1.0), some(2, 0.5), changed=True)
    assert "exact: changed between the two gradings; part of the difference may come from the grader" in lines


async def test_scores_compared_with_themselves_say_so(store: Store) -> None:
    graded = await keep(store, some(2, 1.0))
    out = io.StringIO()
    Console(file=out, width=80).print(comparison(compare(store, graded.grading, graded.grading)))
    assert out.getvalue().splitlines()[-1] == "both sides are the same grading, so there is no difference"


async def test_in_a_narrow_window_the_difference_stays_readable(store: Store) -> None:
    lines = await print_comparison(store, some(3, 1.0), some(3, 0.5), width=50)
    assert lines[3].split() == ["grader", "b", "−", "a", "95%", "interval", "better", "worse"]
    assert lines[4].split()[:2] == ["exact", "-0.500"]
    assert max(map(len, lines)) <= 50


async def test_no_line_ends_with_blanks(store: Store) -> None:
    lines = await print_comparison(store, some(12, 1.0), some(12, 0.5))
    assert lines == [line.rstrip() for line in lines]
