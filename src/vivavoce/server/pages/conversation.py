"""The conversation page: the transcript, and beside it what the graders say of each turn."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query, Request, Response

from vivavoce.errors import UsageError
from vivavoce.records.failure import Failure
from vivavoce.records.run import AttemptKey, Grading, Outcome, Run
from vivavoce.records.score import TurnGrade
from vivavoce.records.trajectory import Trajectory
from vivavoce.records.usage import Usage
from vivavoce.report.html.evidence import Register
from vivavoce.report.html.marks import (
    RANK,
    Mark,
    State,
    TurnGrades,
    listed,
    state_of,
    told_once,
    turn_grades,
    turn_marks,
    whole_marks,
    worst_of,
)
from vivavoce.report.html.plots import strip
from vivavoce.report.html.transcript import Part, Shown, Thought, Writer, judged, steps, thoughts
from vivavoce.report.html.wording import dollars, span
from vivavoce.report.text import one_line, safe
from vivavoce.server.pages.links import run_page, sample_data, sample_page
from vivavoce.server.pages.neighbours import neighbours
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.store.listing import SampleEntry
from vivavoce.store.store import Store

router = APIRouter(route_class=PageRoute, include_in_schema=False)

SHOWN = 200
"""Turns on one page."""
_FAULTS = 8
"""Turns that went badly and are named at the top."""


@router.get("/runs/{run}/samples/{sample:path}")
def conversation(
    request: Request,
    run: str,
    sample: str,
    trial: int | None = None,
    target: str | None = None,
    grading: str | None = None,
    first: Annotated[int, Query(alias="from", ge=0)] = 0,
    named: Annotated[str | None, Query(alias="id")] = None,
) -> Response:
    """Show one conversation; turns are shown from `from`, `id` gives a name that no path can hold."""
    store = cast("Store", request.app.state.store)
    found = store.run(run)
    scores = store.grading(found.id, grading)
    sample = sample if named is None else named
    outcomes = list(store.outcomes(scores.id, sample_id=sample))
    chosen = [
        one for one in outcomes if trial in (None, one.attempt.key.trial) and target in (None, one.attempt.key.target)
    ]
    if not chosen:
        raise UsageError(f"run {found.id} has no conversation about '{one_line(sample)}' of that kind")
    asked = _Asked(store, found, scores, grading is not None)
    return page("conversation.html", _values(asked, chosen[0], outcomes, first))


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was asked for; `named` says that the address names the set of scores."""

    store: Store
    run: Run
    grading: Grading
    named: bool

    def chosen(self, key: AttemptKey) -> dict[str, str | None]:
        """Return what an address says besides the sample and the trial."""
        return {"target": key.target, "grading": self.grading.id if self.named else None}

    def link(self, entry: Outcome | SampleEntry | None, **query: int | None) -> str | None:
        """Return the address of a conversation of the run."""
        if entry is None:
            return None
        key = entry.attempt.key if isinstance(entry, Outcome) else entry
        named = AttemptKey(key.sample_id, key.target, key.trial)
        return sample_page(self.run.id, key.sample_id, trial=key.trial, **self.chosen(named), **query)


def _values(asked: _Asked, outcome: Outcome, siblings: Sequence[Outcome], first: int) -> dict[str, object]:
    attempt, talk = outcome.attempt, outcome.attempt.trajectory
    register = Register()
    by_turn, whole = turn_grades(outcome), whole_marks(outcome, register)
    first = min(first, max(len(talk.turns) - 1, 0)) // SHOWN * SHOWN
    told: set[Failure] = set()
    opening, shown = _turns(talk, by_turn, whole, register, first, told)
    failures = [talk.failure] if talk.failure is not None and talk.failure not in told else []
    whole = told_once(whole, told.union(failures))
    around = neighbours(asked.store, asked.grading.id, attempt.position)
    final = next((mark for mark in reversed(whole) if mark.score is not None), None)
    faults = _faults(by_turn)
    state = "error" if talk.failure else worst_of(mark.state for mark in whole)
    return {
        "section": "runs",
        "run": asked.run,
        "json_link": sample_data(asked.run.id, attempt.key.sample_id, attempt.key.trial, **asked.chosen(attempt.key)),
        "run_link": run_page(asked.run.id, grading=asked.grading.id if asked.named else None),
        "grading": asked.grading,
        "attempt": attempt,
        "sample": _sample(attempt.sample),
        "talk": talk,
        "opening": opening,
        "turns": shown,
        "marks": whole,
        "final": final if len(whole) == 1 or outcome.reward is not None else None,
        "state": state,
        "strip": strip(_states(talk, by_turn)) if by_turn else None,
        "faults": faults[:_FAULTS],
        "faulty": len(faults),
        "windows": _windows(asked, outcome, len(talk.turns), first),
        "from_first": first,
        "here": asked.link(outcome),
        "page_of": partial(_page_of, asked, outcome, first),
        "links": {
            "prev": (asked.link(around.before), around.before),
            "next": (asked.link(around.after), around.after),
            "prev_failing": (asked.link(around.failing_before), around.failing_before),
            "next_failing": (asked.link(around.failing_after), around.failing_after),
        },
        "trials": [(one.attempt.key, asked.link(one)) for one in siblings] if len(siblings) > 1 else [],
        "facts": _facts(outcome),
        "ending": _ending(talk.test),
        "failures": failures,
    }


def _turns(
    talk: Trajectory,
    by_turn: TurnGrades,
    whole: Sequence[Mark],
    register: Register,
    first: int,
    told: set[Failure],
) -> tuple[list[Part], list[Shown]]:
    """Return what stands before the first turn, and the turns of this page; the failures in them are told then."""
    writer = Writer(register)
    opening = writer.parts(talk.opening, None)
    shown: list[Shown] = []
    for turn in talk.turns[:first]:
        writer.skip(turn.messages)
    page = talk.turns[first : first + SHOWN]
    by_place = {turn.index: turn_marks(by_turn, turn.index, register) for turn in page}
    for turn in page:
        parts = writer.parts(turn.messages, turn.index)
        about = [
            (mark, quote, what)
            for mark in whole
            for quote, what in mark.cited
            if quote.turn == turn.index and quote.letter
        ]
        if turn.failure is not None:
            told.add(turn.failure)
        marks = told_once(by_place[turn.index], told)
        shown.append(Shown(turn, parts, marks, thoughts(talk.test, turn.index), about, judged(talk.test, turn.index)))
    return opening, shown


def _states(talk: Trajectory, by_turn: TurnGrades) -> list[State]:
    """Return the state of each turn; one that nobody graded counts as skipped."""
    return [
        "error" if turn.failure else worst_of(state_of(grade) for *_, grade in by_turn.get(turn.index, ()))
        for turn in talk.turns
    ]


def _faults(by_turn: TurnGrades) -> list[tuple[int, str, TurnGrade]]:
    """Return the turns that went badly, each with the worst that is said of it, and by which grader."""
    found: list[tuple[int, str, TurnGrade]] = []
    for turn, grades in sorted(by_turn.items()):
        _, name, worst = min(grades, key=lambda one: RANK.index(state_of(one[2])))
        if state_of(worst) in ("fail", "part"):
            found.append((turn, safe(name), worst))
    return found


def _page_of(asked: _Asked, outcome: Outcome, first: int, turn: int) -> str:
    """Return the address of the page that holds a turn, empty where that is this one."""
    return "" if first <= turn < first + SHOWN else asked.link(outcome, **{"from": turn}) or ""


def _windows(asked: _Asked, outcome: Outcome, turns: int, first: int) -> dict[str, object]:
    """Return the links to the turns before and after those of this page."""
    before = asked.link(outcome, **{"from": first - SHOWN}) if first else None
    after = asked.link(outcome, **{"from": first + SHOWN}) if first + SHOWN < turns else None
    return {"before": before, "after": after, "first": first, "last": min(first + SHOWN, turns) - 1, "turns": turns}


def _sample(text: str) -> dict[str, Any]:
    read = json.loads(text)
    return cast("dict[str, Any]", read) if isinstance(read, dict) else {}


def _facts(outcome: Outcome) -> list[tuple[str, str]]:
    """Return how long it took and what it used: the target, and each grader that asked a model."""
    talk = outcome.attempt.trajectory
    judged = sum((grade.usage for grade in outcome.grades.values() if grade.usage), Usage())
    found: list[tuple[str, str]] = []
    if talk.seconds is not None:
        found.append(("took", span(talk.seconds)))
    for whose, usage in (("target", talk.usage), ("judge", judged)):
        if usage.calls or usage.input_tokens or usage.output_tokens:
            tokens = f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
            found.append((whose, tokens if usage.cost is None else f"{tokens}, {dollars(usage.cost)}"))
    return found


@dataclass(frozen=True, slots=True)
class _Ending:
    """How a test ended, as its tester left it."""

    status: str
    passed: bool | None
    stopped: str
    blame: str
    rules: list[tuple[bool, str]]
    unfinished: list[Thought]
    discarded: int


def _ending(test: Mapping[str, Any] | None) -> _Ending | None:
    if test is None:
        return None
    blame = f"{test['blame']}: {test.get('blame_reason', '')}" if test.get("blame") else ""
    rules = [
        (bool(one.get("met")), safe(f"{'must' if one.get('must') else 'must not'}: {one.get('text')}"))
        for one in listed(test, "criteria")
    ]
    return _Ending(
        status=safe(str(test.get("status", ""))),
        passed=test.get("target_passed"),
        stopped=safe(str(test.get("stop_reason", ""))),
        blame=safe(blame),
        rules=rules,
        unfinished=steps(listed(test, "unfinished")),
        discarded=len(listed(test, "discarded")),
    )
