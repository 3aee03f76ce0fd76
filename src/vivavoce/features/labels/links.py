"""The addresses of pages to label conversations, to assign them, and to decide where people differ."""

from __future__ import annotations

from vivavoce.records.run import AttemptKey
from vivavoce.records.score import to_number
from vivavoce.server.pages.links import Value, address, number_query


def label_page(**query: Value) -> str:
    """Return the address of the page to choose a run and a grader, or to start labelling them."""
    return address("label", **query)


def label_item(queue: str, place: int | None, turn: int | None = None) -> str:
    """Return the address of a place in a queue of conversations to label, counted from 1; without one, of its end."""
    return address("label", queue, "end" if place is None else str(place), **number_query(None, turn))


def differing_page(**query: Value) -> str:
    """Return the address of the places of a run where labels of people differ."""
    return address("label", "differing", **query)


def decide_page(run: str, key: AttemptKey, **query: Value) -> str:
    """Return the address of the page to decide about a place where labels of people differ."""
    place = {"run": run, "sample": key.sample_id, "target": key.target, "trial": to_number(key.trial)}
    return address("label", "decide", **{**place, **query})


def assign_page(**query: Value) -> str:
    """Return the address of the page to assign conversations of a run to people."""
    return address("label", "assign", **query)


def queue_page(queue: str) -> str:
    """Return the address of a queue that is assigned to people."""
    return address("label-queues", queue)
