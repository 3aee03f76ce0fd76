"""How far people agree, as Markdown, on a published table."""

from __future__ import annotations

from vivavoce.features.labels.agreement import people_markdown
from vivavoce.records.label import HumanVerdict, Label
from vivavoce.report.label_agreement import people_agreement, people_lines

FIRST, SECOND = "0100000010", "1110010000"
"""K. Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), part A: two observers, ten units, α 0.095."""


def label(unit: int, author: str, verdict: HumanVerdict) -> Label:
    return Label(sample_id=f"u{unit}", target="bot", trial=0, author=author, verdict=verdict, created_at=1.0)


def published_labels() -> list[Label]:
    return [
        label(unit, author, "pass" if verdict == "1" else "fail")
        for author, row in (("Ida", FIRST), ("Olu", SECOND))
        for unit, verdict in enumerate(row)
    ]


def test_the_published_table_has_the_published_alpha_and_the_places_that_differ() -> None:
    lines = list(people_markdown(people_agreement(published_labels())))
    assert lines[0] == "**2 people**: `Ida`, `Olu`"
    assert "| same label, of 10 | 6 |  |" in lines
    assert any(line.startswith("| Krippendorff's α | 0.095 | ") for line in lines)
    assert any(line.startswith("| Cohen's κ | 0.091 |") for line in lines)
    assert "| `u0` | fail | pass |" in lines
    assert sum(line.startswith("| `u") for line in lines) == 4


def test_names_cannot_break_the_table() -> None:
    labels = [label(0, "I|da`<b>", "pass"), label(0, "Olu\n| x |", "fail")]
    lines = list(people_markdown(people_agreement(labels)))
    assert all(line.count("|") - line.count("\\|") in (0, 4) for line in lines)
    assert "<b>" not in "".join(lines).replace("`I", "").partition("`")[2] or "`" in lines[0]


def test_without_two_people_there_is_nothing_to_compare() -> None:
    assert list(people_markdown(None)) == ["No conversation or turn has labels of two people."]
    assert list(people_lines(None)) == []
