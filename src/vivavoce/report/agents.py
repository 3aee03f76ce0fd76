"""Which of several agents failed: a row for each and for each grader that found a fault of it, for every report."""

from __future__ import annotations

from collections.abc import Sequence

from vivavoce.records.details import AgentSummary
from vivavoce.report.text import count
from vivavoce.run.summary import Summary
from vivavoce.safe_text import safe

HEADS = (
    *("agent", "turns", "calls", "tool errors", "handoffs"),
    *("found by", "failures", "failed turns", "share of turns", "95% interval"),
)
"""What is said of an agent; the last five also of each grader that found a fault of it."""
MOST = 20
"""Agents in a table."""
ANY = "any"
"""Who found a fault, in the row of an agent."""


def agent_rows(summary: Summary) -> list[list[str]]:
    """Return the cells below `HEADS`, without control characters; the row of a grader follows that of its agent."""
    shown = sorted(summary.agents, key=lambda one: (-one.failed_turns, -one.turns))[:MOST]
    return [row for one in shown for row in _rows(one, _name(one, summary.agents))]


def agents_line(summary: Summary) -> str:
    """Return what the table leaves out, as one sentence; empty if it leaves out nothing."""
    others = max(len(summary.agents) - MOST, 0) + summary.more_agents
    said = [f"and {count(others, 'more agent')} with no more failed turns"] if others else []
    if summary.unnamed_failures:
        failures = count(summary.unnamed_failures, "failure")
        said.append(f"{failures} {'is' if summary.unnamed_failures == 1 else 'are'} of no agent in particular")
    return "; ".join(said)


def who_failed(summary: Summary) -> str:
    """Return whose most failed turns are, as one sentence; empty where no agent failed."""
    failed = [one for one in summary.agents if one.failed_turns]
    if not failed:
        return ""
    worst = max(failed, key=lambda one: (one.failed_turns, one.share))
    whole = sum(one.failed_turns for one in failed)
    of = f"{worst.failed_turns:,} of {count(whole, 'failed turn')}"
    return f"{of} {'is' if worst.failed_turns == 1 else 'are'} of {_name(worst, summary.agents)}"


def _rows(one: AgentSummary, name: str) -> list[list[str]]:
    did = [f"{number:,}" for number in (one.turns, one.calls, one.tool_errors, one.handoffs)]
    failures = sum(each.failures for each in one.graders)
    found = [ANY, f"{failures:,}", f"{one.failed_turns:,}", f"{one.share:.1%}", _interval(one.low, one.high)]
    rows = [[name, *did, *found]]
    for each in one.graders:
        figures = [f"{each.failures:,}", f"{each.turns:,}", f"{each.share:.1%}", _interval(each.low, each.high)]
        rows.append(["", "", "", "", "", safe(each.grader), *figures])
    return rows


def _name(one: AgentSummary, among: Sequence[AgentSummary]) -> str:
    return safe(f"{one.agent} of {one.target}" if len({each.target for each in among}) > 1 else one.agent)


def _interval(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{low:.1%} to {high:.1%}"
