"""`DisclosureCheck`: does the tester tell a fact before the target asks for it?"""

from __future__ import annotations

import re
from functools import lru_cache

from vivavoce.metrics.exact.phrases import compiled, straight
from vivavoce.penelope.context import TestState

SHORTEST = 3
"""Characters from which a value is found with other spaces and hyphens in it."""

_GAP = r"[\s\u2010-\u2015-]*"
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z\d])(?=[A-Z])")
_ANYTHING = compiled([r"(your|more|further|following|additional) (\w+ )?(details|information|info|data)"])
_REVEAL_NOTHING = {"yes", "no", "true", "false", "none", "unknown", ""}
"""Values that give nothing away by themselves."""

_FILLERS = {"a", "an", "and", "by", "for", "has", "in", "is", "my", "of", "on", "or", "s", "the", "to", "user", "your"}
"""Words of a name that a question for it need not contain, and that do not ask for it alone."""


class DisclosureCheck:
    """Objects to a message that tells a fact which the target has not asked for.

    A fact is told when its value stands in the message, whatever the capitals, spaces and hyphens; it was asked for
    when a word of its name stands in a reply of the target, or a reply asks for details at large. What the target said
    itself, and what stands in the goal, the scenario or the openings, is not a secret.

    Known failures: a target that asks in other words than the names of the facts, or in another language, is not
    understood; nor is a fact found that is told in other words than its value.
    """

    name = "disclosure"
    patience: int | None = 2

    def objection(self, message: str, state: TestState) -> str | None:
        """Name the fact that is told too early."""
        for fact, value in state.context.facts.items():
            if _contains(message, value) and not _is_open(value, state) and not _was_asked(fact, state):
                return f"'{fact}' is told only when asked for, and nobody did: leave '{value}' out of the message"
        return None


def _contains(text: str, value: str) -> bool:
    pattern = _value(straight(value).strip())
    return pattern is not None and pattern.search(straight(text)) is not None


def _is_open(value: str, state: TestState) -> bool:
    about = state.context
    open_texts = (about.goal, about.scenario or "", *about.openings, *(turn.reply for turn in state.turns))
    return any(_contains(text, value) for text in open_texts)


def _was_asked(fact: str, state: TestState) -> bool:
    replies = [turn.reply for turn in state.turns if not turn.forgotten]
    patterns = [pattern for pattern in (_mention(fact), _ANYTHING) if pattern]
    return any(pattern.search(reply) for reply in replies for pattern in patterns)


@lru_cache(maxsize=1024)
def _value(value: str) -> re.Pattern[str] | None:
    if value.casefold() in _REVEAL_NOTHING:
        return None
    signs = [sign for sign in value if not re.fullmatch(_GAP, sign)]
    if len(signs) < SHORTEST:
        return compiled([re.escape(value)])
    return compiled([_GAP.join(map(re.escape, signs))])


@lru_cache(maxsize=1024)
def _mention(fact: str) -> re.Pattern[str] | None:
    """Return a pattern for the words of a name, in singular and plural, and with hyphens in them."""
    words = [word.casefold() for word in _WORD.findall(_CAMEL.sub(" ", fact))]
    telling = [word for word in words if word not in _FILLERS and len(word) > 1] or words
    forms = {form for word in (*telling, "".join(words)) for form in (word, word.removesuffix("s")) if form}
    return compiled(f"{'-?'.join(form)}(?:s|es|'s)?" for form in sorted(forms))
