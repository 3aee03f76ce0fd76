"""Records as rows: named tuples with JSON as text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import PydanticSerializationError

from vivavoce.errors import StoreError
from vivavoce.messages import AnyMessage, dump_messages
from vivavoce.records.redaction import NO_KEYS, SHORTEST, Keys, keys_of_environment
from vivavoce.records.run import Attempt, AttemptKey, Grading, Outcome, Run
from vivavoce.records.score import Evidence, Failure, Finding, Score
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.store.browse.status import tagged
from vivavoce.store.database.text import json_text
from vivavoce.store.runs.rows import AttemptCells, Entry, ScoreCells, TurnCells


@dataclass(frozen=True, slots=True)
class Encoder:
    """Makes the rows of one grading of one run; `fingerprints` are by grader name, and `keys` never stand in a row."""

    run_id: str
    grading_id: str
    fingerprints: Mapping[str, str]
    keys: Keys = NO_KEYS

    def outcome(self, outcome: Outcome) -> Entry:
        """Return everything about an attempt.

        Raises:
            StoreError: something in it cannot be written, such as a list that contains itself.
        """
        attempt = outcome.attempt
        try:
            return self._without_keys(
                Entry(
                    key=attempt.key,
                    attempt=self._attempt(attempt),
                    turns=[_turn(turn) for turn in attempt.trajectory.turns],
                    scores=list(self._scores(outcome.scores, outcome.reward)),
                )
            )
        except (ValueError, TypeError, RecursionError) as error:
            raise _unwritable(attempt.key, error) from error

    def scores(self, key: AttemptKey, scores: Mapping[str, Score], reward: Score | None) -> Entry:
        """Return new scores of an attempt that is in the store.

        Raises:
            StoreError: something in them cannot be written.
        """
        try:
            return self._without_keys(Entry(key=key, scores=list(self._scores(scores, reward))))
        except (ValueError, TypeError, RecursionError) as error:
            raise _unwritable(key, error) from error

    def _without_keys(self, entry: Entry) -> Entry:
        """Return an entry without keys; nearly none has one, and to look once is quicker than to look cell by cell."""
        if not self.keys.spellings:
            return entry
        rows = (entry.attempt or (), *entry.turns, *entry.scores)
        texts = [cell for row in rows for cell in row if isinstance(cell, str) and len(cell) >= SHORTEST]
        return entry.with_texts(self.keys.cut) if self.keys.are_in("\0".join(texts)) else entry

    def _attempt(self, attempt: Attempt) -> AttemptCells:
        talk = attempt.trajectory
        return AttemptCells(
            run_id=self.run_id,
            sample_id=attempt.key.sample_id,
            target=attempt.key.target,
            trial=attempt.key.trial,
            position=attempt.position,
            scenario=attempt.scenario,
            session_id=talk.session_id,
            started_at=attempt.started_at,
            seconds=talk.seconds,
            sample=attempt.sample,
            opening=_messages(talk.opening) if talk.opening else None,
            state=json_text(talk.state),
            failure=_failure(talk.failure),
            usage=_usage(talk),
            test=None if talk.test is None else json_text(talk.test.model_dump(mode="json", exclude_none=True)),
            stratum=None if attempt.drawn is None else attempt.drawn.stratum,
            probability=None if attempt.drawn is None else attempt.drawn.probability,
        )

    def _scores(self, scores: Mapping[str, Score], reward: Score | None) -> Iterator[ScoreCells]:
        for name, score in scores.items():
            fingerprint = self.fingerprints.get(name)
            yield self._score("grade", name, score, fingerprint)
            for turn in score.turns or ():
                yield self._score("grade", name, turn, fingerprint)
        if reward is not None:
            yield self._score("reward", "reward", reward, None)

    def _score(self, kind: str, name: str, score: Score, fingerprint: str | None) -> ScoreCells:
        return ScoreCells(
            grading_id=self.grading_id,
            kind=kind,
            name=name,
            turn=score.turn,
            turns=None if score.turns is None else len(score.turns),
            state=score.state,
            value=score.value,
            reason=score.reason,
            submission=score.submission,
            ground_truth=json_text(score.ground_truth),
            extra=json_text(score.extra) if score.extra else None,
            failure=_failure(score.failure),
            usage=json_text(score.usage),
            fingerprint=fingerprint,
            passed=None if score.passed is None else int(score.passed),
            raw=json_text(score.raw),
            confidence=score.confidence,
            findings=_list(score.findings),
            other_evidence=_list(score.other_evidence),
            settings=json_text(score.settings) if score.settings else None,
        )


def _turn(turn: Turn) -> TurnCells:
    return TurnCells(
        idx=turn.index,
        started_at=turn.started_at,
        seconds=turn.seconds,
        messages=_messages(turn.messages),
        usage=json_text(turn.usage),
        failure=_failure(turn.failure),
    )


def _list(found: Sequence[Finding | Evidence]) -> str | None:
    """Return records as JSON text; as plain data, for those of pydantic write a number without a value as null."""
    return json_text([vars(one) for one in found]) if found else None


def _failure(failure: Failure | None) -> str | None:
    return None if failure is None else json_text(failure.redacted())


def _messages(messages: list[AnyMessage]) -> str:
    try:
        return dump_messages(messages)
    except PydanticSerializationError:
        return json.dumps([m.model_dump(mode="json", exclude_unset=True, fallback=str) for m in messages])


def _usage(talk: Trajectory) -> str | None:
    return json_text(talk.usage) if any(turn.usage for turn in talk.turns) else None


def _unwritable(key: AttemptKey, error: Exception) -> StoreError:
    return StoreError(f"{Entry(key).title} cannot be stored: {error}")


def run_values(run: Run) -> dict[str, Any]:
    """Return a run as the values of its row, without keys of the environment."""
    tags = "".join(map(tagged, run.tags)) or None
    return {**dict(run), "tags": tags, **_without_keys(run, ("spec", "options"))}


def grading_values(grading: Grading) -> dict[str, Any]:
    """Return a grading as the values of its row, without keys of the environment."""
    texts = _without_keys(grading, ("spec", "fingerprints", "summary"))
    return {**dict(grading), "passed_added": int(grading.passed_added), **texts}


def _without_keys(record: Run | Grading, names: Sequence[str]) -> dict[str, str | None]:
    texts = {name: json_text(getattr(record, name)) for name in names}
    keys = keys_of_environment(texts["spec"] or "")
    return {name: text and keys.cut(text) for name, text in texts.items()}
