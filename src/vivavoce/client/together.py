"""The routes for what people do together: comments, decisions where labels differ, queues, views, and webhooks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Literal, TypedDict, Unpack
from urllib.parse import urlencode

from pydantic import TypeAdapter

from vivavoce.client.connection import Connection, parse_answer, part
from vivavoce.features.calibration.calibration import CalibrationReport
from vivavoce.features.forks.records import ListedFork
from vivavoce.features.forks.report import Forked
from vivavoce.features.groups.report import Grouped
from vivavoce.records.label import Calibration, Comment, Decision, DifferingLabels
from vivavoce.records.run import AttemptKey
from vivavoce.store.browse.listing import CommentPage
from vivavoce.store.queues import AssignedQueue, Selection
from vivavoce.store.views import View
from vivavoce.store.webhooks import EVENTS, Delivery, Event, NewWebhook, Webhook
from vivavoce.validation import shows_options

_COMMENTS = TypeAdapter(list[Comment])
_DIFFERING = TypeAdapter(list[DifferingLabels])
_QUEUES = TypeAdapter(list[AssignedQueue])
_CALIBRATIONS = TypeAdapter(list[Calibration])
_VIEWS = TypeAdapter(list[View])
_WEBHOOKS = TypeAdapter(list[Webhook])
_DELIVERIES = TypeAdapter(list[Delivery])
_KEYS = TypeAdapter(list[AttemptKey])
_FORKS = TypeAdapter(list[ListedFork])


class Place(TypedDict, total=False):
    """What a label is about besides its conversation."""

    trial: int
    """Which trial, from 0."""
    target: str | None
    """Whose answers; needed where the run has several targets."""
    turn: int | None
    """A turn, from 0; the whole conversation unless given."""
    grader: str | None
    """Whose question is answered."""


class Labelled(Place, total=False):
    """What a label is about, and where it is given."""

    queue: str | None
    """One's queue in which it is given: where that one is blind and drawn at random, rates are estimated from it."""


class QueueOptions(TypedDict, total=False):
    """How a queue is dealt."""

    grader: str
    """Whose question is answered; empty for none."""
    overlap: int
    """How many people label each conversation; 1 unless given."""
    size: int
    """How many conversations; 50 unless given."""
    selection: Selection
    """At `random`, `weighted` for more of those that tell most, or with `disagreement` the uncertain ones first."""
    seed: int
    """What decides a random order; 1 unless given."""
    blind: bool
    """Whether the run and the score of the judge are hidden; they are unless it is false."""


class Together(Connection):
    """What people do together, as methods of `AsyncClient`."""

    def comments(self, run: str = "latest") -> AsyncGenerator[Comment]:
        """Yield the comments on conversations of a run, the oldest first, a page at a time.

        Raises:
            UsageError: there is no such run.
        """
        return self._pages(f"/runs/{part(run)}/comments", {}, CommentPage, lambda page: page.comments)

    async def comments_of(self, run: str, sample: str, trial: int = 0, *, target: str | None = None) -> list[Comment]:
        """Return the comments on a conversation and its turns, the oldest first.

        Raises:
            NotFound: there is no such conversation.
        """
        path = _comments_at(run, sample, trial, target=target)
        return _COMMENTS.validate_json((await self._send("GET", path)).body)

    async def comment(
        self, run: str, sample: str, text: str, *, trial: int = 0, target: str | None = None, turn: int | None = None
    ) -> Comment:
        """Comment on a conversation, or on a turn of it, counted from 0; `#t3` in the text refers to turn 3.

        Raises:
            UsageError: there is no such conversation, or there are several targets and none is named.
        """
        path = _comments_at(run, sample, trial, target=target, turn=turn)
        return parse_answer(Comment, (await self._send("POST", path, {"text": text})).body)

    async def resolve_comment(self, run: str, comment: int, *, resolved: bool = True) -> Comment:
        """Mark a comment as resolved, or as open again, and return it.

        Raises:
            NotFound: the run has no such comment.
        """
        path = f"/runs/{part(run)}/comments/{comment}"
        return parse_answer(Comment, (await self._send("PUT", path, {"resolved": resolved})).body)

    async def remove_comment(self, run: str, comment: int) -> Comment:
        """Remove one's own comment, and return it; those of others need the role admin.

        Raises:
            NotFound: the run has no such comment.
            UsageError: it is somebody else's.
        """
        return parse_answer(Comment, (await self._send("DELETE", f"/runs/{part(run)}/comments/{comment}")).body)

    async def differing_labels(self, run: str = "latest", *, grader: str | None = None) -> list[DifferingLabels]:
        """Return the places where people say both pass and fail, with their labels, and what was decided.

        Raises:
            UsageError: there is no such run.
        """
        path = f"/runs/{part(run)}/labels/differing?{_encode_query(grader=grader)}"
        return _DIFFERING.validate_json((await self._send("GET", path)).body)

    @shows_options
    async def decide(
        self,
        run: str,
        sample: str,
        verdict: Literal["pass", "fail"],
        note: str | None = None,
        **where: Unpack[Place],
    ) -> Decision:
        """Decide where labels of people differ; the judge is compared with that, and the labels stay.

        Raises:
            UsageError: there is no such conversation, or no two people say pass and fail there.
        """
        body = {"verdict": verdict, "note": note}
        return parse_answer(Decision, (await self._send("PUT", _decision_at(run, sample, **where), body)).body)

    @shows_options
    async def undecide(self, run: str, sample: str, **where: Unpack[Place]) -> Decision:
        """Take a decision back, and return it.

        Raises:
            UsageError: nothing is decided there.
        """
        return parse_answer(Decision, (await self._send("DELETE", _decision_at(run, sample, **where))).body)

    @shows_options
    async def assign(self, run: str, people: Sequence[str], **options: Unpack[QueueOptions]) -> AssignedQueue:
        """Assign conversations of a run to people to label, by the names of their tokens.

        Raises:
            UsageError: there is no such run or grader, or it cannot be dealt so.
        """
        body = {"run": run, "people": list(people), **options}
        return parse_answer(AssignedQueue, (await self._send("POST", "/label-queues", body)).body)

    async def queues(self, *, run: str | None = None, person: str | None = None) -> list[AssignedQueue]:
        """Return the newest hundred queues that are assigned to people, with the progress of each, newest first."""
        return _QUEUES.validate_json(
            (await self._send("GET", f"/label-queues?{_encode_query(run=run, person=person)}")).body
        )

    async def queue(self, queue: str) -> AssignedQueue:
        """Return a queue with the progress of each person.

        Raises:
            NotFound: there is no such queue.
        """
        return await self._get(f"/label-queues/{part(queue)}", {}, AssignedQueue)

    async def queue_items(self, queue: str, person: str) -> list[AttemptKey]:
        """Return the conversations that somebody labels in a queue, in order.

        Raises:
            NotFound: there is no such queue.
        """
        path = f"/label-queues/{part(queue)}/items?{_encode_query(person=person)}"
        return _KEYS.validate_json((await self._send("GET", path)).body)

    async def delete_queue(self, queue: str) -> AssignedQueue:
        """Delete a queue, and return it; labels stay.

        Raises:
            NotFound: there is no such queue.
        """
        return parse_answer(AssignedQueue, (await self._send("DELETE", f"/label-queues/{part(queue)}")).body)

    async def groups(
        self,
        run: str = "latest",
        by: str = "tag",
        *,
        grader: str | None = None,
        pairs: str | None = None,
        filter: str = "",  # noqa: A002
    ) -> Grouped:
        """Return the conversations of a run in groups, and which groups differ from the others.

        They are by `tag`, `target`, `trial`, `persona`, or a field such as `metadata.language`. Samples with the same
        value of `pairs`, a field, are variants of one case.

        Raises:
            UsageError: there is no such run, grader or field, or the filter cannot be read.
        """
        query = _encode_query(by=by, grader=grader, pairs=pairs, filter=filter)
        return parse_answer(Grouped, (await self._send("GET", f"/runs/{part(run)}/groups?{query}")).body)

    async def fork(self, run: str = "latest") -> Forked:
        """Return what a fork shows: how often its continuations succeeded by turn, and where the odds fell.

        Raises:
            UsageError: there is no such run, or it is not a fork.
        """
        return parse_answer(Forked, (await self._send("GET", f"/runs/{part(run)}/fork")).body)

    async def forks(self, run: str = "latest", *, sample: str | None = None) -> list[ListedFork]:
        """Return the forks of the conversations of a run, or of those of one sample, the oldest first.

        Raises:
            NotFound: there is no such run.
        """
        return _FORKS.validate_json(
            (await self._send("GET", f"/runs/{part(run)}/forks?{_encode_query(sample=sample)}")).body
        )

    async def calibration(
        self, run: str, grader: str, *, width: float = 0.1, kept: str | None = None
    ) -> CalibrationReport:
        """Return how far a judge can be believed by the labels of a run; nothing is kept.

        `width` is how wide the 95% interval of the rate may be. `kept` is the id of a kept calibration to show;
        without one it is that of the labels as they are now, or where there are none the newest kept one of the judge.

        Raises:
            UsageError: there is no such run or grader.
        """
        path = f"/runs/{part(run)}/calibration?{_encode_query(grader=grader, width=str(width), kept=kept)}"
        return parse_answer(CalibrationReport, (await self._send("GET", path)).body)

    async def calibrations(self, run: str, *, grader: str | None = None) -> list[Calibration]:
        """Return the calibrations that were kept of the labels of a run, newest first.

        Raises:
            UsageError: there is no such run.
        """
        path = f"/runs/{part(run)}/calibrations?{_encode_query(grader=grader)}"
        return _CALIBRATIONS.validate_json((await self._send("GET", path)).body)

    async def calibrate(self, run: str, grader: str) -> CalibrationReport:
        """Keep the labels of a run as they are now, so that they correct the rates of a judge.

        Raises:
            UsageError: there is no such run or grader, or no label is of a conversation that was drawn at random.
        """
        body = {"grader": grader}
        return parse_answer(CalibrationReport, (await self._send("POST", f"/runs/{part(run)}/calibrations", body)).body)

    async def views(self) -> list[View]:
        """Return one's own views and those that others share."""
        return _VIEWS.validate_json((await self._send("GET", "/views")).body)

    async def save_view(self, name: str, path: str, *, shared: bool = False) -> View:
        """Keep a page such as `/runs/r1?filter=state:fail` under a name, in place of one's earlier view of that name.

        Raises:
            UsageError: the name or the address is not one that can be kept.
        """
        body = {"name": name, "path": path, "shared": shared}
        return parse_answer(View, (await self._send("POST", "/views", body)).body)

    async def remove_view(self, view: int) -> View:
        """Remove one's own view, and return it; those of others need the role admin.

        Raises:
            NotFound: there is no such view.
        """
        return parse_answer(View, (await self._send("DELETE", f"/views/{view}")).body)

    async def webhooks(self) -> list[Webhook]:
        """Return the webhooks without their secrets; it needs the role admin."""
        return _WEBHOOKS.validate_json((await self._send("GET", "/webhooks")).body)

    async def add_webhook(self, url: str, events: Sequence[Event] = EVENTS) -> NewWebhook:
        """Have an address told of events; the answer has the secret that signs them, which is not shown again.

        Raises:
            UsageError: the address may not be called, or the role admin is missing.
        """
        body = {"url": url, "events": list(events)}
        return parse_answer(NewWebhook, (await self._send("POST", "/webhooks", body)).body)

    async def deliveries(self, webhook: str) -> list[Delivery]:
        """Return the newest hundred deliveries of a webhook with their attempts, newest first.

        Raises:
            NotFound: there is no such webhook.
        """
        return _DELIVERIES.validate_json((await self._send("GET", f"/webhooks/{part(webhook)}/deliveries")).body)

    async def remove_webhook(self, webhook: str) -> Webhook:
        """Remove a webhook with its deliveries, and return it.

        Raises:
            NotFound: there is no such webhook.
        """
        return parse_answer(Webhook, (await self._send("DELETE", f"/webhooks/{part(webhook)}")).body)


def _comments_at(run: str, sample: str, trial: int, **query: object) -> str:
    return f"/runs/{part(run)}/samples/{part(sample)}/{trial}/comments?{_encode_query(**query)}"


def _decision_at(run: str, sample: str, **where: Unpack[Place]) -> str:
    trial = where.pop("trial", 0)
    return f"/runs/{part(run)}/samples/{part(sample)}/{trial}/decision?{_encode_query(**where)}"


def _encode_query(**query: object) -> str:
    return urlencode({name: value for name, value in query.items() if value is not None}, errors="replace")
