"""How much the tester's model reads: recorded requests, with the brief and the tools of today."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from statistics import mean
from typing import Any

from recordings import RECORDINGS, needs_recordings
from stage import Bot, say
from vivavoce.metrics.transcript import CHARACTERS_PER_TOKEN
from vivavoce.penelope.context import TestContext
from vivavoce.penelope.tester import Tester
from vivavoce.penelope.tools.end_conversation import EndConversationTool
from vivavoce.penelope.tools.target_interaction import TargetInteractionTool
from vivavoce.penelope.tools.tool import Tool
from vivavoce.testing import ScriptedModel

LOG = RECORDINGS / "tester_log" / "exchanges.jsonl"
FACTS = "What you know, and tell only when you are asked for it:\n"
FIELDS = {"goal": "Goal of this conversation", "instructions": "How to lead it", "persona": "Who you are"}
"""Fields of a test, and the words before them in the recorded briefs."""


def list_records() -> Iterator[dict[str, Any]]:
    """Yield the recorded requests in which a step of a tester was asked for."""
    for line in LOG.read_text(encoding="utf-8").splitlines():
        request: dict[str, Any] = json.loads(line)["request"]
        if request["messages"][0]["content"].startswith("You play a person"):
            yield request


def context_of(words: str) -> TestContext:
    """Return the context of a test from its recorded brief."""
    results: dict[str, Any] = {}
    for name, label in FIELDS.items():
        if value := re.search(rf"^{label}: (.*)$", words, re.MULTILINE):
            results[name] = json.loads(value[1])
    facts = words.partition(FACTS)[2].partition("\nBeyond that")[0]
    results["facts"] = json.loads(f"{{{','.join(fact.removeprefix('- ') for fact in facts.splitlines())}}}")
    return TestContext.model_validate(results)


async def tokens(request: dict[str, Any]) -> float:
    """Return about how many tokens a recorded request has with the brief and the tools of today."""
    before, *messages = request["messages"]
    offered: dict[str, Tool] = {tool.name: tool for tool in (TargetInteractionTool(Bot()), EndConversationTool())}
    model = ScriptedModel([say("Hi")])
    await Tester(model, context_of(before["content"]), offered).next()
    (request_sent,) = model.requests
    text = request_sent.messages[0].text + json.dumps(request_sent.tools) + json.dumps(messages)
    return len(text) / CHARACTERS_PER_TOKEN


@needs_recordings
async def test_a_turn_of_a_recorded_test_takes_half_of_the_tokens() -> None:
    """As recorded, these requests have about 2,000 tokens on average."""
    sizes = [await tokens(request) for request in list_records()]
    assert len(sizes) > 80
    assert mean(sizes) < 1_100
