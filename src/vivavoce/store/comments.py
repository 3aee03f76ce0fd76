"""Comments: what people remark on conversations and their turns, stored next to labels and scores."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, String, bindparam, delete, func, insert, select, text, update

from vivavoce.errors import NotFound
from vivavoce.records.label import Comment
from vivavoce.records.run import AttemptKey
from vivavoce.records.score import conversation_name
from vivavoce.store.access import NotYours
from vivavoce.store.audit import note
from vivavoce.store.browse.filter import encode_cursor, read_place
from vivavoce.store.browse.listing import CommentPage
from vivavoce.store.database.database import AnyRow, Database, values_of
from vivavoce.store.database.schema import attempts, comments
from vivavoce.store.labels import LabelPlace, attempt_number, labelled_attempt
from vivavoce.store.webhooks import tell

BATCH = 500
_KEY = (attempts.c.sample_id, attempts.c.target, attempts.c.trial)
_OWN = ("id", "turn", "author", "text", "created_at", "resolved_by", "resolved_at")
_SAID = (*_KEY, *(comments.c[name] for name in _OWN))


@dataclass(frozen=True, slots=True)
class Comments:
    """The comments of a store."""

    database: Database

    def add(self, run_id: str, key: AttemptKey, turn: int | None, author: str, text: str) -> Comment:
        """Store a new comment, and return it; the caller has checked its length.

        Raises:
            UsageError: there is no such conversation or turn.
            StoreError: the store cannot be written.
        """
        place = LabelPlace(run_id, key, turn, "", author)
        with self.database.writing() as connection:
            attempt_id = labelled_attempt(connection, place)
            values = {"attempt_id": attempt_id, "turn": turn, "author": author, "text": text}
            made = insert(comments).values(**values, created_at=time.time()).returning(comments.c.id)
            added = _find_comment(connection, run_id, connection.execute(made).scalar_one())
            note(connection, author, "comment.add", place.subject, _change(added))
            tell(connection, "comment.added", {"run": run_id, "comment": added.model_dump()})
        return added

    def resolve(self, run_id: str, comment_id: int, actor: str, *, resolved: bool = True) -> Comment:
        """Mark a comment as resolved by somebody, or as open again, and return it.

        Raises:
            UsageError: the run has no such comment.
            StoreError: the store cannot be written.
        """
        now = {"resolved_by": actor, "resolved_at": time.time()}
        values = now if resolved else dict.fromkeys(now)
        with self.database.writing() as connection:
            before = _find_comment(connection, run_id, comment_id)
            connection.execute(update(comments).where(comments.c.id == comment_id).values(values))
            action = "comment.resolve" if resolved else "comment.reopen"
            note(connection, actor, action, _subject(run_id, before), {"id": comment_id})
            return _find_comment(connection, run_id, comment_id)

    def remove(self, run_id: str, comment_id: int, actor: str, *, anyones: bool = False) -> Comment:
        """Remove one's own comment, with `anyones` also that of somebody else, and return it.

        Raises:
            UsageError: the run has no such comment.
            NotYours: it is somebody else's.
            StoreError: the store cannot be written.
        """
        with self.database.writing() as connection:
            found = _find_comment(connection, run_id, comment_id)
            if found.author != actor and not anyones:
                raise NotYours(f"comment {comment_id} is by {found.author}; only its author or an admin removes it")
            connection.execute(delete(comments).where(comments.c.id == comment_id))
            note(connection, actor, "comment.remove", _subject(run_id, found), _change(found))
        return found

    def of(self, run_id: str, key: AttemptKey) -> list[Comment]:
        """Return the comments on a conversation and its turns, oldest first.

        Raises:
            UsageError: there is no such conversation.
        """
        with self.database.connected() as connection:
            attempt_id = labelled_attempt(connection, LabelPlace(run_id, key, None, "", ""), hold=False)
            query = _query().where(comments.c.attempt_id == attempt_id).order_by(comments.c.id)
            return list(map(comment_of, connection.execute(query)))

    def page(self, run_id: str, *, after: str | None = None, limit: int = 50) -> CommentPage:
        """Return some comments on conversations of a run, oldest first.

        Raises:
            UsageError: `after` is not a cursor of this list.
        """
        # Comments are few and attempts many: a run that is looked for by no index makes SQLite begin with the comments.
        query = _query().where(func.coalesce(attempts.c.run_id, "") == run_id).order_by(comments.c.id).limit(limit + 1)
        if after is not None:
            query = query.where(comments.c.id > read_place(after, int)[0])
        with self.database.connected() as connection:
            found = connection.execute(query).all()
        following = encode_cursor((found[limit - 1].id,)) if len(found) > limit else None
        return CommentPage(comments=list(map(comment_of, found[:limit])), next=following)

    def all(self, run_id: str) -> Iterator[Comment]:
        """Yield every comment of a run, oldest first, a page at a time."""
        after: str | None = None
        while True:
            page = self.page(run_id, after=after, limit=BATCH)
            yield from page.comments
            after = page.next
            if after is None:
                return


def comment_counts(connection: Connection, attempt_ids: Sequence[int]) -> dict[int, int]:
    """Return how many comments some attempts have; those without are left out."""
    c = comments.c
    query = select(c.attempt_id, func.count().label("number")).where(c.attempt_id.in_(attempt_ids))
    return {row.attempt_id: row.number for row in connection.execute(query.group_by(c.attempt_id))}


# SQLite takes the tables of a CROSS JOIN in this order: comments are few, attempts many
_OF_RUNS = text(
    "SELECT a.run_id, count(*) AS number FROM comments c CROSS JOIN attempts a "
    "WHERE a.id = c.attempt_id AND a.run_id IN :runs GROUP BY a.run_id"
)


def comments_of_runs(connection: Connection, run_ids: Sequence[str]) -> dict[str, int]:
    """Return how many comments some runs have; those without are left out."""
    query = _OF_RUNS.bindparams(bindparam("runs", list(run_ids), String, expanding=True))
    return {row.run_id: row.number for row in connection.execute(query)}


def copy_comments(source: Connection, target: Connection) -> int:
    """Copy the comments that the other store lacks on conversations that it has, and return how many.

    A comment is the same if its place, its author and its time are; one that was resolved since is resolved there, too.
    """
    copied = 0
    for row in source.execute(_query().add_columns(attempts.c.run_id).order_by(comments.c.id)).all():
        said = comment_of(row)
        attempt_id = attempt_number(target, LabelPlace(row.run_id, said.key, said.turn, "", said.author), hold=True)
        if attempt_id is None:  # the conversation was added meanwhile, and comes with the next copy
            continue
        c = comments.c
        same = (c.attempt_id == attempt_id, c.author == said.author, c.created_at == said.created_at)
        there = target.execute(select(c.id, c.resolved_at).where(*same)).first()
        resolved = said.model_dump(include={"resolved_by", "resolved_at"})
        if there is None:
            values = said.model_dump(include={"turn", "author", "text", "created_at"})
            target.execute(insert(comments).values(**values, **resolved, attempt_id=attempt_id))
            note(target, said.author, "comment.copy", _subject(row.run_id, said), _change(said))
            copied += 1
        elif there.resolved_at is None and said.resolved_at is not None:
            target.execute(update(comments).where(c.id == there.id).values(resolved))
    return copied


def comment_of(row: AnyRow) -> Comment:
    """Return a comment by its row."""
    return Comment.model_validate(values_of(row))


def _query() -> Select[Any]:
    return select(*_SAID).select_from(comments).join(attempts, attempts.c.id == comments.c.attempt_id)


def _find_comment(connection: Connection, run_id: str, comment_id: int) -> Comment:
    query = _query().where(comments.c.id == comment_id, attempts.c.run_id == run_id)
    row = connection.execute(query).first()
    if row is None:
        raise NotFound("comment", str(comment_id), within=f"run {run_id}")
    return comment_of(row)


def _subject(run_id: str, comment: Comment) -> str:
    return f"{run_id}/{conversation_name(comment.sample_id, comment.trial)}"


def _change(comment: Comment) -> dict[str, object]:
    return comment.model_dump(include={"id", "target", "turn", "author", "text"})
