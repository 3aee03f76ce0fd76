"""The methods of `Together` for sync code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, Unpack

from vivavoce.client.connection import each
from vivavoce.client.together import Place, QueueOptions, Together
from vivavoce.features.calibration.calibration import CalibrationReport
from vivavoce.features.forks.records import ListedFork
from vivavoce.features.forks.report import Forked
from vivavoce.features.groups.report import Grouped
from vivavoce.pacing.loops import LoopThread
from vivavoce.records.label import Calibration, Comment, Decision, DifferingLabels
from vivavoce.records.run import AttemptKey
from vivavoce.store.queues import AssignedQueue
from vivavoce.store.views import View
from vivavoce.store.webhooks import EVENTS, Delivery, Event, NewWebhook, Webhook
from vivavoce.validation import shows_options


class TogetherSync:
    """What people do together, as methods of `Client`."""

    _together: Together
    _loop: LoopThread

    def comments(self, run: str = "latest") -> Iterator[Comment]:
        """Yield the comments on conversations of a run, the oldest first."""
        return each(self._loop, self._together.comments(run))

    def comments_of(self, run: str, sample: str, trial: int = 0, *, target: str | None = None) -> list[Comment]:
        """Return the comments on a conversation and its turns, the oldest first."""
        return self._loop.run(self._together.comments_of(run, sample, trial, target=target))

    def comment(
        self, run: str, sample: str, text: str, *, trial: int = 0, target: str | None = None, turn: int | None = None
    ) -> Comment:
        """Comment on a conversation, or on a turn of it, counted from 0; `#t3` in the text refers to turn 3."""
        return self._loop.run(self._together.comment(run, sample, text, trial=trial, target=target, turn=turn))

    def resolve_comment(self, run: str, comment: int, *, resolved: bool = True) -> Comment:
        """Mark a comment as resolved, or as open again, and return it."""
        return self._loop.run(self._together.resolve_comment(run, comment, resolved=resolved))

    def remove_comment(self, run: str, comment: int) -> Comment:
        """Remove one's own comment, and return it; those of others need the role admin."""
        return self._loop.run(self._together.remove_comment(run, comment))

    def differing_labels(self, run: str = "latest", *, grader: str | None = None) -> list[DifferingLabels]:
        """Return the places where people say both pass and fail, with their labels, and what was decided."""
        return self._loop.run(self._together.differing_labels(run, grader=grader))

    @shows_options
    def decide(
        self,
        run: str,
        sample: str,
        verdict: Literal["pass", "fail"],
        note: str | None = None,
        **where: Unpack[Place],
    ) -> Decision:
        """Decide where labels of people differ; the judge is compared with that, and the labels stay."""
        return self._loop.run(self._together.decide(run, sample, verdict, note, **where))

    @shows_options
    def undecide(self, run: str, sample: str, **where: Unpack[Place]) -> Decision:
        """Take a decision back, and return it."""
        return self._loop.run(self._together.undecide(run, sample, **where))

    @shows_options
    def assign(self, run: str, people: Sequence[str], **options: Unpack[QueueOptions]) -> AssignedQueue:
        """Assign conversations of a run to people to label, by the names of their tokens."""
        return self._loop.run(self._together.assign(run, people, **options))

    def queues(self, *, run: str | None = None, person: str | None = None) -> list[AssignedQueue]:
        """Return the newest hundred queues that are assigned to people, with the progress of each, newest first."""
        return self._loop.run(self._together.queues(run=run, person=person))

    def queue(self, queue: str) -> AssignedQueue:
        """Return a queue with the progress of each person."""
        return self._loop.run(self._together.queue(queue))

    def queue_items(self, queue: str, person: str) -> list[AttemptKey]:
        """Return the conversations that somebody labels in a queue, in order."""
        return self._loop.run(self._together.queue_items(queue, person))

    def delete_queue(self, queue: str) -> AssignedQueue:
        """Delete a queue, and return it; labels stay."""
        return self._loop.run(self._together.delete_queue(queue))

    def groups(
        self,
        run: str = "latest",
        by: str = "tag",
        *,
        grader: str | None = None,
        pairs: str | None = None,
        filter: str = "",  # noqa: A002
    ) -> Grouped:
        """Return the conversations of a run in groups, and which groups differ from the others."""
        return self._loop.run(self._together.groups(run, by, grader=grader, pairs=pairs, filter=filter))

    def fork(self, run: str = "latest") -> Forked:
        """Return what a fork shows: how often its continuations succeeded by turn, and where the odds fell."""
        return self._loop.run(self._together.fork(run))

    def forks(self, run: str = "latest", *, sample: str | None = None) -> list[ListedFork]:
        """Return the forks of the conversations of a run, or of those of one sample, the oldest first."""
        return self._loop.run(self._together.forks(run, sample=sample))

    def calibration(self, run: str, grader: str, *, width: float = 0.1, kept: str | None = None) -> CalibrationReport:
        """Return how far a judge can be believed by the labels of a run; nothing is kept."""
        return self._loop.run(self._together.calibration(run, grader, width=width, kept=kept))

    def calibrations(self, run: str, *, grader: str | None = None) -> list[Calibration]:
        """Return the calibrations that were kept of the labels of a run, newest first."""
        return self._loop.run(self._together.calibrations(run, grader=grader))

    def calibrate(self, run: str, grader: str) -> CalibrationReport:
        """Keep the labels of a run as they are now, so that they correct the rates of a judge."""
        return self._loop.run(self._together.calibrate(run, grader))

    def views(self) -> list[View]:
        """Return one's own views and those that others share."""
        return self._loop.run(self._together.views())

    def save_view(self, name: str, path: str, *, shared: bool = False) -> View:
        """Keep a page such as `/runs/r1?filter=state:fail` under a name, in place of one's earlier one."""
        return self._loop.run(self._together.save_view(name, path, shared=shared))

    def remove_view(self, view: int) -> View:
        """Remove one's own view, and return it; those of others need the role admin."""
        return self._loop.run(self._together.remove_view(view))

    def webhooks(self) -> list[Webhook]:
        """Return the webhooks without their secrets; it needs the role admin."""
        return self._loop.run(self._together.webhooks())

    def add_webhook(self, url: str, events: Sequence[Event] = EVENTS) -> NewWebhook:
        """Have an address told of events; the answer has the secret that signs them, which is not shown again."""
        return self._loop.run(self._together.add_webhook(url, events))

    def deliveries(self, webhook: str) -> list[Delivery]:
        """Return the newest hundred deliveries of a webhook with their attempts, newest first."""
        return self._loop.run(self._together.deliveries(webhook))

    def remove_webhook(self, webhook: str) -> Webhook:
        """Remove a webhook with its deliveries, and return it."""
        return self._loop.run(self._together.remove_webhook(webhook))
