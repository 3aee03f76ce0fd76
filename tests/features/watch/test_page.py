"""The page of what watches production, and its data in the API."""

from __future__ import annotations

import json
import time

import pytest

from server.live import get
from server.pages.cases import Elements
from server.pages.hostile import TEXTS
from vivavoce.client import Client
from vivavoce.features.watch.state import Watched
from vivavoce.records.run import Condition, Reason
from vivavoce.store.store import Store
from watch_cases import HOUR, alert, bad, figures, good, judge, spending, told

RULE = Condition(aggregation="accuracy", op="gte", value=90.0)


def open_page(url: str, path: str = "/watch") -> Elements:
    answer = get(url + path)
    assert answer.status == 200, answer.text
    return Elements(answer.text)


def here() -> int:
    return int(time.time() // HOUR) * HOUR


def test_an_empty_store_says_how_to_begin(empty: Store, url: str) -> None:
    page = open_page(url)
    assert "This store has no production data yet" in page.text
    assert "viva watch --port 4318" in page.text


def test_rates_counts_budget_and_gate_are_on_the_page(empty: Store, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    judge(empty, monkeypatch, [("a", now - 5, good()), ("b", now - 4, bad("it is rude"))])
    reason = Reason(verdict="fail", code="threshold", graders={"polite": 1.0}, condition=RULE, found=80.0)
    hours = {here(): figures(8, 2, arrived=40), here() - HOUR: figures(9, 1, arrived=1200)}
    used = spending(calls=50, max_calls=200)
    told(empty, "live", now, hours, share=0.25, spending=used, alert=alert("firing", reasons=[reason]), waiting=3)
    page = open_page(url)
    assert "1,240 conversations arrived in the last 48 hours, 20 judged" in page.text
    assert "judging a sample of 25.0%; all rates are of that sample" in page.text
    assert "3 conversations waiting" in page.text
    assert "Firing" in page.text
    assert "polite: pass rate must be ≥ 90%; it is 80%" in page.text
    assert "50 of 200" in page.text
    assert [attributes["value"] for name, attributes in page.tags if name == "meter"] == ["0.2500"]
    assert "85.0% 64.0% to 94.8%, n = 20" in page.text
    assert "/runs/live-1/samples/b?trial=1&target=recorded" in page.having("href")
    assert "/runs/live-1/samples/a?trial=1&target=recorded" not in page.having("href")
    assert f"#p-{here()}" in page.having("href")
    assert {attributes.get("id") for name, attributes in page.tags if name == "tr"} >= {
        f"p-{here()}",
        f"p-{here() - HOUR}",
    }


def test_days_and_other_watches_are_chosen_in_the_address(empty: Store, url: str) -> None:
    told(empty, "one", time.time(), {here() - 60 * HOUR: figures(3, 1)})
    told(empty, "two", time.time() + 1)
    assert "Monitoring two" in open_page(url).text
    days = open_page(url, "/watch?name=one&per=day")
    assert "in the last 30 days, 4 judged" in days.text
    assert "in the last 48 hours, 0 judged" in open_page(url, "/watch?name=one").text
    assert get(f"{url}/watch?name=three").status == 404
    assert get(f"{url}/watch?per=week").status == 422


def test_a_watch_that_is_not_heard_of_is_noted(empty: Store, url: str) -> None:
    told(empty, "live", time.time() - 720)
    assert "No report for 12 minutes: start viva watch again" in open_page(url).text
    told(empty, "live", time.time())
    assert "no report for" not in open_page(url).text.lower()


def test_hostile_texts_stay_text(empty: Store, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    for at, text in enumerate(TEXTS):
        judge(empty, monkeypatch, [(text, now - 5 + at / 100, bad(text))], name=text, run=f"r{at}")
        used = spending(max_calls=3).model_copy(update={"run": text})
        reason = Reason(verdict="fail", code="sentence", graders={text: 1.0}, text=text)
        told(
            empty,
            text,
            now,
            {here(): figures(1, 1, grader=text)},
            spending=used,
            alert=alert("firing", reasons=[reason]),
        )
    for entry in json.loads(get(f"{url}/api/v1/watches").body):
        with Client(url) as client:
            assert client.watched(entry["name"]).name == entry["name"]
    page = open_page(url)
    assert not [attributes for _, attributes in page.tags if any(key.startswith("on") for key in attributes)]
    assert [name for name, _ in page.tags].count("script") == 3


def test_the_page_the_api_and_the_client_say_the_same(empty: Store, url: str) -> None:
    told(empty, "a/b", time.time(), {here(): figures(8, 2)}, alert=alert("ok"))
    report = Watched.model_validate_json(get(f"{url}/api/v1/watch?name=a%2Fb&per=day").body)
    with Client(url) as client:
        same = client.watched("a/b", per="day")
        assert [(watch.name, watch.verdict) for watch in client.watches()] == [("a/b", "pass")]
        with pytest.raises(Exception, match="no watch 'c'"):
            client.watched("c")
    assert same.model_copy(update={"at": report.at}) == report
    assert report.total.rates["polite"].share == 0.8
    assert "/api/v1/watch?name=a%2Fb&per=hour" in open_page(url).having("href")
