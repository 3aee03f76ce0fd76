from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from vivavoce.errors import SuiteFault, TargetFault, UsageError
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from vivavoce.targets.http import HttpTarget
from vivavoce.targets.target import Opening, Reply, Target
from vivavoce.testing import LoopbackServer, misbehaviour

OPENING = Opening(conversation_id="c-1", sample_id="s-1", extra_vars={"city": "Ulm", "tags": ["a", "b"]})
HELLO = [HumanMessage(content="Hello")]


async def ask(target: Target, messages: Sequence[AnyMessage] = HELLO) -> Reply:
    session = await target.open(OPENING)
    try:
        return await session.send(messages)
    finally:
        await session.close()
        await target.close()


async def test_the_body_is_made_from_its_template() -> None:
    template = {
        "text": "{{ message }}",
        "history": "{{ messages }}",
        "about": "{{ sample.extra_vars.city }}, {{ conversation_id }}",
        "tags": "{{ sample.extra_vars.tags }}",
        "session": "{{ session }}",
        "stream": False,
    }
    async with LoopbackServer(lambda body: {"out": [{"text": "hi"}]}) as server:
        reply = await ask(HttpTarget("bot", server.url + "/chat", body=template, reply="out.0.text"))
        assert reply.messages == [AIMessage(content="hi")]
        assert server.requests[0].body == {
            "text": "Hello",
            "history": [{"role": "user", "content": "Hello"}],
            "about": "Ulm, c-1",
            "tags": ["a", "b"],
            "session": None,
            "stream": False,
        }
        assert server.requests[0].headers["Content-Type"] == "application/json"


async def test_without_a_path_the_body_is_the_reply() -> None:
    async with LoopbackServer(lambda body: "plain words") as server:
        reply = await ask(HttpTarget("bot", server.url, body={"q": "{{ message }}"}))
    assert reply.messages == [AIMessage(content="plain words")]


async def test_a_question_may_be_in_the_address() -> None:
    async with LoopbackServer(lambda body: "ok") as server:
        await ask(HttpTarget("bot", server.url + "/{{ conversation_id }}?q={{ message }}", method="get"))
        assert (server.requests[0].method, server.requests[0].path) == ("GET", "/c-1?q=Hello")
        assert server.requests[0].body == {}


@pytest.mark.parametrize("path", ["turn.messages", "turn['messages']", "$.turn[messages]"])
async def test_a_reply_may_be_a_list_of_messages(path: str) -> None:
    call = AIMessage(content=None, tool_calls=[ToolCall(id="1", name="add", args={"a": 2})])
    said = [call, ToolMessage(content="4", tool_call_id="1"), AIMessage(content="It is 4.")]
    async with LoopbackServer(lambda body: {"turn": {"messages": [m.to_wire() for m in said]}}) as server:
        reply = await ask(HttpTarget("bot", server.url, body=["{{ message }}"], reply=path.replace("'", "")))
    assert reply.messages == said


async def test_headers_take_keys_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOT_KEY", "sk-{{ message }}-1\n")
    headers = {"Authorization": "Bearer ${BOT_KEY}", "X-Conversation": "{{ conversation_id }}", "X-S": "{{ session }}"}
    async with LoopbackServer(lambda body: "ok") as server:
        await ask(HttpTarget("bot", server.url, body="{{ message }}", headers=headers))
        sent = server.requests[0].headers
    assert (sent["Authorization"], sent["X-Conversation"]) == ("Bearer sk-{{ message }}-1", "c-1")
    assert "X-S" not in sent


async def test_address_and_body_take_values_from_the_environment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async with LoopbackServer(lambda body: "ok") as server:
        monkeypatch.setenv("BOT_URL", server.url)
        monkeypatch.setenv("BOT_ROOM", "{{ message }} {")
        body = {"said": "{{ message }}", "rooms": ["${BOT_ROOM}", "in ${BOT_ROOM}"]}
        await ask(HttpTarget("bot", "${BOT_URL}/talk", body=body), [HumanMessage(content="Hi")])
        [request] = server.requests
        assert request.path == "/talk"
        assert request.body == {"said": "Hi", "rooms": ["{{ message }} {", "in {{ message }} {"]}


async def test_a_message_cannot_read_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOT_KEY", "sk-secret-of-the-bot")
    headers = {"X-Key": "${BOT_KEY}", "X-Said": "{{ message }}"}
    async with LoopbackServer(lambda body: "ok") as server:
        await ask(HttpTarget("bot", server.url, headers=headers), [HumanMessage(content="${BOT_KEY}")])
        assert server.requests[0].headers["X-Said"] == "${BOT_KEY}"


async def test_a_message_cannot_add_a_header() -> None:
    target = HttpTarget("bot", "http://127.0.0.1:9", headers={"X-Said": "{{ message }}"})
    with pytest.raises(SuiteFault, match=r"bot\.headers\.X-Said: the value is not one line"):
        await ask(target, [HumanMessage(content="a\r\nX-Admin: 1")])


async def test_a_key_never_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOT_KEY", "sk-secret-of-the-bot")
    async with LoopbackServer(lambda body: f"headers: {server.requests[0].headers}") as server:
        reply = await ask(HttpTarget("bot", server.url, body="{{ message }}", headers={"X-Key": "${BOT_KEY}"}))
    assert "'X-Key': '***'" in reply.messages[0].text


def test_missing_environment_variables_are_all_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SET", "sk-secret-of-the-bot")
    for name in ("GONE_1", "GONE_2"):
        monkeypatch.delenv(name, raising=False)
    headers = {"A": "${SET} ${GONE_1}", "B": "${GONE_2}"}
    with pytest.raises(UsageError) as caught:
        HttpTarget("bot", "http://bot.example", body="{{ message }}", headers=headers)
    assert str(caught.value).splitlines() == [
        "bot.headers: the environment variable GONE_1 is not set",
        "bot.headers: the environment variable GONE_2 is not set",
    ]


async def test_a_session_id_of_the_answer_is_sent_back() -> None:
    def answer(body: dict[str, Any]) -> Mapping[str, Any]:
        return {"reply": "hi"} if body["session"] else {"reply": "hi", "meta": {"session": 41}}

    async with LoopbackServer(answer) as server:
        body = {"q": "{{ message }}", "session": "{{ session }}"}
        target = HttpTarget("bot", server.url, body=body, reply="reply", session="meta.session")
        first, second = await target.open(OPENING), await target.open(OPENING)
        for _ in range(3):
            await first.send(HELLO)
        await second.send(HELLO)
        await target.close()
        assert [request.body["session"] for request in server.requests] == [None, 41, 41, None]
        assert (first.id, second.id) == ("41", "41")


async def test_cookies_keep_conversations_apart() -> None:
    def answer(body: dict[str, Any]) -> misbehaviour.Misbehaviour:
        return misbehaviour.status(200, "ok", {"Set-Cookie": f"sid={len(server.requests)}; Path=/"})

    async with LoopbackServer(answer) as server:
        target = HttpTarget("bot", server.url, body={"q": "{{ message }}", "s": "{{ session }}"}, session="cookie")
        first, second = await target.open(OPENING), await target.open(OPENING)
        for session in (first, second, first):
            await session.send(HELLO)
        await target.close()
        assert [request.headers.get("Cookie") for request in server.requests] == [None, None, "sid=1"]
        assert [request.body["s"] for request in server.requests] == [None, None, "sid=1"]
        assert (first.id, second.id) == ("sid=3", "sid=2")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("choices.0.text", "has nothing at reply 'choices.0.text': no '0' in a list of 0"),
        ("answer", "no 'answer' in an object with choices, n"),
        ("n.x", "no 'x' in 5"),
        ("choices", "returned an empty list"),
        ("n", "returned something of type int"),
    ],
)
async def test_an_answer_without_a_reply_is_a_format_fault(path: str, said: str) -> None:
    async with LoopbackServer(lambda body: {"choices": [], "n": 5}) as server:
        with pytest.raises(TargetFault, match=said) as caught:
            await ask(HttpTarget("bot", server.url, body="{{ message }}", reply=path))
    assert caught.value.kind == "format"
    assert caught.value.evidence is not None


async def test_a_missing_session_id_is_a_format_fault() -> None:
    async with LoopbackServer(lambda body: {"reply": "hi"}) as server:
        with pytest.raises(TargetFault, match="has nothing at session 'sid'"):
            await ask(HttpTarget("bot", server.url, body="{{ message }}", reply="reply", session="sid"))


async def test_html_in_place_of_json_is_evidence() -> None:
    async with LoopbackServer(lambda body: misbehaviour.html()) as server:
        with pytest.raises(TargetFault, match="is not JSON") as caught:
            await ask(HttpTarget("bot", server.url, body="{{ message }}", reply="reply"))
    assert (caught.value.evidence or "").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("body", "session", "stateless"),
    [
        ({"m": "{{ messages }}"}, None, True),
        ({"m": "{{ messages }}"}, "id", False),
        ({"m": "{{ messages }}", "c": "{{ conversation_id }}"}, None, False),
        ({"m": "{{ message }}"}, None, False),
    ],
)
async def test_a_request_is_repeatable_when_it_holds_the_whole_conversation(
    body: object, session: str | None, stateless: bool
) -> None:
    async with LoopbackServer(lambda body: misbehaviour.server_error()) as server:
        target = HttpTarget("bot", server.url, body=body, reply="x", session=session)
        with pytest.raises(TargetFault) as caught:
            await ask(target)
    assert (target.stateless, caught.value.retryable) == (stateless, stateless)


@pytest.mark.parametrize(
    ("url", "body", "said"),
    [
        ("bot.example", "{{ message }}", "bot.url: 'bot.example' is not a web address"),
        ("http://{{ message }}/x", "{{ message }}", "leaves the host open"),
        ("http://bot", {"q": "{{ mesage }}"}, r"bot\.body\.q: no variable 'mesage'; did you mean 'message'"),
        ("http://bot", {"q": "{{ environment }}"}, "no variable 'environment'"),
        ("http://bot", {"q": "hello"}, "neither url, body nor headers say '{{ message }}'"),
    ],
)
def test_what_cannot_work_is_refused_at_once(url: str, body: object, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        HttpTarget("bot", url, body=body)


async def test_what_a_sample_lacks_is_the_suites_fault() -> None:
    target = HttpTarget("bot", "http://127.0.0.1:9", body="{{ message }} {{ sample.extra_vars.country }}")
    with pytest.raises(SuiteFault, match="country"):
        await ask(target)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "the answer is an object with answer, session; set reply: to the path of the reply"),
        ("answer", "has an object with text at reply 'answer'; give the path of the text in it"),
    ],
)
async def test_an_object_is_no_reply(path: str, said: str) -> None:
    async with LoopbackServer(lambda body: {"answer": {"text": "hi"}, "session": 1}) as server:
        with pytest.raises(TargetFault, match=re.escape(said)) as caught:
            await ask(HttpTarget("bot", server.url, body="{{ message }}", reply=path))
    assert caught.value.kind == "format"
    assert json.loads(caught.value.evidence or "") == {"answer": {"text": "hi"}, "session": 1}


async def test_what_was_received_is_shown_as_it_came() -> None:
    async with LoopbackServer(lambda body: {"said": [{"role": "robot", "content": None}]}) as server:
        with pytest.raises(TargetFault, match="not a list of messages") as caught:
            await ask(HttpTarget("bot", server.url, body="{{ message }}", reply="said"))
    assert json.loads(caught.value.evidence or "") == {"said": [{"role": "robot", "content": None}]}


async def test_an_object_as_a_whole_may_be_asked_for() -> None:
    async with LoopbackServer(lambda body: {"intent": "book"}) as server:
        reply = await ask(HttpTarget("bot", server.url, body="{{ message }}", reply="$"))
    assert json.loads(reply.messages[0].text) == {"intent": "book"}


@pytest.mark.parametrize("text", ["{sighs} Yes.", "[1]", "42", "{" * 100_000])
async def test_a_text_may_look_like_json(text: str) -> None:
    async with LoopbackServer(lambda body: text) as server:
        reply = await ask(HttpTarget("bot", server.url, body="{{ message }}"))
    assert reply.messages == [AIMessage(content=text)]


async def test_an_address_with_a_password_is_refused() -> None:
    with pytest.raises(UsageError, match=r"bot\.url: the address holds a user name or a password") as caught:
        HttpTarget("bot", "http://me:s3cret@bot.example/chat", body="{{ message }}")
    assert "s3cret" not in str(caught.value)
