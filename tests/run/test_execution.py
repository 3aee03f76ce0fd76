"""What a caller may set for a run, and what is refused."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
from pydantic import ValidationError

from left_out import really_counted
from vivavoce import RunOptions
from vivavoce.run.gc_tuning import tuned_gc

NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("max_calls", [-1]),
        ("max_cost", [-0.1, NAN, INFINITE]),
        ("trials", [0]),
        ("max_concurrent", [0]),
        ("max_samples", [0]),
        ("max_call", [1]),
    ],
)
def test_options_that_mean_nothing_are_refused(name: str, values: list[float]) -> None:
    for value in values:
        with pytest.raises(ValidationError):
            RunOptions.model_validate({name: value})


@pytest.fixture(autouse=True)
def _counted(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(gc, "get_freeze_count", really_counted)


@pytest.fixture
def _nothing_frozen() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """Search the objects of the tests, too, which are left out otherwise."""
    gc.unfreeze()
    yield
    gc.freeze()


def test_how_often_garbage_is_searched_is_as_before_after_the_last_run() -> None:
    before = gc.get_threshold()
    with tuned_gc():
        with tuned_gc():
            pass
        assert gc.get_threshold() != before
    assert gc.get_threshold() == before


class Knot:
    def __init__(self) -> None:
        self.itself = self


@pytest.mark.usefixtures("_nothing_frozen")
def test_garbage_that_was_there_before_is_found_after_the_last_run() -> None:
    before = Knot()
    gone = weakref.ref(before)
    with tuned_gc():
        with tuned_gc():
            del before
        gc.collect()
        assert gone() is not None
    gc.collect()
    assert gone() is None


def test_garbage_made_during_a_run_is_found_during_it() -> None:
    with tuned_gc():
        made = Knot()
        gone = weakref.ref(made)
        del made
        gc.collect()
        assert gone() is None


def test_what_a_program_left_out_itself_stays_left_out() -> None:
    kept = [Knot() for _ in range(1000)]
    gc.freeze()
    with tuned_gc():
        gone = weakref.ref(Knot())
    assert gc.get_freeze_count() >= len(kept)
    gc.collect()
    assert gone() is None
