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
    return roles_of(talk.usage, graded, None if talk.test is None else talk.test.usage)


def roles_of(target: Usage, graded: Usage, test: Mapping[str, Usage] | None) -> dict[str, Usage]:
    """Return by role what a target and the graders used in a conversation; `test` is by role what its test used."""
    return _known({"target": target, "judge": graded} if test is None else {**test, "graders": graded})


def by_role(usage: Mapping[str, Usage]) -> str:
    """Return usage by role in words, empty for none."""
    return " · ".join(f"{role} {in_words(used)}" for role, used in _known(usage).items())


def in_words(usage: Usage) -> str:
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


def _known(usage: Mapping[str, Usage]) -> dict[str, Usage]:
    used = {role: usage[role] for role in (*_ORDER, *usage) if role in usage}
    return {role: one for role, one in used.items() if any(vars(one).values())}


def dollars(cost: float) -> str:
    """Return an amount of US dollars; small amounts keep two significant digits."""
    return f"${cost:.2f}" if cost >= 0.1 or cost == 0 else f"${cost:.2g}"
