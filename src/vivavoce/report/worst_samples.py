"""What was asked and what the target said, in one line each: next to a score that did not pass."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from vivavoce.messages import HumanMessage
from vivavoce.records.run import Attempt, AttemptKey, Grading, Outcome, ScoreRow
from vivavoce.records.score import Score, turn_label
from vivavoce.records.trajectory import assistant_texts, tool_calls
from vivavoce.report.text import one_line
from vivavoce.report.verdict import ErrorGroup, error_groups
from vivavoce.run.summary import Summary
from vivavoce.store.browse.scenarios import ScoreText
from vivavoce.store.store import Store

_EXCHANGE_WIDTH = 120
"""Characters of a question and of an answer at most."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question of the user and the answer, shortened and safe to show; empty where nothing was said.

    `session` says in which one, where users come back in several.
    """

    question: str
    answer: str
    session: str = ""

    def __str__(self) -> str:
        words = f"“{self.question}” → {f'“{self.answer}”' if self.answer else 'no answer'}"
        return f"{self.session}: {words}" if self.session else words

    @property
    def question_label(self) -> str:
        """The words before the question."""
        return f"asked in {self.session}" if self.session else "asked"


def exchange_of(attempt: Attempt, score: Score | None = None) -> Exchange | None:
    """Return the exchange that a score is about: its lowest turn, else the last; None where nobody said anything.

    An answer that only calls tools is their names.
    """
    turns = attempt.trajectory.turns
    index = None if score is None else lowest_turn(score)
    turn = next((turn for turn in turns if turn.index == index), turns[-1] if turns else None)
    if turn is None:
        return None
    question = " ".join(message.text for message in turn.messages if isinstance(message, HumanMessage))
    answer = " ".join(assistant_texts(turn.messages))
    if not answer and (calls := tool_calls(turn.messages)):
        answer = f"calls {', '.join(call.name for call in calls)}"
    session = "" if turn.mark is None else one_line(turn.mark.label, _EXCHANGE_WIDTH)
    return Exchange(one_line(question, _EXCHANGE_WIDTH), one_line(answer, _EXCHANGE_WIDTH), session)


def lowest_turn(score: Score) -> int | None:
    """Return the turn with the lowest value, else that of the first finding against it, None where no turn has one."""
    values = [(turn.value, turn.turn) for turn in score.turns or () if turn.value is not None and turn.turn is not None]
    if values:
        return min(values)[1]
    return next(
        (finding.turn for finding in score.findings if finding.state == "fail" and finding.turn is not None), None
    )


WIDTH = 200
"""Characters of a reason, or of what a system answered, at most."""


@dataclass(frozen=True, slots=True)
class Worst:
    """A bad attempt, or all attempts of one target with the same error; `key` is the first.

    `score` is the mean over the graders, None if something could not be scored. `group` is the name of several
    attempts with the same error, such as `7 samples`, None for a single one. `said` is what was asked and answered in
    the lowest turn, None where an error left nothing to quote.
    """

    key: AttemptKey
    score: float | None
    why: str
    group: str | None = None
    exchange: Exchange | None = None


@dataclass(frozen=True, slots=True)
class WorstSamples:
    """The worst samples, and how many more bad ones there are."""

    samples: Sequence[Worst]
    more: int


def worst(store: Store, grading: Grading, limit: int = 5) -> WorstSamples:
    """Return up to `limit` errors, equal ones grouped, then up to `limit` failed samples, the lowest first.

    Of the errors the most frequent come first. Only the scores are read, and the conversations of the returned samples
    with a score. Among equals the earlier comes first.
    """
    seen = _Seen()
    lowest = heapq.nsmallest(limit, seen.low(store.scores(grading.id)))
    groups = error_groups(store, grading, limit)
    samples = [Worst(group.key, None, group.why, seen.name(group)) for group in groups.groups]
    decisive = _decisive(grading)
    samples += [_build_worst(outcome_of(store, grading, key), mean, decisive) for mean, _, key in lowest]
    return WorstSamples(samples, groups.more + seen.below - len(lowest))


@dataclass(slots=True)
class _Seen:
    """The counts over all scores: attempts by target, and failed attempts."""

    attempts: Counter[str] = field(default_factory=Counter[str])
    below: int = 0
    repeated: bool = False

    def low(self, rows: Iterable[ScoreRow]) -> Iterator[tuple[float, int, AttemptKey]]:
        """Yield mean, place and key of each attempt with a score that did not pass."""
        for place, (key, group) in enumerate(groupby(rows, lambda row: row.key)):
            message = list(group)
            self.attempts[key.target] += 1
            self.repeated |= key.trial > 0
            if any(row.state == "error" for row in message):
                continue
            if any(row.passed is False for row in message) and (mean := _mean(message)) is not None:
                self.below += 1
                yield mean, place, key

    def name(self, group: ErrorGroup) -> str | None:
        """Return the name of several attempts with the same error, None for a single one."""
        if group.number == 1:
            return None
        if group.number == self.attempts[group.key.target]:
            return f"all {group.number:,}"
        return f"{group.number:,} {'conversations' if self.repeated else 'samples'}"


def why(name: str, score: Score | ScoreText) -> str:
    """Return in one line the reason of a grader, for the lowest turn if there are turns."""
    if score.failure is not None:
        return one_line(f"{name}: {score.failure}", WIDTH)
    if scores := [(turn.value, turn) for turn in score.turns or () if turn.value is not None]:
        value, lowest = min(scores, key=lambda pair: pair[0])
        return one_line(f"{name}, {turn_label(lowest.turn)}: {lowest.reason or f'scored {value:.3g}'}", WIDTH)
    plain = score.state if score.value is None else f"scored {score.value:.3g}"
    return one_line(f"{name}: {score.reason or plain}", WIDTH)


def outcome_of(store: Store, grading: Grading, key: AttemptKey) -> Outcome:
    """Return the result of one attempt."""
    return next(
        outcome for outcome in store.outcomes(grading.id, sample_id=key.sample_id) if outcome.attempt.key == key
    )


def _mean(rows: Sequence[ScoreRow]) -> float | None:
    values = [row.value for row in rows if row.kind == "grade" and row.value is not None]
    return math.fsum(values) / len(values) if values else None


def _decisive(grading: Grading) -> frozenset[str]:
    """Return the graders that a run fails because of."""
    reasons = [] if grading.summary is None else Summary.model_validate(grading.summary).reasons
    return frozenset(name for reason in reasons if reason.verdict == "fail" for name in reason.graders)


def _build_worst(outcome: Outcome, mean: float, decisive: frozenset[str]) -> Worst:
    name = _lowest(outcome, decisive)
    score = _all(outcome)[name]
    return Worst(outcome.attempt.key, mean, why(name, score), exchange=exchange_of(outcome.attempt, score))


def _lowest(outcome: Outcome, decisive: frozenset[str]) -> str:
    """Return the grader of the lowest score that does not pass, first of those that the run fails because of."""
    scored = [
        (score.passed is not False, name not in decisive, score.value, name)
        for name, score in _all(outcome).items()
        if score.value is not None
    ]
    return min(scored)[3]


def _all(outcome: Outcome) -> dict[str, Score]:
    return {**outcome.scores, **({} if outcome.reward is None else {"reward": outcome.reward})}
