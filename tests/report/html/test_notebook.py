from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

import pytest

from server.pages.cases import BROKEN, Elements, everywhere, keep, outcome, per_turn, turn
from server.pages.hostile import TEXTS
from vivavoce.records.score import Score, failed
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.notebook import SHOWN, graded_html, result_html
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


def graded(store: Store) -> GradedRun:
    found = store.run("run-1")
    return GradedRun(store, found, store.grading(found.id))


def result(store: Store, place: str) -> RunResult:
    one = graded(store)
    return RunResult(one.run, one.grading, Summary.model_validate(one.grading.summary), place)


def test_the_verdict_the_intervals_and_the_worst_samples_are_shown(empty: Store) -> None:
    low = [outcome(f"s{i}", [turn(0, "Hi")], {"tone": per_turn(i / 10)}, position=i) for i in range(9)]
    keep(empty, [*low, outcome("bad", grades={"tone": failed(BROKEN)}, position=9, failure=BROKEN)])
    page = Elements(graded_html(graded(empty)))
    assert "support No gate 10 conversations, 1 of them ended with an error; viva view run-1" in page.text
    assert re.search(r"tone 0\.400 0\.\d\d to 0\.\d\d not gated 0\.0% 9 1 0", page.text)
    samples = re.findall(r"ask (\w+)", page.text)
    assert samples == ["bad", "s0", "s1", "s2", "s3"]
    assert len(samples) == SHOWN
    assert "no answer within 5 s" in page.text
    assert "tone: turn 1 of 1 not passed" in page.text


def test_where_all_is_well_no_sample_is_shown(empty: Store) -> None:
    keep(empty, [outcome("kind", grades={"goal": Score(value=1.0)})])
    assert "Worst samples" not in Elements(graded_html(graded(empty))).text


def test_a_result_is_shown_the_same(empty: Store, tmp_path: Path) -> None:
    keep(empty, [outcome("kind", grades={"goal": Score(value=0.0, reason="rude")})])
    assert result(empty, str(tmp_path / "kept.db"))._repr_html_() == graded(empty)._repr_html_()  # pyright: ignore[reportPrivateUsage] - what notebooks call


def test_where_the_store_is_gone_it_says_so_and_shows_the_rest(empty: Store, tmp_path: Path) -> None:
    keep(empty, [outcome("kind", grades={"goal": Score(value=0.0, reason="rude")})])
    page = Elements(result_html(result(empty, str(tmp_path / "gone.db"))))
    assert "goal 0.000" in page.text
    assert "The samples cannot be read" in page.text
    assert "gone.db" in page.text


def test_its_style_reaches_nothing_else_in_the_notebook(empty: Store) -> None:
    keep(empty, [outcome("kind")])
    text = graded_html(graded(empty))
    style = re.search("<style>(.*?)</style>", text, re.DOTALL)
    assert style
    rules = re.sub(r"/\*.*?\*/", "", style[1], flags=re.DOTALL)
    selectors = [one for rule in re.findall(r"([^{}]+)\{[^{}]*\}", rules) for one in _apart(rule)]
    assert len(selectors) > 10
    assert [one for one in selectors if not one.startswith(".vivavoce.vivavoce")] == []
    assert "@" not in rules
    assert Elements(text).having("id") == []


def _apart(selectors: str) -> list[str]:
    """Return the selectors of a rule; a comma within parentheses is a part of one."""
    return [one.strip() for one in re.split(r",(?![^(]*\))", selectors)]


@pytest.mark.parametrize("text", TEXTS)
def test_what_strangers_wrote_stays_a_text(empty: Store, text: str) -> None:
    spec = {"description": text, "gate": {"metric_key": text, "value": 0.5}}
    keep(empty, [everywhere(text)], suite=text, spec=spec, version=text)
    read = graded_html(graded(empty))
    page = Elements(read)
    assert {tag for tag, _ in page.tags} <= OURS
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "href", "src")]
    shown = " ".join(safe(text).split())
    assert shown in page.text
    assert "1337" not in read
    if escape(shown) != shown and "&" not in shown:
        assert shown not in read
