from __future__ import annotations

from typing import Any

from vivavoce.features.compare.text_difference import suite_difference
from vivavoce.records.run import Grading, Run

SPEC = {
    "name": "support",
    "dataset": {"path": "rows.jsonl", "rows": [{"input": "hi"}]},
    "graders": {"goal": {"kind": "metric", "model": "openai:small"}},
    "trials": 1,
}


def side(spec: dict[str, Any], graded: dict[str, Any] | None = None) -> tuple[Run, Grading]:
    run = Run(id="r", suite="support", spec=spec, base=".", started_at=1)
    return run, Grading(id="g", run_id="r", spec=graded or {}, created_at=1)


def difference_lines(before: tuple[Run, Grading], after: tuple[Run, Grading]) -> list[str]:
    marks = {"same": "{}", "gone": "[-{}-]", "new": "{{+{}+}}"}
    difference = suite_difference(before, after)
    return [
        f"{line.kind} {''.join(marks[stretch.kind].format(stretch.text) for stretch in line.stretches)}"
        for line in difference
    ]


def test_the_same_suite_has_no_difference_and_rows_inside_it_are_left_out() -> None:
    rows = {**SPEC, "dataset": {"path": "rows.jsonl", "rows": [{"input": "other"}]}}
    assert difference_lines(side(SPEC), side(rows)) == []


def test_a_changed_line_shows_its_words_and_a_new_line_is_not_marked_word_by_word() -> None:
    changed = {**SPEC, "graders": {"goal": {"kind": "metric", "model": "openai:large", "votes": 3}}}
    result = difference_lines(side(SPEC), side(changed))
    assert "gone     model: openai:[-small-]" in result
    assert "new     model: openai:{+large+}" in result
    assert "new     votes: 3" in result


def test_the_graders_are_those_of_the_scores() -> None:
    again = {"graders": {"goal": {"kind": "metric", "model": "openai:large"}}}
    assert "new     model: openai:{+large+}" in difference_lines(side(SPEC), side(SPEC, again))


def test_lines_that_are_the_same_are_left_out_between_two_changes() -> None:
    long = {"name": "a", **{f"key-{i}": i for i in range(20)}, "trials": 1}
    result = difference_lines(side(long), side({**long, "name": "b", "trials": 2}))
    assert result.count("gap ") == 1
    assert len(result) < 12


def test_long_suites_of_lines_that_are_repeated_are_compared() -> None:
    def suite(shift: int) -> dict[str, Any]:
        values = [{"a": (number * number + shift) % 7} for number in range(20_000)]
        return {"name": f"suite {shift}", "graders": {"goal": {"kind": "metric", "config": {"enum": values}}}}

    lines = suite_difference(side(suite(0)), side(suite(1)))
    texts = {(line.kind, "".join(stretch.text for stretch in line.stretches)) for line in lines}
    assert {("gone", "name: suite 0"), ("new", "name: suite 1")} <= texts
