"""Problems read as one line that begins with their place."""

from __future__ import annotations

import pytest

from vivavoce.errors import Fault, ModelFault, NotFound, Problem, RateLimited, TargetFault, UsageError


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        (Problem("is wrong"), "is wrong"),
        (Problem("there is no such file", "nope.csv"), "nope.csv: there is no such file"),
        (Problem("is wrong", "d.jsonl", 3), "d.jsonl:3 is wrong"),
        (Problem("name: is empty", "suite.yaml", 3, 5), "suite.yaml:3:5 name: is empty"),
    ],
)
def test_a_problem_begins_with_its_place(problem: Problem, line: str) -> None:
    assert str(problem) == line


@pytest.mark.parametrize(("error", "blame"), [(RateLimited("slow"), "target"), (ModelFault("broke"), "judge")])
def test_a_fault_is_of_the_side_of_its_class_unless_it_names_another(error: Fault, blame: str) -> None:
    assert error.blame == blame
    assert RateLimited("slow", blame="tester").blame == "tester"
    assert RateLimited.blame == "target"
    assert not isinstance(error, TargetFault)


def test_a_restated_fault_keeps_what_is_not_said_anew() -> None:
    first = RateLimited("slow", retry_after=3, evidence="body", blame="judge", status=429)
    again = first.restate("slower", retryable=False)
    assert (str(first), first.retryable) == ("slow", True)
    assert (str(again), again.retryable, again.retry_after, again.evidence) == ("slower", False, 3, "body")
    assert (again.blame, again.status, again.kind) == ("judge", 429, "rate_limit")


def test_what_is_not_found_is_named_with_its_kind_and_the_closest_name() -> None:
    error = NotFound("grader", "helpfull", within="run r1", known=["helpful", "safe"])
    assert (error.what, error.name) == ("grader", "helpfull")
    assert str(error) == "no grader 'helpfull' in run r1; did you mean 'helpful'?"
    assert isinstance(error, UsageError)
