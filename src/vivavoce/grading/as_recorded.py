"""The grader that compares conversations with a recording, and grades the recorded side where the two differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vivavoce.errors import did_you_mean
from vivavoce.grading.divergence import Compared, covered, nearest
from vivavoce.grading.extractors import last_assistant
from vivavoce.grading.fingerprint import fingerprint
from vivavoce.grading.grader import Grader
from vivavoce.grading.graders import Case
from vivavoce.messages import AnyMessage, HumanMessage
from vivavoce.records.as_recorded import AS_RECORDED, AsRecorded, RecordedGrade
from vivavoce.records.counting import turn_label
from vivavoce.records.recording import Recording
from vivavoce.records.score import Finding, Score, failed, skipped
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.records.usage import total
from vivavoce.samples.sample import Sample


@dataclass(frozen=True, slots=True)
class _Beside:
    """A recording, and the other graders of its run."""

    recording: Recording
    graders: Sequence[Grader]


@dataclass(frozen=True, slots=True)
class AsRecordedGrader(Grader):
    """Scores 1 where a conversation went as it was recorded, turn by turn, and 0 where it did not.

    A turn is as recorded where the user says the same, the same tools are called with the same arguments and return the
    same, and the last words of the target are the same, whitespace aside. Up to the first turn that is not, both sides
    answer the same history: there the recorded reply is graded by the other graders, too.
    """

    beside: _Beside | None = None

    def verdicts(self, sample: Sample) -> int:
        """Return how many judge verdicts the recorded side of a sample needs at most: those of one turn, or of all."""
        graders = () if self.beside is None else self.beside.graders
        needed = ((one, one.verdicts(sample)) for one in graders)
        return sum(min(n, one.once + one.each_turn) if one.per_turn(sample) else n for one, n in needed)

    async def grade(self, sample: Sample, trajectory: Trajectory, trial: int = 0) -> Score:
        """Compare one conversation with what was recorded of its row."""
        assert self.beside is not None
        common: dict[str, Any] = {"name": self.name, "fingerprint": self.fingerprint}
        place, rows = self.beside.recording.place, self.beside.recording.conversations
        candidates = rows.get(sample.id)
        if candidates is None:
            return skipped(f"{place} has no row '{sample.id}'{did_you_mean(sample.id, rows)}", **common)
        compared = nearest(candidates, trajectory)
        recorded = _until(compared, trajectory)
        whole = _is_whole(compared, trajectory)
        scores = {} if recorded is None else await self._graded(sample, recorded, whole=whole)
        found = AsRecorded(
            target=compared.recorded.target,
            trial=compared.recorded.trial,
            candidates=len(candidates),
            same=compared.same,
            comparable=compared.same + (recorded is not None),
            whole=whole,
            difference=compared.difference,
            calls=covered(compared.recorded, trajectory),
            recorded={name: _grade(one) for name, one in scores.items()},
        )
        extra = {AS_RECORDED: found.model_dump(mode="json")}
        used = total(one.usage for one in scores.values())
        more: dict[str, Any] = {
            **common,
            "extra": extra,
            "usage": used,
            "turns": tuple(self._turns(compared, trajectory)),
        }
        difference = compared.difference
        if difference is None and trajectory.failure is not None:
            return failed(trajectory.failure, **more)
        if difference is None:
            return Score(value=1.0, raw=True, reason=f"as recorded in all {len(trajectory.turns)} turns", **more)
        turn, what = difference.turn, difference.what
        held = turn if turn < len(trajectory.turns) else None
        finding = Finding(kind="difference", what=what, verdict=difference.kind, state="fail", turn=held)
        reason = f"{turn_label(turn)}: {what}"
        return Score(value=0.0, raw=False, passed=False, reason=reason, findings=(finding,), **more)

    async def _graded(self, sample: Sample, recorded: Trajectory, *, whole: bool) -> dict[str, Score]:
        """Return what the other graders say of the last recorded turn, or where the `whole` is comparable of all."""
        assert self.beside is not None
        last = len(recorded.turns) - 1
        found: dict[str, Score] = {}
        for grader in self.beside.graders:
            if grader.per_turn(sample):
                if last < len(sample.turns):
                    found[grader.name] = await grader.grade_turn(sample, last, recorded)
            elif whole:
                found[grader.name] = await grader.grade(sample, recorded)
        return found

    def _turns(self, compared: Compared, trajectory: Trajectory) -> list[Score]:
        """Return a score for each turn: those after the first difference have another history, and none."""
        first, found = compared.difference, list[Score]()
        for index, turn in enumerate(trajectory.turns):
            common: dict[str, Any] = {"name": self.name, "turn": index}
            if index < compared.same:
                found.append(Score(value=1.0, reason="as recorded", **common))
            elif first is not None and index == first.turn:
                found.append(Score(value=0.0, reason=first.what, **common))
            elif turn.failure is not None:
                found.append(failed(turn.failure, **common))
            else:
                found.append(
                    skipped(f"not comparable: another conversation since {turn_label(compared.same)}", **common)
                )
        return found


def as_recorded(
    name: str, recording: Recording, content: str, graders: Sequence[Grader], label: str | None = None
) -> AsRecordedGrader:
    """Return the grader; `content` is a hash of the recording, `graders` are the others, which grade the recorded side.

    What those say is kept with the score, so their fingerprints are part of its own.
    """
    prints = [AS_RECORDED, content, [one.fingerprint for one in graders]]
    return AsRecordedGrader(
        name,
        last_assistant,
        _nothing,
        "conversation",
        fingerprint(prints),
        label=label,
        waits=any(one.waits for one in graders),
        beside=_Beside(recording, graders),
    )


def _nothing(case: Case) -> Score:
    """Return that there is nothing to score in a submission: it is the conversation that is compared."""
    return skipped("is compared with a recording, and not by a submission", name=case.sample.id)


def _until(compared: Compared, trajectory: Trajectory) -> Trajectory | None:
    """Return the recorded conversation up to the turn that differs, None where that is not answered on both sides."""
    first = compared.difference
    if first is None or first.kind in ("said", "length") or trajectory.turns[first.turn].failure is not None:
        return None
    turns = [
        Turn(index=reply.turn, messages=_messages(reply.said, reply.messages), seconds=reply.seconds, usage=reply.usage)
        for reply in compared.recorded.turns[: first.turn + 1]
    ]
    opening = list(compared.recorded.turns[0].opening)
    return Trajectory(opening=opening, turns=turns, state=compared.recorded.turns[first.turn].state)


def _messages(said: Any, messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    return [HumanMessage(content=said), *messages]


def _is_whole(compared: Compared, trajectory: Trajectory) -> bool:
    """Say whether both conversations end with the turn that differs, so that they are comparable as wholes."""
    if trajectory.failure is not None:
        return False
    if compared.difference is None:
        return True
    return compared.difference.turn + 1 == compared.recorded.answered == len(trajectory.turns)


def _grade(score: Score) -> RecordedGrade:
    return RecordedGrade(turn=score.turn, value=score.value, reason=score.reason)
