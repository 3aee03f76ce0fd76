"""`Experiment`: samples × targets × driver × graders × gate × limits, as plain data.

A suite, a command, Python and a job each build one; an `ExperimentRun` executes it.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vivavoce.grading.gates import Gate
from vivavoce.grading.grader import Grader
from vivavoce.grading.rewards import Composer
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.models.model import Model
from vivavoce.records.run import DrawRecord, Sampling, Severity
from vivavoce.records.trajectory import Trajectory
from vivavoce.samples.sample import Sample
from vivavoce.targets.target import Target

if TYPE_CHECKING:  # what has no tester, no batches, and no summary yet loads none
    from vivavoce.run.batches import BatchedJudges
    from vivavoce.run.stopping import Stopping
    from vivavoce.run.tester import Tester


class AgreementPair(NamedTuple):
    """Two graders to compare; a pass counts as yes, or with a `threshold` any score from there on."""

    predictor: str
    truth: str
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Scoring:
    """The graders in their order, the reward, the gate, which graders are compared, and what to close at the end.

    `stopping` says when the trials are enough, None where their number is fixed.
    """

    graders: tuple[Grader, ...]
    composer: Composer | None = None
    gate: Gate | None = None
    agreement: tuple[AgreementPair, ...] = ()
    opened: tuple[Model | BaseMultiTurnMetric, ...] = ()
    reward_fingerprint: str | None = None
    stopping: Stopping | None = None

    @property
    def requirements(self) -> dict[str, Severity]:
        """The graders that every conversation must pass, with what a miss does."""
        return {grader.name: grader.severity for grader in self.graders if grader.severity is not None}

    @property
    def fingerprints(self) -> dict[str, str]:
        """What decides each grader's scores, and the reward, as a hash by its name."""
        prints = {grader.name: grader.fingerprint for grader in self.graders}
        return prints | ({"reward": self.reward_fingerprint} if self.reward_fingerprint else {})


Held = Mapping[str, Trajectory]
"""What was held of a conversation before it goes on, by the id of its sample; a tester's turns are in its test."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Where the samples come from: `read` yields them one at a time, the same ones each time that a run resumes.

    `count` is their number, None if it is not known before the end. `dataset` is a hash that identifies them, or
    `records.run.GIVEN_IN_PYTHON`; `place` is where they are, in words. Regrading needs neither.
    Where they were drawn from more, `sampling` says how, and `drawn` how each of them was, in their order.
    """

    read: Callable[[], Iterable[Sample] | AsyncIterable[Sample]]
    count: int | None = None
    dataset: str = ""
    place: str = ""
    sampling: Sampling | None = None
    drawn: Sequence[DrawRecord] = ()


@dataclass(frozen=True, slots=True)
class Scripted:
    """Sends the inputs of a sample one after the other; at the end it can read the memory of the target."""

    wants_state: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """How many conversations are held at a time, how many seconds a reply of a target may take, and its retries.

    `timeout` is None where the targets keep to a time limit of their own.
    """

    concurrency: int
    timeout: float | None = 300.0
    retries: int = 2


@dataclass(frozen=True, slots=True)
class Description:
    """What the record of a run has about its experiment, so that it can be shown, compared, resumed and graded again.

    `spec` is the experiment as data, with the keys of a suite and without secrets; `base` is the folder where its paths
    start, `source` the file or the command that it comes from, and `code` a hash of the code under test, None if that
    is not in a file.
    """

    spec: dict[str, Any]
    base: Path
    source: str
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Experiment:
    """What is examined: the samples, the targets, who leads, how it is graded, and the limits of a target's replies.

    Without a `driver` the samples are recorded conversations, which need no `targets` and have one trial each; what was
    recorded of a sample are its messages, unless `recorded` says what it was.
    `held` is what was held before of conversations that are gone on from.
    `limits` are those of every target but the ones that have limits of their own, by name, in `own_limits`.
    `set_up` is called once before the first conversation. With `batches` its judges are asked in batches. How far a run
    of it may go (calls, cost, errors) is said by its `RunOptions`.
    """

    name: str
    samples: Samples
    scoring: Scoring
    limits: Limits
    description: Description
    driver: Scripted | Tester | None = None
    targets: tuple[Target, ...] = ()
    own_limits: Mapping[str, Limits] = field(default_factory=dict[str, Limits])
    trials: int = 1
    recorded: Callable[[Sample], Trajectory] | None = None
    set_up: Callable[[], Awaitable[None]] | None = None
    held: Held = field(default_factory=dict[str, Trajectory])
    batches: BatchedJudges | None = None
    notes: tuple[str, ...] = ()

    def limits_of(self, target: Target) -> Limits:
        """Return the limits of one of the targets."""
        return self.own_limits.get(target.name, self.limits)

    @property
    def planned(self) -> int | None:
        """How many conversations there will be, None if that is not known."""
        count = self.samples.count
        return None if count is None else count * max(1, len(self.targets)) * self.trials

    @property
    def tester(self) -> Tester | None:
        """The tester that leads the conversations, None where they are scripted or recorded."""
        return None if self.driver is None or isinstance(self.driver, Scripted) else self.driver

    @property
    def tester_fingerprint(self) -> str:
        """A hash of everything that decides what the tester does; "" if there is no tester."""
        return "" if self.tester is None else self.tester.agent.fingerprint

    async def close(self) -> None:
        """Close what was opened for the experiment."""
        agents = () if self.tester is None else (self.tester.agent,)
        for opened in (*self.targets, *self.scoring.opened, *agents):
            await opened.close()
