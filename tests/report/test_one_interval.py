"""One run, and every reader of the interval of its rate: all have the same numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from cli.conftest import Viva
from cli.conftest import viva as viva
from server.live import get, serving
from vivavoce.features.groups.counting import count_groups
from vivavoce.features.trends.trends import trend
from vivavoce.grading.gates import Threshold
from vivavoce.report.export import export
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.matrix import figures, matrix_of
from vivavoce.run.tallies import tally
from vivavoce.stats.intervals import mean_interval
from vivavoce.store.store import Store
from vivavoce.suites.experiment import run_suite

BOT = """\
counts = {}


def reply(message: str) -> str:
    counts[message] = counts.get(message, 0) + 1
    return "no" if message == "s1" or (message == "s2" and counts[message] == 2) else "yes"
"""
SUITE = """\
name: talks
dataset: rows.jsonl
target: {kind: function, function: "bot.py:reply", name: bot}
trials: 3
graders: {right: {kind: function, function: exact_match}}
gate: {metric_key: right, aggregation: accuracy, value: 50, on: lower}
"""
SAMPLES = 8


@pytest.fixture
def graded_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GradedRun]:
    monkeypatch.chdir(tmp_path)
    Path("bot.py").write_text(BOT)
    Path("suite.yaml").write_text(SUITE)
    rows = ({"id": f"s{n}", "input": f"s{n}", "ground_truth": "yes", "tags": ["all"]} for n in range(SAMPLES))
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run_suite("suite.yaml")
    with Store.open(".vivavoce/vivavoce.db", create=False) as store:
        run = store.run("latest")
        yield GradedRun(store, run, store.grading(run.id))


def test_every_reader_has_the_same_interval(graded_run: GradedRun, viva: Viva) -> None:
    store, grading = graded_run.store, graded_run.grading
    (scores,) = tally(store.scores(grading.id)).values()
    expected = mean_interval(scores.values, scores.samples)
    assert expected is not None
    assert (expected.n, expected.clusters) == (3 * SAMPLES, SAMPLES)
    ends = (expected.low, expected.high)
    assert None not in ends

    summary = graded_run.summary()
    own = summary.grader("right")
    assert (own.low, own.high) == (own.pass_low, own.pass_high) == ends
    (tag,) = summary.tags
    assert (tag.graders[0].low, tag.graders[0].high) == ends

    gate = Threshold("accuracy", "gte", 50.0, on="lower")
    lower = gate.aggregate(scores.scores)
    assert lower is not None
    assert float(lower) == pytest.approx(100 * (expected.low or 0))
    assert summary.reasons[0].found == pytest.approx(float(lower))

    (group,) = count_groups(store, grading.id, "target")
    assert (group.low, group.high) == ends
    (group,) = count_groups(store, grading.id, "tag", grader="right")
    assert (group.low, group.high) == ends

    (point,) = trend(store, "talks").points
    assert (point.low, point.high) == ends
    matrix = matrix_of(graded_run, 5)
    assert (matrix.feet["right"].summary.low, matrix.feet["right"].summary.high) == ends
    text = f"{expected.low:.2f} … {expected.high:.2f}"
    assert dict(figures(matrix, ["right"]))["95%"] == [text]
    (entry,) = store.browse.runs().runs
    assert entry.headline is not None
    assert (entry.headline.low, entry.headline.high) == ends

    out = StringIO()
    export(store, graded_run.run, grading, "json", out)
    (exported,) = json.loads(out.getvalue())["summary"]["graders"]
    assert (exported["low"], exported["high"]) == ends
    for form in ("markdown", "html"):
        out = StringIO()
        export(store, graded_run.run, grading, form, out)
        assert f"{expected.low:.3f}" in out.getvalue() or f"{expected.low:.2f}" in out.getvalue(), form

    printed = viva("show", "latest").stdout
    assert f"{expected.low:.3f} … {expected.high:.3f}" in printed
    with serving(store) as url:
        document = json.loads(get(f"{url}/api/v1/runs/{graded_run.run.id}").text)
        assert ends in [(grader["low"], grader["high"]) for grader in document["summary"]["graders"]]
