"""Live views: the conversations of a job from its events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from vivavoce.records.run import AttemptKey, Run
from vivavoce.records.score import conversation_label
from vivavoce.safe_text import safe
from vivavoce.server.job_record import JobEvent, MessageNews
from vivavoce.server.jobs import Jobs
from vivavoce.server.pages.links import job_page, sample_page
from vivavoce.store.browse.listing import ScoreEntry
from vivavoce.store.runs.rows import SampleStatus, status_of, worst_of

PLACES = 24
"""Conversations on the page of a job at a time; a new one replaces the one that has been over longest."""

SPEAKERS: Mapping[str, str] = {"user": "User", "assistant": "Assistant", "tool": "Tool", "system": "System"}


@dataclass(slots=True)
class Conversation:
    """A running or just finished conversation; `messages` are its messages so far, `scores` its scores.

    `ended` is the id of the event of its end, 0 before that.
    """

    key: AttemptKey
    messages: list[tuple[int, MessageNews]] = field(default_factory=list[tuple[int, MessageNews]])
    scores: list[tuple[SampleStatus, ScoreEntry]] = field(default_factory=list[tuple[SampleStatus, ScoreEntry]])
    ended: int = 0
    link: str = ""

    @property
    def over(self) -> bool:
        """Whether it is over."""
        return self.ended > 0

    @property
    def name(self) -> str:
        """Its name: its sample, and the trial if there are several."""
        return safe(conversation_label(self.key.sample_id, self.key.trial))

    @property
    def state(self) -> SampleStatus:
        """The status of its scores."""
        return worst_of([state for state, _ in self.scores])


def conversations(news: Iterable[JobEvent], run: str | None, grading: str | None) -> list[Conversation]:
    """Return the conversations to show, in the order in which they started."""
    found: dict[AttemptKey, Conversation] = {}
    for event in news:
        if event.sample_id is None or event.target is None or event.trial is None:
            continue
        key = AttemptKey(event.sample_id, event.target, event.trial)
        one = found.setdefault(key, Conversation(key))
        if event.kind == "turn" and event.turn is not None:
            one.messages += [(event.turn, messages) for messages in event.messages]
        elif event.kind == "graded":
            one.ended = event.id
            one.scores = [(status_of(score.state, score.passed), score) for score in event.scores]
            if run is not None:
                one.link = sample_page(run, key.sample_id, trial=key.trial, target=key.target, grading=grading)
    return _choose_conversations(list(found.values()))


def _choose_conversations(conversations: Sequence[Conversation]) -> list[Conversation]:
    """Choose the running ones, then the most recently finished ones."""
    places = sorted(
        range(len(conversations)), key=lambda number: (conversations[number].over, -conversations[number].ended)
    )
    return [conversations[number] for number in sorted(places[:PLACES])]


def job_link(jobs: Jobs, run: Run) -> str | None:
    """Return the address of the job that is working on a run, if it is on this server."""
    working = jobs.at_work_on(run.id) if run.status == "running" else None
    return None if working is None else job_page(working.id)
