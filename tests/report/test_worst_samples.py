from __future__ import annotations

from vivavoce.records.run import AttemptKey
from vivavoce.records.score import Failure, Score, failed, skipped
from vivavoce.report.worst_samples import worst
from vivavoce.store.store import Store

from .cases import BROKEN_JUDGE, TIMEOUT, capitals, grade, keep, outcome


async def test_the_lowest_mean_over_the_graders_comes_first_and_what_is_perfect_is_left_out(store: Store) -> None:
    outcomes = [
        outcome("fine", {"exact": 1.0, "judge": 1.0}),
        outcome("half", {"exact": 0.5, "judge": 0.5}),
        outcome("low", {"exact": 1.0, "judge": grade(0.0, "rude")}),
        outcome("lowest", {"exact": 0.0, "judge": skipped("no judge")}),
    ]
    graded = await keep(store, outcomes)
    samples = worst(store, graded.grading).samples
    assert [(sample.key.sample_id, sample.score) for sample in samples] == [
        ("lowest", 0.0),
        ("half", 0.5),
        ("low", 0.5),
    ]
    assert samples[2].why == "judge: rude"


async def test_what_could_not_be_scored_comes_before_with_no_score_of_its_own(store: Store) -> None:
    outcomes = [
        outcome("low", {"exact": 0.25}),
        outcome("silent", {"exact": failed(TIMEOUT)}, failure=TIMEOUT),
        outcome("unjudged", {"exact": 1.0, "judge": failed(BROKEN_JUDGE)}),
        outcome("unrewarded", reward=Score(state="error", failure=BROKEN_JUDGE)),
        outcome("untold", {"exact": Score(state="error", reason="no idea")}),
    ]
    graded = await keep(store, outcomes)
    rows = [(sample.key.sample_id, sample.score, sample.why) for sample in worst(store, graded.grading).samples]
    assert rows == [
        ("silent", None, "target: no answer within 5 s"),
        ("unjudged", None, "judge: judge: no verdict"),
        ("unrewarded", None, "reward: judge: no verdict"),
        ("untold", None, "exact: no idea"),
        ("low", 0.25, "exact: why"),
    ]


async def test_with_turns_the_reason_is_that_of_the_lowest_turn(store: Store) -> None:
    graded = await keep(store, [outcome(grades={"correctness": capitals()})])
    assert worst(store, graded.grading).samples[0].why == "correctness, turn 3: turn 2"


async def test_there_are_no_more_than_asked_for_and_the_others_are_counted(store: Store) -> None:
    lost = [Failure(blame="target", kind="crash", message=f"reason {i}") for i in (0, 1, 2, 2)]
    graded = await keep(
        store,
        [outcome(f"low-{i}", {"exact": 0.5}) for i in range(4)]
        + [outcome(f"lost-{i}", {"exact": failed(failure)}) for i, failure in enumerate(lost)]
        + [outcome("fine")],
    )
    worst_samples = worst(store, graded.grading, limit=2)
    assert [sample.key.sample_id for sample in worst_samples.samples] == ["lost-2", "lost-0", "low-0", "low-1"]
    assert worst_samples.more == 3


async def test_errors_that_are_the_same_are_one_line(store: Store) -> None:
    outcomes = [
        outcome("fine"),
        *(outcome(f"lost-{i}", {"exact": failed(TIMEOUT)}, failure=TIMEOUT) for i in range(7)),
        outcome("unjudged", {"judge": failed(BROKEN_JUDGE)}),
        *(outcome(f"lost-{i}", {"exact": failed(TIMEOUT)}, target="other", failure=TIMEOUT) for i in range(2)),
    ]
    graded = await keep(store, outcomes)
    worst_samples = worst(store, graded.grading)
    assert [(sample.key.target, sample.key.sample_id, sample.group) for sample in worst_samples.samples] == [
        ("bot", "lost-0", "7 samples"),
        ("other", "lost-0", "all 2"),
        ("bot", "unjudged", None),
    ]
    assert worst_samples.more == 0


async def test_the_trials_of_a_sample_are_not_called_samples(store: Store) -> None:
    outcomes = [outcome("a", {"exact": failed(TIMEOUT)}, trial=trial, failure=TIMEOUT) for trial in range(3)]
    graded = await keep(store, [*outcomes, outcome("b")])
    assert worst(store, graded.grading).samples[0].group == "3 conversations"


async def test_each_trial_and_target_stands_for_itself(store: Store) -> None:
    outcomes = [
        outcome("a", {"exact": grade(0.5, "v1")}, target="v1"),
        outcome("a", {"exact": grade(0.25, "v2")}, target="v2"),
        outcome("a", {"exact": grade(0.0, "again")}, target="v2", trial=1),
    ]
    graded = await keep(store, outcomes)
    rows = [(sample.key, sample.why) for sample in worst(store, graded.grading).samples]
    assert rows == [
        (AttemptKey("a", "v2", 1), "exact: again"),
        (AttemptKey("a", "v2", 0), "exact: v2"),
        (AttemptKey("a", "v1", 0), "exact: v1"),
    ]


async def test_a_reason_is_one_short_line_whatever_a_model_wrote(store: Store) -> None:
    graded = await keep(store, [outcome(grades={"exact": grade(0.0, "a\x1b[31m\n\n" + "b" * 10_000)})])
    why = worst(store, graded.grading).samples[0].why
    assert why.startswith("exact: a bbb")
    assert len(why) <= 200


async def test_what_a_server_answered_stands_beside_its_status_and_a_remedy_is_not_cut(store: Store) -> None:
    refused = [
        Failure(
            blame="target", kind="http", message="POST http://x answered 401 Unauthorized", evidence=f'{{"n": {n}}}'
        )
        for n in range(2)
    ]
    long = Failure(blame="suite", kind="unanswered", message="nobody answers " + "x" * 200 + "; write handlers")
    failures = [*refused, long]
    outcomes = [outcome(f"s{n}", {"exact": failed(failure)}, failure=failure) for n, failure in enumerate(failures)]
    samples = worst(store, (await keep(store, outcomes)).grading).samples
    assert [(sample.group, sample.why) for sample in samples] == [
        ("2 samples", 'target: POST http://x answered 401 Unauthorized, “{"n": 0}”'),
        (None, f"suite: {long.message}"),
    ]
