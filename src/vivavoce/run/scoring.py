"""What grades an experiment: its graders, its reward and its gate."""

from __future__ import annotations

from dataclasses import dataclass

from vivavoce.grading.gates import Gate
from vivavoce.grading.grader import Grader
from vivavoce.grading.rewards import Composer
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.models.model import Model
from vivavoce.records.reason import Severity
from vivavoce.run.stopping import Stopping
from vivavoce.run.summary import AgreementPair


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
