"""Groups of conversations against a count by hand, in both databases."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Hashable

import pytest

from vivavoce.errors import UsageError
from vivavoce.records.run import Attempt, AttemptKey, Outcome
from vivavoce.records.score import Score
from vivavoce.records.trajectory import Trajectory
from vivavoce.stats.groups import Crossed, GroupSums, group_differences
from vivavoce.stats.intervals import ShareSums, mean_interval
from vivavoce.store.browse import groups as counting
from vivavoce.store.browse.listing import Group
from vivavoce.store.store import Store

from ..cases import FINGERPRINTS, GRADING, RUN

CHANCE = {"en": 0.9, "de": 0.85, "tr": 0.3}
LANGUAGES = [*CHANCE]
Attempts = list[tuple[str, str, int, str, str, bool]]
"""Of each attempt sample, target, trial, language and case, and whether its goal was met."""


def held(targets: int, trials: int, samples: int = 30) -> Attempts:
    chance = random.Random(4)
    return [
        (
            f"s{n}",
            f"bot{t}",
            trial,
            LANGUAGES[n % 3],
            f"case{n // 3}",
            chance.random() < CHANCE[LANGUAGES[n % 3]] - 0.1 * t,
        )
        for n in range(samples)
        for t in range(targets)
        for trial in range(trials)
    ]


async def fill(store: Store, talks: Attempts) -> None:
    async with store.writer(RUN, GRADING, FINGERPRINTS) as writer:
        for place, (sample, target, trial, language, case, met) in enumerate(talks):
            row = {
                "id": sample,
                "metadata": {"language": language, "case": case, "deep": {"er": 1}, "odd": float("nan")},
            }
            row |= {"tags": [language, "all"], "persona": {"name": "Ida"} if language == "de" else "Bo"}
            attempt = Attempt(
                key=AttemptKey(sample, target, trial),
                scenario="s",
                sample=json.dumps(row),
                trajectory=Trajectory(turns=[]),
                started_at=0,
                position=place,
            )
            scores = {"goal": Score(value=float(met), passed=met), "polite": Score(value=1.0, passed=True)}
            await writer.put(Outcome(attempt=attempt, scores=scores))


def counted(
    talks: Attempts, inside: Callable[[tuple[str, str, int, str, str, bool]], bool], cluster: int
) -> tuple[GroupSums, tuple[float | None, float | None]]:
    """Count a group and the rest by hand, by cluster."""
    sides: dict[Hashable, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for one in talks:
        place = sides[one[cluster]]
        start = 0 if inside(one) else 2
        place[start] += one[5]
        place[start + 1] += 1
    mine = [one for one in talks if inside(one)]
    interval = mean_interval([float(one[5]) for one in mine], [one[cluster] for one in mine])
    assert interval is not None

    def sums(start: int) -> ShareSums:
        some = [(one[start], one[start + 1]) for one in sides.values() if one[start + 1]]
        p, n = sum(p for p, _ in some), sum(n for _, n in some)
        return ShareSums(
            len(some), p, n, sum(p * p for p, _ in some), sum(p * n for p, n in some), sum(n * n for _, n in some)
        )

    both = [one for one in sides.values() if one[1] and one[3]]
    crossed = Crossed(*(sum(one[i] * one[j] for one in both) for i, j in ((0, 2), (0, 3), (1, 2), (1, 3))))
    return GroupSums(sums(0), sums(2), crossed), (interval.low, interval.high)


def check(found: list[Group], talks: Attempts, column: int, cluster: int) -> None:
    by_hand = [counted(talks, lambda one, name=group.name: str(one[column]) == name, cluster) for group in found]
    expected = group_differences([sums for sums, _ in by_hand])
    for group, rest, (_, (low, high)) in zip(found, expected, by_hand, strict=True):
        assert (group.low, group.high) == pytest.approx((low, high))
        assert rest is not None
        assert group.rest is not None
        assert (group.rest.difference, group.rest.low, group.rest.high) == pytest.approx(
            (rest.difference, rest.low, rest.high)
        )
        assert (group.rest.p_value, group.rest.q_value) == pytest.approx((rest.p_value, rest.q_value), abs=1e-6)


async def test_of_single_conversations(store: Store) -> None:
    talks = held(1, 1)
    await fill(store, talks)
    for by in ("tag", "metadata.language"):
        found = [one for one in store.browse.groups(GRADING, by) if one.name != "all"]
        assert {one.name for one in found} == {*CHANCE}
    check(store.browse.groups(GRADING, "metadata.language"), talks, 3, 0)
    assert [one.name for one in found if one.rest is not None and one.rest.differs] == ["de", "tr"]


async def test_of_samples_with_several_trials_and_targets(store: Store) -> None:
    talks = held(2, 3)
    await fill(store, talks)
    check(store.browse.groups(GRADING, "metadata.language"), talks, 3, 0)
    check(store.browse.groups(GRADING, "target"), talks, 1, 0)
    by_tag = {one.name: one for one in store.browse.groups(GRADING, "tag")}
    check([by_tag[one] for one in CHANCE], talks, 3, 0)
    assert by_tag["all"].rest is None  # there is no rest
    assert by_tag["all"].number == len(talks)


async def test_variants_of_a_case_are_compared_within_it(store: Store) -> None:
    talks = [one for one in held(1, 1, 90) if one[3] != "de"]
    await fill(store, talks)
    paired = store.browse.groups(GRADING, "metadata.language", pairs="metadata.case")
    check(paired, talks, 3, 4)
    alone = store.browse.groups(GRADING, "metadata.language")
    assert [one.name for one in paired] == [one.name for one in alone]
    assert paired[0].rest != alone[0].rest
    by_tag = {one.name: one for one in store.browse.groups(GRADING, "tag", pairs="metadata.case")}
    assert by_tag["en"].rest is not None
    assert paired[0].rest is not None
    assert by_tag[paired[0].name].rest is not None
    assert by_tag[paired[0].name].rest.difference == pytest.approx(paired[0].rest.difference)  # pyright: ignore[reportOptionalMemberAccess]


async def test_passes_may_be_those_of_one_grader(store: Store) -> None:
    await fill(store, held(1, 2))
    worst = store.browse.groups(GRADING, "tag")
    assert store.browse.groups(GRADING, "tag", grader="goal") == worst
    polite = store.browse.groups(GRADING, "tag", grader="polite")
    assert {one.pass_rate for one in polite} == {1.0}
    assert sum(one.decided for one in store.browse.groups(GRADING, "trial", grader="polite")) == 60


async def test_a_persona_is_a_name_or_described_by_one(store: Store) -> None:
    await fill(store, held(1, 1))
    assert {one.name: one.number for one in store.browse.groups(GRADING, "persona")} == {"Bo": 20, "Ida": 10}
    assert {one.name for one in store.browse.groups(GRADING, "metadata.deep.er")} == {"1"}
    assert store.browse.fields(RUN) == ["persona", "metadata.language", "metadata.case", "metadata.odd"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"by": "metadata.lnguage"}, "no sample has metadata.lnguage; did you mean 'metadata.language'?"),
        ({"by": "metadata.x.y"}, "no sample has metadata.x.y; did you mean 'metadata."),
        ({"by": "langauge"}, "no field 'langauge'"),
        ({"by": "metadata."}, "no field 'metadata.'"),
        ({"by": "tag", "pairs": "tag"}, "no field 'tag'; known: metadata.NAME, persona"),
        ({"by": "tag", "grader": "gaol"}, "no grader 'gaol'; did you mean 'goal'?"),
    ],
)
async def test_a_name_that_is_not_there_is_refused(store: Store, asked: dict[str, str], said: str) -> None:
    await fill(store, held(1, 1, 6))
    with pytest.raises(UsageError) as caught:
        store.browse.groups(GRADING, **asked)  # pyright: ignore[reportArgumentType]
    assert said in str(caught.value)


async def test_pairs_that_are_none_are_refused(store: Store) -> None:
    await fill(store, held(1, 1, 3)[:1] + held(1, 1, 6)[3:4])
    with pytest.raises(UsageError, match="no two samples have the same"):
        store.browse.groups(GRADING, "tag", pairs="metadata.case")


async def test_of_too_many_conversations_samples_are_not_told_apart(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    talks = held(1, 2)
    await fill(store, talks)
    told = store.browse.groups(GRADING, "tag", "turns>=0")
    monkeypatch.setattr(counting, "LARGEST", 10)
    found = store.browse.groups(GRADING, "tag", "turns>-1")
    assert [one.pass_rate for one in found] == [one.pass_rate for one in told]
    assert {(one.low, one.rest) for one in found} == {(None, None)}
    with pytest.raises(UsageError, match="up to 10 conversations, not of 60; filter them"):
        store.browse.groups(GRADING, "metadata.language")
