"""Problems read as one line that begins with their place."""

from __future__ import annotations

import pytest

from vivavoce.errors import Problem


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
