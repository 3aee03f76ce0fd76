"""`Replay`: a recording that answers the tools of a conversation, except those that are live by name."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from vivavoce.comparing.json_values import same_json
from vivavoce.records.recording import Recording
from vivavoce.targets.target import Opening
from vivavoce.targets.tools import World
from vivavoce.tools.answer import Handler
from vivavoce.tools.recordings import Recordings

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
        recorded = (one for one in world.made if one.source == "recording" and one.name in stateful)
        if all(one.changed_state is False for one in recorded):
            return world.state
        for held in self.recording.conversations.get(opening.sample_id, ()):
            calls = [
                (one.name, one.arguments)
                for one in self.recording.calls
                if (one.sample, one.trial) == (held.sample, held.trial)
            ]
            same = len(calls) == len(world.made) and all(
                made.name == name and same_json(dict(made.arguments), arguments)
                for made, (name, arguments) in zip(world.made, calls, strict=True)
            )
            if same:
                return held.turns[-1].state
        return None
