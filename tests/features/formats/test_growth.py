"""The time of reading a trace grows with its length, whatever shape a sender gives it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from features.formats.growth import is_linear
from vivavoce.conversations.format import Loss, Member, Place, Record
from vivavoce.conversations.grouping import group_members
from vivavoce.conversations.shapes import set_aside, tool_call
from vivavoce.features.formats.otel import MAX_NAME_CHARS, flat, read
from vivavoce.features.formats.steps import STEP, Step, StepTree, hand_down
from vivavoce.features.formats.traced import MAX_COPIES, MAX_LINES, Line, Lines, assemble, name_agents

Shape = Callable[[int], list[Step]]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def answer(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def below(number: int, **more: Any) -> Step:
    return Step("t", str(number), str(number - 1), start=float(number + 1), **more)


def chain(size: int) -> list[Step]:
    return [below(number) for number in range(size)]


def chain_of_calls(size: int) -> list[Step]:
    return [
        below(number, kind="model", inputs=[user(f"q {number}")], outputs=[answer(f"a {number}")])
        for number in range(size)
    ]


def chain_of_agents(size: int) -> list[Step]:
    steps = [below(number, kind="agent", agent=f"agent {number % 2}") for number in range(size)]
    steps[0].tools = ["find"]
    return steps


def chain_backwards(size: int) -> list[Step]:
    return chain_of_calls(size)[::-1]


def circle(size: int) -> list[Step]:
    steps = chain_of_calls(size)
    steps[0].parent = steps[-1].id
    return steps


def one_first_message(size: int) -> list[Step]:
    """Calls that all begin alike, and continue with different words."""
    return [
        Step("t", str(n), kind="model", start=float(n), inputs=[user("Hi"), user(f"q {n}")], outputs=[answer(f"a {n}")])
        for n in range(size)
    ]


def without_history(size: int) -> list[Step]:
    """Calls that continue with what a provider keeps, while the steps before have not ended."""
    return [
        Step("t", str(n), kind="model", start=1.0, end=9.0, inputs=[], outputs=[answer(f"a {n}")], continues=True)
        for n in range(size)
    ]


def tools(size: int) -> list[Step]:
    calls = [tool_call(f"c{n}", "find", f'{{"n": {n}}}') for n in range(size)]
    runs = [
        Step("t", f"r{n}", kind="tool", start=2.0, call=tool_call(None, "find", {"n": size - n}), result="x")
        for n in range(size)
    ]
    replies = [{"role": "assistant", "content": None, "tool_calls": [call]} for call in calls]
    return [Step("t", "m", kind="model", start=1.0, inputs=[user("Hi")], outputs=replies), *runs]


def logs(size: int) -> list[dict[str, Any]]:
    return [
        {"traceId": "a" * 32, "timeUnixNano": str(n + 1), "eventName": "gen_ai.user.message", "attributes": []}
        for n in range(size)
    ]


SHAPES = [chain, chain_of_calls, chain_of_agents, chain_backwards, circle, one_first_message, without_history, tools]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_steps_become_a_conversation_in_one_pass(shape: Shape, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vivavoce.features.formats.traced.MAX_LINES", 10)

    def work_of(size: int) -> Callable[[], object]:
        steps = shape(size)

        def work() -> None:
            hand_down(steps)
            assemble(steps, Loss())

        return work

    assert is_linear(work_of)


def test_a_long_chain_needs_no_deep_recursion() -> None:
    steps = chain_of_agents(20_000)
    hand_down(steps)
    assert steps[-2].tools == ["find"]
    assert steps[-1].tools is None


def test_steps_in_a_circle_are_read_once_each() -> None:
    steps = circle(5)
    steps[2].agent = "shop"
    hand_down(steps)
    assert [step.agent for step in steps] == [None, None, "shop", "shop", "shop"]
    assert [step.id for step in StepTree(steps).top_down()] == ["0", "1", "2", "3", "4"]
    assert [message["content"] for message in assemble(steps, Loss()).messages] == ["q 4", "a 4"]
    alone = Step("t", "x", "x", kind="model", inputs=[user("Hi")], outputs=[answer("yes")])
    assert len(assemble([alone], Loss()).messages) == 2


def test_steps_below_several_agents_have_the_tools_of_their_own() -> None:
    steps = [
        Step("t", "1", None, agent="a", tools=["of a"]),
        Step("t", "2", "1", agent="b", tools=["of b"]),
        Step("t", "3", "2", agent="a"),
        Step("t", "4", "3"),
        Step("t", "5", "2"),
        Step("t", "6", "1"),
    ]
    hand_down(steps)
    assert [(step.agent, step.tools) for step in steps[2:]] == [
        *(("a", ["of a"]), ("a", ["of a"]), ("b", ["of b"]), ("a", ["of a"])),
    ]


def test_the_lines_that_a_call_is_compared_with_are_bounded() -> None:
    call = Line([user("Hi")])
    lines = Lines()
    for number in range(MAX_LINES + 50):
        lines.keep(Line([user("Hi"), answer(f"a {number}")]))
    near = [line for line, _ in lines.near(call, Step("t", "x", continues=True))]
    assert (len(near), near[-1]) == (MAX_LINES, lines.every[-1])


def test_conversations_are_named_below_a_long_chain_in_one_pass() -> None:
    def work_of(size: int) -> Callable[[], object]:
        members = [Member(Place(Path("f"), 1), {}, "t", None, str(n), str(n - 1)) for n in range(size)]
        ends = [Member(Place(Path("f"), 1), {}, "t", name, name, str(size - 1)) for name in ("a", "b")]
        return lambda: list(group_members([*members, *ends], Loss()))

    assert is_linear(work_of)


def test_hand_overs_find_who_spoke_without_looking_at_all_messages() -> None:
    def work_of(size: int) -> Callable[[], object]:
        messages, steps = list[dict[str, Any]](), list[Step]()
        for number in range(size):
            steps.append(Step("t", f"m{number}", kind="model", start=float(number), agent=f"a{number % 2}"))
            messages.append(answer("yes"))
            set_aside(messages[-1], STEP, {"trace": "t", "id": f"m{number}"})
            steps.append(Step("t", f"h{number}", start=0.5, handoff=("a0", "a1")))
        return lambda: name_agents(messages, steps)

    assert is_linear(work_of)


def test_log_records_without_a_span_are_read_in_one_pass() -> None:
    def work_of(size: int) -> Callable[[], object]:
        exported = {"resourceLogs": [{"scopeLogs": [{"logRecords": logs(size)}]}]}
        return lambda: list(read([Record(Place(Path("f"), 1), exported)], Loss()))

    assert is_linear(work_of)


def test_a_long_name_is_not_repeated_for_each_value_below_it() -> None:
    inner = {str(number): number for number in range(1000)}
    columns = flat({"x" * 10_000: inner, "y": inner, "z" * MAX_NAME_CHARS: 1, "z" * (MAX_NAME_CHARS + 1): 1})
    assert len(columns) == 1001
    assert sum(map(len, columns)) < 10_000


def test_what_was_looked_up_is_not_copied_to_thousands_of_messages() -> None:
    replies = [answer(f"a {number}") for number in range(MAX_COPIES + 5)]
    step = Step("t", "m", kind="model", inputs=[user("Hi")], outputs=replies, passages=["p"])
    messages = assemble([step], Loss()).messages
    assert sum("retrieval_context" in message for message in messages) == MAX_COPIES
