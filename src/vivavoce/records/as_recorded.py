"""Whether conversations went as they were recorded: for one of them, and for a run."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

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

    It `answered` so many, others were answered `live`, and `missed` are the calls that it could not answer, each of
    which ended its conversation. `unused` recorded calls were not made, `examples` names some of them.
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
"""Recorded calls that were not made, of which so many are named."""


class RecordedGrade(BaseModel):
    """What a grader says of the recorded reply in the turn that differs, or of the whole recorded conversation."""

    model_config = ConfigDict(frozen=True)

    turn: int | None
    value: float | None
    reason: str | None = None


class AsRecorded(BaseModel):
    """A conversation beside what was recorded of its row.

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
