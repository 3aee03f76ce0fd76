"""What a format is: its name, how its records are told from others, and how they are read and written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vivavoce.errors import Problem
from vivavoce.exchange.loss import Loss
from vivavoce.exchange.records import Place, Record

Row = dict[str, Any]
"""A conversation as a row of our datasets: `id`, `messages` in the shape of OpenAI's chat, and what is known of it.

What a format knows beside the messages has our names where it means the same (`goal`, `ground_truth`, `labels`, …), and
else its own in `metadata`. What a message has that ours cannot hold is in the message's own `metadata`, under the name
of the format, from where the writer takes it back.
"""

ROW_FIELDS = frozenset(
    (
        *("id", "trial", "input", "messages", "ground_truth", "reference_tool_calls", "expect"),
        *("goal", "instructions", "context", "policy", "must", "must_not", "scenario", "persona", "facts"),
        *("restrictions", "adversarial", "min_turns", "max_turns", "state", "tool_results", "approvals"),
        *("rubric", "rubric_vars", "agent_args", "extra_vars", "labels", "tags", "metadata"),
        *("sessions", "secrets", "history"),
    )
)
"""The fields that a row may have."""

Reader = Callable[[Iterable[Record], Loss], Iterator[tuple[Place, Row]]]
"""Yields each conversation with the place where it begins, and tells the loss report what is not kept."""

Writer = Callable[[Iterable[Row], Loss], Iterator[Any]]
"""Yields the records that a file of the format holds, and tells the loss report what it cannot hold."""

Fits = Callable[[Record], bool]

Records = Callable[[Path], Iterator[Record | Problem]]
"""Yields the records of a file, and a `Problem` in place of one that cannot be read."""


@dataclass(frozen=True, slots=True)
class Format:
    """One format of conversations.

    `fits` says of a record whether it is of this format for certain; of what another format could have written as well,
    it says no. `lists` are the places within a JSON document, by keys, where the format keeps its records. Where files
    are not JSON, JSONL, CSV or Parquet, `begins` are their first bytes, and `records` reads them; where several formats
    begin alike, `wrong_with` says why a file is none of this one, or returns None. `document` makes one JSON document
    of the records that the writer yields; without it they are the lines of a JSONL file.

    A format that `keeps_keys` writes what a message has beside our fields, such as `reasoning_content`, as it is; one
    that `keeps_agents` writes the tools of the agent of a message and to whom it hands over; one that `keeps_outcomes`
    writes how calls ended, where a result states it.

    The columns of a format that `is_row` are as the fields of our rows: where the user names some, it is read as these.
    A format that `is_general` is told only where no other fits. Of a table whose columns the user may name, `columns`
    are the parts of a message that have one, and `with_columns` returns the format that reads them there.
    """

    name: str
    title: str
    fits: Fits
    read: Reader | None = None
    write: Writer | None = None
    lists: tuple[tuple[str, ...], ...] = ()
    begins: bytes | None = None
    wrong_with: Callable[[Path], str | None] | None = None
    records: Records | None = None
    document: Callable[[Iterator[Any]], Any] | None = None
    keeps_keys: bool = False
    keeps_agents: bool = False
    keeps_outcomes: bool = False
    is_row: bool = False
    is_general: bool = False
    columns: tuple[str, ...] = ()
    with_columns: Callable[[Format, Mapping[str, str]], Format] | None = None
