"""`Store`: stores runs and gradings, and streams their records."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast, overload

from sqlalchemy import Connection, Table, func, insert, select, update

from vivavoce.errors import NotFound, StoreError
from vivavoce.plugins import lazy
from vivavoce.records.label import Remarks
from vivavoce.records.redaction import keys_of_environment
from vivavoce.records.replies import StoredReply
from vivavoce.records.run import Attempt, AttemptKey, ErrorRow, FailureRow, Grading, Outcome, Run, ScoreRow
from vivavoce.records.score import State, Usage, split_name
from vivavoce.store.browse.listing import Kept
from vivavoce.store.database.address import Place
from vivavoce.store.database.database import AnyRow, AnySelect, Database, Fence, guard, plain_errors, reach, values_of
from vivavoce.store.database.schema import attempts, gradings, replies, runs
from vivavoce.store.database.upgrade import prepare, watch
from vivavoce.store.runs.claim import claimed, held
from vivavoce.store.runs.naming import find, is_latest
from vivavoce.store.runs.reading import Reader, failing, with_current_status
from vivavoce.store.runs.rows import Encoder, grading_of, grading_values, run_of, run_values, runs_of

if TYPE_CHECKING:  # a part is loaded when it is used
    from vivavoce.store.access import Rates, Secrets, Sessions, Tokens
    from vivavoce.store.audit import Audit
    from vivavoce.store.batches import Batches
    from vivavoce.store.browse.browse import Browse
    from vivavoce.store.browse.scenarios import Details, Scenarios
    from vivavoce.store.browse.series import AllSeries
    from vivavoce.store.calibrations import Calibrations
    from vivavoce.store.comments import Comments
    from vivavoce.store.jobs import JobQueue
    from vivavoce.store.labels import Decisions, Labels
    from vivavoce.store.maintenance.maintenance import Maintenance
    from vivavoce.store.queues import Queues
    from vivavoce.store.replies import ReplyStore
    from vivavoce.store.runs.writer import OutcomeWriter, Replaced
    from vivavoce.store.search.search import Hit, Searcher
    from vivavoce.store.views import Views
    from vivavoce.store.watches import Watches
    from vivavoce.store.webhooks import Webhooks

T = TypeVar("T")


class Part(Generic[T]):
    """A part of a store, loaded when it is used: a class that takes the database, as `module:name`."""

    def __init__(self, reference: str, doc: str) -> None:
        self.reference = reference
        self.__doc__ = doc

    @overload
    def __get__(self, store: None, owner: type[Store]) -> Self: ...

    @overload
    def __get__(self, store: Store, owner: type[Store]) -> T: ...

    def __get__(self, store: Store | None, owner: type[Store]) -> Self | T:
        """Return the part of a store; of the class, this itself, whose docstring says what it is."""
        return self if store is None else cast("T", lazy(self.reference)(store.database))

    def __set__(self, store: Store, value: object) -> None:
        """Refuse another part; as a descriptor of data it is shown by `help(Store)`."""
        raise AttributeError("the parts of a store cannot be set")


class Store:
    """One store; any thread may read from it while a writer writes.

    `run` finds a run, and `outcomes`, `attempts`, `scores` and `errors` stream its records. Everything else is in its
    parts: `browse`, `series`, `scenarios`, `labels`, `decisions`, `calibrations`, `batches`, `queues`, `views`,
    `webhooks`, `comments`, `tokens`, `audit` and `maintenance`.
    """

    searcher: Part[Searcher] = Part(
        "vivavoce.store.search.search:Searcher", "Search in conversations, reasons and runs, a page at a time."
    )
    series: Part[AllSeries] = Part(
        "vivavoce.store.browse.series:AllSeries",
        "The runs of each suite in the order of time, with their newest scores.",
    )
    scenarios: Part[Scenarios] = Part(
        "vivavoce.store.browse.scenarios:Scenarios", "The data for comparisons of graded runs."
    )
    watches: Part[Watches] = Part(
        "vivavoce.store.watches:Watches", "What watches production, and what it saw in each hour."
    )
    labels: Part[Labels] = Part(
        "vivavoce.store.labels:Labels",
        "Human labels of conversations and turns.",
    )
    decisions: Part[Decisions] = Part("vivavoce.store.labels:Decisions", "Decisions where labels of people differ.")
    calibrations: Part[Calibrations] = Part(
        "vivavoce.store.calibrations:Calibrations", "Calibrations of judges by labels of people."
    )
    batches: Part[Batches] = Part(
        "vivavoce.store.batches:Batches",
        "What was given to batch services.",
    )
    queues: Part[Queues] = Part(
        "vivavoce.store.queues:Queues", "Queues of conversations to label that are assigned to people."
    )
    views: Part[Views] = Part(
        "vivavoce.store.views:Views",
        "Pages that people keep under a name.",
    )
    webhooks: Part[Webhooks] = Part(
        "vivavoce.store.webhooks:Webhooks", "Addresses that receive events, and what was sent to them."
    )
    comments: Part[Comments] = Part(
        "vivavoce.store.comments:Comments", "Comments of people on conversations and turns."
    )
    details: Part[Details] = Part(
        "vivavoce.store.browse.scenarios:Details",
        "What summaries say besides scores: usage, seconds of replies, tags, votes.",
    )
    tokens: Part[Tokens] = Part(
        "vivavoce.store.access:Tokens",
        "The tokens for a server of this store.",
    )
    rates: Part[Rates] = Part(
        "vivavoce.store.access:Rates", "What the clients of all servers have left of their rate limits."
    )
    secrets: Part[Secrets] = Part(
        "vivavoce.store.access:Secrets",
        "The random values that all servers share.",
    )
    sessions: Part[Sessions] = Part("vivavoce.store.access:Sessions", "The sessions of browsers at all servers.")
    jobs: Part[JobQueue] = Part(
        "vivavoce.store.jobs:JobQueue",
        "The jobs of all servers.",
    )
    audit: Part[Audit] = Part(
        "vivavoce.store.audit:Audit",
        "The audit log: who changed what, and when.",
    )
    maintenance: Part[Maintenance] = Part(
        "vivavoce.store.maintenance.maintenance:Maintenance",
        "The content of the store, deleting runs, and copying it into another store.",
    )

    def __init__(self, database: Database) -> None:
        self.database = database
        self.place = database.place
        self._kept = Kept()

    @classmethod
    def open(cls, address: str | os.PathLike[str], *, create: bool = True) -> Self:
        """Open a store given as a path, as `sqlite:///path` or as `postgresql://user@host/database`.

        A store of an older vivavoce is refused, and never upgraded here: see `migrate_store`. A file in a read-only
        folder can be read.

        Raises:
            UsageError: the address is of another kind, is not a store, or does not exist and `create` is False.
            StoreError: it cannot be used, or was written by an older or a newer vivavoce.
            MissingExtra: the address is of PostgreSQL and psycopg is not installed.
        """
        place = Place(os.fspath(address))
        store = cls(Database(reach(place, create=create), place))
        try:
            with plain_errors(place):
                prepare(store.database.engine, place, create=create)
                watch(store.database.engine, place)
                guard(store.database.engine)
        except BaseException:
            store.close()
            raise
        return store

    @property
    def browse(self) -> Browse:
        """Lists for people and pages of runs, samples, scores and turns, a page at a time."""
        return cast("Browse", lazy("vivavoce.store.browse.browse:Browse")(self.database, self._kept))

    def fenced(self, fence: Fence) -> Store:
        """Return the same store for the work of a job; it writes nothing once another server has claimed the job."""
        return Store(self.database.fenced(fence))

    def close(self) -> None:
        """Close every connection; close writers first."""
        self.database.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def claimed(self, run_id: str) -> AbstractContextManager[None]:
        """Claim a run to work on it; the claim ends with the process, however that ends.

        Raises:
            Claimed: another process is working on it.
            StoreError: the store cannot be written.
        """
        return claimed(self.database, run_id)

    def held(self, run_id: str) -> bool:
        """Return whether a process is working on a run."""
        return held(self.database, run_id)

    def add_run(self, run: Run, grading: Grading | None = None) -> None:
        """Store a new run with its first grading.

        Raises:
            StoreError: there is a run or a grading of that id, or the store cannot be written.
        """
        with self.database.writing() as connection:
            connection.execute(insert(runs).values(run_values(run)))
            if grading is not None:
                connection.execute(insert(gradings).values(grading_values(grading)))

    def update_run(self, run: Run) -> None:
        """Replace the record of a run, except its title, notes and tags, which people may change meanwhile.

        Raises:
            StoreError: there is no run of that id, or the store cannot be written.
        """
        values = {name: value for name, value in run_values(run).items() if name not in Remarks.model_fields}
        with self.database.writing() as connection:
            before = connection.execute(select(runs.c.status).where(runs.c.id == run.id)).scalar()
            self._update_row(connection, runs, values)
            if run.status == "finished" and before != "finished":
                lazy("vivavoce.store.webhooks:tell")(connection, "run.finished", {"run": run.id, "suite": run.suite})

    def remark(self, run_id: str, change: Remarks, actor: str) -> Run:
        """Change the title, the notes or the tags of a run, log the `actor`, and return it.

        Raises:
            UsageError: there is no run of that id.
            StoreError: the store cannot be written.
        """
        with self.database.writing() as connection:
            lazy("vivavoce.store.runs.writer:remark")(connection, run_id, change, actor)
        return self.run(run_id)

    def run(self, name: str, *, suite: str | None = None, whole: bool = False) -> Run:
        """Return a run by its id, by a unique beginning or end of it, or as `latest`, `latest~1` and so on.

        `suite` names the only suite whose runs are looked at. With `whole`, a partial run is never the latest.

        Raises:
            UsageError: no run, or more than one, has that name.
        """
        among = [] if suite is None else [runs.c.suite == suite]
        if whole and is_latest(name):
            among.append(runs.c.partial_of.is_(None))
        try:
            with self.database.connected() as connection:
                run = run_of(find(connection, runs, runs.c.started_at, name, *among))
        except NotFound as error:
            raise error if suite is None else NotFound("run", name, within=f"suite '{suite}'") from error
        return with_current_status(self.database, [run])[0]

    def runs(self, limit: int = 100) -> list[Run]:
        """Return the newest runs that can be read, newest first."""
        query = select(runs).order_by(runs.c.started_at.desc(), runs.c.id.desc()).limit(limit)
        return with_current_status(self.database, runs_of(self._rows(query)))

    def add_grading(self, grading: Grading) -> None:
        """Store a new grading.

        Raises:
            StoreError: there is a grading of that id, or its run is not in the store.
        """
        with self.database.writing() as connection:
            connection.execute(insert(gradings).values(grading_values(grading)))

    def update_grading(self, grading: Grading) -> None:
        """Replace the record of a grading.

        Raises:
            StoreError: there is no grading of that id, or the store cannot be written.
        """
        self._update(gradings, grading_values(grading))

    def gradings(self, run_id: str) -> list[Grading]:
        """Return the gradings of a run, oldest first."""
        query = select(gradings).where(gradings.c.run_id == run_id).order_by(gradings.c.created_at, gradings.c.id)
        return [grading_of(row) for row in self._rows(query)]

    def grading(self, run_id: str, name: str | None = None) -> Grading:
        """Return a grading of a run by the same kinds of names as `run`; by default the latest complete one.

        Raises:
            UsageError: no grading of the run, or more than one, has that name.
        """
        of_run = gradings.c.run_id == run_id
        if name is None:
            complete = [grading for grading in self.gradings(run_id) if grading.finished_at is not None]
            if complete:
                return complete[-1]
        with self.database.connected() as connection:
            return grading_of(find(connection, gradings, gradings.c.created_at, name or "latest", of_run))

    def writer(
        self, run_id: str, grading_id: str, fingerprints: Mapping[str, str], *, replaces: bool = False
    ) -> OutcomeWriter:
        """Return a writer for the outcomes of a run, with the scores of one grading; `fingerprints` are by grader.

        With `replaces`, an outcome replaces the stored one, which `replaced` still yields.
        """
        found = self._rows(select(runs.c.spec).where(runs.c.id == run_id))
        keys = keys_of_environment(found[0].spec if found else "")
        encoder = Encoder(run_id, grading_id, fingerprints, keys)
        writer = lazy("vivavoce.store.runs.writer:OutcomeWriter")
        return cast("OutcomeWriter", writer(self.database, encoder, replaces=replaces))

    def replies(self) -> ReplyStore:
        """Return the cache of model replies; close it before the store."""
        return cast("ReplyStore", lazy("vivavoce.store.replies:ReplyStore")(self.database))

    def reply(self, key: str) -> StoredReply | None:
        """Return the reply of a model that is kept under a key, None where there is none."""
        found = self._rows(select(replies).where(replies.c.key == key))
        return StoredReply(**values_of(found[0])) if found else None

    def done(self, run_id: str) -> set[AttemptKey]:
        """Return which attempts of a run are stored, so that resuming it can skip them."""
        targets: dict[str, str] = {}
        keys = self._reader(run_id).keys()
        return {AttemptKey(key.sample_id, targets.setdefault(key.target, key.target), key.trial) for key in keys}

    def stored(self, run_id: str, samples: Sequence[str]) -> set[str]:
        """Return which of some samples have an attempt in a run."""
        return self._reader(run_id).stored(samples)

    def cancelled(self, run_id: str) -> set[AttemptKey]:
        """Return which attempts of a run were cancelled, so that resuming it runs them again."""
        return set(self._reader(run_id).cancelled())

    def replaced(self, run_id: str) -> list[Replaced]:
        """Return the retried attempts of a run, oldest first."""
        with self.database.connected() as connection:
            return list(lazy("vivavoce.store.runs.writer:replaced_attempts")(connection, run_id))

    def counts(self, run_id: str) -> tuple[int, int]:
        """Return how many attempts of a run are stored, and how many of these failed."""
        a = attempts.c
        query = select(func.count().label("stored"), func.count(a.failure).label("failed")).where(a.run_id == run_id)
        (found,) = self._rows(query)
        return found.stored, found.failed

    def named_conversation(self, run_id: str, name: str) -> tuple[str, int | None]:
        """Return the sample and the trial, as the store keeps it, that `SAMPLE` or `SAMPLE#2` means in a run.

        The trial is None if the name has none. A sample whose own id ends like the number of a trial, such as
        `issue#2`, is found by its id.

        Raises:
            UsageError: the name says trial 0, and no sample has that id.
        """
        if "#" not in name or any(True for _ in self.attempts(run_id, sample_id=name)):
            return name, None
        return split_name(name)

    def attempts(self, run_id: str, *, sample_id: str | None = None) -> Iterator[Attempt]:
        """Yield the attempts of a run with all their messages, in the order of its plan."""
        return self._reader(run_id).attempts(sample_id)

    def outcomes(self, grading_id: str, *, sample_id: str | None = None) -> Iterator[Outcome]:
        """Yield the attempts of a graded run with the grades of this grading, in the order of its plan.

        An attempt without grades in this grading is included, too.

        Raises:
            UsageError: there is no such grading.
        """
        return self._reader(self._graded_run(grading_id)).outcomes(grading_id, sample_id)

    def scores(self, grading_id: str) -> Iterator[ScoreRow]:
        """Yield the scores of whole conversations, in the order of the plan of the run.

        Raises:
            UsageError: there is no such grading.
        """
        return self._reader(self._graded_run(grading_id)).scores(grading_id)

    def used_by_targets(self, run_id: str) -> dict[str, Usage]:
        """Return what each target of a run used in all its conversations, except targets that report none."""
        found: dict[str, Usage] = {}
        for target, used in self._reader(run_id).usage():
            found[target] = found.get(target, Usage()) + used
        return found

    def errors(self, grading_id: str) -> Iterator[ErrorRow]:
        """Yield the attempts without a score because of an error, each with its first error.

        Raises:
            UsageError: there is no such grading.
        """
        return self._reader(self._graded_run(grading_id)).errors(grading_id)

    def failures(self, grading_id: str) -> Iterator[FailureRow]:
        """Yield what failed, in the order of the plan of the run: errors, and scores of graders that did not pass.

        Where the score of a conversation has scores of turns, these are yielded in its place.

        Raises:
            UsageError: there is no such grading.
        """
        return failing(self._reader(self._graded_run(grading_id)), grading_id)

    def failed_samples(self, grading_id: str) -> list[str]:
        """Return the ids of the samples with a score that does not pass or an error, in the order of the plan.

        Raises:
            UsageError: there is no such grading.
        """
        return self._reader(self._graded_run(grading_id)).failed_samples(grading_id)

    def error_count(self, grading_id: str) -> int:
        """Return how many attempts lack a score because something broke.

        Raises:
            UsageError: there is no such grading.
        """
        return self._reader(self._graded_run(grading_id)).error_count(grading_id)

    def turn_scores(self, grading_id: str, name: str) -> Iterator[tuple[AttemptKey, int, State, float | None]]:
        """Yield attempt, turn, state and value of each score of one grader for a turn.

        Raises:
            UsageError: there is no such grading.
        """
        return self._reader(self._graded_run(grading_id)).turn_scores(grading_id, name)

    def search(self, text: str, *, run: str | None = None, limit: int = 20, before: int | None = None) -> list[Hit]:
        """Return the messages and reasons that fit a query, newest first; see `vivavoce.store.search.query`.

        Case and accents are ignored. `run` is the id of a single run to search. Records committed since the last search
        are indexed first. `before` is the number of the last hit of the previous page.

        Raises:
            UsageError: the query cannot be read, or that hit no longer exists.
        """
        hits: list[Hit] = []
        while True:
            found = self.searcher.find(text, run_id=run, limit=limit - len(hits), before=before)
            hits += found.hits
            before = found.next
            if before is None or len(hits) == limit:
                return hits

    def index_pending(self, until: Callable[[], bool] = lambda: False) -> int:
        """Index what is pending, and return how many attempts and gradings of attempts that was.

        It stops between two batches once `until` returns True.
        """
        return self.searcher.index_pending(until)

    def _reader(self, run_id: str) -> Reader:
        return Reader(self.database, run_id)

    def _graded_run(self, grading_id: str) -> str:
        rows = self._rows(select(gradings.c.run_id).where(gradings.c.id == grading_id))
        if not rows:
            raise NotFound("grading", grading_id)
        return rows[0].run_id

    def _rows(self, query: AnySelect) -> Sequence[AnyRow]:
        with self.database.connected() as connection:
            return connection.execute(query).all()

    def _update(self, table: Table, values: dict[str, Any]) -> None:
        with self.database.writing() as connection:
            self._update_row(connection, table, values)

    def _update_row(self, connection: Connection, table: Table, values: dict[str, Any]) -> None:
        if not connection.execute(update(table).where(table.c.id == values["id"]).values(values)).rowcount:
            raise StoreError(f"{self.place}: there is no {values['id']} in {table.name}")
