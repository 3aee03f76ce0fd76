"""Records as rows: plain tuples in the order of the tables' columns, JSON as text.

JSON text is exact, lone surrogates and NaN included; an object that JSON does not know is written as its `str`.
In a column of plain text a lone surrogate is escaped for good, and in PostgreSQL the character U+0000 as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from vivavoce.errors import StoreError
from vivavoce.messages import AnyMessage, dump_messages
from vivavoce.records.failure import Failure
from vivavoce.records.redaction import LONG, NO_KEYS, Keys
from vivavoce.records.run import Attempt, AttemptKey, Outcome, Reward
from vivavoce.records.score import GradeResult, TurnGrade
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.store.mirror import fold
from vivavoce.store.standing import passed_of

Row = tuple[Any, ...]

RATIONALE = 7
"""Where the rationale stands in a row of scores that lacks the attempt's id."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is written in one transaction; the rows lack the attempt's id, which stands first in each.

    `attempt` is None when the attempt is in the store already and its id has to be looked up.
    """

    key: AttemptKey
    attempt: Row | None = None
    turns: list[Row] = field(default_factory=list[Row])
    scores: list[Row] = field(default_factory=list[Row])

    @property
    def title(self) -> str:
        """What a person calls it."""
        return f"sample '{self.key.sample_id}' ({self.key.target}, trial {self.key.trial})"

    def escaped(self, escape: Callable[[str], str]) -> Entry:
        """Return it with every plain text escaped in this way."""

        def of(row: Row) -> Row:
            return tuple(escape(value) if isinstance(value, str) else value for value in row)

        return Entry(
            key=AttemptKey(*of(self.key)),
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
                    scores=list(self._scores(outcome.grades, outcome.reward)),
                )
            )
        except (ValueError, TypeError, RecursionError) as error:
            raise _unwritable(attempt.key, error) from error

    def grades(self, key: AttemptKey, grades: Mapping[str, GradeResult], reward: Reward | None) -> Entry:
        """Return new scores of an attempt that is in the store.

        Raises:
            StoreError: something in them cannot be written.
        """
        try:
            return self._without_keys(Entry(key=key, scores=list(self._scores(grades, reward))))
        except (ValueError, TypeError, RecursionError) as error:
            raise _unwritable(key, error) from error

    def _without_keys(self, entry: Entry) -> Entry:
        """Return an entry without keys; nearly none has one, and to look once is quicker than to look cell by cell."""
        if not self.keys.spellings:
            return entry
        rows = (entry.attempt or (), *entry.turns, *entry.scores)
        texts = [cell for row in rows for cell in row if cell.__class__ is str and len(cell) >= LONG]
        return entry.escaped(self.keys.cut) if self.keys.are_in("\0".join(texts)) else entry

    def _attempt(self, attempt: Attempt) -> Row:
        talk = attempt.trajectory
        return (
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
            json_text(talk.test),
        )

    def _scores(self, grades: Mapping[str, GradeResult], reward: Reward | None) -> Iterator[Row]:
        for name, grade in grades.items():
            fingerprint = self.fingerprints.get(name)
            yield (
                self.grading_id,
                "grade",
                name,
                None,
                None if grade.per_turn_grades is None else len(grade.per_turn_grades),
                grade.state,
                grade.score,
                grade.rationale,
                grade.submission,
                json_text(grade.ground_truth),
                json_text(fold(grade.metadata, grade.per_turn_grades)) if grade.metadata else None,
                _failure(grade.failure),
                json_text(grade.usage),
                fingerprint,
                passed_of(grade.metadata),
            )
            for turn in grade.per_turn_grades or ():
                yield self._turn_score(name, turn, fingerprint)
        if reward is not None:
            yield self._reward(reward)

    def _turn_score(self, name: str, grade: TurnGrade, fingerprint: str | None) -> Row:
        return (
            self.grading_id,
            "grade",
            name,
            grade.turn,
            None,
            grade.state,
            grade.score,
            grade.rationale,
            grade.submission,
            json_text(grade.ground_truth),
            json_text(grade.metadata) if grade.metadata else None,
            _failure(grade.failure),
            None,
            fingerprint,
            passed_of(grade.metadata),
        )

    def _reward(self, reward: Reward) -> Row:
        return (
            self.grading_id,
            "reward",
            "reward",
            None,
            None,
            reward.state,
            reward.score,
            reward.rationale,
            None,
            None,
            json_text(reward.metadata) if reward.metadata else None,
            _failure(reward.failure),
            None,
            None,
            passed_of(reward.metadata),
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


def _turn(turn: Turn) -> Row:
    return (
        turn.index,
        turn.started_at,
        turn.seconds,
        _messages(turn.messages),
        json_text(turn.usage),
        _failure(turn.failure),
    )


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
