"""Marks: what graders say, as it stands in the margin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from vivavoce.records.counting import to_number
from vivavoce.records.failure import Failure
from vivavoce.records.run import Outcome
from vivavoce.records.score import Finding as ScoreFinding
from vivavoce.records.score import FindingState, Score
from vivavoce.report.html.evidence import Quote, Register
from vivavoce.report.html.wording import indented
from vivavoce.safe_text import safe
from vivavoce.store.browse.status import SampleStatus, status_of

State: TypeAlias = SampleStatus | Literal["part"]
"""What a mark or a finding amounts to; the words are those of the style sheet. Only a finding holds in part."""

WORDS: dict[State, str] = {"error": "Error", "fail": "Fail", "part": "Partial", "skip": "Skipped", "pass": "Pass"}
_STATES: Mapping[FindingState, State] = {"pass": "pass", "partial": "part", "fail": "fail", "skip": "skip"}


@dataclass(frozen=True, slots=True)
class Finding:
    """A criterion, a check or a violation, with the evidence for it."""

    word: str
    state: State
    about: str
    quotes: list[Quote]


@dataclass(frozen=True, slots=True)
class Mark:
    """What one grader says.

    Of the whole conversation, `raw` is all of it as JSON, and `turns` how many turns passed, of how many.
    `again` says that its failure is told before it on the page.
    """

    id: str
    name: str
    state: SampleStatus
    score: float | None
    why: str
    findings: list[Finding]
    quotes: list[Quote]
    failure: Failure | None
    raw: str
    again: bool = False
    turns: tuple[int, int] | None = None

    @property
    def cited(self) -> Iterator[tuple[Quote, str]]:
        """The evidence, each piece with what it is evidence of."""
        yield from ((quote, f"{one.word}: {one.about}") for one in self.findings for quote in one.quotes)
        yield from ((quote, "") for quote in self.quotes)


def state_of(score: Score) -> SampleStatus:
    """Return what a score amounts to."""
    return status_of(score.state, score.passed)


TurnGrades = Mapping[int, Sequence[tuple[str, str, Score]]]
"""By turn, the scores with the name of each mark and of its grader."""


def turn_grades(outcome: Outcome) -> TurnGrades:
    """Return the scores of turns, each turn's together."""
    found: dict[int, list[tuple[str, str, Score]]] = {}
    for number, (name, score) in enumerate(outcome.scores.items()):
        for turn in score.turns or ():
            found.setdefault(turn.turn or 0, []).append((f"m{number}-t{to_number(turn.turn or 0)}", name, turn))
    return found


def turn_marks(grades: TurnGrades, turn: int, register: Register) -> list[Mark]:
    """Return the marks of a turn."""
    return [_mark(register.prefix + name, grader, grade, register) for name, grader, grade in grades.get(turn, ())]


def whole_marks(outcome: Outcome, register: Register) -> list[Mark]:
    """Return the marks of the whole conversation, the reward last."""
    at = f"{register.prefix}m"
    marks = [_mark(f"{at}{i}", name, score, register) for i, (name, score) in enumerate(outcome.scores.items())]
    if outcome.reward is not None:
        marks.append(_mark(f"{at}-reward", "reward", outcome.reward, register))
    return marks


def told_once(marks: Iterable[Mark], told: set[Failure]) -> list[Mark]:
    """Return marks of which those whose failure was told say so; the others tell theirs."""
    found: list[Mark] = []
    for mark in marks:
        found.append(replace(mark, again=mark.failure in told))
        if mark.failure is not None:
            told.add(mark.failure)
    return found


def _mark(identity: str, name: str, score: Score, register: Register) -> Mark:
    bad = state_of(score) == "fail"
    findings = [_finding(one, identity, register) for one in score.findings]
    turns = None
    if score.turns:
        turns = (sum(turn.passed is True for turn in score.turns), len(score.turns))
    why = "" if turns and score.reason == f"{turns[0]}/{turns[1]} turns passed" else safe(score.reason or "")
    return Mark(
        id=identity,
        name=safe(name),
        state=state_of(score),
        score=score.value,
        why=why,
        findings=findings,
        quotes=register.enter(score.other_evidence, identity, bad=bad),
        failure=score.failure,
        raw="" if score.turn is not None else _raw(score),
        turns=turns,
    )


def _raw(score: Score) -> str:
    """Return what a score holds besides the marks on the page."""
    left_out = {"turns", "failure", "name"}
    if score.failure is not None and score.reason == score.failure.message:
        left_out.add("reason")
    return indented(score.model_dump(mode="json", exclude=left_out, exclude_defaults=True))


def _finding(one: ScoreFinding, mark: str, register: Register) -> Finding:
    word = (one.verdict or one.kind).replace("_", " ").capitalize()
    quotes = register.enter(one.evidence, mark, bad=one.state == "fail")
    return Finding(safe(word), _STATES[one.state], safe(one.what), quotes)
