"""Did it pass? Everybody who says so gives the answer that the score has held since it was made.

One suite has graders of every kind: with and without a threshold, in both directions, without a highest score, turn by
turn, with an error and with nothing to say; a reward with a threshold; two trials; a gate with a bar of its own.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest

from server.live import get, serving
from vivavoce.records.run import AttemptKey, Outcome
from vivavoce.records.score import Score
from vivavoce.report.comparison.pairing import compare
from vivavoce.report.github import write_github
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.conversation import conversation
from vivavoce.report.html.samples import line
from vivavoce.report.html.score_notes import ScoreNote
from vivavoce.report.json_file import write_jsonl
from vivavoce.report.junit import write_junit
from vivavoce.report.letta_files import sample_result
from vivavoce.report.markdown import write_markdown
from vivavoce.report.tables import write_csv
from vivavoce.report.worst_samples import worst
from vivavoce.run.summary import GraderSummary, RunResult, Summary
from vivavoce.store.runs.rows import SampleStatus, status_of, worst_of
from vivavoce.suites.experiment import run_suite

SUITE = """\
name: verdicts
dataset:
  rows:
    - {id: good, input: "Paris", ground_truth: Paris, metadata: {share: 1.0, mark: 0.95}}
    - {id: close, input: "Pariss", ground_truth: Paris, metadata: {share: 0.5, mark: 0.95}}
    - {id: far, input: "Rome and Rome and Rome", ground_truth: Paris, metadata: {share: 0.0, mark: 0.2}}
    - {id: turns, input: [one, two, three], ground_truth: [one, two, four]}
    - {id: broken, input: crash, ground_truth: x}
    - {id: untrue, input: [hello, crash], ground_truth: [hello, null]}
trials: 2
target: {kind: function, function: "bot.py:reply"}
graders:
  exact: {kind: function, function: exact_match}
  likeness: {kind: function, function: fuzzy_ratio, threshold: 0.7}
  strict: {kind: function, function: fuzzy_ratio, threshold: 0.999}
  recorded: {kind: function, function: recorded, config: {path: metadata.mark}, threshold: 0.9}
  own: {kind: function, function: "graders.py:own"}
  lenient: {kind: function, function: "graders.py:own", threshold: 0.25}
  breaks: {kind: function, function: "graders.py:breaks"}
  words: {kind: metric, metric: response_length, config: {unit: words}, threshold: 3}
  turns: {kind: metric, metric: turn_count, threshold: 2}
  repeats: {kind: metric, metric: repetition, config: {speaker: user}, threshold: 0.5}
  score: {kind: metric, metric: "graders.py:Own"}
reward: {kind: weighted, weights: {likeness: 1, strict: 1}, threshold: 0.8}
gate:
  kind: logical
  operator: and
  conditions:
    - {metric_key: likeness, aggregation: accuracy, value: 40}
    - {metric_key: strict, aggregation: accuracy, value: 40, pass_threshold: 0.1}
"""

BOT = """\
calls = {}


def reply(messages):
    said = messages[-1]["content"]
    if said == "crash":
        raise RuntimeError("the bot broke")
    calls[said] = calls.get(said, 0) + 1
    return said + "!" if said == "Pariss" and calls[said] == 2 else said
"""

GRADERS = """\
from vivavoce import GradeResult
from vivavoce.metrics import BaseMultiTurnMetric, MetricConfig, MetricResult


def own(sample, submission):
    share = (sample.metadata or {}).get("share")
    return 0.75 if share is None else GradeResult(score=share, passed=share >= 0.5)


def breaks(sample, submission):
    if sample.id == "close":
        raise ValueError("no idea")
    return True


class Own(BaseMultiTurnMetric):
    def __init__(self, **options):
        super().__init__(MetricConfig(name="score", minimum=0, maximum=10, threshold=5))

    def evaluate_conversation(self, evaluation_input):
        said = evaluation_input.messages[-1].text
        return MetricResult(score=float(min(len(said), 10)), details={"reasoning": said})
"""

Answers = dict[tuple[str, int, str], bool | None]
"""Whether a score passes, by sample, trial and grader; None where there is no score."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    folder = tmp_path_factory.mktemp("verdicts")
    for name, text in (("suite.yaml", SUITE), ("bot.py", BOT), ("graders.py", GRADERS)):
        (folder / name).write_text(text)
    return run_suite(folder / "suite.yaml", store=str(folder / "kept.db"))


@pytest.fixture(scope="module")
def truth(run: RunResult) -> Answers:
    """What the scores themselves say, as Python reads them."""
    return {(key.sample_id, key.trial, name): score.passed for key, name, score in _scores(run)}


def _scores(run: RunResult) -> Iterator[tuple[AttemptKey, str, Score]]:
    for outcome in run.outcomes():
        for name, score in _named(outcome):
            yield outcome.attempt.key, name, score


def _named(outcome: Outcome) -> list[tuple[str, Score]]:
    rewards = [] if outcome.reward is None else [("reward", outcome.reward)]
    return [*outcome.scores.items(), *rewards]


def _text(write: Callable[[GradedRun, Any], None], graded: GradedRun) -> str:
    out = io.StringIO()
    write(graded, out)
    return out.getvalue()


def test_there_is_a_score_of_every_kind(run: RunResult, truth: Answers) -> None:
    assert {score.state for *_, score in _scores(run)} == {"scored", "error", "skipped"}
    assert set(truth.values()) == {True, False, None}
    values = {(key.sample_id, name): score.value for key, name, score in _scores(run)}
    passed = {(sample, name): found for (sample, _, name), found in truth.items()}
    assert 0.7 < (values["close", "likeness"] or 0) < 1
    assert (passed["close", "likeness"], passed["close", "strict"], passed["close", "exact"]) == (True, False, False)
    assert (values["close", "own"], passed["close", "own"]) == (0.5, True)
    assert (values["turns", "own"], passed["turns", "own"], passed["turns", "lenient"]) == (0.75, False, True)
    assert (passed["far", "words"], passed["good", "words"]) == (False, True)
    assert (passed["far", "score"], passed["turns", "turns"]) == (True, False)


def test_a_conversation_that_ended_in_an_error_passes_nothing(run: RunResult, truth: Answers) -> None:
    assert {passed for (sample, *_), passed in truth.items() if sample in ("broken", "untrue")} == {None}


def test_the_summary_counts_them(run: RunResult, truth: Answers) -> None:
    _check_rates({grader.name: grader for grader in run.summary.graders}, truth)


def test_a_summary_that_is_counted_anew_counts_them(graded: GradedRun, truth: Answers) -> None:
    running = GradedRun(graded.store, graded.run.model_copy(update={"status": "running"}), graded.grading)
    _check_rates({grader.name: grader for grader in running.summary().graders}, truth)


def test_a_gate_counts_them_unless_it_has_a_bar_of_its_own(run: RunResult, truth: Answers) -> None:
    found = {next(iter(reason.graders)): reason.found for reason in run.summary.reasons}
    rate = next(grader.pass_rate for grader in run.summary.graders if grader.name == "likeness")
    values = [score.value for _, name, score in _scores(run) if name == "strict" and score.value is not None]
    assert found["likeness"] == pytest.approx(100 * (rate or 0))
    assert found["strict"] == pytest.approx(100 * sum(value >= 0.1 for value in values) / len(values))


def test_lists_say_the_same(graded: GradedRun, truth: Answers) -> None:
    answers: Answers = {}
    for entry in graded.store.browse.samples(graded.grading.id).samples:
        answers |= {(entry.sample_id, entry.trial, score.name): score.passed for score in entry.scores}
        states: list[SampleStatus] = [status_of(score.state, score.passed) for score in entry.scores]
        assert entry.status == ("error" if entry.failure else worst_of(states))
        assert line(entry, "", ()).state == entry.status
    assert answers == truth


def test_the_list_of_scores_says_the_same(graded: GradedRun, truth: Answers) -> None:
    page = graded.store.browse.scores(graded.grading, limit=500)
    assert {
        (score.sample_id, score.trial, score.name): score.passed for score in page.scores if score.turn is None
    } == truth


def test_the_worst_are_those_that_did_not_pass(graded: GradedRun, truth: Answers) -> None:
    shown = {
        (one.key.sample_id, one.key.trial) for one in worst(graded.store, graded.grading, 100).samples if one.score
    }
    errors = {row.key for row in graded.store.errors(graded.grading.id)}
    lost = {
        (sample, trial)
        for (sample, trial, _), passed in truth.items()
        if passed is False and all((key.sample_id, key.trial) != (sample, trial) for key in errors)
    }
    assert shown == lost


def test_a_comparison_says_the_same(graded: GradedRun, truth: Answers) -> None:
    found = compare(graded.store, graded.grading, graded.grading).targets[0]
    trials: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for (sample, _, name), passed in truth.items():
        if passed is not None:
            trials[name, sample].append(passed)
    for grader in found.graders:
        assert grader.passed == sum(all(passed) for (name, _), passed in trials.items() if name == grader.name), (
            grader.name
        )


def test_junit_says_the_same(graded: GradedRun, truth: Answers) -> None:
    words = {"failure": False, "error": None, "skipped": None}
    answers: Answers = {}
    for case in fromstring(_text(write_junit, graded).encode()).iter("testcase"):
        known = {one.attrib["name"]: one.attrib["value"] for one in case.iter("property")}
        if known:
            result = next((child.tag for child in case if child.tag != "properties"), "")
            grader = case.attrib["name"].rpartition(" · ")[2]
            answers[known["sample_id"], _index(known["trial"], answers, known["sample_id"], grader), grader] = (
                words.get(result, True)
            )
    assert answers == truth


def _index(trial: str, answers: Answers, sample: str, grader: str) -> int:
    """Return which trial a test case is about, from 0, whichever way they are counted: they come in order."""
    del trial
    return sum((sample, index, grader) in answers for index in (0, 1))


def test_tables_say_the_same(graded: GradedRun, truth: Answers) -> None:
    rows = list(csv.DictReader(io.StringIO(_text(_csv, graded))))
    answers: Answers = {}
    for row in rows:
        if not row["turn"]:
            grader = row["grader"]
            trial = _index(row["trial"], answers, row["sample_id"], grader)
            answers[row["sample_id"], trial, grader] = {"": None, "True": True, "False": False}[row["passed"].title()]
    assert answers == truth


def _csv(graded: GradedRun, out: Any) -> None:
    write_csv(graded, out)


def test_lines_of_json_say_the_same(graded: GradedRun, truth: Answers) -> None:
    answers: Answers = {}
    for text in _text(write_jsonl, graded).splitlines():
        outcome = Outcome.model_validate_json(text)
        key = outcome.attempt.key
        answers |= {(key.sample_id, key.trial, name): score.passed for name, score in _named(outcome)}
    assert answers == truth


def test_the_layout_of_letta_evals_says_the_same(run: RunResult, truth: Answers) -> None:
    for outcome in run.outcomes():
        grades: Mapping[str, Any] = sample_result(outcome)["grades"]
        key = outcome.attempt.key
        for name, grade in grades.items():
            assert grade["passed"] == truth[key.sample_id, key.trial, name]


def test_the_page_of_a_conversation_says_the_same(run: RunResult, truth: Answers) -> None:
    states = {"pass": True, "fail": False, "error": None, "skip": None}
    for outcome in run.outcomes():
        key = outcome.attempt.key
        page: dict[str, Any] = conversation(outcome, lambda turn: None)
        notes: list[ScoreNote] = page["notes"]
        assert {note.name: states[note.state] for note in notes} == {
            name: truth[key.sample_id, key.trial, name] for name, _ in _named(outcome)
        }


def test_summaries_in_words_say_the_same(graded: GradedRun, run: RunResult) -> None:
    markdown = _text(write_markdown, graded)
    for grader in run.summary.graders:
        if grader.pass_rate is not None:
            row = f"| `{grader.name}` | `{grader.target}` | {grader.scored} |"
            assert f"{grader.pass_rate:.1%}" in next(text for text in markdown.splitlines() if text.startswith(row))
    assert f"verdicts: {run.summary.verdict}" in _text(write_github, graded).replace("%3A", ":")


def test_the_api_says_the_same(graded: GradedRun, truth: Answers) -> None:
    with serving(graded.store) as server:
        samples: Any = get(f"{server}/api/v1/runs/latest/samples?limit=100").json()["samples"]
        summary = Summary.model_validate(get(f"{server}/api/v1/runs/latest").json()["summary"])
        whole = Outcome.model_validate_json(get(f"{server}/api/v1/runs/latest/samples/close/1").body)
    found = {
        (sample["sample_id"], sample["trial"], score["name"]): score.get("passed")
        for sample in samples
        for score in sample["scores"]
    }
    assert found == truth
    _check_rates({grader.name: grader for grader in summary.graders}, truth)
    assert {name: score.passed for name, score in _named(whole)} == {
        name: truth["close", 1, name] for name, _ in _named(whole)
    }


def test_the_exit_code_is_that_of_the_gate(run: RunResult) -> None:
    assert run.exit_code == {"pass": 0, "fail": 1, "inconclusive": 3, None: 0}[run.summary.verdict]


def test_a_turn_passes_by_the_same_rule_everywhere(graded: GradedRun, run: RunResult) -> None:
    known = {
        (key.sample_id, key.trial, name, turn.turn): turn.passed
        for key, name, score in _scores(run)
        for turn in score.turns or ()
    }
    page = graded.store.browse.scores(graded.grading, limit=500)
    listed = {(one.sample_id, one.trial, one.name, one.turn): one.passed for one in page.scores if one.turn is not None}
    assert known == listed
    assert {True, False, None} <= set(known.values())


def _check_rates(found: Mapping[str, GraderSummary], truth: Answers) -> None:
    for name, one in found.items():
        passed = [said for (_, _, grader), said in truth.items() if grader == name and said is not None]
        assert one.scored == len(passed), name
        assert one.pass_rate == (pytest.approx(sum(passed) / len(passed)) if passed else None), name
