from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from vivavoce.records.run import AttemptKey, Reason, Verdict
from vivavoce.report.terminal import PASSED_ADDED, run_report
from vivavoce.report.worst_samples import Worst, WorstSamples
from vivavoce.run.summary import GraderSummary, Summary

EXACT = GraderSummary(name="exact", target="bot", scored=20, errors=0, skipped=0, samples=20, mean=0.5, low=0.4, high=1)
NOTHING = WorstSamples([], 0)
LOW = Worst(AttemptKey("too low", "bot", 1), 0.25, "exact: said Rome")
LOST = Worst(AttemptKey("lost", "bot", 0), None, "target: no answer", "7 samples")


def summary(verdict: Verdict | None = "pass", reasons: tuple[str, ...] = ("exact: fine",), n: int = 20) -> Summary:
    reasons_list = [Reason(verdict=verdict or "inconclusive", code="sentence", text=reason) for reason in reasons]
    return Summary(attempts=n, failed_attempts=0, graders=[EXACT], verdict=verdict, reasons=reasons_list)


def render_lines(summary: Summary, worst: WorstSamples = NOTHING, width: int = 120, **more: Any) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width).print(run_report(summary, worst, "support-1867a4", **more))
    return out.getvalue().splitlines()


def test_it_ends_with_the_command_that_shows_the_worst_sample() -> None:
    assert render_lines(summary(), WorstSamples([LOW], 0))[-1] == "show the worst: viva show support-1867a4 'too low#2'"


def test_where_nothing_is_wrong_no_failure_is_hinted_at() -> None:
    lines = render_lines(summary())
    assert lines[-1] == "show a conversation: viva show support-1867a4 SAMPLE"
    assert "worst" not in "".join(lines)


def test_the_command_finds_the_same_scores() -> None:
    lines = render_lines(summary(), WorstSamples([LOST], 0), options=["--store", "my exam.db"])
    assert lines[-1] == "show the worst: viva show --store 'my exam.db' support-1867a4 lost"


def test_a_sample_that_looks_like_an_option_is_none_in_the_command() -> None:
    odd = Worst(AttemptKey("-x", "bot", 0), 0.0, "why")
    assert render_lines(summary(), WorstSamples([odd], 0))[-1].endswith("viva show support-1867a4 -- -x")


def test_a_failed_run_starts_with_what_failed_and_the_command_that_shows_it() -> None:
    lines = render_lines(summary("fail", ("exact: too low",)), WorstSamples([LOW], 2))
    assert lines[:9] == [
        "FAIL",
        "  fail · exact: too low",
        "",
        "too low#2  0.25  exact: said Rome",
        "and 2 more",
        "",
        "show the worst: viva show support-1867a4 'too low#2'",
        "",
        lines[8],
    ]
    assert lines[8].startswith("grader  scored")
    assert lines[-1].startswith("exact")


def test_equal_errors_are_one_line_and_what_is_left_out_is_counted() -> None:
    lines = render_lines(summary(), WorstSamples([LOST, LOW], 12))
    assert lines[3:7] == [
        "the worst samples",
        "7 samples  error  target: no answer",
        "too low#2   0.25  exact: said Rome",
        "and 12 more",
    ]


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (None, ["no gate: the run cannot fail"]),
        ("pass", ["PASS", "  pass · because"]),
        ("inconclusive", ["INCONCLUSIVE", "  inconclusive · because"]),
    ],
)
def test_the_verdict_has_its_reasons(verdict: Verdict | None, expected: list[str]) -> None:
    lines = render_lines(summary(verdict, ("because",)))
    assert lines[3 : 3 + len(expected)] == expected


@pytest.mark.parametrize(
    ("stopped_by", "text"),
    [
        ("interrupted", "INCONCLUSIVE: interrupted after 20 of 60 conversations"),
        ("no more than 5 calls", "INCONCLUSIVE: stopped after 20 of 60 conversations: no more than 5 calls"),
    ],
)
def test_a_run_that_was_stopped_early_does_not_contradict_itself(stopped_by: str, text: str) -> None:
    lines = render_lines(summary().stopped_by(stopped_by, 60))
    assert lines[3:5] == [text, "  so far: pass · exact: fine"]


def test_in_a_narrow_window_the_figures_stay_on_one_line() -> None:
    lines = render_lines(summary(), WorstSamples([LOW], 0), width=50)
    assert [line.split() for line in lines[:2]] == [
        ["grader", "scored", "error", "skipped", "mean"],
        ["exact", "20", "0", "0", "0.500"],
    ]
    assert max(map(len, lines)) <= 50


def test_scores_of_an_upgraded_store_say_where_their_passing_comes_from() -> None:
    assert PASSED_ADDED in render_lines(summary(), passed_added=True)
    assert PASSED_ADDED not in render_lines(summary())


def test_no_line_ends_with_blanks() -> None:
    lines = render_lines(summary(), WorstSamples([LOST, LOW], 3))
    assert lines == [line.rstrip() for line in lines]


def test_what_is_said_of_trials_names_the_target_where_there_are_several() -> None:
    trials = {"pass_hat": {1: 0.5, 2: 0.25}, "pass_at": {1: 0.5, 2: 0.75}, "tester_errors": 1}
    of = [EXACT.model_copy(update={**trials, "target": name}) for name in ("old", "new")]
    lines = render_lines(summary().model_copy(update={"graders": of}))
    assert [line for line in lines if "pass^k" in line] == [
        "exact of old  pass^k  1: 0.500  2: 0.250",
        "exact of new  pass^k  1: 0.500  2: 0.250",
    ]
    assert [line.split(":")[0] for line in lines if "net of" in line] == ["exact of old", "exact of new"]
    assert "exact  pass^k  1: 0.500  2: 0.250" in render_lines(summary().model_copy(update={"graders": of[:1]}))


def test_unequal_numbers_of_trials_are_named_with_what_each_mean_is_over() -> None:
    figures = {"pass_hat": {1: 0.5, 2: 0.25}, "pass_at": {1: 0.5, 2: 0.75}, "pass_samples": {1: 8, 2: 8}}
    uneven, even = (EXACT.model_copy(update={**figures, "scored": scored}) for scored in (19, 16))
    line = "trial counts differ: this is over the 8 samples with 2 or more"
    reports = [" ".join(render_lines(summary().model_copy(update={"graders": [row]}))) for row in (uneven, even)]
    assert [line in report for report in reports] == [True, False]
