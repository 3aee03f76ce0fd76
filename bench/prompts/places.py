"""The table of `first_failure`: how often it names the planted step, with 95% intervals and what chance would give."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from vivavoce.metrics.judged.first_failure import NO_RETURN, ROOT
from vivavoce.records.score import Score
from vivavoce.stats.intervals import wilson

NAMES = {"root": ROOT, "no_return": NO_RETURN}
"""The findings about the steps that a row has."""

Row = dict[str, Any]
Hit = Callable[["Case"], bool]


class Case(NamedTuple):
    """A row with a defect, and the score that the metric gave it; None where that is an error."""

    row: Row
    score: Score | None

    def named(self, step: str) -> Row:
        """Return what the metric says of a step: turn, message, whose, kind; nothing where it names none."""
        findings = (finding for finding in self.score.findings if finding.verdict == NAMES[step]) if self.score else ()
        return next(({"turn": finding.turn, **finding.data} for finding in findings), Row())

    def agrees(self, step: str, what: str) -> bool:
        """Say whether the metric says of a step what is true of it."""
        return what in (by_name := self.named(step)) and by_name[what] == self.row["metadata"][step][what]

    def cites(self) -> bool:
        """Say whether a step that the metric names is the message of the defect."""
        root = self.row["metadata"]["root"]["message"]
        return any(self.named(step).get("message") == root for step in ("root", "no_return"))


MEASURES: dict[str, Hit] = {
    "root: exact message": lambda case: case.agrees("root", "message"),
    "root: turn": lambda case: case.agrees("root", "turn"),
    "root or point of no return: exact message of the root": Case.cites,
    "root: whose": lambda case: case.agrees("root", "whose"),
    "root: kind": lambda case: case.agrees("root", "kind"),
    "point of no return: exact message": lambda case: case.agrees("no_return", "message"),
    "point of no return: turn": lambda case: case.agrees("no_return", "turn"),
}


def places(rows: Sequence[Row], scores: dict[tuple[str, int], Score]) -> str:
    """Return the table on rows: each measure over the rows with a defect, then the rows as recorded, as Markdown."""
    cases = [Case(row, scores.get((row["id"], row.get("trial", 0)))) for row in rows]
    planted = [case for case in cases if "root" in case.row["metadata"]]
    judged = [case for case in planted if case.score]
    recorded = [case.score for case in cases if case.score and "root" not in case.row["metadata"]]
    lines = [
        f"{len(judged)} of {len(planted)} conversations with a defect have a score",
        "",
        "| measure | n | agrees | 95% interval | chance |",
        "|---|---:|---:|---|---:|",
        _line("a failure is seen", [bool(case.score and not case.score.passed) for case in judged]),
        *(_line(name, list(map(hit, judged)), _chance(name, judged)) for name, hit in MEASURES.items()),
        _line("as recorded: no failure is seen", [bool(score.passed) for score in recorded]),
        "",
        "| operator | n | failure seen | message | turn | whose | kind |",
        "|---|---:|---:|---:|---:|---:|---:|",
        *_by_operator(judged),
    ]
    return "\n".join(lines)


def read_scores(exported: Iterable[str]) -> dict[tuple[str, int], Score]:
    """Return the scores of an export as JSON lines, by the id and the trial of their rows."""
    scores_by_key: dict[tuple[str, int], Score] = {}
    for line in map(json.loads, exported):
        key = line["attempt"]["key"]
        for score in map(Score.model_validate, line["scores"].values()):
            if score.state == "scored":
                scores_by_key[key["sample_id"], key["trial"]] = score
    return scores_by_key


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _line(name: str, hits: Sequence[bool], chance: float | None = None) -> str:
    if not hits:
        return f"| {name} | 0 | – | – | – |"
    low, high = wilson(sum(hits), len(hits))
    text = "–" if chance is None else f"{chance:.2f}"
    return f"| {name} | {len(hits)} | {sum(hits) / len(hits):.2f} | {low:.2f} … {high:.2f} | {text} |"


def _chance(measure: str, cases: Sequence[Case]) -> float:
    """Return how often a guess would be right: any message or turn alike; of labels always the most frequent."""
    label = measure.rpartition(" ")[2]
    if label in ("whose", "kind"):
        frequent = Counter(case.row["metadata"]["root"][label] for case in cases).most_common(1)
        return frequent[0][1] / len(cases) if cases else 0.0
    roles = [[message["role"] for message in case.row["messages"]] for case in cases]
    if label == "turn":
        guesses = [1 / names.count("user") for names in roles]
    else:
        steps = [len(names) - names.count("system") for names in roles]
        guesses = [(2 if " or " in measure else 1) / count for count in steps]
    return sum(guesses) / len(guesses) if guesses else 0.0


def _by_operator(cases: Sequence[Case]) -> Iterable[str]:
    for operator in sorted({case.row["metadata"]["operator"] for case in cases}):
        own = [case for case in cases if case.row["metadata"]["operator"] == operator]
        seen = sum(bool(case.score and not case.score.passed) for case in own)
        hits = (sum(case.agrees("root", what) for case in own) for what in ("message", "turn", "whose", "kind"))
        yield f"| `{operator}` | {len(own)} | {seen} | {' | '.join(map(str, hits))} |"
