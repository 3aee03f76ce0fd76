from __future__ import annotations

import asyncio
import gzip
from io import StringIO

import pytest

from vivavoce.records.label import Label
from vivavoce.records.run import AttemptKey, Grading, Run
from vivavoce.records.score import TESTER_ERROR, Score, Usage, failed
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.markdown import write_markdown
from vivavoce.report.terminal import PASSED_ADDED
from vivavoce.report.verdict import spoiled_lines
from vivavoce.store.store import Store

from ..live import get
from .cases import BROKEN, Elements, keep, outcome, per_turn, turn


def names(page: Elements) -> list[str]:
    """Return the samples of a list, in its order."""
    rows = [found["href"] for _, found in page.tags if found.get("class") == "row" and "/samples/" in found["href"]]
    return [row.rpartition("/")[2].partition("?")[0] for row in rows]


def test_the_verdict_stands_with_what_it_rests_on(server: str) -> None:
    page = Elements(get(f"{server}/runs/latest").text)
    assert "refunds" in page.text
    assert "Inconclusive" in page.text
    assert "3 conversations with" in page.text
    assert "said: mean must be ≥ 0.5" in page.text
    assert any(
        label.endswith("95% interval 0.05 to 1.00") or "interval" in label for label in page.having("aria-label")
    )


def test_samples_come_worst_first_each_with_why(server: str) -> None:
    page = Elements(get(f"{server}/runs/latest").text)
    assert names(page) == ["broken", "a%2Fb", "kind"]
    assert "RuntimeError: the bot broke" in page.text


@pytest.mark.parametrize(
    ("wanted", "left"),
    [
        ("state:error", ["broken"]),
        ("tag:short", ["kind"]),
        ("said<0.5", ["a%2Fb"]),
        ("text:thanks", ["kind"]),
        ("-state:error", ["a%2Fb", "kind"]),
        ("nobody-said-this", []),
    ],
)
def test_the_filter_of_the_address_lets_some_through(server: str, wanted: str, left: list[str]) -> None:
    page = Elements(get(f"{server}/runs/latest?filter={wanted.replace('<', '%3C')}").text)
    assert names(page) == left
    assert wanted in page.having("value")
    assert ("No sample matches" in page.text) == (not left)


def test_a_filter_that_cannot_be_read_is_told_in_place(server: str) -> None:
    answer = get(f"{server}/runs/latest?filter=stat:error")
    assert answer.status == 422
    assert "no field 'stat'; did you mean 'state'?" in Elements(answer.text).text


def test_a_big_run_comes_in_pages_that_weigh_little(empty: Store, url: str) -> None:
    long = "It said something that it should not have said. " * 20
    found = [
        outcome(f"s{i}", [turn(0, long, long)], {"tone": per_turn(i / 120, 1.0, why=long)}, position=i)
        for i in range(120)
    ]
    keep(empty, found)
    seen: list[str] = []
    path = "/runs/run-1"
    while path:
        answer = get(url + path)
        assert len(gzip.compress(answer.body)) < 150_000
        page = Elements(answer.text)
        seen += names(page)
        following = [found["href"] for _, found in page.tags if found.get("rel") == "next"]
        path = following[0] if following else ""
    assert seen == [f"s{i}" for i in range(120)]


def test_a_column_sorts_both_ways(empty: Store, url: str) -> None:
    scores = {"a": 0.5, "b": 1.0, "c": 0.0}
    keep(empty, [outcome(name, [turn(0, "x")], {"goal": Score(value=score)}) for name, score in scores.items()])
    assert names(Elements(get(f"{url}/runs/run-1?sort=goal").text)) == ["c", "a", "b"]
    assert names(Elements(get(f"{url}/runs/run-1?sort=-goal").text)) == ["b", "a", "c"]


def test_trials_and_the_errors_of_the_tester_are_told(empty: Store, url: str) -> None:
    spoilt = BROKEN.model_copy(update={"kind": TESTER_ERROR, "blame": "tester"})
    found = [outcome("a", [turn(0, "x")], {"goal": Score(value=float(i))}, trial=i, position=i) for i in range(2)]
    keep(empty, [*found, outcome("b", [turn(0, "x")], {"goal": failed(spoilt)}, position=2)])
    text = Elements(get(f"{url}/runs/run-1").text).text
    assert "pass^k 0.500 0.06 to 0.94 0.000 0.00 to 0.79" in text
    assert "pass@k 0.500 1.000" in text
    graded, written = GradedRun(empty, empty.run("run-1"), empty.grading("run-1")), StringIO()
    (said,) = spoiled_lines(graded.summary())
    assert (
        said
        == "goal: 50.0% pass net of 1 tester error; 33.3% if it counts as failed (raw), 66.7% if it counts as passed"
    )
    assert said in text
    write_markdown(graded, written)
    assert said in written.getvalue()
    assert "No gate" in text


def test_sets_of_scores_are_chosen_by_the_address(empty: Store, url: str) -> None:
    keep(empty, [outcome("a", [turn(0, "x")])])
    empty.add_grading(Grading(id="again", run_id="run-1", spec={}, created_at=2000.0))
    page = Elements(get(f"{url}/runs/run-1?grading=again").text)
    assert {"/runs/run-1?grading=again", "/runs/run-1?grading=run-1-g1"} <= set(page.having("href"))
    assert "No scores yet" in page.text
    assert "Conversations appear here when they are finished and graded" in page.text

    async def grade() -> None:
        async with empty.writer("run-1", "again", {}) as writer:
            await writer.put_scores(AttemptKey("a", "bot", 0), {"goal": Score(value=0.5)}, None)

    asyncio.run(grade())
    page = Elements(get(f"{url}/runs/run-1?grading=again").text)
    assert any("grading=again" in href for href in page.having("href") if "/samples/" in href)


def test_a_run_that_began_just_now_has_a_page(empty: Store, url: str) -> None:
    run = Run(id="new", suite="support", spec={}, base="/s", started_at=1.0)
    empty.add_run(run)
    assert "has no scores" in get(f"{url}/runs/new").text
    empty.add_grading(Grading(id="g", run_id="new", spec={}, created_at=1.0))
    with empty.claimed("new"):
        page = Elements(get(f"{url}/runs/new").text)
    assert "Running" in page.text
    assert "No conversation yet" in page.text
    assert page.having("data-parts")


def test_a_run_that_was_killed_is_interrupted_and_not_running(empty: Store, url: str) -> None:
    empty.add_run(Run(id="killed", suite="support", spec={}, base="/s", started_at=1.0))
    empty.add_grading(Grading(id="g", run_id="killed", spec={}, created_at=1.0))
    page = Elements(get(f"{url}/runs/killed").text)
    assert "Running" not in page.text
    assert "viva run --resume killed" in page.text
    assert not page.having("data-parts")
    assert "Interrupted" in Elements(get(url).text).text
    with empty.claimed("killed"):
        assert "Running" in Elements(get(url).text).text


def test_scores_of_an_upgraded_store_say_where_their_passing_comes_from(empty: Store, url: str) -> None:
    keep(empty, [outcome()])
    assert PASSED_ADDED not in Elements(get(f"{url}/runs/run-1").text).text
    empty.update_grading(empty.grading("run-1").model_copy(update={"passed_added": True}))
    assert PASSED_ADDED in Elements(get(f"{url}/runs/run-1").text).text


def test_recorded_conversations_are_called_so_and_have_no_target(empty: Store, url: str) -> None:
    keep(empty, [outcome(grades={"goal": Score(value=1)})])
    assert "1 conversation with bot" in Elements(get(f"{url}/runs/run-1").text).text
    keep(empty, [outcome(grades={"goal": Score(value=1)})], "run-2", spec={"driver": "replay"})
    text = Elements(get(f"{url}/runs/run-2").text).text
    assert "1 recorded conversation" in text
    assert "recorded conversation with" not in text


def test_several_targets_stand_side_by_side_each_score_with_its_conversation(empty: Store, url: str) -> None:
    held = [
        outcome(sample, grades={"goal": Score(value=value)}, target=target)
        for sample, value in (("a/b", 0.25), ("kind", 1.0))
        for target in ("old", "new <b>")
    ]
    keep(empty, held)
    page = Elements(get(f"{url}/runs/run-1").text)
    assert "Samples by target" in page.text
    assert "0.25 ✗" in page.text
    assert "goal: no best target: on the same samples" in page.text
    assert "/runs/run-1/samples/a%2Fb?target=old" in page.having("href")
    assert get(f"{url}/runs/run-1/samples/a%2Fb?target=new%20%3Cb%3E").status == 200


def test_a_single_target_needs_no_such_table(server: str) -> None:
    assert "Samples by target" not in get(f"{server}/runs/latest").text


def test_the_states_are_counted_and_lead_to_their_samples(server: str) -> None:
    page = Elements(get(f"{server}/runs/latest").text)
    links = [one.partition("#")[0] for one in page.having("href") if one.endswith("#samples") and "state%3A" in one]
    assert links[0].endswith("?filter=state%3Aerror")
    shown = [names(Elements(get(server + link).text)) for link in links]
    assert shown[0] == ["broken"]
    assert sum(map(len, shown)) == 3


def test_sorting_and_paging_keep_the_place_and_say_where_one_is(empty: Store, url: str) -> None:
    found = [outcome(f"s{i:03}", [turn(0, "x")], {"goal": Score(value=i / 120)}, position=i) for i in range(120)]
    keep(empty, found)
    page = Elements(get(f"{url}/runs/run-1?sort=-goal").text)
    assert page.having("aria-sort") == ["descending"]
    assert "1–50 of 120" in page.text
    (following,) = [one["href"] for _, one in page.tags if one.get("rel") == "next"]
    assert following.endswith("#samples")
    second = Elements(get(url + following.partition("#")[0]).text)
    assert "51–100 of 120" in second.text
    assert names(second)[0] == "s069"


def test_a_grader_that_is_neither_of_the_gate_nor_the_reward_is_no_final_mark(empty: Store, url: str) -> None:
    keep(empty, [outcome("a", [turn(0, "x")], {"tone": Score(value=0.5)})])
    assert not any("circled" in one for one in Elements(get(f"{url}/runs/run-1").text).having("class"))


def test_the_states_of_a_large_run_are_links_that_are_not_counted(
    empty: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(empty, [outcome("a", [turn(0, "x")], {"goal": Score(value=1.0)})])
    monkeypatch.setattr("vivavoce.server.pages.run.MAX_CONVERSATIONS", 0)
    monkeypatch.setattr("vivavoce.store.browse.browse.Browse.states", None)
    links = [one for one in Elements(get(f"{url}/runs/run-1").text).having("href") if "state%3A" in one]
    assert len(links) == 5


def test_errors_with_one_cause_are_one_line_that_leads_to_them(empty: Store, url: str) -> None:
    other = BROKEN.model_copy(update={"message": "<b>no</b> seats"})
    lost = [outcome(f"s{i}", grades={"goal": failed(BROKEN)}, position=i, failure=BROKEN) for i in range(3)]
    keep(empty, [*lost, outcome("t", grades={"goal": failed(other)}, position=3), outcome("fine", position=4)])
    page = Elements(get(f"{url}/runs/run-1").text)
    assert "3 target: no answer within 5 s 1 goal: target: <b>no</b> seats" in page.text
    first, second = [href for href in page.having("href") if "filter=cause" in href]
    assert names(Elements(get(url + first.partition("#")[0]).text)) == ["s0", "s1", "s2"]
    assert names(Elements(get(url + second.partition("#")[0]).text)) == ["t"]


def test_a_page_of_the_list_leads_back_to_the_one_before(empty: Store, url: str) -> None:
    keep(empty, [outcome(f"s{i}", position=i) for i in range(120)])
    pages: list[Elements] = []
    path = "/runs/run-1?sort=position"
    while path:
        pages.append(Elements(get(url + path).text))
        path = next((one["href"].partition("#")[0] for _, one in pages[-1].tags if one.get("rel") == "next"), "")
    back = next(one["href"].partition("#")[0] for _, one in pages[2].tags if one.get("rel") == "prev")
    before = Elements(get(url + back).text)
    assert names(before) == names(pages[1])
    assert "51–100 of 120" in before.text
    first = next(one["href"].partition("#")[0] for _, one in before.tags if one.get("rel") == "prev")
    page = Elements(get(url + first).text)
    assert "1–50 of 120" in page.text
    assert not [one for _, one in page.tags if one.get("rel") == "prev"]


def heads(page: str) -> list[str]:
    """Return the heads of the list of samples."""
    table = page[page.index('<table class="book stack samples">') :]
    return Elements(table[: table.index("</thead>")]).text.removeprefix("Samples of run-1 ").split()


def test_columns_are_chosen_by_the_address_and_kept(empty: Store, url: str) -> None:
    used = [Usage(input_tokens=1000 * i, calls=1, cost=0.25 * i) for i in (1, 2)]
    grades = {name: Score(value=0.5) for name in ("a", "b", "c", "d", "turns")}
    keep(empty, [outcome(f"s{i}", [turn(0, "x", usage=one)], grades, position=i) for i, one in enumerate(used)])
    usual = get(f"{url}/runs/run-1").text
    assert heads(usual) == ["State", "↑", "Sample", "Why", "Turns", "a", "b", "c", "Took"]
    page = get(f"{url}/runs/run-1?columns=d,cost,tokens&columns=target&filter=cost%3E0.1&sort=-cost").text
    assert heads(page) == ["State", "Sample", "Why", "d", "Cost", "↓", "Tokens", "Target"]
    read = Elements(page)
    assert names(read) == ["s1", "s0"]
    assert "0.50 $0.50 2,000 bot" in read.text
    sorting = next(href for href in read.having("href") if "sort=d" in href)
    assert "columns=d%2Ccost%2Ctokens&columns=target" in sorting
    assert names(Elements(get(url + sorting.partition("#")[0]).text)) == ["s0", "s1"]
    assert [one["value"] for _, one in read.tags if one.get("type") == "checkbox" and "checked" in one] == [
        "d",
        "tokens",
        "cost",
        "target",
    ]
    assert "0.50" in Elements(get(f'{url}/runs/run-1?columns="turns"').text).text
    wrong = get(f"{url}/runs/run-1?columns=costs")
    assert (wrong.status, "no column &#39;costs&#39;; did you mean &#39;cost&#39;?" in wrong.text) == (422, True)


def test_scores_and_costs_are_drawn_with_their_numbers_in_words(empty: Store, url: str) -> None:
    used = [Usage(input_tokens=1000 * i, calls=1, cost=0.25 * i) for i in (1, 2)]
    grades = [{"goal": Score(value=i / 2)} for i in (1, 2)]
    keep(empty, [outcome(f"s{i}", [turn(0, "x", usage=used[i])], grades[i], position=i) for i in (0, 1)])
    labels = Elements(get(f"{url}/runs/run-1").text).having("aria-label")
    assert "goal: 1 from 0.50 to 0.60, 1 from 0.90 to 1.00" in labels
    assert "Cost: 1 from $0.25 to $0.28, 1 from $0.47 to $0.50" in labels
    assert any(label.startswith("Tokens: 1 from 1,000") for label in labels)


def test_labels_of_people_and_how_far_they_agree_stand_below_the_metrics(empty: Store, url: str) -> None:
    keep(empty, [outcome(f"s{i}", grades={"goal": Score(value=float(i % 2))}, position=i) for i in range(4)])
    for i in range(4):
        for author in ("ida", "bo")[: 1 + (i < 2)]:
            verdict = "pass" if i % 2 or (i == 0 and author == "bo") else "fail"
            label = Label(
                sample_id=f"s{i}", target="bot", trial=0, grader="goal", author=author, verdict=verdict, created_at=1.0
            )
            empty.labels.set("run-1", label)
    text = Elements(get(f"{url}/runs/run-1").text).text
    assert "goal: 6 labels by 2 people; they agree on 1 of 2 conversations or turns with two or more labels, α" in text
    assert "the grader agrees with 5 of 6, κ 0.67" in text
