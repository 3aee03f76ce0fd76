"""The findings of a metric in a conversation, each with its evidence and the place of that evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.text import Text

from vivavoce.records.score import FAILED_STEP, Evidence, FindingState, Score, turn_label
from vivavoce.report.measurements import score_number
from vivavoce.report.tables import Labelled
from vivavoce.report.text import one_line

SHOWN = 12
"""Findings of one score that are shown."""
_WIDTH = 200
_STYLES: Mapping[FindingState, str] = {
    "pass": "green",
    "partial": "yellow",
    "fail": "red",
    "warn": "yellow",
    "skip": "dim",
}


def score_text(score: Score) -> str:
    """Return a score as text: its value, or the number of a measurement, or why there is neither."""
    if score.value is not None:
        return f"{score.value:.2f}"
    return score_number(score) or score.state


def findings(score: Score) -> Iterator[Labelled]:
    """Yield a line for each finding of a score, each followed by its evidence; then the other evidence of the score."""
    for one in score.findings[:SHOWN]:
        word = one_line(one.verdict or one.kind, _WIDTH).replace("_", " ")
        yield Labelled(Text(f"      {word:>14}  ", style=_STYLES[one.state]), Text(one_line(one.fact, _WIDTH)))
        yield from _evidence(one.evidence)
    if len(score.findings) > SHOWN:
        yield Labelled(Text(" " * 22), Text(f"… and {len(score.findings) - SHOWN} more", style="dim"))
    yield from _evidence(score.other_evidence)


def failed_steps(scores: Iterable[Score], turn: int) -> Iterator[Labelled]:
    """Yield a line for each step in a turn with which the conversation failed, by the scores of the conversation."""
    for one in (one for score in scores for one in score.findings):
        if one.kind == FAILED_STEP and one.turn == turn:
            said = f"{one.verdict.replace('_', ' ')}: {one.what}"
            yield Labelled(Text("   failed  ", style="red"), Text(one_line(said, _WIDTH), style="red"))


def _evidence(evidence: Sequence[Evidence]) -> Iterator[Labelled]:
    for one in evidence[:SHOWN]:
        place = turn_label(one.turn) if one.verified else "not found"
        style = "dim" if one.verified else "bold yellow"
        shown = f"call {one.text}" if one.kind == "call" else f"“{one.text}”"
        yield Labelled(Text(f"{place:>24}  ", style=style), Text(one_line(shown, _WIDTH), style="dim"))
