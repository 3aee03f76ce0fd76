"""Claims of a tester's review that code compares with the record, each with why it does not count."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from vivavoce.comparing.text import contains_words, fold
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage
from vivavoce.records.score import Evidence

_DETAIL = re.compile(r"[^\W_]+(?:[-./:,@'’][^\W_]+)*")
_SENTENCE_END = re.compile(r"[.!?:…]['\")\]]*\s*$")
_SENTENCES = re.compile(r"(?<=[.!?…])\s+|\n")
_DONE = re.compile(
    r"""
      \b(?:all\ )?(?:done|finished|completed|sorted|settled)\b
    | \ball\ set\b | \bgood\ to\ go\b | \btaken\ care\ of\b
    | \b(?:\w+)\ now\ (?:goes|ships|leaves)\b
    | \b(?:is|are|was|were|been|got)\ (?:now\ |already\ |all\ |just\ )?\w*(?:ed|sent|paid|set|put|made)\b
    | \b(?:i|we)(?:\ have|['’]ve)?\ (?:now\ |already\ |just\ )?
      (?!need|want|lik|tri|ask|look|check)\w*(?:ed|sent|paid|set|put|made)\b
    | \balles\ (?:bereit|geregelt)\b
    | \b(?:erledigt|fertig|abgeschlossen|geschafft|gemacht)\b
    | \b(?:ist|sind|wurden?|habe|haben)\b.*\bge\w+(?:t|en)\b
    | \b(?:ist|sind|wurden?|habe|haben)\b.*\b(?:ver|be|ent|er|zer|um|ab|an|ein|storn|aktualis)\w+(?:t|en)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_NOT_DONE = re.compile(
    r"\b(?:not|no|never|cannot|unable|until|once|if|when|nicht|kein\w*|nie|wenn|sobald|noch)\b|n['’]t\b|\?",
    re.IGNORECASE,
)


def says_done(reply: str) -> bool:
    """Say whether a reply states, in English or German, that something was done."""
    return any(_DONE.search(part) and not _NOT_DONE.search(part) for part in _SENTENCES.split(reply))


def known_details(quotes: Sequence[Evidence], brief: Sequence[str], messages: Sequence[AnyMessage]) -> bool:
    """Say whether every number and name in quotes of the user is in the brief, or was told by the assistant before.

    It is false where the quotes have neither: then there is nothing to compare.
    """
    verified = [quote for quote in quotes if quote.verified]
    details = [(detail, quote) for quote in verified for detail in _details(quote.text)]
    return bool(details) and all(
        _is_in(detail, (*brief, *_assistant_before(messages, quote.turn))) for detail, quote in details
    )


def has_two_sides(quotes: Sequence[Evidence], shown: Sequence[str]) -> bool:
    """Say whether a contradiction has two different quotes, each from `shown`: the conversation or the brief."""
    texts = {fold(quote.text) for quote in quotes if any(contains_words(text, quote.text) for text in shown)}
    return len(texts) > 1


def looked_up_otherwise(facts: Iterable[str], messages: Sequence[AnyMessage]) -> str | None:
    """Return why it is not known that the assistant's systems lack what the user named, None where it may be.

    Of the `facts`, those count that the user told. Without a call of the assistant there is nothing to compare.
    """
    said = [message.text for message in messages if isinstance(message, HumanMessage)]
    told = [fact for fact in facts if any(contains_words(text, fact) for text in said)]
    calls = [
        call.function.arguments
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls or ()
    ]
    if not told or not calls:
        return None
    missing = [fact for fact in told if not any(contains_words(call, fact) for call in calls)]
    if len(missing) == len(told):
        return f"no call of the assistant looked for {told[0]!r}"
    altered = [fact for fact in missing if any(_bare(fact) in _bare(call) for call in calls if _bare(fact))]
    return f"the assistant looked for something other than {altered[0]!r}" if altered else None


def _details(text: str) -> list[str]:
    """Return the numbers and names in a text: words with a digit, and words with a capital inside a sentence."""
    details: list[str] = []
    for word in _DETAIL.finditer(text):
        begins = word.start() == 0 or _SENTENCE_END.search(text[: word.start()]) is not None
        is_name = word[0][:1].isupper() and not begins and word[0] != "I" and not word[0].startswith(("I'", "I’"))
        if is_name or any(letter.isdigit() for letter in word[0]):
            details.append(word[0])
    return details


def _is_in(detail: str, texts: Sequence[str]) -> bool:
    return any(contains_words(text, detail) for text in texts)


def _assistant_before(messages: Sequence[AnyMessage], turn: int | None) -> list[str]:
    """Return what the assistant said before the user's message of a turn, counted from 0."""
    texts: list[str] = []
    users = -1
    for message in messages:
        users += isinstance(message, HumanMessage)
        if turn is not None and users >= turn and isinstance(message, HumanMessage):
            break
        if isinstance(message, AIMessage):
            texts.append(message.text)
    return texts


def _bare(text: str) -> str:
    return "".join(letter for letter in fold(text) if letter.isalnum())


def fact_values(facts: object) -> list[str]:
    """Return the values of the facts in a brief."""
    return [str(value) for value in cast("Mapping[str, object]", facts).values()] if isinstance(facts, Mapping) else []
