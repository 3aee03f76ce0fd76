"""Going on from stored conversations: what is said to whom, what is counted, and what cannot be gone on from."""

from __future__ import annotations

import json
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vivavoce import UsageError, run_suite
from vivavoce.features.forks.experiment import ForkRequest, fork_run
from vivavoce.features.forks.records import Fork
from vivavoce.features.forks.report import Forked, read_fork
from vivavoce.messages import ToolCall
from vivavoce.records.run import Outcome, Run
from vivavoce.report.capture import find_conversation
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import RunResult
from vivavoce.store.store import Store
from vivavoce.suites.experiment import reopen_run
from vivavoce.testing import LoopbackServer

SUPPORT_BOT = Path(__file__).parents[3] / "examples" / "support_bot"
SEEDED = {"change-of-topic": 4, "correction": 3, "question-before-yes": 2, "not-arrived-yet": 2}
"""The turn of each fault of release 2 of the example's bot, by the row that meets it; from 1."""

Chat = dict[str, Any]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "kept.db") as opened:
        yield opened


def suite(path: Path, rows: list[dict[str, Any]], target: dict[str, Any], **more: Any) -> Path:
    graders = {"right": {"kind": "function", "function": "contains", "extractor": "last_assistant"}}
    described = {"name": "forks", "dataset": {"rows": rows}, "target": target, "graders": graders, **more}
    path.write_text(json.dumps(described))
    return path


def chat(server: LoopbackServer) -> dict[str, Any]:
    return {"kind": "openai", "base_url": server.base_url, "model_handles": ["m"], "max_retries": 0}


async def forked_from(store: Store, name: str, options: RunOptions | None = None, **request_fields: Any) -> Forked:
    run, outcome = find_conversation(store, name)
    result = await fork_run(run, outcome, ForkRequest(**request_fields), options, store=store).execute()
    return read_fork(store, store.run(result.run.id))


def outcomes_of(store: Store, result: RunResult | Run) -> list[Outcome]:
    run = result.run if isinstance(result, RunResult) else result
    return list(store.outcomes(store.grading(run.id).id))


@pytest.mark.parametrize("row", SEEDED)
async def test_forks_find_the_turn_of_each_fault_of_the_example(row: str, store: Store, tmp_path: Path) -> None:
    for file in SUPPORT_BOT.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    run = run_suite(tmp_path / "suite.yaml", target="bot_v2.py:reply", store=store.place).run
    result = await forked_from(store, f"{run.id}/{row}", target="bot_v1.py:reply", trials=100)
    assert (result.answer, result.turn) == ("fell", SEEDED[row] - 1)
    alone = await forked_from(store, f"{run.id}/{row}", trials=20)
    assert alone.answer == ("unknown" if row == "not-arrived-yet" else "seldom")


def counting(fails_at: int) -> Callable[[Chat], str]:
    """Return a model that numbers its answers, and says something else in one turn."""

    def answer(body: Chat) -> str:
        turn = sum(message["role"] == "user" for message in body["messages"])
        return "sorry" if turn == fails_at else f"answer {turn}"

    return answer


TEN = {"id": "ten", "input": [f"question {turn}" for turn in range(1, 11)], "ground_truth": [None] * 9 + ["answer 10"]}


async def test_earlier_turns_of_a_stateless_target_cost_no_call(store: Store, tmp_path: Path) -> None:
    with LoopbackServer(counting(10)) as server:
        path = suite(tmp_path / "s.yaml", [TEN], chat(server))
        run = run_suite(path, store=store.place).run
        server.requests.clear()
        result = await forked_from(store, f"{run.id}/ten", turn=9, trials=4)
        assert len(server.requests) == 4
        sent = server.requests[0].body["messages"]
        assert [message["content"] for message in sent[-3:]] == ["question 9", "answer 9", "question 10"]
        assert (result.places[0].failed, result.answer) == (4, "one_turn")
        assert all(outcome.attempt.trajectory.usage.calls == 1 for outcome in outcomes_of(store, store.run(result.run)))


async def test_the_user_and_the_target_may_say_something_else(store: Store, tmp_path: Path) -> None:
    def answer(body: Chat) -> str:
        return "right" if "please" in " ".join(message["content"] for message in body["messages"]) else "wrong"

    row = {"id": "a", "input": ["one", "two", "three"], "ground_truth": "right"}
    with LoopbackServer(answer) as server:
        run = run_suite(suite(tmp_path / "s.yaml", [row], chat(server)), store=store.place).run
        server.requests.clear()
        result = await forked_from(store, f"{run.id}/a", turn=1, user="two, please", trials=2)
        assert (result.places[0].passed, len(server.requests)) == (2, 4)
        assert result.fork.words == f"fork of {run.id}/a from turn 2, where the user says: two, please"
        (first, *_) = outcomes_of(store, store.run(result.run))
        assert [message.text for message in first.attempt.trajectory.messages][::2] == ["one", "two, please", "three"]
        server.requests.clear()
        result = await forked_from(store, f"{run.id}/a", turn=1, assistant="say please", trials=1)
        assert (result.places[0].passed, len(server.requests)) == (1, 1)
        assert result.fork.words.endswith("from turn 2, where the target says: say please")
        same = await forked_from(store, f"{run.id}/a", turn=1, trials=1)
        assert same.places[0].failed == 1


def breaking(turn: int, odds: float) -> Callable[[Chat], str]:
    """Return a model that makes a mistake in one turn with some probability, and repeats it ever after."""
    dice, lock = random.Random(4), threading.Lock()

    def answer(body: Chat) -> str:
        now = sum(message["role"] == "user" for message in body["messages"])
        replies = [message["content"] for message in body["messages"] if message["role"] == "assistant"]
        with lock:
            wrong = "wrong" in replies or (now == turn and dice.random() < odds)
        return "wrong" if wrong else "right"

    return answer


async def broken_run(store: Store, path: Path) -> str:
    """Return the name of a conversation that failed."""
    run = run_suite(path, RunOptions(trials=10), store=store.place).run
    trial = next(outcome.attempt.key for outcome in outcomes_of(store, run) if not outcome.scores["right"].passed)
    return f"{run.id}/{trial.sample_id}#{trial.trial + 1}"


LONG = {"id": "long", "input": [f"step {turn}" for turn in range(8)], "ground_truth": [None] * 7 + ["right"]}


async def test_the_turn_of_a_mistake_that_is_made_sometimes_is_found(store: Store, tmp_path: Path) -> None:
    with LoopbackServer(breaking(5, 0.4)) as server:
        name = await broken_run(store, suite(tmp_path / "s.yaml", [LONG], chat(server)))
        result = await forked_from(store, name, trials=150)
    assert (result.answer, result.turn) == ("fell", 4)
    assert result.fixed is not None
    assert result.spent <= result.fixed / 2
    run = store.run(result.run)
    assert (run.partial_of, run.title) == (result.fork.run, f"fork of {result.fork.of} from each turn")
    assert {outcome.attempt.key.sample_id for outcome in outcomes_of(store, run)} <= {
        f"long@{turn}" for turn in range(1, 9)
    }


async def test_a_search_that_was_stopped_goes_on_and_pays_nothing_twice(store: Store, tmp_path: Path) -> None:
    with LoopbackServer(counting(8)) as server:
        row = {**LONG, "ground_truth": [None] * 7 + ["answer 8"]}
        run = run_suite(suite(tmp_path / "s.yaml", [row], chat(server)), store=store.place).run
        (conversation,) = [f"{run.id}/long"]
        whole = await forked_from(store, conversation, trials=60)
        server.requests.clear()
        part = await forked_from(store, conversation, RunOptions(max_calls=30), trials=60)
        assert store.run(part.run).status == "interrupted"
        before = len(outcomes_of(store, store.run(part.run)))
        resumed = await reopen_run(part.run, store=store).execute()
        fork = read_fork(store, store.run(part.run))
        assert resumed.run.status == "finished"
        assert (fork.answer, fork.turn, fork.spent) == (whole.answer, whole.turn, whole.spent)
        assert [place.scored for place in fork.places] == [place.scored for place in whole.places]
        assert 0 < before < fork.spent
        assert len(server.requests) <= 8 * fork.spent


async def test_an_endpoint_that_is_down_ends_the_search_and_is_never_a_failure(store: Store, tmp_path: Path) -> None:
    with LoopbackServer(counting(8)) as server:
        row = {**LONG, "ground_truth": [None] * 7 + ["answer 8"]}
        run = run_suite(suite(tmp_path / "s.yaml", [row], chat(server)), store=store.place).run
    result = await forked_from(store, f"{run.id}/long", trials=60)
    assert (result.answer, result.turn) == ("unknown", None)
    assert 5 <= result.spent <= 9
    assert (sum(place.errors for place in result.places), sum(place.scored for place in result.places)) == (
        result.spent,
        0,
    )
    assert "ended with an error and are not counted" in " ".join(result.finding)


KEEPS = """
import itertools
SAID = {}
COUNT = itertools.count()
def reply(message, conversation_id):
    turns = SAID.setdefault(conversation_id, [])
    turns.append(message)
    return f"answer {len(turns)}EXTRA"
"""


@pytest.mark.parametrize(("extra", "apart"), [("", 0), (" {next(COUNT)}", 4)])
async def test_a_target_with_a_memory_is_told_again_and_what_it_answers_otherwise_counts_apart(
    extra: str, apart: int, store: Store, tmp_path: Path
) -> None:
    (tmp_path / "bot.py").write_text(KEEPS.replace("EXTRA", extra))
    row = {"id": "a", "input": ["x", "y", "z"], "ground_truth": "never"}
    run = run_suite(
        suite(tmp_path / "s.yaml", [row], {"kind": "function", "function": "bot.py:reply"}), store=store.place
    )
    result = await forked_from(store, f"{run.run.id}/a", turn=2, trials=4)
    (place,) = result.places
    assert (place.apart, place.failed) == (apart, 4 - apart)
    assert ("counted separately" in " ".join(result.finding)) == bool(apart)
    with pytest.raises(UsageError, match=r"bot\.reply stores the conversation itself"):
        await forked_from(store, f"{run.run.id}/a", turn=1, assistant="no")


SHOP = """
CALLS = []
def take(thing: str, state: dict) -> dict:
    CALLS.append(thing)
    state["left"] -= 1
    return {"left": state["left"] + DRIFT}
DRIFT = 0
"""


def buyer(body: Chat) -> Any:
    """Take what the user names, and say what is left."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        return f"left: {json.loads(last['content'])['left']}"
    return [ToolCall(id=f"c{len(body['messages'])}", name="take", args={"thing": last["content"]})]


async def test_the_state_of_a_row_is_made_again_and_compared(store: Store, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    row = {"id": "a", "input": ["lamp", "mug", "pen"], "state": {"left": 9}, "ground_truth": "left: 5"}
    with LoopbackServer(buyer) as server:
        target = {**chat(server), "handlers": {"take": "shop.py:take"}}
        run = run_suite(suite(tmp_path / "s.yaml", [row], target), store=store.place).run
        server.requests.clear()
        result = await forked_from(store, f"{run.id}/a", turn=2, trials=3)
        again = outcomes_of(store, store.run(result.run))
        assert [outcome.attempt.trajectory.state for outcome in again] == [{"left": 6}] * 3
        assert len(server.requests) == 6
        (tmp_path / "shop.py").write_text(SHOP.replace("DRIFT = 0", "DRIFT = 100"))
        result = await forked_from(store, f"{run.id}/a", turn=2, trials=2)
    assert (result.places[0].errors, result.places[0].scored) == (2, 0)
    assert "no state to return to" in result.finding[-1]
    assert '{"left": 8}' in result.finding[-1]


async def test_a_recorded_log_needs_somebody_who_goes_on(store: Store, tmp_path: Path) -> None:
    talk = [("user", "one"), ("assistant", "fine"), ("user", "two"), ("assistant", "wrong"), ("user", "three")]
    messages = [{"role": role, "content": text} for role, text in (*talk, ("assistant", "wrong"))]
    graders = {"right": {"kind": "function", "function": "contains", "extractor": "last_assistant"}}
    described = {"name": "log", "driver": "replay", "graders": graders}
    rows = [{"id": "a", "messages": messages, "ground_truth": [None, None, "right"]}]
    (tmp_path / "log.yaml").write_text(json.dumps({**described, "dataset": {"rows": rows}}))
    run = run_suite(tmp_path / "log.yaml", store=store.place).run
    with pytest.raises(UsageError, match=r"are recorded, so there is no target to continue them.* --target"):
        await forked_from(store, f"{run.id}/a", trials=30)
    with LoopbackServer(breaking(99, 0.0)) as server:
        result = await forked_from(store, f"{run.id}/a", target=f"{server.base_url}#m", trials=60)
        assert (result.answer, result.turn) == ("fell", 1)
        assert all(len(request.body["messages"]) in (1, 3, 5) for request in server.requests)
        path = suite(tmp_path / "s.yaml", [TEN], chat(server))
        result = await forked_from(store, f"{run.id}/a", suite=path, turn=1, trials=2)
        assert result.places[0].passed == 2


async def test_tools_that_nobody_answers_give_what_was_recorded_until_that_differs(
    store: Store, tmp_path: Path
) -> None:
    call = {"id": "c1", "name": "take", "arguments": {"thing": "lamp"}}
    messages = [
        {"role": "user", "content": "lamp"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"left": 8}'},
        {"role": "assistant", "content": "none is left"},
        {"role": "user", "content": "mug"},
        {"role": "assistant", "content": "no"},
    ]
    graders = {"right": {"kind": "function", "function": "contains", "extractor": "last_assistant"}}
    rows = [{"id": "a", "messages": messages, "ground_truth": ["left: 8", None]}]
    described = {"name": "log", "driver": "replay", "graders": graders, "dataset": {"rows": rows}}
    (tmp_path / "log.yaml").write_text(json.dumps(described))
    run = run_suite(tmp_path / "log.yaml", store=store.place).run
    properties = {"thing": {"type": "string"}}
    tool = {"name": "take", "parameters": {"type": "object", "properties": properties}}
    with LoopbackServer(buyer) as server:
        target = {**chat(server), "tools": [{"type": "function", "function": tool}]}
        path = suite(tmp_path / "s.yaml", [{"id": "other", "input": "x"}], target)
        result = await forked_from(store, f"{run.id}/a", suite=path, turn=0, user="lamp", trials=1)
    (outcome,) = outcomes_of(store, store.run(result.run))
    first, second = outcome.attempt.trajectory.turns
    assert [message.text for message in first.messages[1:]] == ["", '{"left": 8}', "left: 8"]
    assert second.failure is not None
    assert second.failure.message.startswith("the original conversation has no result of take(")


@pytest.mark.parametrize(
    ("request_fields", "complaint"),
    [
        ({"turn": 3}, "--turn 4 does not exist; .*/a has 3 turns"),
        ({"turn": 2, "assistant": "x"}, "--turn 3 is the last turn of .*/a; there is nothing to replay after it"),
        ({"grader": "nobody"}, "no grader 'nobody'"),
        ({"grader": "other"}, "did not fail 'other', so there is no turn to find"),
        ({"target": "no such"}, "must be file.py:function"),
    ],
)
async def test_what_cannot_be_gone_on_from_is_said(
    request_fields: dict[str, Any], complaint: str, store: Store, tmp_path: Path
) -> None:
    (tmp_path / "bot.py").write_text("def reply(messages): return 'no'")
    row = {"id": "a", "input": ["x", "y", "z"], "ground_truth": "yes"}
    path = suite(
        tmp_path / "s.yaml", [row, {**row, "id": "b", "input": "x"}], {"kind": "function", "function": "bot.py:reply"}
    )
    described = json.loads(path.read_text())
    described["graders"]["other"] = {"kind": "function", "function": "ascii_printable_only"}
    path.write_text(json.dumps(described))
    run = run_suite(path, store=store.place).run
    with pytest.raises(UsageError, match=complaint):
        await forked_from(store, f"{run.id}/a", **request_fields)
    with pytest.raises(UsageError, match="has only one turn"):
        await forked_from(store, f"{run.id}/b")


async def test_a_grader_or_a_target_that_changed_since_is_noticed(store: Store, tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("def reply(messages): return 'no'")
    (tmp_path / "g.py").write_text("def g(sample, submission): return 0.0")
    row = {"id": "a", "input": ["x", "y"]}
    graders = {"g": {"kind": "function", "function": "g.py:g"}}
    path = suite(tmp_path / "s.yaml", [row], {"kind": "function", "function": "bot.py:reply"}, graders=graders)
    run = run_suite(path, store=store.place).run
    (tmp_path / "bot.py").write_text("def reply(messages): return 'yes'")
    stored, outcome = find_conversation(store, f"{run.id}/a")
    result = await fork_run(stored, outcome, ForkRequest(turn=1, trials=1), store=store).execute()
    assert any("the code of the target has changed since" in note for note in result.notes)
    (tmp_path / "g.py").write_text("def g(sample, submission): return 0.5")
    with pytest.raises(UsageError, match=r"'g' has changed since it graded .*; grade it again first: viva runs grade"):
        await forked_from(store, f"{run.id}/a")


PEOPLE = """
from vivavoce.messages import ToolCall
from vivavoce.testing import ScriptedModel

SEEN = []

def speak(request):
    SEEN.append([message.text for message in request.messages])
    said = f"ask {1 + sum(message.role == 'tool' for message in request.messages)}"
    return [ToolCall(name="send_message_to_target", args={"message": said, "reasoning": "because"})]

def examine(request):
    if "faults" in request.schema.model_fields:
        found = {"faults": [], "obstacle": "none", "obstacle_evidence": []}
        return found | {"reasoning": "It played its part.", "confidence": 0.9}
    level = "fully_achieved" if "some magic" in request.messages[-1].text else "not_achieved"
    return {"achievement_level": level, "confidence": 0.9, "reasoning": "as read", "evidence": []}

customer, examiner = ScriptedModel(speak, "customer"), ScriptedModel(examine, "examiner")
"""


async def test_a_tester_leads_on_and_knows_what_was_said(store: Store, tmp_path: Path) -> None:
    (tmp_path / "people.py").write_text(PEOPLE)
    (tmp_path / "bot.py").write_text("def reply(messages): return f'heard {len(messages)} ' + messages[-1]['content']")
    described = {
        "name": "led",
        "driver": "penelope",
        "dataset": {"rows": [{"id": "a", "goal": "magic happens"}]},
        "target": {"kind": "function", "function": "bot.py:reply"},
        "tester": {"model": "people.py:customer", "judge": "people.py:examiner", "max_turns": 4, "review": False},
        "graders": {"target": {"kind": "function", "function": "target_passed"}},
    }
    (tmp_path / "led.yaml").write_text(json.dumps(described))
    run = run_suite(tmp_path / "led.yaml", store=store.place).run
    (first,) = outcomes_of(store, run)
    assert [message.text for message in first.attempt.trajectory.messages][::2] == ["ask 1", "ask 2", "ask 3", "ask 4"]
    result = await forked_from(store, f"{run.id}/a", turn=1, user="some magic", trials=1)
    (outcome,) = outcomes_of(store, store.run(result.run))
    assert result.places[0].passed == 1
    assert [message.text for message in outcome.attempt.trajectory.messages] == [
        "ask 1",
        "heard 1 ask 1",
        "some magic",
        "heard 3 some magic",
    ]
    result = await forked_from(store, f"{run.id}/a", turn=1, assistant="heard nothing", trials=1)
    (outcome,) = outcomes_of(store, store.run(result.run))
    texts = [message.text for message in outcome.attempt.trajectory.messages]
    assert texts[3:6] == ["heard nothing", "ask 3", "heard 5 ask 3"]
    test = outcome.attempt.trajectory.test
    assert test is not None
    assert [entry.turn_number for entry in test.history] == [1, 2, 3, 4]
    assert result.places[0].failed == 1
    result = await forked_from(store, f"{run.id}/a", turn=3, assistant="heard all", trials=1)
    (outcome,) = outcomes_of(store, store.run(result.run))
    assert [message.text for message in outcome.attempt.trajectory.messages][-2:] == ["ask 4", "heard all"]


def test_a_fork_says_in_words_what_it_is() -> None:
    fork = Fork(run="r", sample="a b", target="t", trial=1, grader="g", trials=3, turns=4, by="other")
    assert (fork.words, fork.starts) == ("fork of r/a b#2 from each turn, with other", [0, 1, 2, 3])
