"""The grader that compares conversations with a recording, and says in which turn the two stopped being the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from vivavoce.comparing.json_values import same_json
from vivavoce.errors import did_you_mean
from vivavoce.grading.extractors import last_assistant
from vivavoce.grading.grader import Grader, fingerprint
from vivavoce.grading.graders import Case
from vivavoce.messages import AIMessage, AnyMessage, Content, HumanMessage, ToolCall, ToolMessage
from vivavoce.metrics.exact.arguments import show
from vivavoce.records.details import (
    AS_RECORDED,
    MOST_EXAMPLES,
    AsRecorded,
    CallsCovered,
    Difference,
    DifferenceKind,
    RecordedGrade,
)
from vivavoce.records.recording import UNRECORDED, RecordedConversation, RecordedReply, Recording, same_words
from vivavoce.records.score import Finding, Score, failed, skipped, total, turn_label
from vivavoce.records.trajectory import Trajectory, Turn, answer_of_turn, tool_calls, tool_results
from vivavoce.samples.sample import Sample

_BEFORE = 30
"""Characters that a quote shows before the place where two texts begin to differ."""
_SHOWN = 100
"""Characters of a quote."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A conversation next to a recorded one: how many turns are the same, and the first difference, None for none."""

    recorded: RecordedConversation
    same: int
    difference: Difference | None


def nearest(recorded: Sequence[RecordedConversation], held: Trajectory) -> Compared:
    """Compare a conversation with that one of several recorded ones which it follows for the most turns."""
    found = [_compared(one, held) for one in recorded]
    return max(found, key=lambda one: (one.difference is None, one.same))


def _compared(recorded: RecordedConversation, held: Trajectory) -> Compared:
    same = 0
    for turn, reply in zip(held.turns, recorded.turns, strict=False):
        found = _in_turn(turn, reply)
        if found is not None:
            kind, what = found
            return Compared(recorded, same, Difference(kind=kind, turn=same, what=what))
        if turn.failure is not None:
            return Compared(recorded, same, None)
        same += 1
    if held.failure is None and len(held.turns) != recorded.answered_count:
        longer, shorter = ("new", "recorded") if len(held.turns) > same else ("recorded", "new")
        what = f"the {shorter} conversation has no {turn_label(same)}, and the {longer} one goes on"
        return Compared(recorded, same, Difference(kind="length", turn=same, what=what))
    return Compared(recorded, same, None)


def _in_turn(turn: Turn, reply: RecordedReply) -> tuple[DifferenceKind, str] | None:
    """Return in what a turn differs from the recorded one, in words; None where it does not, or was not answered."""
    said = next((message.content for message in turn.messages if message.role == "user"), None)
    if not same_words(said, reply.said):
        return "said", f"the user says {_beside(_text(said), _text(reply.said))}"
    if turn.failure is not None:
        return ("unrecorded", turn.failure.message) if turn.failure.kind == UNRECORDED else None
    if reply.error is not None:
        return "length", f"when it was recorded, this turn ended with an error: {_quoted(reply.error)}"
    if calls := _calls_differ(turn.messages, reply.messages):
        return calls
    if results := _results_differ(turn.messages, reply.messages):
        return "result", results
    new, old = answer_of_turn(turn.messages), answer_of_turn(reply.messages)
    return None if same_words(new, old) else ("reply", f"the reply is {_beside(new, old)}")


def _calls_differ(new: Sequence[AnyMessage], old: Sequence[AnyMessage]) -> tuple[DifferenceKind, str] | None:
    """Return how calls differ; those that one message makes at once have no order."""
    made, recorded = _ordered(new), _ordered(old)
    added, missing = _without(made, recorded), _without(recorded, made)
    phrases: list[str] = []
    for call in added:
        other = next((one for one in missing if one.name == call.name), None)
        if other is None:
            phrases.append(f"{_shown(call)} is called, which is not recorded here")
        else:
            missing.remove(other)
            phrases.append(f"{_shown(call)} is called, recorded is {_shown(other)}")
    phrases += [f"{_shown(call)} is recorded, and is not called" for call in missing]
    if phrases:
        return "call", "; ".join(phrases[:MOST_EXAMPLES])
    if not all(map(_same_call, made, recorded)):
        return "order", f"the calls come as {_listed(made)}, recorded is {_listed(recorded)}"
    return None


def _results_differ(new: Sequence[AnyMessage], old: Sequence[AnyMessage]) -> str | None:
    """Return which result of a call is another than the recorded one, None where none is."""
    left = tool_results(old)
    for call, result in tool_results(new):
        place = next(index for index, (other, _) in enumerate(left) if _same_call(call, other))
        _, then = left.pop(place)
        if (result is None) != (then is None):
            return f"{_shown(call)} {'has no result' if result is None else 'has a result'}, other than recorded"
        if result is not None and then is not None and not same_words(result.text, then.text):
            return f"{_shown(call)} returns {_beside(result.text, then.text)}"
    return None


def covered(recorded: RecordedConversation, held: Trajectory) -> CallsCovered:
    """Return how a recording covers the calls of a conversation."""
    by = [(message.metadata or {}).get("answered_by") for message in held.messages if isinstance(message, ToolMessage)]
    unused = _without(tool_calls(recorded.messages), tool_calls(held.messages))
    missed = held.failure is not None and held.failure.kind == UNRECORDED
    return CallsCovered(
        answered=by.count("recording"),
        live=len(by) - sum(map(by.count, ("recording", "canned", "user", "vivavoce"))),
        missed=int(missed),
        unused=len(unused),
        examples=list(dict.fromkeys(map(_shown, unused)))[:MOST_EXAMPLES],
    )


def _ordered(messages: Sequence[AnyMessage]) -> list[ToolCall]:
    """Return the calls in order, those of one message sorted."""
    steps = [list(message.tool_calls or ()) for message in messages if isinstance(message, AIMessage)]
    return [call for step in steps for call in sorted(step, key=_shown)]


def _without(calls: Sequence[ToolCall], others: Sequence[ToolCall]) -> list[ToolCall]:
    """Return calls without those that are also among others, each counted once."""
    left = list(others)
    found: list[ToolCall] = []
    for call in calls:
        place = next((index for index, one in enumerate(left) if _same_call(call, one)), None)
        if place is None:
            found.append(call)
        else:
            del left[place]
    return found


def _same_call(one: ToolCall, other: ToolCall) -> bool:
    if one.name != other.name:
        return False
    try:
        return same_json(one.args, other.args)
    except (ValueError, RecursionError):
        return one.function.arguments == other.function.arguments


def _shown(call: ToolCall) -> str:
    try:
        return f"{call.name}({show(call.args)})"
    except (ValueError, RecursionError):
        return f"{call.name}({call.function.arguments[:_SHOWN]})"


def _listed(calls: Sequence[ToolCall]) -> str:
    return ", ".join(map(_shown, calls[:MOST_EXAMPLES]))


def _text(content: Content | None) -> str:
    return content if isinstance(content, str) else "a message of several parts"


def _beside(new: str, old: str) -> str:
    """Return two texts as quotes that begin shortly before they differ."""
    one, other = " ".join(new.split()), " ".join(old.split())
    alike = sum(1 for _ in _common(one, other))
    start = max(0, alike - _BEFORE)
    start = 0 if start < _BEFORE else start
    return f"{_quoted(one, start)}, recorded is {_quoted(other, start)}"


def _common(one: str, other: str) -> Iterator[str]:
    for a, b in zip(one, other, strict=False):
        if a != b:
            return
        yield a


def _quoted(text: str, start: int = 0) -> str:
    if not text:
        return "nothing"
    end = "…" if len(text) > start + _SHOWN else ""
    return f"“{'…' if start else ''}{text[start : start + _SHOWN]}{end}”"


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
        needed = ((grader, grader.verdicts(sample)) for grader in graders)
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
    prints = [AS_RECORDED, content, [grader.fingerprint for grader in graders]]
    return AsRecordedGrader(
        name,
        last_assistant,
        _nothing,
        "conversation",
        fingerprint(prints),
        label=label,
        waits=any(grader.waits for grader in graders),
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
    return compared.difference.turn + 1 == compared.recorded.answered_count == len(trajectory.turns)


def _grade(score: Score) -> RecordedGrade:
    return RecordedGrade(turn=score.turn, value=score.value, reason=score.reason)
