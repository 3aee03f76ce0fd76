"""What a rule of `must_not` forbids: the act itself, also where the rule is worded as a ban, in English or German.

`must_not: ["tell a guest's name"]` and `must_not: ["Never tell a guest's name"]` mean the same. A judge is always asked
whether the assistant did the act; code says what that means for the rule.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from vivavoce.errors import UsageError

_SUBJECT = (
    r"(?:(?:the\s+|our\s+|this\s+)?(?:assistant|bot|chat\s?bot|agent|model|target|system|ai)|it|you|they"
    r"|(?:der|die|das)\s+(?:assistent(?:in)?|bot|chatbot|agent|modell|system|ki)|du|er|sie|es)\s+"
)
_LEAD = r"(?:[-*•–]\s*)?(?:please\s+|bitte\s+)?"
_MODAL = r"(?:must|may|should|shall|can|could|is\s+(?:not\s+)?(?:allowed|permitted)\s+to)"

_ENGLISH = re.compile(
    rf"""{_LEAD}(?:
        (?:under\ no\ circumstances|at\ no\ (?:point|time)|in\ no\ case),?\s+
        (?:{_MODAL}\s+)?(?:{_SUBJECT})?(?:{_MODAL}\s+)?
      | (?:{_SUBJECT})?(?:
            (?:(?:must|may|should|shall|can|could)(?:\s+not|n['’]t|not)|can['’]t)(?:\s+ever)?
          | (?:must|may|should|shall|can|could)\s+never(?:\s+ever)?
          | (?:is|are)(?:\s+not|n['’]t)\s+(?:allowed|permitted)\s+to
          | (?:is|are)\s+never\s+(?:allowed|permitted)\s+to
          | (?:has|have|needs?)\s+to\s+(?:avoid|refrain\s+from)
          | (?:must|should|shall)\s+(?:avoid|refrain\s+from)
        )\s+
      | (?:{_SUBJECT})?never(?:\s+ever)?[\s:]+
      | (?:do\s+not|don['’]t|dont)(?:\s+ever)?[\s:]+
      | not\s+(?!only\b|just\b|\w+ing\b)
      | (?:avoid|refrain\s+from)\s+(?=\w+ing\b)
      | no\s+(?=\w{{2,}}ing\b)
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_GERMAN_START = re.compile(
    rf"{_LEAD}(?:niemals|nie(?:\s+mehr)?|nicht|auf\s+keinen\s+fall|unter\s+keinen\s+umständen)\s+", re.IGNORECASE
)
_GERMAN_NONE = re.compile(rf"{_LEAD}kein(?:e|en|em|er|es)?\s+(?P<rest>\S+.*\s[a-zäöüß]+n)\s*[.!]?", re.IGNORECASE)
_GERMAN_MODAL = re.compile(rf"{_LEAD}(?:{_SUBJECT})?(?:darf|darfst|dürfen|soll|sollte|sollst|kann)\s+", re.IGNORECASE)
_GERMAN_IMPERATIVE = re.compile(rf"{_LEAD}(?P<verb>[a-zäöüß]{{2,}}[^t\W])\s+(?=(?:niemals|nie|nicht|kein\w*)\b)", re.I)
_GERMAN_NEGATION = re.compile(r"\b(?:niemals|nie|nicht|kein(?:e|en|em|er|es)?)\b\s*", re.IGNORECASE)

_STATEMENT = re.compile(
    rf"""{_LEAD}(?:{_SUBJECT})?(?:
        (?:does|did|do|is|are|was|were|will|would|has|have|need)(?:\s+not\b|n['’]t\b)
      | won['’]t\b | no\b | none\b | nothing\b | nobody\b | not\b | never\b | avoids?\b | refrains?\b
      | kein\w*\b | nichts\b | niemand\b | niemals\b | nie\b | nicht\b | \w+t\s+(?:nicht|nie|niemals|kein\w*)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_EXCEPTION = re.compile(
    r"\b(?:unless|until|except\s+(?:when|if)|es\s+sei\s+denn|außer\s+wenn|solange)\b", re.IGNORECASE
)

_EXAMPLE = 'write the act itself, such as "tell a guest\'s name"'


def forbidden_act(rule: str) -> str:
    """Return what a rule of `must_not` forbids, without the words that make it a ban.

    Raises:
        ValueError: it is worded as a ban, and what it forbids is not certain.
    """
    text = rule.strip()
    act = _without_ban(text)
    if act is None:
        if _STATEMENT.match(text):
            raise ValueError(f"'{rule}' can be read as a ban or as something left undone; {_EXAMPLE}")
        return rule
    if not re.search(r"\w", act):
        raise ValueError(f"'{rule}' does not say what is forbidden; {_EXAMPLE}")
    if _EXCEPTION.search(act):
        raise ValueError(f"'{rule}' is a ban with an exception; {_EXAMPLE}, with its case: \"refund without a yes\"")
    if _STATEMENT.match(act) or _without_ban(act) is not None:
        raise ValueError(f"'{rule}' bans leaving something undone; put what has to happen into must")
    return act


def check_prohibitions(rules: Sequence[str]) -> None:
    """Check that it is certain what each rule of `must_not` forbids.

    Raises:
        UsageError: it is not.
    """
    for rule in rules:
        try:
            forbidden_act(rule)
        except ValueError as error:
            raise UsageError(f"must_not: {error}") from None


def act_text(rule: str) -> str:
    """Return the same for people and judges to read; the rule as it stands where what it forbids is not certain."""
    try:
        return forbidden_act(rule)
    except ValueError:
        return rule


def _without_ban(text: str) -> str | None:
    """Return a rule without the words that make it a ban, None where it has none."""
    for pattern in (_ENGLISH, _GERMAN_START):
        if found := pattern.match(text):
            return text[found.end() :]
    if found := _GERMAN_NONE.fullmatch(text):
        return found["rest"]
    if (found := _GERMAN_MODAL.match(text)) or (found := _GERMAN_IMPERATIVE.match(text)):
        rest = text[found.end() :]
        if len(_GERMAN_NEGATION.findall(rest)) == 1:
            verb = found.groupdict().get("verb")
            act = _GERMAN_NEGATION.sub("", rest)
            return f"{verb} {act}" if verb else act
    return None
