from __future__ import annotations

import json
from io import BytesIO
from zipfile import ZipFile

from vivavoce.features.clusters.records import Clusters
from vivavoce.records.run import Outcome
from vivavoce.records.score import Finding, Score
from vivavoce.server.policy import ServerPolicy
from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer

from ..live import get, send, serving
from .cases import BROKEN, Elements, keep, outcome, turn
from .hostile import TEXTS
from .test_sign_in import fields, submit


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
    assert "4 conversations , 57.1% of all conversations, 95% interval 25.0% to 84.2%" in page.text
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
    assert "No failure matches this filter." in shown(url, "/runs/run-1/clusters?kind=tool").text


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
    assert [cluster.conversations for cluster in found.clusters] == [2, 1, 1]
    assert titles(shown(url, "/runs/run-1/clusters")) == [f"c-{cluster.id}" for cluster in found.clusters]
    only = Clusters.model_validate_json(get(f"{url}/api/v1/runs/latest/clusters?grader=goal").body)
    assert [cluster.kind for cluster in only.clusters] == ["expectation", "expectation"]


def naming(*names: str) -> LoopbackServer:
    given = [{"number": number, "name": name} for number, name in enumerate(names, 1)]
    return LoopbackServer(lambda _: {"names": given})


def test_a_judge_names_clusters_when_asked_and_never_on_reading(empty: Store) -> None:
    kept(empty, ["no refund"] * 2 + ["no names"])
    with naming("Refund <b>refused</b>", "") as judge:
        name = f"{judge.base_url}#namer"
        with serving(empty, ServerPolicy(models=frozenset({name}))) as url:
            asking = get(f"{url}/runs/run-1/clusters")
            before = titles(Elements(asking.text))
            assert "Name these clusters" in asking.text
            get(f"{url}/api/v1/runs/run-1/clusters")
            assert judge.requests == []
            done = submit(f"{url}/runs/run-1/clusters", {**fields(asking), "judge": name})
            assert (done.status, "Note: 2 clusters keep their signatures" in done.text) == (200, True)
            assert len(judge.requests) == 1
            named = get(f"{url}/runs/run-1/clusters")
            assert "Name these clusters" not in named.text
            page = Elements(named.text)
            assert "Refund <b>refused</b>" in page.text
            assert "<b>refused</b>" not in named.text
            assert "named by a model; what the failures share: goal: rule: no refund" in page.text
            assert f"names by {name}:" in page.text
            assert "Note: 2 clusters keep their signatures" in page.text
            assert titles(page) == before
            assert "Refund <b>refused</b>" in shown(url, "/runs/run-1/clusters").text
            found = Clusters.model_validate_json(get(f"{url}/api/v1/runs/run-1/clusters").body)
            assert [cluster.name for cluster in found.clusters] == ["Refund <b>refused</b>", None, None]
            assert found.naming is not None
            assert found.naming.usage is not None
            assert found.naming.usage.calls == 1
            assert len(judge.requests) == 1
    with serving(empty) as url:  # another server of the store, without that judge
        assert "Refund" not in shown(url, "/runs/run-1/clusters").text


def test_the_api_has_clusters_named_by_whom_may_start_jobs_and_judges_that_are_allowed(empty: Store) -> None:
    kept(empty, ["no refund"])
    with naming("refused", "broken bot") as judge:
        name = f"{judge.base_url}#namer"
        with serving(empty, ServerPolicy(models=frozenset({name})), demanded=True) as url:
            _, writing = empty.tokens.create("Ida", "write")
            _, reading = empty.tokens.create("Bo", "read")
            writer, reader = ({"authorization": f"Bearer {secret}"} for secret in (writing, reading))
            place = f"{url}/api/v1/runs/run-1/clusters/names"
            refused = send("POST", place, {}, reader)
            assert (refused.status, judge.requests) == (403, [])
            assert "Name these clusters" not in get(f"{url}/runs/run-1/clusters", reader).text
            other = send("POST", place, {"judge": "openai:other"}, writer)
            assert (other.status, "cannot use the judge 'openai:other'" in other.text) == (422, True)
            found = Clusters.model_validate_json(send("POST", place, {"judge": name}, writer).body)
            assert [cluster.name for cluster in found.clusters] == ["refused", "broken bot"]
    with serving(empty) as url:
        none = send("POST", f"{url}/api/v1/runs/run-1/clusters/names", {})
        assert (none.status, "start the server with --judge MODEL" in none.text) == (422, True)


def test_a_judge_that_fails_is_told_of_and_can_be_asked_again(empty: Store) -> None:
    kept(empty, ["no refund"])
    answers: list[dict[str, object]] = [{"names": "none"}]
    with LoopbackServer(lambda _: answers[-1]) as judge:
        name = f"{judge.base_url}#namer"
        with serving(empty, ServerPolicy(models=frozenset({name}))) as url:
            form = {**fields(get(f"{url}/runs/run-1/clusters")), "judge": name}
            failed = submit(f"{url}/runs/run-1/clusters", form)
            assert (failed.status, "Note: 2 clusters keep their signatures" in failed.text) == (200, True)
            assert "goal: rule: no refund" in failed.text
            assert "Name these clusters" in get(f"{url}/runs/run-1/clusters").text
            answers.append({"names": [{"number": 1, "name": "refused"}, {"number": 2, "name": "broken"}]})
            done = submit(f"{url}/runs/run-1/clusters", form)
            assert done.status == 303
            assert "refused" in get(url + done.headers["location"]).text


def test_hostile_names_stay_text(empty: Store) -> None:
    kept(empty, [f"rule {number}" for number in range(len(TEXTS))])
    with LoopbackServer(
        lambda _: {"names": [{"number": number, "name": text[:80]} for number, text in enumerate(TEXTS[:20], 1)]}
    ) as judge:
        name = f"{judge.base_url}#namer"
        with serving(empty, ServerPolicy(models=frozenset({name}))) as url:
            asking = get(f"{url}/runs/run-1/clusters")
            submit(f"{url}/runs/run-1/clusters", {**fields(asking), "judge": name})
            text = get(f"{url}/runs/run-1/clusters").text
    assert "named by a model" in text
    assert "<script>xss" not in text
    assert not [found for _, found in Elements(text).tags if any(key.startswith("on") for key in found)]
