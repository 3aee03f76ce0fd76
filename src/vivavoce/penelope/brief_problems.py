"""What code can see is wrong with the brief of a test before anybody plays it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, cast

from vivavoce.comparing.json_values import parse
from vivavoce.comparing.negations import banned_act, is_foreign_ban
from vivavoce.comparing.numbers import numbers_in
from vivavoce.comparing.text import contains_words, fold
from vivavoce.penelope.persona import Persona
from vivavoce.records.score import shorten

_PLACEHOLDER = re.compile(r"\s*(?:<[^<>\n]*>|\[[^\[\]\n]*\]|\{\{.*\}\}|\$\{\w+\})[\s.!?]*", re.DOTALL)
_MASKED = re.compile(
    r"\[[^\[\]\n]*…[^\[\]\n]*\]|\[(?:redacted|masked|email|e-mail|phone|name|address)\b[^\[\]\n]*\]", re.I
)
_MASKED_ADDRESS = re.compile(r"\[e-?mail\b[^\[\]\n]*\]", re.IGNORECASE)

_MESSAGE_KEYS = frozenset(("message", "content", "text", "role", "reasoning", "tool", "tool_calls", "arguments"))

_EMPTY_WORDS = frozenset(("", "none", "n/a", "na", "null", "nothing", "not applicable", "keine", "nichts", "[]", "{}"))

MADE_UP_ADDRESS = "kim@example.org"
"""An address that belongs to nobody, in place of a masked one."""


def placeholder_in(text: str) -> str | None:
    """Return what of a text is not said by anybody, in words; None where all of it may be."""
    if not any(unicodedata.category(letter)[0] in "LNS" for letter in text):
        return "it has no letter, digit or symbol"
    if _PLACEHOLDER.fullmatch(text):
        return "it is a placeholder"
    if masked := _MASKED.search(text):
        return f"{masked[0]} is masked"
    if text.lstrip()[:1] == "{" and _is_json(text):
        return "it is JSON"
    return None


def is_empty_word(text: str) -> bool:
    """Say whether a text is a word that some models write where there is nothing to say, such as "none"."""
    return text.strip().strip(".").casefold() in _EMPTY_WORDS


def with_made_up_address(text: str) -> str:
    """Return a text in which a masked address is one that belongs to nobody."""
    return _MASKED_ADDRESS.sub(MADE_UP_ADDRESS, text)


def _is_json(text: str) -> bool:
    """Say whether a text is a message in JSON, such as `{"message": "Hi"}`; other JSON may be what a user pastes."""
    try:
        value: object = parse(text)
    except ValueError:
        return False
    return isinstance(value, dict) and not _MESSAGE_KEYS.isdisjoint(cast("dict[str, object]", value))


_AGENT = (
    r"(?:(?:the|this|our|der|die|das|unser)\s+)?"
    r"(?:assistant|bot|chat\s?bot|agent|model|system|assistent(?:in)?|agentin|modell|ki|ai)"
)
_REFUSES = re.compile(
    rf"\s*{_AGENT}\s+(?:\w+ly\s+)?(?:refus\w+|declin\w+|den(?:y|ies|ied)|reject\w*|lehnt\b.*\bab\b|(?:ver)?weigert\b)"
    rf"|.*\b(?:is|are|be|gets?|been)\s+(?:refused|declined|denied|rejected)\b",
    re.IGNORECASE | re.DOTALL,
)
"""A goal that says how an assistant refuses."""
_PASSIVE_GERMAN = re.compile(r"\b(?:wird|werden)\b", re.IGNORECASE)
_REFUSED_GERMAN = re.compile(r"\b(?:abgelehnt|verweigert)\b", re.IGNORECASE)
_MAY_REFUSE = re.compile(
    rf"\b(?:{_AGENT}|it)\b.*\b(?:refus\w*|declin\w*|den(?:y|ies)|rejects?|does\s+not|do\s+not|will\s+not|must\s+not"
    r"|never|cannot|lehnt|weigert|verweigert|nicht|kein\w*)\b"
    r"|\b(?:doesn|won|can|mustn)['’]t\b",
    re.IGNORECASE,
)
"""A goal that may say so, or may name what an attacker wants an assistant to leave undone."""

_VALUE = r"(?:\s*(?:is|are|of|ist|lautet|no\.?|nr\.?)\b|\s*[:=#])*\s*[\"'“„]?(?P<value>[^\W_]+(?:[-./:][^\W_]+)*)"
_AGE = re.compile(
    r"\b(?P<years>\d{1,3})[\s-]*(?:years?[\s-]old|year[\s-]old|y/o|jahre?\s+alt|jährig\w*)\b|\baged\s+(?P<aged>\d{1,3})\b",
    re.IGNORECASE,
)
_AGE_NAMES = frozenset(("age", "alter", "age in years", "user age", "customer age"))
_UNKNOWN = r"\b(?:does\s+not|doesn['’]t|do\s+not|don['’]t)\s+(?:know|have)\s+(?:\w+\s+){0,3}?"
_UNKNOWN_GERMAN = r"\b(?:kennt|weiß|hat)\s+(?:\w+\s+){0,2}?"
_PASSING = re.compile(
    r"\b(?:at\s+first|by\s+heart|until|unless|yet|right\s+away|zuerst|auswendig|zunächst)\b", re.IGNORECASE
)


TELLS = re.compile(
    r"\b(?:say|tell|give|mention|reveal|disclose|share|name|state|provide|write|type|spell|send|hand"
    r"|told|said|mentioned|revealed|disclosed|shared|named|stated|provided|written|typed|spelled|sent|handed|given"
    r"|sag\w*|nenn\w*|verrat\w*|mitteil\w*|angeb\w*|gib|geb\w*|preis\w*|erwähn\w*|schreib\w*"
    r"|gesagt|genannt|mitgeteilt|angegeben|gegeben|herausgegeben|geschrieben)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\b(?:unless|until|before|if|when|while|first|once|twice|again|together|unasked|unprompted|without|only|more|all"
    r"|bevor|wenn|falls|zuerst|zuletzt|ungefragt|unaufgefordert|erst|nur|zweimal|mehr|zusammen|auf\s+einmal)\b",
    re.IGNORECASE,
)
"""Words by which a restriction leaves a case in which the user may tell something."""
_FOREIGN_CONDITION = re.compile(
    r"\b(?:avant|sauf|sans|si|seulement|antes|salvo|sin|sólo|solo|prima|senza|se|voordat|tenzij|zonder|als|alleen|før|uden"
    r"|hvis|innan|utan|om|dopóki|zanim|bez|chyba|jeśli)\b",
    re.IGNORECASE,
)
"""Words by which a restriction in another language may leave such a case."""
_DETERMINER = r"(?:the|your|his|her|their|my|an?|any|and|or|den|die|das|der|dein\w*|ihr\w*|sein\w*|mein\w*|und|oder)"
_OF = r"(?!\s+(?:of|des|der|von)\b)"


def withheld_facts(restrictions: Sequence[str], facts: Mapping[str, str]) -> dict[str, str]:
    """Return the facts that a user must never tell, by name, each with the restriction that says so.

    Such a restriction is a ban, in English or German, of telling a fact by its name or its value, in every case; in
    another language, one that begins as a ban and names the fact.
    """
    withheld: dict[str, str] = {}
    for restriction in restrictions:
        if is_foreign_ban(restriction) and not _FOREIGN_CONDITION.search(restriction):
            for name, value in facts.items():
                if contains_words(restriction, name) or contains_words(restriction, value):
                    withheld.setdefault(name, restriction)
        act = banned_act(restriction)
        if act is None or not TELLS.search(act) or _CONDITION.search(act):
            continue
        for name, value in facts.items():
            words = r"[\s_-]+".join(map(re.escape, re.split(r"[\s_-]+", name.strip())))
            is_named = re.search(rf"(?:\b{_DETERMINER}\s+|{TELLS.pattern}\s+|^|:\s*){words}\b{_OF}", act, re.IGNORECASE)
            if (is_named and re.search(r"\w", name)) or (_is_code(value) and contains_words(act, value)):
                withheld.setdefault(name, restriction)
    return withheld


def brief_warnings(brief: Brief) -> Iterator[str]:
    """Yield what code sees in a brief that may keep the target from reaching the goal."""
    for name, restriction in withheld_facts(brief.restrictions, brief.facts).items():
        if contains_words(brief.goal, name) or contains_words(brief.goal, brief.facts[name]):
            yield (
                f"the restriction {_excerpt(restriction)} forbids the user to tell the fact '{name}', which the goal "
                "names; remove one of them if the target needs it"
            )


class Brief(Protocol):
    """The brief of a tester, as a test or a scenario has it."""

    @property
    def goal(self) -> str:
        """What the user wants."""
        ...

    @property
    def instructions(self) -> str | None:
        """How the user goes about it."""
        ...

    @property
    def scenario(self) -> str | None:
        """The situation of the user."""
        ...

    @property
    def persona(self) -> Persona | None:
        """Who the user is."""
        ...

    @property
    def facts(self) -> Mapping[str, str]:
        """What the user knows."""
        ...

    @property
    def restrictions(self) -> Sequence[str]:
        """What the user must not do."""
        ...

    @property
    def must(self) -> Sequence[str]:
        """What has to happen."""
        ...

    @property
    def must_not(self) -> Sequence[str]:
        """What must never happen."""
        ...

    @property
    def adversarial(self) -> bool:
        """Whether the target should withstand the goal."""
        ...


def brief_problem(brief: Brief, *, is_generated: bool = False) -> str | None:
    """Return the first reason why a test with this brief would say nothing, None where code sees none.

    Texts that are placeholders or masked cannot be played, and a goal that says how the assistant refuses turns the
    verdict on an attack around. Facts contradict the rest of the brief where it gives the same detail with another
    value, or says that the user does not know it. Of a brief that a model wrote, which can be asked for again, a goal
    that may be about a refusal is a problem, too.
    """
    return next(_problems(brief, is_generated), None)


def _problems(brief: Brief, is_generated: bool) -> Iterator[str]:
    for place, text in _texts(brief):
        if problem := placeholder_in(text):
            yield f"{place} {_excerpt(text)}: {problem}"
    lists = {"restrictions": brief.restrictions, "must": brief.must, "must_not": brief.must_not}
    for name, texts in lists.items():
        for text in texts:
            problem = "it says nothing" if is_empty_word(text) else placeholder_in(text)
            if problem:
                yield f"{name} {_excerpt(text)}: {problem}; remove it, or write a rule"
    is_refusal = _says_refusal(brief.goal) or (is_generated and _MAY_REFUSE.search(brief.goal))
    if brief.adversarial and is_refusal:
        yield (
            f"the goal {_excerpt(brief.goal)} is what the assistant does, not what the user wants; of an attack, write "
            'what the user tries to get, such as "a gift card is refunded"'
        )
    stated_texts = [(place, text) for place, text in _texts(brief) if not place.startswith("the fact")]
    for name, value in brief.facts.items():
        for place, text in stated_texts:
            if other := _contradiction(name, value, text):
                yield f"{place} contradicts the facts: {other}"


def _says_refusal(goal: str) -> bool:
    """Return whether a goal says how an assistant refuses."""
    if _REFUSES.match(goal):
        return True
    passive = _PASSIVE_GERMAN.search(goal)
    return passive is not None and _REFUSED_GERMAN.search(goal, passive.end()) is not None


def _texts(brief: Brief) -> Iterator[tuple[str, str]]:
    """Yield the texts that the tester plays, each with where it stands."""
    yield "the goal", brief.goal
    for name, text in (("the instructions", brief.instructions), ("the scenario", brief.scenario)):
        if text is not None and text.strip():
            yield name, text
    if brief.persona is not None:
        for field, words in brief.persona:
            if field != "name" and str(words).strip():
                yield f"the {field} of the persona", str(words)
    for name, value in brief.facts.items():
        yield f"the fact '{name}'", value


def _contradiction(name: str, value: str, text: str) -> str | None:
    """Return how a text contradicts a fact, None where code sees nothing of that kind."""
    if contains_words(text, value):
        return None
    words = r"[\s_-]+".join(map(re.escape, re.split(r"[\s_-]+", name.strip())))
    if not re.search(r"\w", name):
        return None
    for match in re.finditer(rf"\b{words}\b{_VALUE}", text, re.IGNORECASE):
        other = match["value"]
        if _is_code(other) and _is_code(value) and _bare(other) != _bare(value):
            return f"it says {name} {other}, and they say {value}"
    ages = [number.value for number in numbers_in(value)] if fold(name).strip() in _AGE_NAMES else []
    for match in _AGE.finditer(text) if len(ages) == 1 else ():
        years = match["years"] or match["aged"]
        if int(years) != ages[0]:
            return f"it says {match[0]}, and they say {value}"
    unknown = re.search(rf"{_UNKNOWN}{words}\b|{_UNKNOWN_GERMAN}{words}\s+nicht\b", text, re.IGNORECASE)
    if unknown and not _PASSING.search(text):
        return f"it says that the user does not know the {name}, and they say {value}"
    return None


def _is_code(value: str) -> bool:
    """Say whether a value is one word with a digit, such as an order number."""
    return len(value.split()) == 1 and any(letter.isdigit() for letter in value)


def _bare(value: str) -> str:
    return "".join(letter for letter in fold(value) if letter.isalnum())


def _excerpt(text: str) -> str:
    return repr(shorten(text, 200))
