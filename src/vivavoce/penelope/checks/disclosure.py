"""`DisclosureCheck`: does the tester tell a fact before the target asks for it?"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Collection, Mapping
from functools import lru_cache

import regex

from vivavoce.comparing.numbers import may_state, numbers_in, read_number
from vivavoce.comparing.text import fold
from vivavoce.conversation import ConversationHistory
from vivavoce.metrics.exact.speakers import compile_phrases
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike
from vivavoce.penelope.asked_for import DETAILS, AskedFor
from vivavoce.penelope.context import TestState
from vivavoce.penelope.judging import metric_input_of, note_unjudged

SHORTEST = 3
"""Characters from which a value is found with other spaces and hyphens in it."""

_FEW_WORDS = 4
"""Words, the number among them, up to which a text that ends with a short number tells just that."""

_GAP = "[ -]*"
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z\d])(?=[A-Z])")
_ANYTHING = compile_phrases([r"(your|more|further|following|additional) (\w+ )?(details|information|info|data)"])
_REVEAL_NOTHING = {"yes", "no", "true", "false", "none", "unknown", ""}
"""Values that give nothing away by themselves."""

_FILLERS = {"a", "an", "and", "by", "for", "has", "in", "is", "my", "of", "on", "or", "s", "the", "to", "user", "your"}
"""Words of a name that a question for it need not contain, and that do not ask for it alone."""


class DisclosureCheck:
    """Objects to a message that tells facts which the target has not asked for.

    A fact is told when its value stands in the message, in any case and encoding, and with any spaces and hyphens
    inside it; a number of one or two digits counts only in a message with a word of the fact's name, or at the end of a
    short one. It was asked for when a word of its name stands in a reply of the target, or a reply asks for details at
    large. What was said already, by the target or to it, and what stands in the goal, the scenario or the openings, is
    not a secret.

    Where the words of the replies do not say so, `judge` is asked which of the facts the target asked for, in whatever
    words or language. Without a judge, or where it gives no answer, a fact that is asked for in other words counts as
    not asked for.

    Known failure: a fact that is told in other words than its value is not found.
    """

    name = "disclosure"
    patience: int | None = 2

    def __init__(self, judge: ModelLike | None = None) -> None:
        self._question = None if judge is None else AskedFor(judge)

    def objection(self, message: str, state: TestState) -> str | Awaitable[str | None] | None:
        """Name the facts that are told too early; awaitable where a judge has to be asked for that."""
        told = {
            fact: value
            for fact, value in state.context.facts.items()
            if may_tell_fact(message, fact, value) and not _is_open(fact, value, state) and not _was_asked(fact, state)
        }
        if not told or self._question is None or not any(turn.reply.strip() for turn in state.turns):
            return _objection(told)
        return self._judged(self._question, told, state)

    async def _judged(self, question: AskedFor, told: Mapping[str, str], state: TestState) -> str | None:
        known = state.facts_asked.setdefault(len(state.turns), {})
        if unknown := [fact for fact in told if fact not in known]:
            result = await question.measured(_asking(unknown, state))
            state.spend("judge", result.usage)
            if result.state == "scored":
                known.update(result.extra[DETAILS])
            else:
                state.counts["disclosure_not_judged"] += 1
                note_unjudged("whether the target asked", result)
        return _objection({fact: value for fact, value in told.items() if not known.get(fact, False)})


def _objection(told: Mapping[str, str]) -> str | None:
    if not told:
        return None
    names, values = _listed(told), _listed(told.values())
    are = "is" if len(told) == 1 else "are"
    return f"{names} {are} told only when asked for, and nobody did: leave {values} out of the message"


def _listed(words: Collection[str]) -> str:
    return " and ".join(f"'{word}'" for word in words)


def _asking(facts: Collection[str], state: TestState) -> MultiTurnEvaluationInput:
    """Return what a judge needs to say which facts the target asked for."""
    said = [message for turn in state.turns if not turn.forgotten for message in turn.exchange.messages]
    history = ConversationHistory.model_construct(messages=[*state.opening, *said], conversation_id=None)
    about = {"conversation_history": history, "context": {DETAILS: list(facts)}}
    return metric_input_of(state).model_copy(update=about)


def tells_fact(text: str, fact: str, value: str) -> bool:
    """Say whether a text tells a fact: whether its value is there.

    A short number is in many texts for another reason: "I have 2 questions" tells no number of passengers. It counts
    where a word of the fact's name is in the text, or where a short text ends with it, as "We are 2." does.
    """
    number = read_number(value)
    if number is None or len(value.strip()) >= SHORTEST:
        return _contains(text, value)
    places = [stated.end for stated in numbers_in(text) if stated.value == number]
    named = _mention(fact)
    if not places or (named is not None and named.search(fold(text))):
        return bool(places)
    return len(_WORD.findall(text)) <= _FEW_WORDS and any(not _WORD.search(text, place) for place in places)


def may_tell_fact(text: str, fact: str, value: str) -> bool:
    """Return whether a text tells a fact, or may tell a number of three digits or more in any way to read it."""
    number = read_number(value)
    if tells_fact(text, fact, value):
        return True
    return number is not None and len(value.strip()) >= SHORTEST and may_state(text, number)


def _contains(text: str, value: str) -> bool:
    pattern = _value(fold(value))
    return pattern is not None and pattern.search(fold(text)) is not None


def _is_open(fact: str, value: str, state: TestState) -> bool:
    about = state.context
    said = (text for turn in state.turns for text in (turn.reply, "" if turn.forgotten else turn.message))
    return any(tells_fact(text, fact, value) for text in (about.goal, about.scenario or "", *about.openings, *said))


def _was_asked(fact: str, state: TestState) -> bool:
    replies = [turn.reply for turn in state.turns if not turn.forgotten]
    patterns = [pattern for pattern in (_mention(fact), _ANYTHING) if pattern]
    return any(pattern.search(fold(reply)) for reply in replies for pattern in patterns)


@lru_cache(maxsize=1024)
def _value(value: str) -> regex.Pattern[str] | None:
    if value in _REVEAL_NOTHING:
        return None
    signs = value.replace(" ", "").replace("-", "")
    if len(signs) < SHORTEST:
        return compile_phrases([re.escape(value)])
    return compile_phrases([_GAP.join(map(re.escape, signs))])


@lru_cache(maxsize=1024)
def _mention(fact: str) -> regex.Pattern[str] | None:
    """Return a pattern for the words of a name, in singular and plural, and with hyphens in them."""
    words = _WORD.findall(fold(_CAMEL.sub(" ", fact)))
    telling = [word for word in words if word not in _FILLERS and len(word) > 1] or words
    forms = {form for word in (*telling, "".join(words)) for form in (word, word.removesuffix("s")) if form}
    return compile_phrases(f"{'-?'.join(form)}(?:s|es|'s)?" for form in sorted(forms))
