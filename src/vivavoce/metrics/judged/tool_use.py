"""`ToolUseMetric`: are the tool calls needed, of the right tool, with the right arguments, and told truthfully?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar, Unpack

from pydantic import BaseModel, Field, model_validator

from vivavoce.messages import AIMessage
from vivavoce.metrics.agent_tools import ToolsByAgent, read_tools_by_agent
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evidence import EvidenceRule
from vivavoce.metrics.judging import JudgedMetric, JudgingOptions, answered
from vivavoce.metrics.prompts import Wording
from vivavoce.metrics.question import Piece, Question, Shape, Verdict, limited, merged
from vivavoce.metrics.transcript import Transcript, named
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike
from vivavoce.records.agents import Agents, several
from vivavoce.records.score import Finding
from vivavoce.safe_text import quoted

QUESTIONS = ("needed", "right_tool", "right_arguments", "truthful")
"""The questions about each call; a call is right if all are answered yes."""
WRONG = {
    "needed": "not needed",
    "right_tool": "the wrong tool",
    "right_arguments": "wrong arguments",
    "truthful": "its result is misreported",
}
"""The words for a call where the answer is no."""
OWN_TOOLS = (
    "\nJudge a call by the tools of the agent that makes it, and not by those that another one has: "
    "a handoff to whoever has the tool is the right call."
)
"""How the calls of several agents are judged."""


class Call(Shape):
    """The verdict on one call, by its reference."""

    call: str
    evidence: list[str]
    needed: bool
    right_tool: bool
    right_arguments: bool
    truthful: bool


class Missing(Shape):
    """A call that was needed and never made."""

    what: str
    evidence: list[str] = Field(min_length=1)


class ToolUseReply(Shape):
    """What the judge answers; a subclass knows which calls it was asked about."""

    expected: ClassVar[tuple[str, ...]] = ()

    calls: list[Call]
    missing: list[Missing]
    reasoning: str
    confidence: float = Field(ge=0, le=1)

    @model_validator(mode="after")
    def _each_once(self) -> ToolUseReply:
        answered = [call.call for call in self.calls]
        if sorted(answered) != sorted(self.expected):
            expected_text = ", ".join(self.expected) or "none"
            raise ValueError(f"judge each of these calls once: {expected_text}; got {', '.join(answered) or 'none'}")
        return self


@lru_cache(256)
def tool_use_reply(calls: tuple[str, ...]) -> type[ToolUseReply]:
    """Return the class of an answer about these calls."""
    if not calls:
        return ToolUseReply
    shape = limited(ToolUseReply, "calls", Call, "call", calls)
    shape.expected = calls
    return shape


class ToolUseMetric(JudgedMetric):
    """Judges every tool call, and which are missing; passes from `threshold` (0.7) up.

    A call is right when it was needed, of the right tool, with the right arguments, and what the assistant says of its
    result is true. The score is the share of right calls among those made and those missing, 0 to 1; the share for each
    of the four questions is in `extra["shares"]`. `tools` are the tools the assistant has, as JSON schemas in any
    form: without them only tools that were called are known. With several agents each is judged by its own tools: give
    `tools` by the names of the agents, as schemas or names; without them the tools in the log count.

    It is skipped where no tool was called, unless `tools` is given: then the judge is asked whether one was
    missing, and it is skipped where none was; deepeval's ToolUse scores that 0. It takes one call; comparing with the
    calls you expect takes none: use `trajectory_match` and the like for that.

    Known failure: whether a call that is missing was needed is taken from the conversation and its system messages.
    """

    template: ClassVar[str] = "judged/tool_use.jinja"
    evidence_rule: ClassVar[EvidenceRule] = EvidenceRule(absence="a call is right where nothing is wrong with it")
    of_assistant: ClassVar[bool] = True
    own_variables: ClassVar[frozenset[str]] = frozenset(("tools", "calls"))
    nothing: ClassVar[str] = "no tool was called, and none was needed"

    def __init__(
        self,
        model: ModelLike | None = None,
        *,
        tools: Sequence[Mapping[str, Any]] | ToolsByAgent = (),
        **options: Unpack[JudgingOptions],
    ) -> None:
        self.tools = (
            read_tools_by_agent(tools, "tool_use") if isinstance(tools, Mapping) else [dict(tool) for tool in tools]
        )
        config = MetricConfig(
            class_name=type(self).__name__,
            name="tool_use",
            description="Are the tool calls needed, right, and told truthfully, and is none missing?",
            threshold=0.7,
        )
        super().__init__(config, model, **options)

    @property
    def parameters(self) -> Mapping[str, object]:
        """The tools."""
        return {"tools": self.tools}

    def inapplicable(self, metric_input: MultiTurnEvaluationInput) -> str | None:
        """Say why this conversation cannot be judged, None when it can."""
        if not self.shown.tools:
            return "the tool calls are left out of what the judge sees"
        if reason := super().inapplicable(metric_input):
            return reason
        called = any(isinstance(message, AIMessage) and message.tool_calls for message in metric_input.messages)
        known = self.tools or _told(metric_input)
        return None if called or known else "no tool was called, and tools= names none that could have been"

    def question(
        self, metric_input: MultiTurnEvaluationInput, written: Transcript, piece: Piece
    ) -> tuple[type[BaseModel], Mapping[str, object]] | None:
        """Return the class of an answer about the calls of a piece, and these calls; None where there are none.

        Where the tools are known, a piece without calls is judged too: one may be missing.
        """
        judged = answered(written, piece)
        calls = tuple(reference for reference, turn in written.calls.items() if turn in judged)
        if not calls and not (judged and (self.tools or _told(metric_input))):
            return None
        return tool_use_reply(calls), {"tools": self.tools, "calls": Wording(", ".join(calls))}

    def about_agents(self, metric_input: MultiTurnEvaluationInput) -> str:
        """Return which tools each agent has, as far as that is known, and how to judge by them."""
        if isinstance(self.tools, Mapping):
            return OWN_TOOLS
        lines = [f"\nTools of {named(agent)}: {quoted(sorted(each))}" for agent, each in _told(metric_input).items()]
        return "".join(lines) + OWN_TOOLS

    def read(self, reply: ToolUseReply, question: Question) -> Verdict:
        """Return the share of right calls."""
        calls = [_finding(question, call) for call in reply.calls]
        missing = [
            question.finding("missing call", call.what, "missing", "fail", call.evidence) for call in reply.missing
        ]
        return self._scored(Verdict(None, reply.reasoning, reply.confidence, [*calls, *missing]))

    def merge(self, verdicts: Sequence[Verdict]) -> Verdict:
        """Return the share over the calls of all pieces."""
        return self._scored(merged(None, verdicts))

    def _scored(self, verdict: Verdict) -> Verdict:
        count = len(verdict.findings)
        calls = [finding.data for finding in verdict.findings if finding.kind == "call"]
        shares = {name: sum(call[name] for call in calls) / len(calls) for name in QUESTIONS} if calls else {}
        score = sum(finding.state == "pass" for finding in verdict.findings) / count if count else None
        reasoning = verdict.reasoning if count else self.nothing
        return replace(verdict, score=score, reasoning=reasoning, extra={"shares": shares}, turns=max(1, count))


def _told(metric_input: MultiTurnEvaluationInput) -> Mapping[str, frozenset[str]]:
    """Return the tools of each of several agents, as far as the log tells."""
    return Agents(metric_input.messages).tools() if several(metric_input.messages) else {}


def _finding(question: Question, call: Call) -> Finding:
    """Return the finding about a call; a wrong one is evidence itself."""
    answers = call.model_dump(include=set(QUESTIONS))
    if _right(call):
        return question.finding("call", _about(call), "right", "pass", call.evidence, data=answers)
    return question.finding("call", _about(call), "wrong", "fail", [call.call, *call.evidence], data=answers)


def _about(call: Call) -> str:
    """Return which call it is, and what is wrong with it."""
    wrong = [words for name, words in WRONG.items() if not getattr(call, name)]
    return f"{call.call}: {', '.join(wrong)}" if wrong else call.call


def _right(call: Call) -> bool:
    return all(getattr(call, name) for name in QUESTIONS)
