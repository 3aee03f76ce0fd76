"""Groups of conversations against a count by hand, in both databases."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable

import pytest

from store.browse.test_browse import filled as filled
from store.browse.test_browse import outcome
from store.cases import FINGERPRINTS, GRADING, RUN
from vivavoce.errors import UsageError
from vivavoce.features.groups import counting
from vivavoce.features.groups.counting import Group, count_groups
from vivavoce.features.groups.fields import fields_known
from vivavoce.records.run import Attempt, AttemptKey, Outcome
from vivavoce.records.score import Score
from vivavoce.records.trajectory import Trajectory
from vivavoce.stats.groups import Cell, Sample, group_differences
from vivavoce.stats.intervals import mean_interval
from vivavoce.store.store import Store

CHANCE = {"en": 0.9, "de": 0.85, "tr": 0.3}
LANGUAGES = [*CHANCE]
Attempts = list[tuple[str, str, int, str, str, bool]]
"""Of each attempt sample, target, trial, language and case, and whether its goal was met."""


def attempts_of(targets: int, trials: int, samples: int = 30) -> Attempts:
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


def count_attempts(
    talks: Attempts, groups_of: Callable[[tuple[str, str, int, str, str, bool]], frozenset[str]], cluster: int
) -> Counter[Sample]:
    """Count by hand how many samples, or cases, have given cells; a variant of a case is a cell of its own."""
    places: dict[Hashable, dict[Hashable, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for talk in talks:
        cell = places[talk[cluster]][groups_of(talk), talk[0]]
        cell[0] += talk[5]
        cell[1] += 1
    result: Counter[Sample] = Counter()
    for place in places.values():
        cells = [Cell(key[0], p, n) for key, (p, n) in place.items() if isinstance(key, tuple)]
        result[tuple(sorted(cells, key=lambda cell: (sorted(cell.groups), *cell[1:])))] += 1
    return result


def check(groups: list[Group], talks: Attempts, column: int, cluster: int) -> None:
    all_of = {"all"} if any(group.name == "all" for group in groups) else set[str]()
    samples = count_attempts(talks, lambda item: frozenset({str(item[column]), *all_of}), cluster)
    expected = group_differences(samples)
    for group in groups:
        mine = [talk for talk in talks if group.name in {str(talk[column]), *all_of}]
        interval = mean_interval([float(talk[5]) for talk in mine], [talk[cluster] for talk in mine])
        assert interval is not None
        assert (group.low, group.high) == (interval.low, interval.high)
        assert group.rest == expected[group.name]


async def test_of_single_conversations(store: Store) -> None:
    talks = attempts_of(1, 1)
    await fill(store, talks)
    for by in ("tag", "metadata.language"):
        groups = [group for group in count_groups(store, GRADING, by) if group.name != "all"]
        assert {group.name for group in groups} == {*CHANCE}
    check(count_groups(store, GRADING, "metadata.language"), talks, 3, 0)
    assert [group.name for group in groups if group.rest is not None and group.rest.differs] == ["tr"]


async def test_of_samples_with_several_trials_and_targets(store: Store) -> None:
    talks = attempts_of(2, 3)
    await fill(store, talks)
    check(count_groups(store, GRADING, "metadata.language"), talks, 3, 0)
    check(count_groups(store, GRADING, "target"), talks, 1, 0)
    by_tag = {group.name: group for group in count_groups(store, GRADING, "tag")}
    check([by_tag[each] for each in CHANCE], talks, 3, 0)
    assert by_tag["all"].rest is None  # there is no rest
    assert by_tag["all"].number == len(talks)


async def test_variants_of_a_case_are_compared_within_it(store: Store) -> None:
    talks = [talk for talk in attempts_of(1, 1, 90) if talk[3] != "de"]
    await fill(store, talks)
    paired = count_groups(store, GRADING, "metadata.language", pairs="metadata.case")
    check(paired, talks, 3, 4)
    alone = count_groups(store, GRADING, "metadata.language")
    assert [group.name for group in paired] == [group.name for group in alone]
    assert paired[0].rest != alone[0].rest
    by_tag = {group.name: group for group in count_groups(store, GRADING, "tag", pairs="metadata.case")}
    assert by_tag["en"].rest is not None
    assert paired[0].rest is not None
    assert by_tag[paired[0].name].rest is not None
    assert by_tag[paired[0].name].rest.difference == pytest.approx(paired[0].rest.difference)  # pyright: ignore[reportOptionalMemberAccess]


async def test_passes_may_be_those_of_one_grader(store: Store) -> None:
    await fill(store, attempts_of(1, 2))
    worst = count_groups(store, GRADING, "tag")
    assert count_groups(store, GRADING, "tag", grader="goal") == worst
    polite = count_groups(store, GRADING, "tag", grader="polite")
    assert {group.pass_rate for group in polite} == {1.0}
    assert sum(group.decided for group in count_groups(store, GRADING, "trial", grader="polite")) == 60


async def test_a_persona_is_a_name_or_described_by_one(store: Store) -> None:
    await fill(store, attempts_of(1, 1))
    assert {group.name: group.number for group in count_groups(store, GRADING, "persona")} == {"Bo": 20, "Ida": 10}
    assert {group.name for group in count_groups(store, GRADING, "metadata.deep.er")} == {"1"}
    assert fields_known(store, RUN) == ["persona", "metadata.language", "metadata.case", "metadata.odd"]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"by": "metadata.lnguage"}, "no sample has metadata.lnguage; did you mean 'metadata.language'?"),
        ({"by": "metadata.x.y"}, "no sample has metadata.x.y; did you mean 'metadata."),
        ({"by": "langauge"}, "no field 'langauge'"),
        ({"by": "metadata."}, "no field 'metadata.'"),
        ({"by": "tag", "pairs": "tag"}, "no field 'tag'; known: metadata.NAME, persona"),
        ({"by": "tag", "grader": "gaol"}, "no grader 'gaol'; did you mean 'goal'?"),
    ],
)
async def test_a_name_that_is_not_there_is_refused(store: Store, fields: dict[str, str], complaint: str) -> None:
    await fill(store, attempts_of(1, 1, 6))
    with pytest.raises(UsageError) as caught:
        count_groups(store, GRADING, **fields)  # pyright: ignore[reportArgumentType]
    assert complaint in str(caught.value)


async def test_pairs_that_are_none_are_refused(store: Store) -> None:
    await fill(store, attempts_of(1, 1, 3)[:1] + attempts_of(1, 1, 6)[3:4])
    with pytest.raises(UsageError, match="no two samples have the same"):
        count_groups(store, GRADING, "tag", pairs="metadata.case")


async def test_of_too_many_conversations_samples_are_not_told_apart(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    talks = attempts_of(1, 2)
    await fill(store, talks)
    groups = count_groups(store, GRADING, "tag", "turns>=0")
    monkeypatch.setattr(counting, "MAX_CONVERSATIONS", 10)
    many_groups = count_groups(store, GRADING, "tag", "turns>-1")
    assert [item.pass_rate for item in many_groups] == [item.pass_rate for item in groups]
    assert {(group.low, group.rest) for group in many_groups} == {(None, None)}
    with pytest.raises(UsageError, match="at most 10 conversations, got 60; filter them"):
        count_groups(store, GRADING, "metadata.language")


async def test_attempts_are_grouped_by_tag_target_and_trial(filled: Store) -> None:
    async with filled.writer(RUN, GRADING, FINGERPRINTS) as writer:
        for number in range(6, 10):
            attempt = outcome(number, 1.0, target="b3", tags=["slow"] if number < 9 else ["fast"])
            passing = {"goal": Score(value=1.0 if number < 8 else 0.0)}
            await writer.put(attempt.model_copy(update={"scores": passing, "reward": None}))
    result = {group.name: group for group in count_groups(filled, GRADING, "tag")}
    assert [(name, group.number, group.decided) for name, group in result.items()] == [
        ("slow", 4, 4),
        ("fast", 1, 1),
        ("é", 1, 1),
    ]
    assert (result["slow"].pass_rate, result["slow"].cost) == (0.5, pytest.approx(0.24))
    assert result["slow"].low is not None
    assert result["slow"].low < 0.5 < (result["slow"].high or 0)
    assert result["fast"].low is None or result["fast"].pass_rate == 0.0
    by_target = count_groups(filled, GRADING, "target", "trial:1")
    assert [(group.name, group.number, group.errors) for group in by_target] == [
        ("b3", 2, 0),
        ("bot", 2, 1),
        ("b2", 1, 0),
    ]
    assert [(group.name, group.number) for group in count_groups(filled, GRADING, "trial")] == [("1", 5), ("2", 5)]


async def test_intervals_of_groups_know_which_trials_are_of_one_sample(store: Store) -> None:
    async with store.writer(RUN, GRADING, FINGERPRINTS) as writer:
        for number in range(40):
            passing_attempt = outcome(1, 1.0 if number < 20 else 0.0)
            key = AttemptKey(f"s{number // 10}", "bot", number % 10)
            attempt = passing_attempt.attempt.model_copy(update={"key": key, "position": number})
            scores = {"goal": Score(value=1.0 if number < 20 else 0.0)}
            await writer.put(Outcome(attempt=attempt, scores=scores))
    (groups,) = count_groups(store, GRADING, "target")
    assert (groups.pass_rate, groups.decided) == (0.5, 40)
    assert groups.low is not None
    assert groups.low < 0.2  # four samples, not forty conversations
