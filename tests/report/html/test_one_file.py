from __future__ import annotations

import io
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

import pytest

from server.pages.cases import BROKEN, Elements, called, everywhere, keep, outcome, per_turn, turn
from server.pages.hostile import TEXTS
from vivavoce.records.run import Outcome
from vivavoce.records.score import FAILED_STEP, Evidence, Finding, Score, failed
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html import one_file
from vivavoce.report.html.one_file import write_html
from vivavoce.safe_text import safe
from vivavoce.store.store import Store

QUOTE = Evidence(text="no refund, ever", turn=1, verified=True)
OURS = {
    *("html", "head", "meta", "title", "link", "style", "body", "header", "main", "section", "article", "aside"),
    *("footer", "details", "summary", "a", "div", "span", "p", "pre", "h1", "h2", "h3", "h4", "ol", "ul", "li", "dl"),
    *("dt", "dd", "table", "caption", "thead", "tbody", "tr", "th", "td", "mark", "sup", "small", "em", "i", "b", "q"),
    *("br", "code", "svg", "defs", "symbol", "use", "path", "circle", "line", "text"),
}


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "kept.db")) as store:
        yield store


def write_page(store: Store, run: str = "run-1") -> str:
    record, out = store.run(run), io.StringIO()
    write_html(GradedRun(store, record, store.grading(record.id)), out)
    return out.getvalue()


def sound(text: str) -> Elements:
    """Return a file in which every name of a place is there once, and every link leads to one of them."""
    page = Elements(text)
    names = Counter(page.having("id"))
    assert [name for name, times in names.items() if times > 1] == []
    links = [attributes["href"] for tag, attributes in page.tags if tag in ("a", "use")]
    assert [link for link in links if not link.startswith("#") or link[1:] not in names] == []
    return page


def ladder(count: int) -> list[Outcome]:
    """Return outcomes that get better from one to the next."""
    return [
        outcome(f"s{i}", [turn(0, f"question {i}")], {"goal": Score(value=i / count)}, position=i) for i in range(count)
    ]


def test_the_verdict_the_metrics_the_samples_and_the_conversations_are_in_it(empty: Store) -> None:
    judged = Score(value=0.0, reason="It refused.", other_evidence=(QUOTE,))
    turns = [turn(0, "Hello", *called("look", '{"order": 7}', "paid"), "Hi"), turn(1, "Money!", "No refund, ever.")]
    refused = outcome("refused", turns, {"goal": judged, "tone": per_turn(1.0, 0.0)}, position=0)
    keep(empty, [refused, outcome("broken", grades={"goal": failed(BROKEN)}, position=1, failure=BROKEN)])
    page = sound(write_page(empty))
    for text in ("support", "No gate", "goal 0.000", "It refused.", "no answer within 5 s", "tone 0.00"):
        assert text in page.text
    rows = [attributes["href"] for _, attributes in page.tags if attributes.get("class") == "row"]
    assert rows == ["#s1", "#s2"]
    assert page.text.index("broken") < page.text.index("refused")
    assert [attributes["class"] for tag, attributes in page.tags if tag == "mark"] == ["ev bad"]
    assert {"s2-t1", "s2-t2", "s2-m0", "s2-m1-t2", "s2-ev-a"} <= set(page.having("id"))
    assert ("details", {"class": "tool"}) in page.tags


def test_the_step_with_which_it_failed_is_named_beside_its_turn(empty: Store) -> None:
    what = "tool, tool error: The order is locked."
    root = Finding(kind=FAILED_STEP, what=what, verdict="root", state="fail", turn=1, evidence=(QUOTE,))
    score = Score(name="first_failure", raw=False, value=0.0, findings=(root,))
    turns = [turn(0, "Hello?"), turn(1, "I want my money back", "There is no refund, ever.")]
    keep(empty, [outcome("a", turns, {"first_failure": score})])
    text = write_page(empty)
    sound(text)
    _, first, second = text.split('<article class="turn"')
    beside = re.search(r"<aside.*?</aside>", second, re.DOTALL)
    assert beside
    assert f"Root: {what}" in beside[0]
    assert '<mark class="ev bad"' in second
    assert what not in first


def test_it_loads_nothing_and_runs_nothing(empty: Store) -> None:
    keep(empty, ladder(3))
    text = write_page(empty)
    page = Elements(text)
    assert {tag for tag, _ in page.tags} <= OURS
    assert page.having("src") == []
    assert [attributes["href"][:19] for tag, attributes in page.tags if tag == "link"] == ["data:image/svg+xml;"]
    style = re.findall("<style>(.*?)</style>", text, re.DOTALL)
    assert len(style) == 1
    assert "url(" not in style[0]
    assert "@import" not in style[0]
    policy = next(attributes["content"] for _, attributes in page.tags if "http-equiv" in attributes)
    hashed = b64encode(sha256(style[0].encode()).digest()).decode()
    assert policy.split("; ")[:2] == ["default-src 'none'", f"style-src 'sha256-{hashed}'"]


@pytest.mark.parametrize("text", TEXTS)
def test_what_strangers_wrote_stays_a_text(empty: Store, text: str) -> None:
    spec: dict[str, Any] = {"description": text, "gate": {"metric_key": text, "value": 0.5}}
    others = [each.model_copy(update={"attempt": _after(each, i)}) for i, each in enumerate([everywhere(text)] * 2)]
    keep(empty, others, suite=text, spec=spec, version=text)
    read = write_page(empty)
    page = sound(read)
    assert {tag for tag, _ in page.tags} <= OURS
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "srcset", "autofocus")]
    page_text = " ".join(safe(text).split())
    assert page_text in page.text
    assert "1337" not in read
    if escape(page_text) != page_text and "&" not in page_text:
        assert page_text not in read


def _after(outcome: Outcome, trial: int) -> Any:
    key = outcome.attempt.key._replace(trial=trial)
    return outcome.attempt.model_copy(update={"key": key, "position": trial})


def test_of_a_large_run_the_worst_are_in_it_and_what_is_left_out_is_told(
    empty: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_file, "MAX_SAMPLES", 7)
    monkeypatch.setattr(one_file, "MAX_CONVERSATIONS", 3)
    keep(empty, ladder(20))
    page = sound(write_page(empty))
    assert "20 conversations; the worst 7 are listed here, and the worst 3 are included in this" in page.text
    assert "viva view run-1" in page.text
    rows = [attributes.get("href") for _, attributes in page.tags if attributes.get("class") == "row"]
    assert rows == ["#s1", "#s2", "#s3", *[None] * 4]
    assert "User question 2 " in page.text
    assert "User question 3 " not in page.text


def test_large_conversations_end_the_file_sooner(empty: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_file, "MAX_BYTES", 1)
    keep(empty, ladder(4))
    assert "4 conversations, and the worst 1 is included in this file" in sound(write_page(empty)).text


def test_of_a_long_conversation_the_first_turns_are_in_it(empty: Store) -> None:
    turns = [turn(i, f"question {i}", *called("look", "{}", "x"), f"answer {i}") for i in range(450)]
    lost = Evidence(text="c300", kind="call", turn=300, verified=True)
    grades = {"goal": Score(value=0.0, other_evidence=(lost,)), "tone": per_turn(*[0.0] * 450)}
    keep(empty, [outcome("long", turns, grades)])
    page = sound(write_page(empty))
    assert "Turns 1 to 100 of 450 are in this file. To see all turns: viva view run-1" in page.text
    assert "question 99" in page.text
    assert "question 100" not in page.text
    assert "turn 301 c300" in page.text


def test_a_run_that_is_not_over_says_so(empty: Store) -> None:
    keep(empty, ladder(2))
    empty.update_run(empty.run("run-1").model_copy(update={"status": "running", "finished_at": None}))
    with empty.claimed("run-1"):
        assert "Running" in sound(write_page(empty)).text


def test_text_that_utf8_cannot_hold_breaks_no_file(empty: Store) -> None:
    keep(empty, [outcome("kind", [turn(0, "half \ud83d a pair")])])
    text = write_page(empty)
    assert "half ? a pair" in text
    assert text.encode()
