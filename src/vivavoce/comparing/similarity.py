"""How similar two texts are, with limits on their length: the time grows with the product of both lengths.

The measure is the normalized indel similarity of RapidFuzz, 1 − (insertions + deletions) / (length of both).
"""

from __future__ import annotations

from collections.abc import Sequence

from vivavoce.errors import GraderFault
from vivavoce.work_time import counted_work

MAX_COMPARED_CHARS = 100_000
"""Characters of each of two texts; two texts of this length take half a second."""

MAX_COMPARED_WORDS = 200_000
"""Words of all texts together, when each text is compared with all earlier ones."""

MAX_COMPARED_TEXTS = 5_000
"""Texts, when each is compared with all earlier ones."""


def similarity(a: str, b: str) -> float:
    """Return how similar two texts are, from 0 to 1; two empty texts are the same.

    Raises:
        GraderFault: a text is too long to be compared.
    """
    from rapidfuzz.distance import Indel

    longest = max(len(a), len(b))
    if longest > MAX_COMPARED_CHARS:
        problem = f"a text has {longest:,} characters; the similarity of at most {MAX_COMPARED_CHARS:,} is computed"
        raise GraderFault(problem, kind="limit")
    with counted_work():
        return Indel.normalized_similarity(a, b)


def near_repeats(texts: Sequence[Sequence[str]], cutoff: float = 0.9) -> list[tuple[int, int, float]]:
    """Return each text, as its words, that nearly repeats an earlier one: its place, the earlier place, the similarity.

    Raises:
        GraderFault: there are too many texts or words to compare each text with all earlier ones.
    """
    from rapidfuzz.distance import Indel
    from rapidfuzz.process import extractOne

    _check_total("messages", len(texts), MAX_COMPARED_TEXTS)
    _check_total("words", sum(map(len, texts)), MAX_COMPARED_WORDS)
    letters = {word: i for i, word in enumerate(dict.fromkeys(word for text in texts for word in text))}
    letter_texts = [
        "".join(chr(letters[word]) for word in text) for text in texts
    ]  # one letter for each word: much faster
    repeats: list[tuple[int, int, float]] = []
    for i in range(1, len(letter_texts)):
        nearest = extractOne(letter_texts[i], letter_texts[:i], scorer=Indel.normalized_similarity, score_cutoff=cutoff)
        if nearest is not None:
            _, near, earlier = nearest
            repeats.append((i, earlier, near))
    return repeats


def _check_total(what: str, count: int, limit: int) -> None:
    if count > limit:
        problem = f"{count:,} {what} cannot be compared each with all earlier ones; the limit is {limit:,}"
        raise GraderFault(problem, kind="limit")
