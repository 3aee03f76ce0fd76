"""Checking evidence: does what a judge quotes stand in the conversation, and where?"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from vivavoce.conversation import split_turns
from vivavoce.messages import AIMessage, AnyMessage
from vivavoce.metrics.result import Evidence
from vivavoce.metrics.transcript import Transcript

SHORTEST_QUOTE = 2
"""Letters or digits below which a quote would be found anywhere."""

_CALL = re.compile(r"\W*(?:call |result )?#?(c\d+)\W*", re.IGNORECASE)
_MARKS = " \"'"
_SAME = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "–": "-", "—": "-"})


class Checker:
    """Looks evidence up in one conversation.

    A quote may differ in capitals, in white space, in the kind of quotation marks and dashes, and may leave words out
    where it says `...`; beyond that it has to stand, from word to word, in one message, in what a tool was given, or in
    what was retrieved for an answer.
    """

    def __init__(self, messages: Sequence[AnyMessage], written: Transcript) -> None:
        self._calls = written.calls
        self._messages = messages
        self._texts: list[tuple[int | None, str]] | None = None

    def checked(self, given: Iterable[str]) -> list[Evidence]:
        """Return pieces of evidence with where they stand, each once and in order."""
        return [self.look_up(text) for text in dict.fromkeys(given) if text.strip()]

    def look_up(self, text: str) -> Evidence:
        """Return a piece of evidence with where it stands."""
        if named := _CALL.fullmatch(text):
            reference = named[1].lower()
            if reference in self._calls:
                return Evidence(text=reference, kind="call", turn=self._calls[reference], verified=True)
            return Evidence(text=reference, kind="call")
        parts = [part for piece in text.replace("…", "...").split("...") if (part := plain(piece).strip(_MARKS))]
        if sum(map(str.isalnum, "".join(parts))) < SHORTEST_QUOTE:
            return Evidence(text=text)
        for turn, said in self._said():
            if _in_order(parts, said):
                return Evidence(text=text, turn=turn, verified=True)
        return Evidence(text=text)

    def _said(self) -> list[tuple[int | None, str]]:
        if self._texts is None:
            opening, turns = split_turns(self._messages)
            self._texts = [(None, plain(words)) for message in opening for words in _words(message)]
            self._texts += [
                (i, plain(words)) for i, turn in enumerate(turns) for message in turn for words in _words(message)
            ]
        return self._texts


def plain(text: str) -> str:
    """Return a text without what a faithful quote may change."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).translate(_SAME)
    return " ".join(text.split()).casefold()


def _words(message: AnyMessage) -> Iterator[str]:
    if message.text:
        yield message.text
    for found in message.retrieval_context or ():
        yield found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, default=str)
    if isinstance(message, AIMessage):
        if message.refusal:
            yield message.refusal
        for call in message.tool_calls or ():
            yield f"{call.name} {call.function.arguments}"


def _in_order(parts: Sequence[str], said: str) -> bool:
    start = 0
    for part in parts:
        start = _end(part, said, start)
        if start < 0:
            return False
    return True


def _end(part: str, said: str, start: int) -> int:
    """Return where a part ends in what was said, -1 where it does not stand there as whole words."""
    while (found := said.find(part, start)) >= 0:
        end = found + len(part)
        cuts_before = found > 0 and said[found - 1].isalnum() and part[0].isalnum()
        cuts_after = end < len(said) and said[end].isalnum() and part[-1].isalnum()
        if not cuts_before and not cuts_after:
            return end
        start = found + 1
    return -1
