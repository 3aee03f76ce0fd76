"""`SharedSession`: what all tests of one call of pytest share: the store, the judge, the cassette, one run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from vivavoce.errors import UsageError
from vivavoce.models.cache import Replies, export_replies
from vivavoce.models.model import Model
from vivavoce.pacing.limits import Budget
from vivavoce.pacing.loops import wait_for
from vivavoce.penelope.agent import PenelopeAgent
from vivavoce.plugins import is_file_reference, load_object
from vivavoce.run.experiment_run import new_id
from vivavoce.settings import settings
from vivavoce.store.database.address import Place, is_postgresql
from vivavoce.store.replies import ReplyStore
from vivavoce.store.store import Store
from vivavoce.suites.grading_spec import JudgeSpec
from vivavoce.suites.judges import JudgeOpener
from vivavoce.targets.endpoint import EndpointTarget
from vivavoce.targets.function import as_target
from vivavoce.targets.target import Target
from vivavoce.testing.assertion_run import AssertionRun
from vivavoce.testing.recorded_replies import NewCassette, RecordedReplies, ReplayedReplies
from vivavoce.testing.talking_target import TalkingTarget


@dataclass
class SharedSession:
    """Opens each thing when it is first asked for; names are those of the configuration, empty where it has none.

    `token` is the same in every worker of a call of pytest, so that they add to the same run. Paths start at `base`.
    With `records`, judges are asked, and their replies go to the `cassette`; without, it answers alone.
    """

    token: str = ""
    base: Path = field(default_factory=Path)
    store_name: str = ""
    judge_name: str = ""
    tester_name: str = ""
    target_name: str = ""
    cassette: Path | None = None
    records: bool = False

    @property
    def place(self) -> str:
        """Where the store is; a relative path of the configuration starts at `base`."""
        if not self.store_name:
            return settings().store
        store_place = Place(self.store_name)
        return self.store_name if is_postgresql(store_place) else str(self.base / self.store_name)

    @property
    def options(self) -> list[str]:
        """What `viva show` needs to find the store."""
        own, default = self.place, settings().store
        return [] if os.path.abspath(own) == os.path.abspath(default) else ["--store", str(Place(own))]

    @property
    def replays(self) -> bool:
        """Whether no model is asked, because a cassette answers."""
        return self.cassette is not None and not self.records

    @cached_property
    def store(self) -> Store:
        """The store of the session."""
        return Store.open(self.place)

    @cached_property
    def assertions(self) -> AssertionRun:
        """The run that every `viva_assert` adds to."""
        return AssertionRun(self.store, new_id("pytest", self.token or None))

    @property
    def has_assertions(self) -> bool:
        """Whether this process began to assert, also in a test that was interrupted."""
        return "assertions" in vars(self)

    @cached_property
    def cassette_replies(self) -> Replies | None:
        """The replies of the cassette, None where none is named."""
        if self.cassette is None:
            return None
        return RecordedReplies(self.cassette, self._reply_store) if self.records else ReplayedReplies(self.cassette)

    @property
    def replies(self) -> Replies:
        """Where the answers of judges are kept."""
        return self.cassette_replies or self._reply_store

    @cached_property
    def judges(self) -> JudgeOpener:
        """Opens the judges of tests."""
        return JudgeOpener(Budget(), self.replies, self.replays, base=self.base)

    @cached_property
    def judge(self) -> Model | None:
        """The judge that the configuration or VIVAVOCE_JUDGE names, None where neither does."""
        name = self.judge_name or settings().judge
        return None if name is None else self.judges.open(name, JudgeSpec())

    @cached_property
    def tester(self) -> PenelopeAgent:
        """The tester that the configuration or VIVAVOCE_TESTER names, with the judge of the session.

        Raises:
            UsageError: neither names one.
        """
        name = self.tester_name or settings().tester
        if name is None:
            raise UsageError(_unnamed_message("viva_tester", "VIVAVOCE_TESTER"))
        model = self.judges.open(name, JudgeSpec())
        return PenelopeAgent(model, judge=self.judge or model)

    @cached_property
    def target(self) -> TalkingTarget:
        """The target that the configuration or VIVAVOCE_TARGET names.

        Raises:
            UsageError: neither names one, or what it names cannot be used.
        """
        return TalkingTarget(self._target())

    def needed_judge(self) -> Model:
        """Return the judge.

        Raises:
            UsageError: nobody names one.
        """
        if self.judge is None:
            raise UsageError(_unnamed_message("viva_judge", "VIVAVOCE_JUDGE"))
        return self.judge

    def used_replies(self) -> list[str]:
        """Return the keys of the replies that were used while recording."""
        replies = vars(self).get("cassette_replies")
        return sorted(replies.used) if isinstance(replies, RecordedReplies) else []

    def write_cassette(self, used: Iterable[str]) -> int:
        """Add the used replies to the cassette, and return how many it has now.

        Raises:
            UsageError: it cannot be written.
        """
        assert self.cassette is not None
        self.cassette.parent.mkdir(parents=True, exist_ok=True)
        return export_replies(NewCassette(self.cassette, self._reply_store, frozenset(used)), self.cassette)

    def close(self) -> None:
        """Close what was opened; what was asked of a judge is kept."""
        opened = vars(self)
        if "_kept" in opened:
            wait_for(self._reply_store.close())
        if "store" in opened:
            self.store.close()

    @cached_property
    def _reply_store(self) -> ReplyStore:
        return self.store.replies()

    def _target(self) -> Target:
        name = self.target_name or settings().target
        if name is None:
            raise UsageError(_unnamed_message("viva_target", "VIVAVOCE_TARGET"))
        if is_file_reference(name):
            return as_target(load_object(name, self.base), name.rpartition(":")[2])
        return EndpointTarget(name)


def _unnamed_message(fixture: str, variable: str) -> str:
    return (
        f"nothing is named for {fixture}: set {fixture} in [tool.pytest.ini_options], or set {variable}, or write a "
        "fixture of that name in conftest.py"
    )
