"""Records as rows: plain tuples in the order of the tables' columns, JSON as text.

JSON text is exact, lone surrogates and NaN included; an object that JSON does not know is written as its `str`.
In a column of plain text a lone surrogate is escaped for good, and in PostgreSQL the character U+0000 as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from vivavoce.errors import StoreError
from vivavoce.messages import AnyMessage, dump_messages
from vivavoce.records.counting import conversation_label
from vivavoce.records.failure import Failure
from vivavoce.records.redaction import NO_KEYS, SHORTEST, Keys
from vivavoce.records.run import Attempt, AttemptKey, Outcome
from vivavoce.records.score import Evidence, Finding, Score, State
from vivavoce.records.trajectory import Trajectory, Turn

Row = tuple[Any, ...]


class AttemptRow(NamedTuple):
    """A row of `attempts` without its number."""

    run_id: str
    sample_id: str
    target: str
    trial: int
    position: int
    scenario: str
    session_id: str | None
    started_at: float
    seconds: float | None
    sample: str
    opening: str | None
    state: str | None
    failure: str | None
    usage: str | None
    test: str | None


class TurnRow(NamedTuple):
    """A row of `turns` without the number of its attempt."""

    idx: int
    started_at: float | None
    seconds: float | None
    messages: str
    usage: str | None
    failure: str | None


class ScoreCells(NamedTuple):
    """A row of `scores` without its number and that of its attempt."""

    grading_id: str
    kind: str
    name: str
    turn: int | None
    turns: int | None
    state: State
    value: float | None
    reason: str | None
    submission: str | None
    ground_truth: str | None
    extra: str | None
    failure: str | None
    usage: str | None
    fingerprint: str | None
    passed: int | None
    raw: str | None
    confidence: float | None
    findings: str | None
    other_evidence: str | None
    settings: str | None


Cells = TypeVar("Cells", AttemptRow, TurnRow, ScoreCells)


@dataclass(frozen=True, slots=True)
class Entry:
    """What is written in one transaction; the rows lack the attempt's id, which stands first in each.

    `attempt` is None when the attempt is in the store already and its id has to be looked up.
    """

    key: AttemptKey
    attempt: AttemptRow | None = None
    turns: list[TurnRow] = field(default_factory=list[TurnRow])
    scores: list[ScoreCells] = field(default_factory=list[ScoreCells])

    @property
    def title(self) -> str:
        """What a person calls it."""
        return f"sample '{conversation_label(self.key.sample_id, self.key.trial)}' ({self.key.target})"

    def escaped(self, escape: Callable[[str], str]) -> Entry:
        """Return it with every plain text escaped in this way."""

        def of(row: Cells) -> Cells:
            return row._make(escape(value) if isinstance(value, str) else value for value in row)

        sample_id, target, trial = self.key
        return Entry(
            key=AttemptKey(escape(sample_id), escape(target), trial),
            attempt=self.attempt and of(self.attempt),
            turns=[of(row) for row in self.turns],
            scores=[of(row) for row in self.scores],
        )


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
        return entry.escaped(self.keys.cut) if self.keys.are_in("\0".join(texts)) else entry

    def _attempt(self, attempt: Attempt) -> AttemptRow:
        talk = attempt.trajectory
        return AttemptRow(
            self.run_id,
            *attempt.key,
            attempt.position,
            attempt.scenario,
            talk.session_id,
            attempt.started_at,
            talk.seconds,
            attempt.sample,
            _messages(talk.opening) if talk.opening else None,
            json_text(talk.state),
            _failure(talk.failure),
            _usage(talk),
            None if talk.test is None else json_text(talk.test.model_dump(mode="json", exclude_none=True)),
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


def json_text(value: object) -> str | None:
    """Return a value as JSON text, None as NULL."""
    if value is None:
        return None
    try:
        return to_json(value, inf_nan_mode="constants", fallback=str).decode()
    except PydanticSerializationError:  # text that is not UTF-8: json escapes it
        plain = to_jsonable_python(value, inf_nan_mode="constants", fallback=str, bytes_mode="base64")
        return json.dumps(plain)


def escape(text: str) -> str:
    r"""Return a text that any database takes: a lone surrogate becomes the six characters `\ud800`."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def escape_nul(text: str) -> str:
    r"""Return a text that PostgreSQL takes: U+0000 becomes the six characters `\u0000`."""
    return text.replace("\0", "\\u0000")


def _turn(turn: Turn) -> TurnRow:
    return TurnRow(
        turn.index,
        turn.started_at,
        turn.seconds,
        _messages(turn.messages),
        json_text(turn.usage),
        _failure(turn.failure),
    )


def _list(found: Sequence[Finding | Evidence]) -> str | None:
    """Return records as JSON text; as plain data, for those of pydantic write a number without a value as null."""
    return json_text([one.model_dump() for one in found]) if found else None


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
