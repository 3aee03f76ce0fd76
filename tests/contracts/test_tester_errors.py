"""What would a tester without faults have found? Everybody who gives a rate gives it net of the tester, with bounds.

One run has two conversations that pass, one that fails, two that the tester spoiled, and one that its judge could not
score: that one is nobody's spoiling.
"""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable, Iterator
from html import unescape
from xml.etree.ElementTree import fromstring

import pytest
from rich.console import Console, RenderableType

from report.cases import BROKEN_JUDGE, keep, outcome
from server.live import get, serving
from vivavoce.client import Client
from vivavoce.features.compare.markdown import markdown_comparison
from vivavoce.features.compare.terminal import comparison
from vivavoce.features.groups.report import cells, group_conversations
from vivavoce.grading.gates import SimpleGate, Threshold
from vivavoce.grading.scores import ErrorLimit
from vivavoce.records.score import TESTER_ERROR, Failure, failed
from vivavoce.report.comparison.pairing import compare
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.one_file import write_html
from vivavoce.report.json_file import write_json
from vivavoce.report.junit import write_junit
from vivavoce.report.markdown import write_markdown
from vivavoce.report.terminal import run_report
from vivavoce.report.verdict import Spoiled, finding, reason_text
from vivavoce.report.worst_samples import worst
from vivavoce.run.summary import GraderSummary, Summary, summarise
from vivavoce.run.tallies import tally
from vivavoce.run.verdict import Rules
from vivavoce.store.store import Store

SPOILED = Failure(blame="tester", kind=TESTER_ERROR, message="it gave its facts away")
BROKE = Failure(blame="tester", kind="format", message="its model answered no JSON")
NET = "66.7% pass net of 2 tester errors; 40.0% if all count as failed (raw), 80.0% if all count as passed"
OUTCOMES = [
    *(outcome(name, {"exact": value}) for name, value in (("a", 1.0), ("b", 1.0), ("c", 0.0))),
    *(outcome(name, {"exact": failed(why, name="exact")}) for name, why in (("d", SPOILED), ("e", BROKE))),
    outcome("f", {"exact": failed(BROKEN_JUDGE, name="exact")}),
]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GradedRun]:
    with Store.open(str(tmp_path_factory.mktemp("kept") / "kept.db")) as store:
        asyncio.run(keep(store, OUTCOMES, "run-1"))
        yield asyncio.run(keep(store, OUTCOMES, "run-2"))


@pytest.fixture(scope="module")
def server(kept: GradedRun) -> Iterator[str]:
    with serving(kept.store) as address:
        yield address


def printed(part: RenderableType) -> str:
    out = io.StringIO()
    Console(file=out, width=300).print(part)
    return out.getvalue()


def written(write: Callable[[GradedRun, io.StringIO], object], run: GradedRun) -> str:
    out = io.StringIO()
    write(run, out)
    return out.getvalue()


def summary_of(run: GradedRun) -> Summary:
    assert run.grading.summary is not None
    return Summary.model_validate(run.grading.summary)


def rates(one: Spoiled) -> tuple[object, ...]:
    shares = (one.pass_rate, one.raw_pass_rate, one.highest_pass_rate)
    return one.tester_errors, *(share and round(share, 3) for share in shares)


RATES = (2, 0.667, 0.4, 0.8)


def test_the_summary_tells_the_tester_from_the_judge(kept: GradedRun) -> None:
    summary = summary_of(kept)
    [grader] = summary.graders
    assert rates(grader) == RATES
    assert (grader.errors, grader.scored, summary.tester_error_attempts) == (3, 3, 2)


def test_every_report_says_it_in_the_same_words(kept: GradedRun) -> None:
    summary = summary_of(kept)
    both = compare(kept.store, kept.store.grading("run-1"), kept.grading)
    files = {"html": write_html, "markdown": write_markdown}
    assert NET in printed(run_report(summary, worst(kept.store, kept.grading), "run-2"))
    for write in files.values():
        assert NET in unescape(written(write, kept))
    suite = fromstring(written(write_junit, kept))
    assert {one.get("name"): one.get("value") for one in suite.iter("property")}["net.exact"] == NET
    assert f"a, exact: {NET}" in printed(comparison(both))
    assert f"b, exact: {NET}" in printed(comparison(both))
    assert f"after, exact: {NET}" in markdown_comparison(both)
    assert "(2 of the tester)" in finding(summary, kept.grading)


def test_every_page_says_it_in_the_same_words(server: str) -> None:
    for page in ("/", "/runs/run-1", "/compare?a=run-1&b=run-2", "/trends?suite=support"):
        assert NET in unescape(get(f"{server}{page}").text), page


def test_the_data_of_every_way_has_the_same_figures(kept: GradedRun, server: str) -> None:
    [stored] = json.loads(written(write_json, kept))["summary"]["graders"]
    assert rates(GraderSummary.model_validate(stored)) == RATES
    with Client(server) as client:
        report = client.run("run-1")
        [grader] = [GraderSummary.model_validate(one) for one in report.model_dump()["summary"]["graders"]]
        assert rates(grader) == RATES
        assert [rates(one.headline) for one in client.runs() if one.headline] == [RATES, RATES]
        [one] = client.compare("run-1", "run-2").targets[0].graders
        assert (rates(one.a), rates(one.b)) == (RATES, RATES)
        assert [rates(point) for point in client.trends("support").points] == [RATES, RATES]


@pytest.mark.parametrize("grader", [None, "exact"])
def test_a_group_has_the_same_figures(kept: GradedRun, grader: str | None) -> None:
    [group] = group_conversations(kept.store, kept.grading, "target", grader=grader).groups
    assert rates(group) == RATES
    assert "3, 2 of the tester" in cells(group)


@pytest.mark.parametrize(
    ("bar", "limit", "verdict", "why"),
    [
        (40.0, None, "inconclusive", "3 errors (2 of the tester) could change the result"),
        (30.0, None, "pass", "it is 66.67%"),
        (90.0, None, "fail", "it is 66.67%"),
        (50.0, "40%", "pass", "it is 66.67%"),
        (60.0, "2", "inconclusive", "1 error could change the result"),
        (50.0, "20%", "inconclusive", "tester errors in 2 of 6 conversations; allowed: 20%"),
        (50.0, "0", "inconclusive", "tester errors in 2 of 6 conversations; allowed: 0"),
    ],
)
def test_a_gate_passes_where_even_the_bounds_do_or_net_of_what_it_allows_the_tester(
    kept: GradedRun, bar: float, limit: str | None, verdict: str, why: str
) -> None:
    gate = SimpleGate(
        "exact", Threshold("accuracy", "gte", bar), spoilable=None if limit is None else ErrorLimit(limit)
    )
    tallies = tally(kept.store.scores(kept.grading.id))
    found = summarise(tallies, attempts=6, failed=0, rules=Rules(gate=gate), errors=3)
    assert found.verdict == verdict
    assert any(why in reason_text(reason) for reason in found.reasons)


def test_errors_that_a_run_allows_do_not_allow_the_tester_more_than_its_gate_does(kept: GradedRun) -> None:
    tallies = tally(kept.store.scores(kept.grading.id))
    gate = SimpleGate("exact", Threshold("accuracy", "gte", 50.0), spoilable=ErrorLimit("1"))
    found = summarise(tallies, attempts=6, failed=0, rules=Rules(gate=gate, limit=ErrorLimit("50%")), errors=3)
    assert found.verdict == "inconclusive"


def test_too_many_errors_say_how_many_are_of_the_tester(kept: GradedRun) -> None:
    tallies = tally(kept.store.scores(kept.grading.id))
    found = summarise(tallies, attempts=6, failed=0, errors=3)
    assert [reason_text(reason) for reason in found.reasons] == [
        "3 conversations ended with an error or a missing score, 2 of them because of the tester; allowed: 0"
    ]
