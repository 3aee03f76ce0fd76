"""What does a metric without a best score and without a threshold say? Every reader tells its number, and no verdict.

Answers have 1, 2 and 6 words in a first run, and 2, 3 and 7 in a second one.
"""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
from rich.console import Console

from command_line import run_viva
from server.live import get, serving
from vivavoce import evaluate
from vivavoce.cli.options import InParts
from vivavoce.errors import UsageError
from vivavoce.features.compare.markdown import markdown_comparison
from vivavoce.features.compare.plots import several_finding
from vivavoce.features.compare.several import compare_several, markdown_several, several
from vivavoce.features.compare.terminal import comparison
from vivavoce.features.parts.command import run_in_parts
from vivavoce.features.publish.scores import figures
from vivavoce.features.trends.trends import trend
from vivavoce.metrics.evaluation import evaluate_conversation
from vivavoce.records.run import Grading
from vivavoce.records.score import Score
from vivavoce.report.comparison.comparison import Comparison
from vivavoce.report.comparison.pairing import compare
from vivavoce.report.comparison.regressions import Tolerance, add_ruling
from vivavoce.report.comparison.sides import read_baseline, write_baseline
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.json_file import write_json, write_jsonl
from vivavoce.report.junit import write_junit
from vivavoce.report.letta_files import sample_result
from vivavoce.report.markdown import write_markdown
from vivavoce.report.matrix import cell_text, matrix_of
from vivavoce.report.tables import write_csv
from vivavoce.report.terminal import run_report
from vivavoce.report.verdict import finding, headline, listed_finding
from vivavoce.report.worst_samples import worst
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import GraderSummary, RunResult
from vivavoce.store.store import Store
from vivavoce.suites.experiment import run_suite
from vivavoce.suites.load import load_suite

SUITE = """\
name: words
driver: replay
dataset: {dataset}
graders: {{words: {{kind: metric, metric: response_length}}}}
"""
NUMBERS = {"a": 1.0, "b": 2.0, "c": 6.0}
MEAN, LOWEST, HIGHEST = 3.0, 1.0, 6.0


def _talk(words: int, name: str = "you") -> list[dict[str, str]]:
    answer = " ".join(["Hello"] * words)
    return [{"role": "user", "content": f"Who is {name}?"}, {"role": "assistant", "content": answer}]


def _rows(more: int = 0) -> list[dict[str, Any]]:
    return [{"id": name, "messages": _talk(int(words) + more, name)} for name, words in NUMBERS.items()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("measured")
    for name, more in (("talks", 0), ("later", 1)):
        (found / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in _rows(more)))
    return found


def _judged(folder: Path, name: str) -> RunResult:
    return evaluate(folder / f"{name}.jsonl", ["response_length"], name="words", store=folder / "kept.db")


@pytest.fixture(scope="module")
def run(folder: Path) -> RunResult:
    return _judged(folder, "talks")


@pytest.fixture(scope="module")
def later(folder: Path, run: RunResult) -> RunResult:
    assert run.summary.attempts == 3
    return _judged(folder, "later")


@pytest.fixture(scope="module")
def both(run: RunResult, later: RunResult) -> Iterator[tuple[Store, Grading, Grading]]:
    with closing(Store.open(run.place, create=False)) as store:
        yield store, run.grading, later.grading


def _said(write: Callable[[GradedRun, Any], None], graded: GradedRun) -> str:
    out = io.StringIO()
    write(graded, out)
    return out.getvalue()


def _is_measured(score: Score, number: float) -> None:
    assert (score.state, score.raw, score.measured) == ("scored", number, number)
    assert (score.value, score.passed, score.failure) == (None, None, None)


def _shows(summary: GraderSummary) -> None:
    assert (summary.scored, summary.errors, summary.skipped) == (3, 0, 0)
    assert (summary.mean, summary.pass_rate, summary.raw_pass_rate, summary.pass_at) == (None, None, None, {})
    assert summary.measured is not None
    found = summary.measured
    assert (found.n, found.mean, found.min, found.max) == (3, MEAN, LOWEST, HIGHEST)


def test_the_run_measures_and_decides_nothing(run: RunResult, graded: GradedRun) -> None:
    assert (run.summary.verdict, run.summary.reasons, run.summary.error_attempts) == (None, [], 0)
    _shows(run.summary.grader("response_length"))
    for outcome in graded.outcomes():
        _is_measured(outcome.scores["response_length"], NUMBERS[outcome.attempt.key.sample_id])
    rows = list(graded.store.scores(graded.grading.id))
    assert [(row.value, row.passed, row.measured) for row in rows] == [
        (None, None, number) for number in NUMBERS.values()
    ]


def test_lists_and_filters_know_it_as_measured(graded: GradedRun) -> None:
    store, grading = graded.store, graded.grading.id
    entries = store.browse.samples(grading, sort="worst").samples
    assert {entry.sample_id: entry.scores[0].measured for entry in entries} == NUMBERS
    assert {(entry.status, entry.scores[0].value, entry.scores[0].passed) for entry in entries} == {
        ("measured", None, None)
    }
    assert store.browse.states(grading) == {"measured": 3}
    counted = {word: store.browse.count_samples(grading, f"state:{word}") for word in ("pass", "fail", "skip", "error")}
    assert counted == dict.fromkeys(("pass", "fail", "skip", "error"), 0)
    assert store.browse.count_samples(grading, "state:measured") == 3
    assert {score.measured for score in store.browse.scores(graded.grading).scores} == set(NUMBERS.values())
    assert len(store.search("Hello state:measured")) == 3
    assert store.search("Hello state:pass") == []


def test_a_run_is_listed_and_told_by_its_mean(graded: GradedRun, run: RunResult) -> None:
    (entry,) = [one for one in graded.store.browse.runs().runs if one.id == run.run.id]
    assert entry.headline is not None
    assert entry.headline.measured is not None
    assert (entry.headline.mean, entry.headline.measured.mean) == (None, MEAN)
    assert listed_finding(entry) == finding(run.summary, run.grading) == "no gate: response_length 3"
    head = headline(run.summary, run.grading)
    assert head is not None
    assert head.name == "response_length"


def test_nothing_is_among_the_worst_or_the_failures(graded: GradedRun) -> None:
    assert worst(graded.store, graded.grading).samples == []
    assert graded.store.failed_samples(graded.grading.id) == []
    matrix = matrix_of(graded, 10)
    assert [cell_text(row.cells["response_length"]) for row in matrix.rows] == ["1", "2", "6"]
    assert not any(row.cells["response_length"].bad for row in matrix.rows)


def test_the_terminal_and_markdown_show_mean_and_range(graded: GradedRun, run: RunResult) -> None:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(run_report(run.summary, worst(graded.store, graded.grading), run.run.id))
    for text in (capture.get(), _said(write_markdown, graded)):
        assert "response_length measures: mean 3, from 1 to 6, over 3 conversations" in text
        assert "0%" not in text
        assert "100" not in text


def test_exports_have_the_number(graded: GradedRun) -> None:
    data = json.loads(_said(write_json, graded))
    assert data["summary"]["graders"][0]["measured"] == {"n": 3, "mean": MEAN, "min": LOWEST, "max": HIGHEST}
    assert [one["scores"]["response_length"]["raw"] for one in data["samples"]] == [*NUMBERS.values()]
    lines = [json.loads(line) for line in _said(write_jsonl, graded).splitlines()]
    assert [line["scores"]["response_length"]["raw"] for line in lines] == [*NUMBERS.values()]
    cells = list(csv.DictReader(io.StringIO(_said(write_csv, graded))))
    assert [(cell["state"], cell["score"], cell["passed"], cell["measured"]) for cell in cells] == [
        ("scored", "", "", str(number)) for number in NUMBERS.values()
    ]
    named = figures(graded.summary())
    assert named["response_length/measured/mean"] == MEAN
    assert "response_length/mean" not in named


def test_a_ci_server_counts_it_neither_as_passed_nor_as_failed(graded: GradedRun) -> None:
    document = fromstring(_said(write_junit, graded))
    assert (document.get("failures"), document.get("errors"), document.get("skipped")) == ("0", "0", "3")
    cases = document.findall(".//testcase")
    assert [case.find("properties/property[@name='measured']").get("value") for case in cases] == ["1.0", "2.0", "6.0"]  # pyright: ignore[reportOptionalMemberAccess]


def test_letta_has_no_score_of_it(graded: GradedRun) -> None:
    for outcome in graded.outcomes():
        line = sample_result(outcome)
        assert line["grades"] == {}
        assert line["unscored"]["response_length"]["metadata"]["score"] == NUMBERS[outcome.attempt.key.sample_id]


def test_tables_have_a_column_of_their_own_for_it(run: RunResult) -> None:
    samples = run.to_arrow("samples").to_pylist()
    assert [row["measured.response_length"] for row in samples] == [*NUMBERS.values()]
    assert not {"score.response_length", "passed.response_length"} & samples[0].keys()
    assert [row["measured"] for row in run.to_arrow("scores").to_pylist()] == [*NUMBERS.values()]


def test_a_comparison_says_how_far_the_means_are_apart(both: tuple[Store, Grading, Grading], tmp_path: Path) -> None:
    store, before, after = both
    path = tmp_path / "base.json"
    with path.open("w") as file:
        write_baseline(GradedRun(store, store.run(before.run_id), before), file)
    for side in (before, read_baseline(path).side):
        _compares(compare(store, side, after))


def _compares(found: Comparison) -> None:
    ((one,),) = [target.graders for target in found.targets]
    assert one.measured is not None
    assert (one.measured.n, one.measured.mean_a, one.measured.mean_b, one.measured.difference) == (3, 3.0, 4.0, 1.0)
    assert (one.n, one.reading, one.difference, one.worsened, one.improved) == (0, "measured", None, [], [])
    assert (one.a.scored, one.a.skipped, one.b.errors) == (3, 0, 0)
    console = Console(width=200)
    with console.capture() as capture:
        console.print(comparison(found))
    for text in (capture.get(), markdown_comparison(found)):
        assert "response_length measures: mean 3 before, 4 after (+1, n 3)" in text
    ruling = add_ruling(found, Tolerance()).ruling
    assert ruling is not None
    assert ruling.verdict == "inconclusive"
    assert "no grader has a threshold" in ruling.reasons[0].text


def test_several_comparisons_say_so_for_each_run(both: tuple[Store, Grading, Grading]) -> None:
    store, before, after = both
    found = compare_several(before, [after], "words", lambda one, other, level: compare(store, one, other, level=level))
    console = Console(width=200)
    with console.capture() as capture:
        console.print(several(found))
    for text in (capture.get(), markdown_several(found)):
        assert "response_length measures: mean 3 before, 4 after (+1, n 3)" in text
        assert "only measured" in text
    assert several_finding(found) == "B has no threshold; measured on 3 samples."


def test_a_trend_has_no_mean_of_it(both: tuple[Store, Grading, Grading]) -> None:
    found = trend(both[0], "words")
    assert [(point.mean, point.why_unscored) for point in found.points] == [(None, "measured 3"), (None, "measured 4")]


def test_pages_and_the_interface_show_the_number(both: tuple[Store, Grading, Grading]) -> None:
    store, before, after = both
    run = before.run_id
    with serving(store) as url:
        pages = ["/", f"/runs/{run}", f"/runs/{run}/samples/c", "/trends?suite=words"]
        pages.append(f"/compare?a={run}&b={after.run_id}")
        texts = {path: get(f"{url}{path}") for path in pages}
        assert {path: reply.status for path, reply in texts.items()} == dict.fromkeys(pages, 200)
        samples = get(f"{url}/api/v1/runs/{run}/samples").json()["samples"]
    assert {sample["sample_id"]: sample["scores"][0]["measured"] for sample in samples} == NUMBERS
    listed, one_run, one_sample, trends, compared = (reply.text for reply in texts.values())
    assert "no gate: response_length 3" in listed
    assert "1 to 6" in one_run
    assert "response_length measures: mean 3, from 1 to 6" in one_run
    assert "Measured" in one_sample
    assert "measured 4" in trends
    assert "mean 3 before, 4 after (+1, n 3)" in compared
    assert "Skipped" not in one_sample


def test_a_notebook_shows_the_mean(run: RunResult) -> None:
    html = run._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert "1 to 6" in html


def test_python_measures_without_a_threshold(tmp_path: Path) -> None:
    found = evaluate(_rows(), ["response_length"], store=tmp_path / "own.db")
    assert found.summary.verdict is None
    _shows(found.summary.grader("response_length"))
    score = evaluate_conversation(_talk(2), ["response_length"])["response_length"]
    assert (score.measured, score.value, score.passed) == (2.0, None, None)


def test_parts_that_are_merged_keep_the_numbers(folder: Path, tmp_path: Path) -> None:
    suite = tmp_path / "turns.viva.yaml"
    suite.write_text(SUITE.format(dataset=folder / "talks.jsonl"))
    place = str(tmp_path / "parts.db")
    assert run_in_parts(load_suite(suite), InParts(str(tmp_path / "parts")), RunOptions(), place, quiet=True) == 0
    with Store.open(place, create=False) as store:
        (entry,) = store.runs()
        graded = GradedRun(store, entry, store.grading(entry.id))
        _shows(graded.summary().grader("words"))


DECIDING = {
    "gate.metric_key": "gate: {kind: simple, metric_key: turns, value: 0.5}",
    "gate.weights.turns": "gate: {kind: weighted_average, weights: {turns: 1}, value: 0.5}",
    "gate.conditions.0.metric_key": (
        "gate: {kind: logical, operator: and, conditions: [{kind: simple, metric_key: turns, value: 0.5}]}"
    ),
    "reward.metric_key": "reward: {kind: metric, metric_key: turns}",
    "reward.weights.turns": "reward: {kind: weighted, weights: {turns: 1}}",
    "reward.function": "reward: {kind: custom, function: 'own.py:total'}",
    "agreement.0.predictor": "agreement: [{predictor: turns, truth: said}]",
}


@pytest.mark.parametrize("place", DECIDING)
def test_what_decides_needs_a_threshold(place: str, tmp_path: Path) -> None:
    (tmp_path / "talks.jsonl").write_text(json.dumps(_rows()[0]) + "\n")
    (tmp_path / "own.py").write_text("def total(ctx): return 1\n")
    graders = "graders: {turns: {kind: metric, metric: response_length%s}, said: {kind: metric, metric: refusal}}"
    text = f"name: s\ndriver: replay\ndataset: talks.jsonl\n{DECIDING[place]}\n"
    suite = tmp_path / "s.yaml"
    suite.write_text(text + graders % "")
    with pytest.raises(UsageError, match="turns has no highest score and needs a threshold") as caught:
        run_suite(suite, store=tmp_path / "own.db")
    assert place in str(caught.value)
    suite.write_text(text + graders % ", threshold: 1")
    assert run_suite(suite, store=tmp_path / "own.db").summary.attempts == 1


ASSERT = """
from vivavoce.testing import viva_assert
viva_assert([{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Hello!"}], ["response_length"])
"""

ASSERT_RUN = """
from vivavoce import evaluate
from vivavoce.testing import viva_assert
talk = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Hello!"}]
viva_assert(evaluate([{"id": "a", "messages": talk}], ["turn_count"]))
"""


def test_an_assertion_needs_a_threshold(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", ASSERT], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "UsageError: response_length has no highest score and needs a threshold" in done.stderr


def test_a_run_that_only_measures_asserts_nothing(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", ASSERT_RUN], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "SuiteFault: nothing was asserted: no grader decides what passes" in done.stderr


def test_pytest_skips_what_is_only_measured(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "words.viva.yaml").write_text(SUITE.format(dataset=folder / "talks.jsonl"))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", "words.viva.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "3 skipped" in done.stdout
    assert "only measured: words; a threshold decides what passes" in done.stdout


def test_the_command_measures_and_succeeds(folder: Path, tmp_path: Path) -> None:
    place = f"--store={tmp_path / 'own.db'}"
    judged = run_viva("judge", str(folder / "talks.jsonl"), "--metrics", "response_length,turn_count", place)
    assert judged.returncode == 0, judged.stderr
    assert "response_length measures: mean 3, from 1 to 6" in judged.stdout
    shown = run_viva("show", "latest", "c", place)
    assert "6  response_length" in shown.stdout
