from __future__ import annotations

import json
import math
from collections.abc import Sequence

import pytest

from vivavoce.errors import UsageError
from vivavoce.messages import AIMessage, HumanMessage
from vivavoce.records.run import Attempt, AttemptKey, Grading, Outcome, Run
from vivavoce.records.score import Failure, Score, Usage, failed, skipped
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.store.browse.filter import Has, parse_filter, quoted
from vivavoce.store.browse.listing import SampleEntry
from vivavoce.store.runs.rows import cause_of
from vivavoce.store.store import Store

from ..cases import BROKEN, FINGERPRINTS, GRADING, RUN

JUDGED = Usage(output_tokens=1, calls=1, cost=0.0)
GOALS = [0.9, 0.1, None, 0.5, 0.5, 0.0]


def outcome(number: int, goal: float | None, *, target: str = "bot", tags: Sequence[str] = ()) -> Outcome:
    """Return an outcome of as many turns as its number says, and a goal that broke where it has no score."""
    used = Usage(input_tokens=10 * number, calls=1, cost=number / 100)
    said = [[HumanMessage(content=f"Question {turn}"), AIMessage(content="A refund!")] for turn in range(number)]
    talk = Trajectory(
        turns=[Turn(index=i, messages=[*one], usage=used if i == 0 else None) for i, one in enumerate(said)],
        seconds=number / 2,
    )
    grade = failed(BROKEN) if goal is None else Score(value=goal, reason=f"gave way {number} times", usage=JUDGED)
    turn = Score(turn=0, value=0.5)
    polite = Score(value=1, turns=(turn,)) if number % 2 else skipped("nothing to say")
    return Outcome(
        attempt=Attempt(
            key=AttemptKey(f"sample-{number}", target, number % 2),
            scenario="s",
            sample=json.dumps({"id": "x", "goal": f"Get {number} back", "tags": list(tags)}),
            trajectory=talk if number != 5 else talk.model_copy(update={"failure": BROKEN}),
            started_at=1000.0 + number,
            position=number,
        ),
        scores={"goal": grade, "polite": polite},
        reward=Score(value=0.25),
    )


@pytest.fixture
async def filled(store: Store) -> Store:
    """A run of six attempts: the third has an error of its grader, the last one of its target."""
    async with store.writer(RUN, GRADING, FINGERPRINTS) as writer:
        for number, goal in enumerate(GOALS):
            await writer.put(
                outcome(number, goal, target="bot" if number < 4 else "b2", tags=["slow", "é"] if number == 3 else ())
            )
    return store


def numbers(samples: Sequence[SampleEntry]) -> list[int]:
    return [int(one.sample_id.partition("-")[2]) for one in samples]


def matching(store: Store, wanted: str) -> list[int]:
    found = numbers(store.browse.samples(GRADING, wanted).samples)
    assert store.browse.count_samples(GRADING, wanted) == len(found)
    return found


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("", [0, 1, 2, 3, 4, 5]),
        ("state:error", [2, 5]),
        ("-state:error", [0, 1, 3, 4]),
        ("state:skipped", [0, 2, 4]),
        ("state:scored", [0, 1, 2, 3, 4, 5]),
        ("state:fail", [0, 1, 3, 4]),
        ("state:partial", None),
        ("state:pass", []),
        ("goal<0.5", [1, 5]),
        ("-goal<0.5", [0, 2, 3, 4]),
        ("goal>=0.5 target:b2", [4]),
        ("goal=0.5 goal!=0.1", [3, 4]),
        ("worst<0.25", [1, 5]),
        ("reward<0.5 trial:2", [1, 3, 5]),
        ("turns>=4", [4, 5]),
        ("seconds<1", [0, 1]),
        ("cost>=0.03 tokens<60", [3, 4, 5]),
        ("tokens>40", [4, 5]),
        ("-cost>0", [0]),
        ("-target:bot", [4, 5]),
        ("trial:1", [0, 2, 4]),
        (f"cause:{cause_of('target: no answer within 5 s')}", [5]),
        (f"-cause:{cause_of('goal: target: no answer within 5 s')}", [0, 1, 3, 4, 5]),
        ("sample:sample-3", [3]),
        ("sample:sample-*", [0, 1, 2, 3, 4, 5]),
        ("sample:sample%", []),
        ("tag:slow", [3]),
        ("-tag:é", [0, 1, 2, 4, 5]),
        ('text:"a refund"', [1, 2, 3, 4, 5]),
        ('text:"refund a"', []),
        ("question refund -turns>2", [1, 2]),
        ('"gave way 4 times"', [4]),
        ("nothing:", None),
        ("goal<none", None),
        ('text:"…"', None),
        ("state:broken", None),
        ("trial:99999999999999999999999", []),
        ("target:bot\0' OR 1=1", None),
        ("target:bot\0", []),
        ("tag:'", []),
    ],
)
async def test_a_filter_lets_through_what_it_says(filled: Store, wanted: str, found: list[int] | None) -> None:
    if found is None:
        with pytest.raises(UsageError, match=r"^filter"):
            filled.browse.samples(GRADING, wanted)
    else:
        assert matching(filled, wanted) == found


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("gaol<0.3", "filter: no grader 'gaol'; did you mean 'goal'?"),
        ("state:error -turn>3", "filter: no grader 'turn'; did you mean 'turns'?"),
        ('goal<1 "worst"<1', "filter: no grader 'worst'; did you mean 'worst'?"),
        (
            "nothing_like_it<1",
            "filter: no grader 'nothing_like_it'; known: cost, exact, goal, judge, polite",
        ),
    ],
)
async def test_a_grader_that_is_not_there_is_an_error_that_names_near_ones(
    filled: Store, wanted: str, said: str
) -> None:
    for read in (filled.browse.samples, filled.browse.count_samples):
        with pytest.raises(UsageError) as caught:
            read(GRADING, wanted)
        assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("sort", "found"),
    [
        ("position", [0, 1, 2, 3, 4, 5]),
        ("-position", [5, 4, 3, 2, 1, 0]),
        ("goal", [5, 1, 3, 4, 0, 2]),
        ("-goal", [0, 3, 4, 1, 5, 2]),
        ("worst", [5, 2, 1, 0, 3, 4]),
        ("-turns", [5, 4, 3, 2, 1, 0]),
        ("no such grader", [0, 1, 2, 3, 4, 5]),
    ],
)
async def test_pages_of_any_size_have_everything_once_in_order(filled: Store, sort: str, found: list[int]) -> None:
    for limit in (1, 2, 4, 6, 50):
        seen: list[int] = []
        after = None
        while True:
            page = filled.browse.samples(GRADING, sort=sort, after=after, limit=limit)
            assert len(page.samples) <= limit
            seen += numbers(page.samples)
            after = page.next
            if after is None:
                break
        assert seen == found


async def test_a_sample_comes_with_its_scores_and_without_what_was_said(filled: Store) -> None:
    entry = filled.browse.samples(GRADING, "sample:sample-3").samples[0]
    assert (entry.title, entry.tags, entry.turns, entry.seconds) == ("Get 3 back", ["slow", "é"], 3, 1.5)
    goal, polite, reward = entry.scores
    assert (goal.name, goal.value, goal.reason) == ("goal", 0.5, "gave way 3 times")
    assert [turn.value for turn in polite.turns] == [0.5]
    assert (reward.kind, reward.value) == ("reward", 0.25)
    assert "Question" not in entry.model_dump_json()


async def test_a_score_says_itself_whether_it_passes_and_1_does_where_it_does_not(store: Store) -> None:
    said = [(0.75, True), (1.0, False), (0.75, None), (1.0, None), (0.0, None), (None, None)]
    async with store.writer(RUN, GRADING, FINGERPRINTS) as writer:
        for number, (score, passed) in enumerate(said):
            grade = failed(BROKEN) if score is None else Score(value=score, passed=passed)
            await writer.put(Outcome(attempt=outcome(number, 1.0).attempt, scores={"goal": grade}))
    found = {state: matching(store, f"state:{state}") for state in ("pass", "fail", "error")}
    assert found == {"pass": [0, 3], "fail": [1, 2, 4], "error": [5]}
    shown = store.browse.samples(GRADING).samples
    assert [one.status for one in shown] == ["pass", "fail", "fail", "pass", "fail", "error"]
    assert [one.scores[0].passed for one in shown] == [True, False, False, True, False, None]


async def test_a_grading_that_is_made_later_has_its_own_standings(filled: Store) -> None:
    again = Grading(id="again", run_id=RUN, spec={}, created_at=2000.0)
    filled.add_grading(again)
    async with filled.writer(RUN, again.id, {}) as writer:
        await writer.put_scores(AttemptKey("sample-3", "bot", 1), {"goal": Score(value=1)}, None)
    (found,) = filled.browse.samples(again.id, "tag:slow state:pass turns=3 seconds=1.5").samples
    assert found.sample_id == "sample-3"
    assert filled.browse.count_samples(GRADING, "state:pass") == 0


async def test_what_broke_says_so(filled: Store) -> None:
    by_grader, by_target = filled.browse.samples(GRADING, "state:error").samples
    assert isinstance(by_grader.scores[0].failure, Failure)
    assert by_target.failure == BROKEN


async def test_a_grading_that_is_not_there_has_no_samples(filled: Store) -> None:
    with pytest.raises(UsageError, match="no grading 'x'"):
        filled.browse.samples("x")


async def test_a_place_that_is_none_is_refused(filled: Store) -> None:
    for place in ("x", "é", "bm9uZQ", "W10", "WzEsMiwzLDRd", "WyJhIiwxLDFd", "W3RydWUsMSwxXQ", "W05hTiwxLDFd"):
        with pytest.raises(UsageError, match="start the list again"):
            filled.browse.samples(GRADING, after=place)


SUMMARY = {
    "attempts": 6,
    "failed_attempts": 1,
    "graders": [
        {"name": "goal", "target": "bot", "scored": 5, "errors": 1, "skipped": 0, "samples": 5, "mean": 0.4}
        | {"low": 0.1, "high": 0.7},
        {"name": "polite", "target": "bot", "scored": 3, "errors": 0, "skipped": 3, "samples": 3, "mean": 1.0},
    ],
}


def add_run(store: Store, number: int, gate: str | None) -> None:
    spec = {"gate": {"kind": "simple", "metric_key": gate}} if gate else {}
    run = Run(id=f"r{number}", suite=f"suite {number % 2}", spec=spec, base="/", started_at=2000.0 + number // 2)
    store.add_run(run)
    ended = {"finished_at": 1.0, "verdict": "pass", "summary": SUMMARY}
    for name, more in (("g1", ended), ("g2", {})):
        given = {"id": f"{run.id}-{name}", "run_id": run.id, "spec": spec, "created_at": 1.0}
        store.add_grading(Grading.model_validate({**given, **more}))


def test_runs_come_newest_first_in_pages_with_the_figures_of_their_gate(store: Store) -> None:
    for number in range(4):
        add_run(store, number, "polite" if number == 3 else None)
    first = store.browse.runs(limit=3)
    assert [run.id for run in first.runs] == ["r3", "r2", "r1"]
    assert [run.id for run in store.browse.runs(after=first.next, limit=3).runs] == ["r0", RUN]
    newest, second = first.runs[:2]
    assert (newest.grading, newest.verdict, newest.attempts) == ("r3-g1", "pass", 6)
    assert newest.headline is not None
    assert (newest.headline.name, newest.headline.mean, newest.headline.n) == ("polite", 1.0, 3)
    assert second.headline is not None
    assert (second.headline.name, second.headline.low, second.headline.high) == ("goal", 0.1, 0.7)
    assert store.browse.runs(after=first.next).runs[-1].headline is None


@pytest.mark.parametrize("value", ["a\0b", "a\ud800b", math.inf, math.nan, 10**400, ["\0"], {"\0": "\ud800"}])
def test_runs_with_values_that_databases_do_not_take_as_json_are_listed(store: Store, value: object) -> None:
    add_run(store, 0, "polite")
    run, scores = store.run("r0"), store.grading("r0", "r0-g1")
    store.update_run(run.model_copy(update={"spec": {"description": value}}))
    store.update_grading(scores.model_copy(update={"spec": {**scores.spec, "graders": {"x": value}}}))
    newest = store.browse.runs().runs[0]
    assert (newest.id, newest.title) == ("r0", None)
    assert newest.headline is not None
    assert newest.headline.name == "polite"
    assert store.browse.runs(text="\0").runs == []


def test_runs_are_found_by_suite_status_and_a_part_of_their_name(store: Store) -> None:
    for number in range(4):
        add_run(store, number, None)
    assert [run.id for run in store.browse.runs(suite="suite 1").runs] == ["r3", "r1"]
    assert [run.id for run in store.browse.runs(text="SUITE 0").runs] == ["r2", "r0"]
    assert store.browse.runs(text="suite_0").runs == []
    assert store.browse.runs(status="finished").runs == []
    assert store.browse.suites() == ["suite 0", "suite 1", "support"]


async def test_errors_that_say_the_same_are_one_group_the_most_frequent_first(filled: Store) -> None:
    slow = Failure(blame="target", kind="timeout", message="no answer within 9 s")
    async with filled.writer(RUN, GRADING, FINGERPRINTS) as writer:
        for number in range(6, 9):
            one = outcome(number, None)
            talk = one.attempt.trajectory.model_copy(update={"failure": slow if number < 8 else BROKEN})
            attempt = one.attempt.model_copy(update={"trajectory": talk})
            await writer.put(one.model_copy(update={"attempt": attempt}))
    found = filled.browse.errors_alike(GRADING)
    assert [(one.number, one.target, one.sample_id, one.grader) for one in found.groups] == [
        (2, "bot", "sample-6", None),
        (1, "bot", "sample-2", "goal"),
        (1, "b2", "sample-5", None),
        (1, "bot", "sample-8", None),
    ]
    assert found.more == 0
    assert [one.failure for one in found.groups] == [slow, BROKEN, BROKEN, BROKEN]
    assert filled.browse.errors_alike(GRADING, 2).more == 2
    causes = [one.cause for one in found.groups]
    assert causes[2] == causes[3] != causes[1]
    assert [matching(filled, f"cause:{one}") for one in causes[:3]] == [[6, 7], [2], [5, 8]]


@pytest.mark.parametrize("sort", ["position", "-goal", "worst", "-cost", "tokens", "trial"])
async def test_a_list_can_be_read_back_from_its_end(filled: Store, sort: str) -> None:
    forth = [filled.browse.samples(GRADING, sort=sort, limit=2)]
    while forth[-1].next:
        forth.append(filled.browse.samples(GRADING, sort=sort, limit=2, after=forth[-1].next))
    back = [forth[-1]]
    while back[-1].previous:
        back.append(filled.browse.samples(GRADING, sort=sort, limit=2, before=back[-1].previous))
    assert [one.samples for one in reversed(back)] == [one.samples for one in forth]
    assert [one.next is None for one in back] == [True, False, False]
    assert sorted(number for one in back for number in numbers(one.samples)) == [0, 1, 2, 3, 4, 5]


async def test_runs_can_be_read_back_from_the_oldest(store: Store) -> None:
    for number in range(4):
        store.add_run(Run(id=f"r{number}", suite="s", spec={}, base="/", started_at=2000.0 + number))
    first = store.browse.runs(limit=2)
    second = store.browse.runs(first.next, limit=2)
    third = store.browse.runs(second.next, limit=2)
    assert (first.previous, third.next) == (None, None)
    assert store.browse.runs(before=third.previous, limit=2).runs == second.runs
    again = store.browse.runs(before=second.previous, limit=2)
    assert again.runs == first.runs
    assert (again.previous, again.next is None) == (None, False)


async def test_an_attempt_costs_what_it_and_its_scores_used(filled: Store) -> None:
    found = filled.browse.samples(GRADING).samples
    assert [(one.tokens, one.cost) for one in found] == [
        (1, 0.0),
        (11, 0.01),
        (20, 0.02),
        (31, 0.03),
        (41, 0.04),
        (51, 0.05),
    ]


async def test_histograms_count_each_value_once(filled: Store) -> None:
    goal, seconds, tokens, cost = filled.browse.histograms(GRADING, ["goal"])
    assert goal.counts == [1, 1, 0, 0, 0, 2, 0, 0, 0, 1]
    assert (seconds.name, seconds.low, seconds.high, sum(seconds.counts)) == ("seconds", 0.0, 2.5, 6)
    assert (tokens.low, tokens.high, tokens.counts[0], tokens.counts[-1]) == (1.0, 51.0, 1, 1)
    assert (cost.low, cost.high, sum(cost.counts)) == (0.0, 0.05, 6)


@pytest.mark.parametrize("tag", ["slow", 'a "b" \\ c', "x y:z", "é\n"])
async def test_a_quoted_value_is_read_back(tag: str) -> None:
    assert parse_filter(f"tag:{quoted(tag)}") == (Has("tag", tag),)
