"""Is a run worse than the one before it? Everybody who says so has the same verdict and the same words."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from html import unescape
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from report.cases import keep, outcome
from vivavoce.features.compare.markdown import markdown_comparison
from vivavoce.features.compare.several import SeveralComparisons, markdown_several, several
from vivavoce.features.compare.terminal import comparison
from vivavoce.records.run import Verdict
from vivavoce.report.comparison.comparison import Comparison
from vivavoce.report.comparison.pairing import compare
from vivavoce.report.comparison.regressions import Tolerance, add_ruling, reason_lines, ruling_lines
from vivavoce.report.html.notebook import comparison_html
from vivavoce.run.summary import EXIT_CODES
from vivavoce.store.store import Store


def printed(*parts: RenderableType) -> str:
    out = io.StringIO()
    Console(file=out, width=4000).print(*parts, sep="\n")
    return out.getvalue()


def of_several(comparison: Comparison) -> SeveralComparisons:
    return SeveralComparisons(
        suite=comparison.suite_a,
        run=comparison.run_a,
        grading=comparison.grading_a,
        level=0.95,
        comparisons=[comparison],
    )


def in_the_terminal_of_a_run(comparison: Comparison) -> str:
    assert comparison.ruling is not None
    return printed(*ruling_lines(comparison.ruling))


READERS: Mapping[str, Callable[[Comparison], str]] = {
    "terminal": lambda found: printed(comparison(found)),
    "terminal of a run with a baseline": in_the_terminal_of_a_run,
    "terminal, several runs": lambda found: printed(several(of_several(found))),
    "Markdown": markdown_comparison,
    "Markdown, several runs": lambda found: markdown_several(of_several(found)),
    "notebook": lambda found: unescape(comparison_html(found)),
}
CASES: Mapping[str, tuple[list[float], list[float], Verdict]] = {
    "nothing changed": ([1.0] * 9, [1.0] * 9, "pass"),
    "all break": ([1.0] * 9, [0.0] * 9, "fail"),
    "all fall a little": ([0.9] * 14, [0.85] * 14, "inconclusive"),
    "too few": ([1.0] * 3, [0.0] * 3, "inconclusive"),
}


@pytest.mark.parametrize("case", CASES)
async def test_every_reader_has_the_sentence_and_the_reasons(tmp_path: Path, case: str) -> None:
    before, after, verdict = CASES[case]
    with Store.open(tmp_path / "store.db") as store:
        runs = [
            await keep(store, [outcome(f"s{n}", {"exact": score}) for n, score in enumerate(scores)], name)
            for name, scores in (("run-a", before), ("run-b", after))
        ]
        found = add_ruling(compare(store, runs[0].grading, runs[1].grading), Tolerance())
    ruling = found.ruling
    assert ruling is not None
    assert ruling.verdict == verdict
    assert EXIT_CODES[verdict] == {"pass": 0, "fail": 1, "inconclusive": 3}[ruling.verdict]
    words = [ruling.sentence, *(reason.text for reason in ruling.reasons)]
    for reader, show in READERS.items():
        text = show(found).casefold()
        assert all(each.casefold() in text for each in words), (reader, words, text)
    stored = json.loads(found.model_dump_json())["ruling"]
    assert (stored["verdict"], stored["sentence"]) == (ruling.verdict, ruling.sentence)
    assert [f"{reason['verdict'] or 'note'} · {reason['text']}" for reason in stored["reasons"]] == reason_lines(ruling)
    assert of_several(found).verdict == ruling.verdict
