"""Evidence: which claims of a judge need it, and whether what the judge quotes stands in the conversation.

Every judged metric declares its rule, and `JudgedMetric` applies it: a claim without evidence that counts is asked for
once more, and if the verdict still depends on it, that is an error of the judge. Missing, blank, and invented evidence
are treated alike.
"""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from vivavoce.comparing.json_values import read_strict_json
from vivavoce.comparing.quotes import Quote, QuotedText, read_quote
from vivavoce.comparing.text import is_blank
from vivavoce.errors import ModelFault
from vivavoce.messages import AnyMessage, RefusalPart, ToolCall, plain_texts
from vivavoce.metrics.prompts import HERE
from vivavoce.metrics.transcript import Transcript
from vivavoce.records.score import Evidence, Finding, FindingState, shorten, to_number
from vivavoce.safe_text import quoted
from vivavoce.validation import construct

_CALL = re.compile(r"\W*(?:call |result )?#?(c\d+)\W*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Place:
    """A message in which evidence stands: its index, the turn it is in and its role."""

    message: int
    turn: int | None
    role: str


class Checker:
    """Looks evidence up in one conversation.

    A quote has to be in one message, in the arguments of a tool call, or in what was retrieved for an answer;
    `vivavoce.comparing.quotes` says how far it may differ. Where it names a speaker (`assistant: "…"`) or a turn
    (`[turn 2]`), only messages of that role and turn count. It stands where it is word for word, else at the first
    place that differs in no more than that.
    Messages may be added while it is in use: it reads on from where it stopped.
    """

    def __init__(self, messages: Sequence[AnyMessage], written: Transcript) -> None:
        self._written = written
        self._messages = messages
        self._turns: list[int | None] = []
        self._texts: list[tuple[int, str]] = []
        self._folded: dict[int, QuotedText] = {}
        self._known: dict[tuple[str, bool], Evidence] = {}
        self._places: dict[str, tuple[list[int], Iterator[int]]] = {}
        self._calls: list[int] = []
        self._results: dict[int, int] = {}
        self._by_id: dict[str, int] = {}
        self._turn: int | None = None
        self._sessions: dict[int | None, int] = {}
        self._whole: Checker | None = None
        self._last = math.inf

    def up_to(self, last: int) -> Checker:
        """Return a checker of the same conversation that finds nothing in the turn `last` and in later ones."""
        checker = copy.copy(self)  # what has been read is shared
        checker._whole, checker._last, checker._known = self._whole or self, last, {}
        return checker

    def checked(self, given: Iterable[str], *, against: bool = False) -> list[Evidence]:
        """Return pieces of evidence with where they stand, each once and in order; `against` as in `look_up`."""
        by_text: dict[str, Evidence] = {}
        for text in given:
            if not is_blank(text):
                evidence = self.look_up(text, against=against)
                by_text[evidence.text] = evidence
        return list(by_text.values())

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
            return construct(Evidence, {"text": reference, "kind": "call", **found})
        return construct(Evidence, {"text": text, **found})

    def _repeats(self, later: int, earlier: int) -> bool:
        """Say whether the assistant says in a message what it said before, word for word."""
        one, other = self._messages[later], self._messages[earlier]
        return later > earlier and one.role == other.role == "assistant" and one.text == other.text

    def _found(self, text: str) -> Iterator[int]:
        """Yield the indices of the messages in which a piece of evidence stands; each is looked up once."""
        places = self._places.get(text)
        if places is None:
            places = self._places[text] = ([], self._find_anywhere(text, _reference(text)))
        known, rest = places
        for index in known:
            if (self._turns[index] or 0) < self._last:
                yield index
        for index in rest:
            known.append(index)
            if (self._turns[index] or 0) < self._last:
                yield index

    def _find_anywhere(self, text: str, reference: str | None) -> Iterator[int]:
        if reference is None:
            return self._quoted(text)
        if reference not in self._written.calls:
            return iter(())
        call = int(reference[1:])
        return iter([self._calls[call], *([self._results[call]] if call in self._results else [])])

    def _quoted(self, text: str) -> Iterator[int]:
        quotes = read_quote(text)
        if not quotes:
            return
        for number, (index, words) in enumerate(self._texts):
            if text in words and self._quoted_text(number).find(quotes[0]):
                yield index
        everything = [(index, self._quoted_text(number)) for number, (index, _) in enumerate(self._texts)]
        everything += self._shown_calls()
        for quote in quotes:
            for index, quoted_text in everything:
                if self._is_named_by(quote, index) and quoted_text.find(quote):
                    yield index

    def _is_named_by(self, quote: Quote, index: int) -> bool:
        """Return whether a message is by the speaker and in the turn and the session that a quote names."""
        message, turn = self._messages[index], self._turns[index]
        if quote.speaker and quote.speaker != message.role:
            return False
        if quote.turn is not None and (turn is None or quote.turn != to_number(turn)):
            return False
        return quote.session is None or quote.session == self._sessions.get(turn)

    def _read_on(self) -> None:
        if self._whole is not None:
            self._whole._read_on()
            return
        read = len(self._turns)
        if read == len(self._messages):
            return
        self._known.clear()
        self._places.clear()
        new = self._messages[read:]
        for index, message, plain in zip(range(read, len(self._messages)), new, plain_texts(new), strict=True):
            if message.role == "user":
                self._turn = 0 if self._turn is None else self._turn + 1
            self._turns.append(self._turn)
            if plain is not None:
                if plain:
                    self._texts.append((index, plain))
                continue
            if message.session is not None and (mark := message.mark) is not None:
                self._sessions.setdefault(self._turn, mark.number)
            self._texts += [(index, words) for words in _words(message) if words]
            if message.role == "assistant":
                for call in message.tool_calls or ():
                    if call.id:
                        self._by_id[call.id] = len(self._calls)
                    self._calls.append(index)
            elif message.role == "tool" and (number := self._by_id.get(message.tool_call_id or "")) is not None:
                self._results.setdefault(number, index)

    def _quoted_text(self, number: int) -> QuotedText:
        """Return a text that a message holds, or that a tool was given, to look quotes up in."""
        known = self._folded.get(number)
        if known is None:
            known = self._folded[number] = QuotedText(self._texts[number][1])
        return known

    def _shown_calls(self) -> Iterator[tuple[int, QuotedText]]:
        """Yield the calls as a judge sees them, which is not quite how they were written."""
        if self._written.calls:
            lines = (line for part in (self._written.opening, *self._written.turns) for line in part)
            texts = (QuotedText(line) for line in lines if line.startswith("call "))
            yield from zip(self._calls, texts, strict=True)


def _reference(text: str) -> str | None:
    """Return the reference of a call that a text is, None where it is none."""
    named = _CALL.fullmatch(text)
    return named[1].lower() if named else None


def _words(message: AnyMessage) -> list[str]:
    words = [message.text]
    if found := message.retrieval_context:
        words += [one if isinstance(one, str) else json.dumps(one, ensure_ascii=False, default=str) for one in found]
    if isinstance(message.content, list):
        words += [part.refusal for part in message.content if isinstance(part, RefusalPart)]
    if message.role == "assistant":
        words.append(message.refusal or "")
        for call in message.tool_calls or ():
            words += [f"{call.name} {call.function.arguments}", *_calls_as_code(call)]
    return words


def _calls_as_code(call: ToolCall) -> list[str]:
    """Return a call as judges write it: `refund({"order": 17})`, with and without spaces."""
    try:
        arguments = read_strict_json(call.function.arguments or "{}")
    except (ValueError, RecursionError):
        return [f"{call.name}({call.function.arguments})"]
    compact = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    spaced = json.dumps(arguments, ensure_ascii=False)
    return [f"{call.name}({text})" for text in dict.fromkeys((spaced, compact))] + [f"{call.name} {compact}"]


CRITERION, PROHIBITION = "criterion", "prohibition"
"""The kinds of findings: what has to happen, and what must not."""

OBJECTION = "objection"
"""Where the data of a finding says why its evidence, though it is in the conversation, does not show what it claims."""

Source = Literal["act", "conversation", "user", "if_quoted"]
"""Whose words count: those of the assistant and its tools (`act`), those of the user, too (`conversation`), or those of
the `user` alone. With `if_quoted` anybody's words count, and a claim without a quote stands.
"""

_ROLES: Mapping[Source, frozenset[str]] = {
    "act": frozenset(("assistant", "tool")),
    "conversation": frozenset(("assistant", "tool", "user")),
    "user": frozenset(("user",)),
    "if_quoted": frozenset(("assistant", "tool", "user", "system", "developer")),
}
_NAMES: Mapping[Source, str] = {
    "act": "the assistant or a tool",
    "conversation": "the user, the assistant, or a tool",
    "user": "the user",
    "if_quoted": "somebody",
}
_QUOTE_CHARS = 200


@dataclass(frozen=True, slots=True)
class EvidenceRule:
    """Which claims of a judge need evidence: `findings` by kind and state, `verdict` that the whole holds.

    A claim that is not named needs none. `absence` says why: the metric passes because something is not there, so
    there is nothing to quote. Findings whose `data["kind"]` is one of `absence_kinds` stand without a quote, but what
    they quote must be there.
    """

    findings: Mapping[tuple[str, FindingState], Source] = field(default_factory=dict[tuple[str, FindingState], Source])
    verdict: Source | None = None
    absence: str = ""
    absence_kinds: frozenset[str] = frozenset()


ACTS: Mapping[tuple[str, FindingState], Source] = {(CRITERION, "pass"): "act", (PROHIBITION, "fail"): "act"}
"""Criteria that are met, and prohibitions that are broken, are acts."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Something that a judge says, with the evidence that it gives and whose words count; `what` says it in words.

    An `objection` says why the evidence does not show it, wherever it stands.
    """

    what: str
    evidence: Sequence[Evidence]
    source: Source
    objection: str = ""

    def is_supported(self, checker: Checker) -> bool:
        """Return whether a piece of the evidence is in the words that count.

        What was not found when the judge answered does not count: it may stand after the turn that was judged.
        """
        if self.objection:
            return False
        if not self.evidence:
            return self.source == "if_quoted"
        roles = _ROLES[self.source]
        return any(quote.verified and checker.is_from(quote.text, roles) for quote in self.evidence)

    def problem(self, checker: Checker) -> str:
        """Return what is wrong with the evidence, as a request to the judge."""
        if self.objection:
            instead = f"; your evidence is {_quote(self.evidence[0].text)}" if self.evidence else ""
            return f"{self.objection[0].upper()}{self.objection[1:]}: {_quote(self.what)}{instead}."
        if not self.evidence:
            rule = "Copy a quote exactly from one message, or give the reference of a tool call."
            return f"There is no evidence for {_quote(self.what)}. {rule}"
        text = _quote(self.evidence[0].text)
        if not checker.is_from(self.evidence[0].text, _ROLES["if_quoted"]):
            return f"This quote is in no message: {text}. Copy one exactly."
        return f"This quote is not what {_NAMES[self.source]} said or did: {text}. Copy one that is."

    def fault(self, checker: Checker, reasoning: str) -> ModelFault:
        """Return the error of a judge whose verdict depends on this claim."""
        about = repr(shorten(self.what, _QUOTE_CHARS))
        if self.objection:
            message = f"the verdict depends on {about}, and {self.objection}"
        else:
            message = f"the verdict depends on {self._support(checker)}; it is about {about}"
        return ModelFault(message, kind="evidence", evidence=reasoning)

    def _support(self, checker: Checker) -> str:
        if not self.evidence:
            return "no evidence at all"
        first = self.evidence[0].text
        text = repr(shorten(first, _QUOTE_CHARS))
        if not self.evidence[0].verified or not checker.is_from(first, _ROLES["if_quoted"]):
            return f"a quote that is not in the conversation: {text}"
        return f"a quote that is not what {_NAMES[self.source]} said or did: {text}"


def claim_of(finding: Finding, rule: EvidenceRule) -> Claim | None:
    """Return what a finding claims, None where it needs no evidence."""
    source = rule.findings.get((finding.kind, finding.state))
    if source is None:
        return None
    is_absence = finding.data.get("kind") in rule.absence_kinds
    objection = str(finding.data.get(OBJECTION, ""))
    return Claim(finding.what, finding.evidence, "if_quoted" if is_absence else source, objection)


def unsupported_findings(findings: Iterable[Finding], rule: EvidenceRule, checker: Checker) -> list[Finding]:
    """Return the findings whose claims have no evidence that counts."""
    unsupported: list[Finding] = []
    for finding in findings:
        claim = claim_of(finding, rule)
        if claim is not None and not claim.is_supported(checker):
            unsupported.append(finding)
    return unsupported


def repair_request(claims: Sequence[Claim], checker: Checker) -> str:
    """Return the words that ask a judge for a better answer, which say what is wrong with its evidence."""
    problems = "\n".join(f"- {claim.problem(checker)}" for claim in claims)
    return _repair_prompt().replace("{{ problems }}", problems)


@cache
def _repair_prompt() -> str:
    return (HERE / "evidence_repair.txt").read_text(encoding="utf-8").strip()


def doubt_request(doubts: Sequence[str]) -> str:
    """Return the words that ask a judge to check an answer that code doubts; the same answer may stand."""
    return _doubt_prompt().replace("{{ doubts }}", "\n".join(f"- {doubt}" for doubt in doubts))


@cache
def _doubt_prompt() -> str:
    return (HERE / "evidence_doubt.txt").read_text(encoding="utf-8").strip()


def _quote(text: str) -> str:
    return quoted(shorten(text, _QUOTE_CHARS))
