"""One mistyped name has one status, 404, on every route and page that takes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from fastapi.routing import APIRoute

from vivavoce.server.app import routers
from vivavoce.store.store import Store
from vivavoce.suites.experiment import run_suite

from .conftest import BOT, SUITE
from .live import get, send, serving

SUITES = {"/api/v1/trends", "/trends", "/jobs/new"}
"""Where a suite is looked up; elsewhere its name only narrows a list."""

WRONG: dict[str, str] = {
    "run": "nothing", "sample": "nothing", "trial": "7", "job": "job-0", "queue": "nothing", "grading": "nothing",
    "grader": "nothing", "target": "nothing", "after": "nothing", "sort": "nothing", "filter": "nothing<0.5",
    "a": "nothing", "b": "nothing", "from": "nothing", "to": "nothing", "suite": "nothing", "turn": "7",
    "grading_a": "nothing", "grading_b": "nothing", "target_a": "nothing", "target_b": "nothing",
    "sample_a": "nothing", "sample_b": "nothing", "grade": "nothing",
    "baseline": "nothing", "kept": "nothing",
}  # fmt: skip
TOLD = {**WRONG, "trial": "8"}
"""The names as an answer gives them: an address counts trials from 0, people are told the eighth."""
RIGHT: dict[str, str] = {
    "run": "latest", "sample": "kind", "trial": "0", "queue": "q", "place": "1", "a": "latest", "b": "latest",
    "suite": "refunds", "q": "refund", "grader": "said", "sample_a": "kind", "sample_b": "kind", "baseline": "latest",
    "target": "reply", "person": "someone",
}  # fmt: skip
NEEDED = {"/compare": "ab", "/trends": ("suite",), "/label": ("run",), "/search": ("q",)}
"""What a page is asked for besides, so that it shows something."""
FREE = {
    ("/runs/{run}/samples/{sample:path}", "from"),  # a number of a turn
    ("/runs/{run}/fork", "from"),
    ("/compare", "from"),
    ("/compare/samples", "from"),
    ("/label/{queue}/{place}", "from"),
    ("/label/decide", "from"),
    ("/", "target"),  # narrows the list
    ("/api/v1/runs", "target"),
    ("/", "from"),  # days
    ("/", "to"),
    ("/sign-in", "next"),
}


def parameters(route: APIRoute) -> dict[str, bool]:
    """Return the names that a route takes, and whether each must be there."""
    found = {param.alias: True for param in route.dependant.path_params}
    for one in route.dependant.query_params:
        fields: Any = getattr(one.field_info.annotation, "model_fields", None)
        more = {field.alias or name: field for name, field in fields.items()} if fields else {one.alias: one.field_info}
        found |= {name: field.is_required() for name, field in more.items()}
    return found


def cases() -> Iterator[tuple[str, str]]:
    for router in routers():
        for route in router.routes:
            if not isinstance(route, APIRoute) or "GET" not in (route.methods or ()):
                continue
            for name in parameters(route):
                named = name != "suite" or route.path in SUITES
                if name in WRONG and named and (route.path, name) not in FREE:
                    yield route.path, name


def address(path: str, wrong: str) -> str:
    """Return the address of a route with one wrong name in it, the others being right."""
    route = next(
        one for router in routers() for one in router.routes
        if isinstance(one, APIRoute) and one.path == path and "GET" in (one.methods or ())
    )  # fmt: skip
    taken = parameters(route)
    more = () if wrong == "after" and path != "/search" else NEEDED.get(path, ())
    values = {name: RIGHT[name] for name, must in taken.items() if name in RIGHT and (must or name in more)}
    if path == "/label/decide":  # an address of people, who count trials from 1
        values["trial"] = "1"
    values[wrong] = WRONG[wrong]
    for name in list(values):
        for spelled in (f"{{{name}}}", f"{{{name}:path}}"):
            if spelled in path:
                path = path.replace(spelled, quote(values.pop(name), safe=""))
    return f"{path}?{urlencode(values)}"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server around a store with one run."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "refunds.yaml").write_text(SUITE)
    (folder / "bot.py").write_text(BOT)
    run_suite(folder / "refunds.yaml", store=str(folder / "x.db"))
    with Store.open(str(folder / "x.db")) as store, serving(store) as url:
        yield url


@pytest.mark.parametrize(("path", "wrong"), list(cases()))
def test_a_name_that_stands_for_nothing_is_not_found(url: str, path: str, wrong: str) -> None:
    if "{job}" in path and wrong != "job":
        pytest.skip("a job takes no other name")
    reply = get(url + address(path, wrong))
    assert reply.status == 404, reply.text
    if path.startswith("/api/"):
        told = reply.json()
        assert told["code"] == "not_found"
        assert told["name"] in (TOLD[wrong], "nothing")


@pytest.mark.parametrize(
    ("method", "path", "body", "what"),
    [
        ("DELETE", "/runs/nothing", None, "run"),
        ("DELETE", "/jobs/nothing", None, "job"),
        ("DELETE", "/runs/latest/samples/kind/0/labels", None, "label"),
        ("PUT", "/runs/latest/samples/nothing/0/labels", {"verdict": "pass"}, "sample"),
        ("PUT", "/runs/latest/samples/kind/7/labels", {"verdict": "pass"}, "trial"),
        ("PUT", "/runs/latest/samples/kind/0/labels?target=nothing", {"verdict": "pass"}, "target"),
        ("PUT", "/runs/latest/samples/kind/0/labels?turn=7", {"verdict": "pass"}, "turn"),
        ("PUT", "/runs/latest/samples/kind/0/labels?grader=nothing", {"verdict": "pass"}, "grader"),
        ("POST", "/test-results/nothing/kind/evaluations", {"metrics": ["refusal"]}, "run"),
        ("POST", "/test-results/latest/nothing/evaluations", {"metrics": ["refusal"]}, "sample"),
        ("POST", "/jobs", {"kind": "suite", "suite": "nothing.yaml"}, "suite"),
        ("POST", "/jobs", {"kind": "grade", "run": "nothing", "suite": "refunds.yaml"}, "run"),
        ("POST", "/jobs", {"resume": "nothing"}, "run"),
    ],
)
def test_what_is_changed_is_looked_up_in_the_same_way(
    url: str, method: str, path: str, body: dict[str, Any] | None, what: str
) -> None:
    reply = send(method, f"{url}/api/v1{path}", body)
    assert (reply.status, reply.json().get("what")) == (404, what), reply.text
