"""What a run says of its agents is the same wherever it is said."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from conversations import REFUND, by, says, user
from vivavoce import run_suite
from vivavoce.records.details import AgentSummary
from vivavoce.report.agents import agent_rows, agents_line, who_failed
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.run import head
from vivavoce.report.json_file import write_json
from vivavoce.report.markdown import write_markdown
from vivavoce.report.terminal import run_report
from vivavoce.report.worst import worst
from vivavoce.run.result import RunResult
from vivavoce.run.summary import Summary
from vivavoce.store.store import Store

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
    assert [(one.grader, one.failures, one.turns, one.share) for one in triage.graders] == [
        ("handoffs", 3, 3, 0.75),
        ("own_tools", 3, 3, 0.75),
    ]
    assert triage.low is not None
    assert triage.high is not None
    assert triage.low < triage.share < triage.high
    assert (refunds.turns, refunds.calls, refunds.handoffs, refunds.failed_turns) == (6, 6, 3, 0)
    assert run.summary.unnamed_failures == 1
    assert who_failed(run.summary) == "3 of 3 failed turns are of triage"


def test_every_report_says_the_same(run: RunResult) -> None:
    with Store.open(run.place, create=False) as store:
        found = store.run(run.run.id)
        graded = GradedRun(store, found, store.grading(found.id))
        summary, rows = graded.summary(), agent_rows(graded.summary())
        texts = [io.StringIO() for _ in range(3)]
        report = run_report(summary, worst(store, graded.grading), found.id)
        Console(file=texts[0], width=200).print(report)
        write_markdown(graded, texts[1])
        write_json(graded, texts[2])
        page = head(found, graded.grading, summary)
    terminal, markdown, written = (text.getvalue() for text in texts)
    assert page["agents"] == rows
    for text in (terminal, markdown):
        assert who_failed(summary) in text
        assert agents_line(summary) in text
        assert all(cell in text for row in rows for cell in row)
    assert json.loads(written)["summary"]["agents"] == [one.model_dump() for one in summary.agents]


def test_a_run_of_one_agent_says_nothing_of_agents(tmp_path: Path) -> None:
    rows = [{"id": "a", "messages": [user("hi"), by("bot", says("x")), user("?"), by("Bot", says("y"))]}]
    summary = run_of(tmp_path, rows, {"n": {"kind": "function", "function": "ascii_printable_only"}}).summary
    assert (summary.agents, agent_rows(summary), agents_line(summary), who_failed(summary)) == ([], [], "", "")


def test_names_of_many_and_of_hostile_agents_are_cut_and_shown_plainly(tmp_path: Path) -> None:
    rows = [{"id": "a", "messages": [user("hi"), *(by(f"\x1b[31mno {n}", says("x")) for n in range(200))]}]
    summary = run_of(tmp_path, rows, {"n": {"kind": "function", "function": "ascii_printable_only"}}).summary
    assert (len(summary.agents), summary.more_agents) == (50, 150)
    assert agents_line(summary) == "and 180 more agents with no more failed turns"
    assert not any("\x1b" in cell for row in agent_rows(summary) for cell in row)


def test_agents_of_several_targets_are_told_apart() -> None:
    one = AgentSummary(
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
    agents = [one, one.model_copy(update={"target": "y", "failed_turns": 2})]
    summary = Summary(attempts=2, failed_attempts=0, graders=[], agents=agents)
    assert [row[0] for row in agent_rows(summary)] == ["a of y", "a of x"]
    assert who_failed(summary) == "2 of 3 failed turns are of a of y"
