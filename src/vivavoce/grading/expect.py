"""`expect`: whether what a row expects of its conversation, under that name, came true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vivavoce.errors import SuiteFault, UsageError
from vivavoce.grading.expected import Expected, mean_held, read_expect
from vivavoce.grading.graders import Case
from vivavoce.grading.scene import Held, Scene, scene_of
from vivavoce.records.counting import turn_label
from vivavoce.records.failure import shorten
from vivavoce.records.score import Evidence, Finding, Score, skipped
from vivavoce.unchecked import unchecked

_SHOWN = 5
"""Misses that a reason names."""
_LONGEST = 300
"""Characters of an answer that a finding quotes."""


def expect(case: Case) -> Score:
    """Score the share of the row's own assertions (`expect`) that hold, by weight; it passes when all do."""
    if case.sample.expect is None:
        return skipped("the sample has no expect")
    try:
        expected = read_expect(case.sample.expect)
    except UsageError as error:
        raise SuiteFault(str(error), kind="options") from error
    scenes = {turn: scene_of(case.view, turn) for turn in {one.turn for one in expected}}
    return _score([_checked(one, scenes[one.turn]) for one in expected])


@dataclass(frozen=True, slots=True)
class _Checked:
    """An assertion and what came of it, both None for a turn that was not held."""

    expected: Expected
    scene: Scene | None
    result: Held | None


def _checked(expected: Expected, scene: Scene | None) -> _Checked:
    return _Checked(expected, scene, None if scene is None else expected.assertion.held(scene))


def _score(every: Sequence[_Checked]) -> Score:
    findings = tuple(_finding(one) for one in every)
    parts = [(one.expected.assertion, one.result) for one in every if one.result is not None]
    if not parts:
        return skipped("the conversation ended before the turns that the row expects something of", findings=findings)
    missed = [one for one in every if one.result is not None and not one.result.passed]
    reason = _misses(missed) if missed else f"{len(parts)} of {len(parts)} assertions hold"
    if unchecked_ones := len(every) - len(parts):
        reason += f"; {unchecked_ones} not checked, because the conversation ended before"
    return Score(value=mean_held(parts), passed=not missed, reason=reason, findings=findings)


def _finding(one: _Checked) -> Finding:
    what, turn = one.expected.assertion.wording, one.expected.turn
    fields: dict[str, Any] = {"kind": "assertion", "what": what, "verdict": "holds", "state": "pass", "turn": turn}
    if one.result is None or one.scene is None:
        fields |= {"verdict": "not reached", "state": "skip"}
    elif not one.result.passed:
        answer = one.scene.answer[:_LONGEST] if turn is not None else ""
        evidence = (Evidence(text=answer, turn=turn, verified=True),) if answer else ()
        fields |= {"verdict": "missed", "state": "fail", "evidence": evidence, "data": {"found": one.result.found}}
    return unchecked(Finding, fields)


def _misses(missed: Sequence[_Checked]) -> str:
    """Return in words what was missed, each with its turn and with what was said instead."""
    named: list[str] = []
    for one in missed[:_SHOWN]:
        assert one.result is not None
        assert one.scene is not None
        place = "" if one.expected.turn is None else f"{turn_label(one.expected.turn)}: "
        answer = shorten(" ".join(one.scene.answer.split()), 100)
        named.append(f"{place}{one.result.found}, said {answer!r}")
    more = f"; and {len(missed) - _SHOWN} more" if len(missed) > _SHOWN else ""
    return "; ".join(named) + more
