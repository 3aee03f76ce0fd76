"""What an assertion looks at, and what it says."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from vivavoce.comparing.text import FoldedText, is_blank
from vivavoce.grading.extractors import View
from vivavoce.grading.words import may_say, says
from vivavoce.messages import HumanMessage, ToolCall
from vivavoce.records.agents import Agents
from vivavoce.records.call_states import CallRecord, call_records, group_by_message
from vivavoce.records.score import Score
from vivavoce.records.trajectory import answer_of_turn, assistant_texts


@dataclass
class Scene:
    """The turns that an assertion is about, of which the first has the index `first`, and what was said in them.

    `results` are what metrics say about them, by the `id` of the assertion that asks.
    """

    view: View
    first: int = 0
    results: dict[int, Score] = field(default_factory=dict[int, Score])

    @cached_property
    def texts(self) -> list[str]:
        """What the assistant says, message by message."""
        return assistant_texts(self.view.messages)

    @cached_property
    def said(self) -> str:
        """All that the assistant says."""
        return "\n".join(self.texts)

    @cached_property
    def folded(self) -> FoldedText:
        """All that the assistant says, to be searched in any case and encoding."""
        return FoldedText(self.said)

    def says(self, wanted: str | float, locale: str | None = None) -> bool:
        """Return whether the assistant says some words, in any case and encoding, or a number."""
        return says(self.folded, wanted, locale)

    def may_say(self, wanted: str | float, locale: str | None = None) -> bool:
        """Return whether the assistant says some words, or may state a number."""
        return may_say(self.folded, wanted, locale)

    @property
    def silent(self) -> bool:
        """Whether the assistant says nothing."""
        return is_blank(self.said)

    @property
    def answer(self) -> str:
        """The answer to the last message of the user; empty where the assistant gives none."""
        return answer_of_turn(self.view.messages)

    @cached_property
    def records(self) -> list[CallRecord]:
        """The tool calls, each with its result and its state."""
        return call_records(self.view.messages)

    @cached_property
    def steps(self) -> list[list[CallRecord]]:
        """The tool calls of each message that makes any."""
        return group_by_message(self.records)

    @property
    def tried(self) -> list[list[ToolCall]]:
        """The tool calls of each message that makes any, those that were refused among them."""
        return [[record.call for record in step] for step in self.steps]

    @cached_property
    def calls(self) -> list[ToolCall]:
        """The tool calls."""
        return [record.call for record in self.records]

    @cached_property
    def agents(self) -> Agents:
        """The agents that speak and act."""
        return Agents(self.view.messages)

    def made_by(self, agent: str, call: ToolCall) -> bool:
        """Say whether one of the calls is that of an agent."""
        return self.agents.of_call(call) == (self.agents.known(agent) or agent)


@dataclass(frozen=True, slots=True)
class Held:
    """Whether an assertion holds, how much of it from 0 to 1, and what was found; empty where nothing was wrong."""

    passed: bool
    value: float
    found: str = ""


def scene_of(view: View, turn: int | None) -> Scene | None:
    """Return what assertions about a turn, or with None about all turns after the history, look at.

    For a turn that was not held it is None.
    """
    if turn is None:
        return Scene(view.own, view.history_turns)
    if turn >= len(view.turns):
        return None
    messages = view.turns[turn]
    start = next((place for place, one in enumerate(messages) if isinstance(one, HumanMessage)), 0)
    return Scene(View([messages[start:]], view.state, view.seconds[turn : turn + 1], view.test, view.trial), turn)


def held_unless(found: str) -> Held:
    """Return whether an assertion holds that has no part that holds alone: unless something was found."""
    return Held(False, 0.0, found) if found else _HELD


_HELD = Held(True, 1.0)
