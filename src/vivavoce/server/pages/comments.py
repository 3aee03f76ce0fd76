"""Comments: what people remark on a conversation or a turn, next to it on its page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import TypeAdapter, ValidationError

from vivavoce.errors import UsageError
from vivavoce.records.label import LONGEST_COMMENT, Comment, CommentText
from vivavoce.records.run import AttemptKey, Outcome, Run
from vivavoce.records.score import to_number
from vivavoce.report.html.conversation import CommentShown, Place, shown_comments
from vivavoce.server.pages.forms import Form, form_key, index_of
from vivavoce.server.pages.links import comment_page, comments_page, sample_page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.state import store_of
from vivavoce.server.users import user_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_TEXT: TypeAdapter[str] = TypeAdapter(CommentText)


@dataclass(frozen=True, slots=True)
class CommentSection:
    """The comments of a conversation for its page; without a `form_key` nothing can be added."""

    comments: dict[int | None, list[CommentShown]]
    author: str
    form_key: str | None
    add_at: Callable[[int | None], str]
    change_at: Callable[[int], str]


def comment_section(request: Request, run: Run, outcome: Outcome, place_of: Place) -> CommentSection:
    """Return the comments on a conversation and its turns, and the addresses of their forms."""
    key, user = outcome.attempt.key, user_of(request)
    found = store_of(request).comments.of(run.id, key)
    turns = len(outcome.attempt.trajectory.turns)
    return CommentSection(
        comments=shown_comments(found, turns, place_of, user.name, removes_all=user.may("admin")),
        author=user.name,
        form_key=form_key(request) if user.may("write") else None,
        add_at=lambda turn: comments_page(run.id, key, turn),
        change_at=lambda number: comment_page(run.id, number),
    )


@router.post("/comments")
def add(
    request: Request,
    form: Form,
    run: str,
    sample: str,
    target: str = "",
    trial: str = "1",
    turn: str = "",
) -> Response:
    """Save a comment on the page of a conversation, and return there."""
    store, key = store_of(request), AttemptKey(sample, target, index_of(trial))
    text = comment_text(form.get("text", ""))
    stored_run = store.run(run)
    added = store.comments.add(stored_run.id, key, index_of(turn) if turn else None, user_of(request).name, text)
    return _back(stored_run.id, added, f"c{added.id}")


@router.post("/comments/{run}/{number}")
def change(request: Request, form: Form, run: str, number: int) -> Response:
    """Resolve, reopen or remove a comment, and return to its conversation."""
    store, user = store_of(request), user_of(request)
    stored_run = store.run(run)
    match form.get("action"):
        case "remove":
            gone = store.comments.remove(stored_run.id, number, user.name, anyones=user.may("admin"))
            return _back(stored_run.id, gone, "verdict" if gone.turn is None else f"t{to_number(gone.turn)}")
        case "resolve" | "reopen" as action:
            changed = store.comments.resolve(stored_run.id, number, user.name, resolved=action == "resolve")
            return _back(stored_run.id, changed, f"c{changed.id}")
        case _:
            raise UsageError("unknown action; use resolve, reopen or remove")


def comment_text(text: str) -> str:
    """Return the text of a comment as it is stored.

    Raises:
        UsageError: it is empty or too long.
    """
    try:
        return _TEXT.validate_python(text.replace("\r\n", "\n"))
    except ValidationError as error:
        raise UsageError(f"write a comment of at most {LONGEST_COMMENT:,} characters") from error


def _back(run_id: str, comment: Comment, anchor: str) -> Response:
    turn = comment.turn or None
    address = sample_page(run_id, comment.sample_id, trial=comment.trial, turn=turn, target=comment.target)
    return RedirectResponse(f"{address}#{anchor}", 303)
