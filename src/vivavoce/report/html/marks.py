"""Marks: what graders say, as it stands in the margin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from vivavoce.records.failure import Failure
from vivavoce.records.run import Outcome, Reward
from vivavoce.records.score import GradeResult, TurnGrade
from vivavoce.report.html.evidence import Quote, Register
from vivavoce.report.html.wording import indented
from vivavoce.report.text import safe
from vivavoce.store.mirror import own_metadata
from vivavoce.store.standing import Standing, passed_of, standing_of

State: TypeAlias = Standing
"""What a mark amounts to; the words are those of the style sheet."""

WORDS: dict[State, str] = {"error": "Error", "fail": "Fail", "part": "Partial", "skip": "Skipped", "pass": "Pass"}

Grade = GradeResult | TurnGrade | Reward


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
    state: State
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


def state_of(grade: Grade) -> State:
    """Return what a grade amounts to; a metric says itself whether its score passes."""
    return standing_of(grade.state, grade.score, passed_of(grade.metadata))


TurnGrades = Mapping[int, Sequence[tuple[str, str, TurnGrade]]]
"""By turn, the grades with the name of each mark and of its grader."""


def turn_grades(outcome: Outcome) -> TurnGrades:
    """Return the grades of turns, each turn's together."""
    found: dict[int, list[tuple[str, str, TurnGrade]]] = {}
    for number, (name, grade) in enumerate(outcome.grades.items()):
        for turn in grade.per_turn_grades or ():
            found.setdefault(turn.turn, []).append((f"m{number}-t{turn.turn}", name, turn))
    return found


def turn_marks(grades: TurnGrades, turn: int, register: Register) -> list[Mark]:
    """Return the marks of a turn."""
    return [_mark(register.prefix + name, grader, grade, register) for name, grader, grade in grades.get(turn, ())]


def whole_marks(outcome: Outcome, register: Register) -> list[Mark]:
    """Return the marks of the whole conversation, the reward last."""
    at = f"{register.prefix}m"
    marks = [_mark(f"{at}{i}", name, grade, register) for i, (name, grade) in enumerate(outcome.grades.items())]
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


def _mark(identity: str, name: str, grade: Grade, register: Register) -> Mark:
    bad = state_of(grade) == "fail"
    findings = [_finding(one, identity, register) for one in _found(grade.metadata)]
    quotes = [] if findings else register.enter(listed(grade.metadata, "evidence"), identity, bad=bad)
    graded = (isinstance(grade, GradeResult) and grade.per_turn_grades) or ()
    turns = (sum(state_of(turn) == "pass" for turn in graded), len(graded)) if graded else None
    why = "" if turns and grade.rationale == f"{turns[0]}/{turns[1]} turns passed" else safe(grade.rationale or "")
    return Mark(
        id=identity,
        name=safe(name),
        state=state_of(grade),
        score=grade.score,
        why=why,
        findings=findings,
        quotes=quotes,
        failure=grade.failure,
        raw="" if isinstance(grade, TurnGrade) else _raw(grade),
        turns=turns,
    )


def _raw(grade: Grade) -> str:
    """Return what a grade holds besides the marks on the page."""
    left_out = {"per_turn_grades", "failure"}
    if grade.failure is not None and grade.rationale == grade.failure.message:
        left_out.add("rationale")
    data = grade.model_dump(mode="json", exclude=left_out, exclude_defaults=True)
    if isinstance(grade, GradeResult) and data.get("metadata"):
        data["metadata"] = own_metadata(grade)
    return indented(data)


def _found(metadata: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for kind in ("criteria", "checks", "violations") for one in listed(metadata, kind)]


def _finding(one: Mapping[str, Any], mark: str, register: Register) -> Finding:
    word, state, about = _told(one)
    quotes = register.enter(listed(one, "evidence"), mark, bad=state == "fail")
    return Finding(safe(word), state, safe(about), quotes)


def _told(one: Mapping[str, Any]) -> tuple[str, State, str]:
    """Return the word for a finding, what it amounts to, and what it is about."""
    if "met" in one:
        about = str(one.get("outcome") or f"{'must' if one.get('must') else 'must not'}: {one.get('text')}")
        return ("Met", "pass", about) if one["met"] else ("Not met", "fail", about)
    if "answer" in one:
        states: dict[str, State] = {"yes": "pass", "no": "fail", "partly": "part"}
        answer = str(one["answer"])
        return answer.replace("_", " ").capitalize(), states.get(answer, "skip"), str(one.get("item", ""))
    return str(one.get("severity", "violation")).capitalize(), "fail", str(one.get("what", one.get("item", "")))


def listed(data: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    """Return the objects of a list; metadata of somebody else's grader may hold anything under that name."""
    value = data.get(name)
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, Mapping)]
