"""What do a few conversations say of all? Everybody who gives a rate gives the estimate for all, and of how many.

A log has 30 short conversations, of which every third passes, and 10 long ones, which all pass. Twelve are judged, half
of them long, so that what passes of those is no picture of the log.
"""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
from rich.console import Console, RenderableType

from server.live import get, serving
from vivavoce.cli.main import main
from vivavoce.client import Client
from vivavoce.errors import UsageError
from vivavoce.features.clusters.finding import find_clusters
from vivavoce.features.compare.terminal import comparison
from vivavoce.features.groups.report import cells, group_conversations
from vivavoce.grading.scores import Population
from vivavoce.report.comparison.pairing import compare
from vivavoce.report.comparison.sides import write_baseline
from vivavoce.report.details import estimate_text, judged_text, sampled_lines
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.one_file import write_html
from vivavoce.report.json_file import write_json
from vivavoce.report.junit import write_junit
from vivavoce.report.markdown import write_markdown
from vivavoce.report.terminal import run_report
from vivavoce.report.verdict import explain_verdict, finding
from vivavoce.report.worst_samples import worst
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import GraderSummary, RunResult
from vivavoce.store.store import Store
from vivavoce.suites.experiment import open_regrading, run_suite

SUITE = """\
name: log
driver: replay
dataset: log.jsonl
graders: {said: {kind: function, function: contains}}
gate: {kind: simple, metric_key: said, aggregation: accuracy, op: gte, value: VALUE}
"""
JUDGED = "12 of 40 judged"


def row(number: int) -> dict[str, Any]:
    long = number >= 30
    said = "yes" if long or number % 3 == 0 else "no"
    talk = [{"role": "user", "content": f"Question {number}"}, {"role": "assistant", "content": said}]
    kind = {"kind": "<b>long</b>" if long else "short"}
    tags = ["even"] if number % 2 == 0 else []
    return {"id": f"c{number}", "messages": talk * (1 + long), "ground_truth": "yes", "metadata": kind, "tags": tags}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("log")
    (found / "log.jsonl").write_text("".join(json.dumps(row(number)) + "\n" for number in range(40)))
    for value in (20, 90):
        (found / f"from-{value}.yaml").write_text(SUITE.replace("VALUE", str(value)))
    return found


DRAWN = RunOptions(sample=12, sample_by=["metadata.kind"], weight_by="turns")


@pytest.fixture(scope="module")
def run(folder: Path) -> RunResult:
    return run_suite(folder / "from-90.yaml", DRAWN, store=str(folder / "kept.db"))


@pytest.fixture(scope="module")
def even(folder: Path, run: RunResult) -> RunResult:
    return run_suite(folder / "from-20.yaml", RunOptions(sample=12), store=run.place)


@pytest.fixture(scope="module")
def server(graded: GradedRun, even: RunResult) -> Iterator[str]:
    assert even.place == graded.store.place
    with serving(graded.store) as address:
        yield address


def printed(part: RenderableType) -> str:
    out = io.StringIO()
    Console(file=out, width=400).print(part)
    return out.getvalue()


def written(write: Callable[[GradedRun, io.StringIO], object], run: GradedRun) -> str:
    out = io.StringIO()
    write(run, out)
    return out.getvalue()


def figures(summary: GraderSummary) -> tuple[object, ...]:
    return (
        summary.population,
        summary.mean,
        summary.low,
        summary.high,
        summary.pass_rate,
        summary.pass_low,
        summary.pass_high,
    )


def said(run: RunResult) -> GraderSummary:
    return run.summary.grader("said")


def test_a_stratum_counts_as_much_as_it_has_conversations(run: RunResult) -> None:
    rates: dict[str, list[bool]] = {"short": [], "<b>long</b>": []}
    for outcome in run.outcomes():
        kind = json.loads(outcome.attempt.sample)["metadata"]["kind"]
        rates[kind].append(outcome.scores["said"].passed is True)
        assert outcome.attempt.drawn is not None
    short, long = (sum(rate) / len(rate) for rate in rates.values())
    assert [len(rate) for rate in rates.values()] == [9, 3]
    assert said(run).pass_rate == pytest.approx((30 * short + 10 * long) / 40)
    assert (long, said(run).population, said(run).scored) == (1.0, 40, 12)


def test_the_run_says_how_it_was_drawn(run: RunResult) -> None:
    sampling = run.run.sampling
    assert sampling is not None
    assert sampling == run.summary.sampling
    strata = [(stratum.name, stratum.size, stratum.drawn) for stratum in sampling.strata]
    assert strata == [("metadata.kind short", 30, 9), ("metadata.kind <b>long</b>", 10, 3)]
    assert (sampling.population, sampling.drawn_count, sampling.by) == (40, 12, ["metadata.kind"])


def test_every_report_says_it_in_the_same_words(graded: GradedRun, run: RunResult) -> None:
    text = estimate_text(said(run))
    assert text.endswith(f"of all conversations pass, estimated: {JUDGED}")
    lines = [*sampled_lines(run.summary)]
    shown = printed(run_report(run.summary, worst(graded.store, graded.grading), run.run.id))
    assert all(line in shown for line in lines)
    for write in (write_html, write_markdown):
        assert text in unescape(written(write, graded))
    suite = fromstring(written(write_junit, graded))
    assert text in {one.get("value") for one in suite.iter("property") if one.get("name") == "estimated.said"}
    assert JUDGED in finding(run.summary, graded.grading)
    assert JUDGED in run.finding
    assert "<b>long" not in written(write_html, graded)


def test_every_page_says_it(server: str, run: RunResult) -> None:
    text = estimate_text(said(run))
    assert text in unescape(get(f"{server}/runs/{run.run.id}").text)
    for page in ("/", "/trends?suite=log"):
        assert unescape(get(f"{server}{page}").text).count(JUDGED) >= 2, page


def test_the_data_of_every_way_has_the_same_figures(server: str, graded: GradedRun, run: RunResult) -> None:
    expected = figures(said(run))
    [stored] = json.loads(written(write_json, graded))["summary"]["graders"]
    assert figures(GraderSummary.model_validate(stored)) == expected
    with Client(server) as client:
        report = client.run(run.run.id).model_dump()
        [grader] = report["summary"]["graders"]
        assert figures(GraderSummary.model_validate(grader)) == expected
        heads = {one.id: one.headline for one in client.runs()}
        head = heads[run.run.id]
        assert head is not None
        assert (head.population, head.mean, head.low, head.high) == expected[:4]
        points = {point.run: point for point in client.trends("log").points}
        point = points[run.run.id]
        assert (point.population, point.mean, point.low, point.high) == expected[:4]
        assert {judged_text(one) for one in (head, point, said(run))} == {JUDGED}


def test_the_list_of_runs_says_it(run: RunResult, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["runs", "--store", run.place, "--json"])
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(JUDGED in one["finding"] for one in found)


def test_a_gate_decides_by_the_estimate(run: RunResult, even: RunResult, folder: Path) -> None:
    rate = said(run).pass_rate
    assert rate is not None
    assert (run.summary.verdict, f"it is {100 * rate:.4g}%" in explain_verdict(run.summary)[0]) == ("fail", True)
    assert even.summary.verdict == "pass"
    low = said(run).pass_low
    assert low is not None
    lower = (folder / "from-20.yaml").read_text().replace("value: 20", f"value: {100 * low:.4f}, on: lower")
    (folder / "lower.yaml").write_text(lower)
    decided = run_suite(folder / "lower.yaml", DRAWN, store=run.place)
    assert decided.summary.reasons[0].found == pytest.approx(100 * low)


def test_a_tag_is_a_part_of_the_population(run: RunResult) -> None:
    [tag] = run.summary.tags
    [grader] = tag.graders
    assert run.run.sampling is not None
    mine = [outcome for outcome in run.outcomes() if "even" in json.loads(outcome.attempt.sample).get("tags", [])]
    others = [outcome for outcome in run.outcomes() if outcome.attempt.key not in {inner.attempt.key for inner in mine}]
    drawn, outside = ([one.attempt.drawn for one in each if one.attempt.drawn] for each in (mine, others))
    expected = Population(run.run.sampling, drawn, outside=outside).mean(
        [one.scores["said"].value or 0 for one in mine]
    )
    assert expected is not None
    assert (grader.mean, grader.low, grader.high) == (expected.mean, expected.low, expected.high)
    assert grader.skipped == 0


def test_a_cluster_has_its_share_of_the_population(graded: GradedRun, run: RunResult) -> None:
    [cluster] = find_clusters(graded.store, graded.grading, embedder="words").report.clusters
    rate = said(run)
    assert rate.pass_rate is not None
    assert rate.pass_low is not None
    assert rate.pass_high is not None
    ends = (1 - rate.pass_rate, 1 - rate.pass_high, 1 - rate.pass_low)
    assert (cluster.share, cluster.low, cluster.high) == pytest.approx(ends)


def test_what_would_take_the_drawn_for_all_is_refused(graded: GradedRun, even: RunResult) -> None:
    why = "a weighted or stratified sample of conversations, so"
    other = graded.store.grading(even.run.id)
    with pytest.raises(UsageError, match=why):
        compare(graded.store, other, graded.grading)
    with pytest.raises(UsageError, match=why):
        written(write_baseline, graded)
    found = group_conversations(graded.store, graded.grading, "tag")
    assert why in found.finding
    assert all("–" in cells(group) for group in found.groups)


def test_a_page_says_why_it_compares_nothing(server: str, run: RunResult, even: RunResult) -> None:
    answer = get(f"{server}/compare?a={run.run.id}&b={even.run.id}")
    assert answer.status < 500
    assert "weighted or stratified sample" in answer.text


def test_conversations_that_were_drawn_evenly_are_compared(graded: GradedRun, even: RunResult, folder: Path) -> None:
    whole = run_suite(folder / "from-20.yaml", store=even.place)
    both = compare(graded.store, graded.store.grading(even.run.id), whole.grading)
    assert both.targets[0].graders[0].n == 12
    assert JUDGED in judged_text(both.targets[0].graders[0].a)
    assert "judged 12 of 40 conversations, drawn at random" in printed(comparison(both))


def test_a_run_that_was_stopped_says_that_the_rest_may_differ(run: RunResult) -> None:
    stopped = run.summary.model_copy(update={"attempts": 5})
    *_, last = sampled_lines(stopped)
    assert last == "5 of the 12 drawn are judged, from the beginning of the file; the rest may differ"
    assert "half the width" in [*sampled_lines(run.summary)][-1]


def test_another_set_of_scores_is_an_estimate_too(run: RunResult) -> None:
    with Store.open(run.place, create=False) as store:
        regraded = asyncio.run(open_regrading(run.run.id, store=store).execute())
    assert figures(regraded.summary.grader("said")) == figures(said(run))


def test_a_run_of_all_says_nothing_of_it(folder: Path) -> None:
    whole = run_suite(folder / "from-20.yaml", store=str(folder / "whole.db"))
    assert [*sampled_lines(whole.summary)] == []
    assert (estimate_text(said(whole)), judged_text(said(whole)), "judged" in whole.finding) == ("", "", False)
