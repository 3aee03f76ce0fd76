"""Recorded conversations of testers with bots, led again: the user's lines, the bot's replies, the judge's answers.

The bots' faults are planted. The users' lines and the judges' answers were written by a reader in the model's place, in
some of them as a small hasty model would; the answers are put into the words of today's questions, and are as right or
wrong as they were. Models answer over HTTP.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from vivavoce.messages import ToolCall
from vivavoce.models.openai import OpenAIModel
from vivavoce.penelope.agent import PenelopeAgent
from vivavoce.penelope.result import TestResult
from vivavoce.targets.function import FunctionTarget
from vivavoce.testing import LoopbackServer

Wire = dict[str, Any]
Line = str | Wire | Sequence[ToolCall]
_COMMON: Wire = {"reasoning": "", "confidence": 0.95, "breaches": []}
NOTHING_WRONG: Wire = {"faults": [], "obstacle": "none", "obstacle_evidence": []}


def build_call(name: str, arguments: Wire, result: Any, number: int) -> list[Wire]:
    """Return a call of the bot with its result; `number` tells it from the others of the conversation."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"k{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "name": name, "content": json.dumps(result)},
    ]


def says(text: str, *before: list[Wire]) -> list[Wire]:
    """Return a reply of the bot: what it called before, and its words."""
    return [*(message for messages in before for message in messages), {"role": "assistant", "content": text}]


class Each:
    """What a judge says each time that it is asked for one thing; the last holds from then on."""

    def __init__(self, *answers: Any) -> None:
        self.answers = answers


@dataclass
class Recorded:
    """A recorded test: `user` and `bot` line by line, `judge` by what is asked for.

    `wanted` is what the judge thinks of each call that it is asked about, or of each by its reference;
    `contradiction` are the quotes for which it says no to each item of a checklist. A try that is held again goes on
    with the lines where the first one stopped; after the last line they begin anew.
    """

    goal: str
    user: Sequence[Line]
    bot: Sequence[list[Wire]]
    judge: Mapping[str, Any]
    wanted: str | Mapping[str, str] = "wanted"
    about: Mapping[str, Any] = field(default_factory=dict[str, Any])
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    contradiction: Sequence[str] = ()
    asked: list[Wire] = field(default_factory=list[Wire])

    async def held(self, target: FunctionTarget | None = None) -> TestResult:
        """Hold the test again, with the reader's answers; the bot is its own unless a `target` is given."""
        replies = _again(self.bot)
        async with LoopbackServer(self.answering()) as server:
            tester, judge = (OpenAIModel(name, base_url=server.base_url) for name in ("tester", "judge"))
            agent = PenelopeAgent(tester, judge=judge, enable_analysis_tools=False, **dict(self.options))

            def reply(message: str) -> list[Wire]:
                return next(replies)

            try:
                return await agent.aexecute_test(target or reply, goal=self.goal, **dict(self.about))
            finally:
                await agent.close()

    def answering(self) -> Callable[[Wire], Any]:
        """Return what answers the requests to the models, from the first line on."""
        lines = _again(self.user)
        answers = {what: _in_order(replies) for what, replies in self.judge.items()}

        def answer(body: Wire) -> Any:
            if body["model"] == "tester":
                return _step(next(lines))
            schema = body["response_format"]["json_schema"]["schema"]
            self.asked.append(body)
            items = re.findall(r'^- "?(\w+)"?:', body["messages"][-1]["content"], re.MULTILINE)
            return self._judge_request(schema, {**answers, "checks": self._checks(items)})

        return answer

    def _judge_request(self, schema: Wire, answers: Mapping[str, Iterator[Any]]) -> Wire:
        """Return what the reader says of each thing that is asked for."""
        answer: Wire = {}
        for name, kind in schema["properties"].items():
            part = schema.get("$defs", {}).get(kind.get("$ref", "").removeprefix("#/$defs/"), kind)
            if name == "changes":
                answer[name] = [self._change(call) for call in _list_names(schema, "call")]
            elif name in answers:
                told = next(answers[name])
                answer |= told if isinstance(told, dict) else {name: told}
            elif "properties" in part:
                answer[name] = self._judge_request({**part, "$defs": schema.get("$defs", {})}, answers)
            elif name not in answer:
                answer[name] = _COMMON[name]
        return {name: value for name, value in answer.items() if name in schema["properties"]}

    def _checks(self, items: Sequence[str]) -> Iterator[list[Wire]]:
        item = {"evidence": list(self.contradiction), "answer": "no"}
        yield [{"item": name, **item} for name in items]

    def _change(self, call: str) -> Wire:
        verdict = self.wanted if isinstance(self.wanted, str) else self.wanted[call]
        return {"call": call, "asked": "", "rule": "", "verdict": verdict}

    def tasks(self, words: str) -> list[str]:
        """Return the requests to the judge in which these words stand."""
        texts = (body["messages"][-1]["content"] for body in self.asked)
        return [text for text in texts if words in text]


def _again(lines: Sequence[Any]) -> Iterator[Any]:
    while True:
        yield from lines


def _in_order(inputs: Any) -> Iterator[Any]:
    answers = inputs.answers if isinstance(inputs, Each) else (inputs,)
    yield from answers
    while True:
        yield answers[-1]


def _step(line: Line) -> Any:
    if isinstance(line, str) and not line.startswith("{"):
        return [ToolCall(name="send_message_to_target", args={"message": line, "reasoning": "as recorded"})]
    return line


def _list_names(schema: Any, name: str) -> list[str]:
    """Return the values that a field somewhere in a schema is one of."""
    fields = cast("Wire", schema) if isinstance(schema, dict) else {}
    here: Wire = fields.get("properties", {}).get(name, {})
    if "enum" in here or "const" in here:
        return here.get("enum") or [here["const"]]
    parts = cast("list[Any]", schema) if isinstance(schema, list) else []
    for part in (*fields.values(), *parts):
        if texts := _list_names(part, name):
            return texts
    return []
