from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import pytest

from report.cases import TIMEOUT, capitals
from report.cases import keep as keep_outcomes
from report.cases import outcome as scored_outcome
from server.pages.cases import BROKEN, Elements, everywhere, keep, outcome, per_turn, turn
from server.pages.hostile import TEXTS
from vivavoce import ConversationHistory, Sample
from vivavoce.messages import AIMessage, HumanMessage, ToolCall
from vivavoce.metrics import MetricResult, evaluate_conversation
from vivavoce.records.score import Finding, Score, failed
from vivavoce.report.comparison.pairing import compare
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.notebook import MAX_CHARS, MAX_ROWS, MAX_SAMPLES, graded_html, result_html
from vivavoce.run.summary import RunResult, Summary
from vivavoce.safe_text import safe
from vivavoce.store.store import Store

OURS = {
    *("div", "style", "p", "b", "br", "code", "span", "table", "thead", "tbody", "tr", "th", "td"),
    *("svg", "path", "circle", "line"),
}


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "kept.db")) as store:
        yield store


def fixture_run(store: Store) -> GradedRun:
    run = store.run("run-1")
    return GradedRun(store, run, store.grading(run.id))


def result(store: Store, place: str) -> RunResult:
    graded_run = fixture_run(store)
    return RunResult(graded_run.run, graded_run.grading, Summary.model_validate(graded_run.grading.summary), place)


def test_the_verdict_the_intervals_and_the_worst_samples_are_shown(empty: Store) -> None:
    low = [outcome(f"s{i}", [turn(0, "Hi")], {"tone": per_turn(i / 10)}, position=i) for i in range(9)]
    keep(empty, [*low, outcome("bad", grades={"tone": failed(BROKEN)}, position=9, failure=BROKEN)])
    page = Elements(graded_html(fixture_run(empty)))
    assert "support No gate 10 conversations, 1 of them ended with an error; viva view run-1" in page.text
    assert re.search(r"tone 0\.400 0\.\d\d to 0\.\d\d not gated 0\.0% 9 1 0", page.text)
    samples = re.findall(r"ask (\w+)", page.text)
    assert samples == ["bad", "s0", "s1", "s2", "s3"]
    assert len(samples) == MAX_SAMPLES
    assert "no answer within 5 s" in page.text
    assert "tone: turn 1 of 1 not passed" in page.text


def test_where_all_is_well_no_sample_is_shown(empty: Store) -> None:
    keep(empty, [outcome("kind", grades={"goal": Score(value=1.0)})])
    assert "Worst samples" not in Elements(graded_html(fixture_run(empty))).text


def test_a_result_is_shown_the_same(empty: Store, tmp_path: Path) -> None:
    keep(empty, [outcome("kind", grades={"goal": Score(value=0.0, reason="rude")})])
    assert result(empty, str(tmp_path / "kept.db"))._repr_html_() == fixture_run(empty)._repr_html_()  # pyright: ignore[reportPrivateUsage] - what notebooks call


def test_where_the_store_is_gone_it_says_so_and_shows_the_rest(empty: Store, tmp_path: Path) -> None:
    keep(empty, [outcome("kind", grades={"goal": Score(value=0.0, reason="rude")})])
    page = Elements(result_html(result(empty, str(tmp_path / "gone.db"))))
    assert "goal 0.000" in page.text
    assert "The samples cannot be read" in page.text
    assert "gone.db" in page.text


def test_its_style_reaches_nothing_else_in_the_notebook(empty: Store) -> None:
    keep(empty, [outcome("kind")])
    text = graded_html(fixture_run(empty))
    style = re.search("<style>(.*?)</style>", text, re.DOTALL)
    assert style
    rules = re.sub(r"/\*.*?\*/", "", style[1], flags=re.DOTALL)
    selectors = [selector for rule in re.findall(r"([^{}]+)\{[^{}]*\}", rules) for selector in _apart(rule)]
    assert len(selectors) > 10
    assert [selector for selector in selectors if not selector.startswith(".vivavoce.vivavoce")] == []
    assert "@" not in rules
    assert Elements(text).having("id") == []


def _apart(selectors: str) -> list[str]:
    """Return the selectors of a rule; a comma within parentheses is a part of one."""
    return [selector.strip() for selector in re.split(r",(?![^(]*\))", selectors)]


@pytest.mark.parametrize("text", TEXTS)
def test_what_strangers_wrote_stays_a_text(empty: Store, text: str) -> None:
    spec = {"description": text, "gate": {"metric_key": text, "value": 0.5}}
    keep(empty, [everywhere(text)], suite=text, spec=spec, version=text)
    read = graded_html(fixture_run(empty))
    page = Elements(read)
    assert {tag for tag, _ in page.tags} <= OURS
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "href", "src")]
    page_text = " ".join(safe(text).split())
    assert page_text in page.text
    assert "1337" not in read
    if escape(page_text) != page_text and "&" not in page_text:
        assert page_text not in read


HOSTILE = "<script>alert(1)</script>\u202e<img src=x onerror=y>"


def render_elements(thing: Any) -> Elements:
    """Return what a notebook shows, in which no text became an element."""
    html = thing._repr_html_()
    assert "<script" not in html
    assert "<img" not in html
    assert "\u202e" not in html
    return Elements(html)


def test_a_conversation_shows_who_said_and_called_what() -> None:
    talk = ConversationHistory(
        messages=[
            HumanMessage(content=HOSTILE),
            AIMessage(content=None, tool_calls=[ToolCall(name="book", args={"x": HOSTILE})]),
        ],
        conversation_id=HOSTILE,
    )
    text = render_elements(talk).text
    assert "user <script>alert(1)</script>" in text
    assert "assistant → book(" in text
    assert "2 messages" in text


def test_long_things_are_cut_and_say_so() -> None:
    messages = [HumanMessage(content="x" * (MAX_CHARS + 5))] * (MAX_ROWS + 7)
    text = render_elements(ConversationHistory(messages=list(messages))).text
    assert "… (5 more characters)" in text
    assert "… and 7 more" in text


def test_a_sample_shows_the_fields_that_it_holds() -> None:
    text = render_elements(Sample(id="refund", input=[HOSTILE, "b"], tags=["<b>"], goal="EUR 5")).text
    assert "goal EUR 5" in text
    assert 'tags ["<b>"]' in text
    assert "persona" not in text
    assert "assistant Hi" in render_elements(Sample(id="kept", messages=[AIMessage(content="Hi")])).text


def test_a_score_shows_its_reason_and_what_it_rests_on() -> None:
    finding = Finding(kind="claim", what=HOSTILE, verdict="major", state="fail", turn=1)
    text = render_elements(Score(name="safe", value=0.25, passed=False, reason=HOSTILE, findings=(finding,))).text
    assert "safe: 0.250 · failed" in text
    assert "major turn 2" in text
    assert "turn 1 1.000 passed turn 0" in render_elements(capitals()).text
    assert render_elements(failed(TIMEOUT)).text.count("no answer within 5 s") == 1
    assert "score: good" in render_elements(MetricResult(score="good", details={"is_successful": True})).text


def test_a_report_shows_each_metric() -> None:
    talk = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "I cannot help with that."}]
    assert "refusal 1.000 failed" in render_elements(evaluate_conversation(talk, "refusal")).text


def test_an_outcome_shows_its_scores_and_its_turns() -> None:
    text = render_elements(scored_outcome("one", {"exact": 0.0}, texts=["Paris", HOSTILE], failure=TIMEOUT)).text
    assert "exact 0.000 failed why" in text
    assert "turn 1 user Hi assistant Paris turn 2" in text
    assert "no answer within 5 s" in text
    assert "2 turns" in render_elements(scored_outcome(texts=["a", "b"]).attempt.trajectory).text


@pytest.fixture
def store(tmp_path: Any) -> Any:
    with Store.open(tmp_path / "kept.db") as store:
        yield store


async def test_a_comparison_shows_what_fails_now(store: Store) -> None:
    before = await keep_outcomes(
        store, [scored_outcome("a", {"exact": 1.0}), scored_outcome("b", {"exact": 0.0})], "before"
    )
    after = await keep_outcomes(
        store, [scored_outcome("a", {"exact": 0.0}), scored_outcome("b", {"exact": 0.0})], "after"
    )
    text = render_elements(compare(store, before.grading, after.grading)).text
    assert "after after before" in text
    assert "exact bot 2 0.500 0.000 -0.500" in text
    assert "exact a 1.00 → 0.00" in text
