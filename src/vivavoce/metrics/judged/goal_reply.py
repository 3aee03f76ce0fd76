"""What a judge answers about a goal: a class for each set of things that it is asked."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from vivavoce.metrics.judged.rules import RuleAnswer, check_rules, rule_answers
from vivavoce.metrics.question import Shape
from vivavoce.records.run import BreachKind


class Asked(NamedTuple):
    """What one question asks: about which calls and how many rules, whether for outcomes, and for one of the levels.

    `visible` says whether the calls of the conversation are shown.
    """

    calls: tuple[str, ...]
    rules: int
    criteria: bool
    levels: tuple[str, ...]
    level: bool
    visible: bool = True


class Criterion(Shape):
    """One outcome that the goal requires."""

    outcome: str
    kind: Literal["change", "fact", "refusal"]
    evidence: list[str]
    met: bool


class Change(Shape):
    """A call that changed something; subclasses know the calls."""

    call: str
    asked: str
    rule: str
    verdict: Literal["not_made", "undone", "forbidden", "not_wanted", "wrong_value", "wanted"]


def _ask_for_kind(schema: dict[str, Any]) -> None:
    """Require the kind, which an answer of an older form lacks."""
    schema.pop("description", None)
    schema["properties"]["kind"] = {"type": "string", "enum": list(get_args(BreachKind))}
    schema["required"] = list(schema["properties"])


class Breach(Shape):
    """Another rule of the policy that was broken, or a false statement; without a kind it may be either."""

    model_config = ConfigDict(json_schema_extra=_ask_for_kind)

    what: str
    kind: BreachKind | None = None
    evidence: list[str]


def _only_asked(schema: dict[str, Any], reply: type[GoalReply]) -> None:
    asked = reply.asked
    unasked = {"evidence", "missing_criteria"}
    for name, wanted in (
        ("criteria", asked.criteria),
        ("changes", asked.calls),
        ("rules", asked.rules),
        ("achievement_level", asked.level),
    ):
        if not wanted:
            unasked.add(name)
    for name in unasked:
        del schema["properties"][name]


class GoalReply(BaseModel):
    """What the judge answers; subclasses know what was asked.

    Older interfaces have `achievement_level`, `evidence` and `missing_criteria` alone. That form is read and never
    asked for.
    """

    model_config = ConfigDict(extra="forbid", json_schema_extra=_only_asked)

    asked: ClassVar[Asked] = Asked((), 0, True, (), False)

    criteria: list[Criterion] = Field(default_factory=lambda: [])
    changes: list[Change] = Field(default_factory=lambda: [])
    rules: list[RuleAnswer] = Field(default_factory=lambda: [])
    breaches: list[Breach] = Field(default_factory=lambda: [])
    reasoning: str
    achievement_level: str | None = None
    confidence: float = Field(ge=0, le=1)
    evidence: list[str] | None = None
    missing_criteria: list[str] = Field(default_factory=lambda: [])

    @property
    def is_older_form(self) -> bool:
        """Whether the answer is a level with evidence and nothing else."""
        judged = self.criteria or self.changes or self.rules or self.breaches
        return not judged and self.evidence is not None and self.achievement_level is not None

    @model_validator(mode="after")
    def _answers_what_was_asked(self) -> GoalReply:
        asked = self.asked
        if self.achievement_level is not None and self.achievement_level not in asked.levels:
            raise ValueError(f"achievement_level is one of {', '.join(asked.levels)}")
        if self.is_older_form and not asked.rules:
            return self
        problems: list[str] = []
        if asked.criteria and not self.criteria:
            problems.append("criteria are missing; judge each outcome of the goal")
        judged = sorted([change.call for change in self.changes])
        if judged != sorted(asked.calls):
            listed = f"judge each of these calls once: {', '.join(asked.calls)}"
            problems.append(listed if asked.calls else "no call is listed, so changes is empty")
        try:
            check_rules(self.rules, asked.rules)
        except ValueError as error:
            problems.append(str(error))
        if asked.level and self.achievement_level is None:
            problems.append("achievement_level is missing")
        if problems:
            raise ValueError("; ".join(problems))
        return self


@lru_cache(256)
def goal_reply(asked: Asked) -> type[GoalReply]:
    """Return the class of an answer to what is asked."""
    fields: dict[str, Any] = {}
    if asked.criteria:
        fields["criteria"] = (Annotated[list[Criterion], Field(min_length=1)], Field(default_factory=lambda: []))
    if asked.calls:
        call: Any = Literal[asked.calls]
        change = create_model("Change", __base__=Change, call=(call, ...))
        count = Field(min_length=len(asked.calls), max_length=len(asked.calls))
        fields["changes"] = (Annotated[list[change], count], Field(default_factory=lambda: []))
    if asked.rules:
        fields["rules"] = (rule_answers(asked.rules), Field(default_factory=lambda: []))
    if asked.level:
        level: Any = Literal[asked.levels]
        fields["achievement_level"] = (level, ...)
    shape = create_model("GoalReply", __base__=GoalReply, **fields)
    shape.asked = asked
    return shape
