"""A test result for people: one line, some lines, or a piece of a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from vivavoce.records.details import by_role
from vivavoce.records.score import shorten
from vivavoce.safe_text import safe

if TYPE_CHECKING:
    from vivavoce.penelope.result import TestResult
    from vivavoce.penelope.turn import Turn

_MAX_MESSAGE_CHARS = 2_000
"""Characters of one message that are shown."""


def line(result: TestResult) -> str:
    """Return a result in one line."""
    turns = f"{result.turns_used} turn{'s' * (result.turns_used != 1)}"
    blame = f", blame: {result.blame}" if result.blame else ""
    return f"{result.outcome} in {turns}{blame}"


def text(result: TestResult) -> str:
    """Return a result as lines."""
    return "\n".join(_lines(result))


def turn_lines(turn: Turn) -> Iterator[str]:
    """Yield a turn as lines: the steps of the tester, what it said, what the target answered."""
    for step in turn.steps:
        tool = f"{step.tool_name or 'words'}{' (refused)' if step.refused else ''}"
        yield f"  · {_one_line(tool)}: {_one_line(step.tool_message.text, 200)}"
    yield f"{turn.turn_number}. user: {_one_line(turn.message)}"
    if turn.exchange.failure is not None:
        yield f"   failed: {_one_line(turn.exchange.failure.message, 300)}"
    else:
        yield f"   assistant: {_one_line(turn.reply)}"


def html(result: TestResult) -> str:
    """Return a result as HTML, in which every message is escaped."""
    rows = "".join(
        f"<tr><td>{turn.turn_number}</td><td>{_cell(turn.message)}</td><td>{_cell(_answer(turn))}</td></tr>"
        for turn in result.history
    )
    metrics = "".join(
        f"<li><b>{escape(name)}</b> {escape(str(metric.score))}: {_cell(metric.reasoning or '')}</li>"
        for name, metric in result.evaluation.items()
    )
    used = by_role(result.usage)
    return (
        f"<p><b>{escape(line(result))}</b><br>{_cell(result.stop_reason)}</p>"
        f"<table><tr><th></th><th>user</th><th>assistant</th></tr>{rows}</table><ul>{metrics}</ul>"
        f"{f'<p>{escape(used)}</p>' if used else ''}"
    )


def _lines(result: TestResult) -> Iterator[str]:
    yield line(result)
    yield f"goal: {_one_line(result.context.goal, 300)}"
    yield f"stopped: {_one_line(result.stop_reason, 300)}"
    if result.blame_reason:
        yield f"blame: {result.blame}: {_one_line(result.blame_reason, 300)}"
    for turn in result.history:
        yield from turn_lines(turn)
    for name, metric in result.evaluation.items():
        score = metric.score if metric.state == "scored" else metric.state
        yield f"{name}: {score}{_because(metric.reasoning)}"
    for phase in result.coverage:
        yield f"covered: {_one_line(str(phase), 200)}"
    for rule in result.criteria:
        yield f"{_one_line(rule.sentence, 200)}: {rule.verdict}"
    if used := by_role(result.usage):
        yield f"used: {used}"


def _because(reasoning: str | None) -> str:
    return f" ({_one_line(reasoning, 300)})" if reasoning else ""


def _answer(turn: Turn) -> str:
    return turn.exchange.failure.message if turn.exchange.failure else turn.reply


def _one_line(text: str, limit: int = _MAX_MESSAGE_CHARS) -> str:
    return " ".join((shorten(safe(text), limit) or "").split())


def _cell(text: str) -> str:
    return escape(shorten(safe(text), _MAX_MESSAGE_CHARS) or "").replace("\n", "<br>")
