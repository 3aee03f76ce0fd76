"""`DisclosureCheck`: does the tester tell a fact before the target asks for it?"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Mapping

from vivavoce.comparing.text import fold
from vivavoce.messages import ConversationHistory
from vivavoce.metrics.exact.speakers import compile_phrases
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike
from vivavoce.penelope.asked_for import DETAILS, AskedFor
from vivavoce.penelope.context import TestState
from vivavoce.penelope.facts import may_tell_fact, names_fact, tells_fact
from vivavoce.penelope.judging import metric_input_of, note_unjudged

_ANYTHING = compile_phrases([r"(your|more|further|following|additional) (\w+ )?(details|information|info|data)"])


class DisclosureCheck:
    """Objects to a message that tells facts which the target has not asked for.

    A message states a fact when its value is in it, in any case and encoding, and with any spaces and hyphens
    inside it; a number of one or two digits counts only in a message with a word of the fact's name, or at the end of a
    short one. It was asked for when a word of its name is in a reply of the target, or a reply asks for details in
    general. What was said already, by the target or to it, and what is in the goal, the scenario or the openings, is
    not a secret.

    Where the words of the replies do not say so, `judge` is asked which of the facts the target asked for, in whatever
    words or language. Without a judge, or where it gives no answer, a fact that is asked for in other words counts as
    not asked for.

    Known failure: a fact stated in other words is not found. A number may be spelled out digit by
    digit or in pairs, in English and German.
    """

    name = "disclosure"
    patience: int | None = 2

    def __init__(self, judge: ModelLike | None = None) -> None:
        self._question = None if judge is None else AskedFor(judge)

    def objection(self, message: str, state: TestState) -> str | Awaitable[str | None] | None:
        """Name the facts that the tester tells too early; awaitable where a judge has to be asked for that."""
        early_facts = {
            fact: value
            for fact, value in state.context.facts.items()
            if may_tell_fact(message, fact, value) and not _is_open(fact, value, state) and not _was_asked(fact, state)
        }
        if not early_facts or self._question is None or not any(turn.reply.strip() for turn in state.turns):
            return _objection(early_facts)
        return self._ask_judge(self._question, early_facts, state)

    async def _ask_judge(self, question: AskedFor, early_facts: Mapping[str, str], state: TestState) -> str | None:
        known = state.facts_asked.setdefault(len(state.turns), {})
        if unknown := [fact for fact in early_facts if fact not in known]:
            result = await question.measured(_asking(unknown, state))
            state.spend("judge", result.usage)
            if result.state == "scored":
                known.update(result.extra[DETAILS])
            else:
                state.counts["disclosure_not_judged"] += 1
                note_unjudged("whether the target asked", result)
        return _objection({fact: value for fact, value in early_facts.items() if not known.get(fact, False)})


def _objection(early_facts: Mapping[str, str]) -> str | None:
    if not early_facts:
        return None
    names, values = _quote_words(early_facts), _quote_words(early_facts.values())
    are = "is" if len(early_facts) == 1 else "are"
    return f"{names} {are} told only when asked for, and nobody did: leave {values} out of the message"


def _quote_words(words: Collection[str]) -> str:
    return " and ".join(f"'{word}'" for word in words)


def _asking(facts: Collection[str], state: TestState) -> MultiTurnEvaluationInput:
    """Return what a judge needs to say which facts the target asked for."""
    messages = [message for turn in state.turns if not turn.forgotten for message in turn.exchange.messages]
    history = ConversationHistory.model_construct(messages=[*state.opening, *messages], conversation_id=None)
    about = {"conversation_history": history, "context": {DETAILS: list(facts)}}
    return metric_input_of(state).model_copy(update=about)


def _is_open(fact: str, value: str, state: TestState) -> bool:
    about = state.context
    texts = (text for turn in state.turns for text in (turn.reply, "" if turn.forgotten else turn.message))
    return any(tells_fact(text, fact, value) for text in (about.goal, about.scenario or "", *about.openings, *texts))


def _was_asked(fact: str, state: TestState) -> bool:
    replies = [turn.reply for turn in state.turns if not turn.forgotten]
    assert _ANYTHING is not None
    return any(names_fact(reply, fact) or _ANYTHING.search(fold(reply)) for reply in replies)
