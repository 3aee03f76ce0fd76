"""What a run sends to its target says which run it is, and what it sends to a judge does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vivavoce.run.options import RunOptions
from vivavoce.store.store import Store
from vivavoce.suites.experiment import suite_run
from vivavoce.suites.load import described_suite
from vivavoce.testing import LoopbackServer


def http(url: str) -> dict[str, Any]:
    body = {"messages": "{{ messages }}"}
    return {"kind": "http", "url": f"{url}/v1/chat/completions", "body": body, "reply": "choices.0.message.content"}


def openai(url: str) -> dict[str, Any]:
    return {"kind": "openai", "base_url": f"{url}/v1", "model_handles": ["m"]}


@pytest.mark.parametrize("target", [http, openai])
async def test_requests_of_a_run_say_which_run_it_is(target: Any, store: Store, tmp_path: Path) -> None:
    with LoopbackServer() as server, LoopbackServer() as judge:
        (tmp_path / "rows.jsonl").write_text('{"input": "hi"}\n')
        graders = {"safe": {"kind": "metric", "metric": "safety", "model": f"{judge.url}/v1#judge"}}
        data = {"name": "s", "dataset": "rows.jsonl", "target": target(server.url), "graders": graders}
        result = await suite_run(described_suite(data, tmp_path, "here"), RunOptions(), store=store).execute()
        (request,), judged = server.requests, judge.requests
    headers = {name.lower(): value for name, value in request.headers.items()}
    assert headers["baggage"] == f"vivavoce.run={result.run.id}"
    assert headers["traceparent"].startswith("00-76697661")
    assert judged
    assert not {name.lower() for request_to_judge in judged for name in request_to_judge.headers} & {
        "baggage",
        "traceparent",
    }
