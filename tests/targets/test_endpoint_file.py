"""Endpoints by name, from a file: addresses, and descriptions as Rhesis exports them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.messages import HumanMessage
from vivavoce.targets.endpoint import Endpoint, EndpointTarget, endpoint_of
from vivavoce.targets.target import Opening
from vivavoce.testing import LoopbackServer

DESCRIBED: dict[str, Any] = {
    "id": "3f2a",
    "name": "Insurance bot",
    "description": "answers about insurance",
    "connection_type": "REST",
    "url": "http://host/",
    "endpoint_path": "v1/chat",
    "method": "POST",
    "request_headers": {"Content-Type": "application/json", "X-Key": "k {{ auth_token }}"},
    "auth_token": "t-1",
    "request_mapping": '{"query": "Q: {{ input }}", "conversation_id": {{ conversation_id | tojson }}, "top": 3}',
    "response_mapping": {"output": "$.choices[0].message.content", "conversation_id": "$.meta.id"},
}


def written(folder: Path, what: object, name: str = "endpoints.json") -> Path:
    path = folder / name
    path.write_text(what if isinstance(what, str) else json.dumps(what), encoding="utf-8")
    return path


async def asked(target: EndpointTarget, *lines: str) -> list[str]:
    session = await target.open(Opening("c-1", "s"))
    replies = [await session.send([HumanMessage(content=line)]) for line in lines]
    await target.close()
    return [reply.messages[-1].text for reply in replies]


def test_a_description_is_read_with_its_mappings(tmp_path: Path) -> None:
    expected = Endpoint(
        url="http://host/v1/chat",
        headers={"Content-Type": "application/json", "X-Key": "k t-1", "Authorization": "Bearer t-1"},
        body={"query": "Q: {{ message }}", "conversation_id": "{{ session }}", "top": 3},
        reply="choices.0.message.content",
        session="meta.id",
    )
    for what in (DESCRIBED, [DESCRIBED], {"3f2a": DESCRIBED}):
        assert endpoint_of(written(tmp_path, what), "3f2a") == expected
    assert endpoint_of(written(tmp_path, [DESCRIBED]), "Insurance bot") == expected


async def test_it_is_asked_as_it_is_described_and_sends_the_id_back(tmp_path: Path) -> None:
    def reply(body: dict[str, Any]) -> dict[str, Any]:
        return {"choices": [{"message": {"content": body["query"]}}], "meta": {"id": "s-9"}}

    async with LoopbackServer(reply) as server:
        path = written(tmp_path, [{**DESCRIBED, "url": server.url}])
        assert await asked(EndpointTarget("3f2a", endpoints=path), "a", "b") == ["Q: a", "Q: b"]
        first, second = server.requests
    assert (first.path, first.headers["X-Key"], first.body["conversation_id"]) == ("/v1/chat", "k t-1", None)
    assert second.body == {"query": "Q: b", "conversation_id": "s-9", "top": 3}


async def test_a_bot_without_state_gets_all_messages(tmp_path: Path) -> None:
    described = {"url": "", "request_mapping": {"messages": "{{ messages }}"}, "response_mapping": {"output": "$"}}
    async with LoopbackServer(lambda body: "yes") as server:
        path = written(tmp_path, {"bot": {**described, "url": server.url}})
        target = EndpointTarget("bot", endpoints=path)
        assert target.stateless
        await asked(target, "a")
    assert server.requests[0].body == {"messages": [{"role": "user", "content": "a"}]}


async def test_the_file_of_the_workspace_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with LoopbackServer(lambda body: {"reply": "hi"}) as server:
        written(tmp_path, f"chatbot-prod: {server.url}/chat\n", "endpoints.yaml")
        assert await asked(EndpointTarget("chatbot-prod"), "a") == ["hi"]
        other = written(tmp_path, {"other": f"{server.url}/other"}, "other.json")
        monkeypatch.setenv("VIVAVOCE_ENDPOINTS", str(other))
        assert await asked(EndpointTarget("other"), "a") == ["hi"]
        assert [request.path for request in server.requests] == ["/chat", "/other"]


BASE = {"url": "http://h", "request_mapping": {"q": "{{ input }}"}}


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({"bott": "http://h"}, "no endpoint 'bot'; did you mean 'bott'"),
        ("[a", "is not YAML or JSON"),
        ("just text", "holds no endpoints"),
        ({"bot": {}}, "bot: has no url"),
        ({"bot": {**BASE, "connection_type": "WebSocket"}}, "connection_type is WebSocket; only REST"),
        ({"bot": {**BASE, "reponse_mapping": {"output": "$"}}}, "'reponse_mapping' is not supported; did you mean"),
        ({"bot": {**BASE, "request_mapping": "{{"}}, "request_mapping is not JSON"),
        (
            {"bot": {**BASE, "request_mapping": {"q": "{{ inputt }}"}}},
            "variable 'inputt' is not supported; did you mean",
        ),
        (
            {"bot": {**BASE, "request_mapping": {"q": "{{ messages | to_gemini_contents }}"}}},
            "filter 'to_gemini_contents'",
        ),
        ({"bot": {**BASE, "response_mapping": {"output": "{{ jsonpath('$.a') }}"}}}, r"a path such as \$.choices"),
        ({"bot": {**BASE, "response_mapping": {"output": "$.a[*].b"}}}, r"'\$.a\[\*\].b' is not understood"),
        ({"bot": {**BASE, "auth_type": "client_credentials", "auth_token": "x"}}, "auth_type is client_credentials"),
    ],
)
def test_what_is_not_understood_is_named(what: object, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        EndpointTarget("bot", endpoints=written(tmp_path, what))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.yaml: cannot be read: No such file"):
        EndpointTarget("bot", endpoints=tmp_path / "none.yaml")
