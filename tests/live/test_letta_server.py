"""Suites of letta-evals against a real Letta server: its REST API, its agents, and a model on this machine.

The server takes 1.2 GB and minutes to install, so `make live` does not: `make .venv-letta-server/ready` first.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest

from vivavoce.settings import settings
from vivavoce.store.store import Store
from vivavoce.suites.experiment import arun_suite

from .endpoint import Endpoint, capitals

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("VIVA_LETTA_SERVER") or ROOT / ".venv-letta-server") / "bin" / "python"
STARTS_WITHIN = 180.0
pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not PYTHON.exists(), reason="no Letta server: `make .venv-letta-server/ready`"),
]
SUITE = """\
name: capitals
dataset: dataset.jsonl
setup_script: agents.py:begin
target:
  kind: letta_agent
  agent_script: agents.py:make
  base_url: {url}
cleanup: true
graders:
  right: {{kind: tool, function: contains}}
  mine: {{kind: tool, function: "agents.py:right", extractor: "agents.py:last"}}
  memory: {{kind: tool, function: contains, extractor: memory_block, extractor_config: {{block_label: facts}}}}
gate: {{kind: simple, metric_key: right, aggregation: avg_score, op: gte, value: 0.6}}
"""
AGENTS = """\
from letta_client import AsyncLetta, CreateBlock
from letta_client.client import BaseTool
from letta_evals.decorators import agent_factory, extractor, grader, suite_setup
from letta_evals.extractors.utils import flatten_content, get_assistant_messages
from letta_evals.models import GradeResult, Sample


class Look(BaseTool):
    name: str = "look_up"
    description: str = "Look a capital up"

    def run(self, country: str) -> str:
        \"\"\"Look a capital up.

        Args:
            country (str): the country
        \"\"\"
        return country


@suite_setup
async def begin(client: AsyncLetta) -> None:
    await client.tools.add(tool=Look())


@agent_factory
async def make(client: AsyncLetta, sample: Sample) -> str:
    tools = (await client.tools.list(name="look_up")).items
    agent = await client.agents.create(
        name="capitals", model="openai-proxy/capitals", embedding="openai/text-embedding-3-small",
        memory_blocks=[CreateBlock(label="facts", value=sample.agent_args["facts"])],
        agent_type="letta_v1_agent", include_base_tools=False, tool_ids=[tools[0].id],
    )
    return agent.id


@extractor
def last(trajectory, config: dict) -> str:
    return flatten_content(get_assistant_messages(trajectory)[-1].content)


@grader
def right(sample: Sample, submission: str) -> GradeResult:
    return GradeResult(score=1.0 if sample.ground_truth in submission else 0.0, rationale=submission)
"""


@pytest.fixture
async def endpoint() -> AsyncGenerator[Endpoint]:
    async with capitals() as endpoint:
        yield endpoint


@pytest.fixture
async def server(endpoint: Endpoint, tmp_path: Path) -> AsyncGenerator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {
        "HOME": str(tmp_path),
        "OPENAI_API_KEY": "x",
        "OPENAI_API_BASE": endpoint.url,
        "OPENAI_BASE_URL": endpoint.url,
    }
    command = [str(PYTHON), str(Path(__file__).with_name("letta_server.py")), str(port)]
    env = {**os.environ, **own}
    with (tmp_path / "server.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*command, env=env, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        await _healthy(url, process)
        yield url
    finally:
        process.terminate()
        await process.wait()


async def _healthy(url: str, process: Process) -> None:
    began = time.monotonic()
    async with httpx.AsyncClient() as client:
        while time.monotonic() - began < STARTS_WITHIN and process.returncode is None:
            try:
                if (await client.get(f"{url}/v1/health/", timeout=5)).is_success:
                    return
            except httpx.TransportError:
                await asyncio.sleep(1)
    pytest.fail("the Letta server did not start; what it said is in server.log")


async def test_a_suite_of_letta_evals_runs_on_the_server(server: str, tmp_path: Path) -> None:
    facts = {"agent_args": {"facts": "Paris Berlin"}}
    rows = [
        {"id": "one", "input": "What is the capital of France?", "ground_truth": "Paris", **facts},
        {"id": "wrong", "input": "What is the capital of Spain?", "ground_truth": "Lisbon", **facts},
        {
            "id": "two",
            "input": ["What is the capital of France?", "And of Germany?"],
            "ground_truth": "Berlin",
            **facts,
        },
    ]
    files = {
        "dataset.jsonl": "".join(json.dumps(row) + "\n" for row in rows),
        "agents.py": AGENTS,
        "suite.yaml": SUITE.format(url=server),
    }
    for name, text in files.items():
        await asyncio.to_thread((tmp_path / name).write_text, text)
    result = await arun_suite(tmp_path / "suite.yaml")
    found = {grader.name: (grader.scored, grader.errors, grader.mean) for grader in result.summary.graders}
    assert found["right"] == found["mine"] == (3, 0, pytest.approx(2 / 3))
    assert found["memory"] == (3, 0, pytest.approx(2 / 3))
    assert result.exit_code == 0
    with Store.open(settings().store) as store:
        (two,) = [one for one in store.outcomes(result.grading.id) if one.attempt.key.sample_id == "two"]
    assert [len(turn.messages) for turn in two.attempt.trajectory.turns] == [2, 2]
    assert two.attempt.trajectory.usage.input_tokens > 0
    async with httpx.AsyncClient() as client:
        assert (await client.get(f"{server}/v1/agents/")).json() == []


async def test_a_user_who_comes_back_has_the_same_agent_and_none_is_left(server: str, tmp_path: Path) -> None:
    sessions = [
        {"user": "ana", "input": "What is the capital of France?", "ground_truth": "Paris"},
        {"user": "bo", "input": "And of Germany?", "ground_truth": "Berlin"},
        {"user": "ana", "input": ["What is the capital of France?", "And of Germany?"], "ground_truth": "Berlin"},
    ]
    row = {"id": "back", "sessions": sessions, "agent_args": {"facts": "Paris Berlin"}}
    suite = SUITE.format(url=server).replace("value: 0.6", "value: 0.0, min_scored: 0.1")
    files = {"dataset.jsonl": json.dumps(row) + "\n", "agents.py": AGENTS, "suite.yaml": suite}
    for name, text in files.items():
        await asyncio.to_thread((tmp_path / name).write_text, text)
    result = await arun_suite(tmp_path / "suite.yaml")
    with Store.open(settings().store) as store:
        [held] = list(store.outcomes(result.grading.id))
    assert held.attempt.failure is None
    assert [turn.mark and turn.mark.user for turn in held.attempt.trajectory.turns] == ["ana", "bo", "ana", "ana"]
    async with httpx.AsyncClient() as client:
        assert (await client.get(f"{server}/v1/agents/")).json() == []
