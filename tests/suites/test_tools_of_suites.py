"""Suites whose target has tools: who answers them, per suite and per row, and the state that they leave."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vivavoce import RunOptions, RunResult, UsageError, run_suite
from vivavoce.messages import ToolCall, ToolMessage
from vivavoce.records.run import Outcome
from vivavoce.suites.check import check_suite
from vivavoce.suites.load import load_suite
from vivavoce.testing import LoopbackServer

HANDLERS = """
from vivavoce.errors import ToolError

def refund(order: str, state: dict):
    if order not in state["orders"]:
        raise ToolError(f"no order {order}")
    state["orders"][order]["status"] = "refunded"
    return {"refunded": order}
"""

SUITE = """
name: tools
dataset:
  rows: ROWS
target:
  kind: openai
  base_url: BASE
  model_handles: [m]
  tools:
    - {type: function, function: {name: look_up, parameters: {type: object, properties: {order: {type: string}}}}}
  handlers:
    refund: handlers.py:refund
    look_up: [{when: {order: A-1}, result: {status: delivered}}, {error: no such order}]
  needs_approval: [refund]
  approvals: approve
"""

Model = Callable[[dict[str, Any]], Any]


def model(body: dict[str, Any]) -> Any:
    """Look the order up that the user names, refund it, and say what came of it."""
    messages = body["messages"]
    last = max(place for place, message in enumerate(messages) if message["role"] == "user")
    order = messages[last]["content"].split()[-1]
    results = [message["content"] for message in messages[last:] if message["role"] == "tool"]
    if not results:
        return [ToolCall(id="c1", name="look_up", args={"order": order})]
    if len(results) == 1 and not results[0].startswith("Error"):
        return [ToolCall(id="c2", name="refund", args={"order": order})]
    return results[-1]


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(model) as server:
        yield server


@pytest.fixture
def write(tmp_path: Path, server: LoopbackServer) -> Callable[..., Path]:
    def write_suite(*rows: dict[str, Any], suite: str = SUITE, handlers: str = HANDLERS) -> Path:
        (tmp_path / "handlers.py").write_text(handlers)
        path = tmp_path / "suite.yaml"
        path.write_text(suite.replace("ROWS", json.dumps(list(rows))).replace("BASE", server.base_url))
        return path

    return write_suite


def row(order: str = "A-1", **more: Any) -> dict[str, Any]:
    state = {"orders": {"A-1": {"status": "delivered"}}}
    return {"id": order, "input": f"Refund {order}", "state": state, **more}


def outcome_of(result: RunResult, sample: str) -> Outcome:
    return next(outcome for outcome in result.outcomes() if outcome.attempt.key.sample_id == sample)


def run(path: Path, **options: Any) -> RunResult:
    return run_suite(path, RunOptions(**options), store=str(path.parent / "store.db"))


def test_the_state_at_the_end_is_graded_by_path_and_as_a_whole(write: Callable[..., Path]) -> None:
    refunded = {"orders": {"A-1": {"status": "refunded"}}}
    path = write(
        row(expect=[[{"state": {"orders.A-1.status": "refunded"}}, {"final_state": refunded}]]),
        row(
            "A-2",
            expect={"all": [{"state": {"orders.A-1.status": "refunded", "orders.A-2": 1}}, {"contains": "Error"}]},
        ),
    )
    result = run(path)
    good, bad = outcome_of(result, "A-1"), outcome_of(result, "A-2")
    assert good.attempt.trajectory.state == refunded
    assert good.scores["expect"].passed is True
    assert good.scores["expect"].value == 1.0
    assert bad.scores["expect"].value == 0.5
    assert bad.scores["expect"].reason is not None
    assert (
        'orders.A-1.status: wanted "refunded", is "delivered"; orders.A-2: wanted 1, is not there'
        in bad.scores["expect"].reason
    )
    assert result.summary.verdict == "fail"


def test_every_result_says_who_gave_it_and_a_row_may_refuse(write: Callable[..., Path]) -> None:
    path = write(
        row(expect={"state": {"orders.A-1.status": "refunded"}}),
        row(
            "A-3",
            tool_results={"look_up": {"result": "sent", "delay": 0.01}},
            approvals="refuse",
            expect={"contains": "refused"},
        ),
    )
    result = run(path)
    notes = [
        [
            message.metadata
            for message in outcome_of(result, name).attempt.trajectory.messages
            if isinstance(message, ToolMessage)
        ]
        for name in ("A-1", "A-3")
    ]
    note_rows = [[{k: v for k, v in (note or {}).items() if k != "seconds"} for note in each] for each in notes]
    assert note_rows == [
        [
            {"answered_by": "canned", "mocked": True},
            {"answered_by": "function", "mocked": False, "approval": "approve", "changed_state": True},
        ],
        [
            {"answered_by": "canned", "mocked": True},
            {"answered_by": "user", "mocked": False, "approval": "refuse"},
        ],
    ]
    assert result.summary.verdict == "pass"


def test_a_run_is_resumed_with_the_same_handlers(write: Callable[..., Path]) -> None:
    path = write(row(), row("A-2"), suite=SUITE + "graders: {said: {kind: function, function: contains}}\n")
    first = run(path, max_samples=1)
    assert first.run.spec["target"]["handlers"] == {
        "refund": {"function": "handlers.py:refund"},
        "look_up": [{"when": {"order": "A-1"}, "result": {"status": "delivered"}}, {"error": "no such order"}],
    }
    assert isinstance(first.run.options["code"], str)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (
            {"tool_results": {"refnd": {"result": 1}}},
            "tool_results.refnd: no such tool is offered; did you",
        ),
        (
            {"tool_results": {"refund": {"result": 1, "delay": -1}}},
            "tool_results.refund.delay: Input should be",
        ),
        ({"tool_results": {"refund": {"function": "a.py:b"}}}, "function belongs to the handlers of the target"),
        ({"approvals": "maybe"}, "approvals: must be approve, refuse"),
        ({"approvals": {"look_up": "approve"}}, "approvals.look_up: this tool does not ask for approval"),
        ({"state": "NY"}, "state"),
        ({"expect": [{"state": {}}]}, "expect.0.state: is empty"),
        ({"expect": {"no_call": "refnd"}}, "expect: the target has no tool 'refnd'; did you mean 'refund'?"),
        ({"expect": [{"not": {"calls": ["look_up", "refnd"]}}]}, "expect.0: the target has no tool 'refnd'"),
        (
            {"expect": {"not": {"metric": "rule", "config": {"never": {"call": "refnd"}}}}},
            "expect: the target has no tool 'refnd'; did you mean 'refund'?",
        ),
        (
            {"input": ["a", "b"], "expect": [{"all": [{"not": {"final_state": {}}}]}, None]},
            "expect.0: the state is that at the end; write it at the last turn",
        ),
    ],
)
def test_a_mistake_in_a_row_is_named_before_anything_runs(
    write: Callable[..., Path], more: dict[str, Any], problem: str
) -> None:
    path = write(row(), {**row("A-2"), **more})
    with pytest.raises(UsageError) as caught:
        check_suite(load_suite(path))
    assert problem in str(caught.value)
    assert "suite.yaml:" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("handlers.py:refund", "handlers.py:refnd", "handlers.refund: handlers.py has no 'refnd'"),
        ("    look_up: [", "    lookup: [", "handlers.lookup: no such tool is offered; did you mean 'look_up'"),
        ("{error: no such order}", "{eror: no such order}", "eror"),
        ("needs_approval: [refund]", "needs_approval: [pay]", "needs_approval.pay: no such tool is offered"),
        ("approvals: approve", "approvals: yes", "approvals"),
        ("{error: no such order}", "{recordings: x.jsonl}", "recordings"),
        ("refund: handlers.py:refund", "refund: {recordings: gone.jsonl}", "gone.jsonl"),
        ("  needs_approval", "  max_steps: 0\n  needs_approval", "max_steps"),
    ],
)
def test_a_mistake_in_the_target_is_named_before_anything_runs(
    write: Callable[..., Path], old: str, new: str, problem: str
) -> None:
    assert old in SUITE
    path = write(row(expect={"contains": "x"}), suite=SUITE.replace(old, new))
    with pytest.raises(UsageError) as caught:
        check_suite(load_suite(path))
    assert problem in str(caught.value)


def test_a_target_of_another_kind_takes_no_results(write: Callable[..., Path]) -> None:
    suite = 'name: t\ndataset: {rows: ROWS}\ntarget: {kind: function, function: "handlers.py:bot"}\n'
    code = "def bot(message, state):\n    state['n'] = state.get('n', 0) + 1\n    return message\n"
    path = write(row(expect={"state": {"n": 1}}), suite=suite, handlers=code)
    result = run(path)
    assert result.summary.verdict == "pass"
    assert outcome_of(result, "A-1").attempt.trajectory.state == {"orders": {"A-1": {"status": "delivered"}}, "n": 1}
    path = write(row(tool_results={"x": {"result": 1}}, expect={"contains": "x"}), suite=suite, handlers=code)
    with pytest.raises(UsageError, match="tool_results: is for a target of kind openai; the target"):
        check_suite(load_suite(path))


def test_a_state_that_nobody_knows_is_an_error_and_not_a_miss(write: Callable[..., Path]) -> None:
    suite = 'name: t\ndataset: {rows: ROWS}\ntarget: {kind: function, function: "handlers.py:bot"}\n'
    path = write({"id": "a", "input": "x", "expect": {"state": {"n": 1}}}, suite=suite, handlers="def bot(m): return m")
    score = outcome_of(run(path), "a").scores["expect"]
    assert score.state == "error"
    assert score.failure is not None
    assert "give the row a state" in score.failure.message
