"""ATIF trajectories become ours and come back as they were."""

from __future__ import annotations

from typing import Any

from atif import Trajectory
from hypothesis import given
from hypothesis import strategies as st

from features.formats.hostile import damage
from features.formats.translation import back_and_forth, read_values
from vivavoce.conversations.format import Loss
from vivavoce.features.formats.atif import FORMAT

TRAJECTORY: dict[str, Any] = {
    "schema_version": "ATIF-v1.7",
    "session_id": "s-1",
    "agent": {"name": "shop-bot", "version": "2", "model_name": "gpt-5"},
    "steps": [
        {"step_id": 1, "source": "system", "message": "Be kind."},
        {"step_id": 2, "source": "user", "message": "Where is 1042?", "timestamp": "2025-10-16T14:30:00Z"},
        {
            "step_id": 3,
            "source": "agent",
            "message": "I look.",
            "reasoning_content": "Find it.",
            "model_name": "gpt-5",
            "tool_calls": [
                {"tool_call_id": "c", "function_name": "find", "arguments": {"n": 1042}, "extra": {"retry": 1}}
            ],
            "observation": {"results": [{"source_call_id": "c", "content": "sent"}, {"content": "a note"}]},
            "metrics": {"prompt_tokens": 12, "completion_tokens": 3, "cost_usd": 0.1},
        },
        {"step_id": 4, "source": "agent", "message": "It was sent.", "is_copied_context": False},
    ],
    "final_metrics": {"total_steps": 4},
}
texts = st.text(max_size=5)
names = st.sampled_from(("find", "send"))
contents: st.SearchStrategy[Any] = texts | st.lists(
    st.sampled_from(
        [
            {"type": "text", "text": "Hi."},
            {"type": "image", "source": {"media_type": "image/png", "path": "images/a.png"}},
            {"type": "image", "source": {"media_type": "image/jpeg", "path": "https://example.org/b"}},
        ]
    ),
    min_size=1,
    max_size=3,
)
extras: st.SearchStrategy[dict[str, Any]] = st.sampled_from([{}, {"extra": {"k": [1]}}, {"extra": {}}])


def _optional(**values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=values)


@st.composite
def steps(draw: st.DrawFn, number: int) -> dict[str, Any]:
    source = draw(st.sampled_from(("system", "user", "agent")))
    step: dict[str, Any] = {"step_id": number, "source": source, "message": draw(contents), **draw(extras)}
    step |= draw(_optional(timestamp=st.sampled_from(("2025-10-16T14:30:00Z", "2025-10-16T14:30:00.5+02:00"))))
    if source != "agent":
        return step
    calls = [f"c{number}_{place}" for place in range(draw(st.integers(0, 2)))]
    if calls:
        step["tool_calls"] = [
            {
                "tool_call_id": call,
                "function_name": draw(names),
                "arguments": draw(st.dictionaries(texts, st.integers() | st.lists(texts, max_size=2), max_size=2)),
                **draw(extras),
            }
            for call in calls
        ]
        results = [
            {"source_call_id": call, **draw(_optional(content=contents)), **draw(extras)}
            for call in draw(st.permutations(calls))
        ]
        step["observation"] = {"results": [*results, *draw(st.sampled_from([[], [{"content": "a note"}]]))]}
    return step | draw(
        _optional(
            reasoning_content=texts,
            model_name=texts,
            reasoning_effort=st.sampled_from(("low", 0.5)),
            metrics=st.just({"prompt_tokens": 1}),
            llm_call_count=st.just(2),
            is_copied_context=st.booleans(),
        )
    )


@st.composite
def trajectories(draw: st.DrawFn) -> dict[str, Any]:
    version = draw(st.sampled_from(("1.4", "1.5", "1.6", "1.7")))
    trajectory: dict[str, Any] = {
        "schema_version": f"ATIF-v{version}",
        "agent": {"name": "bot", "version": "1", **draw(extras)},
        "steps": [draw(steps(number)) for number in range(1, draw(st.integers(1, 4)) + 1)],
        **draw(extras),
        **draw(_optional(notes=texts, final_metrics=st.just({"total_steps": 1}), continued_trajectory_ref=texts)),
    }
    names_of_it = {"session_id": "s"} if version < "1.7" else draw(_optional(session_id=texts, trajectory_id=texts))
    if draw(st.booleans()) and version == "1.7":
        child = {**trajectory, "trajectory_id": "child", "steps": [{"step_id": 1, "source": "user", "message": "Go."}]}
        trajectory["subagent_trajectories"] = [child]
    return trajectory | names_of_it


@given(trajectories())
def test_what_is_read_is_written_as_it_was(trajectory: dict[str, Any]) -> None:
    assert back_and_forth(FORMAT, [trajectory]) == [trajectory]


@given(trajectories())
def test_the_models_of_the_package_read_what_we_write(trajectory: dict[str, Any]) -> None:
    theirs = Trajectory.model_validate(trajectory)
    [trajectory_written] = back_and_forth(FORMAT, [theirs.model_dump(mode="json", exclude_none=True)])
    assert Trajectory.model_validate(trajectory_written) == theirs


def test_a_step_of_the_agent_is_its_message_and_what_it_observed() -> None:
    [row], loss = read_values(FORMAT, [TRAJECTORY])
    assert row["id"] == "s-1"
    assert [(message["role"], message["content"]) for message in row["messages"]] == [
        *(("system", "Be kind."), ("user", "Where is 1042?"), ("assistant", "I look.")),
        *(("tool", "sent"), ("tool", "a note"), ("assistant", "It was sent.")),
    ]
    assert row["messages"][2]["tool_calls"] == [
        {"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"n": 1042}'}}
    ]
    assert row["messages"][1]["timestamp"] == "2025-10-16T14:30:00Z"
    assert row["metadata"]["atif"]["agent"]["name"] == "shop-bot"
    assert [(entry.kind, entry.what) for entry in loss.entries()] == [
        ("orphan_result", "without an id"),
        ("aside", "reasoning_content"),
    ]


OURS: dict[str, Any] = {
    "id": "a",
    "goal": "Find order 1042.",
    "labels": {"success": True},
    "messages": [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "Where?"}], "timestamp": "2025-10-16T14:30:00Z"},
        {
            "role": "assistant",
            "name": "finder",
            "content": "I look.",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"n": 1}'}}],
            "metadata": {"k": 1},
        },
        {"role": "tool", "content": "sent", "tool_call_id": "c", "name": "find", "timestamp": "2025-10-16T14:30:01Z"},
        {"role": "assistant", "content": "Sent.", "retrieval_context": ["a page"]},
    ],
    "metadata": {"model": "gpt-5"},
}


def test_our_own_rows_come_back_and_the_package_reads_what_is_between() -> None:
    assert FORMAT.write is not None
    loss = Loss()
    [trajectory] = FORMAT.write([OURS], loss)
    read = Trajectory.model_validate(trajectory)
    assert [step.source for step in read.steps] == ["system", "user", "agent", "agent"]
    [row], _ = read_values(FORMAT, [trajectory])
    del row["metadata"]["atif"]
    assert row == OURS
    assert loss.is_lossless


def test_what_a_trajectory_cannot_hold_is_told() -> None:
    assert FORMAT.write is not None
    loss = Loss()
    call: dict[str, Any] = {"type": "function", "function": {"name": "find", "arguments": "no JSON"}}
    audio: dict[str, Any] = {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}
    messages: list[dict[str, Any]] = [
        {"role": "tool", "content": "early", "tool_call_id": "x"},
        {"role": "user", "content": [audio]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "late", "tool_call_id": "x"},
    ]
    [trajectory] = FORMAT.write([{"messages": messages}], loss)
    Trajectory.model_validate(trajectory)
    assert [(entry.kind, entry.what) for entry in loss.entries()] == [
        ("dropped", "parts that are neither text nor image"),
        ("dropped", "which call a result answers: it is of an earlier step"),
        ("guessed", "call arguments that are not an object: written as one"),
        ("guessed", "id of a tool call"),
    ]


@given(damage(TRAJECTORY))
def test_nothing_makes_the_reader_fail(record: Any) -> None:
    read_values(FORMAT, [record, TRAJECTORY])
