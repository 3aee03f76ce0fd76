"""What the tester did in a run, and its errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from vivavoce.records.details import by_role
from vivavoce.records.run import breach_name, verified_breaches
from vivavoce.records.score import Score, to_number, turn_label
from vivavoce.records.trajectory import Step, Test
from vivavoce.report.text import Labelled, count, one_line
from vivavoce.report.verdict import findings, net_text, score_text
from vivavoce.safe_text import safe

if TYPE_CHECKING:
    from vivavoce.report.comparison.comparison import TargetComparison


def spoiled_sides(comparison: TargetComparison, sides: tuple[str, str]) -> Iterator[str]:
    """Yield the same for both sides of a comparison, by what the reader calls them."""
    for grader in comparison.graders:
        for name, side in zip(sides, (grader.a, grader.b), strict=True):
            if text := net_text(side):
                yield f"{name}, {safe(grader.name)}: {text}"


ATTACK = "attack"
"""The name of the metric that judges whether an attack succeeded."""


def thoughts(test: Test | None, index: int) -> Iterator[Labelled]:
    """Yield the reasoning of the tester for its message in a turn, counted from 0, and the steps before it."""
    if test is None or index >= len(test.history):
        return
    turn = test.history[index]
    if turn.guidance:
        yield _note_line("strategy", turn.guidance)
    for step in turn.steps:
        yield _step(step)
    if turn.reasoning:
        yield Labelled(Text("   tester  ", style="dim"), Text(one_line(turn.reasoning, 300), style="dim italic"))


def after_turn(test: Test | None, index: int) -> Iterator[Labelled]:
    """Yield what the metrics of the tester gave after a turn, counted from 0."""
    if text := turn_results(test, index):
        yield _note_line("measured", text)


def turn_results(test: Test | None, index: int) -> str:
    """Return what was judged after a turn, counted from 0; empty where nothing was."""
    if test is None:
        return ""
    after = [entry.results for entry in test.metrics_history if entry.turn == to_number(index)]
    scores = [_metric_text(name, score) for results in after for name, score in results.items()]
    refused = test.history[index].target_refused if index < len(test.history) else None
    return " · ".join([*scores, *([f"refused {refused}"] if refused else [])])


def verdict_title(name: str, score: Score) -> str:
    """Return what a verdict of a test is about: its metric, or the attack."""
    return ATTACK if score.name == ATTACK and score.state == "scored" else name


def _metric_text(name: str, score: Score) -> str:
    """Return the score of a metric; of an attack, also whether the assistant gave what it is after."""
    title = verdict_title(name, score)
    outcome = f": {'given' if score.passed else 'not given'}" if title == ATTACK else ""
    return f"{title} {score_text(score)}{outcome}"


def try_title(index: int) -> str:
    """Return the title of a try of a test, counted from 0."""
    return f"try {to_number(index)}"


def discarded_title(index: int, test: Test) -> str:
    """Return the title of a try that the tester spoilt, counted from 0, with why."""
    return one_line(f"{try_title(index)}, discarded: {test.blame_reason}", 300)


def judgements(test: Test) -> Iterator[Labelled]:
    """Yield what each metric and the review gave at the end: findings, and where each piece of evidence is."""
    for name, score in test.verdicts.items():
        reason = f": {score.reason}" if score.reason else ""
        line = f"{_metric_text(name, score)}{reason}"
        yield Labelled(Text("   metric  ", style="dim"), Text(one_line(line, 400)))
        yield from findings(score)


def ending(test: Test) -> Iterator[Labelled]:
    """Yield how a test ended: status, why it stopped, whose fault it is, rules, what was explored, what roles used."""
    for step in test.unfinished:
        yield _step(step)
    style = {True: "green", False: "red", None: "yellow"}[test.target_passed]
    yield Labelled(Text("     test  ", style="bold"), Text(test.outcome, style=style))
    yield Labelled(Text("  stopped  ", style="dim"), Text(one_line(test.stop_reason, 400)))
    if test.blame:
        blame = f"{test.blame}: {test.blame_reason}"
        yield Labelled(Text("    blame  ", style="dim"), Text(one_line(blame, 400)))
    for criterion in test.criteria:
        rule = f"{criterion.sentence}: {criterion.verdict}"
        yield Labelled(Text("     rule  ", style="dim"), Text(one_line(rule, 300)))
    for note in breach_notes(test):
        yield Labelled(Text("     note  ", style="yellow"), Text(one_line(note, 300)))
    for phase in test.coverage:
        yield Labelled(Text("  covered  ", style="dim"), Text(one_line(str(phase), 300)))
    if test.discarded:
        earlier = f"{count(len(test.discarded), 'earlier attempt')} discarded: {test.discarded[0].blame_reason}"
        yield Labelled(Text("    again  ", style="dim"), Text(one_line(earlier, 300)))
    if used := by_role(test.usage):
        yield Labelled(Text("     used  ", style="dim"), Text(used, style="dim"))


def breach_notes(test: Test) -> Iterator[str]:
    """Yield what the judge of the goal found besides it: false statements, and rules of the policy that were broken."""
    goal = test.evaluation.get("goal_achievement")
    for finding in verified_breaches(goal.findings if goal is not None else ()):
        quote = next(quote for quote in finding.evidence if quote.verified)
        yield f"{breach_name(finding)}: {finding.what} ({turn_label(quote.turn)}: {quote.text})"


def _note_line(what: str, text: str) -> Labelled:
    return Labelled(Text(f"{what:>9}  ", style="dim"), Text(one_line(text, 300), style="dim"))


def _step(step: Step) -> Labelled:
    refused = " (refused)" if step.refused else ""
    line = f"{step.tool_name or 'words'}{refused}: {_result(step)}"
    return Labelled(Text("     step  ", style="dim"), Text(one_line(line, 300), style="dim"))


def _result(step: Step) -> str:
    result = step.tool_result
    return str(result["error"] or result["output"])
