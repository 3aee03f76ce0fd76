"""Every route of the API refuses a parameter that it does not have."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi import HTTPException
from fastapi.routing import APIRoute
from pydantic.fields import FieldInfo

from vivavoce.server.api.quick_check import QuickCheck
from vivavoce.server.api.strict import MAX_VALUES, StrictRoute, _read  # pyright: ignore[reportPrivateUsage]
from vivavoce.server.app import routers

from ..live import get, send

ROUTES = [route for router in routers() if router.prefix == "/api/v1" for route in router.routes]


@pytest.mark.parametrize("route", ROUTES, ids=lambda one: f"{'/'.join(one.methods)} {one.path}")
def test_every_route_is_strict(route: APIRoute) -> None:
    assert isinstance(route, StrictRoute)


@pytest.mark.parametrize(
    "path", ["health", "metrics", "audit", "comparisons?a=latest&b=latest&threshold=0.7", "runs/latest"]
)
def test_an_unknown_parameter_is_refused_by_its_name(server: str, path: str) -> None:
    mark = "&" if "?" in path else "?"
    reply = get(f"{server}/api/v1/{path}{mark}wrong=1")
    assert (reply.status, "no parameter" in reply.json()["detail"]) == (422, True)


def test_nothing_is_deleted_with_an_unknown_parameter(server: str) -> None:
    run = get(f"{server}/api/v1/runs/latest").json()["run"]["id"]
    assert send("DELETE", f"{server}/api/v1/runs/{run}?dry_run=true").status == 422
    assert get(f"{server}/api/v1/runs/{run}").status == 200


TEST = {"kind": "test", "suite": "suite.yaml", "goal": "a refund"}
MANY = 280_000
WRONG: dict[str, dict[str, Any]] = {
    "items": {"must": [1] * MANY},
    "values": {"facts": {f"f{i}": 1 for i in range(MANY)}},
    "keys": {f"k{i}": 1 for i in range(MANY)},
    "keys of items": {"metrics": [{f"k{i}": 1 for i in range(2_800)}] * 100},
    "objects": {"metrics": [{"metric": "goal", "name": 1}] * 90_000},
}
BODIES: dict[str, FieldInfo] = {
    f"{route.methods} {route.path}": route.body_field.field_info
    for route in ROUTES
    if isinstance(route, APIRoute) and route.body_field is not None
}
JOBS = QuickCheck(BODIES["{'POST'} /api/v1/jobs"])


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_check_of_many_wrong_values_ends_at_the_first(wrong: dict[str, Any]) -> None:
    assert 1 <= len(JOBS.mistakes({**TEST, **wrong})) <= 10


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_every_route_with_a_body_has_a_quick_check(body: FieldInfo) -> None:
    mistakes = QuickCheck(body).mistakes({f"k{i}": [i] * 5 for i in range(MAX_VALUES // 10)})
    assert 1 <= len(mistakes) <= 20


def test_a_quick_check_finds_nothing_wrong_with_a_right_body() -> None:
    metrics = ["goal", {"metric": "goal", "name": "g", "config": {"steps": {str(i): i for i in range(1_000)}}}]
    assert JOBS.mistakes({**TEST, "must": ["a"] * 1_000, "facts": {"a": "b"}, "metrics": metrics}) == []


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ("items", "body.test.must.0: Input should be a valid string"),
        ("values", "body.test.facts.f0: Input should be a valid string"),
        ("keys", "body.test: 280,003 keys, most of them unknown"),
    ],
)
def test_a_large_body_is_refused_for_its_first_wrong_value(server: str, wrong: str, place: str) -> None:
    reply = send("POST", f"{server}/api/v1/jobs", {**TEST, **WRONG[wrong]})
    assert (reply.status, reply.json()["detail"]) == (422, place)


def test_a_small_body_is_refused_for_each_wrong_value(server: str) -> None:
    reply = send("POST", f"{server}/api/v1/jobs", {**TEST, "must": [1, "a", 2]})
    assert reply.json()["detail"].count("Input should be a valid string") == 2


@pytest.mark.parametrize("body", [{"kind": "x" * 1_000_000}, {"kind": "run", "x" * 1_000_000: 1}])
def test_a_refusal_does_not_repeat_a_long_request(server: str, body: dict[str, object]) -> None:
    reply = send("POST", f"{server}/api/v1/jobs", body)
    assert reply.status == 422
    assert len(reply.text) < 20_000


def test_values_are_counted_before_a_body_is_read() -> None:
    with pytest.raises(HTTPException, match="more than 300,000 values"):
        _read(b'{"name":[' + b"1," * MAX_VALUES + b"1,")
    text = "," * MAX_VALUES + '\\"' + "," * MAX_VALUES
    assert _read(json.dumps({"name": text}).encode()) == {"name": text}


def test_a_text_without_an_end_is_read_once() -> None:
    commas = b"," * (MAX_VALUES + 1)
    for body in (b'"' + b'\\"' * 2_000_000, b'"' + b'\\"' * 2_000_000 + b"\\", b'"' * 2_000_001):
        with pytest.raises(HTTPException, match=r"valid JSON|more than"):
            _read(body[:1] + commas + body[1:])
