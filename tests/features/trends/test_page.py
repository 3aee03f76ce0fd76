from __future__ import annotations

import gzip
from html import escape
from typing import Any
from urllib.parse import quote

import pytest

from report.trend_cases import PRINTS, SPEC, keep, says
from server.live import get
from server.pages.cases import Elements
from server.pages.hostile import TEXTS
from vivavoce.features.trends.page import trends_page
from vivavoce.safe_text import safe
from vivavoce.server.pages.links import run_page
from vivavoce.store.store import Store

LARGE: dict[str, Any] = {**SPEC, "target": {**SPEC["target"], "model_handles": ["large"]}}


def open_page(url: str, path: str) -> Elements:
    answer = get(url + path)
    assert answer.status == 200, answer.text
    return Elements(answer.text)


def rows(page: Elements) -> list[str]:
    return [attributes["href"] for _, attributes in page.tags if attributes.get("class", "").split()[:1] == ["row"]]


def links(page: Elements, name: str, value: str) -> list[str]:
    return [attributes["href"] for _, attributes in page.tags if attributes.get(name) == value]


def count_marks(page: Elements, name: str) -> int:
    return sum(attributes.get("class") == name for _, attributes in page.tags)


def test_a_trend_tells_its_finding_draws_it_and_lists_every_run(empty: Store, url: str) -> None:
    for number in range(6):
        keep(
            empty,
            number,
            says("goal", 0.9 if number < 3 else 0.7),
            says("tone", 0.8),
            spec=SPEC if number < 3 else LARGE,
        )
    page = open_page(url, "/trends?suite=shop")
    finding = "goal fell from 0.90 to 0.70 since run shop-003, when the target changed."
    assert finding in page.text
    assert any(finding in label and "table below" in label for label in page.having("aria-label"))
    assert "Target changed: model small → large" in page.text
    assert "−0.200 −0.271 to −0.129" in page.text
    assert rows(page) == [run_page(f"shop-{number:03}") for number in range(5, -1, -1)]
    assert page.having("data-run") == [f"shop-{number:03}" for number in range(6)]
    assert count_marks(page, "letter") == 1
    assert "/trends?suite=shop&grader=tone" in page.having("href")
    assert {"/compare?a=shop-002&b=shop-003", "/trends?suite=shop&from=shop-003"} <= set(page.having("href"))
    assert (
        next(attributes.get("aria-current") for _, attributes in page.tags if attributes.get("href") == "/trends")
        == "page"
    )


def test_scores_of_other_rules_are_drawn_apart_and_called_so(empty: Store, url: str) -> None:
    for number in range(4):
        keep(empty, number, says("goal", 0.9), prints=PRINTS | {"goal": "g1" if number < 2 else "g2"})
    page = open_page(url, "/trends?suite=shop")
    assert count_marks(page, "trace") == 2 + 1, "two stretches, and one in the legend"
    assert "not comparable" in page.text
    assert "graded differently: not connected" in page.text


def test_pages_lead_to_earlier_and_later_runs_and_back(empty: Store, url: str) -> None:
    for number in range(40):
        keep(empty, number, says("goal", 0.5))
    first = open_page(url, "/trends?suite=shop&limit=15")
    assert rows(first)[-1] == "/runs/shop-025"
    (earlier,) = links(first, "rel", "prev")
    second = open_page(url, earlier)
    assert (rows(second)[0], rows(second)[-1]) == ("/runs/shop-024", "/runs/shop-010")
    (later,) = links(second, "rel", "next")
    assert rows(open_page(url, later)) == rows(first)
    part = open_page(url, "/trends?suite=shop&from=shop-003&to=shop-005")
    assert len(rows(part)) == 3
    assert links(first, "rel", "next") == []


@pytest.mark.parametrize(
    ("means", "sentence"),
    [
        ([0.8], "One run is too few for a trend."),
        ([0.8, 0.6], "Two runs are too few for a trend."),
        ([None, None, None], "None of these 3 runs has a score of goal."),
    ],
)
def test_few_runs_and_broken_runs_have_a_page_that_says_so(
    empty: Store, url: str, means: list[float | None], sentence: str
) -> None:
    for number, mean in enumerate(means):
        keep(empty, number, says("goal", mean))
    page = open_page(url, "/trends?suite=shop")
    assert sentence in page.text
    assert len(rows(page)) == len(means)
    assert count_marks(page, "gap") == (len(means) + 1 if None in means else 0)


def test_runs_that_were_never_graded_have_a_page(empty: Store, url: str) -> None:
    keep(empty, 0, prints={}, status="interrupted")
    keep(empty, 1, prints={}, status="running")
    with empty.claimed("shop-001"):
        page = open_page(url, "/trends?suite=shop")
    assert "not graded" in page.text
    assert "still running" in page.text


def test_several_targets_can_be_chosen(empty: Store, url: str) -> None:
    for number in range(3):
        keep(empty, number, says("goal", 0.8, target="a"), says("goal", 0.3, target="b"))
    assert "0.800" in open_page(url, "/trends?suite=shop").text
    assert "0.300" in open_page(url, "/trends?suite=shop&target=b").text


def test_without_a_suite_one_is_chosen_the_newest_first(empty: Store, url: str) -> None:
    for number in range(3):
        keep(empty, number, says("goal", 0.25 * number))
    keep(empty, 9, says("goal", None), suite="a & b")
    page = open_page(url, "/trends")
    assert rows(page) == ["/trends?suite=a+%26+b", "/trends?suite=shop"]
    assert "0.500 0.45 to 0.55" in page.text
    assert "Mean of the last 3 runs of this suite: 0.00, 0.25, 0.50" in page.having("aria-label")
    assert "no score" in page.text


def test_a_line_in_the_list_of_suites_does_not_join_scores_of_other_rules(empty: Store, url: str) -> None:
    for number in range(5):
        keep(empty, number, says("goal", number / 5), prints={"goal": "g1" if number < 3 else "g2"})
    assert "Mean of the last 2 runs of this suite: 0.60, 0.80" in open_page(url, "/trends").having("aria-label")


def test_many_suites_come_in_pages(empty: Store, url: str) -> None:
    for number in range(25):
        keep(empty, number, says("goal", 0.5), suite=f"s{number:02}")
    first = open_page(url, "/trends")
    (following,) = links(first, "rel", "next")
    assert [*rows(first), *rows(open_page(url, following))] == [
        f"/trends?suite=s{number:02}" for number in range(24, -1, -1)
    ]


def test_an_empty_store_says_what_to_do(url: str) -> None:
    assert "viva run my-suite/suite.yaml" in open_page(url, "/trends").text


@pytest.mark.parametrize("query", ["suite=nope", "suite=shop&grader=x", "suite=shop&target=x", "suite=shop&from=x"])
def test_what_is_not_there_has_a_page_that_says_so(empty: Store, url: str, query: str) -> None:
    keep(empty, 0, says("goal", 0.5))
    answer = get(f"{url}/trends?{query}")
    assert answer.status == 404
    assert "Not found" in answer.text


def test_the_page_of_a_thousand_runs_weighs_little(empty: Store, url: str) -> None:
    for number in range(200):
        keep(empty, number, *(says(f"g{i}", 0.5 + number % 7 / 20) for i in range(6)), version=str(number))
    for query in ("", "&limit=120"):
        assert len(gzip.compress(get(f"{url}/trends?suite=shop{query}").body)) < 60_000


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_what_strangers_wrote_stays_a_text(empty: Store, url: str, number: int) -> None:
    text = TEXTS[number]
    for run in range(3):
        spec = {
            "target": {text: text * run},
            "graders": {text: {"model": f"{text}{run}"}},
            "gate": {"metric_key": text},
        }
        graders = says(text, 0.5, target=text), says(f"{text}2", 0.5, target=text)
        keep(
            empty,
            run,
            *graders,
            spec=spec,
            prints={text: str(run)},
            suite=text,
            id=f"{run}{text}",
            version=f"{run}{text}",
        )
    for path in (trends_page(), trends_page(suite=text), trends_page(suite=text, grader=f"{text}2", target=text)):
        answer = get(url + path)
        assert answer.status == 200, path
        harmless(answer.text)
        assert " ".join(safe(text).split())[:12] in Elements(answer.text).text
    address = quote(text, safe="")
    for query in (
        f"suite={address}x",
        f"suite={address}&from={address}",
        f"suite=&after={address}",
        f"limit={address}",
    ):
        answer = get(f"{url}/trends?{query}")
        assert answer.status in (200, 404, 422)
        harmless(answer.text)
    if escape(text) != text and "&" not in text:
        assert text not in get(url + trends_page(suite=text)).text


def harmless(page: str) -> None:
    """Check that nobody else put in a script, a handler, a style, or an address that leads elsewhere."""
    read = Elements(page)
    for _, attributes in read.tags:
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "srcset", "autofocus")]
    for name in ("href", "src", "action"):
        assert all(value.startswith(("/", "#")) and value[:2] != "//" for value in read.having(name))
    scripts = [attributes["src"] for tag, attributes in read.tags if tag == "script"]
    assert set(scripts) <= {"/static/vv.js", "/static/print.js", "/static/palette.js", "/static/trends.js"}
    assert "1337" not in page
    assert not {"iframe", "object", "embed", "base", "style", "img", "foreignobject"} & {tag for tag, _ in read.tags}
