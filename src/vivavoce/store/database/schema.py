"""The tables of a store, and the types of their columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import sqlalchemy as sa
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, from_json, to_json, to_jsonable_python
from sqlalchemy import (
    DDL,
    BigInteger,
    CheckConstraint,
    Column,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    event,
    func,
    text,
)
from sqlalchemy.types import TypeDecorator, TypeEngine

from vivavoce.records.redaction import keys_of_environment


def storable(text: str, *, nul: bool) -> str:
    r"""Return a text that a database takes: a lone surrogate becomes the six characters `\ud800`.

    Without `nul`, U+0000 becomes the six characters `\u0000`.
    """
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode()
    return text if nul else text.replace("\0", "\\u0000")


def text_for(dialect: Dialect) -> Callable[[str], str]:
    """Return what makes a text storable in one of the two databases, for rows that go past the types of columns."""
    return partial(storable, nul=dialect.name != "postgresql")


class Text(TypeDecorator[str]):
    """Text that either database takes; without `nul`, U+0000 is escaped in SQLite, too.

    With `cut_keys`, keys of the environment are cut out of what is stored: in each column that people write into. Other
    columns get records, out of which keys are cut as a whole, with those that the suite of a run names.
    """

    impl = sa.Text
    cache_ok = True

    def __init__(self, *, nul: bool = True, cut_keys: bool = False) -> None:
        super().__init__()
        self.nul = nul
        self.cut_keys = cut_keys

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return a value as it is stored, and as it is looked for."""
        if value is None:
            return None
        text = keys_of_environment().cut(value) if self.cut_keys else value
        return storable(text, nul=self.nul and dialect.name != "postgresql")


class Name(Text):
    """Text that rows are found and ordered by, in both databases by its bytes and not by the customs of a language."""

    impl = sa.String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the type that a database has for it."""
        return dialect.type_descriptor(sa.String(collation="C" if dialect.name == "postgresql" else None))


def json_text(value: object) -> str | None:
    """Return a value as JSON text, None as NULL."""
    if value is None:
        return None
    try:
        return to_json(value, inf_nan_mode="constants", fallback=str).decode()
    except PydanticSerializationError:  # text that is not UTF-8: json escapes it
        return json.dumps(value, default=_as_json)


def _as_json(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump()
    return to_jsonable_python(value, inf_nan_mode="constants", fallback=str, bytes_mode="base64")


def read_json(text: str | bytes) -> Any:
    """Return the value of JSON text that `json_text` wrote; half a surrogate pair is read as it was.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return from_json(text)
    except ValueError:  # the quick reader refuses half a surrogate pair
        return json.loads(text)


BigId = BigInteger().with_variant(Integer, "sqlite")
"""63 bits; in SQLite only a column called INTEGER is the row's own number."""

metadata = MetaData()
"""All tables, also those of servers and of batch services."""

views = Table(
    "views",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("author", Name, nullable=False),
    Column("name", Name(cut_keys=True), nullable=False),
    Column("path", Text(cut_keys=True), nullable=False),
    Column("shared", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Index("views_by_author", "author", "name", unique=True),
)
"""Addresses of pages that people keep under a name; `shared` is 1 where everybody sees one."""

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", Name, primary_key=True),
    Column("url", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("events", Text, nullable=False),
    Column("author", Name, nullable=False),
    Column("created_at", Double, nullable=False),
)
"""Addresses that are told of `events`, a JSON list; the secret signs what is sent, so it is kept as it is."""

deliveries = Table(
    "deliveries",
    metadata,
    Column("id", Name, primary_key=True),
    Column("webhook_id", Name, ForeignKey("webhooks.id"), nullable=False),
    Column("event", Name, nullable=False),
    Column("about", Text(cut_keys=True), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_at", Double),
    Column("delivered_at", Double),
    Column("status", Integer),
    Column("error", Text),
    Column("body", Text),
    Index("deliveries_by_webhook", "webhook_id", "created_at"),
    Index("deliveries_by_time", "next_at"),
)
"""What webhooks are told; `next_at` is when the next attempt is due, NULL when it arrived or was given up."""

tokens = Table(
    "tokens",
    metadata,
    Column("id", Name, primary_key=True),
    Column("digest", Name, nullable=False),
    Column("name", Name, nullable=False),
    Column("role", Name, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("revoked_at", Double),
    Index("tokens_by_digest", "digest", unique=True),
)
"""Who may use a server of this store; of a token only its hash is kept."""

watches = Table(
    "watches",
    metadata,
    Column("name", Name, primary_key=True),
    Column("heard_at", Double, nullable=False),
    Column("state", Text, nullable=False),
)
"""What watches production, when it was last heard of, and how it is doing, as JSON."""

watch_hours = Table(
    "watch_hours",
    metadata,
    Column("watch", Name, nullable=False),
    Column("hour", BigInteger, nullable=False),
    Column("figures", Text, nullable=False),
    PrimaryKeyConstraint("watch", "hour"),
)
"""What came in and what was judged in an hour, which begins at this many seconds since the epoch, as JSON."""

jobs = Table(
    "jobs",
    metadata,
    Column("id", Name, primary_key=True),
    Column("folder", Name, nullable=False),
    Column("kind", Name, nullable=False),
    Column("status", Name, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("suite", Text),
    Column("run", Name),
    Column("grading", Name),
    Column("planned", BigInteger),
    Column("done", BigInteger, nullable=False),
    Column("errors", BigInteger, nullable=False),
    Column("verdict", Name),
    Column("detail", Text),
    Column("request", Text),
    Column("key", Name),
    Column("body", Name, nullable=False),
    Column("new_run", Name),
    Column("starts", Integer, nullable=False),
    Column("calls", BigInteger, nullable=False),
    Column("cost", Double, nullable=False),
    Column("cancels", Integer, nullable=False),
    Column("owner", Name),
    Column("lease_until", Double, nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("holds", Name),
    Index("jobs_by_time", "created_at", "id"),
    Index("jobs_by_status", "status", "created_at"),
    Index("jobs_by_run", "run"),
    Index("jobs_by_hold", "holds"),
    Index("jobs_by_key", "folder", "key", unique=True),
)
"""Jobs of servers. `request` is NULL once nobody is to continue the job; `key` and `body` are hashes.

`owner` is the server that works on it, until `lease_until`; each claim raises `fence`, and who has an older number may
not write any more. `holds` is the run that it works on now, `new_run` the id of the run that it begins.
"""

job_events = Table(
    "job_events",
    metadata,
    Column("job_id", Name, ForeignKey("jobs.id"), nullable=False),
    Column("last", BigInteger, nullable=False),
    Column("events", Text, nullable=False),
    PrimaryKeyConstraint("job_id", "last"),
)
"""The newest events of jobs as JSON, several in a row; `last` is the number of the last one of them."""

job_inputs = Table(
    "job_inputs",
    metadata,
    Column("job_id", Name, ForeignKey("jobs.id"), primary_key=True),
    Column("content", Text, nullable=False),
)
"""The conversations that came with a request, as JSON lines, until the job is finished."""

rate_limits = Table(
    "rate_limits",
    metadata,
    Column("client", Name, primary_key=True),
    Column("left", Double, nullable=False),
    Column("at", Double, nullable=False),
    Index("rate_limits_by_time", "at"),
)
"""Requests that a client has left at a time, for all servers together."""

server_secrets = Table(
    "server_secrets",
    metadata,
    Column("name", Name, primary_key=True),
    Column("value", Name, nullable=False),
)
"""Random values that all servers of a store share, and the sessions of browsers, by the hash of their ids."""


HEAD = "1001"
"""The version of these tables; versions are ordered as text, and those below 1001 are from before the first release."""

runs = Table(
    "runs",
    metadata,
    Column("id", Name, primary_key=True),
    Column("suite", Name, nullable=False),
    Column("spec", Text, nullable=False),
    Column("base", Text, nullable=False),
    Column("options", Text, nullable=False),
    Column("status", Name, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("finished_at", Double),
    Column("version", Name, nullable=False),
    Column("partial_of", Name),
    Column("title", Text(cut_keys=True)),
    Column("notes", Text(cut_keys=True)),
    Column("tags", Text(cut_keys=True)),
    Index("runs_by_time", "started_at"),
)
"""`title`, `notes` and `tags`, written as those of `standings`, are what people say of a run, at any time."""

gradings = Table(
    "gradings",
    metadata,
    Column("id", Name, primary_key=True),
    Column("run_id", Name, ForeignKey("runs.id"), nullable=False),
    Column("spec", Text, nullable=False),
    Column("fingerprints", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("finished_at", Double),
    Column("verdict", Name),
    Column("summary", Text),
    Column("passed_added", Integer),
    Index("gradings_by_run", "run_id"),
)

attempts = Table(
    "attempts",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=False),
    Column("run_id", Name, ForeignKey("runs.id"), nullable=False),
    Column("sample_id", Name, nullable=False),
    Column("target", Name, nullable=False),
    Column("trial", Integer, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("scenario", Name, nullable=False),
    Column("session_id", Name),
    Column("started_at", Double, nullable=False),
    Column("seconds", Double),
    Column("sample", Text, nullable=False),
    Column("opening", Text),
    Column("state", Text),
    Column("failure", Text),
    Column("usage", Text),
    Column("test", Text),
    Column("stratum", Integer),
    Column("probability", Double),
    UniqueConstraint("run_id", "sample_id", "target", "trial", name="attempts_by_key"),
    Index("attempts_by_run", "run_id", "position", "id"),
)
"""`position` is the place in the plan of the run.

`opening` is NULL for none, `usage` the sum over the turns, NULL when no turn tells, `test` what a tester leaves.
`stratum` and `probability` say how the conversation was drawn, NULL where all of a dataset run.
"""

turns = Table(
    "turns",
    metadata,
    Column("attempt_id", BigId, ForeignKey("attempts.id"), nullable=False),
    Column("idx", Integer, nullable=False),
    Column("started_at", Double),
    Column("seconds", Double),
    Column("messages", Text, nullable=False),
    Column("usage", Text),
    Column("failure", Text),
    PrimaryKeyConstraint("attempt_id", "idx"),
)
"""A message is stored once: in its turn, or in the opening of its attempt."""

scores = Table(
    "scores",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("attempt_id", BigId, ForeignKey("attempts.id"), nullable=False),
    Column("grading_id", Name, ForeignKey("gradings.id"), nullable=False),
    Column("kind", Name, nullable=False),
    Column("name", Name, nullable=False),
    Column("turn", Integer),
    Column("turns", Integer),
    Column("state", Name, nullable=False),
    Column("value", Double),
    Column("reason", Text),
    Column("submission", Text),
    Column("ground_truth", Text),
    Column("extra", Text),
    Column("failure", Text),
    Column("usage", Text),
    Column("fingerprint", Name),
    Column("passed", Integer),
    Column("raw", Text),
    Column("confidence", Double),
    Column("findings", Text),
    Column("other_evidence", Text),
    Column("settings", Text),
    CheckConstraint("(state = 'scored') = (value IS NOT NULL OR raw IS NOT NULL)", name="scored_has_value"),
)
"""`turn` is NULL for the whole conversation; such a row counts in `turns` how many turns were graded apart.

`value` is NULL for a measurement, which has its number in `raw`. `passed` is 1 or 0, NULL without a score and for a
measurement. `raw`, `findings`, `other_evidence`, `settings` and `extra` are JSON.
"""

Index(
    "scores_by_attempt",
    scores.c.attempt_id,
    scores.c.grading_id,
    scores.c.kind,
    scores.c.name,
    func.coalesce(scores.c.turn, text("-1")),
    unique=True,
)
Index(
    "scores_by_value",
    scores.c.name,
    scores.c.grading_id,
    scores.c.attempt_id,
    scores.c.value,
    scores.c.passed,
    scores.c.turn,  # or SQLite reads each score to see that it has none
    sqlite_where=scores.c.turn.is_(None),
    postgresql_where=scores.c.turn.is_(None),
)

sample_index = Table(
    "standings",
    metadata,
    Column("grading_id", Name, ForeignKey("gradings.id"), nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("attempt_id", BigId, nullable=False),
    Column("state", Name, nullable=False),
    Column("rank", Double, nullable=False),
    Column("lowest", Double),
    Column("skips", Integer, nullable=False),
    Column("turns", Integer, nullable=False),
    Column("seconds", Double),
    Column("tags", Text(nul=False)),
    Column("target", Name),
    Column("trial", Integer),
    Column("tokens", BigInteger),
    Column("cost", Double),
    Column("cause", Name),
    PrimaryKeyConstraint("grading_id", "position", "attempt_id"),
    sqlite_with_rowid=False,
)
_ERROR = sample_index.c.cause.is_not(None)
Index(
    "standings_by_cause",
    *(sample_index.c[name] for name in ("grading_id", "cause", "target", "position", "attempt_id")),
    sqlite_where=_ERROR,
    postgresql_where=_ERROR,
)
"""What lists filter and order the attempts of a grading by, one narrow row for each, in the order of the plan.

`state` is what the scores amount to, `rank` the place worst first, `lowest` the lowest value, `skips` how many were
skipped; `turns`, `seconds`, `tags`, `target` and `trial` are those of the attempt. `tokens` and `cost` are what its
conversation and this grading of it used, `cause` is a short hash of what its error says, NULL without one.
"""

replies = Table(
    "replies",
    metadata,
    Column("key", Name, primary_key=True),
    Column("model", Name, nullable=False),
    Column("reply", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)
"""Replies of models by the hash of what was asked; they belong to no run, and any may be deleted."""

passages = Table(
    "passages",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("attempt_id", BigId, ForeignKey("attempts.id"), nullable=False),
    Column("grading_id", Name, nullable=False),
    Index("passages_by_attempt", "attempt_id"),
    sqlite_autoincrement=True,
)
"""What search has read, each number given once; `grading_id` is empty for what was said in the conversation.

PostgreSQL has the words in a column of their own. SQLite has them in another table, `passage_words`, by the same
number; it keeps no text, and what it knows of a passage that was deleted stays until all is read again.
"""

unread = Table(
    "unread",
    metadata,
    Column("attempt_id", BigId, nullable=False, autoincrement=False),
    Column("grading_id", Name, nullable=False),
    PrimaryKeyConstraint("attempt_id", "grading_id"),
)
"""What search has still to read: written with the attempt or its scores, and read before the next search."""

labels = Table(
    "labels",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("attempt_id", BigId, ForeignKey("attempts.id"), nullable=False),
    Column("turn", Integer),
    Column("grader", Name, nullable=False),
    Column("author", Name, nullable=False),
    Column("verdict", Name, nullable=False),
    Column("note", Text(cut_keys=True)),
    Column("blind", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("drawn", Double),
)
"""What people say of a conversation, or of a `turn` of it, next to what a grader says; `grader` is empty for neither.

`blind` is 1 where the grader's own answer was hidden from them. `drawn` is that of the item of the queue in which the
label was given, null where it was given elsewhere.
"""

Index(
    "labels_by_attempt",
    labels.c.attempt_id,
    labels.c.grader,
    labels.c.author,
    func.coalesce(labels.c.turn, text("-1")),
    unique=True,
)

comments = Table(
    "comments",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("attempt_id", BigId, ForeignKey("attempts.id"), nullable=False),
    Column("turn", Integer),
    Column("author", Name, nullable=False),
    Column("text", Text(cut_keys=True), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("resolved_by", Name),
    Column("resolved_at", Double),
    Index("comments_by_attempt", "attempt_id"),
)
"""What people remark on a conversation, or on a `turn` of it."""

decisions = Table(
    "decisions",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("attempt_id", BigId, ForeignKey("attempts.id"), nullable=False),
    Column("turn", Integer),
    Column("grader", Name, nullable=False),
    Column("author", Name, nullable=False),
    Column("verdict", Name, nullable=False),
    Column("note", Text(cut_keys=True)),
    Column("blind", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
)
"""What was decided where labels of people differ; one for each place, next to the labels.

`blind` is 1 where it was hidden who had said what.
"""

Index(
    "decisions_by_attempt",
    decisions.c.attempt_id,
    decisions.c.grader,
    func.coalesce(decisions.c.turn, text("-1")),
    unique=True,
)

queues = Table(
    "queues",
    metadata,
    Column("id", Name, primary_key=True),
    Column("run_id", Name, ForeignKey("runs.id"), nullable=False),
    Column("grading_id", Name, ForeignKey("gradings.id"), nullable=False),
    Column("grader", Name, nullable=False),
    Column("selection", Name, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("blind", Integer, nullable=False),
    Column("overlap", Integer, nullable=False),
    Column("author", Name, nullable=False),
    Column("created_at", Double, nullable=False),
    Index("queues_by_run", "run_id"),
)
"""Conversations that were assigned to people to label; `selection` is their order, `overlap` how many label each.

`overlap` is 0 where its author began it for themselves.
"""

queue_items = Table(
    "queue_items",
    metadata,
    Column("queue_id", Name, ForeignKey("queues.id"), nullable=False),
    Column("person", Name, nullable=False),
    Column("position", Integer, nullable=False),
    Column("attempt_id", BigId, ForeignKey("attempts.id"), nullable=False),
    Column("drawn", Double),
    PrimaryKeyConstraint("queue_id", "person", "position"),
    Index("queue_items_by_attempt", "attempt_id"),
    Index("queue_items_by_person", "person"),
)
"""Who labels what in a queue; all rows of a queue are written with it.

`drawn` is how likely the conversation was drawn, 1 where all were as likely, null where it was chosen in another way.
"""

calibrations = Table(
    "calibrations",
    metadata,
    Column("id", Name, primary_key=True),
    Column("run_id", Name, nullable=False),
    Column("grader", Name, nullable=False),
    Column("fingerprint", Name, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("body", Text, nullable=False),
    Index("calibrations_by_run", "run_id"),
    Index("calibrations_by_fingerprint", "fingerprint"),
)
"""Labels of a run next to the verdicts of a judge, as JSON; they stay when the run is deleted, for gates need them."""

replaced = Table(
    "replaced",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("run_id", Name, nullable=False),
    Column("sample_id", Name, nullable=False),
    Column("target", Name, nullable=False),
    Column("trial", Integer, nullable=False),
    Column("replaced_at", Double, nullable=False),
    Column("rows", Text, nullable=False),
    Index("replaced_by_run", "run_id"),
)
"""Attempts with an error that were tried again; `rows` has the rows of each as JSON, by table."""

audit = Table(
    "audit",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("at", Double, nullable=False),
    Column("actor", Name(nul=False), nullable=False),
    Column("action", Name(nul=False), nullable=False),
    Column("subject", Name(nul=False, cut_keys=True), nullable=False),
    Column("detail", Text(cut_keys=True)),
)
"""Who changed what, and when: labels, deletions and tokens; nothing deletes a row of it."""

PASSAGE_WORDS = (
    "CREATE VIRTUAL TABLE passage_words USING fts5("
    "words, run, content='', columnsize=0, tokenize='unicode61 remove_diacritics 0')"
)
event.listen(passages, "after_create", DDL(PASSAGE_WORDS).execute_if(dialect="sqlite"))
for _statement in (
    "ALTER TABLE passages ADD COLUMN words tsvector NOT NULL",
    "CREATE INDEX passages_by_word ON passages USING gin (words)",
):
    event.listen(passages, "after_create", DDL(_statement).execute_if(dialect="postgresql"))


batches = Table(
    "batches",
    metadata,
    Column("id", Name, primary_key=True),
    Column("run_id", Name, nullable=False),
    Column("model", Name, nullable=False),
    Column("identity", Name, nullable=False),
    Column("requests", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("file", Name),
    Column("service_id", Name),
    Column("strangers", Text, nullable=False),
    Column("ended_at", Double),
    Column("cause", Text),
    Index("batches_by_identity", "identity", "ended_at"),
)
"""A batch of requests: `file` and `service_id` are what the service calls its requests and itself, NULL until known.

`strangers` is JSON: batches of the service that were taken for it. `ended_at` is NULL until its answers are taken.
"""

batch_questions = Table(
    "batch_questions",
    metadata,
    Column("key", Name, primary_key=True),
    Column("batch_id", Name, nullable=False),
    Column("run_id", Name, nullable=False),
    Column("state", Name, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("answers", Integer, nullable=False),
    Column("failure", Text),
    Column("then", Name),
    Column("usage", Text),
    Index("batch_questions_by_batch", "batch_id"),
)
"""Each question, by the key of its reply, in the batch that it was last asked in; so none is in two at a time.

`state` is `asked`, `answered` or `failed`, `then` what can be done about a failed one. `usage` is JSON, NULL where it
is in a score or nothing was used.
"""
