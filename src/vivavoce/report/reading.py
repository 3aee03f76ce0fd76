"""What a difference between two runs says, in words."""

from __future__ import annotations

from collections.abc import Mapping

from vivavoce.report.comparison import Reading

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
