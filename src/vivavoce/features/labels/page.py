"""Labelling: people answer the question of a grader, one conversation after the other, next to the judge or blind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from vivavoce.errors import NotFound, UsageError
from vivavoce.extensions import Page, PageLine, PagePart, answers_of
from vivavoce.features.labels.agreement import labels_line
from vivavoce.features.labels.labelling import (
    VERDICTS,
    HumanLabel,
    Question,
    agreement_shown,
    human_label,
    human_labels,
    progress,
    question,
    questions,
)
from vivavoce.features.labels.links import assign_page, differing_page, label_item, label_page, queue_page
from vivavoce.features.labels.queues import LabelQueue, LabelTask, Order, begin_queue, find_queue, labels_of_task
from vivavoce.records.label import Label
from vivavoce.records.run import AttemptKey, Grading, Outcome, Run
from vivavoce.records.score import to_index, to_number
from vivavoce.report.graded_run import require_grader
from vivavoce.report.html.conversation import conversation
from vivavoce.report.html.evidence import Register
from vivavoce.report.html.score_notes import ScoreNote, whole_notes
from vivavoce.report.html.transcript import Showing
from vivavoce.report.label_agreement import agreement_of_all, people_agreement, people_lines
from vivavoce.server.pages.forms import Form, form_key, index_of
from vivavoce.server.pages.links import FirstTurn, sample_page
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.state import store_of
from vivavoce.server.users import user_of
from vivavoce.store.labels import LabelPlace, agreement_with, now_label
from vivavoce.store.queues import AssignedQueue, PersonProgress
from vivavoce.store.store import Store

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_BLIND = Showing(inline=("image",))
"""No address of a picture says which run it is from; a page of this server plays no sound that is written into it."""
PAGE_SIZE = 20
"""Runs to choose from on one page."""
MOST_SEEDS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Choice:
    """A run to choose, with the questions of its graders, and the number of the user's labels for each."""

    run: str
    suite: str
    at: float
    questions: list[tuple[Question, int, str, str]]
    differing: str
    assign: str


@router.get("/label")
def choose(
    request: Request,
    run: str | None = None,
    grader: str | None = None,
    blind: bool = False,
    order: Order | None = None,
    seed: Annotated[int, Query(ge=0, le=MOST_SEEDS)] = 1,
    after: str | None = None,
) -> Response:
    """Offer runs and their graders; for a chosen pair, create a queue and go to its first conversation."""
    store = store_of(request)
    if run is None or grader is None:
        return page("label_choice.html", _choices(request, run, after))
    scores = store.grading(store.run(run).id)
    if grader:
        require_grader(grader, scores)
    user = user_of(request)
    if not user.may("write"):
        raise HTTPException(403, "labelling needs the role write")
    task = LabelTask(scores, grader, user.name, order or ("random" if blind else "disagreement"), seed, blind)
    queue = begin_queue(store, task)
    return RedirectResponse(label_item(queue.id, queue.following(0, labels_of_task(store, task))), 303)


@router.get("/label/{queue}/end")
def end(request: Request, queue: str) -> Response:
    """Show that everything in a queue is labelled, and the result."""
    stored_queue = find_queue(store_of(request), queue, user_of(request).name)
    return page("label.html", _around(request, stored_queue, 0, labels_of_task(store_of(request), stored_queue.task)))


@router.get("/label/{queue}/{place}")
def item(request: Request, queue: str, place: int, first: FirstTurn = 1) -> Response:
    """Show one conversation of a queue and the question; a blind queue hides the score of the judge."""
    label_queue, key = _at(request, queue, place)
    labels = labels_of_task(store_of(request), label_queue.task)
    outcome = _outcome(store_of(request), label_queue.task, key)
    label = labels.get(key)
    hidden = label_queue.task.blind and label is None
    bare = Outcome(attempt=outcome.attempt, scores={})
    values = {
        **conversation(bare, lambda turn: label_item(label_queue.id, place, turn), to_index(first), showing=_BLIND),
        **_around(request, label_queue, place, labels),
        "now": label,
        "judge": None if hidden else _judge(outcome, label_queue.task.grader),
        "hand": None if label is None else human_label(label, outcome.scores.get(label.grader)),
        "whole": None if hidden else _page_of(label_queue.task.grading.run_id, key),
        "skip": label_item(label_queue.id, label_queue.following(place, labels)),
    }
    return page("label.html", values)


@router.post("/label/{queue}/{place}")
def save_label(request: Request, queue: str, place: int, form: Form) -> Response:
    """Save a label and go to the next conversation, or remove one and return to it."""
    label_queue, key = _at(request, queue, place)
    store, task = store_of(request), label_queue.task
    stands = LabelPlace(task.grading.run_id, key, None, task.grader, task.author)
    if form.get("action") == "undo":
        store.labels.remove(stands)
        return RedirectResponse(label_item(label_queue.id, place), 303)
    before = labels_of_task(store, task).get(key)
    blind = task.blind if before is None else before.blind and task.blind
    store.labels.set(task.grading.run_id, _label(stands, form, blind=blind), queue=label_queue.id)
    return RedirectResponse(label_item(label_queue.id, label_queue.following(place, labels_of_task(store, task))), 303)


@router.post("/label")
def save_label_beside(request: Request, form: Form) -> Response:
    """Save or remove a label on the page of a conversation, and return there."""
    store = store_of(request)
    key = AttemptKey(form.get("sample", ""), form.get("target", ""), index_of(form.get("trial", "1")))
    turn = index_of(form["turn"]) if form.get("turn") else None
    stands = LabelPlace(store.run(form.get("run", "")).id, key, turn, form.get("grader", ""), user_of(request).name)
    if form.get("action") == "undo":
        store.labels.remove(stands)
    else:
        store.labels.set(stands.run_id, _label(stands, form, blind=False))
    part, anchor = (None, "human-label") if turn is None else (turn or None, f"t{to_number(turn)}")
    return RedirectResponse(f"{_page_of(stands.run_id, key, part)}#{anchor}", 303)


MAX_LABELS_READ = 2000
"""Labels of a run that its page reads."""


def lines_of_run(store: Store, grading: Grading) -> list[PageLine]:
    """Return a line for each grader whose scores people labelled, with links to label more and to what plugins add."""
    label_page_of_run = store.labels.page(grading.run_id, limit=MAX_LABELS_READ)
    by_grader: dict[str, list[Label]] = {}
    for label in label_page_of_run.labels:
        by_grader.setdefault(label.grader, []).append(label)
    more = "" if label_page_of_run.next is None else f", of the first {MAX_LABELS_READ:,}"
    link = Page("Label", label_page(run=grading.run_id))
    return [
        PageLine(
            labels_line(name, some, agreement_of_all(store.labels.paired(grading, name))) + more,
            (link, *answers_of(Page, "label_links", grading=grading, grader=name)),
        )
        for name, some in by_grader.items()
    ]


def ways_to_label(run: str, grader: str) -> list[Page]:
    """Return links to label conversations of a run so that rates can be estimated."""
    blind = label_page(run=run, grader=grader, blind=1, seed=1)
    return [Page("Label blind, at random", blind), Page("Assign to people", assign_page(run=run, grader=grader))]


def parts_of_conversation(request: Request, run: Run, outcome: Outcome) -> list[PagePart]:
    """Return the labels of a conversation and the form for one's own."""
    return [PagePart("conversation_labels.html", _labelling(request, run, outcome))]


def _labelling(request: Request, run: Run, outcome: Outcome) -> dict[str, object]:
    key, user = outcome.attempt.key, user_of(request)
    labels = store_of(request).labels.of(run.id, key)
    return {
        "labels": human_labels(labels, outcome),
        "labelled": any(label.author == user.name for label in labels),
        "graders": list(outcome.scores),
        "key": key,
        "run": run.id,
        "author": user.name,
        "form_key": form_key(request) if user.may("write") else None,
        "verdicts": VERDICTS,
        "queue": label_page(run=run.id),
    }


def _choices(request: Request, run: str | None, after: str | None) -> dict[str, object]:
    store, user = store_of(request), user_of(request).name
    run_list = store.browse.runs(after, PAGE_SIZE) if run is None else None
    ids = (
        [run_entry.id for run_entry in run_list.runs if run_entry.grading]
        if run_list
        else [store.grading(store.run(run or "").id).run_id]
    )
    label_counts = store.labels.labelled(user)
    choices = [
        _choice(graded_run.run, graded_run.grading, label_counts)
        for graded_run in store.series.graded_runs(ids)
        if graded_run.grading
    ]
    return {
        "section": "label",
        "choices": sorted(
            choices, key=lambda choice: not any(question_item.judged for question_item, *_ in choice.questions)
        ),
        "author": user,
        "queues": [_mine(label_queue, user) for label_queue in store.queues.all(person=user)],
        "chosen": run is not None,
        "next_page": label_page(after=run_list.next) if run_list and run_list.next else None,
        "every": label_page() if run is not None or after else None,
    }


def _mine(queue: AssignedQueue, user: str) -> tuple[AssignedQueue, PersonProgress, str]:
    """Return a queue with one's own progress, and the address of everybody's."""
    return queue, next(person for person in queue.people if person.person == user), queue_page(queue.id)


def _choice(run: Run, grading: Grading, label_counts: Mapping[tuple[str, str], int]) -> Choice:
    every = [*questions(grading), question(grading, "")]
    entries = [
        (
            question_item,
            label_counts.get((run.id, question_item.grader), 0),
            label_page(run=run.id, grader=question_item.grader),
            label_page(run=run.id, grader=question_item.grader, blind=1, seed=1),
        )
        for question_item in every
    ]
    return Choice(run.id, run.suite, run.started_at, entries, differing_page(run=run.id), assign_page(run=run.id))


def _around(request: Request, queue: LabelQueue, place: int, labels: dict[AttemptKey, Label]) -> dict[str, object]:
    """Return what a page of a queue shows apart from the conversation."""
    task = queue.task
    places = {key: at for at, key in enumerate(queue.items, 1)}
    show_agreement = bool(task.grader) and not (task.blind and place)  # it would tell the score of the item before
    pairs = store_of(request).labels.paired(task.grading, task.grader, author=task.author) if show_agreement else []

    def link(label: Label) -> str | None:
        return label_item(queue.id, places[label.key]) if label.key in places else None

    last = max((at for at in places if at in labels), key=lambda key: labels[key].created_at, default=None)
    return {
        "section": "label",
        "queue": queue,
        "question": question(task.grading, task.grader),
        "verdicts": VERDICTS,
        "progress": progress(queue.items, labels, place),
        "agreement": agreement_shown(agreement_with(pairs), link) if show_agreement else None,
        "people": None if place else list(people_lines(people_agreement(_labels_of_all(request, task)))),
        "last": None if last is None else _last(request, queue, places[last], labels[last]),
        "here": label_item(queue.id, place or None),
        "form_key": form_key(request),
        "place": place,
    }


def _labels_of_all(request: Request, task: LabelTask) -> list[Label]:
    """Return what everybody says of whole conversations for the grader of a queue."""
    labels = store_of(request).labels.all(task.grading.run_id, grader=task.grader)
    return [label for label in labels if label.turn is None]


def _last(request: Request, queue: LabelQueue, place: int, label: Label) -> tuple[int, str, HumanLabel]:
    """Return the item that was labelled last: its place, address, and label next to the judge's score."""
    outcome = _outcome(store_of(request), queue.task, label.key)
    return place, label_item(queue.id, place), human_label(label, outcome.scores.get(label.grader))


def _judge(outcome: Outcome, grader: str) -> ScoreNote | None:
    """Return the score of the judge, without evidence in the transcript."""
    scores = {name: grade for name, grade in outcome.scores.items() if name == grader}
    return next(iter(whole_notes(Outcome(attempt=outcome.attempt, scores=scores), Register())), None)


def _at(request: Request, queue: str, place: int) -> tuple[LabelQueue, AttemptKey]:
    stored_queue = find_queue(store_of(request), queue, user_of(request).name)
    if not 1 <= place <= len(stored_queue.items):
        raise NotFound(
            "place", str(place), within="this queue", hint=f"; it has {len(stored_queue.items)} conversations"
        )
    return stored_queue, stored_queue.items[place - 1]


def _outcome(store: Store, task: LabelTask, key: AttemptKey) -> Outcome:
    for outcome in store.outcomes(task.grading.id, sample_id=key.sample_id):
        if outcome.attempt.key == key:
            return outcome
    raise NotFound("sample", key.sample_id, hint="; it was deleted while the queue was open")


def _label(place: LabelPlace, form: Mapping[str, str], *, blind: bool) -> Label:
    try:
        return now_label(place, form.get("verdict", ""), form.get("note"), blind=blind)
    except ValidationError as error:
        raise UsageError("choose an answer; the reason can have at most 4,000 characters") from error


def _page_of(run_id: str, key: AttemptKey, first: int | None = None) -> str:
    return sample_page(run_id, key.sample_id, trial=key.trial, turn=first, target=key.target)
