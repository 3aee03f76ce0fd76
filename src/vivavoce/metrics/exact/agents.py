"""Metrics of several agents: are handoffs to the right one and for a reason, and do all use tools of their own?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack, cast

from vivavoce.comparing.text import is_blank
from vivavoce.errors import UsageError
from vivavoce.messages import AIMessage, ToolCall
from vivavoce.metrics.agent_tools import ToolsByAgent, read_tools_by_agent, tools_of_agents
from vivavoce.metrics.config import MetricConfig, ScoreType
from vivavoce.metrics.exact.speakers import Utterance, numbered
from vivavoce.metrics.measuring import ExactMetric, Measured, MeasuringOptions, Part
from vivavoce.metrics.result import Evidence
from vivavoce.metrics.transcript import named
from vivavoce.records.agents import Agents, Handoff
from vivavoce.records.score import Finding, turn_label

_SHOWN = 3
"""Faults that a reason tells; the findings have all."""
_NO_AGENTS = "the messages name no agents"


def _config(metric: ExactMetric, name: str, description: str, score_type: ScoreType = "numeric") -> MetricConfig:
    threshold = 1.0 if score_type == "numeric" else None
    kind = type(metric).__name__
    return MetricConfig(class_name=kind, name=name, description=description, score_type=score_type, threshold=threshold)


@dataclass(slots=True)
class _Scene:
    """The agents of a whole conversation, and which of its messages and calls are in the part that is measured."""

    part: Part
    agents: Agents
    turns: dict[int, int | None] = field(init=False)
    calls: dict[int, str] = field(init=False)

    def __post_init__(self) -> None:
        of_part = {id(message): turn for turn, message in numbered(self.part)}
        messages = self.agents.messages
        self.turns = {at: of_part[id(one)] for at, one in enumerate(messages) if id(one) in of_part}
        made = (call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls or ())
        self.calls = {id(call): f"c{number}" for number, call in enumerate(made)}

    def finding(self, place: int, call: ToolCall | None, kind: str, verdict: str, what: str) -> Finding:
        """Return what is wrong with a message or with one of its calls."""
        turn = self.turns[place]
        if call is not None:
            evidence = (Evidence(text=self.calls[id(call)], kind="call", turn=turn, verified=True),)
        else:
            said = self.agents.messages[place].text
            evidence = (Utterance(turn, said).quote(),) if said else ()
        data = {"message": place, "agent": self.agents.acting[place]}
        return Finding(kind=kind, what=what, verdict=verdict, state="fail", turn=turn, evidence=evidence, data=data)


class HandoffsMetric(ExactMetric):
    """Gives the share of handoffs between agents that have none of these faults.

    - `to itself`: an agent hands over to itself.
    - `nobody`: the receiver is not in `agents`, the names of all agents; checked only if they are given.
    - `another took over`: the receiver is an agent of the conversation, and in the same turn another one acts instead.
    - `needless`: the receiver hands back to the sender at once, without a word to the user and without another call.
    - `without context`: the call that hands over lacks a value for an argument that `carry` names.

    A handoff is a call such as `transfer_to_refunds` or `transfer_to_agent`, or what the log states as one; another
    agent simply going on, as in a group chat, is not one. `details["handoffs"]` has each with its turn, and
    `details["agents"]` those who act. Needs a handoff. From 0 to 1; only 1 passes unless `threshold` says otherwise.
    Known failures: a tool that is named like a handoff, and a reason given only in text.
    """

    def __init__(
        self, *, agents: Sequence[str] = (), carry: Sequence[str] = (), **options: Unpack[MeasuringOptions]
    ) -> None:
        super().__init__(_config(self, "handoffs", "What share of the handoffs is sound?"), **options)
        self.agents = _names(self.name, "agents", agents)
        self.carry = _names(self.name, "carry", carry)

    @property
    def parameters(self) -> Mapping[str, object]:
        """The agents, and what a handoff has to carry."""
        return {"agents": self.agents, "carry": self.carry}

    def measure(self, part: Part) -> Measured:
        """Look at each handoff."""
        scene = _Scene(part, Agents(part.metric_input.messages, self.agents))
        every = scene.agents.handoffs()
        judged = [one for one in every if one.how != "unstated" and one.message in scene.turns]
        if not judged:
            return Measured(None, "nobody hands over" if scene.agents.names else _NO_AGENTS)
        faults = [(one, list(self._faults(one, every, scene))) for one in judged]
        findings = [found for _, each in faults for found in each]
        sound = sum(not each for _, each in faults)
        details = {"handoffs": [_told(one, scene) for one in judged], "agents": scene.agents.names}
        reason = f"{sound} of {len(judged)} handoffs {'is' if sound == 1 else 'are'} sound"
        return Measured(sound / len(judged), _with_faults(reason, findings), details=details, findings=findings)

    def _faults(self, one: Handoff, every: Sequence[Handoff], scene: _Scene) -> Iterator[Finding]:
        agents, receiver = scene.agents, one.receiver
        who = f"{named(one.sender)} hands" if one.sender else "one agent hands"

        def fault(verdict: str, what: str) -> Finding:
            return scene.finding(one.message, one.call, "handoff", verdict, what)

        if receiver == one.sender:
            yield fault("to itself", f"{who} over to itself")
            return
        if self.agents and agents.find_agent(receiver) is None:
            yield fault("nobody", f"{who} over to {named(receiver)}, which is not an agent")
        following = _following(one, agents)
        if following not in (None, receiver) and receiver in agents.names:
            yield fault("another took over", f"{who} over to {named(receiver)}, but {named(following or '')} continues")
        elif _is_returned(one, every, agents):
            yield fault("needless", f"{who} over to {named(receiver)}, which hands back without doing anything")
        if lacking := [name for name in self.carry if one.call is not None and not _argument(one.call, name)]:
            yield fault("without context", f"{who} over to {named(receiver)} without {', '.join(lacking)}")


class OwnToolsMetric(ExactMetric):
    """Gives the share of calls of tools that the calling agent has.

    `tools` are those of each agent, as names or schemas: `{triage: [find_order], refunds: [refund_order]}`; without
    them, those that the log has. Calls by agents with unknown tools do not count, and neither do handoffs. Each
    call of a tool that its agent does not have is a finding, which says who has it. Needs a call of an agent whose
    tools are known. From 0 to 1; only 1 passes unless `threshold` says otherwise. Known failure: a log that lists fewer
    tools than an agent had.
    """

    def __init__(self, *, tools: ToolsByAgent | None = None, **options: Unpack[MeasuringOptions]) -> None:
        super().__init__(
            _config(self, "own_tools", "What share of the calls is of a tool that its agent has?"), **options
        )
        self.tools = read_tools_by_agent({} if tools is None else tools, self.name)

    @property
    def parameters(self) -> Mapping[str, object]:
        """The tools of each agent."""
        return {"tools": self.tools}

    def measure(self, part: Part) -> Measured:
        """Compare each call with the tools of its agent."""
        scene = _Scene(part, Agents(part.metric_input.messages, [*self.tools]))
        tools = tools_of_agents(self.tools, scene.agents)
        if not tools:
            return Measured(None, "nobody says which tools the agents have" if scene.agents.names else _NO_AGENTS)
        over = {id(one.call) for one in scene.agents.handoffs()}
        count, findings = 0, list[Finding]()
        for place in scene.turns:
            message, agent = scene.agents.messages[place], scene.agents.acting[place]
            if not isinstance(message, AIMessage) or agent not in tools:
                continue
            for call in message.tool_calls or ():
                if id(call) in over:
                    continue
                count += 1
                if call.name not in tools[agent]:
                    what = f"{named(agent)} calls {named(call.name)}, {_whose(call.name, tools)}"
                    findings.append(scene.finding(place, call, "call", "not its tool", what))
        if not count:
            return Measured(None, "no agent whose tools are known calls one")
        reason = f"{count - len(findings)} of {count} calls are of a tool that the agent has"
        return Measured(1 - len(findings) / count, _with_faults(reason, findings), findings=findings)


class LastAgentMetric(ExactMetric):
    """Says whether a conversation ends with the right agent: `expected`, a name or several.

    That is the agent that acts last, or whom it hands over to at the end, such as a person. Needs named agents.
    True or false. Known failure: a handoff stated only in text.
    """

    def __init__(self, *, expected: str | Sequence[str], **options: Unpack[MeasuringOptions]) -> None:
        config = _config(self, "last_agent", "Does the conversation end with the right agent?", "binary")
        super().__init__(config, **options)
        self.expected = _names(self.name, "expected", [expected] if isinstance(expected, str) else expected)
        if not self.expected:
            raise UsageError(f"{self.name}: set expected to an agent name")

    @property
    def parameters(self) -> Mapping[str, object]:
        """The expected agents."""
        return {"expected": self.expected}

    def measure(self, part: Part) -> Measured:
        """Find who has the conversation at the end."""
        agents = Agents(part.messages, self.expected)
        last = last_agent(agents)
        if last is None:
            return Measured(None, _NO_AGENTS)
        right = agents.find_agent(last) in {agents.find_agent(one) for one in self.expected}
        wanted = "" if right else f", not with {' or '.join(map(named, self.expected))}"
        return Measured(right, f"it ends with {named(last)}{wanted}", details={"last_agent": last})


def last_agent(agents: Agents) -> str | None:
    """Return who has the conversation at the end, None if no agent is named.

    That is the agent that acts last, or whoever gets it from that one, which may still finish its turn.
    """
    acts = [at for at, agent in enumerate(agents.acting) if agent is not None]
    if not acts:
        return None
    last, over = agents.acting[acts[-1]], [one for one in agents.handoffs() if one.how != "unstated"]
    if not over or over[-1].sender != last:
        return last
    after = agents.messages[over[-1].message : acts[-1] + 1]
    return last if any(message.role == "user" for message in after) else over[-1].receiver


def _names(metric: str, option: str, written: object) -> list[str]:
    found = cast("Sequence[object]", written) if isinstance(written, list | tuple) else [written]
    for one in found:
        if not isinstance(one, str) or not one.strip():
            raise UsageError(f"{metric}: {option} is a list of names; got {one!r:.80}")
    return [str(one) for one in found]


def _following(one: Handoff, agents: Agents) -> str | None:
    """Return the agent that acts next in the same turn, None where none does or the sender only finishes."""
    for place in range(one.message + 1, len(agents.messages)):
        message = agents.messages[place]
        if message.role == "user":
            return None
        if message.role == "assistant" and agents.acting[place] not in (None, one.sender):
            return agents.acting[place]
    return None


def _is_returned(one: Handoff, every: Sequence[Handoff], agents: Agents) -> bool:
    """Say whether the receiver hands back to the sender before it says anything or calls another tool."""
    back = next((other for other in every if other.message > one.message and other.how != "unstated"), None)
    if back is None or (back.sender, back.receiver) != (one.receiver, one.sender):
        return False
    for place in range(one.message + 1, back.message + 1):
        message = agents.messages[place]
        if message.role == "user":
            return False
        if isinstance(message, AIMessage) and agents.acting[place] == one.receiver:
            others = [call for call in message.tool_calls or () if call is not back.call]
            if not is_blank(message.words) or others:
                return False
    return True


def _argument(call: ToolCall, name: str) -> bool:
    """Say whether a call has a value for an argument; empty texts and lists are none."""
    try:
        value = call.args.get(name)
    except (ValueError, RecursionError):  # a model may have written invalid JSON, or nested it too deeply
        return False
    return value is not None and value not in ("", [], {}) and not (isinstance(value, str) and not value.strip())


def _told(one: Handoff, scene: _Scene) -> dict[str, Any]:
    turn = scene.turns[one.message]
    return {"from": one.sender, "to": one.receiver, "how": one.how, "turn": turn, "message": one.message}


def _whose(tool: str, tools: Mapping[str, frozenset[str]]) -> str:
    having = [named(agent) for agent, own in tools.items() if tool in own]
    return f"a tool of {' and '.join(having)}" if having else "which no agent has"


def _with_faults(reason: str, findings: Sequence[Finding]) -> str:
    told = [f"{turn_label(finding.turn)}: {finding.what}" for finding in findings[:_SHOWN]]
    more = [f"and {len(findings) - _SHOWN} more"] if len(findings) > _SHOWN else []
    return "; ".join([reason, *told, *more])
