"""What a fork shows is the same for every reader, and says in sentences what the figures say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server.live import get, serving
from vivavoce import UsageError, run_suite
from vivavoce.client import Client
from vivavoce.errors import NotFound
from vivavoce.features.forks.experiment import ForkRequest, fork_run
from vivavoce.features.forks.page import fork_plot
from vivavoce.features.forks.records import Fork, fork_lines, forks_of, same_turns, start_id, start_of
from vivavoce.features.forks.report import Forked, Place, places_table, read_fork, sentences
from vivavoce.records.run import AttemptKey, Run
from vivavoce.records.trajectory import Turn
from vivavoce.report.capture import find_conversation
from vivavoce.report.graded_run import partial_note
from vivavoce.run.drivers import replay
from vivavoce.samples.sample import Sample
from vivavoce.store.store import Store
from vivavoce.suites.experiment import suite_of

BOT = """
def bad(messages):
    return 'no' if len(messages) > 2 else 'yes'
def good(messages):
    return 'no' if any(one['content'] == 'no' for one in messages) else 'yes'
"""
SUITE = {
    "name": "asked",
    "dataset": {"rows": [{"id": "a", "input": ["x", "y", "z"], "ground_truth": "yes"}]},
    "target": {"kind": "function", "function": "bot.py:bad"},
    "graders": {"right": {"kind": "function", "function": "contains", "extractor": "last_assistant"}},
}


@pytest.fixture
async def forks(tmp_path: Path) -> tuple[Path, Run, Run]:
    """Return a store with a run, and the run with the fork of its conversation."""
    (tmp_path / "bot.py").write_text(BOT)
    (tmp_path / "suite.yaml").write_text(json.dumps(SUITE))
    place = tmp_path / "kept.db"
    run = run_suite(tmp_path / "suite.yaml", store=place).run
    with Store.open(place) as store:
        stored, outcome = find_conversation(store, f"{run.id}/a")
        request = ForkRequest(trials=60, target="bot.py:good")
        result = await fork_run(stored, outcome, request, store=store).execute()
        return place, store.run(run.id), store.run(result.run.id)


@pytest.fixture
def store(forks: tuple[Path, Run, Run]) -> Iterator[Store]:
    with Store.open(forks[0]) as opened:
        yield opened


def test_every_reader_says_the_same(forks: tuple[Path, Run, Run], store: Store) -> None:
    _, run, fork = forks
    result = read_fork(store, fork)
    assert (result.answer, result.turn) == ("fell", 1)
    with serving(store) as url, Client(url) as client:
        assert client.fork(fork.id) == result
        (entry,) = client.forks(run.id)
        assert (entry.run, entry.fork) == (fork.id, result.fork)
        assert client.forks(run.id, sample=result.fork.sample) == [entry]
        with pytest.raises(NotFound, match="no sample 'b'"):
            client.forks(run.id, sample="b")
        page = get(f"{url}/runs/{fork.id}/fork")
        assert page.status == 200
        for sentence in result.finding:
            assert sentence[1:] in page.text
        heads, rows = places_table(result)
        assert all(head.capitalize() in page.text for head in heads)
        assert all(f">{cell}<" in page.text for row in rows for cell in row[1:] if cell)
        assert "the odds fell here" in page.text
        assert f"/runs/{fork.id}/samples/a%402" in page.text
        assert f'href="/runs/{fork.id}/fork"' in get(f"{url}/runs/{fork.id}").text
        assert f'href="/runs/{fork.id}/fork"' in get(f"{url}/runs/{run.id}/samples/a").text
        assert "Continues another conversation" in get(f"{url}/runs/{fork.id}/samples/a%402").text
        assert get(f"{url}/runs/{run.id}/fork").status == 422
        assert get(f"{url}/api/v1/runs/{run.id}/fork").status == 422
    (line,) = fork_lines(store, run, AttemptKey("a", "bot.bad", 0))
    assert line == f"{result.fork.words}: viva show {fork.id}"
    assert forks_of(store, run.id, AttemptKey("a", "bot.bad", 1)) == []


def test_a_fork_is_no_run_of_the_suite(forks: tuple[Path, Run, Run], store: Store) -> None:
    _, run, fork = forks
    note = partial_note(fork)
    assert note is not None
    assert note.startswith(f"fork of {run.id}/a from each turn, with bot.good; it cannot be a baseline")
    assert store.run("latest", whole=True).id == run.id
    with pytest.raises(UsageError, match=f"is a fork of {run.id}/a .*; fork that conversation again"):
        suite_of(fork)
    with pytest.raises(UsageError, match="is not a fork; make one with: viva runs fork"):
        read_fork(store, run)


def test_the_plot_has_a_mark_for_each_place_that_was_tried_and_for_the_end(
    forks: tuple[Path, Run, Run], store: Store
) -> None:
    fork = read_fork(store, forks[2])
    plot = fork_plot(fork)
    assert [mark.run for mark in plot.marks if mark.kind == "bad"] == ["turn 2"]
    assert len(plot.marks) == 1 + sum(place.share is not None for place in fork.places)
    assert [name for _, name in plot.dates] == ["1", "2", "3", "original"]
    assert (plot.axis.low, plot.axis.high) == (0.0, 1.0)


FORK = Fork(run="r", sample="a", target="t", trial=0, grader="g", trials=9, turns=2, ended_well=False)


def make_fork(**fields: object) -> Forked:
    places = [
        Place(turn=0, sample="a@1", passed=4, failed=1, share=0.8, low=0.4, high=0.95),
        Place(turn=1, sample="a@2"),
    ]
    defaults = {
        "run": "f",
        "fork": FORK,
        "status": "finished",
        "answer": "unknown",
        "places": places,
        "spent": 5,
        "finding": [],
    }
    return Forked.model_validate({**defaults, **fields})


def test_sentences_say_what_was_found() -> None:
    assert sentences(make_fork(), []) == ["no turn stands out after 5 replays"]
    assert sentences(make_fork(status="running"), [])[0].startswith("so far no turn stands out")
    last = sentences(make_fork(answer="fell", turn=1, fixed=40, judged_turn=1), [])
    assert last == [
        "the success rate dropped at turn 2, the last: before it, none was tried; the original failed",
        "5 replays were enough; the same number from each turn would have needed about 40",
        "the metric first_failure names turn 2, too",
    ]
    other = sentences(make_fork(answer="fell", turn=0, judged_turn=1), [])
    assert other[-1] == "the metric first_failure names turn 2, a different turn"
    broken = [Place(turn=0, sample="a@1", errors=2), Place(turn=1, sample="a@2", apart=1)]
    lines = sentences(make_fork(places=broken), ["it is down"])
    assert lines[1] == "2 replays ended with an error and are not counted: it is down"
    assert lines[2].startswith("1 replay counted separately")


def test_the_id_of_a_start_says_its_turn() -> None:
    assert start_id("a@b", 2) == "a@b@3"
    assert start_of("a@b@3") == 2
    with pytest.raises(ValueError, match="does not name the turn"):
        start_of("a")


def test_turns_are_the_same_by_words_and_calls() -> None:
    def turns(reply: str, *calls: str) -> list[Turn]:
        tool_calls: list[dict[str, Any]] = [{"id": call, "name": call, "arguments": {}} for call in calls]
        message: dict[str, Any] = {
            "role": "assistant",
            "content": reply,
            **({"tool_calls": tool_calls} if tool_calls else {}),
        }
        return list(
            replay(Sample.model_validate({"id": "s", "messages": [{"role": "user", "content": "x"}, message]})).turns
        )

    assert same_turns(turns("yes"), turns(" yes "))
    assert not same_turns(turns("yes"), turns("no"))
    assert not same_turns(turns("yes", "pay"), turns("yes"))
    assert not same_turns(turns("yes"), [])
