"""Runnables and graphs as targets, shaped as the real ones are (langchain-core 1.7, langgraph 1.2)."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypedDict

import pytest

from asking import asked, installed, told
from exams import agent
from stage import judge, player
from vivavoce.errors import TargetFault, UsageError
from vivavoce.records.score import Usage
from vivavoce.targets import LangChainTarget


def said(kind: str, content: object, **more: Any) -> Any:
    return SimpleNamespace(type=kind, content=content, **more)


class Runnable:
    """Notes what it is given, and answers with what a function makes of it."""

    def __init__(self, answer: Callable[[Any], Any], schema: Any = None) -> None:
        self.answer = answer
        self.given: list[Any] = []
        self.configs: list[Any] = []
        self._schema = schema or {"type": "array"}

    def get_input_jsonschema(self) -> Any:
        return self._schema

    def invoke(self, given: Any, config: Any = None) -> Any:
        self.given.append(given)
        self.configs.append(config)
        return self.answer(given)


class Graph(Runnable):
    checkpointer: object = None


class AsyncRunnable(Runnable):
    async def ainvoke(self, given: Any, config: Any = None) -> Any:
        return self.invoke(given, config)


def takes(**kinds: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in kinds.items()},
        "required": list(kinds),
    }


WIRE = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "A"}, {"role": "user", "content": "b"}]


@pytest.mark.parametrize("kind", [Runnable, AsyncRunnable])
async def test_a_chat_model_gets_the_conversation(kind: type[Runnable]) -> None:
    model = kind(lambda given: said("ai", given[-1]["content"].upper()))
    target = LangChainTarget(model, "model")
    replies = await asked(target, "a", "b")
    assert [reply.messages[0].text for reply in replies] == ["A", "B"]
    assert model.given == [WIRE[:1], WIRE]
    assert model.configs[0] == {"configurable": {"thread_id": "c-1", "session_id": "c-1"}}
    assert (target.name, target.stateless) == ("model", True)


@pytest.mark.parametrize(
    ("schema", "second", "stateless"),
    [
        (takes(question="string"), {"question": "b"}, False),
        (takes(input="string", history="array"), {"input": "b", "history": WIRE[:2]}, True),
        (takes(messages="array"), {"messages": WIRE}, True),
    ],
)
async def test_a_chain_gets_what_its_inputs_ask_for(schema: Any, second: Any, stateless: bool) -> None:
    chain = AsyncRunnable(lambda given: {"output": "A"}, schema)
    target = LangChainTarget(chain)
    await asked(target, "a", "b")
    assert chain.given[1] == second
    assert (target.stateless, target.name) == (stateless, "AsyncRunnable")


async def test_a_graph_gives_its_new_messages_with_what_they_used() -> None:
    def run(state: Any) -> Any:
        calls: list[Any] = [{"name": "f", "args": {}, "id": "c1"}]
        new = [
            said("ai", "", tool_calls=calls, usage_metadata={"input_tokens": 3, "output_tokens": 2}),
            said("tool", "1", tool_call_id="c1"),
            said("ai", "Done.", usage_metadata={"input_tokens": 5, "output_tokens": 1}),
        ]
        return {"messages": [said("human", one["content"]) for one in state["messages"]] + new}

    graph = Graph(run)
    graph.checkpointer = None
    target = LangChainTarget(graph)
    (reply,) = await asked(target, "a")
    assert [message.role for message in reply.messages] == ["assistant", "tool", "assistant"]
    assert reply.usage == Usage(input_tokens=8, output_tokens=3, calls=2)
    assert target.stateless


async def test_a_graph_that_remembers_gets_the_new_message_alone() -> None:
    graph = Graph(lambda state: {"messages": state["messages"] + [said("ai", "A")]})
    graph.checkpointer = object()
    target = LangChainTarget(graph)
    await asked(target, "a", "b")
    assert graph.given == [{"messages": WIRE[:1]}, {"messages": WIRE[2:]}]
    assert not target.stateless


class Question(TypedDict):
    question: str
    found: list[str]


class Talk(TypedDict):
    messages: list[str]
    question: str


class Pair(TypedDict):
    question: str
    answer: str


@pytest.mark.parametrize(
    ("state", "keys", "given"),
    [
        (Question, {}, {"question": "a"}),
        (Pair, {"input_key": "answer"}, {"answer": "a"}),
        (Pair, {"state_key": "answer"}, {"answer": WIRE[:1]}),
        (Talk, {}, {"messages": WIRE[:1]}),
        (int, {}, {"messages": WIRE[:1]}),
    ],
)
async def test_a_graph_gets_what_its_state_has(state: Any, keys: Any, given: Any) -> None:
    graph = Graph(lambda given: {"answer": "A"})
    vars(graph)["builder"] = SimpleNamespace(input_schema=state)
    [reply] = await asked(LangChainTarget(graph, **keys), "a")
    assert told(reply) == [("assistant", None, "A", [])]
    assert graph.given == [given]


def test_a_graph_whose_message_could_be_several_is_named_before_it_runs() -> None:
    graph = Graph(str)
    vars(graph)["builder"] = SimpleNamespace(input_schema=Pair)
    with pytest.raises(UsageError, match=r"desk takes question, answer; make a LangChainTarget of it and say with"):
        LangChainTarget(graph, "desk")


async def test_inputs_without_a_schema_are_the_messages() -> None:
    class Untold(Runnable):
        def get_input_jsonschema(self) -> Any:
            raise TypeError("no schema of a thread")

    chain = Untold(lambda given: "A")
    await asked(LangChainTarget(chain), "a")
    assert chain.given == [WIRE[:1]]


async def test_a_graph_that_interrupts_itself_asks_and_is_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "langgraph.types", Command=dict)
    call: Any = {"name": "refund", "args": {}, "id": "c1"}
    wants = said("ai", "", id="m1", tool_calls=[call])

    def run(given: Any) -> Any:
        user = said("human", "refund me", id="m0")
        if "resume" not in given:
            return {"messages": [user, wants], "__interrupt__": [SimpleNamespace(value="Shall I?")]}
        done = [said("tool", "ok", id="m2", tool_call_id="c1"), said("ai", "Done.", id="m3")]
        return {"messages": [user, wants, *done]}

    graph = Graph(run)
    graph.checkpointer = object()
    first, second = await asked(LangChainTarget(graph), "refund me", "yes")
    assert told(first) == [("assistant", None, "", [("c1", "refund", "{}")]), ("assistant", None, "Shall I?", [])]
    assert told(second) == [("tool", None, "ok", []), ("assistant", None, "Done.", [])]
    assert graph.given[1] == {"resume": "yes"}


class StreamingGraph(Graph):
    async def astream(self, given: Any, stream_mode: Any = None, config: Any = None) -> Any:
        assert stream_mode == ["messages", "values"]
        yield "messages", (said("human", "a"), {})
        yield "messages", (said("ai", "A"), {})
        yield "values", {"messages": [said("human", "a"), said("ai", "A!")]}


async def test_pieces_of_a_reply_are_timed_where_they_are_asked_for() -> None:
    (reply,) = await asked(LangChainTarget(StreamingGraph(str), stream=True), "a")
    assert told(reply) == [("assistant", None, "A!", [])]
    assert 0 < (reply.messages[0].metadata or {})["first_token"] < 1


async def test_a_configuration_of_ones_own_is_kept() -> None:
    model = Runnable(lambda given: said("ai", "A"))
    own = {"recursion_limit": 3, "configurable": {"user": "ann"}}
    await asked(LangChainTarget(model, options={"config": own}), "a")
    assert model.configs == [
        {"recursion_limit": 3, "configurable": {"thread_id": "c-1", "session_id": "c-1", "user": "ann"}}
    ]


async def test_what_it_raises_and_what_is_no_message_are_faults_of_the_target() -> None:
    with pytest.raises(TargetFault, match="Runnable raised ZeroDivisionError") as raised:
        await asked(LangChainTarget(Runnable(lambda given: 1 / 0)), "a")
    assert raised.value.kind == "crash"
    with pytest.raises(TargetFault, match="Runnable returned something of type int") as raised:
        await asked(LangChainTarget(Runnable(lambda given: {"answer": 5})), "a")
    assert raised.value.kind == "format"


def test_inputs_that_are_not_understood_are_named() -> None:
    with pytest.raises(
        UsageError, match="Runnable takes input, language; make a LangChainTarget of it and say with input_key which"
    ):
        LangChainTarget(Runnable(str, takes(input="string", language="string")))
    assert (
        LangChainTarget(Runnable(str, takes(input="string", language="string")), input_key="input").prepared.text_key
        == "input"
    )
    with pytest.raises(UsageError, match="expected a runnable with invoke, got a str"):
        LangChainTarget("x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_the_tester_takes_a_runnable_as_it_is() -> None:
    result = agent(player(), judge(True)).execute_test(AsyncRunnable(lambda given: said("ai", "Yes.")), goal="Learn")
    assert [message.text for message in result.conversation.messages] == ["question 1", "Yes."]
