"""Checks of grader names in requests: each must be in the requested scores."""

from __future__ import annotations

from collections.abc import Sequence

from vivavoce.records.run import Grading
from vivavoce.report.html.labelling import check_question
from vivavoce.store.browse.filter import NUMBERS, Compares, Term

ORDERS = ("position", *NUMBERS)
"""What samples can be ordered by besides the graders."""


def check_graders(grading: Grading, terms: Sequence[Term], sort: str) -> None:
    """Check that a set of scores has the graders in a filter and a sort order.

    Raises:
        NotFound: it has none of such a name.
    """
    named = [term.name for term in terms if isinstance(term, Compares) and term.grader]
    if (order := sort.removeprefix("-")) not in ORDERS:
        named.append(order)
    for name in named:
        check_grader(name, grading)


def check_grader(name: str, *gradings: Grading) -> None:
    """Check that one of some sets of scores has a grader, or that the reward is meant.

    Raises:
        NotFound: none has one of that name.
    """
    if name != "reward":
        check_question(name, *gradings)
