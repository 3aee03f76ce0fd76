"""Score notes: the scores of graders as shown in the margin of a conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from vivavoce.records.run import Outcome
from vivavoce.records.score import Failure, FindingState, Score, to_number
from vivavoce.records.score import Finding as ScoreFinding
from vivavoce.records.trajectory import Test
from vivavoce.report.details import score_number
from vivavoce.report.html.evidence import Quote, Register
from vivavoce.report.tester import verdict_title
from vivavoce.report.text import indent_json
from vivavoce.safe_text import safe
from vivavoce.store.runs.rows import SampleStatus, status_of

State: TypeAlias = SampleStatus | Literal["part"]
"""The state of a note or a finding, as named in the style sheet. Only a finding can be partial."""

WORDS: dict[State, str] = {
    "error": "Error",
    "fail": "Fail",
    "part": "Partial",
    "measured": "Measured",
    "skip": "Skipped",
    "pass": "Pass",
}
_STATES: Mapping[FindingState, State] = {
    "pass": "pass",
    "partial": "part",
    "fail": "fail",
    "warn": "part",
    "skip": "skip",
}


LONGEST_RECORD = 20_000
"""Characters of the full record of a score that a page shows."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A criterion, a check or a violation, with the evidence for it."""

    word: str
    state: State
    about: str
    quotes: list[Quote]


@dataclass(frozen=True, slots=True)
class ScoreNote:
    """The score of one grader, as shown.

    For a score of the whole conversation, `raw` is the full record as JSON, and `turns` are the numbers of passed turns
    and of all turns, None where they were only measured. `number` is its value, or the number of a measurement, as
    text, empty without either. `again` means that its failure is already shown above it on the page.
    """

    id: str
    name: str
    state: SampleStatus
    number: str
    why: str
    findings: list[Finding]
    quotes: list[Quote]
    failure: Failure | None
    raw: str
    again: bool = False
    turns: tuple[int, int] | None = None
    judge_url: str = ""

    @property
    def cited(self) -> Iterator[tuple[Quote, str]]:
        """The evidence, each piece with what it supports."""
        yield from (
            (quote, f"{finding.word}: {finding.about}") for finding in self.findings for quote in finding.quotes
        )
        yield from ((quote, "") for quote in self.quotes)


ExchangeAddress = Callable[[str, int | None], str]
"""Returns where it is shown what a judge was asked for the score of a grader, of a turn or of the whole."""


def state_of(score: Score) -> SampleStatus:
    """Return the state of a score."""
    return status_of(score.state, score.passed)


TurnGrades = Mapping[int, Sequence[tuple[str, str, Score]]]
"""By turn: the scores, each with the id of its note and the name of its grader."""


def turn_grades(outcome: Outcome) -> TurnGrades:
    """Return the scores of turns, grouped by turn."""
    scores_by_turn: dict[int, list[tuple[str, str, Score]]] = {}
    for number, (name, score) in enumerate(outcome.scores.items()):
        for turn in score.turns or ():
            scores_by_turn.setdefault(turn.turn or 0, []).append(
                (f"m{number}-t{to_number(turn.turn or 0)}", name, turn)
            )
    return scores_by_turn


def turn_notes(grades: TurnGrades, turn: int, register: Register) -> list[ScoreNote]:
    """Return the score notes of a turn."""
    return [_note(register.prefix + name, grader, grade, register) for name, grader, grade in grades.get(turn, ())]


def whole_notes(outcome: Outcome, register: Register) -> list[ScoreNote]:
    """Return the score notes of the whole conversation, the reward last."""
    at = f"{register.prefix}m"
    notes = [_note(f"{at}{i}", name, score, register) for i, (name, score) in enumerate(outcome.scores.items())]
    if outcome.reward is not None:
        notes.append(_note(f"{at}-reward", "reward", outcome.reward, register))
    return notes


def test_notes(test: Test | None, register: Register) -> list[ScoreNote]:
    """Return the score notes of the metrics of the tester, at the end of its test."""
    scores = () if test is None else test.verdicts.items()
    titled = [(verdict_title(name, score), score) for name, score in scores]
    return [_note(f"{register.prefix}j{i}", title, score, register) for i, (title, score) in enumerate(titled)]


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Where it is shown what judges were asked; `judged` are the graders that asked one, by their names in notes."""

    judged: Mapping[str, str]
    address: ExchangeAddress | None

    @classmethod
    def of(cls, outcome: Outcome, address: ExchangeAddress | None) -> Exchanges:
        """Return those of a conversation; without an address there are none."""
        graders = outcome.scores.items() if address is not None else ()
        return cls({safe(name): name for name, score in graders if asks_judge(score)}, address)

    def add_links(self, notes: Sequence[ScoreNote], turn: int | None) -> Sequence[ScoreNote]:
        """Return the notes of a turn, or of the whole, with the addresses of what their judges were asked."""
        if self.address is None:
            return notes
        return [
            replace(note, judge_url=self.address(self.judged[note.name], turn))
            if note.name in self.judged and note.state != "error"
            else note
            for note in notes
        ]


def asks_judge(score: Score) -> bool:
    """Return whether a judge was asked for a score, as far as its record tells."""
    used = [part.usage for part in (score, *(score.turns or ())) if part.usage is not None]
    return "model" in score.settings or any(usage.calls or usage.cached_calls for usage in used)


def each_failure_once(notes: Iterable[ScoreNote], shown_failures: set[Failure]) -> list[ScoreNote]:
    """Return notes in which a failure that was already shown is marked `again`."""
    marked_notes: list[ScoreNote] = []
    for note in notes:
        marked_notes.append(replace(note, again=note.failure in shown_failures))
        if note.failure is not None:
            shown_failures.add(note.failure)
    return marked_notes


def _note(identity: str, name: str, score: Score, register: Register) -> ScoreNote:
    bad = state_of(score) == "fail"
    findings = [_finding(finding, identity, register) for finding in score.findings]
    turns = None
    if score.turns and score.measured is None:
        turns = (sum(turn.passed is True for turn in score.turns), len(score.turns))
    why = "" if turns and score.reason == f"{turns[0]}/{turns[1]} turns passed" else safe(score.reason or "")
    return ScoreNote(
        id=identity,
        name=safe(name),
        state=state_of(score),
        number=score_number(score),
        why=why,
        findings=findings,
        quotes=register.enter(score.other_evidence, identity, bad=bad),
        failure=score.failure,
        raw="" if score.turn is not None else _raw(score),
        turns=turns,
    )


def _raw(score: Score) -> str:
    """Return the fields of a score that the page does not show otherwise."""
    left_out = {"turns", "failure", "name"}
    if score.failure is not None and score.reason == score.failure.message:
        left_out.add("reason")
    text = indent_json(score.model_dump(mode="json", exclude=left_out, exclude_defaults=True))
    left = len(text) - LONGEST_RECORD
    return text if left <= 0 else f"{text[:LONGEST_RECORD]}\n… {left:,} more characters in the JSON"


def _finding(finding: ScoreFinding, note: str, register: Register) -> Finding:
    word = (finding.verdict or finding.kind).replace("_", " ").capitalize()
    quotes = register.enter(finding.evidence, note, bad=finding.state == "fail")
    return Finding(safe(word), _STATES[finding.state], safe(finding.fact), quotes)
