"""What a metric found in a conversation: each criterion, check or violation, and the evidence with where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from rich.text import Text

from vivavoce.report.tables import Labelled
from vivavoce.report.text import one_line

SHOWN = 12
"""Findings of one grade that are shown."""
_WIDTH = 200
_KINDS = ("criteria", "checks", "violations")
_GOOD, _BAD, _MIXED = "green", "red", "yellow"


def findings(metadata: Mapping[str, Any]) -> Iterator[Labelled]:
    """Yield a line for each finding of a metric, each followed by its evidence; nothing for other grades."""
    found = [one for kind in _KINDS for one in _listed(metadata, kind)]
    for one in found[:SHOWN]:
        word, style, what = _told(one)
        yield Labelled(Text(f"      {word:>14}  ", style=style), Text(one_line(what, _WIDTH)))
        yield from _evidence(_listed(one, "evidence"))
    if len(found) > SHOWN:
        yield Labelled(Text(" " * 22), Text(f"… and {len(found) - SHOWN} more", style="dim"))
    if not found:
        yield from _evidence(_listed(metadata, "evidence"))


def _listed(data: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the objects of a list; metadata of somebody else's grader may hold anything under that name."""
    value = data.get(name)
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, Mapping)]


def _told(one: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the word for a finding, its colour, and what it is about."""
    if "met" in one:
        about = str(one.get("outcome") or f"{'must' if one.get('must') else 'must not'}: {one.get('text')}")
        return ("met", _GOOD, about) if one["met"] else ("not met", _BAD, about)
    if "answer" in one:
        answer = str(one["answer"])
        style = {"yes": _GOOD, "no": _BAD, "partly": _MIXED}.get(answer, "dim")
        return answer.replace("_", " "), style, str(one.get("item"))
    return str(one.get("severity", "violation")), _BAD, str(one.get("what", one.get("item", "")))


def _evidence(evidence: list[Mapping[str, Any]]) -> Iterator[Labelled]:
    for one in evidence[:SHOWN]:
        turn = one.get("turn")
        place = ("before turn 0" if turn is None else f"turn {turn}") if one.get("verified") else "not found"
        style = "dim" if one.get("verified") else "bold yellow"
        text = str(one.get("text", ""))
        shown = f"call {text}" if one.get("kind") == "call" else f"“{text}”"
        yield Labelled(Text(f"{place:>24}  ", style=style), Text(one_line(shown, _WIDTH), style="dim"))
