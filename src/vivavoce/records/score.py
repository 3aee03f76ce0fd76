"""`Score`: what a grader or a metric says about a conversation or a turn, with its `Failure` and its `Usage`.

Records keep turns and trials from 0, people and judges count from 1, and here alone one becomes the other:
`docs/decisions/0019-counting.md` says which counts where.
"""

from __future__ import annotations

import math
import re
import traceback
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast, overload

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_core import from_json

from vivavoce.comparing.thresholds import mean, reaches
from vivavoce.errors import Blame, Fault, UsageError
from vivavoce.messages import SessionMark
from vivavoce.plugins import lazy
from vivavoce.records.redaction import keys_of_environment, without_keys
from vivavoce.safe_text import encodable

CANCELLED = "cancelled"
"""The kind of the failure of a conversation that was cancelled; a run that is resumed holds it again."""

EVIDENCE_LIMIT = 4000
"""Characters of evidence that are kept."""

OUT_OF_MEMORY = "memory ran out while this was graded; use shorter conversations, or smaller windows and pieces of them"


class Failure(BaseModel):
    """One failure as data: `kind` is a word to test, `message` a sentence to read, `evidence` what was received."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    blame: Blame
    kind: str
    message: str
    exception: str | None = None
    evidence: str | None = None

    def __str__(self) -> str:
        return f"{self.blame}: {self.message}"

    def redact(self) -> Failure:
        """Return it without keys, known ones and what has the shape of one: errors repeat what was sent."""
        cut = keys_of_environment().cut
        left = {
            "message": cut(without_keys(self.message)),
            "evidence": self.evidence and cut(without_keys(self.evidence)),
        }
        return self if left == {"message": self.message, "evidence": self.evidence} else self.model_copy(update=left)


def error_text(grader: str | None, failure: Failure | None, reason: str | None) -> str:
    """Return what an error says, after the name of the grader whose it is; None is the conversation itself."""
    text = str(failure) if failure is not None else reason or "error"
    return text if grader is None else f"{grader}: {text}"


def failure_of(error: BaseException, blame: Blame) -> Failure:
    """Return the record of an exception; a `Fault` says itself whose it is, anything else is `blame`'s.

    Nobody who was asked is to blame where memory runs out: what was asked for is too large.
    """
    if isinstance(error, Fault):
        cause = error.__cause__
        return Failure(
            blame=error.blame,
            kind=error.kind,
            message=encodable(str(error)),
            exception=type(cause).__name__ if cause else None,
            evidence=shorten(error.evidence and encodable(error.evidence)),
        ).redact()
    if isinstance(error, MemoryError):
        return Failure(blame="suite", kind="limit", message=OUT_OF_MEMORY, exception=type(error).__name__)
    message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    seen = "".join(traceback.format_exception(error))[-EVIDENCE_LIMIT:]
    return Failure(
        blame=blame,
        kind="crash",
        message=encodable(message),
        exception=type(error).__name__,
        evidence=encodable(seen),
    ).redact()


@overload
def shorten(text: str, limit: int = EVIDENCE_LIMIT) -> str: ...


@overload
def shorten(text: str | None, limit: int = EVIDENCE_LIMIT) -> str | None: ...


def shorten(text: str | None, limit: int = EVIDENCE_LIMIT) -> str | None:
    """Cut a text to `limit` characters and say how many were left out."""
    if text is None or len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit} more characters)"


MOST_TOKENS = 100_000_000
"""Tokens from which a report of one call is wrong: no model reads or writes this many at once."""


class Usage(BaseModel):
    """Tokens of one call or of many; `cost` is in US dollars, None when a price is unknown (never 0).

    `cached_calls` counts answers from the cache, which are not calls and use nothing.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    reasoning_tokens: int = 0
    calls: int = 0
    cached_calls: int = 0
    cost: float | None = None

    def __add__(self, other: Usage) -> Usage:
        """Add up; the sum's cost is unknown when one of two used parts has no price."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_input_tokens=self.cached_input_tokens + other.cached_input_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            calls=self.calls + other.calls,
            cached_calls=self.cached_calls + other.cached_calls,
            cost=_cost(self, other),
        )

    def times(self, factor: float) -> Usage:
        """Return the usage of this many times as much, in whole tokens and calls."""
        counts = {name: round(value * factor) for name, value in dict(self).items() if name != "cost"}
        return Usage(**counts, cost=None if self.cost is None else self.cost * factor)


_COUNTS = ("input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens", "calls", "cached_calls")


def total(used: Iterable[Usage | None]) -> Usage | None:
    """Add up what is known of calls, None where nothing is."""
    spent: Usage | None = None
    for usage in used:
        if usage is not None:
            spent = usage if spent is None else spent + usage
    return spent


def total_of_texts(texts: Iterable[str]) -> Usage:
    """Add up usage that is stored as JSON text; nothing of it is made a record but the sum."""
    counts = dict.fromkeys(_COUNTS, 0)
    costs: list[float | None] = []
    unused: float | None = None
    for text in texts:
        part = from_json(text)
        for name in _COUNTS:
            counts[name] += part.get(name, 0)
        if part.get("calls"):
            costs.append(part.get("cost"))
        else:
            unused = part.get("cost")
    known = [cost for cost in costs if cost is not None]
    cost = unused if not costs else sum(known) if len(known) == len(costs) else None
    return Usage(**counts, cost=cost)


def usage_of(error: BaseException) -> Usage | None:
    """Return what calls used that came to nothing but this failure, None where there were none."""
    used: object = getattr(error, "usage", None)
    return used if isinstance(used, Usage) else None


def charge(error: BaseException, *used: Usage | None) -> None:
    """Add what calls used to the failure that they came to, which is where `usage_of` finds it."""
    if (spent := total([usage_of(error), *used])) is not None:
        vars(error)["usage"] = spent


def reported_usage(
    input_tokens: object, output_tokens: object, cached_input_tokens: object, reasoning_tokens: object
) -> Usage | None:
    """Return the usage of one call as a provider reports it, where a missing number is 0.

    It is None, so unknown, where a number is one that no call can have used: negative, too large, or no whole number.
    A limit on the cost would otherwise be undone by it.
    """
    counts: list[int] = []
    for number in (input_tokens, output_tokens, cached_input_tokens, reasoning_tokens):
        amount = 0 if number is None else number
        if not isinstance(amount, int | float) or isinstance(amount, bool):
            return None
        if not 0 <= amount < MOST_TOKENS or amount != amount // 1:
            return None
        counts.append(int(amount))
    read, generated, cached, reasoning = counts
    return Usage(
        input_tokens=read, output_tokens=generated, cached_input_tokens=cached, reasoning_tokens=reasoning, calls=1
    )


def _cost(a: Usage, b: Usage) -> float | None:
    if not a.calls or not b.calls:
        return a.cost if a.calls else b.cost
    return None if a.cost is None or b.cost is None else a.cost + b.cost


_NUMBERED = re.compile(r"(.+)#(\d{1,9})", re.DOTALL | re.ASCII)


def to_number(index: int) -> int:
    """Return the number that a person reads for a turn or a trial of a record."""
    return index + 1


def to_index(number: int) -> int:
    """Return where a record keeps the turn or the trial that a person, or a judge, gives by its number."""
    return number - 1


def turn_label(turn: int | None) -> str:
    """Return what a turn of a record is called: `turn 1` for 0; None is what precedes the first."""
    return "before turn 1" if turn is None else f"turn {to_number(turn)}"


def turn_title(turn: int | None, mark: SessionMark | None) -> str:
    """Return what a turn is called above its messages, with its session: `turn 4 · session 2 · ana`."""
    return turn_label(turn) if mark is None else f"{turn_label(turn)} · {mark.label}"


def turn_span(turns: Iterable[int]) -> str:
    """Return what ascending turns of a record are called: `turns 1 to 4, 6`."""
    runs: list[list[int]] = []
    for number in map(to_number, turns):
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    several = len(runs) > 1 or len(runs[0]) > 1
    return f"turn{'s' if several else ''} {', '.join(' to '.join(map(str, run)) for run in runs)}"


def conversation_name(sample_id: str, trial: int) -> str:
    """Return the name of a conversation of a run, `refund#2` for the trial that a record keeps as 1."""
    return f"{sample_id}#{to_number(trial)}"


def conversation_label(sample_id: str, trial: int) -> str:
    """Return the name of a conversation as lists show it: a first trial is called by its sample alone."""
    return conversation_name(sample_id, trial) if trial else sample_id


def split_name(name: str) -> tuple[str, int | None]:
    """Return the sample and the trial, as a record keeps it, of a name such as `refund#2`; None where it names none.

    Raises:
        UsageError: the name says trial 0.
    """
    match = _NUMBERED.fullmatch(name)
    if match is None:
        return name, None
    if int(match[2]) == 0:
        raise UsageError(f"'{name}': trials count from 1, so the first is '{match[1]}#1'")
    return match[1], to_index(int(match[2]))


ERROR = "error"
"""What `score` is where nothing could be measured: a word, neither a number nor a category."""

_OLDER = {"score": "raw", "reasoning": "reason", "error": "failure", "evidence": "other_evidence"}
_REPEATED_FIELDS = frozenset(
    ("score", "score_type", "is_successful", "confidence", "reasoning", "evidence", "error", "exception_type")
)
"""Details that a score holds elsewhere."""


def score_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a score from those of the design document, where they are not given as such."""
    typed = {_OLDER.get(name, name): value for name, value in data.items() if name != "details"}
    details = cast("Mapping[str, Any]", data.get("details") or {})
    if typed.get("raw") == ERROR:
        if typed.setdefault("state", "error") != "error":
            raise ValueError(f"the score 'error' has state 'error'; got {typed['state']}")
        typed["raw"] = None
        if typed.get("failure") is None:
            message = str(details.get("error") or details.get("reasoning") or "the metric gave no reason")
            kind = details.get("exception_type")
            typed["failure"] = Failure(blame="judge", kind="crash", message=message, exception=kind)
    elif details.get("is_successful") is not None and typed.get("raw") is not None:
        typed.setdefault("passed", details["is_successful"])
    for older, name in (("confidence", "confidence"), ("reasoning", "reason")):
        if details.get(older) is not None:
            typed.setdefault(name, details[older])
    if "other_evidence" not in typed and details.get("evidence"):
        typed["other_evidence"] = [
            {"text": entry} if isinstance(entry, str) else entry for entry in details["evidence"]
        ]
    extra = {name: value for name, value in details.items() if name not in _REPEATED_FIELDS}
    if extra:
        typed["extra"] = {**extra, **typed.get("extra", {})}
    return typed


State = Literal["scored", "error", "skipped"]
"""An error is never 0, never a pass, never left out of the counts."""

Raw = bool | float | str
"""A score in the metric's own terms: a yes or no, a number, a label."""

BREACH = "breach"
"""The kind of a finding of the goal's judge: a false statement, or a rule of the policy that was broken."""

TESTER_ERROR = "tester_error"
"""The kind of a failure of a test that its tester caused."""

FAILED_STEP = "failed_step"
"""The kind of a finding about a step with which a conversation failed."""

PASSING = 1.0
"""The value from which a score passes unless its grader has a threshold."""

UNSUPPORTED = "unsupported"
"""The key in `extra` of a score for the claims of its judge whose evidence is missing or not in the conversation."""


class Evidence(BaseModel):
    """Something that a score rests on: the words of a message, or a tool call by its reference, such as `c2`.

    `turn` is an index from 0; None stands for what precedes the first user message, and for evidence that was not
    found. Evidence is `verified` when it occurs in the conversation.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    kind: Literal["quote", "call"] = "quote"
    turn: int | None = None
    verified: bool = False


FindingState = Literal["pass", "partial", "fail", "warn", "skip"]
"""Whether a finding speaks for the conversation, partly, against it, against it as a warning, or does not apply."""


WARN: Literal["warn"] = "warn"
"""The state of a finding that speaks against the conversation and decides nothing."""


class Finding(BaseModel):
    """One thing that a metric saw: enough for a reader who does not know the metric.

    `kind` is one word, such as `criterion`, `violation` or `claim`; `what` the sentence it is about; `verdict` the
    metric's word for it, such as `met` or `major`, and `state` what that amounts to. `turn` is an index from 0, None
    where it is about no single turn. `blame` says whose fault it is, where the metric says so. `data` is what only this
    metric knows of it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    what: str
    verdict: str
    state: FindingState
    turn: int | None = None
    evidence: tuple[Evidence, ...] = ()
    blame: Blame | None = None
    data: dict[str, Any] = Field(default_factory=dict)

    @property
    def fact(self) -> str:
        """What was found where an assertion was missed, else the sentence that it is about."""
        actual = self.data.get("found")
        return actual if self.state in ("fail", WARN) and isinstance(actual, str) and actual else self.what


class Score(BaseModel):
    """What one grader or metric says about a conversation, or with a `turn`, an index from 0, about that turn.

    `value` is from 0, worst, to 1, best; None where there is no score, and for a measurement (see `measured`). `raw`
    is the score in the metric's own terms. `passed` is decided when the score is made, by the metric's threshold or
    that of the grader; without either a value of 1 passes. It is None without a score and for a measurement.

    `findings` are what the score is based on, `other_evidence` any further evidence. `turns` are the scores of single
    turns, None if not scored separately. `extra` is what only this grader knows, as plain data. `failure` says
    what went wrong and whose fault it was. `fingerprint` is a hash of all that decides the score, and `settings` what
    the judge was asked with.

    Raises:
        ValueError: state, value and `passed` contradict each other.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = ""
    turn: int | None = None
    state: State = "scored"
    value: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    raw: Raw | None = None
    passed: bool | None = None
    reason: str | None = None
    confidence: float | None = None
    findings: tuple[Finding, ...] = ()
    other_evidence: tuple[Evidence, ...] = ()
    turns: tuple[Score, ...] | None = None
    submission: str = ""
    ground_truth: Any = None
    extra: dict[str, Any] = Field(default_factory=dict)
    failure: Failure | None = None
    usage: Usage | None = None
    fingerprint: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict)

    def _repr_html_(self) -> str:
        """Return the score for a notebook, in which every text is escaped."""
        return cast("str", lazy("vivavoce.report.html.notebook:score_html")(self))

    @property
    def measured(self) -> float | None:
        """The number of a measurement: a score that has no value, because its metric has no best score.

        It is in the metric's own unit, such as turns or seconds, and nothing says whether it passes. None for any
        other score.
        """
        return measured_of(self.state, self.value, self.raw)

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """All that the score rests on, each piece once: the evidence of its findings, then the other."""
        from_findings = (evidence for finding in self.findings for evidence in finding.evidence)
        return tuple(dict.fromkeys([*from_findings, *self.other_evidence]))

    @property
    def has_unverified_evidence(self) -> bool:
        """Whether the judge claims something whose evidence is missing or not in the conversation."""
        return self.state == "scored" and bool(self.extra.get(UNSUPPORTED))

    @model_validator(mode="before")
    @classmethod
    def _decide(cls, data: Any) -> Any:
        return with_passed(cast("dict[str, Any]", data)) if isinstance(data, dict) else data

    @field_validator("raw", mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _consistent(self) -> Score:
        if isinstance(self.raw, float) and not math.isfinite(self.raw):
            raise ValueError(f"a score is a finite number, got {self.raw}")
        scored = self.value is not None or self.raw is not None
        if (self.state == "scored") != scored:
            rule = "a score has state 'scored' if and only if it has a value"
            raise ValueError(f"{rule}; got {self.state} with {self.value if self.value is not None else self.raw}")
        if self.passed is not None and not scored:
            raise ValueError(f"state '{self.state}' neither passes nor fails; got passed={self.passed}")
        return self


def measured_of(state: State, value: float | None, raw: Raw | None) -> float | None:
    """Return the number of a score that is a measurement, None for any other score."""
    if state != "scored" or value is not None or isinstance(raw, bool | str):
        return None
    return raw


def with_passed(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a score with whether it passes, where nobody has said so."""
    value, state = fields.get("value"), fields.get("state", "scored")
    if fields.get("passed") is None and isinstance(value, int | float) and state == "scored":
        return {**fields, "passed": reaches(value, PASSING)}
    return fields


def failed(failure: Failure, **more: Any) -> Score:
    """Return the score of something that could not be graded."""
    return Score(state="error", reason=failure.message, failure=failure, **more)


def skipped(reason: str, **more: Any) -> Score:
    """Return the score of something that a grader does not apply to."""
    return Score(state="skipped", reason=reason, **more)


def mean_of_turns(turns: Sequence[Score], threshold: float = PASSING, **more: Any) -> Score:
    """Return the score of a conversation from those of its turns: the mean over the turns that count.

    A turn in state `error` makes the whole an error, for a mean without it would be a guess; skipped turns do not.
    Turns that were measured make the whole a measurement.
    """
    graded_turns = [turn for turn in turns if turn.state != "skipped"]
    measured = [turn.measured for turn in graded_turns if turn.measured is not None]
    values = [turn.value for turn in graded_turns if turn.value is not None]
    broken = [turn for turn in graded_turns if turn.state == "error"]
    if broken:
        first = broken[0]
        place = f"{turn_label(first.turn)}: {first.reason}"
        reason = f"{len(broken)} of {len(graded_turns)} turns could not be graded; {place}"
        return Score(state="error", reason=reason, failure=first.failure, turns=tuple(turns), **more)
    if measured and not values:
        reason = f"the mean of {len(measured)} measured turn{'s' * (len(measured) != 1)}"
        return Score(raw=float(mean(measured)), reason=reason, turns=tuple(turns), **more)
    if not values:
        return skipped("no turn has a ground truth", turns=tuple(turns), **more)
    whole = mean(values)
    passed = sum(turn.passed is True for turn in graded_turns)
    reason = f"{passed}/{len(graded_turns)} turns passed"
    claims = dict.fromkeys(claim for turn in graded_turns for claim in turn.extra.get(UNSUPPORTED, ()))
    more = {**more, "extra": {UNSUPPORTED: list(claims)}} if claims else more
    return Score(value=float(whole), passed=reaches(whole, threshold), reason=reason, turns=tuple(turns), **more)
