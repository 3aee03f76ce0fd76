"""Records as rows and rows as records: attempts, scores, and the status of a sample in a grading."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, cast, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from vivavoce.errors import StoreError
from vivavoce.messages import dump_messages
from vivavoce.records.redaction import MIN_KEY_CHARS, NO_KEYS, Keys, keys_of_environment
from vivavoce.records.run import Attempt, AttemptKey, DrawRecord, Grading, Outcome, Run
from vivavoce.records.score import (
    Evidence,
    Failure,
    Finding,
    Score,
    State,
    Usage,
    conversation_label,
    error_text,
    measured_of,
    total,
)
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.store.database.database import AnyRow, UnreadableRow, check_times, columns_of, values_of
from vivavoce.store.database.schema import json_text, read_json, storable


class AttemptCells(NamedTuple):
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
    stratum: int | None = None
    probability: float | None = None


class TurnCells(NamedTuple):
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


Cells = TypeVar("Cells", AttemptCells, TurnCells, ScoreCells)


@dataclass(frozen=True, slots=True)
class Entry:
    """The content of one transaction; the rows are without the id of the attempt, which comes first in each.

    `attempt` is None if the attempt is already in the store and its id has to be looked up.
    """

    key: AttemptKey
    attempt: AttemptCells | None = None
    turns: list[TurnCells] = field(default_factory=list[TurnCells])
    scores: list[ScoreCells] = field(default_factory=list[ScoreCells])

    @property
    def title(self) -> str:
        """Its name for people."""
        return f"sample '{conversation_label(self.key.sample_id, self.key.trial)}' ({self.key.target})"

    def with_texts(self, change: Callable[[str], str]) -> Entry:
        """Return it with this change applied to every text of its rows."""

        def of(row: Cells) -> Cells:
            return row._make(change(value) if isinstance(value, str) else value for value in row)

        sample_id, target, trial = self.key
        return Entry(
            key=AttemptKey(change(sample_id), change(target), trial),
            attempt=self.attempt and of(self.attempt),
            turns=[of(row) for row in self.turns],
            scores=[of(row) for row in self.scores],
        )


def cells_of(kind: type[Cells], rows: Iterable[AnyRow]) -> list[Cells]:
    """Return rows of a table without their database ids."""
    return [kind._make(_taking(kind, columns_of(row))(row)) for row in rows]


@cache
def _taking(kind: type[NamedTuple], columns: tuple[str, ...]) -> Callable[[AnyRow], Iterable[object]]:
    """Return a function that reads such cells from a row of these columns, twice as fast as by name."""
    return itemgetter(*(columns.index(name) for name in kind._fields))


SampleStatus = Literal["error", "fail", "pass", "measured", "skip"]
"""The statuses of scores, worst first; a measurement counts only if nothing decides, a skipped score if nothing else.
"""

RANK: tuple[SampleStatus, ...] = get_args(SampleStatus)

BROKEN, UNGRADED = -2.0, -1.0
"""The sort values of a conversation with an error and of one with a grader error: before every score."""
LAST = 1e18
"""The sort value of a sample without a score: after all others."""
BETWEEN = "\x1f"
"""The separator before, between and after tags."""


def status_of(state: State, passed: bool | int | None) -> SampleStatus:
    """Return the status of a score; one that neither passes nor fails is a measurement."""
    if state == "error":
        return "error"
    if state == "skipped":
        return "skip"
    return "measured" if passed is None else "pass" if passed else "fail"


def worst_of(statuses: Iterable[SampleStatus]) -> SampleStatus:
    """Return the worst status, `skip` if there is none."""
    return min([*statuses, RANK[-1]], key=RANK.index)


class AttemptFacts(NamedTuple):
    """Facts of an attempt for lists, apart from its scores; `usage`, `test` and `failure` are JSON as it has them."""

    position: int
    turns: int
    seconds: float | None
    tags: str | None
    target: str
    trial: int
    usage: str | None
    test: str | None
    failure: str | None


def facts_of(attempt: AttemptCells, turns: int) -> AttemptFacts:
    """Return the facts of an attempt for lists, from its row without a number."""
    return AttemptFacts(
        position=attempt.position,
        turns=turns,
        seconds=attempt.seconds,
        tags=tags_of(attempt.sample),
        target=attempt.target,
        trial=attempt.trial,
        usage=attempt.usage,
        test=attempt.test,
        failure=attempt.failure,
    )


class StatusRow(NamedTuple):
    """A row of `standings`."""

    grading_id: str
    position: int
    attempt_id: int
    state: SampleStatus
    rank: float
    lowest: float | None
    skips: int
    turns: int
    seconds: float | None
    tags: str | None
    target: str
    trial: int
    tokens: int | None
    cost: float | None
    cause: str | None


def status_rows(number: int, facts: AttemptFacts, scores: Iterable[ScoreCells]) -> list[StatusRow]:
    """Return the rows of `standings`, one for each grading, from the rows of scores."""
    by_grading: dict[str, list[ScoreCells]] = {}
    for row in scores:
        if row.turn is None:
            by_grading.setdefault(row.grading_id, []).append(row)
    return [_status_row(number, facts, grading_id, scores) for grading_id, scores in by_grading.items()]


def _status_row(number: int, facts: AttemptFacts, grading_id: str, scores: Sequence[ScoreCells]) -> StatusRow:
    broken = facts.failure is not None
    statuses: list[SampleStatus] = []
    lowest, skips = None, 0
    for score in scores:
        statuses.append(status_of(score.state, score.passed))
        skips += score.state == "skipped"
        if score.value is not None and (lowest is None or score.value < lowest):
            lowest = score.value
    found = "error" if broken else worst_of(statuses)
    used = _add_usage(facts, scores)
    return StatusRow(
        grading_id=grading_id,
        position=facts.position,
        attempt_id=number,
        state=found,
        rank=BROKEN if broken else UNGRADED if found == "error" else LAST if lowest is None else lowest,
        lowest=lowest,
        skips=skips,
        turns=facts.turns,
        seconds=facts.seconds,
        tags=facts.tags,
        target=facts.target,
        trial=facts.trial,
        tokens=None if used is None else used.input_tokens + used.output_tokens,
        cost=None if used is None else used.cost,
        cause=None if found != "error" else cause_of(_error(facts, scores)),
    )


def cause_of(text: str) -> str:
    """Return the short hash of what an error says: errors with the same are one cause."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]


def _error(facts: AttemptFacts, scores: Sequence[ScoreCells]) -> str:
    """Return what the error of an attempt says: that of the conversation, else that of the first grader with one."""
    if facts.failure is not None:
        return error_text(None, Failure.model_validate(read_json(facts.failure)), None)
    first = next(score for score in scores if score.state == "error")
    failure = None if first.failure is None else Failure.model_validate(read_json(first.failure))
    return error_text(first.name, failure, first.reason)


def _add_usage(facts: AttemptFacts, scores: Sequence[ScoreCells]) -> Usage | None:
    """Return what an attempt and a grading of it used, over all roles; None where nothing tells."""
    graded = [
        Usage.model_validate_json(score.usage) for score in scores if score.usage is not None and score.kind == "grade"
    ]
    if facts.usage is None and facts.test is None:
        used = total(graded)
        return used if used is not None and any(vars(used).values()) else None
    target = Usage() if facts.usage is None else Usage.model_validate_json(facts.usage)
    test = None if facts.test is None else usage_of_test(json.loads(facts.test))
    asked = [target] if test is None else test.values()  # the usage of a test has that of the target
    return total(one for one in (*asked, total(graded)) if one is not None and any(vars(one).values()))


def usage_of_test(test: Mapping[str, Any]) -> dict[str, Usage]:
    """Return what a test used, by role, from its data."""
    used: dict[str, Any] = test.get("usage") or {}
    return {role: Usage.model_validate(one) for role, one in used.items()}


def tags_of(sample: str) -> str | None:
    """Return the tags of a sample (JSON) as one storable text that `tagged` can search; None if it has none."""
    if '"tags"' not in sample:
        return None
    parsed: Any = json.loads(sample)
    tags: Any = cast("dict[str, Any]", parsed).get("tags") if isinstance(parsed, dict) else None
    named = [one for one in cast("list[Any]", tags) if isinstance(one, str)] if isinstance(tags, list) else []
    return storable("".join(map(tagged, named)), nul=False) or None


def split_tags(text: str | None) -> list[str]:
    """Return the tags in a text of tags."""
    return [] if text is None else [one for one in text.split(BETWEEN) if one]


def tagged(tag: str) -> str:
    """Return the pattern of a tag in the text of tags."""
    return BETWEEN + tag.replace(BETWEEN, "") + BETWEEN


@dataclass(frozen=True, slots=True)
class Encoder:
    """Makes the rows of one grading of one run; `fingerprints` are by grader name, and `keys` are never in a row."""

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
                    turns=_turns(attempt.trajectory.turns),
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
        texts = [cell for row in rows for cell in row if isinstance(cell, str) and len(cell) >= MIN_KEY_CHARS]
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
            opening=dump_messages(talk.opening) if talk.opening else None,
            state=None if talk.state is None else json_text(talk.state),
            failure=None if talk.failure is None else _failure(talk.failure),
            usage=_usage(talk),
            test=None if talk.test is None else _test(talk.test),
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
            ground_truth=None if score.ground_truth is None else json_text(score.ground_truth),
            extra=json_text(score.extra) if score.extra else None,
            failure=None if score.failure is None else _failure(score.failure),
            usage=None if score.usage is None else json_text(score.usage),
            fingerprint=fingerprint,
            passed=None if score.passed is None else int(score.passed),
            raw=None if score.raw is None else json_text(score.raw),
            confidence=score.confidence,
            findings=_list(score.findings) if score.findings else None,
            other_evidence=_list(score.other_evidence) if score.other_evidence else None,
            settings=json_text(score.settings) if score.settings else None,
        )


def _turns(turns: Sequence[Turn]) -> list[TurnCells]:
    cells: list[TurnCells] = []
    for turn in turns:
        usage = None if turn.usage is None else json_text(turn.usage)
        failure = None if turn.failure is None else _failure(turn.failure)
        messages = dump_messages(turn.messages)
        cells.append(TurnCells(turn.index, turn.started_at, turn.seconds, messages, usage, failure))
    return cells


def _test(test: BaseModel) -> str | None:
    try:
        return json_text(test.model_dump(mode="json", exclude_none=True))
    except PydanticSerializationError:  # text that is not UTF-8
        return json_text(test.model_dump(exclude_none=True))


def _list(found: Sequence[Finding | Evidence]) -> str | None:
    """Return records as JSON text; as plain data, for those of pydantic write a number without a value as null."""
    return json_text([vars(one) for one in found])


def _failure(failure: Failure) -> str | None:
    return json_text(failure.redact())


def _usage(talk: Trajectory) -> str | None:
    used = [turn for turn in talk.turns if turn.usage is not None]
    return json_text(talk.usage) if used else None


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


Parse: TypeAlias = Callable[[str], Any]


def run_of(row: AnyRow, parse: Parse = json.loads) -> Run:
    """Return a row of `runs` as a record; `parse` may keep the texts that runs of a suite share.

    Raises:
        UnreadableRow: it has values that vivavoce does not write.
    """
    with _readable(f"run {row.id}"):
        check_times(row.started_at, row.finished_at)
        texts = {"spec": parse(row.spec), "options": parse(row.options), "tags": split_tags(row.tags)}
        return Run.model_validate({**values_of(row), **texts})


def runs_of(rows: Iterable[AnyRow], parse: Parse = json.loads) -> list[Run]:
    """Return the rows of `runs` that can be read; lists of entries show the others as unreadable."""
    records: list[Run] = []
    for row in rows:
        with suppress(UnreadableRow):
            records.append(run_of(row, parse))
    return records


@contextmanager
def _readable(what: str) -> Generator[None]:
    try:
        yield
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        causes = error.errors() if isinstance(error, ValidationError) else []
        wrong = ", ".join(".".join(map(str, cause["loc"])) for cause in causes) or str(error)
        raise UnreadableRow(f"{what} cannot be read: its row in the store has a wrong value: {wrong}") from error


def grading_of(row: AnyRow, parse: Parse = json.loads) -> Grading:
    """Return a row of `gradings` as a record; `parse` may keep the texts that gradings share.

    Raises:
        UnreadableRow: it has values that vivavoce does not write.
    """
    with _readable(f"grading {row.id}"):
        check_times(row.created_at, row.finished_at)
        cells = {name: getattr(row, name) for name in ("spec", "fingerprints", "summary")}
        texts = {name: None if text is None else parse(text) for name, text in cells.items()}
        return Grading.model_validate({**values_of(row), **texts, "passed_added": bool(row.passed_added)})


def attempt_of(row: AnyRow, turns: Iterable[AnyRow]) -> Attempt:
    """Return a row of `attempts` and its rows of `turns` as a record."""
    trajectory = {
        "opening": _json(row.opening) or [],
        "turns": [_turn_fields(turn) for turn in turns],
        "session_id": row.session_id,
        "state": _json(row.state),
        "test": _json(row.test),
        "failure": _json(row.failure),
        "seconds": row.seconds,
    }
    drawn = drawn_of(row.stratum, row.probability)
    return Attempt.model_validate(
        {
            "key": (row.sample_id, row.target, row.trial),
            "scenario": row.scenario,
            "sample": row.sample,
            "trajectory": trajectory,
            "started_at": row.started_at,
            "position": row.position,
            **({} if drawn is None else {"drawn": drawn}),
        }
    )


def drawn_of(stratum: int | None, probability: float | None) -> DrawRecord | None:
    """Return how a conversation was drawn, None where all of a dataset run."""
    return None if stratum is None or probability is None else DrawRecord(stratum, probability)


def turn_of(row: AnyRow) -> Turn:
    """Return a row of `turns` as a record."""
    return Turn.model_validate(_turn_fields(row))


def scores_of(rows: Sequence[AnyRow]) -> tuple[dict[str, Score], Score | None]:
    """Return the rows of `scores` of one attempt, in the order of their ids, as scores by name and the reward."""
    apart: dict[str, list[Score]] = {}
    for row in rows:
        if row.turn is not None:
            apart.setdefault(row.name, []).append(score_of(row))
    whole = [row for row in rows if row.turn is None]
    found = {row.name: score_of(row, apart.get(row.name, ())) for row in whole if row.kind == "grade"}
    return found, next((score_of(row) for row in whole if row.kind == "reward"), None)


def _turn_fields(row: AnyRow) -> dict[str, Any]:
    return {
        "index": row.idx,
        "messages": json.loads(row.messages),
        "started_at": row.started_at,
        "seconds": row.seconds,
        "usage": _json(row.usage),
        "failure": _json(row.failure),
    }


def score_of(row: AnyRow, turns: Sequence[Score] = ()) -> Score:
    """Return a row of `scores` as a record; `turns` are the scores of its turns."""
    return Score(
        name=row.name,
        turn=row.turn,
        state=row.state,
        value=row.value,
        raw=_json(row.raw),
        passed=None if row.passed is None else bool(row.passed),
        reason=row.reason,
        confidence=row.confidence,
        findings=_json(row.findings) or (),
        other_evidence=_json(row.other_evidence) or (),
        turns=None if row.turns is None else tuple(turns),
        submission=row.submission or "",
        ground_truth=_json(row.ground_truth),
        extra=_json(row.extra) or {},
        failure=failure_of_text(row.failure),
        usage=usage_of_text(row.usage),
        fingerprint=row.fingerprint,
        settings=_json(row.settings) or {},
    )


def measured_in(state: State, value: float | None, raw: str | None) -> float | None:
    """Return the number of a score that is a measurement, from its cells; None for any other score."""
    return None if raw is None or value is not None else measured_of(state, value, _json(raw))


def _json(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def failure_of_text(text: str | None) -> Failure | None:
    """Return the JSON text of a failure as a record, None if there was none."""
    return None if text is None else Failure.model_validate(json.loads(text))


def usage_of_text(text: str | None) -> Usage | None:
    """Return the JSON text of what was used as a record, None if nothing is known."""
    return None if text is None else Usage.model_validate(json.loads(text))
