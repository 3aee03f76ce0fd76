"""Drawing conversations of a file: which ones, by what, and what is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.features.sampling.sampler import MAX_STRATA, Sampler, trait_of
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import RunResult
from vivavoce.samples.sample import Sample
from vivavoce.store.store import Store
from vivavoce.suites.check import check_suite
from vivavoce.suites.experiment import reopen_run, run_suite
from vivavoce.suites.load import load_suite

SUITE = """\
name: log
driver: replay
dataset: log.jsonl
graders: {said: {kind: function, function: contains}}
"""


def sample(number: int, **fields: Any) -> Sample:
    talk: list[dict[str, Any]] = [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": f"Answer {number}."},
    ]
    return Sample.model_validate({"id": f"c{number}", "messages": talk * (1 + number % 3), **fields})


def sampler(
    size: int, by: str = "", weight_by: str | None = None, count: int = 300, **fields: Callable[[int], Any]
) -> Sampler:
    draw = Sampler.of(size, [name for name in by.split(",") if name], weight_by, Path())
    for number in range(count):
        values = {name: value(number) for name, value in fields.items()}
        draw.add(sample(number, **{name: value for name, value in values.items() if value is not None}))
    return draw


def names(sampler: Sampler) -> dict[str, tuple[int, int]]:
    draw = sampler.draw("0" * 32)
    assert draw is not None
    return {stratum.name: (stratum.size, stratum.drawn) for stratum in draw.sampling.strata}


def test_without_anything_to_tell_them_apart_all_are_as_likely() -> None:
    draw = sampler(30).draw("abc")
    assert draw is not None
    assert {place.probability for place in draw.places.values()} == {0.1}
    assert (draw.sampling.even, draw.sampling.strata[0].name) == (True, "all")
    assert [*draw.places] == sorted(draw.places)


def test_the_same_file_gives_the_same_draw_and_a_larger_one_has_it_in_it() -> None:
    first, again, larger, other = (
        sampler(size, "turns").draw(dataset) for size, dataset in ((30, "abc"), (30, "abc"), (90, "abc"), (30, "abd"))
    )
    assert first is not None
    assert larger is not None
    assert first == again
    assert set(first.places) < set(larger.places)
    assert other is not None
    assert set(first.places) != set(other.places)


def test_few_numbers_stand_for_themselves_and_many_are_cut_at_quantiles() -> None:
    assert names(sampler(30, "turns")) == {"turns 1": (100, 10), "turns 2": (100, 10), "turns 3": (100, 10)}
    cut = names(sampler(30, "metadata.n", metadata=lambda n: {"n": n}))
    assert cut == {
        "metadata.n 0 to 74": (75, 8),
        "metadata.n 75 to 149": (75, 8),
        "metadata.n 150 to 224": (75, 7),
        "metadata.n 225 to 299": (75, 7),
    }


@pytest.mark.parametrize(
    ("content", "about", "errors"),
    [
        ("Error: no seats", {}, 1),
        ('{"error": "none"}', {}, 0),
        ("Done.", {"metadata": {"failed": True}}, 1),
        ("Done.", {}, 0),
    ],
)
def test_errors_of_tools_are_told_by_their_mark_or_their_beginning(content: str, about: Any, errors: int) -> None:
    result = {"role": "tool", "content": content, "tool_call_id": "c", **about}
    call: dict[str, Any] = {"role": "assistant", "tool_calls": [{"id": "c", "name": "seats", "args": {}}]}
    talk = [{"role": "user", "content": "Seats?"}, call, result]
    trait = trait_of("tool_errors", Path())
    trait.add(Sample.model_validate({"id": "x", "messages": talk}))
    assert trait.numbers.tolist() == [errors]


def test_what_some_lack_is_a_group_of_its_own() -> None:
    draw = sampler(30, "metadata.plan", metadata=lambda n: {"plan": "free"} if n % 4 else {"other": 1})
    assert names(draw) == {"metadata.plan free": (225, 23), "metadata.plan without": (75, 7)}


def test_tags_and_metrics_tell_apart_too_and_metrics_need_no_threshold() -> None:
    draw = sampler(40, "tag,message_count", tags=lambda n: ["b", "a"] if n % 2 else [])
    assert "tag a, b, message_count 4" in names(draw)
    assert len(names(draw)) == 6


def test_rare_groups_are_one() -> None:
    strata = names(sampler(20, "metadata.who", metadata=lambda n: {"who": "many" if n > 9 else f"w{n}"}))
    assert strata == {"metadata.who many": (290, 18), "other": (10, 2)}
    assert names(sampler(20, "metadata.who", metadata=lambda n: {"who": f"w{n}"})) == {"all": (300, 20)}


def test_there_are_never_more_groups_than_can_be_drawn_from() -> None:
    many = names(sampler(200, "metadata.who", metadata=lambda n: {"who": f"w{n % 100}"}))
    assert len(many) == MAX_STRATA
    assert names(sampler(1, "turns")) == {"all": (300, 1)}


def test_a_single_row_of_a_kind_is_counted_with_others_unless_all_are_drawn() -> None:
    strata = names(sampler(299, "metadata.who", metadata=lambda n: {"who": "one" if n == 5 else "rest"}))
    assert sum(number for _, number in strata.values()) == 299


def test_the_more_it_has_the_likelier_it_is_and_nothing_is_impossible() -> None:
    draw = sampler(30, weight_by="metadata.n", metadata=lambda n: {"n": 9 if n % 10 == 0 else 0}).draw("abc")
    assert draw is not None
    heavy = {drawn_place.probability for place, drawn_place in draw.places.items() if place % 10 == 0}
    light = {drawn_place.probability for place, drawn_place in draw.places.items() if place % 10}
    assert [*heavy] == pytest.approx([0.775])
    assert [*light] == pytest.approx([0.025])


def test_a_sample_as_large_as_the_file_is_all_of_it() -> None:
    assert sampler(300).draw("abc") is None
    assert "300 conversations, so --sample 301 judges all of them and nothing is estimated" in sampler(301).note


@pytest.mark.parametrize(
    ("by", "weight_by", "why"),
    [
        ("metadata.paln", None, "no conversation has metadata.paln; did you mean 'metadata.plan'?"),
        ("goal", None, "no conversation has goal"),
        ("safety", None, "'safety' would call a model"),
        ("trun_count", None, "did you mean 'turn_count'"),
        ("", "metadata.plan", "metadata.plan is 'free', but a weight must be a number"),
        ("", "metadata.debt", "must be a finite number of 0 or more"),
        ("", "metadata.no", "no conversation has metadata.no"),
    ],
)
def test_what_tells_nothing_apart_is_refused_in_one_line(by: str, weight_by: str | None, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        sampler(20, by, weight_by, metadata=lambda n: {"plan": "free", "debt": -n}).draw("abc")
    assert why in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_too_many_different_words_are_refused() -> None:
    trait = trait_of("id", Path())
    for number in range(10_000):
        trait.add(sample(number))
    with pytest.raises(UsageError, match="too many distinct values to group by"):
        trait.add(sample(10_000))


def test_of_a_conversation_no_text_is_kept() -> None:
    trait = trait_of("metadata.essay", Path())
    trait.add(sample(1, metadata={"essay": "x" * 10_000}))
    assert max(map(len, trait.words)) <= 80


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rows = (
        sample(number, ground_truth="7" if number % 2 else "Answer").model_dump(exclude_none=True)
        for number in range(60)
    )
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "suite.yaml").write_text(SUITE)
    return tmp_path


def sampled_rows(run: RunResult) -> list[tuple[str, Any]]:
    return [(outcome.attempt.key.sample_id, outcome.attempt.drawn) for outcome in run.outcomes()]


def test_a_run_holds_what_was_drawn_and_stores_how(log: Path) -> None:
    run = run_suite(log / "suite.yaml", RunOptions(sample=12, sample_by=["turns"]), store=str(log / "kept.db"))
    assert len(sampled_rows(run)) == 12
    assert {how.probability for _, how in sampled_rows(run)} == {0.2}
    assert run.run.options["planned"] == 12
    again = run_suite(log / "suite.yaml", RunOptions(sample=12, sample_by=["turns"]), store=str(log / "kept.db"))
    assert sampled_rows(again) == sampled_rows(run)


def test_a_stopped_run_goes_on_with_the_same_conversations(log: Path) -> None:
    place, options = str(log / "kept.db"), RunOptions(sample=12, sample_by=["turns"])
    whole = run_suite(log / "suite.yaml", options, store=place)
    with Store.open(place) as store:
        store.update_run(whole.run.model_copy(update={"status": "interrupted"}))
        resumed = asyncio.run(reopen_run(whole.run.id, store=store).execute())
    assert sampled_rows(resumed) == sampled_rows(whole)
    assert resumed.summary.grader("said").population == 60


def test_a_run_does_not_go_on_where_something_else_would_be_drawn(log: Path) -> None:
    place = str(log / "kept.db")
    (log / "own.py").write_text("def size(messages) -> float:\n    return 0.25\n")
    options = RunOptions(sample=12, weight_by="own.py:size")
    whole = run_suite(log / "suite.yaml", options, store=place)
    (log / "own.py").write_text("def size(messages) -> float:\n    return len(messages) / 9\n")
    with Store.open(place) as store:
        store.update_run(whole.run.model_copy(update={"status": "interrupted"}))
        with pytest.raises(UsageError, match="what is drawn has changed since"):
            asyncio.run(reopen_run(whole.run.id, store=store).execute())


def test_a_dry_run_counts_what_is_drawn(log: Path) -> None:
    assert check_suite(load_suite(log / "suite.yaml"), RunOptions(sample=12)).samples == 12
    assert check_suite(load_suite(log / "suite.yaml"), RunOptions(sample=600)).samples == 60


@pytest.mark.parametrize(
    ("gate", "why"),
    [
        ("{kind: simple, metric_key: said, aggregation: min, value: 0.5}", "a gate on min cannot be decided"),
        ("{kind: samples, metric_key: said, min_pass: 1}", "a gate on each sample"),
    ],
)
def test_a_gate_about_each_conversation_is_refused(log: Path, gate: str, why: str) -> None:
    (log / "suite.yaml").write_text(f"{SUITE}gate: {gate}\n")
    with pytest.raises(UsageError, match=why):
        check_suite(load_suite(log / "suite.yaml"), RunOptions(sample=12))


def test_a_target_is_not_drawn_from(log: Path) -> None:
    (log / "bot.py").write_text("def reply(message):\n    return message\n")
    suite = "name: bot\ndataset: {rows: [{input: Hi}]}\ntarget: {kind: function, function: 'bot.py:reply'}\n"
    (log / "bot.yaml").write_text(suite + "graders: {said: {kind: function, function: contains}}\n")
    with pytest.raises(UsageError, match="sample draws from recorded conversations"):
        check_suite(load_suite(log / "bot.yaml"), RunOptions(sample=1))


@pytest.mark.parametrize(
    "options",
    [
        {"sample": 0},
        {"sample_by": ["turns"]},
        {"weight_by": "turns"},
        {"sample": 5, "max_samples": 3},
        {"sample": 5, "samples": ["a"]},
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="sample"):
        RunOptions.model_validate(options)
