"""The agreement of people with each other, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vivavoce.records.label import DifferingLabels, Disputed, Label, LabelAgreement, PeopleAgreement
from vivavoce.records.score import conversation_label, turn_label
from vivavoce.report.markdown import code, interval, table
from vivavoce.report.terminal import number
from vivavoce.report.text import count
from vivavoce.safe_text import safe


def people_lines(found: PeopleAgreement | None) -> Iterator[str]:
    """Yield how far people agree, and a line for each place where they do not; nothing without two people."""
    if found is None:
        return
    yield f"{len(found.people)} people: {found.same} of {found.n} labelled alike"
    figures = [f"Krippendorff's α {number(found.alpha)}"] if found.alpha is not None else []
    if found.low is not None and found.high is not None:
        figures.append(f"95% interval {number(found.low)} to {number(found.high)}")
    if found.kappa is not None:
        name = "Cohen's" if len(found.people) == 2 else "Fleiss'"
        figures.append(f"{name} κ {number(found.kappa)}")
    if figures:
        yield ", ".join(figures)
    yield from map(disputed_line, found.disputed)


def people_markdown(found: PeopleAgreement | None) -> Iterator[str]:
    """Yield how far people agree as Markdown: a table of the figures, and one of the places where they do not."""
    if found is None:
        yield "No place has labels of two people."
        return
    yield f"**{len(found.people)} people**: {', '.join(map(code, found.people))}"
    yield ""
    name = "Cohen's κ" if len(found.people) == 2 else "Fleiss' κ"
    share = [f"labelled alike, of {found.n:,}", f"{found.same:,}", ""]
    alpha = ["Krippendorff's α", number(found.alpha), interval(found.low, found.high)]
    yield from table(["measure", "value", "95% interval"], "lrr", [share, alpha, [name, number(found.kappa), ""]])
    if found.disputed:
        yield ""
        rows = [
            [code(_place(one)), *(one.verdicts.get(person, "") for person in found.people)] for one in found.disputed
        ]
        yield from table(["place", *map(code, found.people)], "l" + "l" * len(found.people), rows)


def differing_line(one: DifferingLabels) -> str:
    """Return a place where labels differ, with what each person says and what was decided."""
    said = ", ".join(f"{label.author} says {label.verdict}" for label in one.labels)
    decided = "not decided" if one.decision is None else f"{one.decision.author} decided {one.decision.verdict}"
    question = f"  {one.grader}" if one.grader else ""
    return safe(f"{_place(one)}{question}  {said}  {decided}")


def _place(one: Disputed | DifferingLabels) -> str:
    turn = "" if one.turn is None else f" {turn_label(one.turn)}"
    return f"{conversation_label(one.sample_id, one.trial)}{turn}"


def disputed_line(one: Disputed) -> str:
    """Return a place where people disagree, with what each of them says."""
    said = ", ".join(f"{author} says {verdict}" for author, verdict in sorted(one.verdicts.items()))
    return safe(f"people differ  {_place(one)}  {said}")


def labels_line(grader: str, labels: Sequence[Label], found: LabelAgreement) -> str:
    """Return in one line how many labels of a grader people gave, how far they agree, and how far the judge does."""
    people = {one.author for one in labels}
    said = f"{count(len(labels), 'label')} by {len(people)} {'person' if len(people) == 1 else 'people'}"
    parts = [f"{safe(grader)}: {said}" if grader else said]
    if (other := found.people) is not None:
        alpha = "" if other.alpha is None else f", α {other.alpha:.2f}{_between(other.low, other.high)}"
        parts.append(f"they agree on {other.same} of {other.n} places that two or more labelled{alpha}")
    if found.n:
        kappa = "" if found.kappa is None else f", κ {found.kappa:.2f}{_between(found.low, found.high)}"
        parts.append(f"the grader agrees with {found.both_pass + found.both_fail} of {found.n}{kappa}")
    return "; ".join(parts)


def _between(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"
