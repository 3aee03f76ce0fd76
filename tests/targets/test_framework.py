"""What frameworks do to us: they raise, print, want an event loop of their own, and are of versions we do not know."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from asking import asked, told
from exams import agent
from stage import judge, player
from vivavoce.errors import SuiteFault, TargetFault, UsageError
from vivavoce.pacing.limits import Budget
from vivavoce.run.options import RunOptions
from vivavoce.store.store import Store
from vivavoce.suites.experiment import arun_suite, run_suite
from vivavoce.targets import FrameworkTarget
from vivavoce.targets.dialogue import open_channel
from vivavoce.targets.framework import framework_of, frameworks
from vivavoce.targets.function import as_target
from vivavoce.targets.target import Opening


class OwnEnd(BaseException):
    """A base exception of a framework."""


class Runnable:
    """A runnable whose answer is what a function returns, or raises."""

    name = "bot"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def invoke(self, given: Any, config: Any = None) -> Any:
        return self.answer(given)


ENDS = [OwnEnd("enough"), SystemExit("enough"), KeyboardInterrupt("enough"), ValueError("enough")]


def said(given: list[Any]) -> dict[str, Any]:
    return {"messages": [*given, {"role": "assistant", "content": f"{len(given)} said"}]}


def raising(error: BaseException) -> Runnable:
    def answer(given: Any) -> Any:
        raise error

    return Runnable(answer)


@pytest.mark.parametrize("error", ENDS)
async def test_what_it_raises_is_its_fault_also_a_base_exception(error: BaseException) -> None:
    with pytest.raises(TargetFault, match=f"bot raised {type(error).__name__}: enough") as raised:
        await asked(FrameworkTarget(raising(error)), "a")
    assert raised.value.kind == "crash"
    assert "def answer" not in (raised.value.evidence or "")
    assert "in answer" in (raised.value.evidence or "")
    assert "targets/framework.py" not in (raised.value.evidence or "")


class Streaming(Runnable):
    """A runnable that breaks after two pieces."""

    async def astream(self, given: Any, config: Any = None) -> AsyncIterator[str]:
        yield "It is "
        yield "Ro"
        raise ConnectionError("gone")


async def test_words_that_had_come_are_evidence_of_a_reply_that_broke() -> None:
    with pytest.raises(TargetFault, match="bot raised ConnectionError in the middle of its reply: gone") as raised:
        await asked(FrameworkTarget(Streaming(str), stream=True), "a")
    evidence = raised.value.evidence or ""
    assert evidence.startswith("what had come: It is Ro\n\nTraceback")
    assert evidence.rstrip().endswith("ConnectionError: gone")


async def _ends_the_program(given: Any) -> Any:
    raise SystemExit(0)


class Spreading(Runnable):
    """A runnable that works in a task of its own, as graphs and toolboxes do."""

    async def invoke(self, given: Any, config: Any = None) -> Any:
        return await asyncio.create_task(self.answer(given))


def test_a_program_that_is_ended_in_a_task_of_the_framework_ends_no_run(suite: Path, tmp_path: Path) -> None:
    spreading = Spreading(_ends_the_program)
    result = run_suite(suite, RunOptions(), target=spreading, store=tmp_path / "store.db")
    assert result.exit_code == 3
    with Store.open(tmp_path / "store.db") as store:
        [attempt] = store.attempts(result.run.id)
    failure = attempt.trajectory.turns[0].failure
    assert failure is not None
    assert (failure.blame, failure.kind, failure.message) == ("target", "crash", "bot raised SystemExit: 0")


async def test_one_that_cancels_itself_is_told_from_a_cancelled_run() -> None:
    target = FrameworkTarget(raising(asyncio.CancelledError()))
    channel = open_channel(target, limit=1, budget=Budget(), timeout=5.0, retries=0)
    with pytest.raises(TargetFault, match="bot cancelled its own task"):
        await channel.call(lambda: asked(target, "a"))


async def test_one_that_wants_an_event_loop_of_its_own_is_told_what_to_do() -> None:
    def answer(given: Any) -> Any:
        waiting = asyncio.sleep(0)
        try:
            return asyncio.run(waiting)
        finally:
            waiting.close()

    with pytest.raises(TargetFault, match="a running event loop; it wants an event loop of its own: name a function"):
        await asked(FrameworkTarget(Runnable(answer)), "a")


async def test_a_result_of_an_unknown_version_is_told_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Agent:
        name = "bot"
        run_sync = iter = override = toolsets = None

        async def run(self, prompt: str) -> Any:
            return SimpleNamespace(output=prompt)

    rule = (
        r"bot is of Pydantic AI \d.*, which is not understood as 2\.68 was: TypeError: .*'message_history'; "
        "name a function as the target instead"
    )
    with pytest.raises(TargetFault, match=rule) as raised:
        await asked(FrameworkTarget(Agent()), "a")
    assert raised.value.kind == "format"


async def test_a_row_with_a_state_is_an_error_of_the_suite() -> None:
    with pytest.raises(
        SuiteFault, match=r"state: bot is an object of LangChain or LangGraph, which does not receive it"
    ):
        await FrameworkTarget(Runnable(str)).open(Opening("c-1", "s", state={"orders": []}))


def test_every_framework_is_known_once_and_a_function_is_of_none() -> None:
    known = [framework.title for framework in frameworks()]
    assert len(known) == len(set(known)) == 8
    things: tuple[object, ...] = (len, said, Runnable, "bot", 5, None, SimpleNamespace(name="x"), object())
    for thing in things:
        assert framework_of(thing) is None


def test_the_guide_says_what_is_recorded_of_each_and_with_which_version_it_was_tried() -> None:
    docs = Path(__file__).parents[2] / "docs"
    page, table = ((docs / part / "frameworks.md").read_text(encoding="utf-8") for part in ("guides", "reference"))
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines() if line.startswith("| [")]
    told = {name: cells[-2] for cells in rows if (name := cells[1].partition("]")[0].removeprefix("["))}
    for framework in frameworks():
        title = framework.title.removeprefix("the ")
        for name in title.split(" or "):
            assert f"\n## {name}\n" in page
        assert any(told[name].split()[-1].startswith(framework.tried.split()[-1]) for name in title.split(" or ")), (
            title
        )


def test_what_is_neither_names_what_is_needed() -> None:
    with pytest.raises(UsageError, match=r"a function is needed, or an object of .*; got a dict"):
        as_target({})
    with pytest.raises(UsageError, match=r"an object of the OpenAI Agents SDK, .* is needed, got a object"):
        FrameworkTarget(object())


def test_a_target_is_taken_as_it_is_or_under_another_name() -> None:
    own = FrameworkTarget(Runnable(str), "own")
    assert as_target(own) is as_target(own, "own") is own
    other = as_target(own, "other")
    assert (other.name, own.name) == ("other", "own")


@pytest.mark.parametrize(
    ("thing", "rule"),
    [
        (str, "stream: a function returns its whole reply; use stream with an object of a framework"),
        (FrameworkTarget(Runnable(str), "own"), "stream: set it where the target own is created"),
        (SimpleNamespace(run_stream=1, save_state=1, load_state=1), "stream: bot uses AutoGen, which does not stream"),
    ],
)
def test_pieces_are_asked_for_where_there_are_some(thing: Any, rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        as_target(thing, "bot", stream=True)


AGENT = """
class Runnable:
    name = "bot"

    def invoke(self, given, config=None):
        print("thinking …")
        return {"messages": [*given, {"role": "assistant", "content": f"{len(given)} said"}]}

agent = Runnable()
print("made")
"""
SUITE = """
name: agents
dataset: {path: rows.jsonl}
target: {kind: function, function: "agent.py:agent"}
graders:
  counted: {kind: function, function: contains}
gate: {kind: simple, metric_key: counted, op: gte, value: 1}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    tmp_path.joinpath("agent.py").write_text(AGENT)
    rows = [{"id": "a", "input": ["Hi", "Bye"], "ground_truth": "said"}]
    tmp_path.joinpath("rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    path = tmp_path / "suite.yaml"
    path.write_text(SUITE.replace("{path: rows.jsonl}", "rows.jsonl"))
    return path


def test_a_suite_names_an_object_as_it_names_a_function(suite: Path, tmp_path: Path) -> None:
    result = run_suite(suite, RunOptions(), store=tmp_path / "store.db")
    assert result.exit_code == 0


async def test_python_gives_an_object_as_it_is(suite: Path, tmp_path: Path) -> None:
    runnable = Runnable(said)
    result = await arun_suite(suite, target=runnable, store=tmp_path / "store.db")
    assert result.exit_code == 0


def test_a_tester_takes_an_object_as_it_is() -> None:
    runnable = Runnable(said)
    result = agent(player(), judge(True)).execute_test(runnable, goal="Learn")
    assert [message.text for message in result.conversation.messages] == ["question 1", "1 said"]


async def test_several_lines_are_one_conversation() -> None:
    target = as_target(Runnable(said))
    assert [told(reply)[0][2] for reply in await asked(target, "a", "b")] == ["1 said", "3 said"]
