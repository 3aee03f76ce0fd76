"""Differences between two datasets, two suites, and two texts."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, zip_longest
from typing import Any, Literal, NamedTuple, cast

import regex
from rapidfuzz.distance import LCSseq

from vivavoce.exchange.suites import yaml_text
from vivavoce.records.run import Grading, Run
from vivavoce.report.markdown import code, table
from vivavoce.report.strict_json import strict_json
from vivavoce.report.text import count, one_line
from vivavoce.samples.content import MISSING, Content, Difference, FieldChange, RowKey

WIDTH = 200
"""Characters of a value that are shown."""

UNRELATED = "No row of one is in the other: are these two datasets?"


def difference_lines(found: Difference) -> Iterator[str]:
    """Yield the difference row by row, field by field."""
    yield f"{_head(found.a)} → {_head(found.b)}: {found.in_words()}"
    if found.unrelated:
        yield UNRELATED
    for sign, keys, content in (("+", found.added, found.b), ("-", found.removed, found.a)):
        yield from (f"{sign} {key}  {_row(content, key)}" for key in keys)
    for change in found.changed:
        yield f"~ {change.key}"
        yield from (f"    {field.path}: {_change(field)}" for field in change.fields)


def difference_markdown(found: Difference) -> str:
    """Return the difference as Markdown; what people wrote stands in code spans."""
    return "\n".join([*_markdown(found), ""])


def _markdown(found: Difference) -> Iterator[str]:
    yield f"**{code(found.b.path.name)}: {found.b.version} after {found.a.version}**"
    counts = [
        *(f"{count(len(keys), 'row')} {what}" for keys, what in _kinds(found) if keys),
        *(["the order of rows changed"] if found.moved else []),
    ]
    yield from ("", ", ".join(counts) or "No difference.")
    if found.unrelated:
        yield from ("", UNRELATED)
    rows = [
        *([code(str(key)), "added", "", code(_row(found.b, key), WIDTH)] for key in found.added),
        *([code(str(key)), "removed", code(_row(found.a, key), WIDTH), ""] for key in found.removed),
        *(
            [code(str(change.key)), code(field.path), _span(field.before), _span(field.after)]
            for change in found.changed
            for field in change.fields
        ),
    ]
    if rows:
        yield ""
        yield from table(["row", "what", "before", "after"], "llll", rows)


def _kinds(found: Difference) -> Iterator[tuple[list[object], str]]:
    yield list(found.added), "added"
    yield list(found.removed), "removed"
    yield list(found.changed), "changed"


def _head(content: Content) -> str:
    return f"{content.path.name} {content.version} ({count(len(content.rows), 'row')})"


def _row(content: Content, key: RowKey) -> str:
    row = {name: value for name, value in content.rows[key].items() if name not in ("id", "sample_id")}
    return one_line(strict_json(row), WIDTH)


def _change(field: FieldChange) -> str:
    return f"{_value(field.before)} → {_value(field.after)}"


def _value(value: object) -> str:
    return "nothing" if value is MISSING else one_line(strict_json(value), WIDTH)


def _span(value: object) -> str:
    return "nothing" if value is MISSING else code(_value(value), WIDTH)


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


AROUND = 2
"""Lines that are the same and shown around those that differ."""
LONGEST = 5000
"""Lines of a suite that are compared."""


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
    one, other = (suite_lines(*side) for side in (before, after))
    steps = difflib.SequenceMatcher(None, one, other, autojunk=False).get_grouped_opcodes(AROUND)
    found: list[SuiteLine] = []
    for group in steps:
        found += [SuiteLine("gap", [])] if found else []
        for step, start, end, at, until in group:
            if step == "equal":
                found += [SuiteLine("same", [Stretch("same", line)]) for line in one[start:end]]
            else:
                found += _changed(one[start:end], other[at:until])
    return found


def _changed(gone: list[str], new: list[str]) -> Iterator[SuiteLine]:
    """Yield first what is gone and then what is new; the words of lines in the same place are compared."""
    both = [word_difference(before or "", after or "") for before, after in zip_longest(gone, new)]
    sides: list[tuple[Literal["gone", "new"], int]] = [("gone", len(gone)), ("new", len(new))]
    for kind, number in sides:
        for words in both[:number]:
            mine = [one for one in words if one.kind in ("same", kind)]
            whole = all(one.kind != "same" for one in mine)
            yield SuiteLine(kind, [Stretch("same", one.text) for one in mine] if whole else mine)


def suite_lines(run: Run, grading: Grading) -> list[str]:
    """Return the suite of a run as lines of YAML, with what its grading decides by, and without rows inside it."""
    spec: dict[str, Any] = {**run.spec, **grading.spec}
    if isinstance(dataset := spec.get("dataset"), dict):
        spec["dataset"] = {name: value for name, value in cast("dict[str, Any]", dataset).items() if name != "rows"}
    return list(_lines(json.dumps(spec)))


@lru_cache(maxsize=64)
def _lines(spec: str) -> Sequence[str]:
    """Return a suite that is given as JSON as lines of YAML; writing them takes longer than a page may."""
    return yaml_text(json.loads(spec)).splitlines()[:LONGEST]
