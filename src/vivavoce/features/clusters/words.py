"""Vectors of texts from their words: how rare each is, without a model."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Matrix = Any
    """A sparse matrix of scipy, which has no types."""

_WORD = re.compile(r"[^\W\d_]+")
_COMMON = frozenset(
    """
    a about after all also although an and any are as assistant at be because been before bot but by can could customer
    did do does done during even for from further had has have having he her his how i if in instead into is it its just
    made make may more must no nor of on only or other out over own response reply said says she should so some such
    than that the their them then there these they this to too turn up user was were what when where which while who why
    will with without would yet you your
    """.split()  # noqa: SIM905  # a list would take a line for each
)
"""English words that say nothing about a cause, among them those for the two who speak."""
_ENDINGS = ("ations", "ation", "ments", "ment", "ings", "ing", "ies", "ied", "ed", "es", "s", "ly", "y", "e")
RAREST = 30
"""A word weighs as much as if at least one in this many texts had it, or names of single cases would outweigh a
cause."""
_MIN_CHARS = 3
_MAX_CHARS = 40


def stem(word: str) -> str:
    """Return an English word without its ending, so that `refunded` and `refunds` are one word."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_CHARS:
            return word[: -len(ending)]
    return word


def telling(text: str) -> list[str]:
    """Return the words of a text that say something, in lower case; what is longer than 40 letters is not a word."""
    return [word for word in _WORD.findall(text.lower()) if word not in _COMMON and 1 < len(word) <= _MAX_CHARS]


def word_vectors(texts: Sequence[str]) -> Matrix:
    """Return a row of length 1 for each text: its words' stems, each weighted by how few texts have it.

    A text without a telling word has a row of zeros, and is like no other.
    """
    import numpy as np
    from scipy.sparse import csr_matrix

    word_counts = [Counter(map(stem, telling(text))) for text in texts]
    having = Counter(word for words in word_counts for word in words)
    places = {word: place for place, word in enumerate(having)}
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    for row, words in enumerate(word_counts):
        weights = {w: (1 + math.log(n)) * math.log(1 + min(RAREST, len(texts) / having[w])) for w, n in words.items()}
        length = math.sqrt(math.fsum(weight**2 for weight in weights.values())) or 1.0
        rows += [row] * len(weights)
        columns += [places[word] for word in weights]
        values += [weight / length for weight in weights.values()]
    shape = (len(texts), max(1, len(places)))
    return csr_matrix((np.array(values, dtype=np.float32), (rows, columns)), shape=shape)


def most_telling(inside: Sequence[str], everywhere: Counter[str], texts: int, most: int = 5) -> list[str]:
    """Return the words that are in many of some texts and in few of all `texts`, as they are written most often."""
    spellings: dict[str, Counter[str]] = {}
    having: Counter[str] = Counter()
    for text in inside:
        words = telling(text)
        for word in words:
            spellings.setdefault(stem(word), Counter())[word] += 1
        having.update({stem(word) for word in words})
    ranked = sorted(having, key=lambda word: (-having[word] * math.log(1 + texts / everywhere[word]), word))
    return [
        min(spellings[word], key=lambda form, forms=spellings[word]: (-forms[form], form)) for word in ranked[:most]
    ]


def stems_of(texts: Sequence[str]) -> Counter[str]:
    """Return in how many texts each stem is."""
    return Counter(word for text in texts for word in {stem(token) for token in telling(text)})
