"""A recording that answers the tools of a target, and what is known of the state after it."""

from __future__ import annotations

from typing import Any

import pytest

from vivavoce.errors import SuiteFault
from vivavoce.messages import HumanMessage, ToolCall, ToolMessage
from vivavoce.records.recording import RecordedCall, RecordedReply, Recording, RecordingHead
from vivavoce.targets.target import Opening, World
from vivavoce.tools.recordings import Replay
from vivavoce.tools.toolbox import Toolbox, ToolboxSession


def look_up(order: str, state: dict[str, Any]) -> str:
    return str(state.get(order))


def refund(order: str, state: dict[str, Any]) -> str:
    state[order] = "refunded"
    return "live"


def build_call(name: str, *, trial: int = 0, changed: bool | None = None, result: str = "recorded") -> RecordedCall:
    about: dict[str, Any] = {"sample": "s", "trial": trial, "turn": 0, "changed_state": changed}
    return RecordedCall(name=name, arguments={"order": "A"}, result=result, **about)


LOOK, REFUND = build_call("look_up", changed=False), build_call("refund", changed=True)
REPLY = RecordedReply.model_validate(
    {
        "sample": "s",
        "target": "bot",
        "turn": 0,
        "said": "Hi",
        "messages": [{"role": "assistant", "content": "x"}],
        "state": {"A": "as recorded"},
    }
)


async def session(*calls: RecordedCall, live: frozenset[str] = frozenset(), **opening: Any) -> ToolboxSession:
    recording = Recording("r.jsonl", RecordingHead(), calls, [REPLY])
    box = Toolbox(handlers={"look_up": look_up, "refund": refund}, replay=Replay(recording, live))
    return await box.open(Opening("c", "s", state={"A": "new"}, **opening))


async def answer_calls(opened: ToolboxSession, world: World, *names: str, order: str = "A") -> list[ToolMessage]:
    history = [HumanMessage(content="Hi")]
    calls = [ToolCall(id="c", name=name, args={"order": order}) for name in names]
    return [await opened.answer(call, history, world) for call in calls]


async def test_tools_are_answered_from_the_recording_and_not_called() -> None:
    world = World({"A": "new"})
    (answer,) = await answer_calls(await session(REFUND), world, "refund")
    assert (answer.text, (answer.metadata or {})["answered_by"], world.state) == ("recorded", "recording", {"A": "new"})


async def test_a_call_without_a_result_is_an_error_that_names_turn_and_nearest_calls() -> None:
    opened = await session(REFUND, build_call("look_up"))
    with pytest.raises(SuiteFault) as caught:
        await answer_calls(opened, World(), "refund", order="B")
    assert str(caught.value) == (
        'r.jsonl has no result of refund({"order": "B"}), called in turn 1; '
        "record it anew, or name the tool with --live, to have it answered for real"
    )
    assert (caught.value.kind, caught.value.evidence) == ("unrecorded", 'recorded: refund({"order": "A"})')


async def test_a_tool_that_was_never_recorded_says_which_were() -> None:
    with pytest.raises(SuiteFault) as caught:
        await answer_calls(await session(LOOK), World(), "refund")
    assert caught.value.evidence == (
        'no call of this tool is recorded; recorded tools: look_up\nrecorded in this row: look_up({"order": "A"})'
    )


async def test_a_tool_that_is_live_by_name_is_called() -> None:
    world = World({"A": "new"})
    opened = await session(LOOK, live=frozenset({"refund"}))
    messages = await answer_calls(opened, world, "look_up", "refund")
    assert [message.text for message in messages] == ["recorded", "live"]
    assert opened.state(world) == {"A": "refunded"}


async def test_after_the_recorded_calls_the_state_is_the_recorded_one() -> None:
    opened, world = await session(LOOK, REFUND), World({"A": "new"})
    await answer_calls(opened, world, "look_up", "refund")
    assert opened.state(world) == {"A": "as recorded"}


@pytest.mark.parametrize("names", [("refund",), ("refund", "look_up")])
async def test_after_other_calls_the_state_is_not_known_where_a_recorded_one_had_changed_it(
    names: tuple[str, ...],
) -> None:
    opened, world = await session(LOOK, REFUND), World({"A": "new"})
    await answer_calls(opened, world, *names)
    assert opened.state(world) is None


async def test_whether_a_call_changed_the_state_is_unknown_in_older_files() -> None:
    opened, world = await session(build_call("look_up"), REFUND), World({"A": "new"})
    await answer_calls(opened, world, "look_up")
    assert opened.state(world) is None


async def test_results_of_a_row_come_before_the_recording() -> None:
    opened = await session(REFUND, tool_results={"refund": {"result": "written"}})
    (answer,) = await answer_calls(opened, World({"A": "new"}), "refund")
    assert answer.text == "written"


async def test_results_come_from_the_trial_of_the_same_number() -> None:
    calls = build_call("refund", result="first"), build_call("refund", trial=1, result="second")
    for trial, text in ((0, "first"), (1, "second"), (5, "first")):
        (answer,) = await answer_calls(await session(*calls, trial=trial), World(), "refund")
        assert answer.text == text


async def test_a_live_result_says_whether_it_changed_the_state() -> None:
    opened = await session(LOOK, live=frozenset({"look_up", "refund"}))
    messages = await answer_calls(opened, World({"A": "new"}), "look_up", "refund")
    assert [(message.metadata or {})["changed_state"] for message in messages] == [False, True]


async def test_tools_without_handlers_are_answered_where_calls_are_recorded() -> None:
    definition = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}
    box = Toolbox([definition], replay=Replay(Recording("r.jsonl", RecordingHead(), [LOOK], [REPLY])))
    opened = await box.open(Opening("c", "s"))
    assert opened.max_steps == 10
    assert (await answer_calls(opened, World(), "look_up"))[0].text == "recorded"
