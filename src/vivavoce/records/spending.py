"""What a conversation used, by role: tester, judge, target, and graders of the run besides the tester's own judge."""

from __future__ import annotations

from collections.abc import Mapping

from vivavoce.records.run import Outcome
from vivavoce.records.usage import Usage, total

_ORDER = ("tester", "target", "judge")


def spent(outcome: Outcome) -> dict[str, Usage]:
    """Return what a conversation used, by role, without the roles that used nothing.

    Where a tester led it, the roles are those of its test, with the tries that it spoilt, and what graders asked
    besides is `graders`; else it is `target`, and `judge` for the graders.
    """
    talk = outcome.attempt.trajectory
    graded = total(score.usage for score in outcome.scores.values()) or Usage()
    if talk.test is None:
        return _known({"target": talk.usage, "judge": graded})
    return _known({**talk.test.usage, "graders": graded})


def by_role(usage: Mapping[str, Usage]) -> str:
    """Return usage by role in words, empty for none."""
    return " · ".join(f"{role} {in_words(used)}" for role, used in _known(usage).items())


def in_words(usage: Usage) -> str:
    """Return tokens and cost in words; without a cost where a price is unknown."""
    tokens = f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
    return tokens if usage.cost is None else f"{tokens}, {dollars(usage.cost)}"


def _known(usage: Mapping[str, Usage]) -> dict[str, Usage]:
    used = {role: usage[role] for role in (*_ORDER, *usage) if role in usage}
    return {role: one for role, one in used.items() if one.calls or one.input_tokens or one.output_tokens or one.cost}


def dollars(cost: float) -> str:
    """Return an amount of US dollars; small amounts keep two significant digits."""
    return f"${cost:.2f}" if cost >= 0.1 or cost == 0 else f"${cost:.2g}"
