"""A graded run as one HTML file that needs no network and no script: its page, and conversations below it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from tempfile import SpooledTemporaryFile
from typing import IO, TextIO

from markupsafe import Markup

from vivavoce.records.run import AttemptKey
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.html.conversation import conversation
from vivavoce.report.html.rendering import STATIC, pieces, render_template
from vivavoce.report.html.run import by_target, head
from vivavoce.report.html.samples import Line, line, usual_columns
from vivavoce.report.verdict import error_groups
from vivavoce.report.worst_samples import outcome_of
from vivavoce.store.browse.listing import SampleEntry

MAX_SAMPLES = 1000
"""Samples in the list, the worst of the run."""
MAX_CONVERSATIONS = 100
"""Conversations that can be read in the file, the first ones of the list."""
CAUSES = 10
"""Causes of errors that are listed."""
MAX_BYTES = 16 << 20
"""Maximum bytes of conversations in the file."""

_STYLES = ("vv.css", "content.css", "conversation.css", "report.css", "print.css")
_IN_MEMORY = 1 << 20
_CHUNK_CHARS = 1 << 16


@dataclass(frozen=True, slots=True)
class Style:
    """The stylesheets as one text, and its hash as a content security policy names it.

    Source of the form: W3C Content Security Policy Level 3, `hash-source`.
    """

    text: Markup
    hash: str


@dataclass(frozen=True, slots=True)
class WorstSamples:
    """The samples of the list, and how many there are in all; the list of the run page has more."""

    lines: Sequence[Line]
    count: int
    problem: str = ""


def write_html(graded: GradedRun, out: TextIO) -> None:
    """Write a run as a page that is complete in itself.

    Its list has the `MAX_SAMPLES` worst samples, and the first `MAX_CONVERSATIONS` conversations of the list follow it,
    as long as these are not larger than `MAX_BYTES` together. The file says what is not included and how to get it.
    """
    summary = graded.summary()
    worst = graded.store.browse.samples(graded.grading.id, sort="worst", limit=MAX_SAMPLES).samples
    columns = usual_columns(summary, graded.grading)
    errors = error_groups(graded.store, graded.grading, CAUSES)
    with SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="utf-8", newline="") as aside:
        conversation_count = _write_conversations(graded, worst[:MAX_CONVERSATIONS], aside)
        links = [f"#s{number}" if number <= conversation_count else "" for number in range(1, len(worst) + 1)]
        places = {
            (entry.sample_id, entry.target): link for entry, link in zip(worst, links, strict=True) if not entry.trial
        }
        lines = [line(entry, link, columns) for entry, link in zip(worst, links, strict=True)]
        values = {
            **head(graded.run, graded.grading, summary),
            "alone": True,
            "by_target": by_target(graded, summary, lambda sample, target: places.get((sample, target), "")),
            "style": _style(),
            "icon": _icon(),
            "sets": [],
            "heads": [(column, None) for column in columns],
            "plain_columns": True,
            "found": WorstSamples(lines, graded.store.browse.count_samples(graded.grading.id)),
            "kept": conversation_count,
            "errors": [(group, "") for group in errors.groups],
            "more_errors": errors.more,
            "all_errors": "",
            "sort": "worst",
            "filter_text": "",
            "talks": _pieces(aside),
        }
        out.writelines(pieces("run.html", values))


def _write_conversations(graded: GradedRun, entries: Sequence[SampleEntry], aside: IO[str]) -> int:
    """Write conversations up to the limits, and return how many."""
    byte_count = 0
    for number, entry in enumerate(entries):
        if byte_count >= MAX_BYTES:
            return number
        key = AttemptKey(entry.sample_id, entry.target, entry.trial)
        outcome = outcome_of(graded.store, graded.grading, key)
        conversation_values = conversation(outcome, lambda _: None, prefix=f"s{number + 1}-")
        more: dict[str, object] = {"alone": True, "number": number + 1, "run": graded.run, "trials": []}
        filled = render_template("conversation.html", {**conversation_values, **more})
        aside.write(filled.decode())
        byte_count += len(filled)
    return len(entries)


def _pieces(aside: IO[str]) -> Iterator[Markup]:
    """Yield the written text, piece by piece."""
    aside.seek(0)
    while piece := aside.read(_CHUNK_CHARS):
        yield Markup(piece)


@cache
def _style() -> Style:
    text = "\n".join((STATIC / name).read_text("utf-8") for name in _STYLES)
    return Style(Markup(text), f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}")


@cache
def _icon() -> str:
    return f"data:image/svg+xml;base64,{b64encode((STATIC / 'mark.svg').read_bytes()).decode()}"
