"""How far the conversations of a run went as they were recorded, by target, from the scores that are stored."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from vivavoce.records.as_recorded import (
    AS_RECORDED,
    MOST_EXAMPLES,
    AsRecorded,
    CallsCovered,
    DifferenceKind,
    DifferentConversations,
    PairedGrades,
    RecordingSummary,
    Unit,
)
from vivavoce.records.counting import conversation_label, turn_label
from vivavoce.records.run import Grading, Outcome
from vivavoce.records.score import Score
from vivavoce.stats.paired import difference_of
from vivavoce.store.store import Store


def recording_summaries(store: Store, grading: Grading) -> list[RecordingSummary]:
    """Return how far conversations went as recorded, for each target; nothing for a run without a recording."""
    graders = cast("dict[str, Any]", grading.spec.get("graders") or {})
    name = next((name for name, one in graders.items() if one.get("kind") == "recording"), None)
    if name is None:
        return []
    tallies: dict[str, _RecordedTally] = {}
    for outcome in store.outcomes(grading.id):
        if (score := outcome.scores.get(name)) is not None:
            tallies.setdefault(outcome.attempt.key.target, _RecordedTally()).add(outcome, name, score)
    return [one.summary(target) for target, one in tallies.items()]


@dataclass(slots=True)
class _Pairs:
    """The scores of a grader on both sides, the recorded one first."""

    values: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    left_out: int = 0

    def add(self, recorded: float | None, new: float | None) -> None:
        if recorded is None or new is None:
            self.left_out += 1
        else:
            self.values.append((recorded, new))

    def paired(self, grader: str, of: Unit) -> PairedGrades | None:
        """Return them in numbers, None where none are."""
        found = difference_of([new - recorded for recorded, new in self.values])
        if found is None:
            return None
        sides = [math.fsum(side) / found.n for side in zip(*self.values, strict=True)]
        return PairedGrades(
            grader=grader,
            of=of,
            n=found.n,
            better=found.wins,
            worse=found.losses,
            recorded=sides[0],
            new=sides[1],
            p_value=found.sign_p_value,
            left_out=self.left_out,
        )


@dataclass(slots=True)
class _RecordedTally:
    """The conversations of one target."""

    conversations: int = 0
    same: int = 0
    unrecorded: int = 0
    errors: int = 0
    turns: int = 0
    ended: list[str] = field(default_factory=list[str])
    calls: CallsCovered = field(default_factory=CallsCovered)
    different: dict[DifferenceKind, DifferentConversations] = field(
        default_factory=dict[DifferenceKind, DifferentConversations]
    )
    pairs: dict[tuple[str, Unit], _Pairs] = field(default_factory=dict[tuple[str, Unit], _Pairs])

    def add(self, outcome: Outcome, name: str, score: Score) -> None:
        """Count a conversation."""
        self.conversations += 1
        kept = score.extra.get(AS_RECORDED)
        if kept is None:
            self.unrecorded += score.state == "skipped"
            self.errors += score.state == "error"
            return
        found = AsRecorded.model_validate(kept)
        self.calls += found.calls
        if found.calls.missed and len(self.ended) < MOST_EXAMPLES:
            key, last = outcome.attempt.key, len(outcome.attempt.trajectory.turns) - 1
            self.ended.append(f"{conversation_label(key.sample_id, key.trial)}, {turn_label(last)}")
        self.turns += found.comparable
        if found.difference is not None:
            self._differs(outcome, found)
        elif score.state == "error":
            self.errors += 1
        else:
            self.same += 1
        for grader, one in outcome.scores.items():
            if grader != name:
                turnwise = one.turns is not None or len(outcome.attempt.trajectory.turns) == 1
                pairs = self.pairs.setdefault((grader, "turn" if turnwise else "conversation"), _Pairs())
                _pair(pairs, one, found, ended=score.state != "error")

    def _differs(self, outcome: Outcome, found: AsRecorded) -> None:
        first, key = found.difference, outcome.attempt.key
        assert first is not None
        known = self.different.get(first.kind)
        if known is not None and known.turn <= first.turn:
            self.different[first.kind] = known.model_copy(update={"conversations": known.conversations + 1})
            return
        number = 1 if known is None else known.conversations + 1
        self.different[first.kind] = DifferentConversations(
            kind=first.kind,
            conversations=number,
            sample=key.sample_id,
            trial=key.trial,
            turn=first.turn,
            what=first.what,
        )

    def summary(self, target: str) -> RecordingSummary:
        """Return what was counted."""
        return RecordingSummary(
            target=target,
            conversations=self.conversations,
            same=self.same,
            unrecorded=self.unrecorded,
            errors=self.errors,
            turns=self.turns,
            different=sorted(self.different.values(), key=lambda one: -one.conversations),
            calls=self.calls,
            ended=self.ended,
            pairs=list(_known(self.pairs)),
        )


def _pair(pairs: _Pairs, score: Score, found: AsRecorded, *, ended: bool) -> None:
    """Add the scores of a conversation by a grader: those of comparable turns, or of comparable conversations."""
    recorded = found.recorded.get(score.name)
    if score.turns is None:
        if found.difference is None and ended and score.state != "skipped":
            pairs.add(score.value, score.value)
        elif recorded is not None and score.state != "skipped":
            pairs.add(recorded.value, score.value)
        return
    for turn in score.turns:
        if turn.state == "skipped" or turn.turn is None:
            continue
        if turn.turn < found.same:
            pairs.add(turn.value, turn.value)
        elif recorded is not None and recorded.turn == turn.turn:
            pairs.add(recorded.value, turn.value)


def _known(pairs: dict[tuple[str, Unit], _Pairs]) -> Iterator[PairedGrades]:
    found = (one.paired(grader, of) for (grader, of), one in pairs.items())
    yield from (one for one in found if one is not None)
