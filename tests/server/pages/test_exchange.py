"""The page of what a judge was asked: real runs with a judge over HTTP, and a server around their store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from vivavoce.client import Client
from vivavoce.errors import NotFound
from vivavoce.run.options import RunOptions
from vivavoce.store.store import Store
from vivavoce.suites.experiment import run_suite
from vivavoce.testing import LoopbackServer

from ..live import get, serving
from .cases import Elements
from .hostile import TEXTS

SUITE = """\
name: judged
driver: replay
dataset: talks.jsonl
graders:
  kind & fair:
    kind: model_judge
    prompt: "Is it kind? {{{{ submission }}}}"
    model: "{model}"
    scope: {scope}
"""
SAID = "hello there"


class Judge:
    """Says the same about each conversation."""

    def __init__(self) -> None:
        self.reasoning = "kind enough"

    def __call__(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"reasoning": self.reasoning, "score": 0.5, "evidence": [], "confidence": 0.9}


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
def model(judge: Judge) -> Iterator[str]:
    with LoopbackServer(judge) as server:
        yield f"{server.base_url}#judge"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "kept.db"


@pytest.fixture
def url(kept: Path) -> Iterator[str]:
    with Store.open(str(kept)) as store, serving(store) as base:
        yield base


def run(path: Path, model: str, *texts: str, scope: str = "conversation", **options: Any) -> None:
    """Judge one recorded conversation in which the assistant says these texts, a turn each."""
    messages = [each for text in texts for each in ({"role": "user", "content": "go on"}, _said(text))]
    row = json.dumps({"id": "a b", "messages": messages})
    (path.parent / "talks.jsonl").write_text(f"{row}\n")
    (path.parent / "suite.yaml").write_text(SUITE.format(model=model, scope=scope))
    run_suite(path.parent / "suite.yaml", RunOptions(**options), store=str(path))


def _said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def linked(url: str, *, turn: int | None = None) -> str:
    """Return the address that the conversation gives for the exchange, of a turn or of the whole."""
    page = Elements(get(f"{url}/runs/latest/samples/a%20b").text)
    found = [one for one in page.having("href") if "/exchange?" in one]
    return url + next(one for one in found if (f"turn={turn}" in one if turn else "turn=" not in one))


def test_the_conversation_leads_to_the_request_and_the_reply(kept: Path, url: str, model: str) -> None:
    run(kept, model, SAID)
    page = Elements(get(linked(url)).text)
    assert "What the judge of kind & fair was asked" in page.text
    assert f'Is it kind? "{SAID}"' in page.text
    assert "kind enough" in page.text
    assert f"model {model}" in page.text
    assert "from the cache no" in page.text
    assert "temperature 0.0" in page.text


def test_the_question_about_a_turn_stands_beside_it(kept: Path, url: str, model: str) -> None:
    run(kept, model, "first words", "second words", scope="turn")
    page = Elements(get(linked(url, turn=2)).text)
    assert "was asked about turn 2" in page.text
    assert "second words" in page.text
    assert "first words" not in page.text
    assert Elements(get(linked(url)).text).text.count("Is it kind?") == 2


def test_a_second_run_says_that_the_cache_answered(kept: Path, url: str, model: str) -> None:
    run(kept, model, SAID)
    run(kept, model, SAID)
    assert "from the cache yes: nothing was spent for this score" in Elements(get(linked(url)).text).text


def test_without_the_cache_the_page_says_why_there_is_nothing(kept: Path, url: str, model: str) -> None:
    run(kept, model, SAID, cache=False)
    page = Elements(get(linked(url)).text)
    assert "This call cannot be shown" in page.text
    assert "--no-cache" in page.text
    assert "Is it kind?" not in page.text


def test_a_long_prompt_is_cut_and_all_of_it_is_a_link_away(kept: Path, url: str, model: str) -> None:
    run(kept, model, "begin " + "word " * 20_000 + "end")
    answer = get(linked(url))
    page = Elements(answer.text)
    assert len(answer.text) < 100_000
    assert "word end" not in page.text
    (whole,) = [one for one in page.having("href") if "/exchange/text?" in one]
    text = get(url + whole)
    assert "word end" in text.text
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    assert text.headers["content-security-policy"] == "default-src 'none'; sandbox"


def test_many_calls_are_shown_a_few_at_a_time(kept: Path, url: str, model: str) -> None:
    run(kept, model, *(f"answer {number}." for number in range(12)), scope="turn")
    page = Elements(get(linked(url)).text)
    assert (page.text.count("Is it kind?"), "calls 1 to 5 of 12" in page.text) == (5, True)
    later = next(one for one in page.having("href") if "call=6" in one and "/text" not in one)
    assert "answer 5." in get(url + later).text


def test_nothing_in_it_does_anything(kept: Path, url: str, model: str, judge: Judge) -> None:
    judge.reasoning = "\n".join(TEXTS)
    run(kept, model, "\n".join(TEXTS))
    page = Elements(get(linked(url)).text)
    assert [found.get("src") for tag, found in page.tags if tag == "script"] == [
        "/static/vv.js",
        "/static/print.js",
        "/static/palette.js",
    ]
    assert not [name for _, found in page.tags for name in found if name.startswith("on")]
    assert not {"img", "iframe", "object", "embed", "base", "style"} & {tag for tag, _ in page.tags}


def test_what_is_not_there_is_said(kept: Path, url: str, model: str) -> None:
    run(kept, model, SAID)
    place = f"{url}/runs/latest/exchange?sample=a%20b"
    assert "no grader &#39;kidn&#39;" in get(f"{place}&grader=kidn").text
    assert get(f"{place}&grader=kidn").status == 404
    assert get(f"{place}&grader=kind+%26+fair&trial=2").status == 404
    assert get(f"{place.replace('exchange', 'exchange/text')}&grader=kind+%26+fair&call=2").status == 404


def test_the_client_reads_it(kept: Path, url: str, model: str) -> None:
    run(kept, model, SAID)
    with Client(url) as client:
        (call,) = client.judge_exchange("latest", "a b", "kind & fair").calls
        assert SAID in call.messages[-1].text
        assert client.judge_exchange("latest", "a b", "kind & fair", turn=0).calls == [call]
        with pytest.raises(NotFound, match="no turn '3'"):
            client.judge_exchange("latest", "a b", "kind & fair", turn=3)
        with pytest.raises(NotFound, match="no grader 'other'"):
            client.judge_exchange("latest", "a b", "other")


def test_the_page_leads_to_the_same_as_json(kept: Path, url: str, model: str) -> None:
    run(kept, model, SAID)
    page = Elements(get(linked(url)).text)
    (data,) = [one for one in page.having("href") if one.startswith("/api/")]
    assert urlsplit(data).path.endswith("/samples/a%20b/0/exchange")
    assert get(url + data).json()["calls"][0]["model"] == model
