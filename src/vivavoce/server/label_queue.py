"""Queues of conversations to label, in the memory of the server: an address has a queue and a place in it, not a run.

A queue is lost when the server stops; its labels are in the store, and a new queue continues from there. A queue that
was assigned to people is in the store.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from vivavoce.errors import NotFound
from vivavoce.records.label import Label
from vivavoce.records.run import AttemptKey, Grading
from vivavoce.store.labels.order import MOST
from vivavoce.store.labels.queues import Selection
from vivavoce.store.store import Store

HELD = 200
"""Queues that are kept; beyond that, the least recently used one is dropped."""

Order = Selection


@dataclass(frozen=True, slots=True)
class LabelTask:
    """The task of a queue: the question of one grader of a run, the author of the labels, and the order.

    `blind` hides the run and the score of the judge until the answer is saved; `seed` decides a random order.
    """

    grading: Grading
    grader: str
    author: str
    order: Order
    seed: int
    blind: bool


@dataclass(frozen=True, slots=True)
class LabelQueue:
    """The conversations of a queue, those first that its author had labelled before it began."""

    id: str
    task: LabelTask
    items: Sequence[AttemptKey]

    def following(self, place: int, labels: dict[AttemptKey, Label]) -> int | None:
        """Return the next unlabelled place, counted from 1; after the last one, search from the beginning."""
        places = [*range(place, len(self.items)), *range(min(place, len(self.items)))]
        return next((at + 1 for at in places if self.items[at] not in labels), None)


@dataclass(slots=True)
class LabelQueues:
    """The queues of a server; safe for use from any thread."""

    _queues: OrderedDict[str, LabelQueue] = field(default_factory=OrderedDict[str, LabelQueue])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, store: Store, task: LabelTask) -> LabelQueue:
        """Put conversations in order, and keep the queue."""
        queue = LabelQueue(secrets.token_urlsafe(9), task, _items(store, task))
        with self._lock:
            self._queues[queue.id] = queue
            while len(self._queues) > HELD:
                self._queues.popitem(last=False)
        return queue

    def find(self, store: Store, queue_id: str, author: str) -> LabelQueue:
        """Return a queue of somebody: one that they began on this server, or one that was assigned to them.

        Raises:
            UsageError: there is none.
        """
        with self._lock:
            found = self._queues.get(queue_id)
            if found is not None and found.task.author == author:
                self._queues.move_to_end(queue_id)
                return found
        assigned = store.queues.items(queue_id, author)
        if not assigned:
            raise NotFound(
                "queue",
                queue_id,
                message="this queue no longer exists (the server was restarted, or it is another user's); "
                "choose the run again to continue",
            )
        kept = store.queues.get(queue_id)
        grading = store.grading(kept.run_id, kept.grading_id)
        task = LabelTask(grading, kept.grader, author, kept.selection, kept.seed, kept.blind)
        return LabelQueue(queue_id, task, assigned)


def labels_of_task(store: Store, task: LabelTask) -> dict[AttemptKey, Label]:
    """Return the labels of the author for whole conversations, oldest first."""
    labels = store.labels.all(task.grading.run_id, grader=task.grader, author=task.author)
    return {one.key: one for one in sorted(labels, key=lambda one: one.created_at) if one.turn is None}


def _items(store: Store, task: LabelTask) -> list[AttemptKey]:
    labels = labels_of_task(store, task)
    if task.order == "random" or not task.grader:
        rest = store.labels.at_random(task.grading, task.grader, task.seed, MOST + len(labels))
        return [*dict.fromkeys([*labels, *rest])]
    others = store.labels.paired(task.grading, task.grader)
    doubted = store.labels.in_doubt(task.grading, task.grader, MOST + len(labels))
    disputed = [one.label.key for one in others if one.differs]
    return [*dict.fromkeys([*labels, *disputed, *doubted])]
