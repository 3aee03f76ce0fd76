"""Agents: which of several acts for the assistant, with which tools, and when one hands the conversation over.

An agent is known by the `name` of the messages of the assistant. Spellings that differ in case, spaces and punctuation
alone are one agent, called as it is first. A result belongs to the agent that made the call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from vivavoce.comparing.text import fold
from vivavoce.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from vivavoce.records.score import Evidence, Finding
from vivavoce.records.trajectory import outcome_of, tool_results

How = Literal["call", "stated", "unstated"]
"""A call of a tool hands over, the log states it without one, or another agent simply goes on."""

_BY_NAME = re.compile(r"(?:^|.*[^a-z])(?:transfer|hand_?off|hand_?over)(?:_back)?_to_(.+)", re.IGNORECASE | re.DOTALL)
_BY_ARGUMENT = frozenset(("transfertoagent", "handofftoagent", "handoff", "transfertoagenttool"))
_ARGUMENTS = ("agent_name", "to_agent", "agent", "target")


@dataclass(frozen=True, slots=True)
class Handoff:
    """`sender` hands the conversation over to `receiver`, which may be no agent of the conversation.

    `message` is the index, from 0, of the message that does; for one that is unstated, of the first of the receiver.
    `sender` is None where the log does not name it. `call` is the call that hands over, if one does.
    """

    message: int
    sender: str | None
    receiver: str
    how: How
    call: ToolCall | None = None


def key_of(name: str) -> str:
    """Return what the spellings of a name share."""
    plain = fold(name)
    return "".join(filter(str.isalnum, plain)) or plain


def several(messages: Iterable[AnyMessage]) -> bool:
    """Say whether more than one agent speaks or acts."""
    first: str | None = None
    for message in messages:
        if message.role == "assistant" and message.name and message.name != first:
            if first is not None and key_of(message.name) != key_of(first):
                return True
            first = first or message.name
    return False


def receiver_named(call: ToolCall) -> str | None:
    """Return the agent that a call would hand over to, as it names it; None for a call of another tool.

    That is `transfer_to_refunds` and the like, or `transfer_to_agent(agent_name="refunds")`. A tool with such a name
    may do something else, such as `transfer_to_savings`.
    """
    if key_of(call.name) in _BY_ARGUMENT:
        return _argument(call)
    match = _BY_NAME.fullmatch(call.name)
    return match[1] if match else None


def _argument(call: ToolCall) -> str | None:
    try:
        known = call.args
    except (ValueError, RecursionError):  # a model may have written invalid JSON, or nested it too deeply
        return None
    return next((value for name in _ARGUMENTS if isinstance(value := known.get(name), str) and value.strip()), None)


@dataclass
class Agents:
    """The agents of one conversation.

    `acting` has for each message the agent that it belongs to, None where the log names none and for what others say.
    `names` are the agents in the order in which they come. `agent_names` are further ones that could have been.
    """

    messages: Sequence[AnyMessage]
    agent_names: Sequence[str] = ()
    acting: list[str | None] = field(init=False)
    names: list[str] = field(init=False)
    _known: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self._known = {}
        self.acting = []
        agent: str | None = None
        for message in self.messages:
            if message.role == "assistant":
                agent = self._known.setdefault(key_of(message.name), message.name) if message.name else None
            self.acting.append(agent if message.role in ("assistant", "tool") else None)
        self.names = list(self._known.values())
        for name in self.agent_names:
            self._known.setdefault(key_of(name), name)

    @property
    def several(self) -> bool:
        """Whether more than one of them speaks or acts."""
        return len(self.names) > 1

    def find_agent(self, name: str) -> str | None:
        """Return the agent that is called so, in whatever spelling and with or without the word agent; else None."""
        key = key_of(name)
        others = (key.removesuffix("agent"), f"{key}agent")
        return next((self._known[spelling] for spelling in (key, *others) if spelling in self._known), None)

    def tools(self) -> dict[str, frozenset[str]]:
        """Return the tools of each agent as far as the log tells: all that any of its messages says that it had."""
        tools_by_agent: dict[str, frozenset[str]] = {}
        for message, agent in zip(self.messages, self.acting, strict=True):
            if agent is not None and isinstance(message, AIMessage) and message.agent_tools is not None:
                tools_by_agent[agent] = tools_by_agent.get(agent, frozenset()).union(message.agent_tools)
        return tools_by_agent

    def handoffs(self) -> list[Handoff]:
        """Return every handoff in order.

        A call with the name of such a tool counts if its receiver is one of the agents or the tool takes any agent, and
        unless its result is an error.
        """
        answers = {id(call): answer for call, answer in tool_results(self.messages)}
        handoffs: list[Handoff] = []
        open_to: str | None = None
        reported_receiver: str | None = None
        speaking: str | None = None
        for place, message in enumerate(self.messages):
            if not isinstance(message, AIMessage):
                reported_receiver = None if message.role == "user" else reported_receiver
                continue
            agent = self.acting[place]
            if agent is not None and speaking not in (None, agent):
                if open_to != agent:
                    handoffs.append(Handoff(place, speaking, agent, "unstated"))
                open_to = reported_receiver = None
            speaking = agent or speaking
            handoff = self._handoff(place, message, answers)
            if (
                handoff is not None and reported_receiver != handoff.receiver
            ):  # else it is said again, as by a call and a message
                handoffs.append(handoff)
                open_to = reported_receiver = handoff.receiver
        return handoffs

    def handoff_after(self, message: AnyMessage) -> Handoff | None:
        """Return the handoff that a reader sees after one of the messages, None where there is none.

        That is the one that hands over, with the results of its calls; of one that is unstated, the one before.
        """
        return self._told_after.get(id(message))

    @cached_property
    def _told_after(self) -> dict[int, Handoff]:
        handoffs_by_message: dict[int, Handoff] = {}
        for handoff in self.handoffs():
            place = handoff.message - (handoff.how == "unstated")
            while place + 1 < len(self.messages) and self.messages[place + 1].role == "tool":
                place += 1
            handoffs_by_message[id(self.messages[place])] = handoff
        return handoffs_by_message

    def _handoff(self, place: int, message: AIMessage, answers: Mapping[int, ToolMessage | None]) -> Handoff | None:
        sender, stated = self.acting[place], message.handoff_to
        call, receiver = self._handing_over(message, answers)
        if stated:
            return Handoff(place, sender, self.find_agent(stated) or stated, "stated" if call is None else "call", call)
        return None if receiver is None else Handoff(place, sender, receiver, "call", call)

    def _handing_over(
        self, message: AIMessage, answers: Mapping[int, ToolMessage | None]
    ) -> tuple[ToolCall | None, str | None]:
        """Return the first call of a message that hands over, and to whom."""
        for call in message.tool_calls or ():
            receiver_name, answer = receiver_named(call), answers.get(id(call))
            if receiver_name is None or (answer is not None and outcome_of(answer) != "succeeded"):
                continue
            receiver = self.find_agent(receiver_name) or (receiver_name if key_of(call.name) in _BY_ARGUMENT else None)
            if receiver is not None or message.handoff_to:
                return call, receiver
        return None, None

    def of_finding(self, finding: Finding, turn: int | None = None) -> str | None:
        """Return the agent that a finding is about, None if it does not tell, or is about somebody else.

        `turn` is that of the score that the finding belongs to, None for one of the whole conversation. A finding names
        its agent, or the index of a message, or has verified evidence; else it is the one that acts last in its turn.
        """
        if (
            isinstance(agent_name := finding.data.get("agent"), str)
            and (agent := self.find_agent(agent_name)) is not None
        ):
            return agent
        place = finding.data.get("message")
        if isinstance(place, int) and 0 <= place < len(self.acting) and turn in (None, finding.turn):
            return self.acting[place]
        for evidence in finding.evidence:
            if evidence.verified and (agent := self._find_cited_agent(evidence, turn)) is not None:
                return agent
        last = finding.turn if turn is None else turn
        return None if last is None else self.last_in(last)

    def _find_cited_agent(self, evidence: Evidence, turn: int | None) -> str | None:
        """Return the agent whose words or call are evidence; what a turn was judged by alone has its own numbers."""
        if evidence.kind == "call":
            return self.by_call.get(evidence.text) if turn in (None, evidence.turn) else None
        places = self.of_turn(evidence.turn if turn is None else turn)
        return next((self.acting[at] for at in places if evidence.text in self.messages[at].text), None)

    def of_call(self, call: ToolCall) -> str | None:
        """Return the agent that made one of the calls of the messages."""
        return self._of_calls.get(id(call))

    @cached_property
    def _of_calls(self) -> dict[int, str | None]:
        return {
            id(call): self.acting[place]
            for place, message in enumerate(self.messages)
            for call in (message.tool_calls or () if isinstance(message, AIMessage) else ())
        }

    @cached_property
    def by_call(self) -> dict[str, str | None]:
        """Return the agent of each call, by its reference, `c0` and on."""
        of_calls = (
            self.acting[place]
            for place, message in enumerate(self.messages)
            for _ in (message.tool_calls or () if isinstance(message, AIMessage) else ())
        )
        return {f"c{number}": agent for number, agent in enumerate(of_calls)}

    @cached_property
    def _turns(self) -> dict[int | None, list[int]]:
        places_by_turn: dict[int | None, list[int]] = {}
        turn: int | None = None
        for place, message in enumerate(self.messages):
            if message.role == "user":
                turn = 0 if turn is None else turn + 1
            places_by_turn.setdefault(turn, []).append(place)
        return places_by_turn

    def of_turn(self, turn: int | None) -> list[int]:
        """Return the indexes of the messages of a turn, None for what precedes the first user message."""
        return self._turns.get(turn, [])

    def in_turn(self, turn: int | None) -> list[str]:
        """Return the agents that act in a turn, in the order in which they come."""
        return list(dict.fromkeys(agent for at in self.of_turn(turn) if (agent := self.acting[at]) is not None))

    def last_in(self, turn: int | None) -> str | None:
        """Return the agent that acts last in a turn."""
        return next((agent for at in reversed(self.of_turn(turn)) if (agent := self.acting[at]) is not None), None)
