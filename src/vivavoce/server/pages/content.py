"""What a message holds at an address of its own: a picture, a sound, or all of a text that is too long for a page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.exceptions import HTTPException

from vivavoce.errors import NotFound
from vivavoce.messages import AIMessage, AnyMessage
from vivavoce.records.run import AttemptKey
from vivavoce.records.score import to_index, to_number
from vivavoce.report.html.content.message import Media, decode, media_of
from vivavoce.report.html.transcript import ContentPlace, Showing
from vivavoce.report.transcript import words_of
from vivavoce.server.pages.links import TrialNumber, exchange_page, message_content
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.state import store_of
from vivavoce.store.runs.naming import no_conversation
from vivavoce.store.store import Store

router = APIRouter(route_class=PageRoute, include_in_schema=False)

Place = Annotated[int | None, Query(ge=0, lt=2**31)]

HEADERS = {
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
    "content-disposition": "inline",
}
"""Whatever a browser takes the bytes for, nothing in them runs and nothing is loaded."""


@dataclass(frozen=True, slots=True)
class Within:
    """What of a message is wanted: a part, the arguments of a call, a text that was retrieved for it, or its words."""

    part: Place = None
    call: Place = None
    context: Place = None


@router.get("/content")
def content(
    request: Request,
    run: str,
    sample: str,
    target: str,
    trial: TrialNumber = 1,
    turn: Annotated[int | None, Query(ge=1, lt=2**31)] = None,
    message: Place = None,
    *,
    within: Annotated[Within, Depends()],
) -> Response:
    """Return a part of a message as it is stored; without a part its text, without a message that of its turn."""
    store = store_of(request)
    key = AttemptKey(sample, target, to_index(trial))
    index = None if turn is None else to_index(turn)
    messages = _messages(store, store.run(run).id, key, index)
    if message is None:
        return plain_text("\n\n".join(f"{one.role}: {_words(one)}" for one in messages))
    if message >= len(messages):
        raise NotFound("message", str(message), within="this turn")
    chosen = messages[message]
    if within.part is not None:
        return _media(chosen, within.part)
    if within.call is not None:
        return plain_text(_arguments(chosen, within.call))
    if within.context is not None:
        return plain_text(_retrieved(chosen, within.context))
    return plain_text(words_of(chosen))


def showing(run: str, key: AttemptKey, *, raw: bool = False, grading: str | None = None) -> Showing:
    """Return how a conversation is shown on a page of this server; `grading` is the set of scores, if it is named."""

    def exchange(grader: str, turn: int | None) -> str:
        return exchange_page(run, key, grader, turn, grading=grading)

    return Showing(raw=raw, address=lambda place: _address(run, key, place), exchange=exchange)


def _address(run: str, key: AttemptKey, place: ContentPlace) -> str:
    within: dict[str, int | None] = {"part": place.part, "call": place.call, "context": place.context}
    return message_content(run, key, place.turn, message=place.message, **within)


def _messages(store: Store, run: str, key: AttemptKey, turn: int | None) -> Sequence[AnyMessage]:
    """Return the messages of a turn, or those before the first one.

    Raises:
        NotFound: there is no such conversation, or it has no such turn.
    """
    outcomes = list(store.outcomes(store.grading(run).id, sample_id=key.sample_id))
    stored_outcome = next((outcome for outcome in outcomes if outcome.attempt.key == key), None)
    if stored_outcome is None:
        known = (outcome.attempt.key for outcome in outcomes)
        raise no_conversation(run, key.sample_id, key.target, to_number(key.trial), known)
    talk = stored_outcome.attempt.trajectory
    if turn is None:
        return talk.opening
    if turn >= len(talk.turns):
        raise NotFound("turn", str(turn + 1), within="this conversation")
    return talk.turns[turn].messages


def _media(message: AnyMessage, part: int) -> Response:
    parts = message.content if isinstance(message.content, list) else []
    media: Media | None = media_of(parts[part]) if part < len(parts) else None
    data = decode(media) if media is not None and media.is_shown else None
    if media is None or data is None:
        raise HTTPException(404, "this part of the message is not an image or audio that can be shown")
    return Response(data, media_type=media.type, headers=HEADERS)


def _arguments(message: AnyMessage, call: int) -> str:
    calls = (message.tool_calls or []) if isinstance(message, AIMessage) else []
    if call >= len(calls):
        raise NotFound("tool call", str(call), within="this message")
    return calls[call].function.arguments


def _retrieved(message: AnyMessage, context: int) -> str:
    contexts = message.retrieval_context or []
    if context >= len(contexts):
        raise NotFound("retrieved text", str(context), within="this message")
    one = contexts[context]
    return one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)


def _words(message: AnyMessage) -> str:
    calls = (message.tool_calls or ()) if isinstance(message, AIMessage) else ()
    return "\n".join((words_of(message), *(f"{call.name}({call.function.arguments})" for call in calls)))


def plain_text(text: str) -> Response:
    """Return a text as an answer that does nothing in a browser."""
    return Response(text.encode("utf-8", "replace"), media_type="text/plain; charset=utf-8", headers=HEADERS)
