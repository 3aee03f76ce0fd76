from __future__ import annotations

from vivavoce.records.run import Run
from vivavoce.records.score import Score
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
    assert "0.250, no interval" in labels


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
