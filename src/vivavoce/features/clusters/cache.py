"""`ClusterCache`: clusters of graded runs, which are found once as long as the run has the same scores.

Their names are those that a judge was asked for: they are kept with its replies, so that every server shows them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from weakref import WeakKeyDictionary, WeakValueDictionary

from anyio import CapacityLimiter, to_thread
from fastapi import Request

from vivavoce.errors import UsageError
from vivavoce.features.clusters.finding import ClusterResult, find_clusters
from vivavoce.features.clusters.naming import name_clusters
from vivavoce.features.clusters.records import Clusters
from vivavoce.models.cache import CachedModel, OfflineModel, decode_reply
from vivavoce.models.names import model_identity, model_name
from vivavoce.pacing.limits import Budget
from vivavoce.pacing.loops import wait_for
from vivavoce.records.replies import StoredReply
from vivavoce.records.run import Grading
from vivavoce.records.score import Usage, total
from vivavoce.server.fair_share import FairShare
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.state import server_of, store_of
from vivavoce.server.users import user_of
from vivavoce.store.database.schema import json_text
from vivavoce.store.store import Store
from vivavoce.suites.grading_spec import JudgeSpec
from vivavoce.suites.judges import JudgeOpener

MAX_CACHED = 8
"""Runs whose clusters are kept."""


SEARCHES = 2
"""Runs whose clusters are searched for at a time; others wait."""

SEARCHES_FOR_USER = 1
"""The same of one user."""

_Key = tuple[str, int, str | None]
"""What clusters are known by: a set of scores as it is now, and a grader."""


class ClusterCache:
    """The clusters of one server; safe for use from any thread, and those of a run are searched for once at a time."""

    def __init__(self) -> None:
        self._cache: OrderedDict[_Key, ClusterResult] = OrderedDict()
        self._lock = threading.Lock()
        self._searching: WeakValueDictionary[_Key, threading.Lock] = WeakValueDictionary()
        self._places = FairShare(SEARCHES, SEARCHES_FOR_USER)
        self._threads = CapacityLimiter(SEARCHES)

    async def find_in_turn(
        self, request: Request, run: str, grading: str | None, grader: str | None = None
    ) -> ClusterResult:
        """Return the clusters of a run of the store, which are searched for once it is the turn of the user.

        Raises:
            UsageError: there is no such run, set of scores, or grader.
            StoreError: the store cannot be read.
        """
        store = store_of(request)

        def look_up() -> tuple[Grading, ClusterResult | None]:
            graded = store.grading(store.run(run).id, grading)
            return graded, self._get(_key(store, graded, grader))

        graded, clusters = await to_thread.run_sync(look_up)
        if clusters is not None:
            return clusters
        async with self._places.take(user_of(request)):
            return await to_thread.run_sync(self.find, store, graded, grader, limiter=self._threads)

    def find(self, store: Store, grading: Grading, grader: str | None = None) -> ClusterResult:
        """Return the result of `find_clusters`.

        Raises:
            UsageError: there is no such grader.
        """
        key = _key(store, grading, grader)
        with self._lock:
            searching = self._searching.setdefault(key, threading.Lock())
        with searching:
            if (cached := self._get(key)) is not None:
                return cached
            clusters = find_clusters(store, grading, grader=grader)
            with self._lock:
                self._cache[key] = clusters
                while len(self._cache) > MAX_CACHED:
                    self._cache.popitem(last=False)
            return clusters

    def _get(self, key: _Key) -> ClusterResult | None:
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
            return self._cache.get(key)


def _key(store: Store, grading: Grading, grader: str | None) -> _Key:
    return json_text(grading) or "", store.browse.count_samples(grading.id), grader


_caches: WeakKeyDictionary[object, ClusterCache] = WeakKeyDictionary()
"""The cache of each application."""
_caches_lock = threading.Lock()


def cluster_cache(request: Request) -> ClusterCache:
    """Return the cache of the application that answers a request."""
    with _caches_lock:
        return _caches.setdefault(request.app, ClusterCache())


def naming_judge(policy: ServerPolicy, name: str | None) -> str | None:
    """Return the judge that names clusters, by default the first of those that requests may use; None without any.

    Raises:
        UsageError: the model is not allowed.
    """
    return policy.judge(name) if name else next(iter(policy.judges), None)


def with_kept_names(store: Store, clusters: Clusters, judge: str | None) -> Clusters:
    """Return clusters with the names that a judge gave before, if it did; nobody is asked.

    The usage is what the calls for these names used.

    Raises:
        StoreError: the store cannot be read.
    """
    if judge is None or not clusters.clusters:
        return clusters
    cached_replies = _ReadOnlyReplies(store)
    offline = OfflineModel(model_name(judge), identity=model_identity(judge))
    named_clusters = wait_for(name_clusters(clusters, CachedModel(offline, cached_replies, offline=True)))
    if named_clusters.naming is None:
        return clusters
    return named_clusters.model_copy(
        update={"naming": named_clusters.naming.model_copy(update={"usage": total(cached_replies.used)})}
    )


async def ask_for_names(request: Request, clusters: Clusters, judge: str | None) -> Clusters:
    """Ask a judge to name clusters, and keep its answer, so that pages show the names.

    Raises:
        UsageError: there is no judge, or it cannot be opened.
        StoreError: the store cannot be read or written.
    """
    if judge is None:
        raise UsageError("naming clusters needs a judge: start the server with --judge MODEL, or set VIVAVOCE_JUDGE")
    store = store_of(request)

    async def name_all() -> Clusters:
        async with store.replies() as replies:
            model = JudgeOpener(Budget(), replies).open(judge, JudgeSpec())
            try:
                return await name_clusters(clusters, model)
            finally:
                await model.close()

    return await to_thread.run_sync(lambda: wait_for(name_all()), limiter=server_of(request).evaluations)


class _ReadOnlyReplies:
    """The replies of a store, which are only read; `used` is what the calls for those that were found used."""

    next_step = ""
    of_any_model = False

    def __init__(self, store: Store) -> None:
        self.used: list[Usage | None] = []
        self._store = store

    def get(self, key: str) -> str | None:
        """Return the reply of a key, None where there is none."""
        stored = self._store.reply(key)
        if stored is None:
            return None
        self.used.append(decode_reply(stored.reply).usage)
        return stored.reply

    async def put(self, reply: StoredReply) -> None:
        """Do nothing: a model that is never asked has no new replies."""

    def reject(self, key: str) -> None:
        """Do nothing: what is kept stays as it is."""
