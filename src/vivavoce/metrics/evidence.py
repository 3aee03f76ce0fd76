"""Checking evidence: does what a judge quotes stand in the conversation, and where?"""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from vivavoce.comparing.text import fold, is_blank, is_boundary
from vivavoce.messages import AnyMessage, RefusalPart
from vivavoce.metrics.result import Evidence
from vivavoce.metrics.transcript import Transcript
from vivavoce.unchecked import unchecked

SHORTEST_QUOTE = 1
"""Letters or digits below which a quote would be found anywhere."""

WHOLE_WORDS = 6
"""Letters or digits below which a quote has to stand as whole words."""

_CALL = re.compile(r"\W*(?:call |result )?#?(c\d+)\W*", re.IGNORECASE)
_MARKS = " \"'"
_LEFT_OUT = re.compile(r"\[(?:\.\.\.|…)\]|\((?:\.\.\.|…)\)|\.\.\.|…")


@dataclass(frozen=True, slots=True)
class Place:
    """A message in which evidence stands: its index, the turn it is in and its role."""

    message: int
    turn: int | None
    role: str


class Checker:
    """Looks evidence up in one conversation.

    A quote may differ in case and encoding, may be escaped as in the transcript, may leave words out where it says
    `...`, and may begin or end inside a word unless it is short; beyond that it has to stand in one message, in what a
    tool was given, or in what was retrieved for an answer. It stands where it is word for word, else at the first place
    that differs in no more than that. Messages may be added while it is in use: it reads on from where it stopped.
    """

    def __init__(self, messages: Sequence[AnyMessage], written: Transcript) -> None:
        self._written = written
        self._messages = messages
        self._turns: list[int | None] = []
        self._texts: list[tuple[int, str]] = []
        self._folded: list[str] = []
        self._known: dict[tuple[str, bool], Evidence] = {}
        self._calls: list[int] = []
        self._results: dict[int, int] = {}
        self._by_id: dict[str, int] = {}
        self._turn: int | None = None
        self._whole: Checker | None = None
        self._last = math.inf

    def up_to(self, last: int) -> Checker:
        """Return a checker of the same conversation that finds nothing in the turn `last` and in later ones."""
        checker = copy.copy(self)  # what has been read is shared
        checker._whole, checker._last, checker._known = self._whole or self, last, {}
        return checker

    def checked(self, given: Iterable[str], *, against: bool = False) -> list[Evidence]:
        """Return pieces of evidence with where they stand, each once and in order; `against` as in `look_up`."""
        found = [self.look_up(text, against=against) for text in given if not is_blank(text)]
        return list({one.text: one for one in found}.values())

    def look_up(self, text: str, *, against: bool = False) -> Evidence:
        """Return a piece of evidence with where it stands.

        Where the assistant says the same thing again word for word, what counts `against` it is the repetition: the
        evidence stands in the second of these messages instead of the first.
        """
        self._read_on()
        known = self._known.get((text, against)) if self._whole is None else None
        if known is None:
            known = self._known[text, against] = self._looked_up(text, against)
        return known

    def is_from(self, text: str, roles: frozenset[str]) -> bool:
        """Return whether a piece of evidence is in a message of one of these roles."""
        self._read_on()
        return any(self._messages[index].role in roles for index in self._found(text))

    def places(self, text: str) -> list[Place]:
        """Return the messages in which a piece of evidence stands, those first in which it stands word for word.

        The reference of a call stands in the message that makes it and in its result.
        """
        self._read_on()
        found = dict.fromkeys(self._found(text))
        return [Place(index, self._turns[index], self._messages[index].role) for index in found]

    def _looked_up(self, text: str, against: bool) -> Evidence:
        places = self._found(text)
        index = next(places, None)
        if against and index is not None:
            index = next((later for later in places if self._repeats(later, index)), index)
        found = {} if index is None else {"turn": self._turns[index], "verified": True}
        if (reference := _reference(text)) is not None:
            return unchecked(Evidence, {"text": reference, "kind": "call", **found})
        return unchecked(Evidence, {"text": text, **found})

    def _repeats(self, later: int, earlier: int) -> bool:
        """Say whether the assistant says in a message what it said before, word for word."""
        one, other = self._messages[later], self._messages[earlier]
        return later > earlier and one.role == other.role == "assistant" and one.text == other.text

    def _found(self, text: str) -> Iterator[int]:
        """Yield the indices of the messages in which a piece of evidence stands."""
        return (index for index in self._found_anywhere(text) if (self._turns[index] or 0) < self._last)

    def _found_anywhere(self, text: str) -> Iterator[int]:
        reference = _reference(text)
        if reference is None:
            yield from self._quoted(text)
        elif reference in self._written.calls:
            call = int(reference[1:])
            yield self._calls[call]
            if call in self._results:
                yield self._results[call]

    def _quoted(self, text: str) -> Iterator[int]:
        if _is_long_enough(text):
            yield from (index for index, words in self._texts if text in words and _end(text, words, 0) >= 0)
        for quote in (text, _unescaped(text)) if "\\" in text else (text,):
            pieces = _LEFT_OUT.split(quote) if "..." in quote or "…" in quote else (quote,)
            parts = [part for piece in pieces if (part := fold(piece).strip(_MARKS))]
            if _is_long_enough("".join(parts)):
                yield from (index for index, said in self._folded_texts() if _in_order(parts, said))
                yield from (index for index, said in self._shown_calls() if _in_order(parts, said))

    def _read_on(self) -> None:
        if self._whole is not None:
            self._whole._read_on()
            return
        read = len(self._turns)
        if read == len(self._messages):
            return
        self._known.clear()
        for index, message in enumerate(self._messages[read:], read):
            if message.role == "user":
                self._turn = 0 if self._turn is None else self._turn + 1
            self._turns.append(self._turn)
            self._texts += [(index, words) for words in _words(message) if words]
            if message.role == "assistant":
                for call in message.tool_calls or ():
                    if call.id:
                        self._by_id[call.id] = len(self._calls)
                    self._calls.append(index)
            elif message.role == "tool" and (number := self._by_id.get(message.tool_call_id or "")) is not None:
                self._results.setdefault(number, index)

    def _folded_texts(self) -> Iterator[tuple[int, str]]:
        """Yield the folded texts, each with the index of its message."""
        self._folded += [fold(words) for _, words in self._texts[len(self._folded) :]]
        yield from ((index, folded) for (index, _), folded in zip(self._texts, self._folded, strict=True))

    def _shown_calls(self) -> Iterator[tuple[int, str]]:
        """Yield the calls as a judge sees them, which is not quite how they were written."""
        if self._written.calls:
            lines = (line for part in (self._written.opening, *self._written.turns) for line in part)
            yield from zip(self._calls, (fold(line) for line in lines if line.startswith("call ")), strict=True)


def _reference(text: str) -> str | None:
    """Return the reference of a call that a text is, None where it is none."""
    named = _CALL.fullmatch(text)
    return named[1].lower() if named else None


def _is_long_enough(quote: str) -> bool:
    return len(list(islice(filter(str.isalnum, quote), SHORTEST_QUOTE))) == SHORTEST_QUOTE


def _unescaped(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text


def _words(message: AnyMessage) -> list[str]:
    if (text := message.plain) is not None:
        return [text]
    words = [message.text]
    if found := message.retrieval_context:
        words += [one if isinstance(one, str) else json.dumps(one, ensure_ascii=False, default=str) for one in found]
    if isinstance(message.content, list):
        words += [part.refusal for part in message.content if isinstance(part, RefusalPart)]
    if message.role == "assistant":
        words.append(message.refusal or "")
        words += [f"{call.name} {call.function.arguments}" for call in message.tool_calls or ()]
    return words


def _in_order(parts: Sequence[str], said: str) -> bool:
    start = 0
    for part in parts:
        start = _end(part, said, start)
        if start < 0:
            return False
    return True


def _end(part: str, said: str, start: int) -> int:
    """Return where a part ends in what was said, -1 where it does not stand there.

    A part may begin or end inside a word, but for a short one, which would be found in many words by chance. It never
    does so inside a number.
    """
    short = len(list(islice(filter(str.isalnum, part), WHOLE_WORDS))) < WHOLE_WORDS
    while (found := said.find(part, start)) >= 0:
        end = found + len(part)
        if not short and not _in_number(said, found) and not _in_number(said, end):
            return end
        if is_boundary(said, found) and is_boundary(said, end):
            return end
        start = found + 1
    return -1


def _in_number(said: str, place: int) -> bool:
    """Say whether there are digits on both sides of a place."""
    return 0 < place < len(said) and said[place - 1].isdecimal() and said[place].isdecimal()
