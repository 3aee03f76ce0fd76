from __future__ import annotations

from collections.abc import Callable

import pytest

from server.pages.cases import keep, outcome
from vivavoce.errors import UsageError
from vivavoce.features.compare import cache as module
from vivavoce.features.compare.cache import Comparisons
from vivavoce.records.run import Grading
from vivavoce.records.score import Score
from vivavoce.report.comparison import pairing as plain
from vivavoce.report.comparison.comparison import Comparison
from vivavoce.store.store import Store


@pytest.fixture
def both(store: Store) -> tuple[Grading, Grading]:
    for name, score in (("a", 1.0), ("b", 0.0)):
        keep(store, [outcome(grades={"goal": Score(value=score, reason="so")})], name)
    return store.grading("a"), store.grading("b")


@pytest.fixture
def comparison_calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The pairs of gradings that were compared, in order."""
    result: list[tuple[str, str]] = []
    compare: Callable[..., Comparison] = plain.compare

    def note_call(store: Store, a: Grading, b: Grading, *more: object, **options: object) -> Comparison:
        result.append((a.id, b.id))
        return compare(store, a, b, *more, **options)

    monkeypatch.setattr(module, "compare", note_call)
    return result


def test_what_is_over_is_compared_once(
    store: Store, both: tuple[Grading, Grading], comparison_calls: list[object]
) -> None:
    comparisons = Comparisons()
    first, second = (comparisons.compare(store, *both) for _ in range(2))
    assert (len(comparison_calls), first) == (1, second)
    assert first == plain.compare(store, *both)


def test_every_question_has_its_own_answer(store: Store, both: tuple[Grading, Grading]) -> None:
    a, b = both
    comparisons = Comparisons()
    assert comparisons.compare(store, a, b).run_a == "a"
    assert comparisons.compare(store, b, a).run_a == "b"
    whys = [comparisons.compare(store, a, b, reasons=with_reasons) for with_reasons in (True, False)]
    assert [bool(why.targets[0].graders[0].worsened[0].why) for why in whys] == [True, False]
    with pytest.raises(UsageError, match="no target 'none'"):
        comparisons.compare(store, a, b, ("none", None))


def test_what_goes_on_is_compared_again(
    store: Store, both: tuple[Grading, Grading], comparison_calls: list[object]
) -> None:
    comparisons = Comparisons()
    going_on = both[1].model_copy(update={"finished_at": None})
    for _ in range(2):
        comparisons.compare(store, both[0], going_on)
    assert len(comparison_calls) == 2


def test_a_run_of_the_same_name_in_place_of_a_deleted_one_is_compared_anew(
    store: Store, both: tuple[Grading, Grading]
) -> None:
    comparisons = Comparisons()
    comparisons.compare(store, *both)
    store.maintenance.delete_run("b", "me")
    keep(store, [outcome("other"), outcome("two", position=1)], "b")
    comparison = comparisons.compare(store, both[0], store.grading("b"))
    assert comparison.targets[0].unmatched_b == ["other", "two"]


def test_what_was_asked_long_ago_is_forgotten(
    store: Store, both: tuple[Grading, Grading], comparison_calls: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_CACHED", 1)
    comparisons = Comparisons()
    a, b = both
    for each, other in ((a, b), (b, a), (a, b)):
        comparisons.compare(store, each, other)
    assert len(comparison_calls) == 3
