"""Numbered rules: what must happen and what must not. The judge says what happened, code what that means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from vivavoce.comparing.negations import act_text, only_refuses
from vivavoce.metrics.evidence import CRITERION, OBJECTION, PROHIBITION
from vivavoce.metrics.judged.false_statements import spoken_words
from vivavoce.metrics.prompts import Prompt, Wording, read_prompt
from vivavoce.metrics.question import Question, Shape
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.records.score import Finding, FindingState
from vivavoce.safe_text import quoted

HAPPENED: dict[str, tuple[str, FindingState]] = {
    "yes": ("kept", "pass"),
    "no": ("not kept", "fail"),
    "no_occasion": ("no occasion", "skip"),
}
AVOIDED: dict[str, tuple[str, FindingState]] = {
    "yes": ("done", "fail"),
    "no": ("not done", "pass"),
    "no_occasion": ("not done", "pass"),
}
"""What an answer means for what has to happen, and for what must not."""


class RuleAnswer(Shape):
    """What happened of one rule, by its number; `evidence` shows where."""

    rule: int
    evidence: list[str]
    happened: Literal["yes", "no", "no_occasion"]


@cache
def rules_prompt() -> Prompt:
    """Return what a prompt says about numbered rules."""
    return read_prompt("judged/rules.jinja", frozenset(("rules", "visible")), None, {})


SECOND_LOOK = "second_look"
"""Where the context says that another judge found nothing that must not be, and that this one looks again."""


def is_second_look(metric_input: MultiTurnEvaluationInput) -> bool:
    """Say whether another judge found nothing that must not be in a conversation."""
    return bool((metric_input.context or {}).get(SECOND_LOOK))


def doubts_of_second_look(findings: Sequence[Finding]) -> list[str]:
    """Return what to ask about each act that a second look found: its words may not be the act."""
    return [
        "Do these words only refuse it, warn of it, quote somebody else, or speak of it without doing it: "
        f"{quoted(quote.text)}?"
        for finding in findings
        for quote in spoken_words(finding)[:1]
    ]


Rule = tuple[str, str]
"""A rule with its kind."""


def rules_task(listed: Sequence[Rule], visible: bool) -> Wording | None:
    """Return the task about rules, None where there are none; `visible` says whether calls are."""
    if not listed:
        return None
    rules = [rule for rule, _ in listed]
    return Wording(rules_prompt().render({"rules": rules, "visible": visible}).rstrip())


@lru_cache(64)
def rule_answers(count: int) -> Any:
    """Return the type of a list of answers, one for each of `count` rules."""
    number: Any = Literal[tuple(range(1, count + 1))]
    answer = create_model("RuleAnswer", __base__=RuleAnswer, rule=(number, ...))
    return Annotated[list[answer], Field(min_length=count, max_length=count)]


def check_rules(answers: Sequence[RuleAnswer], count: int) -> None:
    """Check that each rule is answered once.

    Raises:
        ValueError: one is not, or twice.
    """
    if not answers and not count:
        return
    numbers = sorted(answer.rule for answer in answers)
    if numbers != list(range(1, count + 1)):
        asked = f"answer each rule from 1 to {count} once" if count else "there are no rules to answer"
        raise ValueError(f"{asked}; got {', '.join(map(str, numbers)) or 'none'}")


def rule_findings(question: Question, rules: Sequence[Rule], answers: Sequence[RuleAnswer]) -> Iterator[Finding]:
    """Yield a finding for each rule, in the order and the words in which the rules were given."""
    ordered = sorted(answers, key=lambda answer: answer.rule)
    for (rule, kind), answer in zip(rules, ordered, strict=True):
        verdict, state = (HAPPENED if kind == CRITERION else AVOIDED)[answer.happened]
        finding = question.finding(kind, rule, verdict, state, answer.evidence, data={"happened": answer.happened})
        is_broken = kind == PROHIBITION and state == "fail"
        yield with_refusals_named(finding, question, rule) if is_broken else finding


def with_refusals_named(finding: Finding, question: Question, act: str) -> Finding:
    """Return a finding that an act was done, with an objection where all that it quotes refuses the act."""
    quotes = [quote for quote in finding.evidence if quote.verified]
    messages = question.metric_input.messages
    texts = [
        (quote.text, [messages[place.message].text for place in question.checker.places(quote.text)])
        for quote in quotes
    ]
    if not texts or not all(
        places and all(only_refuses(quote, message, act) for message in places) for quote, places in texts
    ):
        return finding
    objection = f"these words refuse the act and do not do it, {quoted(quotes[0].text)}"
    return finding.model_copy(update={"data": {**finding.data, OBJECTION: objection}})


def rules_of(metric_input: MultiTurnEvaluationInput) -> list[Rule]:
    """Return the rules of a conversation with their kinds: what has to happen, then what must not.

    A rule of `must_not` is the act that it forbids, however it is worded.
    """
    return [
        *((rule, CRITERION) for rule in metric_input.must),
        *((act_text(rule), PROHIBITION) for rule in metric_input.must_not),
    ]


def merged_rules(versions: Sequence[Finding], once_failed: bool = False) -> Finding:
    """Return one finding of those about the same rule in several pieces: what happened in one of them happened.

    With `once_failed` a failure in one of them is one of the whole, as for what must not happen. The evidence
    is that of the pieces that decide; what another piece quotes for its own answer supports nothing.
    """
    once_failed = once_failed or versions[0].kind == PROHIBITION
    order: tuple[FindingState, ...] = ("fail", "pass") if once_failed else ("pass", "fail")
    state = next((state for state in order if any(version.state == state for version in versions)), "skip")
    deciding = [version for version in versions if version.state == state]
    update = {
        "verdict": deciding[0].verdict,
        "state": state,
        "turn": next((one.turn for one in deciding if one.turn is not None), None),
        "evidence": tuple(quote for one in deciding for quote in one.evidence),
        "data": {**versions[0].data, **deciding[0].data},
    }
    return versions[0].model_copy(update=update)
