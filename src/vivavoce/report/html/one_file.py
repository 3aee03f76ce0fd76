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
from vivavoce.report.html.rendering import STATIC, pieces, rendered
from vivavoce.report.html.run import by_target, head
from vivavoce.report.html.samples import Line, line, usual_columns
from vivavoce.report.verdict import error_groups
from vivavoce.report.worst_samples import outcome_of
from vivavoce.store.browse.listing import SampleEntry

LISTED = 1000
"""Samples in the list, the worst of the run."""
HELD = 100
"""Conversations that can be read in the file, the first ones of the list."""
CAUSES = 10
"""Causes of errors that are listed."""
LARGEST = 16 << 20
"""Maximum bytes of conversations in the file."""

_STYLES = ("vv.css", "content.css", "conversation.css", "report.css", "print.css")
_IN_MEMORY = 1 << 20
_AT_ONCE = 1 << 16


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

    Its list has the `LISTED` worst samples, and the first `HELD` conversations of the list follow it, as long as these
    are not larger than `LARGEST` together. The file says what is not included and how to get it.
    """
    summary = graded.summary()
    worst = graded.store.browse.samples(graded.grading.id, sort="worst", limit=LISTED).samples
    chosen = usual_columns(summary, graded.grading)
    errors = error_groups(graded.store, graded.grading, CAUSES)
    with SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="utf-8", newline="") as aside:
        kept = _write_conversations(graded, worst[:HELD], aside)
        links = [f"#s{number}" if number <= kept else "" for number in range(1, len(worst) + 1)]
        places = {(one.sample_id, one.target): link for one, link in zip(worst, links, strict=True) if not one.trial}
        lines = [line(entry, link, chosen) for entry, link in zip(worst, links, strict=True)]
        values = {
            **head(graded.run, graded.grading, summary),
            "alone": True,
            "by_target": by_target(graded, summary, lambda sample, target: places.get((sample, target), "")),
            "style": _style(),
            "icon": _icon(),
            "sets": [],
            "heads": [(one, None) for one in chosen],
            "plain_columns": True,
            "found": WorstSamples(lines, graded.store.browse.count_samples(graded.grading.id)),
            "kept": kept,
            "errors": [(one, "") for one in errors.shown],
            "more_errors": errors.more,
            "all_errors": "",
            "sort": "worst",
            "filter_text": "",
            "talks": _pieces(aside),
        }
        out.writelines(pieces("run.html", values))


def _write_conversations(graded: GradedRun, entries: Sequence[SampleEntry], aside: IO[str]) -> int:
    """Write conversations up to the limits, and return how many."""
    written = 0
    for number, entry in enumerate(entries):
        if written >= LARGEST:
            return number
        key = AttemptKey(entry.sample_id, entry.target, entry.trial)
        outcome = outcome_of(graded.store, graded.grading, key)
        shown = conversation(outcome, lambda _: None, prefix=f"s{number + 1}-")
        more: dict[str, object] = {"alone": True, "number": number + 1, "run": graded.run, "trials": []}
        filled = rendered("conversation.html", {**shown, **more})
        aside.write(filled.decode())
        written += len(filled)
    return len(entries)


def _pieces(aside: IO[str]) -> Iterator[Markup]:
    """Yield the written text, piece by piece."""
    aside.seek(0)
    while piece := aside.read(_AT_ONCE):
        yield Markup(piece)


@cache
def _style() -> Style:
    text = "\n".join((STATIC / name).read_text("utf-8") for name in _STYLES)
    return Style(Markup(text), f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}")


@cache
def _icon() -> str:
    return f"data:image/svg+xml;base64,{b64encode((STATIC / 'mark.svg').read_bytes()).decode()}"
