"""Queues of conversations to label, in the memory of the server: an address names a queue and a place in it, no run.

A queue is lost when the server stops; what was said in it is in the store, and a new queue goes on from there.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from vivavoce.errors import NotFound
from vivavoce.records.label import Label
from vivavoce.records.run import AttemptKey, Grading
from vivavoce.store.labels.order import MOST
from vivavoce.store.store import Store

HELD = 200
"""Queues that are kept; of more, the one that was not used for longest goes."""

Order = Literal["disagreement", "random"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a queue is about: the question of one grader of a run, who answers it, and in which order.

    `blind` hides the run and what the judge says until the answer is given; `seed` decides a random order.
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
    asked: Asked
    items: Sequence[AttemptKey]

    def following(self, place: int, said: dict[AttemptKey, Label]) -> int | None:
        """Return the next place, counted from 1, where nothing is said yet; after the last one, from the beginning."""
        places = [*range(place, len(self.items)), *range(min(place, len(self.items)))]
        return next((at + 1 for at in places if self.items[at] not in said), None)


@dataclass(slots=True)
class LabelQueues:
    """The queues of a server; any thread may use them."""

    _queues: OrderedDict[str, LabelQueue] = field(default_factory=OrderedDict[str, LabelQueue])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, store: Store, asked: Asked) -> LabelQueue:
        """Put conversations in order, and keep the queue."""
        queue = LabelQueue(secrets.token_urlsafe(9), asked, _items(store, asked))
        with self._lock:
            self._queues[queue.id] = queue
            while len(self._queues) > HELD:
                self._queues.popitem(last=False)
        return queue

    def find(self, queue_id: str, author: str) -> LabelQueue:
        """Return a queue of somebody.

        Raises:
            UsageError: there is none.
        """
        with self._lock:
            found = self._queues.get(queue_id)
            if found is None or found.asked.author != author:
                raise NotFound(
                    "queue",
                    queue_id,
                    message="this queue is over, as the server was started again or it is another's; "
                    "choose the run once more, and it goes on where it was",
                )
            self._queues.move_to_end(queue_id)
        return found


def said_in(store: Store, asked: Asked) -> dict[AttemptKey, Label]:
    """Return what the author of a queue has said of whole conversations, in the order of time."""
    said = store.labels.all(asked.grading.run_id, grader=asked.grader, author=asked.author)
    return {one.key: one for one in sorted(said, key=lambda one: one.created_at) if one.turn is None}


def _items(store: Store, asked: Asked) -> list[AttemptKey]:
    said = said_in(store, asked)
    if asked.order == "random" or not asked.grader:
        rest = store.labels.at_random(asked.grading, asked.grader, asked.seed, MOST + len(said))
        return [*dict.fromkeys([*said, *rest])]
    others = store.labels.paired(asked.grading, asked.grader)
    doubted = store.labels.in_doubt(asked.grading, asked.grader, MOST + len(said))
    disputed = [one.label.key for one in others if one.differs]
    return [*dict.fromkeys([*said, *disputed, *doubted])]
