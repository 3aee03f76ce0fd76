"""Queues of conversations to label, kept in the store: an address has a queue and a place in it, not a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from vivavoce.records.label import Label
from vivavoce.records.run import AttemptKey, Grading
from vivavoce.store.queues import MOST, QueuePlan, Selection
from vivavoce.store.store import Store

Order = Literal["disagreement", "random"]
"""The orders of a queue that somebody begins for themselves."""


@dataclass(frozen=True, slots=True)
class LabelTask:
    """The task of a queue: the question of one grader of a run, the author of the labels, and the order.

    `blind` hides the run and the score of the judge until the answer is saved; `seed` decides a random order.
    """

    grading: Grading
    grader: str
    author: str
    order: Selection
    seed: int
    blind: bool


@dataclass(frozen=True, slots=True)
class LabelQueue:
    """The conversations of a queue.

    Those that its author had labelled before it began come first, except in a blind queue in random order: there they
    keep the place at which they were drawn.
    """

    id: str
    task: LabelTask
    items: Sequence[AttemptKey]

    def following(self, place: int, labels: Mapping[AttemptKey, Label]) -> int | None:
        """Return the next unlabelled place, counted from 1; after the last one, search from the beginning."""
        places = [*range(place, len(self.items)), *range(min(place, len(self.items)))]
        return next((at + 1 for at in places if self.items[at] not in labels), None)


def begin_queue(store: Store, task: LabelTask) -> LabelQueue:
    """Put conversations in order, and keep the queue in the store.

    Raises:
        UsageError: no conversation has a score.
        StoreError: the store cannot be written.
    """
    plan = QueuePlan(task.grader, [task.author], selection=task.order, seed=task.seed, blind=task.blind)
    stored_queue = store.queues.begin(task.grading, plan, _items(store, task))
    return LabelQueue(stored_queue.id, task, stored_queue.items)


def find_queue(store: Store, queue_id: str, author: str) -> LabelQueue:
    """Return a queue of somebody: one that they began, or one that was assigned to them.

    Raises:
        UsageError: there is none.
    """
    assigned = store.queues.of(queue_id, author)
    grading = store.grading(assigned.run_id, assigned.grading_id)
    task = LabelTask(grading, assigned.grader, author, assigned.selection, assigned.seed, assigned.blind)
    return LabelQueue(queue_id, task, assigned.items)


def labels_of_task(store: Store, task: LabelTask) -> dict[AttemptKey, Label]:
    """Return the labels of the author for whole conversations, oldest first."""
    labels = store.labels.all(task.grading.run_id, grader=task.grader, author=task.author)
    return {label.key: label for label in sorted(labels, key=lambda label: label.created_at) if label.turn is None}


def _items(store: Store, task: LabelTask) -> list[AttemptKey]:
    labels = labels_of_task(store, task)
    if task.order == "random" or not task.grader:
        random_keys = store.labels.at_random(task.grading, task.grader, task.seed, MOST + len(labels))
        return random_keys if task.blind else [*dict.fromkeys([*labels, *random_keys])]
    others = store.labels.paired(task.grading, task.grader)
    doubted = store.labels.in_doubt(task.grading, task.grader, MOST + len(labels))
    disputed = [other.label.key for other in others if other.differs]
    return [*dict.fromkeys([*labels, *disputed, *doubted])]
