from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from vivavoce.grading.gates import Gate, SimpleGate, Threshold
from vivavoce.records.run import AttemptKey, Grading, ScoreRow
from vivavoce.report.finding import failures, finding, listed_finding
from vivavoce.report.json_file import write_json
from vivavoce.report.markdown import write_markdown
from vivavoce.report.terminal import verdict_lines
from vivavoce.run.summary import Summary, TagSummary, summarise
from vivavoce.run.tallies import tally
from vivavoce.run.verdict import Rules
from vivavoce.store.store import Store

from .cases import TIMEOUT, keep, outcome

GATE = SimpleGate("goal", Threshold("avg_score", "gte", 0.8))
GRADING = Grading(id="g", run_id="r", spec={"gate": {"metric_key": "goal"}}, created_at=0.0)


def rows(passed: int, failed: int, errors: int = 0, *, of: str = "s") -> list[ScoreRow]:
    values = [1.0] * passed + [0.0] * failed
    scored = [
        ScoreRow(AttemptKey(f"{of}{i}", "bot", 0), "grade", "goal", "scored", value, value == 1.0)
        for i, value in enumerate(values)
    ]
    broken = [ScoreRow(AttemptKey(f"{of}e{i}", "bot", 0), "grade", "goal", "error", None, None) for i in range(errors)]
    return [*scored, *broken]


def summary(found: list[ScoreRow], gate: Gate | None = GATE, **tagged: list[ScoreRow]) -> Summary:
    errors = sum(row.state == "error" for row in found)
    whole = summarise(tally(found), attempts=len(found), failed=errors, rules=Rules(gate=gate), errors=errors)
    tags = [
        TagSummary(tag=tag, graders=summarise(tally(mine), attempts=len(mine), failed=0).graders)
        for tag, mine in tagged.items()
    ]
    return whole.model_copy(update={"tags": tags})


def test_a_missed_gate_is_a_comparison_with_the_interval() -> None:
    assert finding(summary(rows(22, 14)), GRADING) == "fails: goal 0.61 [0.45, 0.75] < 0.8"


def test_a_tag_is_named_where_it_fails_clearly_more_often() -> None:
    refunds, rest = rows(1, 9, of="r"), rows(21, 5)
    found = summary([*refunds, *rest], refunds=refunds, other=rest)
    assert failures(found) == "9 of 14 failures are refunds"
    assert finding(found, GRADING).endswith("< 0.8; 9 of 14 failures are refunds")


@pytest.mark.parametrize(
    "tagged",
    [
        (rows(5, 4, of="r"), rows(17, 10)),  # as often as the others
        (rows(0, 2, of="r"), rows(22, 12)),  # too few to say
        (rows(22, 14, of="r"), []),  # every sample has it
    ],
)
def test_no_tag_is_named_for_failures_that_chance_may_have_given_it(tagged: tuple[list[ScoreRow], ...]) -> None:
    mine, rest = tagged
    assert failures(summary([*mine, *rest], refunds=mine)) == ""


def test_a_pass_names_the_condition_and_the_conversations_with_an_error() -> None:
    assert finding(summary(rows(10, 0)), GRADING) == "passes: goal 1.00 [0.72, 1.00] ≥ 0.8"


def test_an_error_that_could_change_the_verdict_leaves_it_undecided() -> None:
    said = finding(summary(rows(8, 1, 3)), GRADING)
    assert said.startswith("undecided: goal: mean must be ≥ 0.8; it is 0.8889; 3 errors could change the result")


def test_errors_alone_say_that_nothing_was_scored() -> None:
    assert finding(summary(rows(0, 0, 2)), GRADING) == "undecided: goal: nothing was scored (2 errors)"


def test_without_a_gate_the_mean_stands_alone() -> None:
    assert finding(summary(rows(3, 1), None), GRADING) == "no gate: goal 0.75 [0.30, 0.95]"
    assert finding(summary([], None).model_copy(update={"verdict": None}), GRADING) == "no gate: nothing was scored"


def test_a_run_that_was_stopped_is_undecided_whatever_its_scores_say() -> None:
    stopped = summary(rows(0, 9)).stopped_by("interrupted", 40)
    assert finding(stopped, GRADING) == (
        "undecided: interrupted after 9 of 40 conversations; goal 0.00 [0.00, 0.30] so far"
    )


def test_a_mean_is_never_shown_equal_to_the_limit_that_it_misses() -> None:
    close = [ScoreRow(AttemptKey(f"s{i}", "bot", 0), "grade", "goal", "scored", 0.7996, passed=False) for i in range(2)]
    assert "goal 0.7996 [0.25, 0.98] < 0.8" in finding(summary(close), GRADING)


def test_the_terminal_names_the_same_tag() -> None:
    refunds, rest = rows(1, 9, of="r"), rows(21, 5)
    out = io.StringIO()
    Console(file=out, width=120).print(*verdict_lines(summary([*refunds, *rest], refunds=refunds)), sep="\n")
    assert "FAIL" in out.getvalue()
    assert "9 of 14 failures are refunds" in out.getvalue()


def test_a_requirement_uses_the_words_of_its_reason() -> None:
    whole = summarise(tally(rows(1, 1)), attempts=2, failed=0, rules=Rules(requirements={"goal": "fail"}))
    assert finding(whole, GRADING).startswith("fails: goal: every conversation must pass; 1 of 2 did not")


async def test_json_markdown_python_and_the_list_say_the_same(store: Store) -> None:
    graded = await keep(store, [outcome("a", {"exact": 0.0}), outcome("b", {"exact": 0.25}, failure=TIMEOUT)])
    document, page = io.StringIO(), io.StringIO()
    write_json(graded, document)
    write_markdown(graded, page)
    (listed,) = store.browse.runs().runs
    assert json.loads(document.getvalue())["finding"] == graded.finding == listed_finding(listed)
    assert f"`{graded.finding}`" in page.getvalue()
    assert "summary" not in listed.model_dump()
