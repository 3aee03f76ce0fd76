"""What a difference between two runs says, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from vivavoce.report.comparison import GraderComparison, Reading
from vivavoce.report.measurements import measured_text
from vivavoce.report.text import count, listed
from vivavoce.safe_text import safe
from vivavoce.stats.paired import POWER
from vivavoce.stats.planning import fewest_changes

WORDS: Mapping[Reading, str] = {
    "worse": "worse",
    "better": "better",
    "same": "no clear change",
    "unknown": "too few pairs",
    "incomparable": "not comparable",
    "measured": "only measured",
    "nothing": "nothing to compare",
}
STYLES: Mapping[Reading, str] = {"worse": "red", "better": "green"}
"""The colour in the terminal; what is not certain has none."""


def in_markdown(reading: Reading) -> str:
    """Return the word as Markdown."""
    return f"**{WORDS[reading]}**" if reading == "worse" else WORDS[reading]


def remarks(graders: Sequence[GraderComparison]) -> list[str]:
    """Return what a reader should know of the figures of some graders, a sentence each."""
    sign = _sign_note(graders)
    return [*measured_remarks(graders), *_detectable(graders), *([] if sign is None else [sign])]


def measured_change(one: GraderComparison) -> str:
    """Return in a sentence how a grader that measures changed; empty for any other."""
    found = one.measured
    if found is None:
        return ""
    before, after = measured_text(found.mean_a), measured_text(found.mean_b)
    sign = "+" if found.difference >= 0 else "−"
    change = f"{sign}{measured_text(abs(found.difference))}"
    return f"{safe(one.name)} measures: mean {before} before, {after} after ({change}, n {found.n:,})"


def measured_remarks(graders: Sequence[GraderComparison]) -> Iterator[str]:
    """Yield how each grader that measures changed."""
    yield from (
        f"{said}; without a threshold that is neither better nor worse."
        for said in map(measured_change, graders)
        if said
    )


def p_text(p_value: float | None) -> str:
    """Return a p value with three decimals, `< 0.001` for a smaller one, or a dash if there is none."""
    return "–" if p_value is None else "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def _detectable(graders: Sequence[GraderComparison]) -> Iterator[str]:
    """Yield how large a change had to be to show, of the graders without a clear one, or that none could.

    For graded scores it is an upper limit, for changes of whole samples from one end of the scale to the other.
    """
    same = [one for one in graders if one.reading == "same"]
    by = [(one.graded, f"{safe(one.name)} by {one.detectable:.2g}") for one in same if one.detectable is not None]
    for graded, share in ((False, f"{POWER:.0%}"), (True, f"at least {POWER:.0%}")):
        if changes := [text for each, text in by if each == graded]:
            some, each = ("A change", "") if len(changes) == 1 else ("Changes", "each ")
            less = "; smaller ones may show, too" if graded else ""
            yield f"{some} of {listed(changes)} would {each}have shown in {share} of such comparisons{less}."
    for one in same:
        if one.n < (fewest := fewest_changes(one.level)):
            yield f"{count(one.n, 'sample')} cannot show any change of {safe(one.name)}: it takes at least {fewest}."


def _sign_note(graders: Sequence[GraderComparison]) -> str | None:
    """Return in a sentence where counts of samples alone say otherwise than the means; None where they never do."""
    by = [
        f"{safe(one.name)} has {one.wins:,} better and {one.losses:,} worse (sign test: p {p_text(one.sign_p_value)})"
        for one in graders
        if one.p_value is not None
        and one.sign_p_value is not None
        and (one.p_value <= 1 - one.level) != (one.sign_p_value <= 1 - one.level)
    ]
    if not by:
        return None
    about = "p and the interval are about the mean. Counts of samples, however far each moved, say otherwise"
    return f"{about}: {listed(by)}."
