"""What a run says besides its scores, in lines for every reader of a summary: usage, agents, measurements, sampling."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from conversations import REFUND, by, says, user
from vivavoce import run_suite
from vivavoce.records.details import (
    AgentSummary,
    CallsCovered,
    DifferentConversations,
    PairedGrades,
    RecordingSummary,
    VarianceSummary,
)
from vivavoce.records.run import AttemptKey, ScoreRow
from vivavoce.report.details import (
    agent_rows,
    agents_line,
    recorded_lines,
    sentences,
    standings,
    variance_text,
    who_failed,
)
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.run import head
from vivavoce.report.json_file import write_json
from vivavoce.report.markdown import write_markdown
from vivavoce.report.terminal import run_report
from vivavoce.report.worst_samples import worst
from vivavoce.run.summary import RunResult, Summary, summarise
from vivavoce.run.tallies import tally
from vivavoce.stats.paired import difference_of
from vivavoce.store.store import Store


def rows(target: str, values: Sequence[float | None], grader: str = "right") -> list[ScoreRow]:
    return [
        ScoreRow(
            kind="grade",
            key=AttemptKey(f"s{place}", target, 0),
            name=grader,
            state="error" if value is None else "scored",
            value=value,
            passed=None if value is None else value >= 0.5,
        )
        for place, value in enumerate(values)
    ]


def summary_of(*scores: list[ScoreRow]) -> Summary:
    every = [row for some in scores for row in some]
    return summarise(tally(every), attempts=len(every), failed=0)


def best_and_sentences(*scores: list[ScoreRow], stopped: str | None = None) -> list[tuple[str | None, str]]:
    summary = summary_of(*scores).model_copy(update={"stopped": stopped})
    return list(zip((standing.best for standing in standings(summary)), sentences(summary), strict=True))


LOW, HIGH = [1.0] * 24 + [0.0] * 16, [1.0] * 34 + [0.0] * 6
"""The intervals of their means overlap, and 10 samples pass with the second only."""
A, B, C = rows("a", LOW), rows("b", HIGH), rows("c", [1.0] * 33 + [0.0] * 7)


def test_the_one_above_all_others_on_the_same_samples_is_best() -> None:
    [(best, sentence)] = best_and_sentences(A, B)
    difference = difference_of([high - low for high, low in zip(HIGH, LOW, strict=True)])
    assert difference is not None
    assert best == "b"
    assert sentence == (
        "right: b is best: on the same samples it is 0.250 above a "
        f"(95% interval {difference.low:.3f} … {difference.high:.3f})"
    )


def test_one_that_another_may_equal_is_not() -> None:
    assert best_and_sentences(A, B, C) == [
        (None, "right: no best target: on the same samples c is not clearly below b")
    ]


def test_of_several_the_intervals_hold_together() -> None:
    summary = summary_of(A, B, C)
    assert [(difference.target, difference.other, difference.level) for difference in summary.differences] == [
        ("b", "a", 0.975),
        ("b", "c", 0.975),
    ]
    assert [difference.level for difference in summary_of(A, B).differences] == [0.95]


def test_a_best_one_with_errors_says_so() -> None:
    [(best, sentence)] = best_and_sentences(A, rows("d", [None] * 3 + HIGH[3:]))
    assert best == "d"
    assert sentence.endswith("; 3 errors left out")


def test_a_target_without_any_score_is_not_passed_over_in_silence() -> None:
    [(best, sentence)] = best_and_sentences(A, B, rows("dead", [None] * 40))
    assert best == "b"
    assert sentence.endswith("; no score of dead")


@pytest.mark.parametrize(
    ("scores", "sentence"),
    [
        ([A, rows("d", [None] * 9)], "right: no best target: only one target has scores"),
        ([rows("d", [None]), rows("e", [None])], "right: no best target: no target has scores"),
        ([rows("d", [1.0]), rows("e", [0.0])], "right: no best target: a single common sample is not"),
        ([rows(name, [1.0] * 9) for name in "abcde"], "right: no best target: on the same samples b, c, d and 1 more"),
    ],
)
def test_what_cannot_be_told_is_not_told(scores: list[list[ScoreRow]], sentence: str) -> None:
    [(best, sentence_found)] = best_and_sentences(*scores)
    assert best is None
    assert sentence_found.startswith(sentence)


def test_a_summary_without_differences_names_no_best_target() -> None:
    summary = summary_of(A, B).model_copy(update={"differences": []})
    assert sentences(summary) == ["right: no best target: the run does not say how targets differ sample by sample"]


def test_graders_that_find_the_same_share_a_sentence() -> None:
    others = [rows(target, values, "polite") for target, values in (("a", LOW), ("b", HIGH))]
    [sentence] = sentences(summary_of(A, B, *others))
    assert sentence.startswith("right and polite: b is best: ")


def test_a_single_target_and_a_run_that_was_stopped_have_no_best() -> None:
    assert best_and_sentences(B) == []
    assert best_and_sentences(A, B, stopped="interrupted after 3 conversations") == []


def variance(**shares: float | None) -> VarianceSummary:
    return VarianceSummary.model_validate({"name": "right", "target": "bot", **shares})


def test_shares_add_up_and_name_what_was_not_measured() -> None:
    assert variance_text(variance(samples=0.1, trials=0.3)) == "25% samples, 75% target"
    assert variance_text(variance(samples=0.2)).startswith("100% samples; not measured: the target")


def test_one_sample_has_no_shares() -> None:
    assert variance_text(variance(trials=0.25)) == "shares cannot be estimated from one sample"
    assert variance_text(variance(trials=0.0)) == ""


GRADERS: dict[str, Any] = {
    name: {"kind": "metric", "metric": name, "config": config}
    for name, config in {"handoffs": {}, "own_tools": {}, "last_agent": {"expected": "refunds"}}.items()
}


def run_of(folder: Path, rows: list[dict[str, Any]], graders: dict[str, Any]) -> RunResult:
    suite = {"name": "agents", "driver": "replay", "dataset": {"rows": rows}, "graders": graders}
    (folder / "suite.yaml").write_text(json.dumps(suite))
    return run_suite(folder / "suite.yaml", store=str(folder / "kept.db"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    greeted = [user("hi"), by("Triage", says("Hello"))]
    rows = [{"id": f"r{number}", "messages": REFUND} for number in range(3)] + [{"id": "one", "messages": greeted}]
    return run_of(tmp_path_factory.mktemp("agents"), rows, GRADERS)


def test_each_agent_has_its_turns_calls_errors_and_failures(run: RunResult) -> None:
    triage, refunds = run.summary.agents
    assert (triage.agent, triage.target, triage.conversations, triage.turns) == ("triage", "recorded", 4, 4)
    assert (triage.calls, triage.tool_errors, triage.handoffs, triage.failed_turns) == (6, 3, 6, 3)
    assert [(grader.grader, grader.failures, grader.turns, grader.share) for grader in triage.graders] == [
        ("handoffs", 3, 3, 0.75),
        ("own_tools", 3, 3, 0.75),
    ]
    assert triage.low is not None
    assert triage.high is not None
    assert triage.low < triage.share < triage.high
    assert (refunds.turns, refunds.calls, refunds.handoffs, refunds.failed_turns) == (6, 6, 3, 0)
    assert run.summary.unnamed_failures == 1
    assert who_failed(run.summary) == "3 of 3 failed turns are by triage"


def test_every_report_says_the_same(run: RunResult) -> None:
    with Store.open(run.place, create=False) as store:
        run_record = store.run(run.run.id)
        graded = GradedRun(store, run_record, store.grading(run_record.id))
        summary, rows = graded.summary(), agent_rows(graded.summary())
        texts = [io.StringIO() for _ in range(3)]
        report = run_report(summary, worst(store, graded.grading), run_record.id)
        Console(file=texts[0], width=200).print(report)
        write_markdown(graded, texts[1])
        write_json(graded, texts[2])
        page = head(run_record, graded.grading, summary)
    terminal, markdown, document = (text.getvalue() for text in texts)
    assert page["agents"] == rows
    for text in (terminal, markdown):
        assert who_failed(summary) in text
        assert agents_line(summary) in text
        assert all(cell in text for row in rows for cell in row)
    assert json.loads(document)["summary"]["agents"] == [agent.model_dump() for agent in summary.agents]


def test_a_run_of_one_agent_says_nothing_of_agents(tmp_path: Path) -> None:
    rows = [{"id": "a", "messages": [user("hi"), by("bot", says("x")), user("?"), by("Bot", says("y"))]}]
    summary = run_of(tmp_path, rows, {"n": {"kind": "function", "function": "ascii_printable_only"}}).summary
    assert (summary.agents, agent_rows(summary), agents_line(summary), who_failed(summary)) == ([], [], "", "")


def test_names_of_many_and_of_hostile_agents_are_cut_and_shown_plainly(tmp_path: Path) -> None:
    rows = [{"id": "a", "messages": [user("hi"), *(by(f"\x1b[31mno {n}", says("x")) for n in range(200))]}]
    summary = run_of(tmp_path, rows, {"n": {"kind": "function", "function": "ascii_printable_only"}}).summary
    assert (len(summary.agents), summary.more_agents) == (50, 150)
    assert agents_line(summary) == "and 180 more agents, none of them worse"
    assert not any("\x1b" in cell for row in agent_rows(summary) for cell in row)


def test_agents_of_several_targets_are_told_apart() -> None:
    agent_summary = AgentSummary(
        agent="a",
        target="x",
        conversations=1,
        turns=2,
        calls=0,
        tool_errors=0,
        handoffs=0,
        failed_turns=1,
        share=0.5,
    )
    agents = [agent_summary, agent_summary.model_copy(update={"target": "y", "failed_turns": 2})]
    summary = Summary(attempts=2, failed_attempts=0, graders=[], agents=agents)
    assert [row[0] for row in agent_rows(summary)] == ["a of y", "a of x"]
    assert who_failed(summary) == "2 of 3 failed turns are by a of y"


def lines(*targets: RecordingSummary) -> list[str]:
    return recorded_lines(Summary(attempts=1, failed_attempts=0, graders=[], recording=list(targets)))


def build_recording(**more: Any) -> RecordingSummary:
    numbers = {"conversations": 50, "same": 41, "unrecorded": 0, "errors": 0, "turns": 200}
    return RecordingSummary.model_validate({"target": "bot", **numbers, **more})


def test_a_run_without_a_recording_says_nothing() -> None:
    assert lines() == []


def test_conversations_are_counted_by_what_became_of_them() -> None:
    assert lines(build_recording(unrecorded=2, errors=1)) == [
        "as recorded: 41 of 50 conversations; 2 not in the recording; 1 ended with an error before a difference"
    ]


def test_differences_are_told_with_the_earliest_one() -> None:
    six = DifferentConversations(kind="reply", conversations=6, sample="a", trial=1, turn=0, what="the reply is “x”")
    difference = DifferentConversations(kind="call", conversations=1, sample="b", trial=0, turn=2, what="line\nbreak")
    assert lines(build_recording(different=[six, difference]))[1:] == [
        "same calls, different reply: 6 (the earliest: a#2, turn 1: the reply is “x”)",
        "different tool calls: 1 (b, turn 3: line break)",
    ]


def test_calls_are_told_by_who_answered_them() -> None:
    calls = CallsCovered(answered=1200, live=1, missed=2, unused=7, examples=["a()", "b()"])
    assert lines(build_recording(calls=calls, ended=["a, turn 2"]))[1] == (
        "tool calls: 1,200 answered from the recording, 1 answered live, 2 not in it (a, turn 2; …), "
        "7 recorded but not made: a(), b() and 5 more"
    )


def test_grades_are_told_side_by_side() -> None:
    about: dict[str, Any] = {"grader": "says", "of": "turn", "recorded": 0.9, "new": 0.8}
    equal = PairedGrades.model_validate({**about, "n": 1, "better": 0, "worse": 0, "p_value": 1.0})
    other = PairedGrades.model_validate({**about, "n": 9, "better": 1, "worse": 2, "p_value": 0.625, "left_out": 1})
    assert lines(build_recording(pairs=[equal, other]))[1:] == [
        "says, 1 comparable turn: 0 better, 0 worse, 1 the same; mean recorded 0.900, now 0.800",
        "says, 9 comparable turns, 1 without both scores: 1 better, 2 worse, 6 the same; "
        "mean recorded 0.900, now 0.800, sign test p 0.62",
    ]


def test_of_several_targets_each_is_named() -> None:
    output_lines = lines(build_recording(), build_recording(target="other", same=50))
    assert output_lines == ["bot: as recorded: 41 of 50 conversations", "other: as recorded: 50 of 50 conversations"]
