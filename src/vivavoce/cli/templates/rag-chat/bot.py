"""A desk that looks its answers up in a few passages: put your own retrieval and model in its place."""

from __future__ import annotations

import re
from typing import Any

PASSAGES = {
    "breakfast": "Breakfast is served from 7 to 10 in the garden room.",
    "breakfast-children": "At breakfast, children up to six eat free.",
    "pool": "The pool costs 8 euros a day.",
    "pool-children": "For children the pool costs 3 euros a day.",
    "dogs": "A dog costs 15 euros a night.",
    "parking": "You can park a car in the courtyard.",
}
SMALL_WORDS = {"a", "and", "can", "do", "does", "for", "i", "is", "it", "my", "the", "what", "when", "where", "you"}


def reply(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Answer with the passage that fits best, and say what was retrieved."""
    said = [str(message["content"]) for message in messages if message["role"] == "user"]
    # A mistake for your first run to find: the question before may say what this one is about.
    found = search(" ".join(said[-1:]))
    answer = found[0]["text"] if found else "That I do not know. The desk will call you back."
    return {"role": "assistant", "content": answer, "retrieval_context": found}


def search(question: str) -> list[dict[str, str]]:
    """Return the passage that shares most words with a question, if any does; of equal ones, the shortest."""
    wanted = words(question)
    ranked = sorted(PASSAGES, key=lambda name: (-len(wanted & words(PASSAGES[name])), len(PASSAGES[name])))
    return [{"id": name, "text": PASSAGES[name]} for name in ranked[:1] if wanted & words(PASSAGES[name])]


def words(text: str) -> set[str]:
    """Return the words of a text that say something."""
    return set(re.findall(r"[a-z]+", text.lower())) - SMALL_WORDS
