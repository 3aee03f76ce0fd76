"""The REST target against a server that answers in the shapes of `letta-client`'s types, over real HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from letta_evals_files import AGENT, SETUP, TOOL
from vivavoce.errors import RateLimited, SuiteFault, TargetFault, UsageError
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage, read_message
from vivavoce.plugins import load_object
from vivavoce.records.score import Usage
from vivavoce.targets.letta import AgentSource, LettaTarget
from vivavoce.targets.letta_server import CLOUD, LOCAL, FactorySample, LettaAccess
from vivavoce.targets.target import Opening, knows_users, new_user
from vivavoce.wire.own_traffic import of_run

if TYPE_CHECKING:
    from letta_client import AsyncLetta

KEY = "sk-let-secret"
DATE = "2026-01-02T03:04:05+00:00"
STOP = {"message_type": "stop_reason", "stop_reason": "end_turn"}
USED = {
    "message_type": "usage_statistics",
    "prompt_tokens": 20,
    "completion_tokens": 5,
    "total_tokens": 25,
    "step_count": 2,
    "cached_input_tokens": 8,
    "reasoning_tokens": None,
    "run_ids": None,
}
PING = {"message_type": "ping", "id": "ping", "date": DATE}

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def says(text: str) -> dict[str, Any]:
    return {"message_type": "assistant_message", "id": "message-1", "date": DATE, "run_id": "run-1", "content": text}


def sse(*events: Any) -> Answer:
    async def answer(_: web.Request) -> web.Response:
        lines = [f"data: {json.dumps(event)}\n\n" for event in events]
        return web.Response(text="".join([*lines, "data: [DONE]\n\n"]), content_type="text/event-stream")

    return answer


def plain(text: str, status: int = 200, kind: str = "text/html", **headers: str) -> Answer:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=text, status=status, content_type=kind, headers=headers)

    return answer


@dataclass
class Server:
    """A Letta server that plays its `answers` to messages one after the other and notes what it is asked."""

    url: str = ""
    answers: list[Answer] = field(default_factory=list[Answer])
    agents: dict[str, dict[str, Any]] = field(default_factory=lambda: {"agent-old": {"model": "old/model"}})
    conversations: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    asked: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    bodies: list[Any] = field(default_factory=list[Any])
    uploads: list[bytes] = field(default_factory=list[bytes])
    refuses_import: bool = False
    marks: list[str | None] = field(default_factory=list[str | None])

    def app(self) -> web.Application:
        app = web.Application(client_max_size=2**26, middlewares=[self._note])
        app.add_routes(
            [
                web.post("/v1/agents/", self._create),
                web.post("/v1/agents/import", self._import),
                web.get("/v1/agents/{id}", self._retrieve),
                web.patch("/v1/agents/{id}", self._update),
                web.delete("/v1/agents/{id}", self._delete),
                web.post("/v1/agents/{id}/messages", self._message),
                web.get("/v1/tools/", self._tools),
                web.put("/v1/tools/", self._upsert),
                web.post("/v1/conversations/", self._converse),
                web.delete("/v1/conversations/{id}", self._end),
                web.post("/v1/conversations/{id}/messages", self._message),
            ]
        )
        return app

    @web.middleware
    async def _note(self, request: web.Request, handler: Answer) -> web.StreamResponse:
        self.asked.append((request.method, request.path))
        self.marks.append(request.headers.get("baggage"))
        assert request.headers["Authorization"] == f"Bearer {KEY}"
        assert request.headers["X-Project-Id"] == "project-1"
        return await handler(request)

    async def _create(self, request: web.Request) -> web.Response:
        id_ = f"agent-{len(self.agents)}"
        self.agents[id_] = await request.json()
        return web.json_response({"id": id_, "name": "made"})

    async def _import(self, request: web.Request) -> web.Response:
        if self.refuses_import:
            return web.Response(text="<html>Welcome</html>", content_type="text/html")
        part = await (await request.multipart()).next()
        self.uploads.append(await part.read())  # type: ignore[union-attr]
        id_ = f"agent-{len(self.agents)}"
        self.agents[id_] = {}
        return web.json_response({"agent_ids": [id_]})

    async def _retrieve(self, request: web.Request) -> web.Response:
        blocks = [
            {"label": "human", "value": "Likes bananas.", "id": "block-1"},
            {"label": "persona", "value": "Kind."},
        ]
        assert request.query.getall("include") == ["agent.blocks"]
        return web.json_response({"id": request.match_info["id"], "blocks": blocks})

    async def _update(self, request: web.Request) -> web.Response:
        self.agents[request.match_info["id"]] |= await request.json()
        return web.json_response({"id": request.match_info["id"]})

    async def _delete(self, request: web.Request) -> web.Response:
        if self.agents.pop(request.match_info["id"], None) is None:
            return web.json_response({"detail": "Not found"}, status=404)
        return web.json_response({"message": "deleted"})

    async def _tools(self, _: web.Request) -> web.Response:
        return web.json_response([])

    async def _upsert(self, request: web.Request) -> web.Response:
        self.bodies.append(await request.json())
        return web.json_response({"id": "tool-1", "name": "made"})

    async def _converse(self, request: web.Request) -> web.Response:
        agent_id = request.query["agent_id"]
        id_ = f"conv-{len(self.conversations)}"
        self.conversations[id_] = {"agent_id": agent_id, **(await request.json())}
        return web.json_response({"id": id_, "agent_id": agent_id})

    async def _end(self, request: web.Request) -> web.Response:
        del self.conversations[request.match_info["id"]]
        return web.json_response(None)

    async def _message(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        return await self.answers.pop(0)(request)


@pytest.fixture
async def server() -> AsyncGenerator[Server]:
    server = Server()
    runner = web.AppRunner(server.app(), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield server
    await runner.cleanup()


async def create(client: AsyncLetta, sample: FactorySample) -> str:
    agent = await client.agents.create(name=str(sample.agent_args["name"]))
    return agent.id


Make = Callable[..., LettaTarget]


@pytest.fixture
async def make(server: Server) -> AsyncGenerator[Make]:
    targets: list[LettaTarget] = []

    def target(source: AgentSource | None = None, **options: Any) -> LettaTarget:
        access = LettaAccess(server.url, KEY, "project-1")
        targets.append(LettaTarget(source or AgentSource(factory=create), access, **options))
        return targets[-1]

    yield target
    for one in targets:
        await one.close()


def opening(sample: str = "s1") -> Opening:
    return Opening(f"attempt-{sample}", sample, agent_args={"name": sample})


async def test_three_turns_go_to_one_agent_one_message_each(server: Server, make: Make) -> None:
    server.answers = [sse(PING, says(city), STOP, USED) for city in ("Paris", "Berlin", "Madrid")]
    session = await make().open(opening())
    history: list[AnyMessage] = []
    for country in ("France", "Germany", "Spain"):
        history.append(HumanMessage(content=f"The capital of {country}?"))
        reply = await session.send(history)
        assert reply.usage == Usage(input_tokens=20, output_tokens=5, cached_input_tokens=8, calls=2)
        history += reply.messages
    assert [m.text for m in history if isinstance(m, AIMessage)] == ["Paris", "Berlin", "Madrid"]
    assert [body["messages"] for body in server.bodies] == [
        [{"role": "user", "content": f"The capital of {country}?"}] for country in ("France", "Germany", "Spain")
    ]
    assert server.asked.count(("POST", "/v1/agents/agent-1/messages")) == 3


async def test_requests_of_a_run_are_marked_as_those_of_a_test(server: Server, make: Make) -> None:
    server.answers = [sse(PING, says("Paris"), STOP, USED)] * 2
    session = await make().open(opening())
    with of_run("nightly-1"):
        await session.send([HumanMessage(content="The capital of France?")])
    assert (server.marks[0], server.marks[-1]) == (None, "vivavoce.run=nightly-1")


async def test_parallel_calls_and_results_are_one_message_and_several(server: Server, make: Make) -> None:
    step = {"id": "message-2", "date": DATE, "step_id": "step-1"}
    calls = [{"name": "find", "arguments": f'{{"q":{i}}}', "tool_call_id": f"call-{i}"} for i in range(2)]
    returns = [
        {"tool_call_id": "call-0", "status": "success", "tool_return": "zero", "type": "tool"},
        {"tool_call_id": "call-1", "status": "error", "tool_return": [{"type": "text", "text": "one"}], "type": "tool"},
    ]
    events = [
        {**step, "message_type": "reasoning_message", "reasoning": "Look it up."},
        {**step, "message_type": "tool_call_message", "tool_call": calls[0], "tool_calls": calls},
        {**step, **returns[0], "message_type": "tool_return_message", "tool_returns": returns},
        says("Found."),
    ]
    server.answers = [sse(*events, STOP, USED)]
    reply = await (await make().open(opening())).send([HumanMessage(content="Find")])
    calling, zero, one, last = reply.messages
    assert calling.to_dict() == {
        "role": "assistant",
        "content": None,
        "reasoning_content": "Look it up.",
        "timestamp": "2026-01-02T03:04:05Z",
        "tool_calls": [
            {"id": f"call-{i}", "type": "function", "function": {"name": "find", "arguments": f'{{"q":{i}}}'}}
            for i in range(2)
        ],
    }
    assert isinstance(zero, ToolMessage)
    assert isinstance(one, ToolMessage)
    assert [(m.tool_call_id, m.name, m.text, m.outcome) for m in (zero, one)] == [
        ("call-0", "find", "zero", None),
        ("call-1", "find", "one", "failed"),
    ]
    assert last.text == "Found."


async def test_images_are_sent_as_letta_takes_them(server: Server, make: Make) -> None:
    server.answers = [sse(says("A cat."), STOP)]
    urls = ["data:image/png;base64,AAAA", "https://example.org/cat.png"]
    parts: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    message = read_message({"role": "user", "content": [{"type": "text", "text": "What is it?"}, *parts]})
    await (await make().open(opening())).send([message])
    assert server.bodies[0]["messages"][0]["content"] == [
        {"type": "text", "text": "What is it?"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/cat.png"}},
    ]


async def test_the_memory_is_told_by_label(make: Make) -> None:
    session = await make().open(opening())
    assert await session.state() == {"human": "Likes bananas.", "persona": "Kind."}


async def test_a_rate_limit_before_the_turn_may_be_repeated_and_is_not_by_itself(server: Server, make: Make) -> None:
    server.answers = [plain('{"detail": "slow"}', 429, "application/json", **{"Retry-After": "7"})]
    session = await make().open(opening())
    with pytest.raises(RateLimited) as caught:
        await session.send([HumanMessage(content="Hi")])
    assert (caught.value.retry_after, caught.value.retryable) == (7.0, True)
    assert len(server.bodies) == 1


async def test_a_failing_server_is_asked_once_and_its_words_kept_without_the_key(server: Server, make: Make) -> None:
    server.answers = [plain(f'{{"detail": "broken for {KEY}"}}', 500, "application/json")]
    session = await make().open(opening())
    with pytest.raises(TargetFault, match="answered 500") as caught:
        await session.send([HumanMessage(content="Hi")])
    assert (caught.value.kind, caught.value.retryable) == ("http", False)
    assert caught.value.evidence == '{"detail": "broken for ***"}'
    assert len(server.bodies) == 1


FAILED = {"message_type": "error_message", "error_type": "llm_timeout", "message": "The model is gone", "run_id": "r"}
ENDS = {
    "a page": (plain("<html>Welcome</html>"), "format", "<html>Welcome</html>"),
    "half a turn": (sse(says("Par")), "format", "AI: Par"),
    "no JSON": (plain("data: {oh\n\n", kind="text/event-stream"), "format", "{oh"),
    "an error message": (sse(says("Par"), FAILED, {**STOP, "stop_reason": "error"}), "crash", "llm_timeout"),
    "an error event": (
        plain('event: error\ndata: {"error": 1}\n\n', kind="text/event-stream"),
        "crash",
        '{"error": 1}',
    ),
    "a broken model": (sse({**STOP, "stop_reason": "llm_api_error"}), "crash", None),
    "a malformed event": (sse({**says("x"), "content": 5}, STOP), "format", "'content': 5"),
    "too much": (plain("data: " + "x" * 11_000_000, kind="text/event-stream"), "size", "xxxx"),
}


@pytest.mark.parametrize("end", ENDS)
async def test_a_turn_that_goes_wrong_is_a_fault_with_evidence(server: Server, make: Make, end: str) -> None:
    answer, kind, evidence = ENDS[end]
    server.answers = [answer]
    session = await make().open(opening())
    with pytest.raises(TargetFault) as caught:
        await session.send([HumanMessage(content="Hi")])
    assert (caught.value.kind, caught.value.retryable) == (kind, False)
    assert (evidence or "") in (caught.value.evidence or "")


async def test_an_approval_that_nobody_gives_is_a_fault(server: Server, make: Make) -> None:
    call = {"name": "pay", "arguments": "{}", "tool_call_id": "call-1"}
    request = {"message_type": "approval_request_message", "id": "m", "date": DATE, "tool_call": call}
    server.answers = [sse(request, {**STOP, "stop_reason": "requires_approval"}, USED)]
    session = await make().open(opening())
    with pytest.raises(TargetFault, match="approve its call of pay"):
        await session.send([HumanMessage(content="Pay")])


async def test_a_rate_limit_within_the_turn_is_not_to_be_repeated(server: Server, make: Make) -> None:
    server.answers = [sse({**FAILED, "error_type": "llm_rate_limit"}, {**STOP, "stop_reason": "error"})]
    session = await make().open(opening())
    with pytest.raises(RateLimited) as caught:
        await session.send([HumanMessage(content="Hi")])
    assert not caught.value.retryable


async def test_a_hanging_server_can_be_given_up(server: Server, make: Make) -> None:
    async def hang(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(60)
        raise AssertionError

    server.answers = [hang, sse(says("Here"), STOP)]
    session = await make(cleanup=True).open(opening())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await session.send([HumanMessage(content="Hi")])
    await session.close()
    assert list(server.agents) == ["agent-old"]


async def test_no_server_is_a_fault_that_may_be_repeated(server: Server) -> None:
    target = LettaTarget(AgentSource(factory=create), LettaAccess("http://127.0.0.1:9", KEY))
    with pytest.raises(TargetFault) as caught:
        await target.open(opening())
    assert (caught.value.kind, caught.value.retryable) == ("connection", True)
    await target.close()


async def test_an_agent_file_is_imported_for_each_conversation(server: Server, make: Make, tmp_path: Path) -> None:
    file = tmp_path / "bot.af"
    file.write_text('{"agents": []}')
    target = make(AgentSource(agent_file=file), model="openai/gpt", cleanup=True)
    one, two = [await target.open(opening(sample)) for sample in ("s1", "s2")]
    assert one.id != two.id
    assert server.uploads == [b'{"agents": []}'] * 2
    assert server.agents[one.id] == {"model": "openai/gpt"}
    await one.close()
    assert list(server.agents) == ["agent-old", two.id]
    del server.agents[two.id]
    await two.close()


async def test_an_import_that_answers_a_page_is_a_fault(server: Server, make: Make, tmp_path: Path) -> None:
    file = tmp_path / "bot.af"
    file.write_text("{}")
    server.refuses_import = True
    with pytest.raises(TargetFault, match="agent_ids") as caught:
        await make(AgentSource(agent_file=file)).open(opening())
    assert caught.value.evidence == "<html>Welcome</html>"


@pytest.mark.parametrize(("said", "known"), [(["Hi"], "Hi"), (["Hi", "And?"], ["Hi", "And?"]), ([], [])])
async def test_a_factory_may_know_what_the_user_will_say(make: Make, said: list[str], known: str | list[str]) -> None:
    seen: list[object] = []

    async def note(client: AsyncLetta, sample: FactorySample) -> str:
        seen.append(sample.input)
        return await create(client, FactorySample("s", {"name": "x"}, {}))

    await make(AgentSource(factory=note)).open(Opening("c", "s", said=said))
    assert seen == [known]


async def test_a_factory_makes_an_agent_of_the_sample(server: Server, make: Make) -> None:
    session = await make(model="openai/gpt").open(opening("blue"))
    assert server.agents[session.id] == {"name": "blue", "model": "openai/gpt"}
    await session.close()
    assert session.id in server.agents


async def test_a_set_up_adds_a_tool_that_is_a_class_as_with_the_first_client(
    server: Server, make: Make, tmp_path: Path
) -> None:
    (tmp_path / "inventory_tool.py").write_text(TOOL)
    (tmp_path / "setup.py").write_text(SETUP.format(model=""))
    await load_object("setup.py:prepare_evaluation", tmp_path)(make().client)
    (body,) = server.bodies
    assert body["source_code"].splitlines()[0] == "def manage_inventory(data: str, quantity_change: int) -> str:"
    assert "self" not in body["source_code"]
    assert (body["description"], body["tags"]) == ("Update the inventory", ["inventory"])
    assert set(body["args_json_schema"]["properties"]) == {"data", "quantity_change"}


async def test_a_factory_written_for_the_first_client_makes_an_agent(
    server: Server, make: Make, tmp_path: Path
) -> None:
    names = "AsyncLetta, CreateBlock, MessageCreate"
    (tmp_path / "setup_agent.py").write_text(AGENT.format(names=names, block="CreateBlock"))
    factory = load_object("setup_agent.py:setup_agent", tmp_path)
    session = await make(AgentSource(factory=factory)).open(Opening("c", "s", {"facts": ["one"]}))
    assert server.agents[session.agent_id]["memory_blocks"] == [{"label": "facts", "value": "['one']"}]


async def test_cleanup_spares_an_agent_that_the_factory_only_found(server: Server, make: Make) -> None:
    async def find(client: AsyncLetta, sample: FactorySample) -> str:
        await client.agents.create(name="helper")
        return "agent-old"

    session = await make(AgentSource(factory=find), cleanup=True).open(opening())
    await session.close()
    assert list(server.agents) == ["agent-old"]


async def test_agents_of_a_factory_that_breaks_are_deleted_and_the_suite_is_to_blame(
    server: Server, make: Make
) -> None:
    async def breaks(client: AsyncLetta, sample: FactorySample) -> str:
        await client.agents.create(name="half")
        return str(sample.agent_args["colour"])

    with pytest.raises(SuiteFault, match="KeyError: 'colour'"):
        await make(AgentSource(factory=breaks), cleanup=True).open(opening())
    assert list(server.agents) == ["agent-old"]


async def test_an_agent_by_id_talks_in_conversations_apart_and_stays_as_it_was(server: Server, make: Make) -> None:
    server.answers = [sse(says("One"), STOP), sse(says("Two"), STOP)]
    target = make(AgentSource(agent_id="agent-old"), model="openai/gpt", cleanup=True)
    sessions = [await target.open(opening(sample)) for sample in ("s1", "s2")]
    assert server.conversations["conv-1"] == {"agent_id": "agent-old", "model": "openai/gpt"}
    replies = [await session.send([HumanMessage(content="Hi")]) for session in sessions]
    assert [reply.messages[0].text for reply in replies] == ["One", "Two"]
    assert [place for _, place in server.asked if "messages" in place] == [
        "/v1/conversations/conv-0/messages",
        "/v1/conversations/conv-1/messages",
    ]
    for session in sessions:
        await session.close()
    assert (server.conversations, server.agents) == ({}, {"agent-old": {"model": "old/model"}})


async def test_a_user_who_comes_back_has_the_same_agent_until_the_attempt_ends(server: Server, make: Make) -> None:
    asked_for: list[str | None] = []

    async def factory(client: AsyncLetta, sample: FactorySample) -> str:
        asked_for.append(sample.user)
        return await create(client, sample)

    target = make(AgentSource(factory=factory), model="openai/gpt", cleanup=True)
    ana, bo = new_user("ana", "a", 1), new_user("bo", "a", 2)
    sessions = [await target.open(replace(opening("s1"), user=user)) for user in (ana, bo, ana)]
    for session in sessions:
        await session.close()
    assert asked_for == [ana.id, bo.id]
    assert [conversation["agent_id"] for conversation in server.conversations.values()] == [
        "agent-1",
        "agent-2",
        "agent-1",
    ]
    assert len({session.id for session in sessions}) == 3
    assert set(server.agents) == {"agent-old", "agent-1", "agent-2"}
    for user in (ana, bo):
        await user.forget()
    assert set(server.agents) == {"agent-old"}


def test_an_agent_whose_memory_outlives_the_attempt_is_for_no_user_who_comes_back(make: Make, tmp_path: Path) -> None:
    file = tmp_path / "a.af"
    file.write_text("{}")
    assert knows_users(make(AgentSource(agent_file=file)))
    assert not knows_users(make(AgentSource(agent_id="agent-old")))


async def test_a_conversation_cannot_begin_in_the_middle(make: Make) -> None:
    session = await make().open(opening())
    with pytest.raises(UsageError, match="its own history"):
        await session.send([HumanMessage(content="Hi"), AIMessage(content="Hello"), HumanMessage(content="Bye")])


def test_exactly_one_source_of_agents_is_needed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="got 0"):
        AgentSource()
    with pytest.raises(UsageError, match="got 2"):
        AgentSource(agent_id="agent-1", factory=create)
    with pytest.raises(UsageError, match="no agent file"):
        AgentSource(agent_file=tmp_path / "gone.af")


def test_the_environment_says_what_the_suite_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LETTA_BASE_URL", "LETTA_API_KEY", "LETTA_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)
    assert LettaAccess.find() == LettaAccess(LOCAL)
    monkeypatch.setenv("LETTA_API_KEY", KEY)
    monkeypatch.setenv("LETTA_PROJECT_ID", "project-1")
    assert LettaAccess.find() == LettaAccess(CLOUD, KEY, "project-1")
    monkeypatch.setenv("LETTA_BASE_URL", "http://letta.example/")
    assert LettaAccess.find(project_id="other") == LettaAccess("http://letta.example", KEY, "other")
    assert KEY not in repr(LettaAccess.find())
