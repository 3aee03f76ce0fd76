"""`RecordingTarget`: answers a conversation with what was recorded of it, so that nothing live is needed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vivavoce.errors import SuiteFault, UsageError, did_you_mean
from vivavoce.messages import AnyMessage
from vivavoce.records.recording import UNRECORDED, RecordedConversation, RecordedReply, Recording, same_words
from vivavoce.records.score import shorten, turn_label
from vivavoce.targets.target import Opening, Reply


class RecordingTarget:
    """Gives in each turn of a row the recorded reply, as long as the user says what was said then.

    Trials get the recorded trials one after the other. `recorded_target` says whose replies are given, where several
    targets were recorded.

    Raises:
        UsageError: no reply is recorded, or it is not clear whose are to be given.
    """

    stateless = True

    def __init__(self, recording: Recording, name: str = "recording", recorded_target: str | None = None) -> None:
        self.name = name
        self.place = recording.place
        targets = list(dict.fromkeys(reply.target for reply in recording.replies))
        if not targets:
            raise UsageError(f"{recording.place} has only tool results and no replies of a target")
        if recorded_target is None and len(targets) > 1:
            raise UsageError(
                f"{recording.place} was recorded with {len(targets)} targets, {', '.join(targets)}; choose "
                f"one with recorded_target: {targets[0]}"
            )
        if recorded_target is not None and recorded_target not in targets:
            raise UsageError(
                f"{recording.place} has no target '{recorded_target}'{did_you_mean(recorded_target, targets)}"
            )
        chosen = recorded_target or targets[0]
        self._rows = {
            sample: [one for one in held if one.target == chosen] for sample, held in recording.conversations.items()
        }

    async def open(self, opening: Opening) -> RecordingSession:
        """Begin a conversation.

        Raises:
            SuiteFault: nothing is recorded of its row.
        """
        held = self._rows.get(opening.sample_id)
        if not held:
            hint = did_you_mean(opening.sample_id, self._rows)
            raise SuiteFault(f"{self.place} has no row '{opening.sample_id}'{hint}", kind=UNRECORDED)
        first = opening.trial % len(held)
        return RecordingSession(self.place, [*held[first:], *held[:first]])

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


@dataclass(frozen=True, slots=True)
class RecordingSession:
    """One conversation that is answered from recorded ones of its row, the preferred one first."""

    place: str
    held: Sequence[RecordedConversation]

    @property
    def id(self) -> str | None:
        """None: a recording has no name for a conversation."""
        return None

    @property
    def opening(self) -> Sequence[AnyMessage]:
        """The recorded messages before the first user message."""
        return self.held[0].turns[0].opening

    async def send(self, messages: Sequence[AnyMessage]) -> Reply:
        """Return the recorded reply to these messages.

        Raises:
            SuiteFault: nothing is recorded for them.
        """
        turn = sum(message.role == "user" for message in messages) - 1
        for one in self.held:
            if turn < len(one.turns) and _follows(one.turns[: turn + 1], messages):
                reply = one.turns[turn]
                if reply.error is not None:
                    raise self._nothing(one, turn, f"it was recorded with an error: {reply.error}")
                return Reply(list(reply.messages))
        raise self._nothing(self.held[0], turn, _difference(self.held[0], turn, messages))

    def _nothing(self, one: RecordedConversation, turn: int, why: str) -> SuiteFault:
        said = [f"{turn_label(index)}: {_text(reply)}" for index, reply in enumerate(one.turns)]
        return SuiteFault(
            f"{self.place} has no reply for {turn_label(turn)} of row '{one.sample}': {why}",
            kind=UNRECORDED,
            evidence="\n".join(["what the user said when it was recorded", *said]),
        )

    async def state(self) -> dict[str, Any] | None:
        """Return None: what was recorded changes nothing."""
        return None

    async def close(self) -> None:
        """Do nothing."""


def _follows(turns: Sequence[RecordedReply], messages: Sequence[AnyMessage]) -> bool:
    """Say whether messages are recorded turns up to the last one's answer."""
    recorded = [("user", turns[0].said)]
    for before, turn in itertools.pairwise(turns):
        recorded += [(message.role, message.content) for message in before.messages]
        recorded.append(("user", turn.said))
    said = [(message.role, message.content) for message in messages]
    return len(said) == len(recorded) and all(
        role == other and same_words(content, words)
        for (role, content), (other, words) in zip(said, recorded, strict=True)
    )


def _difference(one: RecordedConversation, turn: int, messages: Sequence[AnyMessage]) -> str:
    """Return where a conversation is another than the recorded one."""
    said = [message for message in messages if message.role == "user"]
    for index, (message, reply) in enumerate(zip(said, one.turns, strict=False)):
        if not same_words(message.content, reply.said):
            then = f"in {turn_label(index)} " if index < turn else ""
            return f"{then}the user says {_quoted(message.text)}, and said {_quoted(_text(reply))} then"
    if turn >= len(one.turns):
        return f"the recorded conversation has {len(one.turns)} turn{'s' * (len(one.turns) != 1)}"
    return "what was answered before is not as it was recorded"


def _text(reply: RecordedReply) -> str:
    return reply.said if isinstance(reply.said, str) else "a message of several parts"


def _quoted(text: str) -> str:
    return repr(shorten(" ".join(text.split()), 120))
