"""A whole loop in each turn, over HTTP: the model calls, the toolbox answers, the model is asked again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import pytest

from vivavoce.comparing.call_outcomes import words_say_failed
from vivavoce.errors import Fault, RateLimited, SuiteFault, TargetFault, ToolError, UsageError
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from vivavoce.records.trajectory import origin
from vivavoce.targets.openai import OpenAISession, OpenAITarget
from vivavoce.targets.target import Opening, Reply
from vivavoce.testing import LoopbackServer, misbehaviour
from vivavoce.tools.toolbox import FunctionTool, Toolbox
from vivavoce.wire.http import Limits

HELLO: list[AnyMessage] = [HumanMessage(content="Where is order 7?")]


def definition(name: str, *arguments: str) -> dict[str, Any]:
    properties = {argument: {"type": "string"} for argument in arguments}
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}


LOOK_UP = definition("look_up", "order")
REFUND = definition("refund", "order", "amount")


def calling(*calls: ToolCall, then: str = "Done.") -> Callable[[dict[str, Any]], Any]:
    """Return a model that makes one call after the other in each turn, and then answers."""

    def answer(body: dict[str, Any]) -> Any:
        messages = body["messages"]
        last = max(place for place, message in enumerate(messages) if message["role"] == "user")
        reply_count = sum(message["role"] == "assistant" for message in messages[last:])
        return [calls[reply_count]] if reply_count < len(calls) else then

    return answer


def positional(order: str, /) -> str:
    return order


def call(name: str, call_id: str = "c1", **arguments: Any) -> ToolCall:
    return ToolCall(id=call_id, name=name, args=arguments)


@pytest.fixture
async def server() -> AsyncIterator[LoopbackServer]:
    async with LoopbackServer() as server:
        yield server


async def open_session(server: LoopbackServer, toolbox: Toolbox, **about: Any) -> OpenAISession:
    target = OpenAITarget("bot", server.base_url, "m-1", tools=toolbox, limits=Limits(timeout=5))
    return await target.open(Opening("c-1", "s-1", **about))


async def send(session: OpenAISession, messages: Sequence[AnyMessage] = HELLO) -> Reply:
    try:
        return await session.send(messages)
    finally:
        await session.close()
        await session.target.close()


async def fault_of(session: OpenAISession) -> Fault:
    with pytest.raises(Fault) as caught:
        await send(session)
    return caught.value


def results(reply: Reply) -> list[tuple[str, Mapping[str, Any]]]:
    messages = [message for message in reply.messages if isinstance(message, ToolMessage)]
    return [
        (message.text, {k: v for k, v in (message.metadata or {}).items() if k != "seconds"}) for message in messages
    ]


async def test_a_function_answers_and_the_model_is_asked_again(server: LoopbackServer) -> None:
    def look_up(order: int, fast: bool = True) -> dict[str, Any]:
        """Find an order.

        Not for the model.
        """
        return {"order": order, "status": "sent", "fast": fast}

    server.answer = calling(call("look_up", order=7))
    reply = await send(await open_session(server, Toolbox(handlers={"look_up": look_up})))
    assert [message.role for message in reply.messages] == ["assistant", "tool", "assistant"]
    assert results(reply) == [
        ('{"order": 7, "status": "sent", "fast": true}', {"answered_by": "function", "mocked": False})
    ]
    assert reply.usage is not None
    assert reply.usage.calls == 2
    assert server.requests[0].body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "look_up",
                "description": "Find an order.",
                "parameters": {
                    "type": "object",
                    "properties": {"order": {"type": "integer"}, "fast": {"type": "boolean"}},
                    "required": ["order"],
                    "additionalProperties": False,
                },
            },
        }
    ]
    assert [message["role"] for message in server.requests[1].body["messages"]] == ["user", "assistant", "tool"]
    assert server.requests[1].body["messages"][2] == {
        "role": "tool",
        "content": '{"order": 7, "status": "sent", "fast": true}',
        "tool_call_id": "c1",
    }


async def test_the_answers_of_parallel_calls_stand_in_the_order_of_the_calls(server: LoopbackServer) -> None:
    slow = {"result": "slow", "delay": 0.05}
    calls = [call("refund", "a"), call("look_up", "b"), call("refund", "c")]
    server.answer = lambda body: calls if len(body["messages"]) == 1 else "Done."
    toolbox = Toolbox([LOOK_UP, REFUND], {"refund": slow, "look_up": {"result": {"a": [1]}}})
    reply = await send(await open_session(server, toolbox))
    tools = [message for message in reply.messages if isinstance(message, ToolMessage)]
    assert [(tool.tool_call_id, tool.text) for tool in tools] == [("a", "slow"), ("b", '{"a": [1]}'), ("c", "slow")]
    assert all((tool.metadata or {})["mocked"] is True for tool in tools)
    assert (tools[0].metadata or {})["seconds"] >= 0.05


async def test_the_first_case_that_fits_answers(server: LoopbackServer) -> None:
    cases = [
        {"when": {"order": "A-1"}, "arguments": {"order": "casefold"}, "error": "unknown"},
        {"when": {"order": "B"}, "result": "first", "times": 1},
        {"result": "else"},
    ]
    orders = ["a-1", "B", "B", "C"]
    server.answer = calling(*(call("refund", order=order, amount="1") for order in orders))
    reply = await send(await open_session(server, Toolbox([REFUND], {"refund": cases})))
    failed = {"answered_by": "canned", "mocked": True}
    canned = {"answered_by": "canned", "mocked": True}
    assert results(reply) == [("Error: unknown", failed), ("first", canned), ("else", canned), ("else", canned)]


async def test_a_row_answers_before_the_handler_and_leaves_to_it_what_it_does_not_fit(server: LoopbackServer) -> None:
    server.answer = calling(call("look_up", order="1"), call("look_up", order="2"))
    toolbox = Toolbox([LOOK_UP], {"look_up": {"result": "usual"}})
    own = {"look_up": {"when": {"order": "2"}, "error": "down"}}
    reply = await send(await open_session(server, toolbox, tool_results=own))
    assert [text for text, _ in results(reply)] == ["usual", "Error: down"]
    [usual, own_one] = [message for message in reply.messages if isinstance(message, ToolMessage)]
    assert (usual.metadata or {})["passed_over"] == 'case 1: argument "order": wanted "2", got "1"'
    assert "passed_over" not in (own_one.metadata or {})
    assert (origin(usual), origin(own_one)) == ("canned, not as in the row", "canned")


async def test_a_case_for_an_argument_that_the_tool_has_not_is_an_error(server: LoopbackServer) -> None:
    server.answer = calling(call("look_up", order="1"))
    misspelt = {"look_up": {"when": {"ordr": "1"}, "error": "down"}}
    with pytest.raises(SuiteFault, match=r"tool_results.look_up: when: the tool has no argument 'ordr'; did you mean"):
        await open_session(server, Toolbox([LOOK_UP], {"look_up": {"result": "usual"}}), tool_results=misspelt)
    with pytest.raises(UsageError, match=r"handlers.look_up: when: the tool has no argument 'ordr'"):
        Toolbox([LOOK_UP], misspelt)


async def test_a_call_that_nobody_answers_is_an_error_of_the_suite_before_the_model_is_asked_again(
    server: LoopbackServer,
) -> None:
    server.answer = calling(call("refund", order="1"))
    fault = await fault_of(await open_session(server, Toolbox([LOOK_UP, REFUND], {"look_up": {"result": 1}})))
    assert (fault.blame, fault.kind) == ("suite", "unanswered")
    assert "no handler answers the tool 'refund'; give the target handlers: {refund: …}" in str(fault)
    assert fault.evidence == '  → refund({"order": "1"})'
    assert len(server.requests) == 1


async def test_no_case_that_fits_says_how_each_differs(server: LoopbackServer) -> None:
    server.answer = calling(call("refund", order="1"))
    cases = [{"when": {"order": "2"}, "result": 1}]
    fault = await fault_of(await open_session(server, Toolbox([REFUND], {"refund": cases})))
    assert fault.blame == "suite"
    assert str(fault).startswith('no case of handlers.refund fits refund({"order": "1"}); add a case')
    assert fault.evidence == 'case 1: argument "order": wanted "2", got "1"'


async def test_tools_without_answers_end_the_turn_and_the_next_one_is_an_error(server: LoopbackServer) -> None:
    server.answer = calling(call("refund", order="1"))
    target = OpenAITarget("bot", server.base_url, "m-1", tools=[REFUND])
    session = await target.open(Opening("c-1", "s-1"))
    reply = await session.send(HELLO)
    assert reply.messages == [AIMessage(content=None, tool_calls=[call("refund", order="1")])]
    with pytest.raises(SuiteFault, match="no handler answers the tool 'refund'"):
        await session.send([*HELLO, *reply.messages, HumanMessage(content="And?")])
    assert len(server.requests) == 1
    await target.close()


async def test_a_model_that_does_nothing_but_call_is_stopped(server: LoopbackServer) -> None:
    server.answer = lambda body: [call("look_up", order="7")]
    fault = await fault_of(await open_session(server, Toolbox([LOOK_UP], {"look_up": {"result": 1}}, max_steps=3)))
    assert isinstance(fault, TargetFault)
    assert (fault.kind, fault.retryable) == ("steps", False)
    assert "bot called tools 4 times in one turn and did not answer the user; max_steps is 3" in str(fault)
    assert (fault.evidence or "").count("→ look_up") == 4
    assert len(server.requests) == 4


async def test_a_tool_error_is_for_the_model_and_any_other_is_of_the_suite(server: LoopbackServer) -> None:
    def look_up(order: str) -> str:
        if order == "1":
            raise ToolError("no such order")
        raise KeyError(order)

    server.answer = calling(call("look_up", order="1"))
    reply = await send(await open_session(server, Toolbox(handlers={"look_up": look_up})))
    assert results(reply) == [("Error: no such order", {"answered_by": "function", "mocked": False})]
    server.answer = calling(call("look_up", order="2"))
    fault = await fault_of(await open_session(server, Toolbox(handlers={"look_up": look_up})))
    assert (fault.blame, fault.kind) == ("suite", "crash")
    assert str(fault).startswith("the handler of 'look_up' raised KeyError: '2', at test_toolbox.py:")
    assert "raise KeyError(order)" in (fault.evidence or "")


@pytest.mark.parametrize(
    ("error", "text"),
    [(KeyboardInterrupt(), "raised RuntimeError: it raised KeyboardInterrupt"), (SystemExit(3), "sys.exit(3)")],
)
async def test_a_handler_that_ends_the_program_is_a_crash_of_its_own(
    server: LoopbackServer, error: BaseException, text: str
) -> None:
    def look_up(order: str) -> str:
        raise error

    server.answer = calling(call("look_up", order="1"))
    fault = await fault_of(await open_session(server, Toolbox(handlers={"look_up": look_up})))
    assert (fault.blame, fault.kind) == ("suite", "crash")
    assert text in str(fault)


async def test_what_the_model_does_wrong_is_for_the_model_to_mend(server: LoopbackServer) -> None:
    async def look_up(order: int) -> str:
        return f"order {order}"

    wrong = ToolCall.model_validate({"id": "c", "function": {"name": "look_up", "arguments": "{order"}})
    server.answer = calling(
        call("look_up", order="seven"),
        call("look_up", order=1, when="now"),
        wrong,
        call("lookup"),
        call("look_up", order=7),
    )
    reply = await send(await open_session(server, Toolbox(handlers={"look_up": look_up})))
    texts = [text for text, _ in results(reply)]
    assert texts[0].startswith("Error: the arguments do not fit: order: Input should be a valid integer")
    assert texts[1].startswith("Error: the arguments do not fit: when: Extra inputs are not permitted")
    assert texts[2].startswith("Error: the arguments are not a JSON object")
    assert texts[3] == "Error: there is no tool 'lookup'; the tools are: look_up"
    assert texts[4] == "order 7"


async def test_a_handler_that_hangs_is_given_up(server: LoopbackServer) -> None:
    async def look_up(order: str) -> None:
        await asyncio.Event().wait()

    server.answer = calling(call("look_up", order="1"))
    hanging = FunctionTool("look_up", look_up, timeout=0.05)
    fault = await fault_of(await open_session(server, Toolbox(handlers={"look_up": hanging})))
    assert (fault.blame, fault.kind) == ("suite", "timeout")
    assert str(fault) == "the handler of 'look_up' did not answer within 0.05 s"


async def test_handlers_change_the_state_of_their_conversation_only(server: LoopbackServer) -> None:
    def refund(order: str, state: dict[str, Any], messages: list[dict[str, Any]], conversation_id: str) -> str:
        state["orders"][order] = len(messages)
        return conversation_id

    row = {"orders": {"7": "delivered"}}
    server.answer = calling(call("refund", order="7"))
    session = await open_session(server, Toolbox(handlers={"refund": refund}), state=row)
    reply = await send(session)
    assert results(reply)[0][0] == "c-1"
    assert await session.state() == {"orders": {"7": 2}}
    assert row == {"orders": {"7": "delivered"}}
    properties = server.requests[0].body["tools"][0]["function"]["parameters"]["properties"]
    assert list(properties) == ["order"]


async def test_a_turn_that_is_tried_again_goes_on_where_it_was(server: LoopbackServer) -> None:
    names: list[str] = []

    def count(state: dict[str, Any]) -> int:
        names.append("call")
        state["n"] += 1
        return state["n"]

    def answer(body: dict[str, Any]) -> Any:
        if len(server.requests) == 2:
            return misbehaviour.server_error()
        return "Done." if len(body["messages"]) > 1 else [call("count")]

    server.answer = answer
    session = await open_session(server, Toolbox(handlers={"count": count}), state={"n": 0})
    messages = list(HELLO)
    with pytest.raises(TargetFault):
        await session.send(messages)
    reply = await send(session, messages)
    assert names == ["call"]
    assert [message.role for message in reply.messages] == ["assistant", "tool", "assistant"]
    assert await session.state() == {"n": 1}


async def test_calls_that_were_answered_are_not_made_again_when_a_later_one_is_rate_limited(
    server: LoopbackServer,
) -> None:
    names: list[str] = []

    def count(order: str) -> str:
        names.append(order)
        if names == ["1", "2"]:
            raise RateLimited("not so fast")
        return order

    calls = [call("count", "a", order="1"), call("count", "b", order="2")]
    server.answer = lambda body: calls if len(body["messages"]) == 1 else "Done."
    session = await open_session(server, Toolbox(handlers={"count": count}))
    messages = list(HELLO)
    with pytest.raises(RateLimited):
        await session.send(messages)
    reply = await send(session, messages)
    assert names == ["1", "2", "2"]
    assert [text for text, _ in results(reply)] == ["1", "2"]


async def test_replies_that_are_waited_for_side_by_side_do_not_mix(server: LoopbackServer) -> None:
    server.answer = calling(call("look_up", order="7"))
    session = await open_session(server, Toolbox([LOOK_UP], {"look_up": {"result": "sent", "delay": 0.01}}))
    replies = await asyncio.gather(*(session.send(HELLO) for _ in range(5)))
    await session.target.close()
    assert [len(reply.messages) for reply in replies] == [3] * 5


async def test_a_call_that_the_user_refused_counts_as_failed_for_rules(server: LoopbackServer) -> None:
    server.answer = calling(call("refund"))
    toolbox = Toolbox([REFUND], {"refund": {"result": "paid"}}, needs_approval=["refund"], approvals="refuse")
    [(text, _)] = results(await send(await open_session(server, toolbox)))
    assert words_say_failed(text)


async def test_a_conversation_that_is_taken_back_finds_the_world_of_that_moment(server: LoopbackServer) -> None:
    def count(state: dict[str, Any]) -> int:
        state["n"] += 1
        return state["n"]

    server.answer = calling(call("count"))
    session = await open_session(server, Toolbox(handlers={"count": count}), state={"n": 0})
    first = [*HELLO, *(await session.send(HELLO)).messages]
    second: list[AnyMessage] = [*first, HumanMessage(content="Again.")]
    await session.send(second)
    assert await session.state() == {"n": 2}
    await session.send(list(second))
    assert await session.state() == {"n": 2}
    await session.send([HumanMessage(content="From the start.")])
    assert await session.state() == {"n": 1}
    await session.target.close()


async def test_what_json_cannot_hold_is_an_error_of_the_suite(server: LoopbackServer) -> None:
    def wrong(state: dict[str, Any]) -> str:
        state["tags"] = {"a"}
        return ""

    server.answer = calling(call("wrong"))
    fault = await fault_of(await open_session(server, Toolbox(handlers={"wrong": wrong}), state={}))
    assert str(fault).startswith("the handler of 'wrong' left in the state what JSON cannot hold")
    fault = await fault_of(await open_session(server, Toolbox(handlers={"wrong": lambda: object()})))
    assert str(fault).startswith("the handler of 'wrong' returned a object, which JSON cannot hold")
    fault = await fault_of(await open_session(server, Toolbox(handlers={"wrong": lambda: [float("nan")]})))
    assert str(fault).startswith("the handler of 'wrong' returned a list, which JSON cannot hold")


@pytest.mark.parametrize(
    ("approvals", "expected"),
    [
        ("approve", ["paid", "paid"]),
        (["refuse", "approve"], ["Error: the user refused this call, it was not made", "paid"]),
        ({"refund": ["approve", "refuse"]}, ["paid", "Error: the user refused this call, it was not made"]),
    ],
)
async def test_a_tool_that_asks_is_called_when_the_user_approves(
    server: LoopbackServer, approvals: object, expected: list[str]
) -> None:
    server.answer = calling(call("look_up"), call("refund"), call("refund"))
    handlers = {"refund": {"result": "paid"}, "look_up": {"result": "found"}}
    toolbox = Toolbox([LOOK_UP, REFUND], handlers, needs_approval=["refund"], approvals="refuse")
    reply = await send(await open_session(server, toolbox, approvals=approvals))
    rows = results(reply)
    assert [text for text, _ in rows] == ["found", *expected]
    assert "approval" not in rows[0][1]
    assert [notes["approval"] for _, notes in rows[1:]] == [
        "approve" if text == "paid" else "refuse" for text in expected
    ]
    assert {notes["answered_by"] for text, notes in rows if text.startswith("Error")} <= {"user"}


async def test_a_tool_that_asks_needs_somebody_who_says_something(server: LoopbackServer) -> None:
    server.answer = calling(call("refund"), call("refund"))
    toolbox = Toolbox([REFUND], {"refund": {"result": 1}}, needs_approval=["refund"])
    fault = await fault_of(await open_session(server, toolbox))
    assert fault.blame == "suite"
    assert "needs approval, but no user answer is defined; write approvals: approve" in str(fault)
    fault = await fault_of(await open_session(server, toolbox, approvals=["approve"]))
    assert "the tool 'refund' asks 2 times, and approvals has 1 of the answers" in str(fault)


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (
            lambda: Toolbox([REFUND], {"refnd": {"result": 1}}),
            "handlers.refnd: no such tool is offered; did you mean 'refund'",
        ),
        (
            lambda: Toolbox([], {"refund": {"result": 1}}),
            "handlers.refund: no such tool is offered; add its definition",
        ),
        (lambda: Toolbox([REFUND], {"refund": {"reslt": 1}}), "handlers.refund.reslt: unknown key"),
        (
            lambda: Toolbox([REFUND], {"refund": {"result": 1, "error": "x"}}),
            "handlers.refund: needs either result or error",
        ),
        (lambda: Toolbox([REFUND], {"refund": []}), "handlers.refund: an empty list of cases answers no call"),
        (
            lambda: Toolbox([REFUND], {"refund": [{"result": 1}, {"result": 2}]}),
            "handlers.refund: case 1 has no when and matches every call, so later ones never apply",
        ),
        (
            lambda: Toolbox([REFUND], {"refund": {"result": 1, "when": {"a": 1}, "arguments": {"a": "fuzy"}}}),
            "handlers.refund: arguments.a: no matcher 'fuzy'",
        ),
        (lambda: Toolbox([REFUND], needs_approval=["x"]), "needs_approval.x: no such tool is offered"),
        (lambda: Toolbox([REFUND], approvals="approve"), "approvals: no tool needs approval; list such tools"),
        (
            lambda: Toolbox([REFUND], needs_approval=["refund"], approvals="yes"),
            "approvals: must be approve, refuse, a list",
        ),
        (
            lambda: Toolbox([REFUND], {"refund": positional}),
            "is called with keyword arguments, but 'order' is positional",
        ),
        (lambda: Toolbox([REFUND], max_steps=0), "max_steps: must be at least 1"),
    ],
)
def test_mistakes_are_named(make: Callable[[], Toolbox], rule: str) -> None:
    with pytest.raises(UsageError) as caught:
        make()
    assert rule in str(caught.value)


async def test_a_row_that_names_a_tool_that_is_not_there_is_an_error_of_the_suite(server: LoopbackServer) -> None:
    with pytest.raises(SuiteFault, match=r"tool_results.refnd: no such tool is offered; did you mean 'refund'"):
        await open_session(server, Toolbox([REFUND]), tool_results={"refnd": {"result": 1}})
