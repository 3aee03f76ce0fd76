from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from vivavoce.grading.gates import SimpleGate, Threshold
from vivavoce.records.score import failed
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.markdown import code, write_markdown
from vivavoce.store.store import Store

from .cases import TIMEOUT, grade, keep, outcome

READER = MarkdownIt("commonmark", {"html": True}).enable("table")
HOSTILE = [
    "<script>alert(1)</script>",
    "![x](http://evil/x.png) [click](javascript:alert(1))",
    "`` ` ``` ` <img src=x>",
    "a | b \\| c \\\\| d",
    "one\n\n# two\n| - |\r\nthree\u2028four",
    "@everyone #1 https://evil.example www.evil.example",
    "\\",
    "&lt;b&gt; &#124;",
    "</summary></details></td></tr></table>",
    "<!-- ",
    "::error::forged",
]


def markdown(graded: GradedRun) -> str:
    out = io.StringIO()
    write_markdown(graded, out)
    return out.getvalue()


def tokens(text: str) -> list[Any]:
    parsed = READER.parse(text)
    return [*parsed, *(child for token in parsed for child in token.children or ())]


def cells(text: str) -> list[list[str]]:
    """Return the rows of all tables, as a reader sees them."""
    rows: list[list[str]] = []
    parsed = READER.parse(text)
    for i, token in enumerate(parsed):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("td_open", "th_open"):
            rows[-1].append("".join(child.content for child in parsed[i + 1].children or ()))
    return rows


async def test_it_begins_with_the_verdict_and_shows_the_numbers_of_each_grader(store: Store) -> None:
    outcomes = [outcome("a", {"exact": 1.0, "judge": 1.0}), outcome("b", {"exact": 0.5, "judge": failed(TIMEOUT)})]
    text = markdown(await keep(store, outcomes))
    assert text.startswith(
        "**`support` passed**\n\n`passes: exact 0.75 [0.21, 0.97] ≥ 0.5`\n\n"
        "- `pass · exact: mean must be ≥ 0.5; it is 0.75`\n"
    )
    heads, exact, judge = cells(text)[:3]
    assert heads == ["grader", "target", "scored", "error", "skipped", "mean", "95% interval", "pass rate"]
    assert (exact[:6], exact[7]) == (["exact", "bot", "2", "0", "0", "0.750"], "50.0%")
    assert (judge[:6], judge[7]) == (["judge", "bot", "1", "1", "0", "1.000"], "100.0%")


async def test_a_failure_of_the_target_is_called_an_error_as_everywhere(store: Store) -> None:
    outcomes = [outcome("a"), *(outcome(str(i), {"exact": failed(TIMEOUT)}, failure=TIMEOUT) for i in range(2))]
    text = markdown(await keep(store, outcomes))
    assert "- 3 conversations, 2 of them with an error · run" in text
    assert "| 2 samples | `bot` | – | `target: no answer within 5 s` |" in text
    assert "failed" not in text


async def test_what_is_appended_stays_apart(store: Store) -> None:
    for outcomes, name in (([outcome("a", {"exact": 0.5})], "run-1"), ([outcome("a")], "run-2")):
        once = markdown(await keep(store, outcomes, name))
        assert [token.type for token in READER.parse(once * 2)] == [token.type for token in READER.parse(once)] * 2


async def test_where_all_is_well_nothing_is_folded(store: Store) -> None:
    assert "details" not in markdown(await keep(store, [outcome("a")]))


async def test_how_many_more_went_badly_is_told(store: Store) -> None:
    text = markdown(await keep(store, [outcome(str(i), {"exact": 0.5}) for i in range(8)]))
    assert "<summary>The worst samples, and 3 more</summary>" in text


async def test_the_worst_samples_say_why_with_errors_apart(store: Store) -> None:
    outcomes = [outcome("a", {"exact": grade(0.25, "too short")}), outcome("b", {"exact": failed(TIMEOUT)})]
    text = markdown(await keep(store, outcomes, gate=None))
    assert cells(text)[2:] == [
        ["sample", "target", "score", "why"],
        ["b", "bot", "–", "exact: target: no answer within 5 s"],
        ["sample", "target", "score", "why"],
        ["a", "bot", "0.250", "exact: too short<br>asked: Hi<br>said: Hello!"],
    ]
    assert text.index("<details>") < text.index("**Could not be scored**") < text.index("**Lowest scores**")
    assert text.endswith("\n</details>\n\n")


async def test_what_failed_and_the_command_that_shows_it_come_before_the_figures(store: Store) -> None:
    gate = SimpleGate("exact", Threshold("avg_score", "gte", 0.9))
    outcomes = [outcome(f"low {i}", {"exact": grade(0.25, "too short")}) for i in range(6)]
    text = markdown(await keep(store, outcomes, gate=gate))
    assert cells(text)[1][:1] == ["low 0"]
    assert "and 1 more\n\nSee the worst with `viva show run-1 'low 0'`\n\n- 6 conversations" in text
    assert text.index("**Lowest scores**") < text.index("- 6 conversations") < text.index("| grader |")
    assert "details" not in text


@pytest.mark.parametrize(
    ("gate", "ended", "words"),
    [
        (SimpleGate("exact", Threshold("avg_score", "gte", 0.9)), True, "failed"),
        (None, True, "has no gate"),
        (None, False, "is inconclusive"),
    ],
)
async def test_the_verdict_is_told_in_words(store: Store, gate: SimpleGate | None, ended: bool, words: str) -> None:
    graded = await keep(store, [outcome("a", {"exact": 0.5})], gate=gate, ended=ended)
    assert markdown(graded).startswith(f"**`support` {words}**\n")


@pytest.mark.parametrize("text", HOSTILE)
async def test_nothing_that_a_model_wrote_is_markup_or_leaves_its_cell(store: Store, text: str) -> None:
    plain = markdown(await keep(store, [outcome("a", {"exact": grade(0.0, "plain")})]))
    graded = await keep(store, [outcome(text, {text: grade(0.0, text)}, target=text)], "run-2")
    hostile = markdown(graded)
    assert [token.type for token in tokens(hostile)] == [token.type for token in tokens(plain)]
    assert [len(row) for row in cells(hostile)] == [len(row) for row in cells(plain)]


@given(st.text())
def test_any_text_is_one_code_span_in_one_cell(text: str) -> None:
    table = f"| a | b |\n|---|---|\n| {code(text)} | end |\n"
    row = cells(table)[1]
    assert (len(row), row[1]) == (2, "end")
    kinds = {token.type for token in tokens(table)}
    assert not kinds & {"html_inline", "link_open", "image", "em_open", "strong_open", "softbreak"}
