"""What a difference between two runs says, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vivavoce.report.comparison import GraderComparison, Reading
from vivavoce.report.text import listed
from vivavoce.safe_text import safe
from vivavoce.stats.paired import POWER

WORDS: Mapping[Reading, str] = {
    "worse": "worse",
    "better": "better",
    "same": "no clear change",
    "unknown": "too few pairs",
    "incomparable": "not comparable",
    "nothing": "nothing to compare",
}
STYLES: Mapping[Reading, str] = {"worse": "red", "better": "green"}
"""The colour in the terminal; what is not certain has none."""


def in_markdown(reading: Reading) -> str:
    """Return the word as Markdown."""
    return f"**{WORDS[reading]}**" if reading == "worse" else WORDS[reading]


def remarks(graders: Sequence[GraderComparison]) -> list[str]:
    """Return what a reader should know of the figures of some graders, a sentence each."""
    return [remark for remark in (_detectable(graders), _sign_note(graders)) if remark is not None]


def _detectable(graders: Sequence[GraderComparison]) -> str | None:
    """Return in a sentence how large a change had to be to show, of the graders without a clear one; None of none."""
    by = [f"{safe(one.name)} by {one.detectable:.2g}" for one in graders if one.reading == "same" and one.detectable]
    if not by:
        return None
    some = "A change" if len(by) == 1 else "Changes"
    each = "" if len(by) == 1 else "each "
    return f"{some} of {listed(by)} would {each}have shown in {POWER:.0%} of such comparisons."


def _sign_note(graders: Sequence[GraderComparison]) -> str | None:
    """Return in a sentence where counts of samples alone say otherwise than the means; None where they never do."""
    by = [
        f"{safe(one.name)} has {one.wins:,} better and {one.losses:,} worse (sign test: p {one.sign_p_value:.2g})"
        for one in graders
        if one.p_value is not None
        and one.sign_p_value is not None
        and (one.p_value <= 1 - one.level) != (one.sign_p_value <= 1 - one.level)
    ]
    if not by:
        return None
    about = "p and the interval are about the mean. Counts of samples, however far each moved, say otherwise"
    return f"{about}: {listed(by)}."
