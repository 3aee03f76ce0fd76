"""Rows of a dataset from conversations that were held, without keys and personal data."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO, cast

from vivavoce.errors import NotFound, UsageError
from vivavoce.messages import HumanMessage
from vivavoce.metrics.exact.personal_data import KINDS, Kind, checked_region, find_personal_data
from vivavoce.records.label import Label
from vivavoce.records.redaction import MARK, Keys, keys_of_environment, without_keys
from vivavoce.records.run import Attempt, AttemptKey, Outcome, Run
from vivavoce.records.score import Score, conversation_name
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.text import count, strict_json
from vivavoce.samples.dataset_file import CAPTURED_FROM
from vivavoce.samples.sample import Sample
from vivavoce.store.runs.naming import no_conversation, split_conversation
from vivavoce.store.store import Store

TAG = "captured"
"""The tag of such rows."""

_OF_RECORDING = ("messages", "labels", "trial")
_OF_TESTER = ("scenario", "persona", "facts", "restrictions", "adversarial", "min_turns", "max_turns")
_OF_TURNS = ("ground_truth", "reference_tool_calls", "expect")
"""Fields that may be listed turn by turn."""
_NAMES: Mapping[Kind | None, str] = {
    "email": "e-mail",
    "iban": "IBAN",
    "card": "card number",
    "us_ssn": "social security number",
    "ip": "IP number",
    "phone": "phone number",
    None: "key",
}


@dataclass(frozen=True, slots=True)
class Captured:
    """A row of a dataset; `cut` counts what was cut out of it by kind, `left_out` has fields that could not be kept."""

    row: dict[str, Any]
    cut: Mapping[str, int]
    left_out: Sequence[str]

    def notes(self) -> list[str]:
        """Return what a person has to know who uses the row, as sentences."""
        cut = ", ".join(count(number, name) for name, number in self.cut.items())
        left_out = [f"left out: {', '.join(self.left_out)}"] if self.left_out else []
        rest = "names and addresses of people are not recognised: read the row before you share it"
        return [f"removed: {cut or 'nothing'}; {rest}", *left_out]


def capture(run: Run, attempt: Attempt, region: str | None = None) -> Captured:
    """Return the row that asks a target again what was said in a conversation.

    What is known about the right answer is kept where it fits, and nothing is added to it. `region` is the country, as
    in `US`, in which phone numbers without `+` are dialled.

    Raises:
        UsageError: the user said nothing, or no country has that code.
    """
    known: dict[str, Any] = json.loads(attempt.sample)
    inputs = _inputs(known, attempt)
    turns = len(cast("list[Any]", inputs)) if isinstance(inputs, list) else 1
    dropped = [name for name in _OF_TURNS if name in known and not _fits(known[name], name, turns)]
    tester = [name for name in _OF_TESTER if known.get(name)]
    rest = {name: value for name, value in known.items() if name not in (*_OF_RECORDING, *_OF_TESTER, *dropped)}
    metadata = {name: value for name, value in known.get("metadata", {}).items() if name != CAPTURED_FROM}
    tags = list(dict.fromkeys([*known.get("tags", ()), TAG]))
    cutter = _Cutter(keys_of_environment(json.dumps(run.spec)), checked_region("capture", region))
    row = cutter.cut({**rest, "id": attempt.key.sample_id, "input": inputs, "tags": tags, "metadata": metadata})
    place = f"{run.id}/{conversation_name(row['id'], attempt.key.trial)} on {cutter.cut(attempt.key.target)}"
    row = {"id": row.pop("id"), "input": row.pop("input"), **row}
    row["metadata"] = {**row["metadata"], CAPTURED_FROM: place}
    Sample.model_validate(row)
    left_out = [f"{name} (different number of turns)" for name in dropped]
    return Captured(row, cutter.counts(), [*left_out, *(f"{name} (for a tester)" for name in tester)])


def find_conversation(store: Store, name: str, target: str | None = None) -> tuple[Run, Outcome]:
    """Return a conversation named as RUN/SAMPLE, or RUN/SAMPLE#2 for its second trial, with its run.

    Of several trials or targets it is the first that failed, or else the first.

    Raises:
        UsageError: there is no such run, sample, trial or target.
    """
    run_name, sample = split_conversation(name)
    run = store.run(run_name)
    sample, trial = store.named_conversation(run.id, sample)
    outcomes = list(store.outcomes(store.grading(run.id).id, sample_id=sample))
    if not outcomes:
        raise NotFound("sample", sample, within=f"run {run.id}", known={key.sample_id for key in store.done(run.id)})
    keys = [outcome.attempt.key for outcome in outcomes]
    matches = [
        outcome
        for outcome, key in zip(outcomes, keys, strict=True)
        if trial in (None, key.trial) and target in (None, key.target)
    ]
    if not matches:
        raise no_conversation(run.id, sample, target, trial, keys)
    return run, next(filter(_has_failed, matches), matches[0])


def _has_failed(outcome: Outcome) -> bool:
    return outcome.attempt.failure is not None or any(score.passed is False for score in outcome.scores.values())


def _inputs(known: Mapping[str, Any], attempt: Attempt) -> Any:
    """Return what the user is to say: what the row had planned, or what was said where a tester or a log led."""
    planned = known.get("input")
    if planned is not None and attempt.trajectory.test is None:
        return planned
    user_messages = [message for message in attempt.trajectory.messages if isinstance(message, HumanMessage)]
    if not user_messages:
        raise UsageError(f"'{attempt.key.sample_id}' cannot be captured: it has no user message")
    before = sum(message["role"] == "user" for message in known.get("history") or ())
    return [
        message.content if isinstance(message.content, str) else message.to_dict() for message in user_messages[before:]
    ]


def _fits(value: Any, name: str, turns: int) -> bool:
    """Return whether what is listed turn by turn, if it is, has an entry for each turn."""
    if not isinstance(value, list):
        return True
    items = cast("list[Any]", value)
    by_turn = name != "reference_tool_calls" or any(not isinstance(item, dict) for item in items)
    return not by_turn or len(items) == turns


@dataclass(slots=True)
class _Cutter:
    """Cuts keys and personal data out of values; the same datum becomes the same mark wherever it stands."""

    keys: Keys
    region: str | None
    marks: dict[str, str] = field(default_factory=dict[str, str])
    numbers: Counter[Kind | None] = field(default_factory=Counter["Kind | None"])

    def cut(self, value: Any) -> Any:
        """Return a value of JSON without them, in the names of fields too."""
        if isinstance(value, dict):
            return {self._text(name): self.cut(entry) for name, entry in cast("dict[str, Any]", value).items()}
        if isinstance(value, list):
            return [self.cut(entry) for entry in cast("list[Any]", value)]
        if isinstance(value, int) and not isinstance(value, bool):
            return value if (text := self._text(str(value))) == str(value) else text
        return self._text(value) if isinstance(value, str) else value

    def counts(self) -> dict[str, int]:
        """Return how many different data, and how many keys, were cut out."""
        return {_NAMES[kind]: number for kind, number in self.numbers.items()}

    def _text(self, text: str) -> str:
        left = without_keys(self.keys.cut(text))
        if cut := left.count(MARK) - text.count(MARK):
            self.numbers[None] += cut
        for datum in reversed(find_personal_data(left, KINDS, self.region)):
            left = f"{left[: datum.start]}{self._mark(datum.kind, datum.key)}{left[datum.end :]}"
        return left

    def _mark(self, kind: Kind, key: str) -> str:
        if key not in self.marks:
            self.numbers[kind] += 1
            self.marks[key] = f"[{kind} {self.numbers[kind]}]"
        return self.marks[key]


_NOT_RECORDED = ("id", "input", "trial", "labels", "metadata")
OVERALL = "conversation"
"""What a label about no grader's question is called."""


def write_conversations(graded: GradedRun, out: TextIO) -> None:
    """Write a row for each conversation that was held, in the order of the run.

    `labels` has `passed`, whether everything that was decided passed; `graders` with score and verdict by name; and
    `people` with the verdict of people on each grader's question, where they agree or somebody decided.
    """
    people = _people(graded)
    several = len({outcome.attempt.key.target for outcome in graded.outcomes()}) > 1
    for outcome in graded.outcomes():
        if outcome.attempt.trajectory.messages:
            out.write(strict_json(_row(graded, outcome, people[outcome.attempt.key], several)) + "\n")


def _row(graded: GradedRun, outcome: Outcome, people: dict[str, list[str]], several: bool) -> dict[str, Any]:
    key, known = outcome.attempt.key, json.loads(outcome.attempt.sample)
    rest = {name: value for name, value in known.items() if name not in _NOT_RECORDED}
    messages = [message.to_dict() for message in outcome.attempt.trajectory.messages]
    metadata = {**known.get("metadata", {}), "run": graded.run.id, "target": key.target}
    identity = f"{key.sample_id}@{key.target}" if several else key.sample_id
    trial = {"trial": key.trial} if key.trial else {}
    labels = {**known.get("labels", {}), **_labels(outcome, people)}
    return {"id": identity, **trial, **rest, "messages": messages, "labels": labels, "metadata": metadata}


def _labels(outcome: Outcome, people: dict[str, list[str]]) -> dict[str, Any]:
    decided = [score.passed for score in outcome.scores.values() if score.passed is not None]
    labels: dict[str, Any] = {"passed": None if not decided or outcome.attempt.failure is not None else all(decided)}
    labels["graders"] = {name: _verdict(score) for name, score in outcome.scores.items()}
    agreed = {name: verdicts[0] for name, verdicts in people.items() if len(set(verdicts)) == 1}
    return {**labels, "people": agreed} if agreed else labels


def _verdict(score: Score) -> dict[str, Any]:
    """Return a score as a label; a measurement has its number and no verdict."""
    if score.measured is not None:
        return {"measured": score.measured}
    return {"score": score.value, "passed": score.passed}


def _people(graded: GradedRun) -> defaultdict[AttemptKey, dict[str, list[str]]]:
    verdicts: defaultdict[AttemptKey, dict[str, list[str]]] = defaultdict(dict)
    for label in graded.store.labels.all(graded.run.id):
        if label.turn is None and label.verdict != "unsure":
            verdicts[label.key].setdefault(_question(label), []).append(label.verdict)
    for decision in graded.store.decisions.all(graded.run.id):
        if decision.turn is None:
            verdicts[decision.key][_question(decision)] = [decision.verdict]
    return verdicts


def _question(label: Label) -> str:
    return label.grader or OVERALL
