"""The labels of people on the page of a run: how many, and how far people and graders agree."""

from __future__ import annotations

from typing import NamedTuple

from vivavoce.extensions import Page, answers_of
from vivavoce.records.label import Label
from vivavoce.records.run import Grading
from vivavoce.report.label_agreement import labels_line
from vivavoce.server.pages.links import label_page
from vivavoce.store.labels.people import agreement_of_all
from vivavoce.store.store import Store

MOST = 2000
"""Labels of a run that its page reads."""


class LabelLine(NamedTuple):
    """The labels of one grader in words, and the page to label with, and what plugins link to.

    `more` says that there are labels it did not read.
    """

    text: str
    link: str
    more: bool
    links: tuple[Page, ...]


def label_lines(store: Store, grading: Grading) -> list[LabelLine]:
    """Return a line for each grader whose scores people labelled."""
    listed = store.labels.page(grading.run_id, limit=MOST)
    by_grader: dict[str, list[Label]] = {}
    for label in listed.labels:
        by_grader.setdefault(label.grader, []).append(label)
    link = label_page(run=grading.run_id)
    return [
        LabelLine(
            labels_line(name, some, agreement_of_all(store.labels.paired(grading, name))),
            link,
            listed.next is not None,
            tuple(answers_of(Page, "label_links", grading=grading, grader=name)),
        )
        for name, some in by_grader.items()
    ]
