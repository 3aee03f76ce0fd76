"""Opening the judges that a suite names: each call counts against the budget of the run, each answer is cached."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from vivavoce.errors import UsageError
from vivavoce.extensions import needed_answer
from vivavoce.models.custom import as_model
from vivavoce.models.model import Model
from vivavoce.models.names import UNUSED_KEY, model_identity, model_name, open_model
from vivavoce.pacing.limits import Budget, RateLimit
from vivavoce.plugins import is_file_reference, lazy, load_object
from vivavoce.suites.grading_spec import JudgeSpec
from vivavoce.wire.http import Limits

if TYPE_CHECKING:
    from vivavoce.models.cache import Replies
    from vivavoce.run.batches import BatchedJudges


def judges_in_batches(budget: Budget, replies: Replies | None) -> BatchedJudges:
    """Return judges that are asked in batches; a check has no `replies`.

    Raises:
        UsageError: the feature is switched off.
    """
    judges: BatchedJudges = needed_answer("--batch", "batches", "ask_in_batches", budget=budget, replies=replies)
    return judges


@dataclass(frozen=True, slots=True)
class JudgeOpener:
    """Opens judges by name; a check opens them without API keys, because it calls nothing.

    `replies` is the cache of answers, None for no cache. Offline, only cached answers are used. `base` is where the
    paths of `file.py:name` start. With `batches` judges are asked in batches, and never directly.
    """

    budget: Budget
    replies: Replies | None = None
    offline: bool = False
    concurrency: int = 64
    keys_needed: bool = True
    base: Path = Path()
    batches: BatchedJudges | None = None
    rates: dict[tuple[str, float | None, float | None], RateLimit] = field(
        default_factory=dict[tuple[str, float | None, float | None], RateLimit]
    )

    def open(self, judge: str | Model, spec: JudgeSpec) -> Model:
        """Return a judge or a tester, ready to use; a model object, or one from a file, keeps its own rate limits.

        Raises:
            UsageError: the name has no known form, an API key is missing, or a limit is set on calls that cannot be
            counted.
        """
        if self.batches is not None:
            return self._batch_model(judge, spec, self.batches)
        if not isinstance(judge, str):
            return self._prebuilt(judge)
        if is_file_reference(judge):
            return self._from_file(as_model(load_object(judge, self.base)))
        return self._open_by_name(judge, spec)

    def _batch_model(self, judge: str | Model, spec: JudgeSpec, batches: BatchedJudges) -> Model:
        """Return a judge that is asked in batches."""
        if not isinstance(judge, str) or is_file_reference(judge):
            name = judge if isinstance(judge, str) else judge.name
            raise UsageError(f"{name} does not support batches; use a judge given by name, such as openai:NAME")
        model = open_model(judge, api_key=self._key(spec), structured=spec.structured)
        return batches.open(model)

    def _from_file(self, model: Model) -> Model:
        """Return a model from a user's file, as it is where its answers are not kept, because the file may change."""
        is_cached = self.replies is not None and self.replies.of_any_model
        if is_cached or self.offline or self.budget.limits_calls or self.budget.limits_cost:
            return self._prebuilt(model)
        return model

    def _prebuilt(self, judge: Model) -> Model:
        if self.offline and self.replies is not None:
            return _cache_model(judge, self.replies, offline=True)
        if self.budget.limits_calls or self.budget.limits_cost:
            raise UsageError(f"a limit on calls or cost needs a judge given by name; {judge.name} has its own budget")
        return judge if self.replies is None else _cache_model(judge, self.replies)

    def _open_by_name(self, name: str, spec: JudgeSpec) -> Model:
        if self.offline and self.replies is not None:
            return _cache_model(offline_model(model_name(name), model_identity(name)), self.replies, offline=True)
        limits = Limits(timeout=spec.timeout, concurrency=self.concurrency)
        model = open_model(
            name,
            api_key=self._key(spec),
            limits=limits,
            structured=spec.structured,
            budget=self.budget,
            tries=spec.max_retries + 1,
            rate=self._rate(name, spec),
        )
        return model if self.replies is None else _cache_model(model, self.replies)

    def _rate(self, name: str, spec: JudgeSpec) -> RateLimit | None:
        """Return the rate limits of the provider of a model; models with equal numbers share one limiter."""
        numbers = (spec.requests_per_minute, spec.tokens_per_minute)
        if numbers == (None, None):
            return None
        provider = model_name(name).partition("#" if "#" in model_name(name) else ":")[0]
        return self.rates.setdefault((provider, *numbers), RateLimit(*numbers))

    def _key(self, spec: JudgeSpec) -> str | None:
        if not self.keys_needed:
            return UNUSED_KEY
        if spec.api_key_env is None:
            return None
        key = os.environ.get(spec.api_key_env)
        if not key:
            raise UsageError(f"needs a key: set the environment variable {spec.api_key_env}")
        return key


def offline_model(name: str, identity: str | None = None) -> Model:
    """Return a model that takes no key and is never asked: it stands for one that is only named."""
    return lazy("vivavoce.models.cache:OfflineModel")(name, identity=identity)


def _cache_model(model: Model, replies: Replies, *, offline: bool = False) -> Model:
    return lazy("vivavoce.models.cache:CachedModel")(model, replies, offline=offline)
