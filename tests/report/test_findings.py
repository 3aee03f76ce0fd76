"""The findings of a metric, as lines of a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console, Group

from vivavoce.report.findings import SHOWN, findings


def shown(metadata: dict[str, Any]) -> list[str]:
    console = Console(width=160, highlight=False, markup=False)
    with console.capture() as captured:
        console.print(Group(*findings(metadata)))
    return [line.rstrip() for line in captured.get().splitlines() if line.strip()]


def quote(text: str, turn: int | None, *, verified: bool) -> dict[str, Any]:
    return {"text": text, "kind": "quote", "turn": turn, "verified": verified}


def test_each_criterion_says_whether_it_is_met_and_where_its_evidence_stands() -> None:
    criteria = [
        {
            "outcome": "refund made",
            "met": True,
            "evidence": [{"text": "c2", "kind": "call", "turn": 3, "verified": True}],
        },
        {"outcome": "sum told", "met": False, "evidence": [quote("it is 12", None, verified=False)]},
    ]
    lines = shown({"criteria": criteria})
    assert lines[0].split() == ["met", "refund", "made"]
    assert lines[1].split() == ["turn", "4", "call", "c2"]
    assert lines[2].split() == ["not", "met", "sum", "told"]
    assert lines[3].split() == ["not", "found", "“it", "is", "12”"]


def test_checks_and_violations_are_told_by_their_answer_and_their_severity() -> None:
    lines = shown(
        {
            "checks": [{"item": "memory", "answer": "not_applicable", "evidence": []}],
            "violations": [{"what": "insult", "severity": "major", "evidence": []}],
        }
    )
    assert [line.split() for line in lines] == [["not", "applicable", "memory"], ["major", "insult"]]


def test_evidence_without_findings_is_shown_by_itself() -> None:
    assert shown({"evidence": [quote("hello", None, verified=True)]})[0].split() == ["before", "turn", "1", "“hello”"]


def test_more_findings_than_fit_are_counted() -> None:
    many: list[dict[str, Any]] = [{"item": str(i), "answer": "yes", "evidence": []} for i in range(SHOWN + 5)]
    assert shown({"checks": many})[-1].strip() == "… and 5 more"


def test_the_metadata_of_another_grader_yields_nothing_and_breaks_nothing() -> None:
    assert shown({"criteria": "none", "checks": [1, "x"], "evidence": {"a": 1}}) == []


def test_hostile_text_stays_on_its_line() -> None:
    assert len(shown({"violations": [{"what": "a\nmet  b\x1b[31m", "severity": "minor", "evidence": []}]})) == 1
