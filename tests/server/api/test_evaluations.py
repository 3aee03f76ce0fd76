from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from vivavoce import evaluate
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.replies import Evaluated
from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer

from ..live import send, serving
from ..pages.cases import keep, outcome, turn

VERDICT = {"achievement_level": "fully_achieved", "confidence": 0.9, "reasoning": "It was told.", "evidence": ["auto"]}
TALK = [{"role": "user", "content": "What do you offer?"}, {"role": "assistant", "content": "We offer auto."}]


def test_a_conversation_is_measured_now(server: str) -> None:
    reply = send("POST", f"{server}/api/v1/evaluations", {"messages": TALK, "metrics": ["turn_count", "refusal"]})
    found = Evaluated.model_validate_json(reply.body)
    assert (reply.status, found.results["turn_count"].score) == (200, 1.0)
    assert list(found.results) == ["turn_count", "refusal"]


ORDER = {"type": "function", "id": "1", "function": {"name": "order", "arguments": "{}"}}
CALLING = [
    {"role": "user", "content": "One, please"},
    {"role": "assistant", "content": None, "tool_calls": [ORDER]},
    {"role": "tool", "tool_call_id": "1", "content": "ok"},
    {"role": "assistant", "content": "Ordered."},
    {"role": "user", "content": "Thanks"},
    {"role": "assistant", "content": "Bye."},
]


KNOWN: list[dict[str, Any]] = [
    {"ground_truth": "Bye."},
    {"reference": "Bye."},
    {"ground_truth": ["Ordered.", "Good night."]},
    {"reference_tool_calls": [{"name": "order", "args": {}}]},
    {"reference_tool_calls": [[{"name": "order", "args": {}}], None]},
    {"labels": {"good": True}},
]


@pytest.mark.parametrize("known", KNOWN, ids=str)
def test_what_is_known_of_a_conversation_is_what_evaluate_takes(
    server: str, tmp_path: Path, known: dict[str, Any]
) -> None:
    metrics: list[Any] = [
        "exact_match",
        "tool_call_accuracy",
        {"metric": "recorded", "config": {"path": "labels.good"}},
    ]
    reply = send("POST", f"{server}/api/v1/evaluations", {"messages": CALLING, "metrics": metrics, **known})
    found = Evaluated.model_validate_json(reply.body).results
    db = str(tmp_path / "x.db")
    run = evaluate([{"messages": CALLING, **known}], metrics, store=db)
    with Store.open(db) as store:
        scores = next(store.outcomes(run.grading.id)).scores
    assert {name: (one.state, one.value) for name, one in found.items()} == {
        name: (score.state, score.value) for name, score in scores.items()
    }
    assert [one for one in found.values() if one.state == "scored"], "something in it was measured"


def test_a_judged_metric_asks_the_judge_of_the_server(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with LoopbackServer(lambda _: VERDICT) as judge, serving(store) as url:
        body = {"messages": TALK, "goal": "learn the offer", "metrics": ["goal_achievement"]}
        unjudged = Evaluated.model_validate_json(send("POST", f"{url}/api/v1/evaluations", body).body)
        assert unjudged.results["goal_achievement"].state == "skipped"
        monkeypatch.setenv("VIVAVOCE_JUDGE", f"{judge.base_url}#examiner")
        found = Evaluated.model_validate_json(send("POST", f"{url}/api/v1/evaluations", body).body)
    assert (found.all_passed, found.results["goal_achievement"].evidence[0].verified) == (True, True)
    assert len(judge.requests) == 1


def test_a_request_names_only_judges_that_are_allowed(store: Store) -> None:
    with LoopbackServer(lambda _: VERDICT) as judge:
        name = f"{judge.base_url}#examiner"
        body = {"messages": TALK, "goal": "learn the offer", "metrics": ["goal_achievement"], "judge": name}
        with serving(store) as url:
            refused = send("POST", f"{url}/api/v1/evaluations", body)
        assert (refused.status, judge.requests) == (422, [])
        assert "cannot use the judge" in refused.json()["detail"]
        with serving(store, ServerPolicy(models=frozenset({name}))) as url:
            assert send("POST", f"{url}/api/v1/evaluations", body).json()["all_passed"]


def test_a_judge_that_breaks_is_an_error_of_its_metric_and_no_score(store: Store) -> None:
    with LoopbackServer(lambda _: {"nonsense": 1}) as judge:
        name = f"{judge.base_url}#examiner"
        with serving(store, ServerPolicy(models=frozenset({name}))) as url:
            body = {"messages": TALK, "goal": "x", "metrics": ["goal_achievement", "turn_count"], "judge": name}
            found = Evaluated.model_validate_json(send("POST", f"{url}/api/v1/evaluations", body).body)
    assert [result.state for result in found.results.values()] == ["error", "scored"]
    assert not found.all_passed


def test_a_stored_conversation_is_measured_again(server: str) -> None:
    for sample, turns in (("kind", 2.0), ("a/b", 1.0), ("a%2Fb%231", 1.0)):
        url = f"{server}/api/v1/test-results/latest/{sample}/evaluations"
        found = Evaluated.model_validate_json(send("POST", url, {"metrics": ["turn_count"]}).body)
        assert found.results["turn_count"].score == turns
    for path in ("latest/none", "nothing/kind", "latest%2Fx/kind"):
        url = f"{server}/api/v1/test-results/{path}/evaluations"
        assert send("POST", url, {"metrics": ["turn_count"]}).status == 404


def measure(url: str, sample: str, metrics: list[Any], **more: Any) -> dict[str, Any]:
    place = f"{url}/api/v1/test-results/latest/{sample}/evaluations"
    reply = send("POST", place, {"metrics": metrics, **more})
    assert reply.status == 200, reply.text
    return reply.json()


def test_a_measurement_is_kept_beside_the_scores_of_the_run(server: str) -> None:
    run = f"{server}/api/v1/runs/latest"
    before = [send("GET", f"{run}{part}").json() for part in ("", "/scores", "/samples")]
    first = measure(server, "kind", ["refusal", "repetition"])
    conversation = send("GET", f"{run}/samples/kind/0?grading={first['grading']}").json()
    assert {name: one["value"] for name, one in conversation["scores"].items()} == {
        name: one["value"] for name, one in first["results"].items()
    }
    assert [send("GET", f"{run}{part}").json() for part in ("", "/scores", "/samples")] == before
    [own, kept] = send("GET", f"{run}/gradings").json()
    assert (kept["id"], kept["finished_at"], kept["verdict"]) == (first["grading"], None, None)
    assert own["verdict"] == before[0]["grading"]["verdict"]


def test_the_same_metrics_have_one_set_and_a_second_look_the_next(server: str) -> None:
    sets = [measure(server, sample, ["refusal"])["grading"] for sample in ("kind", "a/b", "kind", "kind", "a/b")]
    first, *_ = sets
    assert sets == [first, first, f"{first}-2", f"{first}-3", f"{first}-2"]
    assert measure(server, "kind", ["repetition"])["grading"] not in sets
    scores = send("GET", f"{server}/api/v1/runs/latest/scores?grading={first}").json()["scores"]
    assert [score["sample_id"] for score in scores] == ["kind", "a/b"]
    shown = send("GET", f"{server}/api/v1/runs/latest?grading={first}").json()["summary"]
    assert (shown["verdict"], shown["stopped"]) == ("inconclusive", "2 of 3 conversations have these scores")


def test_what_two_ask_at_once_is_kept_twice(server: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(measure, server, "kind", ["refusal"]) for _ in range(8)]
    found = [one.result()["grading"] for one in asked]
    assert len(set(found)) == 8


def test_a_measurement_is_not_kept_where_the_request_says_so(server: str) -> None:
    found = measure(server, "kind", ["refusal"], store=False)
    assert (found["grading"], found["results"]["refusal"]["state"]) == (None, "scored")
    assert len(send("GET", f"{server}/api/v1/runs/latest/gradings").json()) == 1


def test_a_score_without_a_highest_value_is_kept_as_a_measurement(server: str) -> None:
    found = measure(server, "kind", ["turn_count", "refusal"])
    assert found["left_out"] == []
    kept = send("GET", f"{server}/api/v1/runs/latest/scores?grading={found['grading']}").json()["scores"]
    turns, refusal = ({**one} for one in kept)
    assert (turns["name"], turns["value"], turns["passed"], turns["measured"] >= 1) == ("turn_count", None, None, True)
    assert (refusal["name"], refusal["measured"], refusal["passed"]) == ("refusal", None, True)


def test_an_error_of_a_judge_is_kept_as_an_error_and_its_fingerprint_is_that_of_a_suite(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LoopbackServer(lambda _: {"nonsense": 1}) as judge, serving(store) as url:
        monkeypatch.setenv("VIVAVOCE_JUDGE", f"{judge.base_url}#examiner")
        found = measure(url, "kind", ["safety"])
        body = {"kind": "evaluation", "conversations": [{"messages": TALK}], "metrics": ["safety"]}
        judged = send("POST", f"{url}/api/v1/jobs", body)
        while (job := send("GET", f"{url}{judged.headers['location']}").json())["status"] != "finished":
            time.sleep(0.05)
    [score] = store.scores(found["grading"])
    assert score.state == "error"
    run = store.run("latest~1")
    assert store.gradings(run.id)[-1].fingerprints == store.grading(job["run"]).fingerprints


REPEATING = [{"metric": "contains", "name": f"m{n}", "extractor": "last_assistant"} for n in range(50)]


def test_an_answer_that_would_repeat_a_long_text_too_often_is_refused(server: str) -> None:
    talk = [TALK[0], {"role": "assistant", "content": "x" * 1_000_000}]
    body = {"messages": talk, "reference": "y", "metrics": REPEATING}
    refused = send("POST", f"{server}/api/v1/evaluations", body)
    assert refused.status == 422
    assert "each of the 50 results repeats the text that it measures" in refused.json()["detail"]
    assert send("POST", f"{server}/api/v1/evaluations", {**body, "metrics": REPEATING[:20]}).status == 200


def test_what_is_too_long_to_be_answered_is_not_kept(store: Store) -> None:
    long = outcome("s", [turn(0, "Hi", "x" * 1_000_000)])
    sample = json.dumps({"id": "s", "input": "Hi", "ground_truth": "y"})
    keep(
        store, [long.model_copy(update={"attempt": long.attempt.model_copy(update={"sample": sample})})], "long", at=9e9
    )
    before = len(store.gradings("long"))
    with serving(store) as url:
        address = f"{url}/api/v1/test-results/long/s/evaluations"
        assert send("POST", address, {"metrics": REPEATING}).status == 422
        assert len(store.gradings("long")) == before
        assert send("POST", address, {"metrics": REPEATING[:2]}).status == 200


def test_nothing_is_kept_beside_a_run_that_is_not_finished(store: Store) -> None:
    run = store.run("latest")
    store.update_run(run.model_copy(update={"status": "running", "finished_at": None}))
    with store.claimed(run.id), serving(store) as url:
        place = f"{url}/api/v1/test-results/latest/kind/evaluations"
        refused = send("POST", place, {"metrics": ["refusal"]})
        assert (refused.status, refused.json()["code"]) == (409, "being_worked_on")
        assert measure(url, "kind", ["refusal"], store=False)["results"]["refusal"]["state"] == "scored"
    assert len(store.gradings(run.id)) == 1


DEEP = b'{"metrics": ["turn_count"], "messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
SURROGATE = b'{"metrics": ["turn_count"], "messages": [{"role": "user", "content": "\\ud800"}]}'


@pytest.mark.parametrize(
    "body",
    [
        None,
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe",
        DEEP,
        b'{"messages": [], "metrics": ["turn_count"]}',
        b'{"messages": NaN, "metrics": []}',
        b'{"messages": [], "messages": [], "metrics": []}',
        {"messages": TALK, "metrics": []},
        {"messages": TALK, "metrics": ["nothing"]},
        {"messages": TALK, "metrics": ["\0"]},
        {"messages": TALK, "metrics": ["\ud800"]},
        {"messages": TALK, "metrics": ["bot.py:reply"]},
        {"messages": TALK, "metrics": ["/etc/passwd.yaml"]},
        {"messages": TALK, "metrics": ["turn_count", "turn_count"]},
        {"messages": TALK, "metrics": ["turn_count"], "judge": "\ud800"},
        {"messages": TALK, "metrics": ["turn_count"], "context": [1]},
        {"messages": TALK, "metrics": ["turn_count"], "turn_seconds": ["x"]},
        {"messages": TALK, "metrics": ["turn_count"], "more": 1},
        {"messages": TALK, "metrics": ["turn_count"], "ground_truth": ["a", "b"]},
        {"messages": TALK, "metrics": ["turn_count"], "ground_truth": "a", "reference": "a"},
        {"messages": TALK, "metrics": ["turn_count"], "reference_tool_calls": [1]},
        {"messages": [{"role": "wizard", "content": "x"}], "metrics": ["turn_count"]},
        {"messages": ["x"], "metrics": ["turn_count"]},
    ],
)
def test_a_wrong_request_is_told_what_is_wrong(server: str, body: Any) -> None:
    reply = send("POST", f"{server}/api/v1/evaluations", body, {"content-type": "application/json"})
    assert (reply.status, list(reply.json())[:2]) == (422, ["detail", "code"]), reply.text


@pytest.mark.parametrize(
    "more",
    [
        {"context": {"a": 10**300, "b": [[[[0]]]], "\0": "\0"}},
        {"goal": "\0", "reference": "\u202e", "must": [""]},
        {"turn_seconds": [1e308, None, -1]},
        {"goal": "\ud83d\ude00"},
        {"goal": "\ud800"},
        {"messages": [{"role": "user", "content": "\ud800", "\ud800": "\ud800"}]},
        {"messages": [{"role": "tool", "content": None, "tool_call_id": "\0"}]},
        {"messages": [{"role": "assistant", "content": "x", "n": 10**400}]},
    ],
)
def test_no_conversation_breaks_the_server(server: str, more: dict[str, Any]) -> None:
    every = ["turn_count", "repetition", "refusal", "personal_data", "profanity_terms", "response_length"]
    body = {"messages": TALK, "metrics": every, **more}
    reply = send("POST", f"{server}/api/v1/evaluations", body)
    assert reply.status in (200, 422), reply.text
    reply.json()
