"""People who cannot see colours, or the page at all, get what everybody gets, on every page: axe finds nothing."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from fastapi.routing import APIRoute
from playwright.sync_api import Browser

from forked import program
from server.live import get, send, serving
from vivavoce.records.label import Label
from vivavoce.records.run import AttemptKey
from vivavoce.server.access import Access
from vivavoce.server.app import create_app
from vivavoce.server.policy import ServerPolicy
from vivavoce.store.queues import QueuePlan
from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer
from watch_cases import HOUR, alert, figures, spending, told

from .conftest import SUITE

CRITIC = "{metric: aspect_critic, name: helps, config: {definition: The assistant answers the question.}}"
HELPED = {"t1": "Of course.", "t2": "I cannot."}
HELLO = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Hello!"}]
PAGES = (
    "/",
    "/?q=nothing-is-called-so",
    "/runs/{older}",
    "/runs/{older}?filter=state:nonsense",
    "/runs/{newer}?columns=answers&columns=turns&columns=cost&group=tag&histograms=1",
    "/runs/{newer}/clusters",
    "/runs/{newer}/samples/question-before-yes",
    "/runs/{newer}/samples/not-arrived-yet",
    "/runs/{newer}/samples/change-of-topic",
    "/runs/{fork}",
    "/runs/{fork}/fork",
    "/runs/{fork}/samples/change-of-topic@1",
    "/runs/nobody",
    "/runs/{judged}/exchange?sample=t1&grader=helps",
    "/runs/{newer}/delete",
    "/compare",
    "/compare?a={older}&b={newer}",
    "/compare?a={older}&b={newer}&only=worsened",
    "/compare?a={older}&b={newer}%20{judged}",
    "/compare/suites?a={older}&b={newer}",
    "/compare/samples?a={older}&b={newer}&sample_a=correction&sample_b=correction",
    "/trends",
    "/trends?suite=support+bot",
    "/watch",
    "/search",
    "/search?q=refund",
    "/jobs",
    "/jobs/new",
    "/jobs/{job}",
    "/demo/{job}/{job}",
    "/webhooks",
    "/sign-in",
    "/label",
    "/label/{queue}/1",
    "/label/{queue}/end",
    "/label/assign?run={newer}",
    "/label-queues/{assigned}",
    "/runs/{newer}/calibration?grader=answers",
    "/label/differing?run={newer}",
    "/label/decide?run={newer}&sample=correction&target={target}&trial=1&grader=answers",
)
REFUSED = {"/runs/nobody": 404, "/runs/{older}?filter=state:nonsense": 422}
DATA = (
    "/content",
    "/search/names",
    "/label/{queue}",
    "/runs/{run}/exchange/text",
    "/runs/{run}/clusters/{cluster}/suite",
)
"""Addresses that answer with a file or with data, or lead on."""


def judged_as(body: dict[str, Any]) -> dict[str, Any]:
    """Answer as a judge of whether the assistant helps."""
    helped = "cannot" not in json.dumps(body["messages"])
    words = "It answers." if helped else "It refuses."
    return {"reasoning": words, "evidence": [], "verdict": helped, "confidence": 0.9}


def talk(name: str, answer: str) -> str:
    said = [{"role": "user", "content": "Can you help?"}, {"role": "assistant", "content": answer}]
    return json.dumps({"id": name, "messages": said})


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A server with something on every page, and the names that its addresses have."""
    folder: Path = tmp_path_factory.mktemp("places")
    path = str(folder / "kept.db")
    (folder / "talks.jsonl").write_text("".join(talk(*one) + "\n" for one in HELPED.items()))
    viva = [str(program("viva"))]
    for bot in ("bot_v1.py", "bot_v2.py"):
        run = ["run", str(SUITE / "suite.yaml"), "--target", f"{SUITE / bot}:reply", "--store", path, "--quiet"]
        assert subprocess.run(viva + run, capture_output=True, check=False).returncode in (0, 1)
    with LoopbackServer(judged_as) as model:
        judge = ["judge", "talks.jsonl", "--judge", f"{model.url}/v1#judge", "--metrics", CRITIC, "--store", path]
        subprocess.run([*viva, *judge, "--quiet"], cwd=folder, capture_output=True, check=True)
    with Store.open(path) as store, serving(store, ServerPolicy(folder)) as base:
        judged, newer, older = (one.id for one in store.runs())
        fork = [
            "fork",
            f"{newer}/change-of-topic",
            "--target",
            f"{SUITE / 'bot_v1.py'}:reply",
            "--store",
            path,
            "--json",
        ]
        forked = subprocess.run([*viva, *fork], capture_output=True, check=True, text=True)
        grading = store.grading(newer)
        (target,) = {one.key.target for one in store.attempts(newer)}
        key = AttemptKey("correction", target, 0)
        for author, verdict in (("ann", "pass"), ("bob", "fail")):
            said = Label.model_validate(
                {**key._asdict(), "grader": "answers", "author": author, "verdict": verdict, "created_at": 1e9}
            )
            store.labels.set(newer, said)
        store.comments.add(newer, key, 0, "ann", "Is that the price of today?")
        store.webhooks.add("https://hooks.example.com/viva", actor="ann")
        now = int(time.time()) // HOUR * HOUR
        hours = {now - at * HOUR: figures(20 - at, at, arrived=100, errors=at % 3) for at in range(12)}
        told(store, "live", time.time(), hours, share=0.2, spending=spending(calls=7), alert=alert("firing"))
        assigned = store.queues.create(grading, QueuePlan("answers", ["ann", "bob"], size=3), "ann")
        queue = get(f"{base}/label?run={newer}&grader=answers").headers.get("location", "").split("/")[2]
        body = {"kind": "evaluation", "conversations": [{"id": "x", "messages": HELLO}], "metrics": ["refusal"]}
        job = send("POST", f"{base}/api/v1/jobs", body).json()["id"]
        assert "This call cannot be shown" not in get(f"{base}/runs/{judged}/exchange?sample=t1&grader=helps").text
        yield {
            "base": base,
            "older": older,
            "newer": newer,
            "judged": judged,
            "fork": json.loads(forked.stdout)["run"],
            "queue": queue,
            "assigned": assigned.id,
            "job": job,
            "target": target,
        }


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing(browser: Browser, places: dict[str, str], path: str) -> None:
    context = browser.new_context(color_scheme="light", viewport={"width": 1280, "height": 900})
    page = context.new_page()
    answer = page.goto(places["base"] + path.format_map(places))
    assert answer is not None
    assert answer.status == REFUSED.get(path, 200)
    for scheme, width in (("light", 1280), ("dark", 380)):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.set_viewport_size({"width": width, "height": 900})
        found = Axe().run(page)  # pyright: ignore[reportUnknownMemberType]
        assert found.violations_count == 0, found.generate_report()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


def test_every_page_is_among_them(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "x.db")) as store:
        app = create_app(store, Access.of({"127.0.0.1"}))
    routes = [one for one in app.routes if isinstance(one, APIRoute) and not one.path.startswith("/api/")]
    shown = [one for one in routes if "GET" in (one.methods or ()) and one.path not in DATA]
    asked = [re.sub(r"\{\w+\}", "x", path.partition("?")[0]) for path in PAGES]
    assert [one.path for one in shown if not any(one.path_regex.match(path) for path in asked)] == []
    assert set(DATA) <= {one.path for one in routes}
