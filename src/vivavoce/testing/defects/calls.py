"""Defects of conversations with tools: a wrong argument, a call that was not made, a claim that is not true.

What comes after a defect is what was recorded, or is cut away: nobody answers to the mistake.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from random import Random
from typing import NamedTuple

from vivavoce.comparing.numbers import numbers_in
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage, ToolCall
from vivavoce.metrics.ledger import may_change
from vivavoce.records.trajectory import outcome_of
from vivavoce.testing.defects.other_values import amounts_in, in_place_of, other, swap_in
from vivavoce.testing.defects.planted import Operator, Planted, build_planted, by_user, calls_of, last, mistake
from vivavoce.validation import copy_with

ERRORS = (
    "Error: the change could not be saved",
    "Error: internal error, nothing was changed",
    "Error: the record is locked by another process; the request was not carried out",
)
DEFLECTIONS = (
    "Thank you for your patience! By the way, you can choose in your profile how often we write to you, and in which "
    "language. Is there anything else I can help you with?",
    "Great to hear from you! Did you know that our help pages now have short videos? Many people find them useful. "
    "What else can I do for you?",
    "Thanks for letting me know. We are always glad about feedback, so feel free to take our two-minute survey. Is "
    "there anything else?",
)
FAREWELLS = (
    "Actually, never mind. I don't have time for this now. Bye.",
    "You know what, I'll leave it. I have to go.",
    "Hmm, I've changed my mind about all of this, forget it. Goodbye.",
)
_AGREES = re.compile(r"\b(yes|yeah|sure|ok|okay|confirm|proceed|go ahead|please do|sounds good)\b", re.IGNORECASE)
_ASKS = re.compile(r"\?|\b(confirm|proceed)\b", re.IGNORECASE)


def wrong_argument(messages: list[AnyMessage], random: Random) -> Planted | None:
    """Change one value in the last call that changes something, and in its result; the claim stays as it was."""
    change = _last_change(messages)
    swap = change and swap_in(change.call.args, random)
    if not change or not swap:
        return None
    arguments = json.dumps(swap.within(change.call.args), ensure_ascii=False)
    call = copy_with(change.call, {"function": copy_with(change.call.function, {"arguments": arguments})})
    result = messages[change.result]
    messages[change.calling] = copy_with(messages[change.calling], {"tool_calls": [call]})
    messages[change.result] = copy_with(result, {"content": swap.within_text(result.text)})
    return build_planted(messages, change.calling, "assistant", "wrong_argument")


def dropped_call(messages: list[AnyMessage], random: Random) -> Planted | None:
    """Leave out the last call that changes something, with its result; the assistant still says that it is done."""
    del random
    change = _last_change(messages)
    if not change:
        return None
    words = messages[change.calling].text
    messages[change.calling : change.claim] = [AIMessage(content=words)] if words else []
    return build_planted(messages, change.calling + bool(words), "assistant", "false_statement")


def failed_result(messages: list[AnyMessage], random: Random) -> Planted | None:
    """Let the last call that changes something fail; the assistant still says that it worked.

    The root is the tool's. What the assistant says next is the point of no return.
    """
    change = _last_change(messages)
    if not change:
        return None
    messages[change.result] = copy_with(
        messages[change.result], {"content": random.choice(ERRORS), "outcome": "failed"}
    )
    claim = mistake(messages, change.claim, "assistant", "false_statement")
    return Planted(tuple(messages), mistake(messages, change.result, "tool", "tool_error"), claim)


def false_amount(messages: list[AnyMessage], random: Random) -> Planted | None:
    """Change an amount of money that the assistant has from a result, where it is first said and in all later words.

    It is the last that the user says yes to, for what another one was about may have come to nothing.
    """
    known, seen_amounts = set[Decimal](), set[str]()
    first, right = 0, ""
    for index, message in enumerate(messages):
        if message.role == "tool":
            known |= _numbers(message.text)
            continue
        new = [amount for amount in amounts_in(message.text) if amount not in seen_amounts]
        seen_amounts.update(new)
        agreed = message.role == "assistant" and _agrees(messages[index + 1 : index + 2])
        if agreed and (grounded := [amount for amount in new if _numbers(amount) <= known]):
            first, right = index, grounded[-1]
    if not right:
        return None
    wrong = str(other(right, random))
    for index, message in enumerate(messages[first:], first):
        if message.role in ("user", "assistant") and message.text:
            messages[index] = copy_with(message, {"content": in_place_of(right, wrong, message.text)})
    return build_planted(messages, first, "assistant", "false_statement")


def _numbers(text: str) -> set[Decimal]:
    return {number.value for number in numbers_in(text)}


def ignored_request(messages: list[AnyMessage], random: Random) -> Planted | None:
    """Answer the last request for which a tool was called with something else; the user says no more than goodbye."""
    change = _last_change(messages)
    calling = change.calling if change else last(messages, lambda message: bool(calls_of(message)))
    asking = last(messages[: calling + 1], by_user)
    if asking < 0:
        return None
    goodbye = messages[-1:] if by_user(messages[-1]) and last(messages, by_user) > asking else []
    reply = AIMessage(content=random.choice(DEFLECTIONS))
    return build_planted([*messages[: asking + 1], reply, *goodbye], asking + 1, "assistant", "ignored_request")


def unconfirmed(messages: list[AnyMessage], random: Random) -> Planted | None:
    """Leave out the question before the last change, and the user's yes to it; the change is made all the same.

    It is a mistake where the assistant's rules demand that yes.
    """
    del random
    confirmation = _confirmation(messages)
    if not confirmation or _agrees([messages[last(messages[: confirmation - 1], by_user)]]):
        return None
    del messages[confirmation - 1 : confirmation + 1]
    return build_planted(messages, confirmation - 1, "assistant", "broken_rule")


def user_gives_up(messages: list[AnyMessage], random: Random) -> Planted | None:
    """Let the user leave instead of saying yes to the last change; the conversation ends there."""
    confirmation = _confirmation(messages)
    if not confirmation:
        return None
    return build_planted(
        [*messages[:confirmation], HumanMessage(content=random.choice(FAREWELLS))], confirmation, "user", "bad_input"
    )


CALL_DEFECTS: Mapping[str, Operator] = {
    operator.__name__: operator
    for operator in (
        wrong_argument,
        dropped_call,
        failed_result,
        false_amount,
        ignored_request,
        unconfirmed,
        user_gives_up,
    )
}
"""Operators for conversations with tools, by name."""


class _Change(NamedTuple):
    """A call that changed something: the messages that make it, answer it, and say that it is done."""

    call: ToolCall
    calling: int
    result: int
    claim: int


def _last_change(messages: Sequence[AnyMessage]) -> _Change | None:
    """Return the last call that changes something, if it is alone in its message, works, and is reported at once."""
    calling = last(messages, lambda message: any(map(_changes, calls_of(message))))
    calls = calls_of(messages[calling]) if 0 <= calling < len(messages) - 2 else ()
    if len(calls) != 1:
        return None
    result, claim = messages[calling + 1], messages[calling + 2]
    if (
        result.role != "tool"
        or outcome_of(result) != "succeeded"
        or claim.role != "assistant"
        or not claim.text
        or calls_of(claim)
    ):
        return None
    return _Change(calls[0], calling, calling + 1, calling + 2)


def _confirmation(messages: Sequence[AnyMessage]) -> int | None:
    """Return the message in which the user says yes to the last changes, None where nobody asked or others follow."""
    change = _last_change(messages)
    consent = last(messages[: change.calling], by_user) if change else 0
    if consent < 2 or not _agrees([messages[consent]]) or not any(map(_changes, calls_of(messages[consent + 1]))):
        return None
    asking = messages[consent - 1]
    asks = asking.role == "assistant" and not calls_of(asking) and _ASKS.search(asking.text)
    return consent if asks else None


def _agrees(messages: Sequence[AnyMessage]) -> bool:
    return any(by_user(message) and _AGREES.search(message.text) for message in messages)


def _changes(call: ToolCall) -> bool:
    return may_change(call.name)
