"""A test with everybody in it: a tester and a judge who say what is written here, and a bot that remembers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vivavoce.messages import AIMessage, AnyMessage, ToolCall
from vivavoce.metrics.judged.goal import GoalAchievementJudge
from vivavoce.models.model import ModelReply, Request
from vivavoce.penelope.agent import PenelopeAgent
from vivavoce.records.score import Usage
from vivavoce.targets.target import Opening, Reply
from vivavoce.testing import ScriptedModel
from vivavoce.testing.scripted import Scripted

NO_FAULT: dict[str, Any] = {
    "faults": [],
    "obstacle": "none",
    "obstacle_evidence": [],
    "reasoning": "It played its part.",
    "confidence": 0.9,
}


def call(tool: str, /, **arguments: Any) -> list[ToolCall]:
    return [ToolCall(name=tool, args=arguments)]


def say(text: str, **more: Any) -> list[ToolCall]:
    return call("send_message_to_target", message=text, **more)


def verdict(met: bool, confidence: float = 0.9, why: str = "so it is") -> dict[str, Any]:
    level = "fully_achieved" if met else "not_achieved"
    return {"achievement_level": level, "confidence": confidence, "reasoning": why, "evidence": []}


def attack(given: bool, asked: bool = True, **more: Any) -> dict[str, Any]:
    """Return an answer about an attack on a bot that says back what a player asked it."""
    quotes = {"given_evidence": ["You said"] if given else [], "asked_evidence": ["question 1"] if asked else []}
    words = {True: "yes", False: "no"}
    answer = {"given": words[given], "asked": words[asked], "reasoning": "It asks plainly.", "confidence": 0.9}
    return {**answer, **quotes, **more}


def simple(*met: bool, **more: Any) -> dict[str, Any]:
    evidence = more.pop("evidence", "")
    criteria = [
        {"criterion": f"c{i}", "met": is_met, "evidence": evidence if is_met else ""} for i, is_met in enumerate(met)
    ]
    answer = {"criteria_evaluations": criteria, "reasoning": "simply", "goal_achieved": all(met), "confidence": 0.8}
    return {**answer, **more}


def then_on(*replies: Scripted) -> Callable[[Request], Scripted]:
    """Return a script that says its last line again and again."""
    left = list(replies)
    return lambda request: left.pop(0) if len(left) > 1 else left[0]


def player(*replies: Scripted) -> ScriptedModel:
    """Return a model that takes these steps, and then asks one question after the other."""
    left, numbers = list(replies), iter(range(1, 1000))
    return ScriptedModel(lambda request: left.pop(0) if left else say(f"question {next(numbers)}"), "tester")


def judge(*replies: Scripted | bool) -> ScriptedModel:
    """Return a model that judges the goal like this, and then always like the last; it finds no fault of a tester."""
    next_reply = then_on(*(verdict(reply) if isinstance(reply, bool) else reply for reply in replies))

    def answer(request: Request) -> Scripted:
        if asks_for(request, "faults"):
            return NO_FAULT
        reply = next_reply(request)
        is_verdict = isinstance(reply, dict) and "achievement_level" in reply
        return attack(reply == verdict(True)) if asks_for(request, "given") and is_verdict else reply

    return ScriptedModel(answer, "judge")


def asks_for(request: Request, field: str) -> bool:
    """Say whether an answer has this field at its top."""
    return isinstance(request.schema, type) and field in request.schema.model_fields


def agent(model: ScriptedModel, judging: ScriptedModel, **options: Any) -> PenelopeAgent:
    fields: Any = {"goal_metric": GoalAchievementJudge(judging), **options}
    return PenelopeAgent(model, **fields)


class Priced(ScriptedModel):
    """Takes a cent for an answer."""

    async def complete(self, request: Request) -> ModelReply:
        reply = await super().complete(request)
        return ModelReply(reply.text, reply.parsed, usage=Usage(calls=1, cost=0.01))


class Bot:
    """A target that answers by `answer` and keeps what it was sent, session by session."""

    def __init__(
        self, answer: Callable[[str], str] = lambda text: f"You said: {text}", stateless: bool = False
    ) -> None:
        self.name, self.answer, self.stateless = "bot", answer, stateless
        self.sessions: list[BotSession] = []

    async def open(self, opening: Opening) -> BotSession:
        self.sessions.append(BotSession(self.answer, opening.conversation_id))
        return self.sessions[-1]

    async def close(self) -> None:
        pass


class BotSession:
    def __init__(self, answer: Callable[[str], str], name: str) -> None:
        self.answer, self.id = answer, name
        self.opening: Sequence[AnyMessage] = ()
        self.sent: list[list[str]] = []
        self.closed = False

    async def send(self, messages: Sequence[AnyMessage]) -> Reply:
        self.sent.append([message.text for message in messages])
        return Reply([AIMessage(content=self.answer(messages[-1].text))])

    async def state(self) -> dict[str, Any] | None:
        return {"sent": str(len(self.sent))}

    async def close(self) -> None:
        self.closed = True
