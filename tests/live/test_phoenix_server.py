"""A run sent to a real Phoenix server, read back with Phoenix's own client, and its spans read as conversations.

The server takes 650 MB to install, so `make live` does not: `make .venv-phoenix/ready` first.
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
from typing import Any

import httpx
import pytest
from phoenix.client import AsyncClient

from vivavoce.conversations.format import NATIVE, Loss, format_named
from vivavoce.features.formats.conversion import convert
from vivavoce.records.label import Label
from vivavoce.report.graded_run import GradedRun
from vivavoce.run.summary import RunResult
from vivavoce.settings import settings
from vivavoce.store.store import Store
from vivavoce.suites.experiment import arun_suite

ROOT = Path(__file__).parents[2]
PHOENIX = Path(os.environ.get("VIVA_PHOENIX") or ROOT / ".venv-phoenix") / "bin" / "phoenix"
STARTS_WITHIN = 300.0
pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not PHOENIX.exists(), reason="no Phoenix server: `make .venv-phoenix/ready`"),
]
SUITE = """\
name: shop
dataset:
  rows:
    - {id: hours, input: ["When do you open?", "And when do you close?"], ground_truth: [nine, five]}
    - {id: refund, input: "I want my money back.", ground_truth: sorry}
targets: [{kind: function, name: bot, function: "bot.py:bot"}]
graders: {said: {kind: function, function: contains}}
"""


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[str]:
    ports = _free_ports(2)
    own = {"PHOENIX_WORKING_DIR": str(tmp_path / "phoenix"), "PHOENIX_HOST": "127.0.0.1"}
    own |= {"PHOENIX_PORT": str(ports[0]), "PHOENIX_GRPC_PORT": str(ports[1]), "PHOENIX_TELEMETRY_ENABLED": "false"}
    with (tmp_path / "server.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            str(PHOENIX), "serve", env={**os.environ, **own}, stdout=log, stderr=log
        )
    url = f"http://127.0.0.1:{ports[0]}"
    monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", url)
    try:
        await _healthy(url, process)
        yield url
    finally:
        process.kill()
        await process.wait()


def _free_ports(number: int) -> list[int]:
    free = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    try:
        return [one.getsockname()[1] for one in free]
    finally:
        for one in free:
            one.close()


async def _healthy(url: str, process: Process) -> None:
    began = time.monotonic()
    async with httpx.AsyncClient() as client:
        while time.monotonic() - began < STARTS_WITHIN and process.returncode is None:
            try:
                if (await client.get(f"{url}/healthz", timeout=5)).is_success:
                    return
            except httpx.TransportError:
                await asyncio.sleep(1)
    pytest.fail("the Phoenix server did not start; what it said is in server.log")


async def held(folder: Path) -> RunResult:
    """Return a run of which one conversation and one turn are labelled."""
    (folder / "suite.yaml").write_text(SUITE, "utf-8")
    (folder / "bot.py").write_text('def bot(messages):\n    return "We open at nine."\n', "utf-8")
    result = await arun_suite(folder / "suite.yaml")
    with Store.open(settings().store) as store:
        for turn, verdict in ((None, "fail"), (1, "pass")):
            said = {"sample_id": "hours", "target": "bot", "trial": 0, "grader": "said", "author": "ida"}
            label = Label.model_validate({**said, "turn": turn, "verdict": verdict, "created_at": time.time()})
            store.labels.set(result.run.id, label)
    return result


async def test_it_has_the_run_once_and_gives_its_conversations_back(server: str, tmp_path: Path) -> None:
    result = await held(tmp_path)
    first, second = (result.publish("phoenix")[0] for _ in range(2))
    assert first.startswith("2 examples, 1 project, 2 traces, 3 span annotations, 3 trace annotations to Phoenix")
    assert second.startswith("2 examples, 3 span annotations, 3 trace annotations, 1 project already exists, 2 traces")

    async with httpx.AsyncClient(base_url=server) as connection:
        client: Any = AsyncClient(http_client=connection)
        spans = await client.spans.get_spans(project_identifier="vivavoce")
        found = await client.spans.get_span_annotations(spans=spans, project_identifier="vivavoce")
        dataset = await client.datasets.get_dataset(dataset="shop")
        traces = {"trace_ids": sorted({one["context"]["trace_id"] for one in spans})}
        of_wholes = (await connection.get("/v1/projects/vivavoce/trace_annotations", params=traces)).json()["data"]
    assert len(spans) == 5
    of_turns = [(one["annotator_kind"], one["metadata"]["turn"], one["result"]["label"]) for one in found]
    assert sorted(of_turns) == [("CODE", 1, "pass"), ("CODE", 2, "fail"), ("HUMAN", 2, "pass")]
    assert sorted(one["annotator_kind"] for one in of_wholes) == ["CODE", "CODE", "HUMAN"]
    assert {one["id"] for one in dataset.examples} == {"hours", "refund"}
    _gives_back(result, spans, tmp_path)


def _gives_back(result: RunResult, spans: list[Any], folder: Path) -> None:
    """Check that the spans, written to a file, are read as the conversations that were held."""
    (folder / "spans.json").write_text(json.dumps(spans, default=str), "utf-8")
    convert(folder / "spans.json", folder / "back.jsonl", format_named(NATIVE), Loss())
    rows = [json.loads(line) for line in (folder / "back.jsonl").read_text("utf-8").splitlines()]
    with Store.open(settings().store) as store:
        graded = GradedRun(store, result.run, result.grading)
        said = [[one.text for one in outcome.attempt.trajectory.messages] for outcome in graded.outcomes()]
    assert sorted([one["content"] for one in row["messages"]] for row in rows) == sorted(said)
