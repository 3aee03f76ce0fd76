"""`Recordings` and `Replay`: the calls of a recording, from which the same calls are answered."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import JsonValue

from vivavoce.comparing.json_values import same_json
from vivavoce.errors import SuiteFault
from vivavoce.messages import ToolCall, ToolMessage
from vivavoce.metrics.exact.arguments import Arguments, show
from vivavoce.records.recording import UNRECORDED, RecordedCall, Recording, read_recording
from vivavoce.records.score import turn_label
from vivavoce.records.trajectory import outcome_of
from vivavoce.tools.answer import FAILED, Answer, Handler, ToolRequest, failure, result_text

if TYPE_CHECKING:
    from vivavoce.targets.target import Opening, World


_MAX_CALLS = 20
"""Recorded calls that a miss names."""


def recorded_call(
    sample: str, call: ToolCall, answer: ToolMessage, *, trial: int | None = None, turn: int | None = None
) -> RecordedCall | None:
    """Return a call with its answer as a recording, None where no tool was called."""
    notes = answer.metadata or {}
    try:
        arguments = call.args
    except (ValueError, RecursionError):
        return None
    state = outcome_of(answer)
    if state == "refused":
        return None
    failed = state == "failed" and answer.text.startswith(FAILED)
    outcome = {"error": answer.text.removeprefix(FAILED)} if failed else {"result": answer.text}
    place = {"sample": sample, "trial": trial, "turn": turn}
    about = {"name": call.name, "arguments": arguments, "changed_state": notes.get("changed_state")}
    about |= {"seconds": notes.get("seconds")}
    return RecordedCall.model_validate({**place, **about, **outcome})


class Recordings:
    """Recorded calls, from which the same calls are answered again; `place` is where they are from, in words.

    `advice` says what to do about a call that is not among them.
    """

    def __init__(self, calls: Iterable[RecordedCall], place: str, advice: str | None = None) -> None:
        self.place = place
        self.advice = advice or (
            "record it: let the tool be answered in a run, and write that with: "
            f"viva export RUN --format recordings --output {place}"
        )
        self._by_tool: dict[str, list[RecordedCall]] = {}
        for call in calls:
            self._by_tool.setdefault(call.name, []).append(call)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file.

        Raises:
            UsageError: it cannot be read, or a line is broken; it names file and line.
        """
        recording = read_recording(path)
        return cls(recording.calls, recording.place)

    def __len__(self) -> int:
        """Return how many calls are recorded."""
        return sum(map(len, self._by_tool.values()))

    async def answer(self, request: ToolRequest) -> Answer:
        """Return what was recorded for a tool and these arguments, preferably in the same row and trial.

        Of several, one after the other is returned, and then the last one again.

        Raises:
            SuiteFault: there is nothing.
        """
        fitting = [call for call in self._by_tool.get(request.name, ()) if _same(call.arguments, request.arguments)]
        fitting = [call for call in fitting if call.sample == request.opening.sample_id] or fitting
        if not fitting:
            turn = sum(message.role == "user" for message in request.history) - 1
            raise SuiteFault(
                f"{self.place} has no result of {request.name}({show(request.arguments)}), called in "
                f"{turn_label(max(turn, 0))}; {self.advice}",
                kind=UNRECORDED,
                evidence=self._nearest(request),
            )
        trials = {call.trial for call in fitting}
        trial = request.opening.trial if request.opening.trial in trials else fitting[0].trial
        fitting = [call for call in fitting if call.trial == trial]
        key = f"{self.place} {request.name}({show(request.arguments, 100_000)})"
        number = request.world.counts[key]
        request.world.counts[key] += 1
        return _answer(fitting[min(number, len(fitting) - 1)])

    def _nearest(self, request: ToolRequest) -> str:
        """Return the recorded calls that are most like one, a line for each; those of its tool, if there are any."""
        own = self._by_tool.get(request.name)
        if own is not None:
            return "\n".join(f"recorded: {text}" for text in _call_texts(own, request))
        others = [
            call for calls in self._by_tool.values() for call in calls if call.sample == request.opening.sample_id
        ]
        lines = [f"recorded in this row: {text}" for text in _call_texts(others, request)]
        names = ", ".join(self._by_tool) or "none"
        return "\n".join([f"no call of this tool is recorded; recorded tools: {names}", *lines])


def _answer(call: RecordedCall) -> Answer:
    """Return what the model reads."""
    plain = Answer(result_text(call.result), "recording") if call.error is None else failure(call.error, "recording")
    return replace(plain, changed_state=call.changed_state)


def _call_texts(calls: Sequence[RecordedCall], request: ToolRequest) -> list[str]:
    """Return calls in words, first those of the same row and with the most equal arguments."""

    def unlike(call: RecordedCall) -> tuple[int, bool]:
        shared = [name for name in call.arguments if name in request.arguments]
        equal = sum(same_json(call.arguments[name], request.arguments[name]) for name in shared)
        return -equal, call.sample != request.opening.sample_id

    texts = (f"{call.name}({show(call.arguments)})" for call in sorted(calls, key=unlike))
    return list(dict.fromkeys(texts))[:_MAX_CALLS]


def _same(recorded: dict[str, JsonValue], called: Arguments) -> bool:
    return same_json(recorded, dict(called))


_ADVICE = "record it anew, or name the tool with --live, to have it answered for real"


@dataclass(frozen=True)
class Replay:
    """A recording, and the names of tools that their handlers answer all the same."""

    recording: Recording
    live: frozenset[str] = frozenset()
    recordings: Recordings = field(init=False)

    def __post_init__(self) -> None:
        calls, place = self.recording.calls, self.recording.place
        object.__setattr__(self, "recordings", Recordings(calls, place, _ADVICE))

    def handler(self, name: str) -> Handler | None:
        """Return what answers a tool from the recording, None for a tool that is live."""
        return None if name in self.live else self.recordings

    def state(self, opening: Opening, world: World, stateful: Collection[str]) -> dict[str, Any] | None:
        """Return the state of the row at the end, None where it is not known.

        A recorded result changes nothing. So where a call of a `stateful` tool was answered by one, and had changed the
        state when it was recorded, the state is the recorded one of a conversation with the same calls in the same
        order, if there is one.
        """
        recorded = (call for call in world.made if call.source == "recording" and call.name in stateful)
        if all(call.changed_state is False for call in recorded):
            return world.state
        for conversation in self.recording.conversations.get(opening.sample_id, ()):
            calls = [
                (call.name, call.arguments)
                for call in self.recording.calls
                if (call.sample, call.trial) == (conversation.sample, conversation.trial)
            ]
            same = len(calls) == len(world.made) and all(
                made_call.name == name and same_json(dict(made_call.arguments), arguments)
                for made_call, (name, arguments) in zip(world.made, calls, strict=True)
            )
            if same:
                return conversation.turns[-1].state
        return None
