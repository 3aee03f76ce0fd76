"""What exists before a run is left out of the search for garbage, and found again after it."""

from __future__ import annotations

import gc
import weakref

from vivavoce.run.heap import tuned_gc


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
