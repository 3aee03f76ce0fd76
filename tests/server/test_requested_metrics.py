"""What a request may name and set: metrics with options that are data, settings of judges, and graders."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from vivavoce.server.requested_metrics import (
    SETTINGS,
    CountSetting,
    NumberSetting,
    RequestedMetric,
    WordSetting,
    check_setting,
)

from .api.test_jobs import MANY, TALK, TEST, ended, submit
from .live import send

NOT_ALLOWED: list[tuple[dict[str, Any], str]] = [
    ({"metric": "own.py:bad"}, "no metric 'own.py:bad'"),
    ({"metric": "safety", "config": {"prompt_path": "/etc/passwd"}}, "cannot name a file"),
    ({"metric": "topic_drift", "config": {"embedder": "http://inside/v1#m"}}, "can use only the embedder 'local'"),
    ({"metric": "safety", "extractor": "own.py:all"}, "no extractor 'own.py:all'"),
    ({"metric": "safety", "config": {"model": "openai:x"}}, "model belongs next to config, not in it"),
    ({"metric": "safety", "model": "openai:x"}, "model"),
    ({"metric": "safety", "settings": {"api_key": "sk-1"}}, "api_key is an API key"),
    ({"metric": "safety", "settings": {"extra_body": {"top_k": 1}}}, "'extra_body' cannot be set in a request"),
    ({"metric": "safety", "settings": {"extra_headers": {"x-a": "1"}}}, "'extra_headers' cannot be set in a request"),
    ({"metric": "safety", "settings": {"models": ["other"]}}, "models cannot be set here"),
    ({"metric": "safety", "settings": {"base_url": "http://inside"}}, "base_url cannot be set here"),
    ({"metric": "safety", "settings": {"max_retries": 1000}}, "max_retries cannot be set here"),
    ({"metric": "safety", "settings": {"provider": {"order": ["x"]}}}, "'provider' cannot be set in a request"),
    ({"metric": "safety", "settings": {"seed": {"a": 1}}}, "'seed' needs a whole number"),
    ({"metric": "safety", "settings": {"temperature": True}}, "'temperature' needs a number from 0 to 2, got true"),
    ({"metric": "safety", "temperature": True}, "'temperature' needs a number from 0 to 2, got true"),
    ({"metric": "safety", "temperature": 2.5}, "'temperature' needs a number from 0 to 2, got 2.5"),
    ({"metric": "safety", "settings": {"max_tokens": -5}}, "'max_tokens' needs a whole number from 1 to 1,000,000"),
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
    assert {name: result["passed"] for name, result in results.items()} == {
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


NEVER: list[Any] = [
    True,
    False,
    math.nan,
    math.inf,
    -math.inf,
    10**400,
    "x" * 100_000,
    ["x"] * 100_000,
    [1],
    [],
    {},
    [[]],
    "",
]
"""Values of no setting."""


def ends(name: str) -> tuple[list[Any], list[Any]]:
    """Return values of a setting at the ends of its range, and those just beyond."""
    setting = SETTINGS[name]
    if isinstance(setting, NumberSetting):
        return [setting.least, setting.most], [setting.least - 0.01, setting.most + 0.01, str(setting.most)]
    if isinstance(setting, CountSetting):
        return [setting.least, setting.most], [setting.least - 1, setting.most + 1, setting.least + 0.5, "1"]
    if isinstance(setting, WordSetting):
        return list(setting.words), [setting.words[0].upper(), "unknown", 1, [setting.words[0]]]
    text, long = "x" * setting.max_chars, "x" * (setting.max_chars + 1)
    return [text, [text] * setting.most], [long, [long], [text] * (setting.most + 1), 1]


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_has_a_type_and_a_range(name: str) -> None:
    allowed, refused = ends(name)
    for value in (*allowed, None):
        check_setting(name, value)
        assert RequestedMetric(metric="safety", settings={name: value}).settings == {name: value}
    for value in (*refused, *NEVER):
        with pytest.raises(ValueError, match=f"'{name}' needs ") as caught:
            check_setting(name, value)
        assert len(str(caught.value)) < 250
        with pytest.raises(ValidationError, match=f"'{name}' needs "):
            RequestedMetric(metric="safety", settings={name: value})


@pytest.mark.parametrize("value", [*ends("temperature")[1], *NEVER])
def test_the_temperature_beside_the_settings_is_the_same_one(value: Any) -> None:
    with pytest.raises(ValidationError, match="'temperature' needs "):
        RequestedMetric(metric="safety", temperature=value)


@given(
    st.sampled_from(sorted(SETTINGS)),
    st.one_of(st.integers(), st.floats(), st.text(), st.booleans(), st.lists(st.text())),
)
def test_any_value_is_allowed_or_refused_in_one_line(name: str, value: Any) -> None:
    if not SETTINGS[name].allows(value):
        with pytest.raises(ValueError, match=" needs ") as caught:
            check_setting(name, value)
        assert str(caught.value).startswith(f"'{name}' needs {SETTINGS[name].expected}, got ")
