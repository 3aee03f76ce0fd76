"""The words that differ between two texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

import regex
from rapidfuzz.distance import LCSseq

MOST = 4000
"""Words of a text, without those at its ends that are in both, that are compared; longer ones differ as a whole."""

Kind = Literal["same", "gone", "new"]

_WORD = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]|[\w'’]+|\s+|.", regex.DOTALL)


class Stretch(NamedTuple):
    """A stretch of text that is in both texts, in the first alone (`gone`), or in the second alone (`new`)."""

    kind: Kind
    text: str


def word_difference(before: str, after: str) -> list[Stretch]:
    """Return two texts as one, in stretches; what is gone stands before what is new in its place.

    A stretch between two differences counts as same only if it has a letter or a digit.
    """
    one, other = (_WORD.findall(text) for text in (before, after))
    start = _common(one, other)
    end = _common(one[start:][::-1], other[start:][::-1])
    middle = one[start : len(one) - end], other[start : len(other) - end]
    parts = [
        Stretch("same", "".join(one[:start])),
        *_middle(*middle),
        Stretch("same", "".join(one[len(one) - end :])),
    ]
    return list(_joined([part for part in parts if part.text]))


def same_share(stretches: Sequence[Stretch]) -> float:
    """Return the share of characters that is in both texts, 0 to 1."""
    whole = sum(len(one.text) for one in stretches)
    return sum(len(one.text) for one in stretches if one.kind == "same") / whole if whole else 1.0


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many words at the start are in both."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _middle(one: list[str], other: list[str]) -> Iterator[Stretch]:
    if max(len(one), len(other)) > MOST:
        yield from (Stretch("gone", "".join(one)), Stretch("new", "".join(other)))
        return
    for step in LCSseq.opcodes(one, other):
        gone, new = "".join(one[step.src_start : step.src_end]), "".join(other[step.dest_start : step.dest_end])
        if step.tag == "equal" and any(letter.isalnum() for letter in gone):
            yield Stretch("same", gone)
        else:
            yield from (Stretch("gone", gone), Stretch("new", new))


def _joined(parts: Sequence[Stretch]) -> Iterator[Stretch]:
    """Yield the stretches, with neighbours of a kind made one."""
    for same, group in groupby(parts, key=lambda part: part.kind == "same"):
        held = list(group)
        kinds: tuple[Kind, ...] = ("same",) if same else ("gone", "new")
        for kind in kinds:
            if text := "".join(part.text for part in held if part.kind == kind):
                yield Stretch(kind, text)
