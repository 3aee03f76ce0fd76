from __future__ import annotations

from collections.abc import Sequence

import pytest

from report.cases import FINGERPRINTS, TIMEOUT, grade, keep, outcome
from report.test_markdown import HOSTILE, cells, tokens
from vivavoce.features.compare.markdown import markdown_comparison
from vivavoce.records.run import Outcome
from vivavoce.records.score import failed
from vivavoce.report.comparison.pairing import compare
from vivavoce.store.store import Store


async def write_comparison(
    store: Store, before: Sequence[Outcome], after: Sequence[Outcome], name: str = "run", *, changed: bool = False
) -> str:
    earlier = await keep(store, before, f"{name}-1")
    prints = {**FINGERPRINTS, "exact": "another"} if changed else FINGERPRINTS
    other = await keep(store, after, f"{name}-2", fingerprints=prints)
    return markdown_comparison(compare(store, earlier.grading, other.grading))


def some(count: int, score: float, why: str = "said Rome") -> list[Outcome]:
    return [outcome(f"sample-{i}", {"exact": grade(score, why)}) for i in range(count)]


async def test_it_shows_the_difference_of_each_grader_and_says_what_it_amounts_to(store: Store) -> None:
    text = await write_comparison(store, some(12, 1.0), some(12, 0.5))
    assert text.startswith("**`support`: run `run-2` after run `run-1`**\n\n`bot`: 12 matched samples\n")
    row = cells(text)[1]
    assert row[:5] == ["exact", "12", "1.000", "0.500", "-0.500"]
    assert row[6] == "worse"


@pytest.mark.parametrize(("after", "word"), [(1.0, "better"), (0.0, "no clear change")])
async def test_a_gain_is_no_loss_and_an_interval_that_holds_zero_is_neither(
    store: Store, after: float, word: str
) -> None:
    assert cells(await write_comparison(store, some(9, 0.0), some(9, after)))[1][6] == word


async def test_a_difference_without_an_interval_decides_nothing(store: Store) -> None:
    assert cells(await write_comparison(store, some(1, 1.0), some(1, 0.0)))[1][6] == "too few pairs"


async def test_the_samples_behind_it_are_folded_and_the_rest_is_counted(store: Store) -> None:
    text = await write_comparison(store, some(12, 1.0), some(12, 0.5))
    assert "<summary>12 scores passed before and fail now</summary>" in text
    assert cells(text)[3] == ["exact", "sample-0", "1.000", "0.500", "exact: said Rome"]
    assert len(cells(text)) == 2 + 1 + 10
    assert "and 2 more" in text


async def test_what_cannot_be_compared_is_told(store: Store) -> None:
    before = [*some(3, 1.0), outcome("gone", {"exact": 1.0})]
    after = [*some(2, 1.0), outcome("sample-2", {"exact": failed(TIMEOUT)})]
    text = await write_comparison(store, before, after, changed=True)
    assert "3 matched samples, 1 only before" in text
    assert "Scored before, an error now: `sample-2`" in text
    assert "- `exact`: changed between the two gradings" in text


async def test_scores_compared_with_themselves_say_so(store: Store) -> None:
    graded = await keep(store, some(2, 1.0))
    text = markdown_comparison(compare(store, graded.grading, graded.grading))
    assert text.endswith("\n\nBoth sides are the same grading, so there is no difference.\n\n")


@pytest.mark.parametrize("text", HOSTILE)
async def test_nothing_that_a_model_wrote_is_markup_or_leaves_its_cell(store: Store, text: str) -> None:
    def side(name: str, score: float) -> list[Outcome]:
        return [outcome(name, {name: grade(score, name)}, target=name), outcome(f"only {score} {name}")]

    plain = await write_comparison(store, side("plain", 1.0), side("plain", 0.0))
    hostile = await write_comparison(store, side(text, 1.0), side(text, 0.0), "other")
    assert [token.type for token in tokens(hostile)] == [token.type for token in tokens(plain)]
    assert [len(row) for row in cells(hostile)] == [len(row) for row in cells(plain)]
