"""The findings of a metric, as lines of a terminal."""

from __future__ import annotations

from rich.console import Console, Group

from vivavoce.records.score import Evidence, Finding, FindingState, Score
from vivavoce.report.finding import SHOWN, findings


def shown(*found: Finding, other: tuple[Evidence, ...] = ()) -> list[str]:
    console = Console(width=160, highlight=False, markup=False)
    with console.capture() as captured:
        console.print(Group(*findings(Score(value=0.5, findings=found, other_evidence=other))))
    return [line.rstrip() for line in captured.get().splitlines() if line.strip()]


def finding(what: str, verdict: str, state: FindingState = "fail", *evidence: Evidence) -> Finding:
    return Finding(kind="criterion", what=what, verdict=verdict, state=state, evidence=evidence)


def test_each_criterion_says_whether_it_is_met_and_where_its_evidence_stands() -> None:
    lines = shown(
        finding("refund made", "met", "pass", Evidence(text="c2", kind="call", turn=3, verified=True)),
        finding("sum told", "not met", "fail", Evidence(text="it is 12")),
    )
    assert lines[0].split() == ["met", "refund", "made"]
    assert lines[1].split() == ["turn", "4", "call", "c2"]
    assert lines[2].split() == ["not", "met", "sum", "told"]
    assert lines[3].split() == ["not", "found", "“it", "is", "12”"]


def test_a_finding_is_told_by_its_verdict_and_one_without_by_its_kind() -> None:
    lines = shown(finding("memory", "not_applicable", "skip"), finding("insult", "major"), finding("a sigh", ""))
    assert [line.split() for line in lines] == [
        ["not", "applicable", "memory"],
        ["major", "insult"],
        ["criterion", "a", "sigh"],
    ]


def test_what_a_score_rests_on_besides_its_findings_follows_them() -> None:
    lines = shown(finding("insult", "major"), other=(Evidence(text="hello", verified=True),))
    assert [line.split() for line in lines] == [["major", "insult"], ["before", "turn", "1", "“hello”"]]


def test_more_findings_than_fit_are_counted() -> None:
    assert shown(*(finding(str(i), "yes", "pass") for i in range(SHOWN + 5)))[-1].strip() == "… and 5 more"


def test_a_score_without_findings_has_no_lines() -> None:
    assert shown() == []


def test_hostile_text_stays_on_its_line() -> None:
    assert len(shown(finding("a\nmet  b\x1b[31m", "mi\nnor\x1b[31m"))) == 1
