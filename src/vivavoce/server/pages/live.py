"""Work under way as a page shows it: the conversations of a job, as its news tell them, and runs that were left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from vivavoce.records.counting import conversation_label
from vivavoce.records.run import AttemptKey, Run
from vivavoce.safe_text import safe
from vivavoce.server.job_record import JobEvent, Said
from vivavoce.server.jobs import Jobs
from vivavoce.server.pages.links import job_page, sample_page
from vivavoce.store.browse.listing import RunEntry, ScoreEntry
from vivavoce.store.browse.status import SampleStatus, status_of, worst_of
from vivavoce.store.store import Store

PLACES = 24
"""Conversations on the page of a job at a time; one that begins takes the place of one that has been over longest."""

SPEAKERS: Mapping[str, str] = {"user": "User", "assistant": "Assistant", "tool": "Tool", "system": "System"}

R = TypeVar("R", Run, RunEntry)


@dataclass(slots=True)
class Conversation:
    """One that is being held, or was a moment ago; `said` are its messages so far, `scores` what became of it.

    `ended` is the event that told so, 0 before that.
    """

    key: AttemptKey
    said: list[tuple[int, Said]] = field(default_factory=list[tuple[int, Said]])
    scores: list[tuple[SampleStatus, ScoreEntry]] = field(default_factory=list[tuple[SampleStatus, ScoreEntry]])
    ended: int = 0
    link: str = ""

    @property
    def over(self) -> bool:
        """Whether nothing more is said in it."""
        return self.ended > 0

    @property
    def name(self) -> str:
        """What it is called: its sample, and which trial of it where there are several."""
        return safe(conversation_label(self.key.sample_id, self.key.trial))

    @property
    def state(self) -> SampleStatus:
        """What its scores amount to."""
        return worst_of([state for state, _ in self.scores])


def conversations(news: Iterable[JobEvent], run: str | None, grading: str | None) -> list[Conversation]:
    """Return the conversations that a page has places for, in the order in which they began."""
    found: dict[AttemptKey, Conversation] = {}
    for event in news:
        if event.sample_id is None or event.target is None or event.trial is None:
            continue
        key = AttemptKey(event.sample_id, event.target, event.trial)
        one = found.setdefault(key, Conversation(key))
        if event.kind == "turn" and event.turn is not None:
            one.said += [(event.turn, said) for said in event.messages]
        elif event.kind == "graded":
            one.ended = event.id
            one.scores = [(status_of(score.state, score.passed), score) for score in event.scores]
            if run is not None:
                one.link = sample_page(run, key.sample_id, trial=key.trial, target=key.target, grading=grading)
    return _placed(list(found.values()))


def _placed(found: Sequence[Conversation]) -> list[Conversation]:
    """Choose those that are being held, then those that were over last."""
    places = sorted(range(len(found)), key=lambda number: (found[number].over, -found[number].ended))
    return [found[number] for number in sorted(places[:PLACES])]


def job_link(jobs: Jobs, run: Run) -> str | None:
    """Return the address of the job that works on a run, where it is one of this server."""
    working = jobs.at_work_on(run.id) if run.status == "running" else None
    return None if working is None else job_page(working.id)


def as_it_stands(store: Store, run: R) -> R:
    """Return a run as it is: one that was killed says that it is running, and nobody works on it."""
    if run.status != "running" or store.held(run.id):
        return run
    return run.model_copy(update={"status": "interrupted"})
