"""Signatures: what an error or a violated expectation says, without what differs from case to case."""

from __future__ import annotations

import re
from typing import NamedTuple

from vivavoce.records.score import Failure, Finding

EXPECTATIONS = frozenset(("assertion", "rule", "criterion", "prohibition", "guideline", "context", "metric"))
"""The kinds of findings whose text was written by the author of a suite, and is the same in every conversation."""

_OF_ROWS = frozenset(("assertion",))
"""Those that each row writes for itself, with its own values."""

MAX_CHARS = 2000
"""Characters of a text that are read."""

_MASKS = (
    (re.compile(r"https?://[^\s'\"<>]+"), "<url>"),
    (re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+"), "<email>"),
    (re.compile(r"\"[^\"]*\"|“[^”]*”|`[^`]*`|(?<!\w)'[^']*'(?!\w)"), "<value>"),
    (re.compile(r"\b(?=[\w-]*\d)[\w-]+\b"), "<id>"),
    (re.compile(r"<id>(?:[.,:/]<id>)+"), "<id>"),
)


class Signature(NamedTuple):
    """What makes failures the same: its kind, where it comes from, and the masked text."""

    kind: str
    source: str
    text: str


def mask_details(text: str) -> str:
    """Return a text in which addresses, quoted values, numbers and ids are replaced by what they are."""
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text[:MAX_CHARS])
    return " ".join(text.split())


def of_failure(failure: Failure, grader: str | None) -> Signature:
    """Return the signature of an error, of a conversation or of a grader."""
    return Signature("error", grader or failure.blame, f"{failure.kind}: {mask_details(failure.message)}")


def of_finding(finding: Finding, grader: str) -> Signature | None:
    """Return the signature of a violated expectation, None for any other finding."""
    if finding.state != "fail" or finding.kind not in EXPECTATIONS:
        return None
    text = mask_details(finding.what) if finding.kind in _OF_ROWS else " ".join(finding.what[:MAX_CHARS].split())
    return Signature("expectation", grader, f"{finding.kind}: {text}")


def of_tool(name: str, text: str) -> Signature:
    """Return the signature of an error that a tool returned."""
    return Signature("tool", name, mask_details(text) or "no text")
