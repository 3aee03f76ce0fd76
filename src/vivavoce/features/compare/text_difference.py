"""Differences between two texts, word by word, and between two suites, line by line."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest
from typing import Literal, NamedTuple

import regex
from rapidfuzz.distance import LCSseq

from vivavoce.records.run import Grading, Run
from vivavoce.report.html.run import suite_lines

MAX_WORDS = 4000
"""Words of a text, without those at its ends that are in both, that are compared; longer ones differ as a whole."""

MAX_EXACT_LINES = 1000
"""Lines of a suite up to which each is looked for in the other one; in a longer one, frequent lines are not."""

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
    left, right = (_WORD.findall(text) for text in (before, after))
    start = _common(left, right)
    end = _common(left[start:][::-1], right[start:][::-1])
    middle = left[start : len(left) - end], right[start : len(right) - end]
    parts = [
        Stretch("same", "".join(left[:start])),
        *_middle(*middle),
        Stretch("same", "".join(left[len(left) - end :])),
    ]
    return list(_join([part for part in parts if part.text]))


def same_share(stretches: Sequence[Stretch]) -> float:
    """Return the share of characters that is in both texts, 0 to 1."""
    whole = sum(len(stretch.text) for stretch in stretches)
    return sum(len(stretch.text) for stretch in stretches if stretch.kind == "same") / whole if whole else 1.0


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    """Return how many words at the start are in both."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(left), len(right)))


def _middle(left: list[str], right: list[str]) -> Iterator[Stretch]:
    if max(len(left), len(right)) > MAX_WORDS:
        yield from (Stretch("gone", "".join(left)), Stretch("new", "".join(right)))
        return
    for step in LCSseq.opcodes(left, right):
        removed, new = "".join(left[step.src_start : step.src_end]), "".join(right[step.dest_start : step.dest_end])
        if step.tag == "equal" and any(letter.isalnum() for letter in removed):
            yield Stretch("same", removed)
        else:
            yield from (Stretch("gone", removed), Stretch("new", new))


def _join(parts: Sequence[Stretch]) -> Iterator[Stretch]:
    """Yield the stretches, with neighbours of a kind made one."""
    for same, group in groupby(parts, key=lambda part: part.kind == "same"):
        stretches = list(group)
        kinds: tuple[Kind, ...] = ("same",) if same else ("gone", "new")
        for kind in kinds:
            if text := "".join(part.text for part in stretches if part.kind == kind):
                yield Stretch(kind, text)


AROUND = 2
"""Lines that are the same and shown around those that differ."""


class SuiteLine(NamedTuple):
    """A line of a suite: in both, `gone` from the first, `new` in the second, or a `gap` where lines are left out.

    The stretches of a line that only one side has are `same` where it has nothing in common with the other's.
    """

    kind: Literal["same", "gone", "new", "gap"]
    stretches: list[Stretch]


def suite_difference(before: tuple[Run, Grading], after: tuple[Run, Grading]) -> list[SuiteLine]:
    """Return the lines that differ between the suites, as YAML; none if they are the same.

    A suite is that of the run with the graders, the reward and the gate of the grading; rows inside it are left out.
    """
    lines_before, lines_after = (suite_lines(*side) for side in (before, after))
    is_long = max(len(lines_before), len(lines_after)) > MAX_EXACT_LINES
    steps = difflib.SequenceMatcher(None, lines_before, lines_after, autojunk=is_long).get_grouped_opcodes(AROUND)
    lines: list[SuiteLine] = []
    for group in steps:
        lines += [SuiteLine("gap", [])] if lines else []
        for step, start, end, at, until in group:
            if step == "equal":
                lines += [SuiteLine("same", [Stretch("same", line)]) for line in lines_before[start:end]]
            else:
                lines += _changed_lines(lines_before[start:end], lines_after[at:until])
    return lines


def _changed_lines(removed: list[str], new: list[str]) -> Iterator[SuiteLine]:
    """Yield first what is gone and then what is new; the words of lines in the same place are compared."""
    both = [word_difference(before or "", after or "") for before, after in zip_longest(removed, new)]
    sides: list[tuple[Literal["gone", "new"], int]] = [("gone", len(removed)), ("new", len(new))]
    for kind, number in sides:
        for words in both[:number]:
            mine = [word for word in words if word.kind in ("same", kind)]
            whole = all(word.kind != "same" for word in mine)
            yield SuiteLine(kind, [Stretch("same", word.text) for word in mine] if whole else mine)
