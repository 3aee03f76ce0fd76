"""Files that agent frameworks write themselves, each with its own installed package, are read."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vivavoce.conversations.format import Loss, format_named
from vivavoce.conversations.reading import files_in, format_with, read
from vivavoce.features.formats.conversion import convert
from vivavoce.messages import read_messages

ROOT = Path(__file__).parents[2]
Rows = list[dict[str, Any]]
Written = Callable[[str, str], Path]

INSPECT = """
import sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, includes, mean, scorer
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import tool

@tool
def look_up():
    async def execute(order: str) -> str:
        '''Look up an order.

        Args:
            order: the number
        '''
        return "sent " + "by post " * 200
    return execute

@scorer(metrics=[mean()], name="tone")
def tone():
    async def score(state, target):
        return Score(value=0.5 if state.epoch == 1 else float("nan"), explanation="polite")
    return score

def outputs(messages, tools, choice, config):
    done = messages[-1].role == "tool"
    call = ModelOutput.for_tool_call("mockllm", "look_up", {"order": "1042"})
    output = ModelOutput.from_content("mockllm", "It was sent.") if done else call
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output

asked = [ChatMessageSystem(content="Be kind."), ChatMessageUser(content="Where is 1042?")]
task = Task(
    dataset=[Sample(id="a", input="Where is 1042?", target="sent"), Sample(id=2, input=asked, target=["sent", "x"])],
    solver=[use_tools(look_up()), generate()], scorer=[includes(), tone()], epochs=2, name="orders",
)
model = get_model("mockllm/model", custom_outputs=outputs)
[log] = eval(task, model=model, log_dir=sys.argv[1], display="none", log_format=sys.argv[2])
assert log.status == "success", log.error
"""

AUTOGEN = """
import asyncio, json, pathlib, sys
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult, ModelInfo, RequestUsage

class Scripted(ChatCompletionClient):
    def __init__(self, *replies):
        self.replies = list(replies)
    async def create(self, messages, **options):
        reply, usage = self.replies.pop(0), RequestUsage(prompt_tokens=1, completion_tokens=1)
        thought = None if isinstance(reply, str) else "hm"
        return CreateResult(finish_reason="stop", content=reply, usage=usage, cached=False, thought=thought)
    def create_stream(self, *args, **options):
        raise NotImplementedError
    async def close(self):
        pass
    def actual_usage(self):
        return RequestUsage(prompt_tokens=1, completion_tokens=1)
    total_usage = actual_usage
    def count_tokens(self, *args, **options):
        return 1
    remaining_tokens = count_tokens
    @property
    def model_info(self):
        return ModelInfo(vision=False, function_calling=True, json_output=True, family="x", structured_output=False)
    capabilities = model_info

async def find(n: int) -> str:
    "Find an order."
    return "sent"

async def main():
    call = FunctionCall(id="c", name="find", arguments='{"n": 1042}')
    finder = AssistantAgent("finder", Scripted([call], "Done."), tools=[find])
    team = RoundRobinGroupChat(
        [finder, AssistantAgent("writer", Scripted("It was sent."))], termination_condition=MaxMessageTermination(4)
    )
    result = await team.run(task="Where is 1042?")
    folder = pathlib.Path(sys.argv[1])
    folder.joinpath("result.json").write_text(result.model_dump_json())
    folder.joinpath("team.json").write_text(json.dumps(await team.save_state(), default=str))

asyncio.run(main())
"""

LIVEKIT = """
import json, pathlib, sys
from livekit.agents.llm import AgentHandoff, ChatContext, FunctionCall, FunctionCallOutput

history = ChatContext.empty()
history.add_message(role="system", content="Be kind.")
history.add_message(role="user", content="Where is 1042?", metrics={"stopped_speaking_at": 1795394225.0})
history.items.append(FunctionCall(call_id="c", name="find", arguments="{}"))
history.items.append(FunctionCallOutput(call_id="c", name="find", output="sent", is_error=False))
history.items.append(AgentHandoff(new_agent_id="writer"))
spoken = {"started_speaking_at": 1795394226.5, "e2e_latency": 1.5}
history.add_message(role="assistant", content="It was", interrupted=True, metrics=spoken)
written = json.dumps(history.to_dict(exclude_timestamp=False))
pathlib.Path(sys.argv[1], "session.json").write_text(written)
"""

PIPECAT = """
import dataclasses, json, pathlib, sys
from pipecat.processors.aggregators.llm_response_universal import AssistantTurnStoppedMessage, UserTurnStoppedMessage

asked, answered = "2026-11-23T00:00:01.000+00:00", "2026-11-23T00:00:02.000+00:00"
turns = [
    ("user", UserTurnStoppedMessage(content="Where is 1042?", timestamp=asked, user_id="ann")),
    ("assistant", AssistantTurnStoppedMessage(content="It was", interrupted=True, timestamp=answered)),
]
written = [{"role": role, **dataclasses.asdict(turn)} for role, turn in turns]
pathlib.Path(sys.argv[1], "transcript.json").write_text(json.dumps(written))
"""

CREWAI = """
import json, pathlib, sys
from datetime import datetime
from crewai.crews.crew_output import CrewOutput
from crewai.events.types.task_events import TaskCompletedEvent, TaskStartedEvent
from crewai.events.types.tool_usage_events import ToolUsageFinishedEvent
from crewai.tasks.task_output import TaskOutput
from crewai.utilities.file_handler import FileHandler

call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}
messages = [
    {"role": "user", "content": "Where is 1042?"},
    {"role": "assistant", "content": None, "tool_calls": [call]},
    {"role": "tool", "tool_call_id": "c", "name": "find", "content": "sent"},
]
task = TaskOutput(description="Where is 1042?", raw="It was sent.", agent="finder", messages=messages)
folder = pathlib.Path(sys.argv[1])
folder.joinpath("crew.json").write_text(CrewOutput(raw="It was sent.", tasks_output=[task]).model_dump_json())
log = FileHandler(str(folder / "log.json"))
log.log(task_name=None, task="Where is 1042?", agent="finder", status="started")
log.log(task_name=None, task="Where is 1042?", agent="finder", status="completed", output="It was sent.")
now = datetime.now()
used = ToolUsageFinishedEvent(
    tool_name="find", tool_args={"n": 1042}, started_at=now, finished_at=now, output="sent", agent_role="finder"
)
started = TaskStartedEvent(context="", task=None, task_name="Where is 1042?")
events = [started, used, TaskCompletedEvent(output=task, task=None)]
folder.joinpath("events.json").write_text(json.dumps([event.to_json() for event in events]))
"""

DATASETS = """
import sys
from datasets import Dataset
said = [{"role": "user", "content": "Where is 1042?"}, {"role": "assistant", "content": "It was sent."}]
rows = Dataset.from_list([{"id": str(n), "messages": said} for n in range(3)])
rows.save_to_disk(sys.argv[1] + "/saved")
rows.to_parquet(sys.argv[1] + "/rows.parquet")
rows.to_csv(sys.argv[1] + "/rows.csv")
"""

DEEPEVAL = """
import importlib.metadata, json, pathlib, sys
from deepeval.dataset import ConversationalGolden, EvaluationDataset, Golden, Persona
from deepeval.test_case import ConversationalTestCase, LLMTestCase, ToolCall, Turn

folder = pathlib.Path(sys.argv[1])
print("deepeval", importlib.metadata.version("deepeval"))
find = ToolCall(name="find", input_parameters={"n": 1042}, output="sent")
turns = [
    Turn(role="user", content="Where is 1042?"),
    Turn(role="assistant", content="It was sent.", retrieval_context=["log"], tools_called=[find]),
]
talk = dict(scenario="asks for an order", expected_outcome="knows where it is", user_description="Ann")
case = ConversationalTestCase(name="orders", turns=turns, chatbot_role="a shop", tags=["x"], metadata={"k": 1}, **talk)
asked = LLMTestCase(
    input="Where is 1042?", actual_output="It was sent.", expected_output="sent",
    retrieval_context=["log", "page"], context=["fact"], tools_called=[find], expected_tools=[find],
)
played = dict(talk, user_description=None, persona=Persona(characteristics="Ann", voice="low"))
conversations = EvaluationDataset(goldens=[ConversationalGolden(name="g", **played)])
conversations.add_test_case(case)
questions = EvaluationDataset(goldens=[Golden(name="q", input="Where is 1042?", expected_output="sent")])
questions.add_test_case(asked)
for kind in ("json", "jsonl", "csv"):
    conversations.save_as(kind, sys.argv[1], "conversations", include_test_cases=True)
    questions.save_as(kind, sys.argv[1], "questions", include_test_cases=True)
folder.joinpath("dumped.json").write_text(json.dumps([case.model_dump(mode="json", by_alias=True)]))
"""

DEEPEVAL_READS = """
import json, pathlib, sys
from deepeval.dataset import EvaluationDataset
from deepeval.test_case import ConversationalTestCase

path = pathlib.Path(sys.argv[1], "cases.json")
dataset = EvaluationDataset()
dataset.add_goldens_from_json_file(str(path))
cases = [ConversationalTestCase.model_validate(case) for case in json.loads(path.read_text())]
read = [
    {
        "names": [golden.name, case.name],
        "said": [[turn.role, turn.content] for turn in golden.turns],
        "same": golden.turns == case.turns,
        "tools": [tool.model_dump(exclude_none=True) for turn in case.turns for tool in turn.tools_called or ()],
        "outcome": [golden.expected_outcome, golden.persona.characteristics, case.chatbot_role],
    }
    for golden, case in zip(dataset.goldens, cases, strict=True)
]
pathlib.Path(sys.argv[1], "read.json").write_text(json.dumps(read))
"""


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Return the folder into which the package of a name has written what a program says."""

    def run(package: str, program: str, *more: str) -> Path:
        python = ROOT / ".venv-peers" / package / "bin" / "python"
        if not python.exists():
            pytest.skip(f"no {package}: `make .venv-peers/{package}/ready`")
        silent = {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "DEEPEVAL_TELEMETRY_OPT_OUT": "YES"}
        env = {**os.environ, **silent, "HOME": str(tmp_path)}
        done = subprocess.run(
            [python, "-c", program, str(tmp_path), *more], cwd=tmp_path, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-3000:]
        print(done.stdout)
        return tmp_path

    return run


pytestmark = pytest.mark.live


def _rows(path: Path, name: str) -> tuple[Rows, Loss]:
    loss, files = Loss(), files_in(path)
    found, _ = format_with(files[0], None, {})
    assert found.name == name
    return [row for _, row in read(files, found, loss)], loss


def _read(path: Path, name: str) -> tuple[Rows, Loss]:
    rows, loss = _rows(path, name)
    for row in rows:
        read_messages(row["messages"])
    return rows, loss


def _said(row: dict[str, Any]) -> list[tuple[str, str | None, Any]]:
    return [(message["role"], message.get("name"), message["content"]) for message in row["messages"]]


CALLED = [("user", None), ("assistant", [("find", '{"n": 1042}')]), ("tool", None), ("assistant", None)]


def _called(row: dict[str, Any]) -> list[tuple[str, Any]]:
    return [
        (
            message["role"],
            [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls", ())]
            or None,
        )
        for message in row["messages"]
    ]


@pytest.mark.parametrize("kind", ["eval", "json"])
def test_logs_of_inspect(tmp_path: Path, written: Callable[..., Path], kind: str) -> None:
    [path] = written("inspect", INSPECT, kind).glob(f"*.{kind}")
    rows, loss = _read(path, "inspect")
    assert sorted((row["id"], row["trial"]) for row in rows) == [
        *(("orders/2", 0), ("orders/2", 1), ("orders/a", 0), ("orders/a", 1))
    ]
    for row in rows:
        assert [message["role"] for message in row["messages"]][-4:] == ["user", "assistant", "tool", "assistant"]
        assert row["messages"][-2]["content"].startswith("sent by post")
        assert row["labels"] == ({"includes": 1.0, "tone": 0.5} if row["trial"] == 0 else {"includes": 1.0})
        assert row["metadata"]["model"] == "mockllm/model"
    assert loss.is_lossless


def test_results_and_teams_of_autogen(written: Written) -> None:
    folder = written("autogen", AUTOGEN)
    for name in ("result.json", "team.json"):
        [row], loss = _read(folder / name, "autogen")
        assert _said(row) == [
            *(("user", None, "Where is 1042?"), ("assistant", "finder", None), ("tool", "find", "sent")),
            *(
                ("assistant", "finder", "sent"),
                ("assistant", "writer", "It was sent."),
                ("assistant", "finder", "Done."),
            ),
        ]
        assert loss.is_lossless


def test_sessions_of_livekit(written: Written) -> None:
    [row], loss = _read(written("livekit", LIVEKIT) / "session.json", "livekit")
    assert _said(row) == [
        *(("system", None, "Be kind."), ("user", None, "Where is 1042?"), ("assistant", None, None)),
        *(("tool", "find", "sent"), ("assistant", "writer", "It was")),
    ]
    assert row["messages"][-1]["metadata"]["latency"] == 1.5
    assert loss.is_lossless


def test_transcripts_of_pipecat(written: Written) -> None:
    [row], loss = _read(written("pipecat", PIPECAT) / "transcript.json", "pipecat")
    assert _said(row) == [("user", "ann", "Where is 1042?"), ("assistant", None, "It was")]
    assert row["messages"][1]["metadata"] == {"interrupted": True}
    assert loss.entries() == []


@pytest.mark.parametrize("name", ["crew.json", "log.json", "events.json"])
def test_outputs_logs_and_events_of_crewai(written: Written, name: str) -> None:
    [row], loss = _read(written("crewai", CREWAI) / name, "crewai")
    used = [("assistant", "finder", None), ("tool", "find", "sent")] if name != "log.json" else []
    assert _said(row) == [("user", None, "Where is 1042?"), *used, ("assistant", "finder", "It was sent.")]
    assert loss.is_lossless


@pytest.mark.parametrize("name", ["saved", "rows.parquet"])
def test_data_sets_of_hugging_face(written: Written, name: str) -> None:
    rows, loss = _read(written("datasets", DATASETS) / name, "vivavoce")
    assert [(row["id"], [message["role"] for message in row["messages"]]) for row in rows] == [
        (str(number), ["user", "assistant"]) for number in range(3)
    ]
    assert loss.entries() == []


@pytest.mark.parametrize("kind", ["json", "jsonl", "csv"])
def test_datasets_of_deepeval(written: Written, kind: str) -> None:
    folder = written("deepeval", DEEPEVAL)
    rows, loss = _rows(folder / f"conversations.{kind}", "deepeval")
    played, case = rows
    for row in rows:
        known = (row["scenario"], row["goal"], row["persona"])
        assert known == ("asks for an order", "knows where it is", "Ann")
    assert (played["id"], "messages" in played) == ("g", False)
    assert played.get("metadata") == (None if kind == "csv" else {"persona": {"voice": "low"}})
    assert (_called(case), case["metadata"]) == (CALLED, {"k": 1})
    assert case["messages"][-1]["retrieval_context"] == ["log"]
    assert loss.is_lossless

    (question, asked), loss = _rows(folder / f"questions.{kind}", "deepeval")
    assert (question["id"], question["input"], question["ground_truth"]) == ("q", "Where is 1042?", "sent")
    assert (_called(asked), asked["ground_truth"]) == (CALLED, "sent")
    assert (asked["messages"][-1]["retrieval_context"], asked["context"]) == (
        ["log", "page"],
        {"reference_contexts": ["fact"]},
    )
    assert [call["function"]["name"] for call in asked["reference_tool_calls"]] == ["find"]
    assert [entry.kind for entry in loss.entries()] == ([] if kind == "json" else ["guessed"])


def test_cases_of_deepeval_are_converted_and_read_by_it(written: Written) -> None:
    folder = written("deepeval", DEEPEVAL)
    loss, cases = Loss(), folder / "cases.json"
    done = convert(folder / "dumped.json", cases, format_named("deepeval"), loss)
    assert (done.source.name, done.conversations, loss.entries()) == ("deepeval", 1, [])
    written("deepeval", DEEPEVAL_READS)
    assert json.loads((folder / "read.json").read_text()) == [
        {
            "names": ["orders", "orders"],
            "said": [["user", "Where is 1042?"], ["assistant", "It was sent."]],
            "same": True,
            "tools": [{"name": "find", "type": "FUNCTION", "input_parameters": {"n": 1042}, "output": "sent"}],
            "outcome": ["knows where it is", "Ann", "a shop"],
        }
    ]
