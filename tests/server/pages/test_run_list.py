from __future__ import annotations

from vivavoce.records.run import Run
from vivavoce.records.score import Score, Usage
from vivavoce.store.store import Store

from ..live import get
from .cases import Elements, keep, outcome, turn


def rows(page: Elements) -> list[str]:
    return [found["href"] for _, found in page.tags if found.get("class") == "row"]


def test_an_empty_store_says_what_to_do(url: str) -> None:
    text = Elements(get(url).text).text
    assert "No runs yet" in text
    assert "viva init my-suite" in text


def test_runs_stand_newest_first_with_headline_and_the_runs_before(empty: Store, url: str) -> None:
    for number, score in enumerate((0.25, 0.5, 1.0)):
        keep(empty, [outcome("a", [turn(0, "x")], {"goal": Score(value=score)})], f"r{number}", at=1000.0 * number)
    page = Elements(get(url).text)
    assert rows(page) == ["/runs/r2", "/runs/r1", "/runs/r0"]
    labels = page.having("aria-label")
    assert "Mean of the last 3 runs of this suite: 0.25, 0.50, 1.00" in labels
    assert "Mean of the last 2 runs of this suite: 0.25, 0.50" in labels
    assert "0.250, 95% interval 0.02 to 0.87" in labels


def test_filters_are_in_the_address_and_kept_while_paging(empty: Store, url: str) -> None:
    for number in range(65):
        keep(
            empty, [outcome("a", [turn(0, "x")])], f"r{number:02}", at=float(number), suite=("odd", "even")[number % 2]
        )
    first = Elements(get(f"{url}/?suite=odd").text)
    following = next(found["href"] for _, found in first.tags if found.get("rel") == "next")
    assert "suite=odd" in following
    second = Elements(get(url + following).text)
    assert [*rows(first), *rows(second)] == [f"/runs/r{number:02}" for number in range(64, -1, -2)]
    assert rows(Elements(get(f"{url}/?q=r07").text)) == ["/runs/r07"]


def test_nothing_found_and_nothing_scored_are_said(empty: Store, url: str) -> None:
    empty.add_run(Run(id="new", suite="support", spec={}, base="/s", started_at=1.0))
    with empty.claimed("new"):
        assert "not summed up yet" in get(url).text
    assert "No run matches" in get(f"{url}/?status=finished").text
    assert "No run matches" in get(f"{url}/?q=zzz").text


def test_runs_are_found_by_verdict_target_and_day(empty: Store, url: str) -> None:
    day = 86400.0
    for number, verdict in enumerate(("pass", "fail", None)):
        name = f"r{number}"
        keep(empty, [outcome("a", [turn(0, "x")], target=f"bot-{number}")], name, at=day * (number + 1) + 43200)
        empty.update_grading(empty.grading(name).model_copy(update={"verdict": verdict}))
    assert rows(Elements(get(f"{url}/?verdict=pass").text)) == ["/runs/r0"]
    assert rows(Elements(get(f"{url}/?verdict=none").text)) == ["/runs/r2"]
    assert rows(Elements(get(f"{url}/?target=bot-1").text)) == ["/runs/r1"]
    assert rows(Elements(get(f"{url}/?target=bot").text)) == []
    assert rows(Elements(get(f"{url}/?from=1970-01-03").text)) == ["/runs/r2", "/runs/r1"]
    assert rows(Elements(get(f"{url}/?to=1970-01-03").text)) == ["/runs/r1", "/runs/r0"]
    answer = get(f"{url}/?from=yesterday")
    assert (answer.status, "is not a date; write it as 2026-11-30" in answer.text) == (422, True)


def test_a_list_has_cost_commit_and_what_is_stored_of_a_running_run(empty: Store, url: str) -> None:
    used = Usage(input_tokens=10, calls=1, cost=0.25)
    keep(empty, [outcome("a", [turn(0, "x", usage=used)])], options={"revision": "0123456789abcdef" * 2, "planned": 1})
    summary = empty.grading("run-1").summary or {}
    with_usage = {**summary, "usage": {"target": used.model_dump()}}
    empty.update_grading(empty.grading("run-1").model_copy(update={"summary": with_usage}))
    empty.add_run(Run(id="new", suite="support", spec={}, base="/s", started_at=2000.0, options={"planned": 24}))
    with empty.claimed("new"):
        text = Elements(get(url).text).text
    assert "0 of 24" in text
    assert "0123456" in text
    assert "$0.25" in text
    assert "100.0%" in text
