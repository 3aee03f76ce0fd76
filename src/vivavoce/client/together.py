"""The routes for what people do together: comments."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from urllib.parse import urlencode

from pydantic import TypeAdapter

from vivavoce.client.connection import Connection, checked, part
from vivavoce.records.comment import Comment
from vivavoce.store.browse.listing import CommentPage

_COMMENTS = TypeAdapter(list[Comment])


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
        return checked(Comment, (await self._send("POST", path, {"text": text})).body)

    async def resolve_comment(self, run: str, comment: int, *, resolved: bool = True) -> Comment:
        """Mark a comment as resolved, or as open again, and return it.

        Raises:
            NotFound: the run has no such comment.
        """
        path = f"/runs/{part(run)}/comments/{comment}"
        return checked(Comment, (await self._send("PUT", path, {"resolved": resolved})).body)

    async def remove_comment(self, run: str, comment: int) -> Comment:
        """Remove one's own comment, and return it; those of others need the role admin.

        Raises:
            NotFound: the run has no such comment.
            UsageError: it is somebody else's.
        """
        return checked(Comment, (await self._send("DELETE", f"/runs/{part(run)}/comments/{comment}")).body)


def _comments_at(run: str, sample: str, trial: int, **query: object) -> str:
    named = urlencode({name: value for name, value in query.items() if value is not None}, errors="replace")
    return f"/runs/{part(run)}/samples/{part(sample)}/{trial}/comments?{named}"
