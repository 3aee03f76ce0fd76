"""The dataset of a suite: its samples one at a time, a check of all of them, and a choice of some."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from array import array
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self, cast

from vivavoce.conversations.format import NATIVE, TABLE, Format, Loss, format_named
from vivavoce.conversations.own_rows import check_columns
from vivavoce.conversations.reading import format_with, scan
from vivavoce.errors import Problem, UsageError
from vivavoce.files.rows import format_of, scan_rows
from vivavoce.samples.row import UnknownKeys, check_fields, read_sample
from vivavoce.samples.sample import Sample

_MAGIC = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Selection:
    """The samples with one of these ids, or whose id matches one of these patterns of a shell (`*`, `?`, `[…]`)."""

    ids: frozenset[str]
    patterns: tuple[tuple[str, re.Pattern[str]], ...] = ()

    @classmethod
    def of(cls, names: Sequence[str]) -> Self:
        """Return the choice that these names make; a name that is an id counts as that id, whatever is in it."""
        patterns = [(name, re.compile(fnmatch.translate(name))) for name in names if _MAGIC.search(name)]
        return cls(frozenset(names), tuple(patterns))

    def __contains__(self, sample_id: str) -> bool:
        return sample_id in self.ids or any(pattern.match(sample_id) for _, pattern in self.patterns)

    def missing(self, known: Iterable[str]) -> list[str]:
        """Return the names that fit none of the ids, sorted."""
        there = list(known)
        left = self.ids.difference(there)
        fitting = {name for name, pattern in self.patterns if name in left and any(map(pattern.match, there))}
        return sorted(left - fitting)


def exactly(sample_ids: Iterable[str]) -> list[str]:
    """Return names that choose these samples alone, though their ids may look like patterns."""
    return [glob.escape(sample_id) for sample_id in sample_ids]


MAX_PROBLEMS = 10_000
"""Mistakes that an error lists, for it is kept in memory; it counts the others."""
KEYS_SHOWN = 20
"""Unknown keys that a note lists."""

_FEW = 10_000
"""The hashes of this many samples fit into a set, which takes less time than to import numpy."""

Scanned = Sample | tuple[Problem, ...]
"""A sample, or the problems of a row that is not one."""

Source = str | os.PathLike[str] | Sequence[Mapping[str, Any]]
"""A source of rows: a JSONL, JSON, CSV or Parquet file, or the rows themselves."""


@dataclass(frozen=True, slots=True)
class SampleCount:
    """Counts over a dataset: samples, their turns, samples with a truth per turn, recorded samples.

    `silent` counts the samples with neither input nor recording, `goals` those with a goal, `expecting` those with
    assertions, `ruled` those with `must` or `must_not`, `returning` those to be asked in several sessions, `continued`
    those with a history, `references` those that list expected tool calls or, with an empty list, ban them.
    `shared_rubrics` counts the samples without a rubric of their own, `rubric_vars` are the variables all of them give.
    `tags` are the tags that any has. `expected_tools` are those of `reference_tool_calls`, `recorded_tools` those that
    recorded conversations call. `notes` say which format of others was read, and what was lost.
    """

    samples: int
    turns: int
    per_turn: int
    recorded: int
    shared_rubrics: int = 0
    rubric_vars: frozenset[str] = frozenset()
    silent: int = 0
    goals: int = 0
    expecting: int = 0
    ruled: int = 0
    tags: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    returning: int = 0
    continued: int = 0
    references: int = 0
    expected_tools: frozenset[str] = frozenset()
    recorded_tools: frozenset[str] = frozenset()


class UnusableRows(UsageError):
    """Rows of a dataset cannot be used; `usable` counts the others."""

    def __init__(self, problems: Sequence[Problem], usable: SampleCount) -> None:
        super().__init__(*problems)
        self.usable = usable


def read_samples(
    source: Source,
    *,
    fields: Mapping[str, str] | None = None,
    base: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    tags: Sequence[str] | None = None,
    format: str | None = None,  # noqa: A002
    places: Container[int] | None = None,
) -> Iterator[Sample]:
    """Yield the samples of a file, in constant memory.

    Args:
        source: a file, or the rows.
        fields: where a row keeps what a sample needs, as dotted paths.
        base: the folder that paths in a row are relative to; that of the file, or where we run, when it is not given.
        limit: stop after this many samples.
        tags: only the samples with one of these tags.
        format: the format of the conversations in the file; without it, told by the first ones.
        places: only the rows at these places, from 0; the others are not looked at.

    Raises:
        UsageError: the file cannot be read, or a row is not a sample.
    """
    for _, sample in _scan(source, fields, base, limit, tags, format, Loss(), places):
        if not isinstance(sample, Sample):
            raise UsageError(*sample)
        yield sample


def check_samples(
    source: Source,
    *,
    fields: Mapping[str, str] | None = None,
    base: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    tags: Sequence[str] | None = None,
    format: str | None = None,  # noqa: A002
    check: Callable[[Sample], None] | None = None,
    log: bool = False,
) -> SampleCount:
    """Read a whole dataset, with the arguments of `read_samples`, and count what is in it.

    `check` raises `UsageError` for a sample that cannot be used. The rows of a `log` were not written as tests,
    nor were those of which `fields` say where they have what a sample needs: more of their keys are data.
    Besides what each row must be, no two rows may have the same id and trial; no trial is trial 0. Eight bytes are kept
    of each row for that; only a file that seems to have duplicates is read again, to name them.

    Raises:
        UnusableRows: with every problem there is, up to `MAX_PROBLEMS`, and how many others there are.
        UsageError: the file cannot be read.
    """
    problems: list[Problem] = []
    more = 0
    hashes = array("Q")
    counts: Counter[str] = Counter()
    variables: set[str] | None = None
    seen: set[str] = set()
    expected_tools: set[str] = set()
    recorded_tools: set[str] = set()
    file, loss, unknown = _file(source), Loss(), UnknownKeys(log=log or bool(fields))
    for line, sample in _scan(source, fields, base, limit, tags, format, loss, unknown=unknown):
        row_problems = _problems(sample, line, file, check)
        listed_problems = row_problems[: MAX_PROBLEMS - len(problems)]
        problems += listed_problems
        more += len(row_problems) - len(listed_problems)
        if isinstance(sample, Sample):
            hashes.append(_hash(sample))
        if not isinstance(sample, Sample) or row_problems:
            continue
        counts.update(_counts(sample))
        seen.update(sample.tags)
        expected_tools.update(call.name for call in sample.expected_calls)
        recorded_tools.update(sample.called_tools)
        if sample.rubric is None:
            variables = set(sample.rubric_vars) if variables is None else variables & sample.rubric_vars.keys()
    pairs = _pairs(hashes)
    more += len(pairs) - len(pairs := pairs[: MAX_PROBLEMS - len(problems)])
    if pairs:
        problems += _name_duplicates(pairs, _scan(source, fields, base, limit, tags, format, Loss()), file)
    count = SampleCount(
        **dict.fromkeys(("samples", "turns", "per_turn", "recorded"), 0) | dict(counts),
        rubric_vars=frozenset(variables or ()),
        tags=frozenset(seen),
        notes=tuple(_notes(source, loss, unknown)),
        expected_tools=frozenset(expected_tools),
        recorded_tools=frozenset(recorded_tools),
    )
    if problems:
        problems.sort(key=lambda problem: problem.line or 0)
        rest = [Problem(f"and {more:,} more mistake{'s' * (more != 1)}", file)] if more else []
        raise UnusableRows([*problems, *rest], count)
    return count


def _counts(sample: Sample) -> dict[str, int]:
    """Return what a sample adds to the counts of a dataset."""
    return {
        "samples": 1,
        "turns": sample.turn_count - sample.history_turns,
        "per_turn": int(sample.per_turn),
        "recorded": int(sample.messages is not None),
        "shared_rubrics": int(sample.rubric is None),
        "silent": int(sample.messages is None and sample.input is None),
        "goals": int(sample.goal is not None),
        "expecting": int(sample.expect is not None),
        "ruled": int(bool(sample.must or sample.must_not)),
        "returning": int(sample.messages is None and len(sample.marks) > 1),
        "continued": int(sample.history is not None),
        "references": int(sample.reference_tool_calls is not None),
    }


def unusable_rows(
    source: Source,
    *,
    fields: Mapping[str, str] | None = None,
    base: str | os.PathLike[str] | None = None,
    format: str | None = None,  # noqa: A002
    check: Callable[[Sample], None] | None = None,
    log: bool = False,
) -> list[Problem]:
    """Return a problem for each row that `check_samples` would refuse, the first of each, at its line."""
    all_problems: list[Problem] = []
    lines: dict[tuple[str, int], int] = {}
    file = _file(source)
    for line, sample in _scan(
        source, fields, base, None, None, format, Loss(), unknown=UnknownKeys(log=log or bool(fields))
    ):
        problems = _problems(sample, line, file, check)
        if isinstance(sample, Sample) and not problems:
            first = lines.setdefault((sample.id, sample.trial or 0), line)
            problems = [] if first == line else [_twice(sample.id, sample.trial or 0, first, line, file)]
        all_problems += problems[:1]
    return all_problems


def _notes(source: Source, loss: Loss, unknown: UnknownKeys) -> Iterator[str]:
    if loss.format is not None:
        yield f"{Path(cast('str', source)).name} is read as {loss.format}"
        yield from loss.lines()
    elif unknown.names:
        names = sorted(unknown.names)
        more = f" and {len(names) - KEYS_SHOWN:,} more" if len(names) > KEYS_SHOWN else ""
        yield f"unknown keys kept as metadata: {', '.join(names[:KEYS_SHOWN])}{more}"


def _read_as(file: Path | None, name: str | None, fields: Mapping[str, str]) -> tuple[Format | None, Mapping[str, str]]:
    """Return the format of a file, None where its rows are ours, and the fields that its rows have elsewhere."""
    if file is None:
        return None, fields
    if fields:
        columns = format_named(TABLE).columns
        check_fields({field: place for field, place in fields.items() if field not in columns})
    file_format, others = format_with(file, None if name is None else format_named(name), fields)
    return (None if file_format.name == NATIVE else file_format), others


def _problems(sample: Scanned, line: int, file: Path | None, check: Callable[[Sample], None] | None) -> list[Problem]:
    """Return what is wrong with a row, each at its line."""
    if not isinstance(sample, Sample):
        return list(sample)
    try:
        if check is not None:
            check(sample)
    except UsageError as error:
        return [Problem(problem.message, file, line) for problem in error.problems]
    return []


def _scan(
    source: Source,
    fields: Mapping[str, str] | None,
    base: str | os.PathLike[str] | None,
    limit: int | None,
    tags: Sequence[str] | None,
    format: str | None,  # noqa: A002
    loss: Loss,
    places: Container[int] | None = None,
    unknown: UnknownKeys | None = None,
) -> Iterator[tuple[int, Scanned]]:
    """Yield each chosen sample with its line, and the problems in place of a row that is not a sample."""
    file = _file(source)
    folder = Path(base) if base is not None else file.parent if file else Path()
    read_as, fields = _read_as(file, format, fields or {})
    check_fields(fields)
    cells = file is not None and read_as is None and format_of(file) in ("csv", "parquet", "arrow")
    if file is not None and cells:
        check_columns(file, Loss(), fields)
    wanted_tags = None if tags is None else frozenset(tags)
    sample_count = 0
    if file is None:
        rows: Iterable[tuple[int, Mapping[str, Any] | Problem]] = enumerate(
            cast("Sequence[Mapping[str, Any]]", source), 1
        )
    else:
        rows = scan_rows(file) if read_as is None else scan(file, read_as, loss)
    for position, (line, row) in enumerate(rows):
        if sample_count == limit:
            return
        if places is not None and position not in places:
            continue
        if isinstance(row, Problem):
            yield line, (row,)
            continue
        try:
            sample = read_sample(
                row,
                line=line,
                position=position,
                base=folder,
                fields=fields,
                file=file,
                cells=cells,
                unknown=unknown,
            )
        except UsageError as error:
            yield line, error.problems
            continue
        if wanted_tags is None or not wanted_tags.isdisjoint(sample.tags):
            sample_count += 1
            yield line, sample


def _file(source: Source) -> Path | None:
    return Path(source) if isinstance(source, str | os.PathLike) else None


def _hash(sample: Sample) -> int:
    key = f"{sample.trial or 0} {sample.id}"
    return int.from_bytes(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def _pairs(hashes: array[int]) -> list[tuple[int, int]]:
    """Return the places of each two neighbouring samples of the same hash, in the order of the later one."""
    if len(hashes) <= _FEW and len(set(hashes)) == len(hashes):
        return []
    import numpy as np

    values = np.frombuffer(hashes, dtype=np.uint64)
    order = np.argsort(values, kind="stable")
    same = np.flatnonzero(np.diff(values[order]) == 0)
    return sorted(zip(order[same].tolist(), order[same + 1].tolist(), strict=True), key=lambda pair: pair[1])


def _name_duplicates(
    pairs: list[tuple[int, int]], scanned: Iterator[tuple[int, Scanned]], file: Path | None
) -> Iterator[Problem]:
    """Yield a problem for each pair whose ids are really equal; their hashes alone do not prove it."""
    places = {place for pair in pairs for place in pair}
    samples = ((line, sample) for line, sample in scanned if isinstance(sample, Sample))
    keys = {
        place: (line, sample.id, sample.trial or 0) for place, (line, sample) in enumerate(samples) if place in places
    }
    for earlier, later in pairs:
        (first, *key), (line, name, trial) = keys[earlier], keys[later]
        if key == [name, trial]:
            yield _twice(name, trial, first, line, file)


def _twice(name: str, trial: int, first: int, line: int, file: Path | None) -> Problem:
    rule = "give each row its own id, or the trials of one id a 'trial' each"
    return Problem(f"id '{name}' with trial {trial} is already in line {first}; {rule}", file, line)
