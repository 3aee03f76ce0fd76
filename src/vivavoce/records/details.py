"""Figures of a run besides its scores: waiting times, what was used, trials, and what went as recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.records.run import Outcome
from vivavoce.records.score import Usage, total


class TrialsSpent(BaseModel):
    """The trials of a run that makes `most` of each sample unless fewer are enough.

    `spent` conversations were held of the `planned` ones, None where their number was not known. They were to decide
    the gate, or with a `half_width` to give the interval of something, `of` in words, at most that half width; `met`
    says whether they did. `by_sample` says that samples have different numbers of trials, so that no interval of a mean
    over all trials is stated.
    """

    model_config = ConfigDict(frozen=True)

    spent: int
    planned: int | None = None
    most: int
    half_width: float | None = None
    of: str | None = None
    met: bool
    by_sample: bool = False


_ORDER = ("tester", "target", "judge")


def spent(outcome: Outcome) -> dict[str, Usage]:
    """Return what a conversation used, by role, without the roles that used nothing.

    Where a tester led it, the roles are those of its test, with the tries that it spoilt, and what graders asked
    besides is `graders`; else it is `target`, and `judge` for the graders.
    """
    talk = outcome.attempt.trajectory
    graded = total(score.usage for score in outcome.scores.values()) or Usage()
    return roles_of(talk.usage, graded, None if talk.test is None else talk.test.usage)


def roles_of(target: Usage, graded: Usage, test: Mapping[str, Usage] | None) -> dict[str, Usage]:
    """Return by role what a target and the graders used in a conversation; `test` is by role what its test used."""
    return _order_usage({"target": target, "judge": graded} if test is None else {**test, "graders": graded})


def by_role(usage: Mapping[str, Usage]) -> str:
    """Return usage by role in words, empty for none."""
    return " · ".join(f"{role} {usage_text(used)}" for role, used in _order_usage(usage).items())


def usage_text(usage: Usage) -> str:
    """Return tokens, cost and answers from the cache in words; without a cost where a price is unknown.

    Of the tokens that were read they say which share the server had in the cache of its prompts, where it tells.
    """
    words = f"{usage.input_tokens:,} tokens in"
    if usage.cached_input_tokens and usage.input_tokens:
        words += f" ({usage.cached_input_tokens / usage.input_tokens:.0%} from the prompt cache)"
    words += f", {usage.output_tokens:,} out"
    if usage.cost is not None:
        words += f", {dollars(usage.cost)}"
    return words + (f", {usage.cached_calls:,} cached" if usage.cached_calls else "")


def _order_usage(usage: Mapping[str, Usage]) -> dict[str, Usage]:
    used = {role: usage[role] for role in (*_ORDER, *usage) if role in usage}
    return {role: amounts for role, amounts in used.items() if any(vars(amounts).values())}


def dollars(cost: float) -> str:
    """Return an amount of US dollars; small amounts keep two significant digits."""
    return f"${cost:.2f}" if cost >= 0.1 or cost == 0 else f"${cost:.2g}"


AS_RECORDED = "as_recorded"
"""The name of the grader that compares with a recording, and of what it keeps in the `extra` of its score."""

DifferenceKind = Literal["said", "length", "call", "unrecorded", "order", "result", "reply"]
"""In what a turn is not as recorded: what the user said, whether there is such a turn, the calls of tools, one that the
recording could not answer, their order, their results, or the words of the reply."""


Unit = Literal["turn", "conversation"]
"""What is compared: a turn, or a whole conversation; one of a single turn is a turn."""


class Difference(BaseModel):
    """Where a conversation stopped being as recorded: in `turn`, from 0, and `what` in words."""

    model_config = ConfigDict(frozen=True)

    kind: DifferenceKind
    turn: int
    what: str


class CallsCovered(BaseModel):
    """The calls of tools in conversations, as a recording covers them.

    It `answered` this many, others were answered `live`, and `missed` are the calls that it could not answer; each
    ended its conversation. `unused` recorded calls were not made, `examples` names some of them.
    """

    model_config = ConfigDict(frozen=True)

    answered: int = 0
    live: int = 0
    missed: int = 0
    unused: int = 0
    examples: list[str] = Field(default_factory=list[str])

    def __add__(self, other: CallsCovered) -> CallsCovered:
        """Add up, with the first few examples."""
        return CallsCovered(
            answered=self.answered + other.answered,
            live=self.live + other.live,
            missed=self.missed + other.missed,
            unused=self.unused + other.unused,
            examples=list(dict.fromkeys([*self.examples, *other.examples]))[:MOST_EXAMPLES],
        )


MOST_EXAMPLES = 5
"""How many recorded calls that were not made are named."""


class RecordedGrade(BaseModel):
    """What a grader says of the recorded reply in the turn that differs, or of the whole recorded conversation."""

    model_config = ConfigDict(frozen=True)

    turn: int | None
    value: float | None
    reason: str | None = None


class AsRecorded(BaseModel):
    """A conversation next to what was recorded of its row.

    `trial` and `target` are those of the recorded conversation, the nearest of `candidates`. The first `same` turns are
    as recorded. With the turn of the `difference` they are the ones that answer the same history: `comparable`, which
    leaves out a turn that was not answered on both sides. `recorded` is what the graders say of the recorded side where
    it is another, by their names; of all other comparable turns the score is the same on both sides.
    """

    model_config = ConfigDict(frozen=True)

    target: str
    trial: int
    candidates: int
    same: int
    comparable: int
    whole: bool
    difference: Difference | None = None
    calls: CallsCovered = CallsCovered()
    recorded: dict[str, RecordedGrade] = Field(default_factory=dict[str, RecordedGrade])


class DifferentConversations(BaseModel):
    """The conversations that differ in one kind of thing: how many, and the one in which it came first."""

    model_config = ConfigDict(frozen=True)

    kind: DifferenceKind
    conversations: int
    sample: str
    trial: int
    turn: int
    what: str


class PairedGrades(BaseModel):
    """What a grader says of recorded and new in the `n` comparable turns, or whole conversations, scored on both sides.

    `left_out` are those without a score on one side. `p_value` is that of the sign test over `better` and `worse`.
    """

    model_config = ConfigDict(frozen=True)

    grader: str
    of: Unit
    n: int
    better: int
    worse: int
    recorded: float
    new: float
    p_value: float
    left_out: int = 0


class RecordingSummary(BaseModel):
    """How far the conversations of a target went as they were recorded.

    Of `conversations`, `same` are as recorded; `unrecorded` are of rows that the recording does not have, and `errors`
    ended with an error before a difference. `turns` of them all are comparable. `ended` names some conversations that
    ended with a call which is not in the recording, with the turn.
    """

    model_config = ConfigDict(frozen=True)

    target: str
    conversations: int
    same: int
    unrecorded: int
    errors: int
    turns: int
    different: list[DifferentConversations] = Field(default_factory=list[DifferentConversations])
    calls: CallsCovered = CallsCovered()
    ended: list[str] = Field(default_factory=list[str])
    pairs: list[PairedGrades] = Field(default_factory=list[PairedGrades])


class Latency(BaseModel):
    """How long a target took for its `replies`, in seconds: the median, and what 95% of them do not exceed."""

    model_config = ConfigDict(frozen=True)

    target: str
    replies: int
    p50: float
    p95: float


class MeasurementSummary(BaseModel):
    """The scores of a grader that are measurements, `n` of them, in the metric's own unit, such as turns or seconds."""

    model_config = ConfigDict(frozen=True)

    n: int
    mean: float
    min: float
    max: float


class SkipSummary(BaseModel):
    """Why one grader did not apply to some conversations with one target: `skipped` of `conversations`.

    `reasons` counts them by what the grader says, the most frequent first; `other` were skipped for further reasons.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    target: str
    skipped: int
    conversations: int
    reasons: dict[str, int]
    other: int = 0


class AgentFailures(BaseModel):
    """How often one grader found a fault of an agent: in `turns` of those in which it acts, `failures` in all.

    `share` is the share of its turns, with the 95% interval from `low` to `high`, clustered by sample; None where
    nothing can be said.
    """

    model_config = ConfigDict(frozen=True)

    grader: str
    failures: int
    turns: int
    share: float
    low: float | None = None
    high: float | None = None


class AgentSummary(BaseModel):
    """What one of several agents of a target did, and what failed of it.

    It acts in `turns` turns of `conversations` conversations, in which it made `calls`, `tool_errors` of them with
    an error as the result, and handed over `handoffs` times. In `failed_turns` a grader found a fault of it, or the
    target broke down while it was the last to act; `share` is their share with its 95% interval, clustered by sample.
    `graders` are those that found one, the most frequent first.
    """

    model_config = ConfigDict(frozen=True)

    agent: str
    target: str
    conversations: int
    turns: int
    calls: int
    tool_errors: int
    handoffs: int
    failed_turns: int
    share: float
    low: float | None = None
    high: float | None = None
    graders: list[AgentFailures] = Field(default_factory=list[AgentFailures])


class VarianceSummary(BaseModel):
    """The variance of the scores of one grader against one target, split into where it comes from.

    `samples` is between samples (sampling), `trials` between trials of a sample (the target), `judgements` between
    judgements of one conversation (the judge). One is None where nothing repeats: then it is not measured, and part of
    the level above. `judged` says whether a model judges, `counted` of how many samples this is an estimate.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    target: str
    samples: float | None = None
    trials: float | None = None
    judgements: float | None = None
    counted: int | None = None
    judged: bool = False
