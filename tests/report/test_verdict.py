"""Why a run passes or fails, in words, and the errors behind it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console, Group

from cli.conftest import Viva
from cli.conftest import viva as viva
from server.live import get, serving
from server.pages.cases import keep, outcome
from vivavoce.client import Client
from vivavoce.features.calibration.calibration import from_people
from vivavoce.grading.gates import Gate, SimpleGate, Threshold
from vivavoce.records.label import CorrectedRate, Label
from vivavoce.records.run import AttemptKey, Grading, ScoreRow
from vivavoce.records.score import Evidence, Finding, FindingState, Score
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.json_file import write_json
from vivavoce.report.junit import write_junit
from vivavoce.report.markdown import write_markdown
from vivavoce.report.terminal import verdict_lines
from vivavoce.report.verdict import (
    MAX_FINDINGS,
    corrected_lines,
    corrected_text,
    failures,
    finding,
    findings,
    listed_finding,
)
from vivavoce.run.summary import Summary, TagSummary, summarise
from vivavoce.run.tallies import tally
from vivavoce.run.verdict import Rules
from vivavoce.store.store import Store

from .cases import TIMEOUT
from .cases import keep as keep_outcomes
from .cases import outcome as scored_outcome


def keep_run(store: Store, name: str, passed: int, **more: Any) -> None:
    outcomes = [
        outcome(f"s{n:02}", grades={"goal": Score(value=float(n < passed))}, position=n, target=target)
        for target in more.pop("targets", ["bot"])
        for n in range(50)
    ]
    keep(store, outcomes, name, fingerprints={"goal": "f1"}, **more)


@pytest.fixture
def labelled_store(tmp_path: Path) -> Iterator[Store]:
    """A store with two runs of one judge: the first was calibrated, on forty of its fifty conversations."""
    with Store.open(str(tmp_path / "x.db")) as labelled:
        keep_run(labelled, "run-1", 30)
        keep_run(labelled, "run-2", 35, at=2000.0)
        for n in range(40):
            label = {"sample_id": f"s{n:02}", "target": "bot", "trial": 0, "grader": "goal", "author": "Ida"}
            good = n < 26 or n == 39
            verdict_fields = {"verdict": "pass" if good else "fail", "created_at": 1.0, "drawn": 1.0, "blind": True}
            labelled.labels.set("run-1", Label.model_validate({**label, **verdict_fields}))
        labelled.calibrations.add(from_people(labelled, labelled.grading("run-1"), "goal", "Ida"))
        yield labelled


def load_graded(labelled_store: Store, name: str) -> GradedRun:
    return GradedRun(labelled_store, labelled_store.run(name), labelled_store.grading(name))


def rate(labelled_store: Store, name: str) -> CorrectedRate:
    rate_found = load_graded(labelled_store, name).summary().grader("goal").corrected
    assert rate_found is not None
    return rate_found


def write_text(write: Any, graded_run: GradedRun) -> str:
    out = io.StringIO()
    write(graded_run, out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "method", "of"),
    [("run-1", "prediction_powered", "of this run"), ("run-2", "rogan_gladen", "of run run-1")],
)
def test_every_reader_says_the_same(labelled_store: Store, viva: Viva, name: str, method: str, of: str) -> None:
    graded_run, corrected_rate = load_graded(labelled_store, name), rate(labelled_store, name)
    assert corrected_rate.method == method
    text = corrected_text(corrected_rate, name)
    assert of in text
    assert f"{corrected_rate.raw:.1%} pass (judge), {corrected_rate.value:.1%} corrected" in text
    summary = graded_run.summary()
    assert list(corrected_lines(summary, name)) == [f"goal: {text}"]
    assert text in " ".join(viva("show", name, "--store", labelled_store.place).stdout.split())
    assert f"`goal: {text}`" in write_text(write_markdown, graded_run)
    (mine,) = json.loads(write_text(write_json, graded_run))["summary"]["graders"]
    assert CorrectedRate.model_validate(mine["corrected"]) == corrected_rate
    properties = ElementTree.fromstring(write_text(write_junit, graded_run)).findall("testsuite/properties/property")
    assert [(p.get("name"), p.get("value")) for p in properties] == [("corrected.goal", text)]
    with serving(labelled_store) as base:
        assert f"goal: {text}" in get(f"{base}/runs/{name}").text
        (mine,) = json.loads(get(f"{base}/api/v1/runs/{name}").text)["summary"]["graders"]
        assert CorrectedRate.model_validate(mine["corrected"]) == corrected_rate
        with Client(base) as client:
            assert client.run(name).summary.grader("goal").corrected == corrected_rate


def test_a_judge_that_was_never_calibrated_is_not_mentioned(labelled_store: Store) -> None:
    keep(
        labelled_store,
        [outcome("s", grades={"tone": Score(value=1.0)})],
        "run-3",
        at=3000.0,
        fingerprints={"tone": "f7"},
    )
    assert load_graded(labelled_store, "run-3").summary().grader("tone").corrected is None
    assert "correct" not in write_text(write_markdown, load_graded(labelled_store, "run-3"))


def test_a_judge_that_changed_is_stale_and_says_so(labelled_store: Store) -> None:
    outcomes = [outcome("s", grades={"goal": Score(value=1.0)})]
    keep(labelled_store, outcomes, "run-3", at=3000.0, fingerprints={"goal": "changed"})
    text = (
        "goal: not corrected: it was calibrated in run run-1 with another prompt, model or setting; calibrate it again"
    )
    assert list(corrected_lines(load_graded(labelled_store, "run-3").summary(), "run-3")) == [text]
    assert text in write_text(write_markdown, load_graded(labelled_store, "run-3"))


def test_each_target_has_its_own_rate(labelled_store: Store) -> None:
    keep_run(labelled_store, "run-3", 20, at=3000.0, targets=["bot", "other"])
    summary = load_graded(labelled_store, "run-3").summary()
    assert [line.partition(":")[0] for line in corrected_lines(summary, "run-3")] == ["goal of bot", "goal of other"]


def test_a_newer_calibration_counts_at_once(labelled_store: Store) -> None:
    before = rate(labelled_store, "run-1")
    label = {"sample_id": "s45", "target": "bot", "trial": 0, "grader": "goal", "author": "Ida", "verdict": "pass"}
    labelled_store.labels.set("run-1", Label.model_validate({**label, "created_at": 2.0, "drawn": 1.0}))
    assert rate(labelled_store, "run-1") == before, "labels count when they are kept"
    labelled_store.calibrations.add(from_people(labelled_store, labelled_store.grading("run-1"), "goal", "Ida"))
    assert rate(labelled_store, "run-1").labels == 41


def test_a_run_that_is_not_finished_has_no_corrected_rate(labelled_store: Store) -> None:
    run = labelled_store.run("run-2")
    labelled_store.update_run(run.model_copy(update={"status": "running"}))
    with labelled_store.claimed("run-2"):
        assert load_graded(labelled_store, "run-2").summary().grader("goal").corrected is None


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


def summary(score_rows: list[ScoreRow], gate: Gate | None = GATE, **tagged: list[ScoreRow]) -> Summary:
    errors = sum(row.state == "error" for row in score_rows)
    whole = summarise(tally(score_rows), attempts=len(score_rows), failed=errors, rules=Rules(gate=gate), errors=errors)
    tags = [
        TagSummary(tag=tag, graders=summarise(tally(mine), attempts=len(mine), failed=0).graders)
        for tag, mine in tagged.items()
    ]
    return whole.model_copy(update={"tags": tags})


def test_a_missed_gate_is_a_comparison_with_the_interval() -> None:
    assert finding(summary(rows(22, 14)), GRADING) == "fails: goal 0.61 [0.45, 0.75] < 0.8"


def test_a_tag_is_named_where_it_fails_clearly_more_often() -> None:
    refunds, rest = rows(1, 9, of="r"), rows(21, 5)
    result = summary([*refunds, *rest], refunds=refunds, other=rest)
    assert failures(result) == "9 of 14 failures are refunds"
    assert finding(result, GRADING).endswith("< 0.8; 9 of 14 failures are refunds")


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
    text = finding(summary(rows(8, 1, 3)), GRADING)
    assert text.startswith("undecided: goal: mean must be ≥ 0.8; it is 0.8889; 3 errors could change the result")


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
    graded = await keep_outcomes(
        store, [scored_outcome("a", {"exact": 0.0}), scored_outcome("b", {"exact": 0.25}, failure=TIMEOUT)]
    )
    document, page = io.StringIO(), io.StringIO()
    write_json(graded, document)
    write_markdown(graded, page)
    (row,) = store.browse.runs().runs
    assert json.loads(document.getvalue())["finding"] == graded.finding == listed_finding(row)
    assert f"`{graded.finding}`" in page.getvalue()
    assert "summary" not in row.model_dump()


def shown_findings(*finding: Finding, other: tuple[Evidence, ...] = ()) -> list[str]:
    console = Console(width=160, highlight=False, markup=False)
    with console.capture() as captured:
        console.print(Group(*findings(Score(value=0.5, findings=finding, other_evidence=other))))
    return [line.rstrip() for line in captured.get().splitlines() if line.strip()]


def build_observed(what: str, verdict: str, state: FindingState = "fail", *evidence: Evidence) -> Finding:
    return Finding(kind="criterion", what=what, verdict=verdict, state=state, evidence=evidence)


def test_each_criterion_says_whether_it_is_met_and_where_its_evidence_stands() -> None:
    lines = shown_findings(
        build_observed("refund made", "met", "pass", Evidence(text="c2", kind="call", turn=3, verified=True)),
        build_observed("sum told", "not met", "fail", Evidence(text="it is 12")),
    )
    assert lines[0].split() == ["met", "refund", "made"]
    assert lines[1].split() == ["turn", "4", "call", "c2"]
    assert lines[2].split() == ["not", "met", "sum", "told"]
    assert lines[3].split() == ["not", "found", "“it", "is", "12”"]


def test_a_finding_is_told_by_its_verdict_and_one_without_by_its_kind() -> None:
    lines = shown_findings(
        build_observed("memory", "not_applicable", "skip"),
        build_observed("insult", "major"),
        build_observed("a sigh", ""),
    )
    assert [line.split() for line in lines] == [
        ["not", "applicable", "memory"],
        ["major", "insult"],
        ["criterion", "a", "sigh"],
    ]


def test_what_a_score_rests_on_besides_its_findings_follows_them() -> None:
    lines = shown_findings(build_observed("insult", "major"), other=(Evidence(text="hello", verified=True),))
    assert [line.split() for line in lines] == [["major", "insult"], ["before", "turn", "1", "“hello”"]]


def test_more_findings_than_fit_are_counted() -> None:
    assert (
        shown_findings(*(build_observed(str(i), "yes", "pass") for i in range(MAX_FINDINGS + 5)))[-1].strip()
        == "… and 5 more"
    )


def test_a_score_without_findings_has_no_lines() -> None:
    assert shown_findings() == []


def test_hostile_text_stays_on_its_line() -> None:
    assert len(shown_findings(build_observed("a\nmet  b\x1b[31m", "mi\nnor\x1b[31m"))) == 1
