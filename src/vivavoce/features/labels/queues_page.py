"""Queues that are assigned to people: the form to assign one, how far each person is, and the way into one's own."""

from __future__ import annotations

from typing import Annotated, cast, get_args

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from vivavoce.errors import UsageError
from vivavoce.features.labels.labelling import question, questions
from vivavoce.features.labels.links import differing_page, label_item, queue_page
from vivavoce.features.labels.queues import find_queue, labels_of_task
from vivavoce.report.graded_run import require_grader
from vivavoce.server.pages.forms import Form, form_key
from vivavoce.server.pages.links import run_page
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.state import store_of
from vivavoce.server.users import needs, user_of
from vivavoce.store.queues import QueuePlan, Selection

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/label/assign", dependencies=[needs("write")])
def ask(request: Request, run: str, grader: Annotated[str, Query()] = "") -> Response:
    """Ask who labels what of a run."""
    store = store_of(request)
    grading = store.grading(store.run(run).id)
    if grader:
        require_grader(grader, grading)
    values: dict[str, object] = {
        "section": "label",
        "run": store.run(run),
        "run_link": run_page(grading.run_id),
        "graders": [question.grader for question in questions(grading)],
        "chosen": grader,
        "form_key": form_key(request),
        "author": user_of(request).name,
    }
    return page("assign.html", values)


@router.post("/label/assign")
def assign(request: Request, form: Form) -> Response:
    """Deal the conversations, and show the queue."""
    store = store_of(request)
    grading = store.grading(store.run(form.get("run", "")).id)
    plan = QueuePlan(
        grader=form.get("grader", ""),
        people=[line.strip() for line in form.get("people", "").splitlines() if line.strip()],
        overlap=_number(form.get("overlap", "1")),
        size=_number(form.get("size", "50")),
        selection=_selection(form.get("selection", "random")),
        blind="blind" in form,
    )
    if plan.grader:
        require_grader(plan.grader, grading)
    return RedirectResponse(queue_page(store.queues.create(grading, plan, user_of(request).name).id), 303)


@router.get("/label-queues/{queue}")
def progress(request: Request, queue: str) -> Response:
    """Show how far each person of a queue is."""
    store, user = store_of(request), user_of(request)
    assigned = store.queues.get(queue)
    mine = any(person.person == user.name for person in assigned.people)
    values: dict[str, object] = {
        "section": "label",
        "queue": assigned,
        "question": question(store.grading(assigned.run_id, assigned.grading_id), assigned.grader),
        "run_link": run_page(assigned.run_id),
        "differing": differing_page(run=assigned.run_id, grader=assigned.grader),
        "begin": f"/label/{queue}" if mine else None,
        "form_key": form_key(request) if user.may("write") else None,
        "here": queue_page(queue),
        "done": sum(person.done for person in assigned.people),
        "assigned": sum(person.assigned for person in assigned.people),
    }
    return page("queue.html", values)


@router.post("/label-queues/{queue}")
def change(request: Request, queue: str, form: Form) -> Response:
    """Delete a queue; labels stay."""
    if form.get("action") != "delete":
        raise UsageError("unknown action; use delete")
    store_of(request).queues.delete(queue, user_of(request).name)
    return RedirectResponse("/label", 303)


@router.get("/label/{queue}", dependencies=[needs("write")])
def begin(request: Request, queue: str) -> Response:
    """Go to the next conversation that one has to label in a queue."""
    user, store = user_of(request), store_of(request)
    stored_queue = find_queue(store, queue, user.name)
    return RedirectResponse(
        label_item(stored_queue.id, stored_queue.following(0, labels_of_task(store, stored_queue.task))), 303
    )


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise UsageError("overlap and conversation count must be whole numbers")
    return int(text)


def _selection(text: str) -> Selection:
    if text not in get_args(Selection):
        raise UsageError(f"the queue order must be one of {', '.join(get_args(Selection))}")
    return cast("Selection", text)
