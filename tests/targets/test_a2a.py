"""Agents of A2A, whose answers are those of the specification's examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from asking import asked, told
from vivavoce.errors import SuiteFault, TargetFault
from vivavoce.messages import HumanMessage, ImagePart, ImageURL
from vivavoce.targets import A2ATarget
from vivavoce.targets.target import Opening
from vivavoce.testing import LoopbackServer
from vivavoce.wire.own_traffic import PREFIX, of_run

Answers = Callable[[dict[str, Any]], Any]
NEW = {"supportedInterfaces": [{"url": "URL", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}
OLD = {"url": "URL", "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}


def agent(answer: Answers, card: Any = NEW) -> LoopbackServer:
    """Return an agent that answers calls with what a function makes of them."""
    server = LoopbackServer()

    def reply(body: dict[str, Any]) -> Any:
        if not body:
            text = server.url + "/rpc"
            interfaces = [{**one, "url": text} for one in card.get("supportedInterfaces", ())]
            return {**card, "supportedInterfaces": interfaces, **({"url": text} if "url" in card else {})}
        found = answer(body)
        return {"jsonrpc": "2.0", "id": body["id"], **(found if "error" in found else {"result": found})}

    server.answer = reply
    return server


def task(state: str, text: str = "", *artifacts: str, **more: Any) -> dict[str, Any]:
    said = {"message": {"role": "ROLE_AGENT", "parts": [{"text": text}]}} if text else {}
    listed = [{"artifactId": artifact, "parts": [{"text": artifact}]} for artifact in artifacts]
    return {"id": "t1", "contextId": "x1", "status": {"state": state, **said}, "artifacts": listed, **more}


async def test_a_conversation_is_a_context_and_a_task_that_asks_goes_on() -> None:
    states = iter(
        [
            {"task": task("TASK_STATE_INPUT_REQUIRED", "Which city?", "map")},
            {"task": task("TASK_STATE_COMPLETED", "", "map", "sunny")},
            {"message": {"contextId": "x1", "parts": [{"text": "Bye."}, {"data": {"a": 1}}, {"url": "https://f"}]}},
        ]
    )
    async with agent(lambda body: next(states)) as server:
        replies = await asked(A2ATarget("bot", server.url), "Weather?", "Rome", "Bye")
        sent = [request.body for request in server.requests if request.body]
        assert server.requests[0].path == "/.well-known/agent-card.json"
        assert server.requests[1].headers["A2A-Version"] == "1.0"
    assert [told(reply) for reply in replies] == [
        [("assistant", None, "map", []), ("assistant", None, "Which city?", [])],
        [("assistant", None, "sunny", [])],
        [("assistant", None, 'Bye.\n{"a": 1}\nhttps://f', [])],
    ]
    messages = [one["params"]["message"] for one in sent]
    assert [one["method"] for one in sent] == ["SendMessage"] * 3
    assert messages[0]["parts"] == [{"text": "Weather?"}]
    assert messages[0]["role"] == "ROLE_USER"
    assert [(message.get("contextId"), message.get("taskId")) for message in messages] == [
        *((None, None), ("x1", "t1"), ("x1", None))
    ]


async def test_requests_of_a_run_are_marked_as_those_of_a_test() -> None:
    said = {"message": {"contextId": "x1", "parts": [{"text": "Hi."}]}}
    async with agent(lambda body: said) as server:
        with of_run("nightly-1"):
            await asked(A2ATarget("bot", server.url), "Hi")
        headers = server.requests[-1].headers
    assert headers["baggage"] == "vivavoce.run=nightly-1"
    assert headers["traceparent"].startswith(f"00-{PREFIX}")


async def test_the_older_protocol_has_other_names_and_a_task_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vivavoce.targets.a2a._WAIT", 0.0)
    states = iter([task("working", kind="task"), task("completed", "Sunny.", kind="task")])
    async with agent(lambda body: next(states), OLD) as server:
        (reply,) = await asked(A2ATarget("bot", server.url), "Weather?")
        methods = [request.body["method"] for request in server.requests if request.body]
        part = server.requests[1].body["params"]["message"]["parts"][0]
    assert told(reply) == [("assistant", None, "Sunny.", [])]
    assert methods == ["message/send", "tasks/get"]
    assert part == {"kind": "text", "text": "Weather?"}


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        ({"task": task("TASK_STATE_FAILED", "no sensor")}, "the task of bot is failed: no sensor"),
        ({"task": task("TASK_STATE_AUTH_REQUIRED")}, "the task of bot is auth-required: it says no more"),
        ({"task": {"id": "t1"}}, "bot ended its task without a text"),
        ({"task": task("TASK_STATE_COMPLETED")}, "bot ended its task without a text"),
        ({"error": {"code": -32601, "message": "no"}}, r"bot refused SendMessage: no \(-32601\)"),
        ({"message": {"parts": "what?"}}, "bot ended its task without a text"),
    ],
)
async def test_what_fails_is_the_fault_of_the_agent(answer: Any, rule: str) -> None:
    async with agent(lambda body: answer) as server:
        with pytest.raises(TargetFault, match=rule):
            await asked(A2ATarget("bot", server.url), "Weather?")


@pytest.mark.parametrize("card", [{}, {"url": "URL", "preferredTransport": "GRPC"}])
async def test_a_card_without_json_rpc_is_refused(card: Any) -> None:
    async with agent(lambda body: {}, card) as server:
        with pytest.raises(TargetFault, match="has no JSON-RPC interface"):
            await asked(A2ATarget("bot", server.url), "Weather?")


async def test_an_answer_that_is_no_json_rpc_and_an_image_are_told() -> None:
    part = ImagePart(image_url=ImageURL(url="https://x/y.png"))
    async with agent(lambda body: {}) as server:
        target = A2ATarget("bot", server.url)
        session = await target.open(Opening("c", "s"))
        with pytest.raises(TargetFault, match="it has neither result nor error"):
            await session.send([HumanMessage(content="Hi")])
        with pytest.raises(SuiteFault, match="takes only text"):
            await session.send([HumanMessage(content=[part])])
        await target.close()
