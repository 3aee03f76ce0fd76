from __future__ import annotations

import json
from io import BytesIO
from zipfile import ZipFile

from vivavoce.records.run import Outcome
from vivavoce.records.score import Finding, Score
from vivavoce.report.clusters.cluster import Clusters
from vivavoce.store.store import Store

from ..live import get
from .cases import BROKEN, Elements, keep, outcome, turn
from .hostile import TEXTS


def kept(store: Store, rules: list[str]) -> None:
    outcomes: list[Outcome] = []
    for at, what in enumerate(rules):
        finding = Finding(kind="rule", what=what, verdict="broken", state="fail")
        score = Score(value=0.0, reason=f"It is so: {what}", findings=(finding,))
        outcomes.append(outcome(f"s{at}", [turn(0, "Hi", "Yes")], {"goal": score}, position=at))
    outcomes.append(outcome("broken", [], {"goal": Score(value=1.0)}, position=len(rules), failure=BROKEN))
    outcomes.append(outcome("fine", [turn(0, "Hi", "Yes")], {"goal": Score(value=1.0)}, position=len(rules) + 1))
    keep(store, outcomes)


def shown(url: str, path: str) -> Elements:
    answer = get(url + path)
    assert answer.status == 200, answer.text
    return Elements(answer.text)


def titles(page: Elements) -> list[str]:
    return [found["id"] for _, found in page.tags if found.get("class") == "cluster"]


def test_the_page_lists_what_failed_with_links_to_examples(empty: Store, url: str) -> None:
    kept(empty, ["no refund"] * 4 + ["no names"])
    page = shown(url, "/runs/run-1/clusters")
    assert "6 of 7 conversations failed, in 3 clusters." in page.text
    assert "goal: rule: no refund" in page.text
    assert "4 conversations , 57.1% of the run, 95% interval 25.0% to 84.2%" in page.text
    assert "/runs/run-1/samples/s0?trial=1&target=bot" in page.having("href")
    assert "/runs/run-1/samples/s3?trial=1&target=bot" not in page.having("href")
    assert "/runs/run-1/clusters" in shown(url, "/runs/run-1").having("href")


def test_the_address_filters_and_pages(empty: Store, url: str) -> None:
    kept(empty, [f"rule {word}" for word in "abcdefghijklmnopqrstuvwxyz"])
    page = shown(url, "/runs/run-1/clusters?kind=expectation")
    assert len(titles(page)) == 20
    following = next(link for link in page.having("href") if "part=2" in link)
    rest = shown(url, following)
    assert len(titles(rest)) == 6
    assert not set(titles(page)) & set(titles(rest))
    assert "21 to 26 of 26 clusters" in rest.text
    assert len(titles(shown(url, "/runs/run-1/clusters?kind=error"))) == 1
    assert get(f"{url}/runs/run-1/clusters?kind=other").status == 404
    assert get(f"{url}/runs/run-1/clusters?grader=other").status == 404
    assert "No failure fits this choice." in shown(url, "/runs/run-1/clusters?kind=tool").text


def test_a_cluster_is_downloaded_as_a_suite(empty: Store, url: str) -> None:
    kept(empty, ["no refund"] * 2 + ["no names"])
    link = next(link for link in shown(url, "/runs/run-1/clusters").having("href") if link.endswith("/suite"))
    answer = get(url + link)
    assert answer.headers["content-type"] == "application/zip"
    with ZipFile(BytesIO(answer.body)) as archive:
        suite, rows = sorted(archive.namelist(), reverse=True)
        assert suite.endswith(".yaml")
        assert f"path: {rows}" in archive.read(suite).decode()
        assert [json.loads(line)["id"] for line in archive.read(rows).splitlines()] == ["s0", "s1"]
    assert get(f"{url}/runs/run-1/clusters/nothing/suite").status == 404


def test_a_run_without_a_failure_says_so(empty: Store, url: str) -> None:
    keep(empty, [outcome("fine", [turn(0, "Hi", "Yes")])])
    assert "Every score of this run passed." in shown(url, "/runs/run-1/clusters").text


def test_hostile_texts_stay_text(empty: Store, url: str) -> None:
    kept(empty, list(TEXTS))
    parts = [get(f"{url}/runs/run-1/clusters?part={part}").text for part in range(1, 5)]
    assert all("<script>xss" not in text and "onerror=xss()>" not in text.replace("&gt;", "") for text in parts)
    tags = [(name, found) for text in parts for name, found in Elements(text).tags]
    assert not [found for _, found in tags if any(key.startswith("on") for key in found)]


def test_the_api_and_the_page_read_the_same(empty: Store, url: str) -> None:
    kept(empty, ["no refund"] * 2 + ["no names"])
    found = Clusters.model_validate_json(get(f"{url}/api/v1/runs/latest/clusters").body)
    assert [one.conversations for one in found.clusters] == [2, 1, 1]
    assert titles(shown(url, "/runs/run-1/clusters")) == [f"c-{one.id}" for one in found.clusters]
    only = Clusters.model_validate_json(get(f"{url}/api/v1/runs/latest/clusters?grader=goal").body)
    assert [one.kind for one in only.clusters] == ["expectation", "expectation"]
