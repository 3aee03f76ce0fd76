"""Announcements: does a reply say that something was done, in English or German?"""

from __future__ import annotations

import re

SENTENCES = re.compile(r"(?<=[.!?…])(?<!\d\.)\s+|\n")
_DONE = re.compile(
    r"""
      \b(?:all\ )?(?:done|finished|completed|sorted|settled)\b
    | \A\W*(?:all\ )?(?!indeed|need|exceed)\w{3,}ed\W*\Z | \A\W*ge\w+(?:t|en)\W*\Z
    | \ball\ set\b | \bgood\ to\ go\b | \btaken\ care\ of\b
    | \b(?:\w+)\ now\ (?:goes|ships|leaves)\b
    | \b(?:is|are|was|were|been|got)\ (?:now\ |already\ |all\ |just\ )?\w*(?:ed|sent|paid|set|put|made)\b
    | \b(?:i|we)(?:\ have|['’]ve)?\ (?:now\ |already\ |just\ )?
      (?!need|want|lik|tri|ask|look|check)\w*(?:ed|sent|paid|set|put|made)\b
    | \balles\ (?:bereit|geregelt)\b
    | \b(?:erledigt|fertig|abgeschlossen|geschafft|gemacht)\b
    | \b(?:ist|sind|wurden?|habe|haben)\b.*\bge\w+(?:t|en)\b
    | \b(?:ist|sind|wurden?|habe|haben)\b.*\b(?:ver|be|ent|er|zer|um|ab|an|ein|storn|aktualis)\w+(?:t|en)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_NOT_DONE = re.compile(
    r"\b(?:not|no|never|cannot|unable|until|once|if|when|nicht|kein\w*|nie|wenn|sobald|noch)\b|n['’]t\b|\?",
    re.IGNORECASE,
)
_LATER = re.compile(r"\b(?:will|shall|going\s+to|soon|wird|werde|werden|werdet|bald|gleich)\b|['’]ll\b", re.IGNORECASE)
"""Words of a promise."""


def says_done(reply: str) -> bool:
    """Say whether a reply states, in English or German, that something was done."""
    return any(_DONE.search(part) and not _NOT_DONE.search(part) for part in SENTENCES.split(reply))


def only_refuses_or_promises(reply: str) -> bool:
    """Say whether a reply says, in English or German, that something was not done, or will be, and not that it was."""
    return bool(_NOT_DONE.search(reply) or _LATER.search(reply)) and not says_done(reply)
