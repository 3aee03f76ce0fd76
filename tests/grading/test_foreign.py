"""Code written for other tools: results by their shape, and extractors that read messages of a Letta server."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from vivavoce.errors import GraderFault
from vivavoce.grading.extractors import View, build_extractor
from vivavoce.grading.functions import from_foreign
from vivavoce.grading.grader import as_grade
from vivavoce.messages import AIMessage, HumanMessage, ToolMessage, read_message
from vivavoce.metrics import MetricResult


class Graded(BaseModel):
    """As letta-evals has it."""

    score: float
    rationale: str | None = None
    metadata: dict[str, Any] = {}


@dataclass
class Scored:
    score: float
    reason: str = ""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])


@pytest.mark.parametrize(
    ("value", "read"),
    [  # pyright: ignore[reportUnknownArgumentType]
        (Graded(score=1.0, rationale="r", metadata={"a": 1}), (1.0, "r", {"a": 1})),
        (Scored(0.25), (0.25, None, {})),
        (SimpleNamespace(score=True, rationale=7), (1.0, "7", {})),
    ],
)
def test_a_result_of_another_tool_is_taken_by_its_shape(value: Any, read: tuple[Any, ...]) -> None:
    grade = as_grade(value, "mine")
    assert (grade.score, grade.rationale, grade.metadata) == read


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (SimpleNamespace(score=None), r"a types\.SimpleNamespace whose score is None, not a number"),
        (SimpleNamespace(score="good"), "whose score is 'good', not a number"),
        (SimpleNamespace(score=7), "the score is 7, which is not between 0 and 1"),
        (SimpleNamespace(value=1.0), "mine returned SimpleNamespace"),
        (Scored, "mine returned type"),
        (MetricResult(name="m", score=1.0), "mine returned MetricResult"),
        (Graded(score=0.0, metadata={"error": "no key"}), "Graded with the error: no key"),
    ],
)
def test_what_has_no_score_is_refused_by_name_and_never_read_as_zero(value: Any, said: str) -> None:
    with pytest.raises(GraderFault, match=said):
        as_grade(value, "mine")


def test_what_is_no_result_stays_as_it_is() -> None:
    assert [from_foreign(value) for value in (0.5, {"score": 1}, "x")] == [0.5, {"score": 1}, "x"]


TALK = [
    [
        HumanMessage(content="Put a pear in."),
        read_message(
            {
                "role": "assistant",
                "tool_calls": [{"id": "c1", "name": "memory_insert", "args": {"new_str": "pear"}}],
                "reasoning_content": "A fruit.",
            }
        ),
        ToolMessage(content="done", tool_call_id="c1"),
        AIMessage(content="It is in."),
    ],
    [HumanMessage(content="Thanks."), AIMessage(content="Gladly.")],
]
EXTRACTORS = {
    "classes": (
        "from letta_client.types.agents import AssistantMessage\n"
        "def pick(trajectory, config):\n"
        "    return ' '.join(m.content for t in trajectory for m in t if isinstance(m, AssistantMessage))\n",
        "It is in. Gladly.",
    ),
    "a class by its module": (
        "import letta_client.types.agents\n"
        "def pick(trajectory, config):\n"
        "    return str([isinstance(m, letta_client.types.agents.AssistantMessage) for m in trajectory[1]])\n",
        "[False, True]",
    ),
    "a class inside the function": (
        "def pick(trajectory, config):\n"
        "    from letta_client.types.agents import ToolCallMessage\n"
        "    return next(m.tool_call.arguments for m in trajectory[0] if isinstance(m, ToolCallMessage))\n",
        '{"new_str": "pear"}',
    ),
    "a class where the first client had it": (
        "from letta_client import LettaMessageUnion, ToolCallMessage\n"
        "def pick(trajectory: list[list[LettaMessageUnion]], config):\n"
        "    return next(m.tool_calls[0].name for m in trajectory[0] if isinstance(m, ToolCallMessage))\n",
        "memory_insert",
    ),
    "functions of letta-evals": (
        "from letta_evals.extractors.utils import flatten_content, get_assistant_messages, get_tool_calls\n"
        "def words(trajectory):\n"
        "    calls = [f'{call.tool_call.name}: {result.tool_return}' for call, result in get_tool_calls(trajectory)]\n"
        "    return [flatten_content(m.content) for m in get_assistant_messages(trajectory)] + calls\n"
        "def pick(trajectory, config):\n"
        "    return ' '.join(words(trajectory))\n",
        "It is in. Gladly. memory_insert: done",
    ),
    "fields alone": (
        "def pick(trajectory, config):\n    return ' '.join(m.message_type for m in trajectory[0])\n",
        "user_message reasoning_message tool_call_message tool_return_message assistant_message",
    ),
    "a decorator of letta-evals": (
        "from letta_evals.decorators import extractor\n"
        "from letta_evals.models import LettaMessageUnion\n"
        "@extractor\n"
        "def pick(trajectory: list[list[LettaMessageUnion]], config: dict) -> str:\n"
        "    return trajectory[-1][-1].content\n",
        "Gladly.",
    ),
    "its state": (
        "from letta_evals.decorators import extractor\n"
        "@extractor(name='memory')\n"
        "def pick(trajectory, config, agent_state) -> str:\n"
        "    return ' '.join(f'{b.label}={b.value}' for b in agent_state.memory.blocks)\n",
        "fruit=pear",
    ),
    "an annotation alone": (
        "from letta_client.types.agents import AssistantMessage\n"
        "def pick(trajectory: list[list[AssistantMessage]], config: dict) -> str:\n"
        "    return trajectory[-1][-1].text\n",
        "Gladly.",
    ),
}


@pytest.mark.parametrize("form", EXTRACTORS)
async def test_an_extractor_written_for_letta_evals_sees_the_messages_of_a_letta_server(
    form: str, tmp_path: Path
) -> None:
    body, text = EXTRACTORS[form]
    (tmp_path / "mine.py").write_text(body)
    extract = build_extractor("mine.py:pick", {}, tmp_path)
    found = extract(View(TALK, state={"fruit": "pear"}))
    assert (found if isinstance(found, str) else await found) == text


async def test_without_the_client_messages_have_the_same_shape(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "letta_client"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "letta_client", None)
    (tmp_path / "mine.py").write_text(EXTRACTORS["functions of letta-evals"][0])
    found = build_extractor("mine.py:pick", {}, tmp_path)(View(TALK))
    assert not isinstance(found, str)
    assert await found == EXTRACTORS["functions of letta-evals"][1]
