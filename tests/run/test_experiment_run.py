"""Running suites from Python: drivers, trials, budgets, interruption, resuming and grading again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.records.run import AttemptEnded, Event, Outcome, RunEnded, RunStarted, TurnEnded
from vivavoce.report.graded_run import GradedRun
from vivavoce.run.options import RunOptions
from vivavoce.settings import settings
from vivavoce.store.store import Store
from vivavoce.suites.experiment import arun_suite, open_regrading, open_run, reopen_run, run_suite
from vivavoce.suites.load import load_suite

BOT = """\
import asyncio, time
SEEN = []

def answer(messages, conversation_id):
    SEEN.append((conversation_id, len(messages)))
    text = messages[-1]["content"]
    if "crash" in text:
        raise KeyError(text)
    if "how many" in text:
        return str(sum(m["role"] == "user" for m in messages))
    return f"echo {text}"

async def hang(message):
    if "hang" in message:
        await asyncio.sleep(60)
    return "fine"

async def slow(message):
    await asyncio.sleep(0.02)
    return "fine"
"""
SUITE = """\
name: echoes
dataset: d.jsonl
target: {kind: function, function: "bot.py:answer", timeout: 5, max_retries: 0}
graders:
  right: {kind: tool, function: contains}
  ascii: {kind: tool, function: ascii_printable_only}
reward: {kind: weighted, weights: {right: 3, ascii: 1}}
gate: {kind: simple, metric_key: right, value: 0.6}
"""
ROWS: list[dict[str, Any]] = [
    {"id": "two", "input": ["a", "how many"], "ground_truth": ["echo a", "2"]},
    {"id": "one", "input": "b", "ground_truth": "echo b", "tags": ["short"]},
    {"id": "wrong", "input": "c", "ground_truth": "echo d"},
]


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "bot.py").write_text(BOT)
    (tmp_path / "suite.yaml").write_text(SUITE)
    write_rows(tmp_path, ROWS)
    return tmp_path / "suite.yaml"


def write_rows(folder: Path, rows: list[dict[str, Any]]) -> None:
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def outcomes(run: str = "latest") -> dict[str, Outcome]:
    with Store.open(settings().store) as store:
        found = store.run(run)
        return {
            f"{o.attempt.key.sample_id}/{o.attempt.key.trial}": o for o in store.outcomes(store.grading(found.id).id)
        }


def test_a_list_of_inputs_is_a_conversation_in_which_each_waits_for_the_reply(suite: Path) -> None:
    result = run_suite(suite)
    assert result.exit_code == 0
    assert result.summary.grader("right").mean == pytest.approx(2 / 3)
    talk = outcomes()["two/0"].attempt.trajectory
    assert [[m.text for m in turn.messages] for turn in talk.turns] == [["a", "echo a"], ["how many", "2"]]
    assert all(turn.seconds is not None and turn.started_at is not None for turn in talk.turns)
    reward = outcomes()["wrong/0"].reward
    assert reward is not None
    assert reward.value == 0.25


def test_a_crash_of_the_target_is_its_error_with_the_evidence_and_no_zero(suite: Path) -> None:
    write_rows(
        suite.parent, [*ROWS, {"id": "boom", "input": ["a", "crash", "b"], "ground_truth": ["echo a", "x", "y"]}]
    )
    result = run_suite(suite)
    right = result.summary.grader("right")
    assert (right.scored, right.errors) == (3, 1)
    assert result.summary.verdict == "inconclusive"
    assert result.exit_code == 3
    assert result.summary.failed_attempts == 1
    boom = outcomes()["boom/0"]
    failure = boom.attempt.failure
    assert failure is not None
    assert (failure.blame, failure.kind) == ("target", "crash")
    assert "KeyError" in (failure.evidence or "")
    assert len(boom.attempt.trajectory.turns) == 2
    assert [turn.state for turn in boom.scores["right"].turns or ()] == ["scored", "error", "error"]


def test_a_hanging_target_is_interrupted_at_its_time_limit(suite: Path) -> None:
    text = SUITE.replace("answer", "hang").replace("timeout: 5", "timeout: 0.2")
    suite.write_text(text)
    write_rows(suite.parent, [{"id": "h", "input": "hang", "ground_truth": "x"}])
    run_suite(suite)
    failure = outcomes()["h/0"].attempt.failure
    assert failure is not None
    assert failure.kind == "timeout"
    assert "did not answer within 0.2 s" in failure.message


def test_trials_give_pass_hat_k(suite: Path) -> None:
    result = run_suite(suite, RunOptions(trials=3))
    right = result.summary.grader("right")
    assert (right.scored, right.samples) == (9, 3)
    assert right.pass_hat == pytest.approx({1: 2 / 3, 2: 2 / 3, 3: 2 / 3})
    assert len(outcomes()) == 9


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (RunOptions(max_samples=2), {"two/0", "one/0"}),
        (RunOptions(tags=["short"]), {"one/0"}),
        (RunOptions(samples=["wrong", "one"]), {"wrong/0", "one/0"}),
    ],
)
def test_samples_are_chosen(suite: Path, options: RunOptions, ids: set[str]) -> None:
    run_suite(suite, options)
    assert set(outcomes()) == ids


def test_choosing_what_is_not_there_is_told(suite: Path) -> None:
    with pytest.raises(UsageError, match="no samples with the tags absent"):
        run_suite(suite, RunOptions(tags=["absent"]))
    with pytest.raises(UsageError, match="has no sample 'nobody'"):
        run_suite(suite, RunOptions(samples=["nobody"]))


def test_nothing_is_written_when_the_suite_is_wrong(suite: Path) -> None:
    write_rows(suite.parent, [{"id": "x", "input": ["a", "b"], "ground_truth": ["c"]}])
    with pytest.raises(UsageError, match=r"d\.jsonl:1 "):
        run_suite(suite)
    with Store.open(settings().store) as store:
        assert store.runs() == []


def test_a_budget_stops_the_run_and_keeps_what_is_done(suite: Path) -> None:
    result = run_suite(suite, RunOptions(max_calls=4, max_concurrent=1))
    assert result.stopped_by is None
    result = run_suite(suite, RunOptions(max_calls=3, max_concurrent=1))
    assert result.stopped_by == "the limit of 3 calls is reached"
    assert result.exit_code == 3
    assert set(outcomes()) == {"two/0", "one/0"}


async def test_a_run_sees_every_event_in_order(suite: Path) -> None:
    events: list[Event] = []

    class Listening:
        async def on(self, event: Event) -> None:
            events.append(event)

    await arun_suite(suite, RunOptions(max_concurrent=1), listeners=[Listening()])
    assert isinstance(events[0], RunStarted)
    assert events[0].planned == 3
    assert isinstance(events[-1], RunEnded)
    assert sum(isinstance(event, TurnEnded) for event in events) == 4
    assert sum(isinstance(event, AttemptEnded) for event in events) == 3


async def test_run_suite_works_inside_a_running_loop(suite: Path) -> None:
    assert run_suite(suite).summary.attempts == 3


class StopAfter:
    """Stops a run once so many attempts have ended."""

    def __init__(self, count: int) -> None:
        self.left = count
        self.stop: Any = None

    async def on(self, event: Event) -> None:
        if isinstance(event, AttemptEnded):
            self.left -= 1
            if self.left == 0:
                self.stop()


async def test_an_interrupted_run_goes_on_where_it_stopped(suite: Path) -> None:
    rows: list[dict[str, Any]] = [{"id": f"s{i}", "input": "x", "ground_truth": "fine"} for i in range(40)]
    write_rows(suite.parent, rows)
    suite.write_text(SUITE.replace("answer", "slow"))
    with Store.open(settings().store) as store:
        stopper = StopAfter(5)
        first = open_run(suite, RunOptions(max_concurrent=2), store=store, listeners=[stopper])
        stopper.stop = first.stop
        interrupted = await first.execute()
        assert interrupted.exit_code == 130
        done = store.done(interrupted.run.id)
        assert 5 <= len(done) < 40

        resumed = await reopen_run(interrupted.run.id, store=store).execute()
        assert resumed.run.id == interrupted.run.id
        assert resumed.exit_code == 0
        assert len(store.done(resumed.run.id)) == 40
        assert resumed.summary.grader("right").scored == 40
        with pytest.raises(UsageError, match="is finished; there is nothing"):
            reopen_run(resumed.run.id, store=store)


async def test_a_run_whose_task_is_cancelled_is_recorded_as_interrupted(suite: Path) -> None:
    reached = asyncio.Event()

    async def slow(message: str) -> str:
        reached.set()
        await asyncio.sleep(60)
        return message

    work = asyncio.create_task(arun_suite(suite, target=slow, store="cancelled.db"))
    await reached.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    with Store.open("cancelled.db", create=False) as store:
        [run] = store.runs()
        summary = GradedRun(store, run, store.grading(run.id)).summary()
    assert (run.status, summary.verdict) == ("interrupted", "inconclusive")


async def test_a_run_whose_graders_or_data_changed_is_not_resumed(suite: Path) -> None:
    with Store.open(settings().store) as store:
        stopper = StopAfter(1)
        first = open_run(suite, RunOptions(max_concurrent=1), store=store, listeners=[stopper])
        stopper.stop = first.stop
        run = (await first.execute()).run
        write_rows(suite.parent, ROWS[:2])
        with pytest.raises(UsageError, match=r"the dataset .* has changed since"):
            await reopen_run(run.id, store=store).execute()


async def test_a_run_without_a_set_of_scores_is_refused_in_words(suite: Path) -> None:
    with Store.open(settings().store) as store:
        whole = (await open_run(suite, store=store).execute()).run
        assert [one.id for one in store.gradings(whole.id)] == [f"{whole.id}-g1"]
        store.add_run(whole.model_copy(update={"id": "half", "status": "running", "finished_at": None}))
        with pytest.raises(UsageError, match="cannot resume half: it was stopped before it started; start a new run"):
            await reopen_run("half", store=store).execute()


OWN = """\
from helper_of_the_suite import WORTH

def score(sample, submission): return WORTH
def pick(trajectory, config): return str(WORTH)
def measure(messages): return WORTH
def compose(ctx): return WORTH
def answer(message): return str(WORTH)
"""
OWN_SUITE = """\
name: own
dataset: d.jsonl
target: {kind: function, function: "%s"}
graders:
  graded: {kind: tool, function: "own.py:score"}
  picked: {kind: tool, function: ascii_printable_only, extractor: "own.py:pick"}
  measured: {kind: metric, metric: "own.py:measure"}
  plain: {kind: tool, function: contains}
reward: {kind: custom, function: "own.py:compose"}
"""


async def test_a_change_in_a_module_that_a_grader_or_target_imports_is_a_change_of_it(suite: Path) -> None:
    folder = suite.parent
    (folder / "own.py").write_text(OWN)
    (folder / "helper_of_the_suite.py").write_text("WORTH = 1.0\n")
    with Store.open(settings().store) as store:
        runs: list[str] = []
        for target in ("bot.py:answer", "own.py:answer"):
            suite.write_text(OWN_SUITE % target)
            stopper = StopAfter(1)
            first = open_run(suite, RunOptions(max_concurrent=1), store=store, listeners=[stopper])
            stopper.stop = first.stop
            runs.append((await first.execute()).run.id)
        before = store.gradings(runs[0])[0].fingerprints
        (folder / "helper_of_the_suite.py").write_text("WORTH = 0.25\n")
        with pytest.raises(UsageError, match="'graded' has changed since"):
            await reopen_run(runs[0], store=store).execute()
        with pytest.raises(UsageError, match="the code of its target has changed since"):
            await reopen_run(runs[1], store=store).execute()
        after = store.gradings(run_suite(suite).run.id)[0].fingerprints
    assert [name for name in before if before[name] != after[name]] == ["graded", "picked", "measured", "reward"]


async def test_grading_again_keeps_the_old_scores_and_calls_no_target(suite: Path) -> None:
    before = run_suite(suite)
    (suite.parent / "bot.py").write_text("raise SystemExit('the target was loaded')")
    better = suite.parent / "better.yaml"
    better.write_text(SUITE.replace("function: contains", "function: fuzzy_ratio"))
    write_rows(suite.parent, [*ROWS[:2], {**ROWS[2], "ground_truth": "echo c"}])
    with Store.open(settings().store) as store:
        after = await open_regrading(before.run.id, load_suite(better), store=store).execute()
        assert after.grading.id != before.grading.id
        assert after.summary.grader("right").mean == pytest.approx(1.0)
        old = {row.key.sample_id: row.value for row in store.scores(before.grading.id) if row.name == "right"}
        assert old == {"two": 1.0, "one": 1.0, "wrong": 0.0}
        assert after.grading.fingerprints["right"] != before.grading.fingerprints["right"]


async def test_grading_again_refuses_a_sample_that_asks_something_else(suite: Path) -> None:
    before = run_suite(suite)
    write_rows(suite.parent, [{**ROWS[1], "input": "something else"}])
    with Store.open(settings().store) as store:
        with pytest.raises(UsageError, match="sample 'one' has a different input"):
            await open_regrading(before.run.id, load_suite(suite), store=store).execute()
        assert len(store.gradings(before.run.id)) == 1


def test_a_replay_grades_recorded_conversations_turn_by_turn(tmp_path: Path) -> None:
    talk = [
        {"role": "system", "content": "be nice"},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "q2"},
        {"role": "assistant", "content": "b"},
    ]
    write_rows(tmp_path, [{"id": "r", "messages": talk, "ground_truth": ["a", "x"]}])
    (tmp_path / "suite.yaml").write_text(
        "name: r\ndataset: d.jsonl\ndriver: replay\ngraders: {g: {kind: tool, function: exact_match}}\n"
    )
    result = run_suite(tmp_path / "suite.yaml")
    assert result.summary.grader("g").mean == 0.5
    found = outcomes()["r/0"].attempt.trajectory
    assert [m.role for m in found.opening] == ["system"]
    assert [m.to_dict() for m in found.messages] == talk


def test_a_setup_runs_before_the_samples(suite: Path) -> None:
    (suite.parent / "prepare.py").write_text(
        "from pathlib import Path\nimport bot\n"
        "async def ready():\n    assert not bot.SEEN\n    Path('prepared').write_text('yes')\n"
        "def wrong(database): ...\n"
    )
    suite.write_text(SUITE + "setup_script: prepare.py:ready\n")
    run_suite(suite)
    assert Path("prepared").read_text() == "yes"
    suite.write_text(SUITE + "setup_script: prepare.py:wrong\n")
    with pytest.raises(UsageError, match="takes 'database'; it can take only client and model_handle"):
        run_suite(suite)


async def test_conversations_overlap_up_to_the_limit(suite: Path) -> None:
    rows: list[dict[str, Any]] = [{"id": f"s{i}", "input": "x", "ground_truth": "fine"} for i in range(20)]
    write_rows(suite.parent, rows)
    (suite.parent / "bot.py").write_text(
        "import asyncio\nNOW = PEAK = 0\n"
        "async def slow(message):\n"
        "    global NOW, PEAK\n    NOW += 1; PEAK = max(PEAK, NOW)\n    await asyncio.sleep(0.01)\n    NOW -= 1\n"
        "    return f'fine {PEAK}'\n"
    )
    suite.write_text(SUITE.replace("answer", "slow"))
    await asyncio.to_thread(run_suite, suite, RunOptions(max_concurrent=4))
    peaks = {int(o.attempt.trajectory.messages[-1].text.split()[1]) for o in outcomes().values()}
    assert max(peaks) == 4
