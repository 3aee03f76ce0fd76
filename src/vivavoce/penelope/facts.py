"""The facts of a brief: does a text tell one, or name one?"""

from __future__ import annotations

import re
from functools import lru_cache

import regex

from vivavoce.comparing.numbers import find_amount, may_state, numbers_in, read_number
from vivavoce.comparing.spellings import digits_from_words
from vivavoce.comparing.text import GuardedText, fold
from vivavoce.metrics.exact.speakers import compile_phrases

MIN_CHARS = 3
"""Characters from which a value is found with other spaces and hyphens in it."""

_FEW_WORDS = 4
"""Words, the number among them, up to which a text that ends with a short number tells just that."""

_GAP = "[ -]*"
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z\d])(?=[A-Z])")
_REVEAL_NOTHING = {"yes", "no", "true", "false", "none", "unknown", ""}
"""Values that give nothing away by themselves."""

_FILLERS = {"a", "an", "and", "by", "for", "has", "in", "is", "my", "of", "on", "or", "s", "the", "to", "user", "your"}
"""Words of a name that a question for it need not contain, and that do not ask for it alone."""


def tells_fact(text: str, fact: str, value: str) -> bool:
    """Say whether a text tells a fact: whether its value is there, in digits or in words as people read a code aloud.

    A short number is in many texts for another reason: "I have 2 questions" tells no number of passengers. It counts
    where a word of the fact's name is in the text, or where a short text ends with it, as "We are 2." does.
    """
    number = read_number(value)
    if number is None or len(value.strip()) >= MIN_CHARS:
        return _contains(text, value)
    places = [stated.end for stated in numbers_in(text) if stated.value == number]
    if not places or names_fact(text, fact):
        return bool(places)
    return len(_WORD.findall(text)) <= _FEW_WORDS and any(not _WORD.search(text, place) for place in places)


def may_tell_fact(text: str, fact: str, value: str) -> bool:
    """Return whether a text tells a fact in any way to read it: whatever markup and characters it has between."""
    number = read_number(value)
    guarded = GuardedText(text)
    if any(tells_fact(reading, fact, value) for reading in guarded.readings):
        return True
    if len(value.strip()) < MIN_CHARS:
        return False
    if guarded.contains(value, whole=True) or find_amount(text, value) is not None:
        return True
    return number is not None and may_state(text, number)


def _contains(text: str, value: str) -> bool:
    patterns = [_value(fold(value)), _value(digits_from_words(value))]
    texts = (fold(text), digits_from_words(text))
    return any(pattern.search(words) for pattern in patterns if pattern for words in texts)


def names_fact(text: str, fact: str) -> bool:
    """Say whether a word of a fact's name is in a text."""
    pattern = _name_pattern(fact)
    return pattern is not None and pattern.search(fold(text)) is not None


@lru_cache(maxsize=1024)
def _value(value: str) -> regex.Pattern[str] | None:
    if value in _REVEAL_NOTHING:
        return None
    signs = value.replace(" ", "").replace("-", "")
    if len(signs) < MIN_CHARS:
        return compile_phrases([re.escape(value)])
    return compile_phrases([_GAP.join(map(re.escape, signs))])


@lru_cache(maxsize=1024)
def _name_pattern(fact: str) -> regex.Pattern[str] | None:
    """Return a pattern for the words of a name, in singular and plural, and with hyphens in them."""
    words = _WORD.findall(fold(_CAMEL.sub(" ", fact)))
    telling = [word for word in words if word not in _FILLERS and len(word) > 1] or words
    forms = {form for word in (*telling, "".join(words)) for form in (word, word.removesuffix("s")) if form}
    return compile_phrases(f"{'-?'.join(form)}(?:s|es|'s)?" for form in sorted(forms))
