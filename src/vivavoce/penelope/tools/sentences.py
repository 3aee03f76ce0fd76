"""Sentences, and the words in them that carry meaning: English, found by rules."""

from __future__ import annotations

import re
from collections.abc import Iterator

_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]*_]*+(?=\s|\Z)|[。！？]++|\n++")
_LAST = re.compile(r"[^\s(\[\"'“‘]{1,12}\Z")
_ABBREVIATED = frozenset(
    """
    e.g. i.e. eg. ie. mr. mrs. ms. dr. prof. st. vs. cf. approx. incl. excl. inc. ltd. co. tel. ext. jan. feb. mar. apr.
    jun. jul. aug. sep. sept. oct. nov. dec.
    """.split()  # noqa: SIM905
)
_FOLLOWS = re.compile(r"\s*+(\S)")
_WORD = re.compile(r"[^\W_]++(?:['’-][^\W_]++)*+")
_APOSTROPHES = str.maketrans("’", "'")

STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any are as at be because been before being below between both but by
    can check could did do does doing done down during each else ever every extract few find for from further get give
    given had has have having he her here hers him his how i if in information into is it it's its itself just let list
    me mention mentioned more most my of off on once one only or other our out over own please regarding response reply
    said same say says she should show so some state stated such tell than that the their them then there these they
    this those through to too under until up upon us use used very via was we were what what's when where whether which
    while who whom whose why will with within would you your yours text target assistant clearly contain contains
    """.split()  # noqa: SIM905  # a list would take a line for each
)
"""English words without meaning for a subject, and those that people use to address a tool."""

_DENIALS = re.compile(r"\b(?:not|no|never|none|nothing|neither|nor|cannot|without)\b|n['’]t\b", re.IGNORECASE)
_SUFFIXES = ("able", "ments", "ment", "ing", "ies", "ied", "ed", "es", "ly", "s", "y", "e")


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text; a line ends one, an abbreviation such as `e.g.` or a decimal point does not."""
    start = 0
    for end in _END.finditer(text):
        if end[0].startswith(".") and _continues(text, start, end):
            continue
        if sentence := text[start : end.end()].strip():
            yield sentence
        start = end.end()
    if sentence := text[start:].strip():
        yield sentence


def _continues(text: str, start: int, end: re.Match[str]) -> bool:
    following = _FOLLOWS.match(text, end.end(), end.end() + 8)
    if following is None:
        return False
    last = _LAST.search(text[max(start, end.start() - 12) : end.start()])
    word = f"{last[0]}.".lower() if last else ""
    initial = len(word) == 2 and word != "i." and word[0].isalpha()
    marker = word[:-1].isdigit() and text[start : end.start()].strip() == word[:-1]
    within = (word == "etc." or "." in word[:-1]) and following[1].islower()
    return word in _ABBREVIATED or initial or marker or within


def words(text: str) -> list[str]:
    """Return the words of a text in small letters; `well-known` and `isn't` are one each."""
    return _WORD.findall(text.translate(_APOSTROPHES).lower())


def stems(text: str) -> dict[str, str]:
    """Return the words that carry meaning, by their stems; numbers are left out."""
    by_stem = {stem(word): word for word in words(text) if word not in STOP_WORDS and not word.isdigit()}
    return {root: word for root, word in by_stem.items() if len(root) > 1}


def stem(word: str) -> str:
    """Return a word without its English ending: `refund`, `refunded` and `refundable` are the same."""
    word = word.removesuffix("'s")
    suffix = next((ending for ending in _SUFFIXES if word.endswith(ending) and len(word) - len(ending) >= 3), "")
    if suffix == "s" and word.endswith("ss"):
        return word
    root = word.removesuffix(suffix)
    doubled = suffix in ("ing", "ed") and root[-1] == root[-2] and root[-1] not in "lsz"
    return root[:-1] if doubled else root


def denies(text: str) -> bool:
    """Say whether a word in a text denies something."""
    return _DENIALS.search(text) is not None
