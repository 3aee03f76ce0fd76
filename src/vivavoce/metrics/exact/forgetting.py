"""`ForgettingMetric`: of what a user said in an earlier session, how much does the assistant not know any more?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Unpack

from vivavoce.errors import UsageError
from vivavoce.messages import SessionMark
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.exact.speakers import SessionTurn, is_in, place_in, session_turns
from vivavoce.metrics.measuring import ExactMetric, Measured, MeasuringOptions, Part
from vivavoce.records.score import Finding, turn_label
from vivavoce.work_time import counted_work


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question about what its user said `distance` of their own sessions before; `known` where the answer has it."""

    turn: SessionTurn
    told: SessionTurn
    distance: int
    known: bool


class ForgettingMetric(ExactMetric):
    """Gives the share of the questions about earlier sessions whose answer the assistant no longer knows.

    A question is a turn whose ground truth is a text or number that the same user said in an earlier session; the last
    time counts. Its distance is how many of the user's own sessions later it is, 1 for the next
    one. The answer is known if the assistant says it as whole words, in any case and encoding, or as an equal
    number. From 0 to 1; lower is better, and only 0 passes unless `threshold` says otherwise. With a `distance`,
    only questions of that distance count. `details["by_distance"]` counts what was asked and what was forgotten.

    Known failure: a truth that its user said in other words is not found there, and is left out.
    """

    version: ClassVar[str] = "4"

    def __init__(self, *, distance: int | None = None, **options: Unpack[MeasuringOptions]) -> None:
        config = MetricConfig(
            class_name=type(self).__name__,
            name="forgetting",
            description="What share of what a user said in earlier sessions is not known any more?",
            direction="lower_is_better",
            threshold=0.0,
        )
        super().__init__(config, **options)
        self.distance = distance
        if distance is not None and distance < 1:
            raise UsageError(f"{self.name}: distance must be at least 1 (the user's next session); got {distance}")

    @property
    def parameters(self) -> Mapping[str, object]:
        """Which questions count."""
        return {"distance": self.distance}

    def measure(self, part: Part) -> Measured:
        """Find when each truth was told, and whether the assistant says it."""
        turns = session_turns(part)
        if len({turn.mark for turn in turns}) < 2:
            return Measured(None, "the conversation has no two sessions")
        asked = [one for one in _questions(turns, _truths(part)) if is_in(part, one.turn)]
        asked = [one for one in asked if self.distance in (None, one.distance)]
        if not asked:
            far = "" if self.distance is None else f" {self.distance} sessions before"
            return Measured(None, f"no turn asks for what its user said in an earlier session{far}")
        lost = [one for one in asked if not one.known]
        by_distance = _by_distance(asked)
        parts = (f"{_later(far)} {counts['forgotten']} of {counts['asked']}" for far, counts in by_distance.items())
        reason = f"{len(lost)} of {len(asked)} forgotten: {', '.join(parts)}"
        findings = [_forgotten(one) for one in lost]
        if lost:
            reason += "; " + ", ".join(finding.what for finding in findings[:5])
        return Measured(len(lost) / len(asked), reason, details={"by_distance": by_distance}, findings=findings)


def _forgotten(one: _Asked) -> Finding:
    return Finding(
        kind="question",
        what=f"what {turn_label(one.told.index)} told is not known in {turn_label(one.turn.index)}",
        verdict="forgotten",
        state="fail",
        turn=one.turn.index,
        evidence=tuple(said.quote() for said in one.turn.said("assistant")[-1:]),
        data={"told": one.told.index, "distance": one.distance},
    )


def _truths(part: Part) -> Mapping[int, str]:
    """Return the truths that are a text or a number, by their turns."""
    sample = part.metric_input.sample
    truths = [turn.ground_truth for turn in sample.turns] if sample is not None and sample.per_turn else []
    listed = enumerate(truths)
    return {turn: str(truth) for turn, truth in listed if isinstance(truth, str | int | float) and str(truth).strip()}


def _questions(turns: Sequence[SessionTurn], truths: Mapping[int, str]) -> list[_Asked]:
    questions: list[_Asked] = []
    own_turns: defaultdict[str | None, list[SessionTurn]] = defaultdict(list)
    own_sessions: defaultdict[str | None, dict[SessionMark, int]] = defaultdict(dict)
    with counted_work() as check_time:
        for turn in turns:
            own, sessions = own_turns[turn.mark.user], own_sessions[turn.mark.user]
            own.append(turn)
            number = sessions.setdefault(turn.mark, len(sessions))
            truth = truths.get(turn.index)
            if truth is None:
                continue
            told = _last_with(truth, own, check_time)
            if told is None or told.mark == turn.mark:
                continue
            is_known = place_in(turn.said("assistant"), truth) is not None
            questions.append(_Asked(turn, told, number - sessions[told.mark], is_known))
    return questions


def _last_with(truth: str, turns: Sequence[SessionTurn], check_time: Callable[[], None]) -> SessionTurn | None:
    """Return the last turn in which the user says a truth."""
    for turn in reversed(turns):
        check_time()
        if place_in(turn.said("user"), truth):
            return turn
    return None


def _by_distance(asked: Sequence[_Asked]) -> dict[int, dict[str, int]]:
    counts: defaultdict[int, dict[str, int]] = defaultdict(lambda: {"asked": 0, "forgotten": 0})
    for one in asked:
        counts[one.distance]["asked"] += 1
        counts[one.distance]["forgotten"] += not one.known
    return dict(sorted(counts.items()))


def _later(distance: int) -> str:
    return "one session later" if distance == 1 else f"{distance} sessions later"
