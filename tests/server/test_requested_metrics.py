"""Metrics with options in requests: data only, checked before any work."""

from __future__ import annotations

from typing import Any

import pytest

from .api.test_jobs import MANY, TALK, TEST, ended, submit
from .live import send

NOT_ALLOWED: list[tuple[dict[str, Any], str]] = [
    ({"metric": "own.py:bad"}, "no metric 'own.py:bad'"),
    ({"metric": "safety", "config": {"prompt_path": "/etc/passwd"}}, "cannot name a file"),
    ({"metric": "topic_drift", "config": {"embedder": "http://inside/v1#m"}}, "can use only the embedder 'local'"),
    ({"metric": "safety", "extractor": "own.py:all"}, "no extractor 'own.py:all'"),
    ({"metric": "safety", "config": {"model": "openai:x"}}, "model stands beside config, not in it"),
    ({"metric": "safety", "model": "openai:x"}, "model"),
    ({"metric": "safety", "settings": {"api_key": "sk-1"}}, "api_key is an API key"),
    ({"metric": "safety", "settings": {"extra_body": {"top_k": 1}}}, "'extra_body' cannot be set in a request"),
    ({"metric": "safety", "settings": {"extra_headers": {"x-a": "1"}}}, "'extra_headers' cannot be set in a request"),
    ({"metric": "safety", "settings": {"models": ["other"]}}, "models cannot be set here"),
    ({"metric": "safety", "settings": {"base_url": "http://inside"}}, "base_url cannot be set here"),
    ({"metric": "safety", "settings": {"max_retries": 1000}}, "max_retries cannot be set here"),
    ({"metric": "safety", "settings": {"provider": {"order": ["x"]}}}, "'provider' cannot be set in a request"),
    ({"metric": "safety", "settings": {"seed": {"a": 1}}}, "'seed' needs a number or a word, got dict"),
    ({"metric": "safety", "config": {"prompt": "{{ 9 ** (9 ** 9) }}"}}, "'**' is not allowed in a template"),
    ({"metric": "safety", "config": {"blocks": {"rules": "{{ 'a' * 10 ** 9 }}"}}}, "is not allowed in a template"),
    ({"metric": "refusal", "config": {"treshold": 1}}, "no option 'treshold'"),
]


@pytest.mark.parametrize(("metric", "complaint"), NOT_ALLOWED)
def test_what_a_request_may_not_name_is_refused_before_any_work(
    server: str, metric: dict[str, Any], complaint: str
) -> None:
    reply = send("POST", f"{server}/api/v1/jobs", {**MANY, "metrics": [metric], "judge": None})
    assert (reply.status, complaint in reply.text) == (422, True), reply.text


def test_options_decide_what_is_measured(server: str) -> None:
    metrics = [
        "refusal",
        {"metric": "turn_count", "threshold": 0.5, "name": "long"},
        {"metric": "fuzzy_ratio", "threshold": 0.5},
    ]
    body = {"messages": TALK, "metrics": metrics, "reference": "We offer autos."}
    results = send("POST", f"{server}/api/v1/evaluations", body).json()["results"]
    assert {name: one["passed"] for name, one in results.items()} == {
        "refusal": True,
        "long": False,
        "fuzzy_ratio": True,
    }
    record = ended(server, submit(server, {**MANY, "metrics": metrics}).id)
    assert (record.status, record.errors) == ("finished", 0)


def test_two_of_one_name_are_refused(server: str) -> None:
    reply = send("POST", f"{server}/api/v1/jobs", {**MANY, "metrics": ["refusal", {"metric": "refusal"}]})
    assert (reply.status, "a different name" in reply.text) == (422, True)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("evaluations", {"messages": TALK}),
        ("test-results/latest/kind/evaluations", {}),
        ("jobs", MANY),
        ("jobs", TEST),
    ],
)
def test_a_metric_that_nobody_knows_has_one_status_on_every_route(
    server: str, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any]
) -> None:
    monkeypatch.setenv("VIVAVOCE_TESTER", "http://127.0.0.1:9/v1#m")
    for metric in ("nothing", {"metric": "nothing"}):
        reply = send("POST", f"{server}/api/v1/{path}", {**body, "metrics": [metric]})
        assert (reply.status, reply.json()["code"]) == (422, "invalid"), reply.text
        assert "no metric 'nothing'" in reply.json()["detail"]
